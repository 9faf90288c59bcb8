"""TPower, the truncated power method (Yuan & Zhang 2013): x <- the s largest entries of Ax.

For a positive semidefinite A no step ever lowers x'Ax. The end depends on the start, so several
starts run side by side as the columns of one matrix: one product with A moves all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...numerics.eigen import leading_eigenpairs
from ...problem.covariance import Covariance
from ...problem.problem import Component, Options, Problem
from ..deflation import Single, deflate
from ..method import Found, Method
from .threshold import truncate

# A support that did not change for so many steps is taken as final.
SETTLED = 25
GAIN = 1e-9


def ascend(
    cov: Covariance,
    X: np.ndarray,
    s: int,
    nonnegative: bool,
    *,
    max_iter: int = 200,
    cut: Callable[[np.ndarray, int, bool], np.ndarray] = truncate,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Take power steps from every column of X (p x m) at once, each `cut` to s entries.

    Returns the unit vectors, their values x'Ax and the number of products with A. A column stops
    when a step gains less than GAIN of its value, or when its support has settled: the weights on
    it are found exactly later.
    """
    X = cut(X, s, nonnegative)
    values = np.full(X.shape[1], -np.inf)
    best = X.copy()
    moving = np.arange(X.shape[1])
    quiet = np.zeros(X.shape[1], dtype=np.intp)  # steps since the support last changed
    n_iter = 0
    while moving.size and n_iter < max_iter:
        Y = cov.matmat(X[:, moving])
        n_iter += 1
        now = np.einsum("ij,ij->j", X[:, moving], Y)
        gained = now > values[moving] + GAIN * np.abs(now)
        gained &= quiet[moving] < SETTLED
        better = moving[now > values[moving]]
        values[better] = now[now > values[moving]]
        best[:, better] = X[:, better]
        moving, Y = moving[gained], Y[:, gained]
        before = X[:, moving] != 0
        X[:, moving] = cut(Y, s, nonnegative)
        same = ((X[:, moving] != 0) == before).all(axis=0)
        quiet[moving] = np.where(same, quiet[moving] + 1, 0)
    return best, values, n_iter


def best_end(name: str, ends: tuple[np.ndarray, np.ndarray, int], max_iter: int) -> Single:
    """Return the best of the vectors that `ascend` found, with a note if the steps ran out."""
    X, values, n_iter = ends
    note = "" if n_iter < max_iter else f"{name} stopped after max_iter={max_iter} steps"
    return Single(Component.from_vector(X[:, int(np.argmax(values))]), n_iter, note)


def standard_starts(cov: Covariance, s: int, rng: np.random.Generator) -> np.ndarray:
    """Return the papers' starts: first eigenvector, largest variance, s largest variances."""
    p = cov.n_features
    order = np.argsort(-cov.diagonal, kind="stable")
    single, several = np.zeros(p), np.zeros(p)
    single[order[0]] = 1.0
    several[order[:s]] = 1.0
    u = leading_eigenpairs(cov, 1, rng)[1][:, 0]
    return np.column_stack([u, -u, single, several])


def solve(
    problem: Problem,
    rng: np.random.Generator,
    *,
    restarts: int = 0,
    max_iter: int = 200,
) -> Single:
    """Return the best component that the standard and `restarts` random starts lead to."""
    cov, s, nonnegative = problem.covariance, problem.s_max, problem.nonnegative
    starts = standard_starts(cov, s, rng)
    if restarts:
        starts = np.hstack([starts, rng.standard_normal((cov.n_features, restarts))])
    return best_end("tpower", ascend(cov, starts, s, nonnegative, max_iter=max_iter), max_iter)


def run(
    problem: Problem,
    options: Options,
    *,
    restarts: int = 0,
    max_iter: int = 200,
    deflation: str = "auto",
) -> Found:
    return deflate(
        problem, options, solve, deflation=deflation, restarts=restarts, max_iter=max_iter
    )


METHOD = Method("tpower", "Yuan & Zhang 2013", run)
