"""Pair-split certificates, rebuilt from a proof with plain NumPy.

V comes from (U, R) so that V_ij V_ji >= U_ij^2 holds in floating point, sums are rounded up, and a
largest eigenvalue is bounded by a Cholesky factorisation with its margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .covariance import EPS, factorises


class Unproved(Exception):
    """The log does not prove what it claims."""


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Unproved(what)


def certificate(
    step: dict[str, Any], block: np.ndarray, index: np.ndarray, nonnegative: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(U, R) of a stored certificate on the features `index`."""
    if "clip" in step:
        rho = float(step["clip"])
        u = np.minimum(block, rho) if nonnegative else np.clip(block, -rho, rho)
        np.fill_diagonal(u, 0.0)
        return u, np.zeros_like(u)
    features = np.asarray(step["features"], dtype=np.intp)
    rows = np.searchsorted(features, index)
    if (np.diff(features) <= 0).any() or not np.array_equal(features[rows], index):
        raise Unproved("a certificate lacks features")
    if "rank_one" in step:
        v = np.asarray(step["rank_one"], dtype=np.float64)[rows]
        logs = np.log(np.maximum(np.abs(v), float(step["floor"])))
        u = np.outer(v, v)
        np.fill_diagonal(u, 0.0)
        return u, np.clip(logs[None, :] - logs[:, None], -25.0, 25.0)
    n = features.size
    require(np.size(step["u"]) == np.size(step["r"]) == n * (n - 1) // 2, "a wrong triangle")
    u, r = np.zeros((n, n)), np.zeros((n, n))
    upper = np.triu_indices(n, 1)
    u[upper] = np.asarray(step["u"], dtype=np.float64)
    r[upper] = np.asarray(step["r"], dtype=np.float64)
    return (u + u.T)[np.ix_(rows, rows)], (r - r.T)[np.ix_(rows, rows)]


def pair_charges(u: np.ndarray, r: np.ndarray, nonnegative: bool) -> np.ndarray:
    """V with V_ij V_ji >= U_ij^2 in floating point: one side by exp, the other by division."""
    size = np.maximum(u, 0.0) if nonnegative else np.abs(u)
    if not (np.isfinite(size).all() and np.isfinite(r).all()):
        raise Unproved("a certificate that is not finite")
    # where squares would underflow, both sides pay |U|: far below every margin
    size, r = np.triu(size, 1), np.where(size > 1e-120, r, 0.0)
    upper = size * np.exp(np.clip(r, -60.0, 60.0))
    # a charge that underflows to nothing could not be paid back
    require(bool((upper[size > 0.0] > 0.0).all()), "a charge underflows")
    lower = np.divide(size, upper, out=np.zeros_like(upper), where=upper > 0.0) * size
    return upper + (lower * (1 + 4 * EPS)).T


def largest_sums(
    w: np.ndarray,
    v: np.ndarray,
    forced: np.ndarray,
    price: np.ndarray,
    s: int,
    pad: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """d (rounded up), and the q-th and (q+1)-th largest free W of each row, at least the pad.

    Row i may also choose features outside at pad_i each; without pads, nothing at zero.
    """
    pad = np.zeros(w.shape[0]) if pad is None else pad
    n, n_forced = w.shape[0], int(np.count_nonzero(forced))
    d, level, next_level = np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(n):
        others = np.arange(n) != i
        q = s - n_forced - (0 if forced[i] else 1)
        free = np.sort(np.maximum(w[i, others & ~forced], pad[i]))[::-1]
        free = np.append(free, np.full(max(q + 1, 0), pad[i]))
        paid = w[i, others & forced].sum() + free[: max(q, 0)].sum() - price[i]
        size = max(v[i].max(), pad[i]) * s + price.max() * (s + 1)
        d[i] = paid + (s + 8) * EPS * (abs(paid) + (s * size if price.any() else 0.0))
        if q > 0:
            level[i], next_level[i] = free[q - 1], free[q]
    return d, level, next_level


def below(matrix: np.ndarray, t: float) -> bool:
    """Whether Cholesky proves lambda_max(matrix) <= t."""
    n = matrix.shape[0]
    shifted = t * np.eye(n) - matrix
    spread = float(np.abs(shifted).sum(axis=1).max())
    margin = 2 * (n + 2) * EPS * (float(np.trace(shifted)) + abs(t)) + 2 * EPS * spread
    return factorises(shifted - margin * np.eye(n))
