"""The guarantees that Asteris et al. (2015) prove for SPCABiPart are computed here.

Theorem 1. An eps/2-net gives at least (1 - eps) of the optimum of A_r. (|c - c*| <= d means
<c, c*> >= 1 - d^2/2, so that more is reached than promised: (1 - d^2/2)^2.)
Theorem 2. On A itself at most 2k lambda_{1,s}(A - A_r) is lost in addition, lambda_{1,s} being the
largest s-sparse eigenvalue in magnitude, and only k lambda_{1,s}(A - A_r) if A - A_r is positive
semidefinite. The paper calls the term hard and has lambda_max in its place; `error_term` bounds it
by a certificate.
Theorem 3. A_r = B R R' B' with Gaussian R and A = BB' is off by at most delta sqrt(A_ii A_jj) in
all entries with probability 1 - 1/p, delta by the Johnson-Lindenstrauss lemma: delta times the
variances of the features that are used is lost twice.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..bounds.strategy import prove
from ..numerics import margins
from ..numerics.eigen import DENSE_EIGEN
from ..numerics.margins import top_sum
from ..problem.covariance import Covariance, covariance_of
from ..problem.problem import Component, Options, Problem
from ..problem.sketch import Sketch
from .methods.tpower import ascend

# What a sketch misses is formed as a matrix for up to so many features.
FORMED = 3000
# Power steps start from so many eigenvectors of that matrix.
STARTS = 10
# Sketches that never exceed the matrix.
BELOW = ("eigen", "frequent")


def error_term(problem: Problem, low: Sketch, options: Options) -> tuple[float, float]:
    """Return two numbers between which lambda_{1,s}(A - A_r) lies, in units of the covariance.

    One component of the matrix that the sketch misses is found and proved like any other.
    """
    cov, s = problem.covariance, problem.s_max
    if cov.n_features > FORMED or low.kind not in BELOW:
        raise ValueError(
            f"error_term=True needs at most {FORMED:,} features and sketch='eigen' or 'frequent', "
            f"not {cov.n_features:,} and {low.kind!r}; leave it out"
        )
    A = cov.dense()
    missed = A - low.V @ low.V.T
    # what rounding did to the difference, and the little by which it may not be semidefinite
    slack = margins.low_rank(cov.n_features) * float(np.trace(A))
    missed = (missed + missed.T) / 2 + slack * np.eye(len(A))
    rest = Problem(covariance_of(missed), (s,))
    leading = np.linalg.eigh(missed)[1][:, : -1 - STARTS : -1]
    X, values, _ = ascend(rest.covariance, leading, s, False)
    found = Component.from_vector(X[:, int(np.argmax(values))])
    proved = prove(rest, (found,), (), options, "fast")
    unit = rest.covariance.unit
    return proved.value(rest) * unit, proved.lowest * unit


class Matched(NamedTuple):
    """Which points were matched ("net" or "random"), how many, and the best value of a matching."""

    points: str
    seen: int
    level: float


def guarantees(
    problem: Problem, low: Sketch, eps: float, matched: Matched, error: float
) -> dict[str, Any]:
    """Return what Theorems 1 to 3 guarantee for a net; for random points, the probability with
    which Theorem 1 holds.

    No s-sparse eigenvalue of what the sketch misses exceeds `error`.
    """
    points, seen, level = matched
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
    if math.isfinite(error) and not problem.nonnegative:
        out["optimum_at_most"] = (level / reached + k * max(error, 0.0)) * unit
    if floor <= 0.0 or problem.nonnegative:
        return out
    if low.kind == "gaussian":
        out["entries_off_by"] = entry_error(problem.covariance.n_features, rank)
        lost = 2.0 * out["entries_off_by"] * top_sum(problem.covariance.diagonal, problem.n_nonzero)
        name = "Asteris et al. 2015, Theorem 3, with probability 1 - 1/p"
    else:
        lost = k * max(error, 0.0) + k * _overshoot(problem.covariance, low)
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
    """Bound lambda_max(A_r - A); it is zero where A - A_r is semidefinite."""
    if low.kind in BELOW:
        return 0.0
    if cov.n_features > DENSE_EIGEN:
        return math.inf
    return max(0.0, -float(np.linalg.eigvalsh(cov.dense() - low.V @ low.V.T)[0]))
