"""One sweep of block coordinate ascent for the DSPCA relaxation (Zhang & El Ghaoui 2011)."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def box_qp(X, j, low, high, u, g, neighbours, degrees, max_passes, tol):
    """Minimise u'Yu over low <= u <= high, Y = X without row and column j; g becomes Yu.

    Coordinate descent from the given u. `neighbours[i, :degrees[i]]` are the columns in which row i
    of X is not zero off the diagonal: most rows have few, and only those are read. Returns
    how many entries of X were read.
    """
    n = X.shape[0]
    looks = 0
    u[j] = 0.0
    for i in range(n):
        if i != j:
            u[i] = min(max(u[i], low[i]), high[i])
    for i in range(n):
        total = X[i, i] * u[i]
        for a in range(degrees[i]):
            k = neighbours[i, a]
            total += X[i, k] * u[k]
        looks += degrees[i]
        g[i] = total
    for _ in range(max_passes):
        residual = 0.0
        for i in range(n):
            if i == j:
                continue
            new = min(max(u[i] - g[i] / X[i, i], low[i]), high[i])
            if new > low[i] and new < high[i]:
                residual += g[i] * g[i]
            delta = new - u[i]
            if delta == 0.0:
                continue
            u[i] = new
            g[i] += X[i, i] * delta
            for a in range(degrees[i]):
                k = neighbours[i, a]
                g[k] += X[i, k] * delta
            looks += degrees[i]
        if residual <= tol * tol:
            break
    total = 0.0
    for i in range(n):
        if i != j:
            total += u[i] * g[i]
    return max(total, 0.0), looks


@njit(cache=True, nogil=True)
def scalar_root(c, beta, r2):
    """Find the positive root of t^3 + c t^2 - beta t - r2 by Newton steps from the right."""
    t = abs(c) + beta**0.5 + r2 ** (1.0 / 3.0)
    for _ in range(100):
        step = (((t + c) * t - beta) * t - r2) / ((3.0 * t + 2.0 * c) * t - beta)
        t -= step
        if step <= 1e-15 * t:
            break
    return t


@njit(cache=True, nogil=True)
def detach(j, neighbours, degrees):
    """Remove column j from the neighbour lists of all other columns."""
    for a in range(degrees[j]):
        k = neighbours[j, a]
        for b in range(degrees[k]):
            if neighbours[k, b] == j:
                degrees[k] -= 1
                neighbours[k, b] = neighbours[k, degrees[k]]
                break


@njit(cache=True, nogil=True)
def sweep(
    A, X, U, penalty, nonnegative, beta, spare, neighbours, degrees, low, high, g, max_passes
):
    """Make one pass over all columns and update X, U and the neighbour lists in place.

    Returns the number of entries of X that the box QPs looked at.

    Row j of U becomes the solution of the box QP of column j: an estimate of row j of the dual.
    Whatever u is, X_j = Yu/t keeps X positive definite with a Schur complement of beta/t. Inside
    the box Yu vanishes at the solution; the rest that descent leaves is dropped if its norm is
    below `spare`, which has to be a fraction of beta.
    """
    n = X.shape[0]
    looks = 0
    trace = 0.0
    for i in range(n):
        trace += X[i, i]
    for j in range(n):
        for i in range(n):
            low[i] = A[i, j] - penalty
            high[i] = 1e300 if nonnegative else A[i, j] + penalty
        u = U[j]
        detach(j, neighbours, degrees)
        for a in range(degrees[j]):
            k = neighbours[j, a]
            X[j, k] = 0.0
            X[k, j] = 0.0
        degrees[j] = 0
        r2, seen = box_qp(X, j, low, high, u, g, neighbours, degrees, max_passes, 0.3 * spare)
        looks += seen
        rest = trace - X[j, j]
        t = scalar_root(A[j, j] - penalty - rest, beta, r2)
        dropped = 0.0
        for i in range(n):
            if i != j and u[i] > low[i] and u[i] < high[i]:
                dropped += g[i] * g[i]
        floor = spare * spare
        if dropped > floor:
            floor /= n
        for i in range(n):
            if i == j or g[i] == 0.0:
                continue
            if u[i] == low[i] or u[i] == high[i] or g[i] * g[i] > floor:
                X[i, j] = g[i] / t
                X[j, i] = X[i, j]
                neighbours[j, degrees[j]] = i
                degrees[j] += 1
                neighbours[i, degrees[i]] = j
                degrees[i] += 1
        # The cubic gives c + t = r2 / t^2 + beta / t, a sum of positive terms without cancellation.
        X[j, j] = r2 / (t * t) + beta / t
        trace = rest + X[j, j]
    return looks
