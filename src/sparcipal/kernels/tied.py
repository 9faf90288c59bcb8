"""What components explain that are made orthogonal or uncorrelated in turn, and the gradient."""

import numpy as np
from numba import njit

DEPENDENT = 1e-12  # a column that keeps less than this part of its norm adds no direction
LOST = 1e-9  # so does a free vector
NOISE = 4e-15  # of the sizes of its terms: what rounding may leave of a sum that is zero


@njit(cache=True, nogil=True)
def tied(A, B, places, first, y, X, Q, R, a, size, slope, gradient):
    """Return sum_j x_j'Ax_j, x_j the unit vector along y_j off the columns (Bx_i)_{i<j}.

    Component j has the entries first[j]:first[j + 1] of places, y, X, slope and gradient (of the
    value in y); `size` is zero where a component has no direction left. Q (k, k, s), R (k, k, k)
    and a (k, k) are work arrays: the columns of j are Q[j]' R[j]', orthonormal and triangular.
    """
    k = first.size - 1
    value = 0.0
    for j in range(k):
        low, s = first[j], first[j + 1] - first[j]
        for i in range(j):
            norm, terms = 0.0, 0.0
            for t in range(s):
                total, sizes = 0.0, 0.0
                for u in range(first[i], first[i + 1]):
                    term = B[places[low + t], places[u]] * X[u]
                    total += term
                    sizes += abs(term)
                Q[j, i, t] = total
                norm += total * total
                terms += sizes * sizes
            norm = max(np.sqrt(norm), NOISE / DEPENDENT * np.sqrt(terms))
            for m in range(i):
                R[j, m, i] = 0.0
            for _ in range(2):
                for m in range(i):
                    dot = 0.0
                    for t in range(s):
                        dot += Q[j, m, t] * Q[j, i, t]
                    R[j, m, i] += dot
                    for t in range(s):
                        Q[j, i, t] -= dot * Q[j, m, t]
            rest = 0.0
            for t in range(s):
                rest += Q[j, i, t] ** 2
            rest = np.sqrt(rest)
            R[j, i, i] = rest if rest > DEPENDENT * norm else 0.0
            for t in range(s):
                Q[j, i, t] = Q[j, i, t] / rest if R[j, i, i] > 0.0 else 0.0
        given = 0.0
        for t in range(s):
            X[low + t] = y[low + t]
            given += y[low + t] ** 2
        for i in range(j):
            a[j, i] = 0.0
        for _ in range(2):  # the first pass leaves rounding
            for i in range(j):
                dot = 0.0
                for t in range(s):
                    dot += Q[j, i, t] * X[low + t]
                a[j, i] += dot
                for t in range(s):
                    X[low + t] -= dot * Q[j, i, t]
        _solve(R[j], a[j], j)
        rest = 0.0
        for t in range(s):
            rest += X[low + t] ** 2
        alive = rest > LOST * LOST * given
        size[j] = np.sqrt(rest) if alive else 0.0
        for t in range(s):
            X[low + t] = X[low + t] / size[j] if alive else 0.0
        for t in range(s):
            total = 0.0
            for u in range(s):
                total += A[places[low + t], places[low + u]] * X[low + u]
            slope[low + t] = 2.0 * total
            value += X[low + t] * total
    b = np.empty(k)
    for j in range(k - 1, -1, -1):
        low, s = first[j], first[j + 1] - first[j]
        along = 0.0
        for t in range(s):
            along += X[low + t] * slope[low + t]
        for t in range(s):
            whole = slope[low + t] - along * X[low + t]
            gradient[low + t] = whole / size[j] if size[j] > 0.0 else 0.0
        for i in range(j):
            dot = 0.0
            for t in range(s):
                dot += Q[j, i, t] * gradient[low + t]
            b[i] = dot
            for t in range(s):
                gradient[low + t] -= dot * Q[j, i, t]
        _solve(R[j], b, j)
        for i in range(j):
            for u in range(first[i], first[i + 1]):
                total = 0.0
                for t in range(s):
                    pull = gradient[low + t] * a[j, i] + X[low + t] * size[j] * b[i]
                    total += B[places[u], places[low + t]] * pull
                slope[u] -= total
    return value


@njit(cache=True, nogil=True)
def _solve(R, x, n):
    """Solve Rx = x in place for the first n; columns that add no direction get zero."""
    for i in range(n - 1, -1, -1):
        for m in range(i + 1, n):
            x[i] -= R[i, m] * x[m]
        x[i] = x[i] / R[i, i] if R[i, i] > 0.0 else 0.0
