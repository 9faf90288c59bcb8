"""Disjoint supports for given scores: the augmenting paths of an exact matching.

Asteris, Papailiopoulos, Kyrillidis and Dimakis (2015) reduce the choice of k disjoint supports for
fixed directions to a maximum weight bipartite matching with s copies of every column. All copies of
a column are alike, so it is a transportation problem whose residual graph has only k nodes.
"""

import math

from numba import njit


@njit(cache=True, nogil=True)
def augment(weight, missing, owner, step, through, gain, previous, entering):
    """Give missing[j] further rows to every column j by best augmenting paths.

    weight (m, k) is nonnegative; owner (m,) holds an assignment that is optimal for its own counts
    and receives the optimal one for the larger counts. missing (k,) ends at zero. Scratch:
    step (k, k), through (k, k) integer, gain (k,), previous (k,) and entering (k,) integer.
    """
    m, k = weight.shape
    heaviest = 0.0
    units = 0
    for j in range(k):
        units += missing[j]
        for i in range(m):
            heaviest = max(heaviest, weight[i, j])
    tolerance = 2e-15 * k * heaviest
    for _ in range(units):
        for a in range(k):
            gain[a] = -math.inf
            previous[a] = -1
            for b in range(k):
                step[a, b] = -math.inf
        for i in range(m):
            a = owner[i]
            base = weight[i, a] if a >= 0 else 0.0
            for b in range(k):
                change = weight[i, b] - base
                if a < 0:
                    if change > gain[b]:
                        gain[b] = change
                        entering[b] = i
                elif change > step[a, b]:
                    step[a, b] = change
                    through[a, b] = i
        changed = True
        rounds = 0
        while changed and rounds < k:
            changed = False
            rounds += 1
            for a in range(k):
                for b in range(k):
                    # The tolerance keeps ties from closing a cycle of gain zero.
                    if a != b and gain[a] + step[a, b] > gain[b] + tolerance:
                        gain[b] = gain[a] + step[a, b]
                        previous[b] = a
                        entering[b] = through[a, b]
                        changed = True
        last = -1
        for j in range(k):
            if missing[j] > 0 and (last < 0 or gain[j] > gain[last]):
                last = j
        missing[last] -= 1
        length = 0
        j = last
        while previous[j] >= 0 and length <= k:
            j = previous[j]
            length += 1
        if length > k:  # rounding closed a cycle after all: take the best free row instead
            entering[last] = -1
            previous[last] = -1
            for i in range(m):
                if owner[i] < 0 and (
                    entering[last] < 0 or weight[i, last] > weight[entering[last], last]
                ):
                    entering[last] = i
        j = last
        while j >= 0:
            owner[entering[j]] = j
            j = previous[j]
