"""The smoothed pair-split matrix and its gradient, over the packed upper triangle.

Pairs (i, j), i < j, are numbered row by row: t = 0 is (0, 1), t = 1 is (0, 2) and so on.
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def fill_charges(a, u, r, forced, eps, nonnegative, charge, matrix):
    """Fill `matrix` with A - U, and `charge[i, j]` with V_ij, the smoothed charge of a pair."""
    n = a.shape[0]
    t = 0
    for i in range(n):
        matrix[i, i] = a[i, i]
        charge[i, i] = 0.0
        for j in range(i + 1, n):
            ut = u[t]
            if forced[i] and forced[j]:
                # both features are in the support, so that the charge would always be paid
                ut = min(ut, 0.0) if nonnegative else 0.0
                charge[i, j] = 0.0
                charge[j, i] = 0.0
            else:
                size = math.sqrt(ut * ut + eps * eps)
                if nonnegative:
                    size = 0.5 * (ut + size) + 0.25 * eps
                factor = math.exp(min(30.0, max(-30.0, r[t])))
                charge[i, j] = size * factor
                charge[j, i] = size / factor
            matrix[i, j] = a[i, j] - ut
            matrix[j, i] = matrix[i, j]
            t += 1


@njit(cache=True, nogil=True)
def kth_largest(values, count, k):
    """Return the k-th largest of the first `count` values, k = 1..count, which are reordered."""
    first, last = 0, count - 1
    while first < last:
        a, b, c = values[first], values[(first + last) // 2], values[last]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = first, last
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            last = j
        elif k - 1 >= i:
            first = i
        else:
            break
    return values[k - 1]


@njit(cache=True, nogil=True)
def row_threshold(worth, count, pad, q, tau, theta, high):
    """Find the threshold at which the smoothed choices among `worth` sum to q.

    The first `count` entries are what features are worth to the row; they are reordered. Newton
    steps start at theta, where the row was last time. If that is far off, the root lies less than
    tau below the q-th largest entry, q copies of `pad` counted among them.
    """
    low, selected, sure = 0.0, False, 0.0
    if not 0.0 < theta < high:
        theta = 0.5 * high
    for number in range(60):
        c = (pad - theta) / tau
        total = sure + q * min(1.0, max(0.0, c))
        slope = q if 0.0 < c < 1.0 else 0.0
        for j in range(count):
            c = (worth[j] - theta) / tau
            total += min(1.0, max(0.0, c))
            slope += 1.0 if 0.0 < c < 1.0 else 0.0
        excess = total - q
        if abs(excess) < 1e-9:
            break
        if excess > 0.0:
            low = theta
        else:
            high = theta
        step = theta + excess * tau / max(slope, 1.0)
        if slope > 0.0 and low < step < high and (selected or number < 2):
            theta = step
        elif selected:
            theta = 0.5 * (low + high)
        else:
            selected = True
            k = int(q)
            top = max(pad, kth_largest(worth, count, k)) if k <= count else pad
            low, high = max(low, top - tau), min(high, top)
            theta = 0.5 * (low + high)
            left = 0  # entries that the rest of the search may choose in part
            for j in range(count):
                if worth[j] >= high + tau:
                    sure += 1.0
                elif worth[j] > low:
                    worth[left] = worth[j]
                    left += 1
            count = left
        if high - low < 1e-15 * (high + tau):
            break
    return theta


@njit(cache=True, nogil=True)
def smoothed_matrix(
    a, u, r, forced, price, pad, s, eps, tau, nonnegative, charge, select, matrix, level
):
    """Fill `matrix` with A - U + Diag(d), d the smoothed row charges.

    `charge[i, j]` is V_ij, `select[i, j]` the smoothed choice p_ij of row i, and `level[i]` the
    threshold of row i (kept between calls: it starts the next root search). Row i may choose
    q_i free features; `pad[i]` stands for q_i more features of that charge outside the matrix.
    """
    n = a.shape[0]
    n_forced = 0
    for i in range(n):
        if forced[i]:
            n_forced += 1
    fill_charges(a, u, r, forced, eps, nonnegative, charge, matrix)
    worth = np.empty(n)
    for i in range(n):
        q = float(s - n_forced)
        others = n - n_forced  # features that row i may choose among
        if not forced[i]:
            q -= 1.0
            others -= 1
        d = -price[i]
        high = pad[i]
        total = q * min(1.0, max(0.0, pad[i] / tau))
        last = 0
        for j in range(n):
            if j == i:
                select[i, j] = 0.0
                continue
            w = charge[i, j] - price[j]
            if forced[j]:
                select[i, j] = 1.0
                d += w
            else:
                high = max(high, w)
                total += min(1.0, max(0.0, w / tau))
                worth[last] = w
                last += 1
        theta = 0.0
        if q <= 0.0:
            theta = high + 2.0 * tau
        elif total > q:
            # not `last`: it begins as a literal, and the row search would be compiled twice
            theta = row_threshold(worth, others, pad[i], q, tau, level[i], high)
            level[i] = theta
        c = min(1.0, max(0.0, (pad[i] - theta) / tau))
        d += q * (c * pad[i] - 0.5 * tau * c * c)
        for j in range(n):
            if j != i and not forced[j]:
                w = charge[i, j] - price[j]
                c = min(1.0, max(0.0, (w - theta) / tau))
                select[i, j] = c
                d += c * w - 0.5 * tau * c * c
        matrix[i, i] += d


@njit(cache=True, nogil=True)
def smoothed_gradient(u, forced, eps, nonnegative, charge, select, density, grad_u, grad_r):
    """Gradient of the smoothed bound in U and R, from the density matrix X and the choices p."""
    n = density.shape[0]
    t = 0
    for i in range(n):
        for j in range(i + 1, n):
            ut = u[t]
            if forced[i] and forced[j]:
                grad_u[t] = -2.0 * density[i, j] if nonnegative and ut < 0.0 else 0.0
                grad_r[t] = 0.0
            else:
                gi = density[i, i] * select[i, j] * charge[i, j]
                gj = density[j, j] * select[j, i] * charge[j, i]
                size = math.sqrt(ut * ut + eps * eps)
                if nonnegative:
                    ratio = 0.5 * (1.0 + ut / size) / (0.5 * (ut + size) + 0.25 * eps)
                else:
                    ratio = ut / (size * size)
                grad_u[t] = -2.0 * density[i, j] + ratio * (gi + gj)
                grad_r[t] = gi - gj
            t += 1
