"""Bound "kyfan"; statement and proof: docs/methods/kyfan.rst.

The optimisation of a Ky Fan split starts from the best of some closed forms; its core can grow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...numerics.eigen import largest_eigenpairs, largest_eigenvalues
from ...numerics.margins import top_sum
from ...problem.components import newcomer_gain
from ...problem.covariance import Covariance
from ..pairsplit.certificate import R_LIMIT
from .certificate import KyFanMatrix, KyFanSplit, kyfan_matrix
from .question import Sizes

CLIPS = (0.03, 0.06, 0.12, 0.2, 0.35, 0.6, 1.0)
FRACTIONS = (0.5, 0.75, 1.0)


def first_core(cov: Covariance, supports: Sequence[np.ndarray], size: int) -> np.ndarray:
    """Choose the supports, the features that fit them best, and the largest variances."""
    p = cov.n_features
    if p <= size:
        return np.arange(p)
    score = np.zeros(p)
    for support in supports:
        w, q = np.linalg.eigh(cov.submatrix(support))
        value = float(w[-1])
        cross = cov.columns(support) @ q[:, -1]
        gain = newcomer_gain(value, cov.diagonal, cross, nonnegative=False)
        score = np.maximum(score, gain / np.sqrt(max(value, 1e-300)))
    used = np.concatenate([np.asarray(support) for support in supports])
    score[used] = np.inf
    by_score = np.argsort(-score, kind="stable")[: used.size + size // 2]
    by_variance = np.argsort(-cov.diagonal, kind="stable")[: size // 2]
    return np.unique(np.concatenate([by_score, by_variance]))


def first_split(a: np.ndarray, features: np.ndarray, sizes: Sizes, pad: float) -> KyFanSplit:
    """Return the best of some U = clip(A) and fractions of the leading eigenpairs of A."""
    n, k = a.shape[0], sizes.k
    upper = np.triu_indices(n, 1)
    zero = np.zeros(n)
    off = a[upper]
    largest = float(np.abs(off).max(initial=0.0))
    candidates = []
    for fraction in CLIPS:
        rho = fraction * largest
        u = np.minimum(off, rho) if sizes.nonnegative else np.clip(off, -rho, rho)
        candidates.append(KyFanSplit.rounded(features, u, np.zeros(off.size), zero, pad))
    most = min(n, 4 * k)
    w, q = largest_eigenpairs(a, most)
    for rank in sorted({1, min(k, n), min(2 * k, n), most}):
        part = (q[:, -rank:] * np.maximum(w[-rank:], 0.0)) @ q[:, -rank:].T
        logs = 0.5 * np.log(np.maximum(np.diagonal(part), 1e-10 * max(largest, 1e-300)))
        r = np.clip(logs[None, :] - logs[:, None], -R_LIMIT, R_LIMIT)[upper]
        for fraction in FRACTIONS:
            candidates.append(KyFanSplit.rounded(features, fraction * part[upper], r, zero, pad))
    guesses = [guess(a, split, sizes) for split in candidates]
    return candidates[int(np.argmin(guesses))]


def guess(a: np.ndarray, split: KyFanSplit, sizes: Sizes) -> float:
    """Estimate the bound on the core, for comparisons only."""
    evaluated = kyfan_matrix(a, split, sizes.s, sizes.nonnegative)
    w = largest_eigenvalues(evaluated.matrix, sizes.k)
    return float(w.sum()) + top_sum(evaluated.price, sizes.total)


def grown(
    cov: Covariance, split: KyFanSplit, evaluated: KyFanMatrix, new: np.ndarray, width: float
) -> tuple[np.ndarray, KyFanSplit]:
    """Add `new` features to the core, split as the extension does; `width` smooths |U|."""
    features = np.union1d(split.features, new)
    n = features.size
    a = cov.submatrix(features)
    a = 0.5 * (a + a.T)
    old = np.searchsorted(features, split.features)
    added = np.searchsorted(features, new)
    u, r, price = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    u[np.ix_(old, old)], r[np.ix_(old, old)] = split.full()
    price[old] = split.price
    cross = a[np.ix_(added, old)]
    u[np.ix_(added, old)] = cross
    u[np.ix_(old, added)] = cross.T
    u[np.ix_(added, added)] = a[np.ix_(added, added)]
    ratio = np.log(np.hypot(cross, width)) - np.log(evaluated.theta)[None, :]
    r[np.ix_(added, old)] = ratio
    r[np.ix_(old, added)] = -ratio.T
    upper = np.triu_indices(n, 1)
    return a, KyFanSplit.rounded(features, u[upper], r[upper], price, split.pad)
