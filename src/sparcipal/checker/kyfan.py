"""The joint bound for components with disjoint supports, computed once more from its certificate.

The mathematics is in the docstring of kyfan/certificate.py, the code is not shared. A certificate
holds U and R (upper triangles), prices and one pad for a core of features; all else, also what
the features outside the core are charged, is recomputed from the data here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .covariance import EPS, CheckedCovariance, Question, factorises
from .family import Family
from .records import KyFan

CHUNK = 400  # rows of the covariance held at a time


def recheck(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    """The upper bound that the certificate proves; ValueError if it is no certificate."""
    total, price = spectrum(data, cov, question)
    # Prices are paid by the features that are used: no more than there are nonzeros.
    paid = np.sort(price)[::-1][: question.n_nonzero]
    total += float(paid.sum()) * (1 + price.size * EPS)
    return total + cov.rounding(question.n_nonzero)


def spectrum(
    data: dict[str, Any],
    cov: CheckedCovariance,
    question: Question,
    floor: float = 0.0,
    empty: bool = False,
) -> tuple[float, np.ndarray]:
    """The bound without its prices, and the prices of the core.

    With a `floor`, at most the pad, every feature costs so much more: s times as much comes off M.
    With `empty`, components may have no feature here; each of them explains 0.
    """
    if question.k > 1 and not question.disjoint:
        raise ValueError("this bound holds for disjoint supports only")
    if not 0.0 <= floor <= float(data["pad"]):
        raise ValueError("a price that the pads do not cover")
    s, k = question.s_max, question.k
    core = np.asarray(data["features"], dtype=np.intp)
    price = np.asarray(data["price"], dtype=np.float64)
    pad = float(data["pad"])
    u = _square(data["u"], core.size, 1.0)
    r = _square(data["r"], core.size, -1.0)
    _check(core, price, pad, u, r, cov.p, s)
    charged = np.maximum(u, 0.0) if question.nonnegative else np.abs(u)
    # V_ab V_ba >= U_ab^2 must survive the rounding of exp.
    gain = charged * np.exp(r) * (1 + 6 * EPS) - price
    best = _row_largest(gain, s - 1, pad)  # (n, s - 1), padded
    charge = best.sum(axis=1)
    charge += (s + 4) * EPS * (charge + 2 * s * float(price.max(initial=0.0)))
    a = cov.submatrix(core)
    M = 0.5 * (a + a.T) - u
    M[np.diag_indices(core.size)] += charge - price - s * floor
    theta = best.min(axis=1) if s > 1 else np.full(core.size, np.inf)
    values, vectors = np.linalg.eigh(M)
    start = max(core.size - k, 0)
    level = float(values[start]) if core.size >= k else -np.inf
    outside = outside_rows(cov, core, theta, price, s, question.nonnegative, level + floor)
    rivals = np.append(outside - floor, np.zeros(k if empty else 0))
    total = _ky_fan(M, values[start:], vectors[:, start:], rivals, k)
    return total + 4 * k * s * EPS * floor, price + floor


def _square(packed: Any, n: int, sign: float) -> np.ndarray:
    packed = np.asarray(packed, dtype=np.float64)
    if packed.shape != (n * (n - 1) // 2,):
        raise ValueError("a triangle of the certificate has the wrong length")
    full = np.zeros((n, n))
    full[np.triu_indices(n, 1)] = packed
    return full + sign * full.T


def _check(
    core: np.ndarray,
    price: np.ndarray,
    pad: float,
    u: np.ndarray,
    r: np.ndarray,
    p: int,
    s: int,
) -> None:
    if core.ndim != 1 or core.size == 0 or core.min() < 0 or core.max() >= p:
        raise ValueError("the core names features that are not there")
    if np.unique(core).size != core.size:
        raise ValueError("the core names a feature twice")
    if price.shape != core.shape or not (price >= 0).all() or not np.isfinite(price).all():
        raise ValueError("the prices are not nonnegative numbers, one for each feature of the core")
    if not (np.isfinite(u).all() and np.isfinite(r).all() and np.abs(r).max(initial=0.0) <= 100):
        raise ValueError("U or R is not finite")
    if not np.isfinite(pad) or pad < 0 or (core.size < p and s > 1 and pad == 0):
        raise ValueError("features outside the core need a positive pad")


def _row_largest(gain: np.ndarray, count: int, pad: float) -> np.ndarray:
    """Per row the `count` largest of the off-diagonal gains and of `count` copies of the pad."""
    n = gain.shape[0]
    out = np.full((n, count), pad)
    for i in range(n):
        others = np.sort(np.delete(gain[i], i))[::-1][:count]
        out[i, : others.size] = np.maximum(others, pad)
    return out


def outside_rows(
    cov: CheckedCovariance,
    core: np.ndarray,
    theta: np.ndarray,
    price: np.ndarray,
    s: int,
    nonnegative: bool,
    level: float,
) -> np.ndarray:
    """m_j of the features outside the core, or `level` where variances show that it is not more."""
    rest = np.setdiff1d(np.arange(cov.p), core)
    out = np.full(rest.size, level)
    top = max(float(price.max(initial=0.0)), 0.0)
    variance = cov.diagonal + cov.error_unit * cov.weights
    deviation = np.sqrt(np.maximum(variance[rest], 0.0))
    reach = np.sort(deviation)[::-1][: s - 1]
    for start in range(0, rest.size, CHUNK):
        rows = np.arange(start, min(start + CHUNK, rest.size))
        if s > 1 and not cov.given:
            # Cauchy-Schwarz: |A_ja|^2 <= A_jj A_aa, a covariance of data being PSD.
            far = np.outer(variance[rest[rows]], variance[core]) / theta - price
            near = np.outer(deviation[rows], reach)
            at_most = cov.diagonal[rest[rows]] + _up(np.hstack([far, near]), s - 1, top)
            rows = rows[~(at_most <= level)]
        if rows.size == 0:
            continue
        features = rest[rows]
        cross = cov.submatrix(features, core)
        among = cov.submatrix(features, rest)
        among[np.arange(rows.size), rows] = 0.0
        if nonnegative:
            cross, among = np.maximum(cross, 0.0), np.maximum(among, 0.0)
        charges = np.hstack([cross * cross / theta - price, np.abs(among)])
        out[rows] = cov.diagonal[features] + _up(charges, s - 1, top)
    return out


def _up(charges: np.ndarray, count: int, price: float) -> np.ndarray:
    """Sums of the `count` largest positive entries of each row, rounded up."""
    if count == 0:
        return np.zeros(charges.shape[0])
    if charges.shape[1] > count:
        charges = np.partition(charges, charges.shape[1] - count, axis=1)[:, -count:]
    total = np.maximum(charges, 0.0).sum(axis=1)
    return total + (count + 6) * EPS * (total + 2 * count * price)


def _ky_fan(
    M: np.ndarray, values: np.ndarray, vectors: np.ndarray, outside: np.ndarray, k: int
) -> float:
    """k nu + tr Z with nu I + Z >= M on the core (by Cholesky) and outside (by comparison)."""
    n = M.shape[0]
    everything = np.sort(np.concatenate([values, outside]))
    nu = float(everything[-min(k, everything.size)])
    root = vectors * np.sqrt(np.maximum(values - nu, 0.0))
    Z = root @ root.T
    size = float(np.abs(np.diagonal(Z - M)).sum() + np.trace(Z)) + (n + 1) * abs(nu)
    delta = 2 * (n + k + 4) * EPS * size + 2 * EPS * float(np.abs(M).sum(axis=1).max())
    for slack in (2 * delta, 16 * delta, 128 * delta, 1024 * delta):
        if factorises(Z - M + (nu + slack) * np.eye(n)):
            above = float(np.maximum(outside - nu, 0.0).sum()) * (1 + outside.size * EPS)
            return k * (nu + slack + delta) + float(np.trace(Z)) * (1 + (n + k) * EPS) + above
    return float("inf")


FAMILIES = (Family("kyfan", KyFan, recheck, totals=True, raw=True),)
