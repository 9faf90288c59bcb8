"""The greedy method's dual bound, once more, from x, rho and the covariance alone.

With g = Ax / sqrt(x'Ax), every feature with A_ii > rho or g_i^2 > rho contributes a vector. The
Gram matrix of these vectors is written out entry by entry here; its largest eigenvalue plus rho
s is the bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cheap import ky_fan, psd_shift
from .covariance import EPS, CheckedCovariance, Question
from .family import Family
from .records import GreedyDual


def recheck(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    """The bound that these data prove; infinity when they prove nothing."""
    rho = float(data["rho"])
    core = np.asarray(data["core"], dtype=np.intp)
    support = np.asarray(data["support"], dtype=np.intp)
    x = np.asarray(data["weights"], dtype=np.float64)
    if question.k != 1 or not (np.isfinite(rho) and rho > 0 and np.isfinite(x).all()):
        return float("inf")
    for index in (core, support):
        if index.size == 0 or index.min() < 0 or index.max() >= cov.p:
            return float("inf")
    if np.unique(core).size != core.size or x.shape != support.shape:
        return float("inf")
    if not 0.5 < float(np.linalg.norm(x)) < 2.0:  # squares of smaller or larger ones lose digits
        return float("inf")
    shift = psd_shift(cov)
    g, dg = _scores(cov, support, x, shift)
    root = np.sqrt(cov.error_unit * np.maximum(cov.weights, 0.0))
    blur = root**2 + 8 * EPS * np.abs(cov.diagonal)
    variance = cov.diagonal + shift + blur
    missing = np.ones(cov.p, dtype=bool)
    missing[core] = False
    needed = (variance > rho) | ((np.abs(g) + dg) ** 2 > rho)
    if (missing & needed).any():
        return float("inf")
    G, margin = _gram(cov, core, g[core], dg[core], rho, variance[core], root[core], shift)
    if not np.isfinite(G).all():
        return float("inf")
    s = question.cardinalities[0]
    total = max(0.0, ky_fan(G, 1)) + rho * s * (1 + 4 * EPS)
    return total * (1 + 8 * EPS) + margin + cov.rounding(s)


def _scores(
    cov: CheckedCovariance, support: np.ndarray, x: np.ndarray, shift: float
) -> tuple[np.ndarray, np.ndarray]:
    """g for all features, and how far rounding may have moved each entry."""
    Ax = cov.submatrix(np.arange(cov.p), support) @ x
    Ax[support] += shift * x
    value = float(x @ Ax[support])
    if not value > 0:
        return np.full(cov.p, np.nan), np.zeros(cov.p)
    deviation = np.sqrt(np.maximum(cov.diagonal, 0.0))
    root = np.sqrt(cov.error_unit * np.maximum(cov.weights, 0.0))
    size = float(np.abs(x) @ deviation[support]) * deviation + shift
    lost = root * float(np.abs(x) @ root[support]) + 4 * (x.size + 18) * EPS * size
    return Ax / np.sqrt(value), lost / np.sqrt(value)


def _gram(
    cov: CheckedCovariance,
    core: np.ndarray,
    g: np.ndarray,
    dg: np.ndarray,
    rho: float,
    variance: np.ndarray,
    root: np.ndarray,
    shift: float,
) -> tuple[np.ndarray, float]:
    m = core.size
    A = cov.submatrix(core) + shift * np.eye(m)
    strong = g**2 > rho
    distance = np.abs(g**2 - rho)
    length = np.maximum(variance - g**2, 1e-300)
    weight = np.empty(m)
    weight[strong] = 1.0 / distance[strong]
    weak = ~strong
    weight[weak] = rho * np.maximum(variance[weak] - rho, 0.0) / (distance[weak] * length[weak])
    doubt = 2 * np.abs(g) * dg / distance + 16 * EPS
    blur = root**2 + 8 * EPS * variance
    doubt[weak] += (2 * blur[weak] + 2 * np.abs(g[weak]) * dg[weak]) / length[weak]
    G, E = np.empty((m, m)), np.empty((m, m))
    for i in range(m):
        entry_error = root[i] * root + np.abs(g[i]) * dg + dg[i] * np.abs(g)
        size = np.abs(A[i]) + np.abs(g[i] * g) + rho + g[i] ** 2 + g**2
        row = A[i] - g[i] * g  # v_i'v_j
        left = g[i] if strong[i] else 1.0
        right = np.where(strong, g, 1.0)
        row = row * left * right
        size = size * np.abs(left * right)
        entry_error = entry_error * np.abs(left * right)
        if strong[i]:
            row = row + strong * (g[i] ** 2 - rho) * (g**2 - rho)
            size = size + strong * (g[i] ** 2 + rho) * (g**2 + rho)
        entry_error = entry_error + 2 * (np.abs(g[i]) * dg[i] + np.abs(g) * dg) * (size + 1.0)
        scale = np.sqrt(weight[i] * weight)
        G[i] = scale * row
        E[i] = scale * (entry_error + 16 * EPS * size + np.abs(row) * (doubt[i] + doubt))
    return (G + G.T) / 2, 2 * float(np.linalg.norm(E))


FAMILIES = (Family("greedy-dual", GreedyDual, recheck, raw=True),)
