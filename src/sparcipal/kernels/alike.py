"""Sets of features that cost little: the pairs of a set, and what each feature adds.

Integers, so that no sum is rounded. Features come in a fixed order, and a set is searched in that
order: what is already chosen is charged in full, and each of the others with half its pairs.
"""

from numba import njit


@njit(cache=True, nogil=True)
def sets_below(single, pair, rest, limit, most, found, each, score, state):
    """List the sets P of g features with sum single_i + sum_{i<j} pair_ij < limit.

    single (n,), pair (n, n) symmetric with zero diagonal and rest (n, g + 1, n) are integers:
    rest[i, q, j] is the sum of the q - 1 smallest pair_jl among l >= i, l != j. found (m, g)
    receives the sets. Scratch: each and score (g + 1, n) and state (6, g + 1), integer. Returns how
    many sets of chosen features were looked at, and how many sets were found; -1 for the latter if
    that exceeds m or the former exceeds `most`.
    """
    n = single.size
    g = found.shape[1]
    base, place, total = state[0], state[1], state[2]
    last, chosen, smallest = state[3], state[4], state[5]
    each[0] = single
    base[0] = place[0] = 0
    looked = count = depth = 0
    fresh = True
    while depth >= 0:
        q = g - depth
        if fresh:
            fresh = False
            looked += 1
            if looked > most:
                return looked, -1
            first = place[depth]
            if n - first < q:
                depth -= 1
                continue
            if q == 1:
                for j in range(first, n):
                    if base[depth] + each[depth, j] < limit:
                        if count == found.shape[0]:
                            return looked, -1
                        for i in range(depth):
                            found[count, i] = chosen[i]
                        found[count, depth] = j
                        count += 1
                depth -= 1
                continue
            # the q smallest scores, by insertion
            kept = 0
            for j in range(first, n):
                x = 2 * each[depth, j] + rest[first, q, j]
                score[depth, j] = x
                if kept < q or x < smallest[kept - 1]:
                    i = min(kept, q - 1)
                    while i > 0 and smallest[i - 1] > x:
                        smallest[i] = smallest[i - 1]
                        i -= 1
                    smallest[i] = x
                    kept = min(kept + 1, q)
            total[depth] = 2 * base[depth]
            for i in range(q):
                total[depth] += smallest[i]
            last[depth] = smallest[q - 1]
            if total[depth] >= 2 * limit:
                depth -= 1
                continue
        j = place[depth]
        if n - j < q:
            depth -= 1
            continue
        place[depth] = j + 1
        if total[depth] + max(score[depth, j] - last[depth], 0) >= 2 * limit:
            continue
        chosen[depth] = j
        base[depth + 1] = base[depth] + each[depth, j]
        for i in range(j + 1, n):
            each[depth + 1, i] = each[depth, i] + pair[j, i]
        place[depth + 1] = j + 1
        depth += 1
        fresh = True
    return looked, count
