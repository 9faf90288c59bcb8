"""Disjoint supports for given scores: an exact matching, and the ascent built on it.

Papailiopoulos, Dimakis, Korokythakis (2013) and Asteris, Papailiopoulos, Kyrillidis, Dimakis (2015)
reduce the choice of k disjoint supports for fixed directions to a maximum weight bipartite matching
with s copies of every column. All copies of a column are alike, so it is a transportation problem
whose residual graph has only k nodes.
"""

import math

from numba import njit


@njit(cache=True, nogil=True)
def kth_largest(values, count, rank):
    """The rank-th largest (1 = largest) of values[:count], which are reordered."""
    low = 0
    high = count - 1
    target = rank - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i = low
        j = high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                swap = values[i]
                values[i] = values[j]
                values[j] = swap
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            return pivot
    return values[target]


@njit(cache=True, nogil=True)
def match(weight, need, owner, buffer, rows, prices, step, through, gain, previous, entering):
    """Give need[j] rows to every column j, no row twice, with the largest total weight.

    weight (k, p) is nonnegative and sum(need) <= p; owner (p,) receives the column or -1.
    Scratch: buffer (p,), rows (p,), prices (k,), step (k, k), through (k, k) integer,
    gain (k,), previous (k,) integer, entering (k,) integer.

    Rows above a column's need-th largest weight go to the column where they are best relative to it;
    that is optimal for the counts it produces. Each missing unit then follows the best augmenting
    path through the k columns, which keeps optimality.
    """
    k, p = weight.shape
    heaviest = 0.0
    missing = 0
    for j in range(k):
        for i in range(p):
            buffer[i] = weight[j, i]
        prices[j] = kth_largest(buffer, p, need[j])
        previous[j] = need[j]
        missing += need[j]
    for i in range(p):
        owner[i] = -1
        best = 0.0
        for j in range(k):
            heaviest = max(heaviest, weight[j, i])
            surplus = weight[j, i] - prices[j]
            if surplus > best:
                best = surplus
                owner[i] = j
        if owner[i] >= 0:
            previous[owner[i]] -= 1
            missing -= 1
    for j in range(k):
        prices[j] = previous[j]  # units still missing; exact for counts below 2**53
    # Only the best `missing` free rows of a column can ever enter: collect these and the owned ones.
    owned = 0
    for i in range(p):
        if owner[i] >= 0:
            rows[owned] = i
            owned += 1
    for j in range(k):
        count = 0
        for i in range(p):
            if owner[i] < 0:
                buffer[count] = weight[j, i]
                count += 1
        gain[j] = kth_largest(buffer, count, missing) if missing < count else 0.0
    total = owned
    for i in range(p):
        if owner[i] < 0:
            for j in range(k):
                if weight[j, i] >= gain[j]:
                    rows[total] = i
                    total += 1
                    break
    tolerance = 8.0 * k * 2.3e-16 * heaviest
    for _ in range(missing):
        for a in range(k):
            gain[a] = -1.0
            previous[a] = -1
            for b in range(k):
                step[a, b] = -math.inf
        for t in range(total):
            i = rows[t]
            a = owner[i]
            if a < 0:
                for b in range(k):
                    if weight[b, i] > gain[b]:
                        gain[b] = weight[b, i]
                        entering[b] = i
            else:
                for b in range(k):
                    change = weight[b, i] - weight[a, i]
                    if change > step[a, b]:
                        step[a, b] = change
                        through[a, b] = i
        direct_row = -1
        for _round in range(k):
            changed = False
            for a in range(k):
                for b in range(k):
                    # The tolerance keeps ties from closing a cycle of gain zero.
                    if a != b and gain[a] + step[a, b] > gain[b] + tolerance:
                        gain[b] = gain[a] + step[a, b]
                        previous[b] = a
                        entering[b] = through[a, b]
                        changed = True
            if not changed:
                break
        last = -1
        for j in range(k):
            if prices[j] > 0 and (last < 0 or gain[j] > gain[last]):
                last = j
        prices[last] -= 1
        length = 0
        j = last
        while previous[j] >= 0 and length <= k:
            j = previous[j]
            length += 1
        if length > k:  # rounding closed a cycle: take the best free row instead
            for t in range(total):
                i = rows[t]
                if owner[i] < 0 and (direct_row < 0 or weight[last, i] > weight[last, direct_row]):
                    direct_row = i
            owner[direct_row] = last
            continue
        j = last
        while previous[j] >= 0:
            owner[entering[j]] = j
            j = previous[j]
        owner[entering[j]] = j


@njit(cache=True, nogil=True)
def spread(matrix, owner, score, nonnegative, vector, image, value):
    """Unit vectors proportional to score on each support, their images and quadratic forms."""
    k, p = score.shape
    for j in range(k):
        norm = 0.0
        count = 0
        for i in range(p):
            vector[j, i] = 0.0
            image[j, i] = 0.0
            if owner[i] == j:
                count += 1
                if score[j, i] > 0.0 or not nonnegative:
                    vector[j, i] = score[j, i]
                    norm += score[j, i] * score[j, i]
        value[j] = 0.0
        for i in range(p):
            if owner[i] == j:
                # A column whose scores vanish restarts from equal weights.
                if norm > 0.0:
                    vector[j, i] /= math.sqrt(norm)
                else:
                    vector[j, i] = 1.0 / math.sqrt(count)
                weight = vector[j, i]
                for c in range(p):
                    image[j, c] += weight * matrix[i, c]
        for i in range(p):
            value[j] += vector[j, i] * image[j, i]


@njit(cache=True, nogil=True)
def ascend(matrix, score, need, nonnegative, limit, owner, vector, image, value, weight,
           buffer, rows, prices, step, through, gain, previous, entering):
    """Matching ascent: W = A x_j / sqrt(x_j'A x_j), supports = match(W**2), until nothing moves.

    score (k, p) is the start and is overwritten; owner, vector (k, p) and value (k,) are the
    result. The sum of the values never falls when matrix is positive semidefinite.
    """
    k, p = score.shape
    last = -1.0
    rounds = 0
    for _ in range(limit):
        rounds += 1
        for j in range(k):
            for i in range(p):
                w = score[j, i]
                weight[j, i] = w * w if (w > 0.0 or not nonnegative) else 0.0
        match(weight, need, owner, buffer, rows, prices, step, through, gain, previous, entering)
        spread(matrix, owner, score, nonnegative, vector, image, value)
        total = 0.0
        for j in range(k):
            total += value[j]
            scale = 1.0 / math.sqrt(value[j]) if value[j] > 0.0 else 0.0
            for i in range(p):
                score[j, i] = image[j, i] * scale
        if total - last <= 1e-9 * total:
            break
        last = total
    return rounds
