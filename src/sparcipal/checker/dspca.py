"""The DSPCA dual bound, once more: OPT <= (positive eigenvalues of A_KK + U) + penalty * nonzeros.

K must hold every feature whose variance exceeds the penalty, and U must stay within it; both are
checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cheap import ky_fan, psd_shift
from .covariance import EPS, CheckedCovariance, Question
from .family import Family
from .records import DspcaDual


def recheck(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    """The bound that these data prove; infinity when they prove nothing."""
    penalty = float(data["penalty"])
    core = np.asarray(data["core"], dtype=np.intp)
    moved = np.asarray(data["moved"], dtype=np.float64)
    m = core.size
    if not (np.isfinite(penalty) and penalty >= 0 and np.isfinite(moved).all()):
        return float("inf")
    if m == 0 or np.unique(core).size != m or core.min() < 0 or core.max() >= cov.p:
        return float("inf")
    if moved.shape != (m * (m - 1) // 2,) or (moved < -penalty).any():
        return float("inf")
    if not question.nonnegative and (moved > penalty).any():
        return float("inf")
    outside = np.ones(cov.p, dtype=bool)
    outside[core] = False
    if outside.any():
        reach = cov.diagonal[outside] + psd_shift(cov) + cov.rounding(1)
        if (reach > penalty).any():
            return float("inf")
    U = np.zeros((m, m))
    U[np.triu_indices(m, 1)] = moved
    M = cov.submatrix(core) + U + U.T - penalty * np.eye(m)
    k, sizes = question.k, question.cardinalities
    if question.disjoint:
        empty = np.zeros((m + k, m + k))
        empty[:m, :m] = M
        total, margin = ky_fan(empty, k), cov.rounding(sum(sizes))
    else:
        total, margin = k * max(0.0, ky_fan(M, 1)), k * cov.rounding(max(sizes))
    margin += k * EPS * (float(np.abs(np.diagonal(M)).max()) + m * penalty)
    return (total + penalty * sum(sizes)) * (1 + 4 * EPS) + margin


FAMILIES = (Family("dspca-dual", DspcaDual, recheck, overlapping=True, raw=True),)
