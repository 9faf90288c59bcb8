"""Exchange local search for components with disjoint supports."""

import math

from numba import njit


@njit(cache=True, nogil=True)
def leading(matrix, members, count, nonnegative, limit, vector, image):
    """Power iteration on matrix[members, members] from the unit vector given; returns x'Ax.

    With nonnegative set, negative entries are cut after every step. The value returned belongs to
    the vector left behind, hence it is never too large.
    """
    value = 0.0
    for _ in range(limit):
        now = 0.0
        norm = 0.0
        for a in range(count):
            total = 0.0
            row = members[a]
            for b in range(count):
                total += matrix[row, members[b]] * vector[b]
            now += total * vector[a]
            if nonnegative and total < 0.0:
                total = 0.0
            image[a] = total
            norm += total * total
        if not norm > 0.0:
            return now
        if now - value <= 1e-14 * now:
            return now
        value = now
        scale = 1.0 / math.sqrt(norm)
        for a in range(count):
            vector[a] = image[a] * scale
    return value


@njit(cache=True, nogil=True)
def predict(matrix, members, count, loading, nonnegative, skip, estimate, kept, vector, image,
            cross):
    """estimate[b] = leading eigenvalue of the support without members[skip] but with b, to first
    order: the 2 x 2 problem spanned by the remaining leading vector and feature b."""
    p = matrix.shape[0]
    size = 0
    norm = 0.0
    for a in range(count):
        if a != skip:
            kept[size] = members[a]
            vector[size] = loading[a]
            norm += loading[a] * loading[a]
            size += 1
    for a in range(size):
        vector[a] = vector[a] / math.sqrt(norm) if norm > 1e-20 else 1.0 / math.sqrt(size)
    value = leading(matrix, kept, size, nonnegative, 8, vector, image)
    for b in range(p):
        cross[b] = 0.0
    for a in range(size):
        weight = vector[a]
        row = kept[a]
        for b in range(p):
            cross[b] += weight * matrix[row, b]
    for b in range(p):
        own = matrix[b, b]
        z = cross[b]
        if nonnegative and z < 0.0:
            z = 0.0
        half = 0.5 * (value - own)
        estimate[b] = 0.5 * (value + own) + math.sqrt(half * half + z * z)


@njit(cache=True, nogil=True)
def trade(matrix, members, count, loading, slot, feature, nonnegative, kept, vector, image):
    """Value of the support with members[slot] replaced by feature; its loading goes to vector."""
    cross = 0.0
    inner = 0.0
    for a in range(count):
        kept[a] = members[a]
        vector[a] = loading[a]
    kept[slot] = feature
    vector[slot] = 0.0
    for a in range(count):
        if a != slot:
            cross += matrix[feature, members[a]] * loading[a]
            inner += loading[a] * loading[a]
    # The start needs weight on the new feature: a feature orthogonal to it would never be seen.
    sign = 1.0 if cross >= 0.0 or nonnegative else -1.0
    vector[slot] = sign * max(0.3 * math.sqrt(inner), 1e-3)
    norm = 0.0
    for a in range(count):
        norm += vector[a] * vector[a]
    for a in range(count):
        vector[a] /= math.sqrt(norm)
    return leading(matrix, kept, count, nonnegative, 300, vector, image)


@njit(cache=True, nogil=True)
def exchange(matrix, need, nonnegative, candidates, limit, owner, members, loading, value, place,
             estimate, dirty, best_gain, best_in, best_out, kept, kept2, vector, vector2, image,
             cross):
    """Swap features between components and with the free ones while the total value grows.

    owner (p,) holds the start and the result. All swaps are predicted, the `candidates` most
    promising evaluated, the first improving one made. Scratch: members, loading (k, s_max),
    value (k,), place (p,), estimate (sum(need), p), dirty (k,), best_* (candidates,),
    kept*, vector*, image (s_max,), cross (p,). Returns the number of swaps made.
    """
    k = need.shape[0]
    p = matrix.shape[0]
    for j in range(k):
        count = 0
        for i in range(p):
            if owner[i] == j:
                members[j, count] = i
                place[i] = count
                loading[j, count] = 1.0 / math.sqrt(need[j])
                count += 1
        # From the feature of largest variance too: equal weights may cancel exactly.
        value[j] = leading(matrix, members[j], count, nonnegative, 300, loading[j], image)
        top = 0
        for a in range(count):
            if matrix[members[j, a], members[j, a]] > matrix[members[j, top], members[j, top]]:
                top = a
            vector[a] = 0.1 * loading[j, a]
        vector[top] += 1.0
        norm = 0.0
        for a in range(count):
            if nonnegative and vector[a] < 0.0:
                vector[a] = 0.0
            norm += vector[a] * vector[a]
        for a in range(count):
            vector[a] /= math.sqrt(norm)
        other = leading(matrix, members[j], count, nonnegative, 300, vector, image)
        if other > value[j]:
            value[j] = other
            for a in range(count):
                loading[j, a] = vector[a]
        dirty[j] = 1
    moves = 0
    for _ in range(limit):
        total = 0.0
        first = 0
        for j in range(k):
            total += value[j]
            if dirty[j] == 1:
                for a in range(need[j]):
                    predict(matrix, members[j], need[j], loading[j], nonnegative, a,
                            estimate[first + a], kept, vector, image, cross)
                dirty[j] = 0
            first += need[j]
        for c in range(candidates):
            best_gain[c] = -math.inf
        first = 0
        for j in range(k):
            for a in range(need[j]):
                out = members[j, a]
                for b in range(p):
                    other_owner = owner[b]
                    if other_owner == j or (other_owner >= 0 and other_owner < j):
                        continue
                    gain = estimate[first + a, b] - value[j]
                    if other_owner > j:
                        row = place[b]
                        for c in range(other_owner):
                            row += need[c]
                        gain += estimate[row, out] - value[other_owner]
                    if gain > best_gain[candidates - 1]:
                        c = candidates - 1
                        while c > 0 and best_gain[c - 1] < gain:
                            best_gain[c] = best_gain[c - 1]
                            best_in[c] = best_in[c - 1]
                            best_out[c] = best_out[c - 1]
                            c -= 1
                        best_gain[c] = gain
                        best_in[c] = b
                        best_out[c] = out
            first += need[j]
        improved = False
        for c in range(candidates):
            if best_gain[c] == -math.inf:
                break
            out = best_out[c]
            b = best_in[c]
            j = owner[out]
            other_owner = owner[b]
            new = trade(matrix, members[j], need[j], loading[j], place[out], b, nonnegative,
                        kept, vector, image)
            gain = new - value[j]
            new2 = 0.0
            if other_owner >= 0:
                new2 = trade(matrix, members[other_owner], need[other_owner],
                             loading[other_owner], place[b], out, nonnegative, kept2, vector2,
                             image)
                gain += new2 - value[other_owner]
            if gain > 1e-10 * total:
                slot = place[out]
                members[j, slot] = b
                value[j] = new
                dirty[j] = 1
                for a in range(need[j]):
                    loading[j, a] = vector[a]
                if other_owner >= 0:
                    slot2 = place[b]
                    members[other_owner, slot2] = out
                    value[other_owner] = new2
                    dirty[other_owner] = 1
                    for a in range(need[other_owner]):
                        loading[other_owner, a] = vector2[a]
                    place[out] = slot2
                place[b] = slot
                owner[b] = j
                owner[out] = other_owner
                improved = True
                moves += 1
                break
        if not improved:
            break
    return moves
