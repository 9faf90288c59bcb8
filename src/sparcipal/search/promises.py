"""The guarantees that Asteris et al. (2015) prove for SPCABiPart are computed here.

Theorem 1. An eps/2-net gives at least (1 - eps) of the optimum of A_r. (|c - c*| <= d means
<c, c*> >= 1 - d^2/2, so that more is reached than promised: (1 - d^2/2)^2.)
Theorem 2. On A itself at most 2k lambda_{1,s}(A - A_r) is lost in addition, and only k times
lambda_max(A - A_r) if A - A_r is positive semidefinite.
Theorem 3. A_r = B R R' B' with Gaussian R and A = BB' is off by at most delta sqrt(A_ii A_jj) in
all entries with probability 1 - 1/p, delta by the Johnson-Lindenstrauss lemma: delta times the
variances of the features that are used is lost twice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numerics.eigen import DENSE_EIGEN
from ..numerics.margins import top_sum
from ..problem.covariance import Covariance
from ..problem.problem import Problem
from ..problem.sketch import Sketch


def guarantees(
    problem: Problem, low: Sketch, eps: float, points: str, seen: int, level: float
) -> dict[str, Any]:
    """Return Theorems 1 to 3 for a net; for random points, the probability of Theorem 1.

    `seen` points were matched, and the best matching has the value `level`.
    """
    k, rank, unit = problem.k, low.rank, problem.covariance.unit
    if points == "random":
        # P(<c, c*>^2 >= 1 - eps) for one random column; both signs count without x >= 0.
        from scipy.special import betainc  # here, as every fit would pay for the import

        near = float(betainc((rank - 1) / 2, 0.5, eps)) if rank > 1 else 1.0
        near = near / 2 if problem.nonnegative else near
        chance = -math.expm1(seen * math.log1p(-min(near**k, 1.0 - 1e-16)))
        return {"eps": eps, "probability": chance}
    reached = (1.0 - eps * eps / 8.0) ** 2
    out: dict[str, Any] = {"eps": eps, "rank_optimum_at_most": level / reached * unit}
    floor = top_sum(problem.covariance.diagonal, k)  # every component explains some variance
    if math.isfinite(low.tail) and not problem.nonnegative:
        out["optimum_at_most"] = (level / reached + k * max(low.tail, 0.0)) * unit
    if floor <= 0.0 or problem.nonnegative:
        return out
    if low.kind == "gaussian":
        out["entries_off_by"] = entry_error(problem.covariance.n_features, rank)
        lost = 2.0 * out["entries_off_by"] * top_sum(problem.covariance.diagonal, problem.n_nonzero)
        name = "Asteris et al. 2015, Theorem 3, with probability 1 - 1/p"
    else:
        lost = k * max(low.tail, 0.0) + k * _overshoot(problem.covariance, low)
        name = "Asteris et al. 2015, Theorem 2"
    out["guarantees"] = {name: max(0.0, 1.0 - eps - lost / floor)}
    return out


def entry_error(p: int, rank: int) -> float:
    """Return the delta of Theorem 3: no entry's error exceeds delta sqrt(A_ii A_jj).

    For unit vectors P(|x'RR'y - x'y| >= delta) <= 4 exp(-(delta^2 - delta^3) rank / 4), and there
    are p (p + 1) / 2 pairs: with probability 1 - 1/p it holds for all. Delta is infinite where the
    rank is too small.
    """
    wanted = 4.0 * math.log(2.0 * p * p * (p + 1.0)) / rank
    if wanted > 4.0 / 27.0:  # the largest value of delta^2 - delta^3
        return math.inf
    from scipy.optimize import brentq  # here, as every fit would pay for the import

    found = brentq(lambda d: d * d - d**3 - wanted, 0.0, 2.0 / 3.0)
    return float(found)


def _overshoot(cov: Covariance, low: Sketch) -> float:
    """Bound lambda_max(A_r - A); it is zero for eigenvectors, as A - A_r is then semidefinite."""
    if low.kind == "eigen":
        return 0.0
    if cov.n_features > DENSE_EIGEN:
        return math.inf
    return max(0.0, -float(np.linalg.eigvalsh(cov.dense() - low.V @ low.V.T)[0]))
