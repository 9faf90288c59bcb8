"""Exchange local search for components with disjoint supports: swaps and power iteration."""

import math

from numba import njit


@njit(cache=True, nogil=True)
def leading(matrix, members, nonnegative, limit, vector, image):
    """Power iteration on matrix[members, members] from the unit vector given; returns x'Ax.

    With nonnegative set, negative entries are cut after every step. The value returned belongs to
    the vector left behind, hence it is never above the best value on this support.
    """
    count = members.shape[0]
    value = -1.0
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
        if not norm > 0.0 or now - value <= 1e-14 * now:
            return now
        value = now
        scale = 1.0 / math.sqrt(norm)
        for a in range(count):
            vector[a] = image[a] * scale
    return value


@njit(cache=True, nogil=True)
def promising(estimate, flat, component, value, owner, place, best_gain, best_out, best_in):
    """Write the swaps of largest predicted gain, best first, to best_gain, best_out, best_in (c,).

    Row t of estimate (m, p) predicts what component[t] is worth after its member flat[t] left for
    feature b. Feature b is free (owner -1) or member place[b] of another component, which then
    takes flat[t] in exchange. Unused places have gain -inf.
    """
    m, p = estimate.shape
    c_max = best_gain.shape[0]
    for c in range(c_max):
        best_gain[c] = -math.inf
    for t in range(m):
        j = component[t]
        for b in range(p):
            other = owner[b]
            gain = estimate[t, b] - value[j]
            if other >= 0:
                if other <= j:
                    continue
                gain += estimate[place[b], flat[t]] - value[other]
            if gain > best_gain[c_max - 1]:
                c = c_max - 1
                while c > 0 and best_gain[c - 1] < gain:
                    best_gain[c] = best_gain[c - 1]
                    best_out[c] = best_out[c - 1]
                    best_in[c] = best_in[c - 1]
                    c -= 1
                best_gain[c] = gain
                best_out[c] = flat[t]
                best_in[c] = b
