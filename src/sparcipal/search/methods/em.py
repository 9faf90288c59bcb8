"""EM for sparse and nonnegative PCA (Sigg & Buhmann 2008), from random starts.

E-step: scores `y = Xw / |w|^2`. M-step: `w = X'y / |y|^2`, then the constraint: the s largest
entries (of positive ones only, when nonnegative). Both steps together are one product with the
covariance. `thresholding="soft"` subtracts the (s+1)-th largest entry, the M-step under an l1
constraint.
"""

from __future__ import annotations

import numpy as np

from ...numerics.largest import magnitudes
from ...problem.problem import Options, Problem
from ..deflation import Single, deflate
from ..method import Found, Method
from .threshold import truncate
from .tpower import ascend, best_end


def soft_truncate(Y: np.ndarray, s: int, nonnegative: bool) -> np.ndarray:
    """Truncate like `truncate`, and shrink every kept entry by the largest one that is not kept."""
    p = Y.shape[0]
    score = magnitudes(Y, nonnegative)
    if s >= p:
        return truncate(Y, s, nonnegative)
    level = np.partition(score, p - s - 1, axis=0)[p - s - 1]
    shrunk = np.where(score > level, np.sign(Y) * (score - level), 0.0)
    # A column is not shrunk if ties at the top would leave it without any entry.
    tied = ~shrunk.any(axis=0)
    shrunk[:, tied] = Y[:, tied]
    return truncate(shrunk, s, nonnegative)


_CUTS = {"hard": truncate, "soft": soft_truncate}


def solve(
    problem: Problem,
    rng: np.random.Generator,
    *,
    restarts: int = 5,
    max_iter: int = 200,
    thresholding: str = "hard",
) -> Single:
    cov, s, nonnegative = problem.covariance, problem.s_max, problem.nonnegative
    starts = rng.standard_normal((cov.n_features, max(restarts, 1)))
    if nonnegative:
        starts = np.abs(starts)
    cut = _CUTS[thresholding]
    return best_end("em", ascend(cov, starts, s, nonnegative, max_iter=max_iter, cut=cut), max_iter)


def run(
    problem: Problem,
    options: Options,
    *,
    restarts: int = 5,
    max_iter: int = 200,
    thresholding: str = "hard",
    deflation: str = "auto",
) -> Found:
    if thresholding not in _CUTS:
        raise ValueError(f"thresholding must be 'hard' or 'soft', got {thresholding!r}")
    return deflate(
        problem,
        options,
        solve,
        deflation=deflation,
        restarts=restarts,
        max_iter=max_iter,
        thresholding=thresholding,
    )


METHOD = Method("em", "Sigg & Buhmann 2008", run)
