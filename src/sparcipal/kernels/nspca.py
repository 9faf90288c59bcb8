"""Coordinate ascent for nonnegative sparse PCA (Zass & Shashua 2007)."""

from __future__ import annotations

from math import acos, cos, sqrt

from numba import njit


@njit(cache=True, nogil=True)
def cube_root(x):
    return x ** (1.0 / 3.0) if x >= 0.0 else -((-x) ** (1.0 / 3.0))


@njit(cache=True, nogil=True)
def best_entry(alpha, c2, c1):
    """Return the u >= 0 that maximises -alpha/4 u^4 + c2/2 u^2 + c1 u."""
    # Stationary points: u^3 - 3 m u - 2 h = 0.
    m, h = c2 / (3.0 * alpha), c1 / (2.0 * alpha)
    spread = h * h - m * m * m
    u = 0.0
    if spread > 0.0:
        root = sqrt(spread)
        u = cube_root(h + root) + cube_root(h - root)
    elif m > 0.0:
        # Three real roots; the first of the cosine formula is the largest. The power may underflow.
        power = m**1.5
        ratio = h / power if power > 0.0 else 0.0
        u = 2.0 * sqrt(m) * cos(acos(max(-1.0, min(1.0, ratio))) / 3.0)
    if u <= 0.0 or u * (c1 + u * (c2 / 2.0 - alpha / 4.0 * u * u)) <= 0.0:
        return 0.0
    return u


@njit(cache=True, nogil=True)
def ascend(A, U, AU, gram, rows, alpha, beta, max_iter, tol):
    """Sweep over U until no entry moves by more than `tol`; return the number of sweeps.

    `AU`, `gram` = U'U and `rows`, the squared norms of the rows of U, are kept up to date.
    """
    p, k = U.shape
    for sweep in range(1, max_iter + 1):
        moved = 0.0
        for r in range(p):
            for c in range(k):
                old = U[r, c]
                squares = gram[c, c] - old * old
                others = rows[r] - old * old
                # Coupling to the other columns: sum over j != c of u_rj (u_j'u_c without row r).
                cross = -old * others
                for j in range(k):
                    if j != c:
                        cross += U[r, j] * gram[j, c]
                c1 = AU[r, c] - A[r, r] * old - alpha * cross - beta
                c2 = A[r, r] + alpha * (1.0 - squares - others)
                new = best_entry(alpha, c2, c1)
                if new == old:
                    continue
                delta = new - old
                for i in range(p):
                    AU[i, c] += delta * A[r, i]
                for j in range(k):
                    if j != c:
                        gram[j, c] += delta * U[r, j]
                        gram[c, j] = gram[j, c]
                gram[c, c] = squares + new * new
                rows[r] += new * new - old * old
                U[r, c] = new
                moved = max(moved, abs(delta))
        if moved < tol:
            return sweep
    return max_iter
