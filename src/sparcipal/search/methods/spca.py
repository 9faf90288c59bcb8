"""SPCA, sparse PCA by elastic nets (Zou, Hastie & Tibshirani 2006).

It alternates between B, one elastic net per component, min b'(A + ridge I)b - 2 a_j'A b + l1 |b|_1,
and the orthonormal matrix of targets, a polar factor of A B. The l1 path of each net is followed
until it has the cardinality asked for. With `ridge=inf` the nets are soft thresholds (the
paper's choice for genes), which needs products with A only.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path_gram

from ...numerics.eigen import leading_eigenpairs
from ...problem.covariance import DENSE_LIMIT, Covariance
from ...problem.problem import Component, Options, Problem
from ..deflation import Single, deflate
from ..method import Found, Method
from .em import soft_truncate
from .threshold import truncate


def elastic_net(
    gram: np.ndarray, target: np.ndarray, s: int, nonnegative: bool, penalty: float | None = None
) -> np.ndarray:
    """Return the last point of the l1 path with s nonzeros, just before the next feature joins.

    With `penalty`, return the point of the path at that l1 penalty, with any number of nonzeros.
    """
    with warnings.catch_warnings():
        # Duplicated columns make the path drop regressors; the coefficients stay valid.
        warnings.simplefilter("ignore", ConvergenceWarning)
        steps, _, path = lars_path_gram(
            target,
            gram,
            n_samples=1,
            method="lasso",
            positive=nonnegative,
            max_iter=8 * (s if penalty is None else target.size) + 8,
            alpha_min=0.0 if penalty is None else penalty / 2,
        )
    if penalty is not None:
        return path[:, -1] if steps[0] > penalty / 2 else np.zeros_like(target)
    counts = np.count_nonzero(path, axis=0)
    beyond = np.flatnonzero(counts > s)
    end = beyond[0] if beyond.size else counts.size
    return path[:, int(np.flatnonzero(counts[:end] == counts[:end].max())[-1])]


def fit(
    problem: Problem,
    rng: np.random.Generator,
    *,
    ridge: float,
    max_iter: int,
    penalties: Sequence[float] | None = None,
    tol: float = 1e-6,
) -> tuple[np.ndarray, int]:
    """Return the loadings (p x k, unit columns) of the alternation, and the number of rounds.

    With `penalties` (the paper's lambda_1j, in the units of A) the cardinalities are not used.
    """
    cov, cardinalities = problem.covariance, problem.cardinalities
    targets = leading_eigenpairs(cov, problem.k, rng)[1]  # (p, k)
    gram = cov.dense() + ridge * np.eye(cov.n_features) if math.isfinite(ridge) else None
    B = np.zeros_like(targets)
    for n_iter in range(1, max_iter + 1):
        previous = B
        correlations = cov.matmat(targets)
        if problem.nonnegative:
            correlations *= np.where(correlations.sum(axis=0) < 0, -1.0, 1.0)
        columns = []
        for j, s in enumerate(cardinalities):
            column = correlations[:, j]
            if gram is None:
                columns.append(soft_truncate(column[:, None], s, problem.nonnegative)[:, 0])
            else:
                penalty = None if penalties is None else penalties[j]
                columns.append(elastic_net(gram, column, s, problem.nonnegative, penalty))
        B = _unit_columns(np.column_stack(columns), cov)
        if np.abs(np.abs(B) - np.abs(previous)).max() < tol:
            return B, n_iter
        left, _, right = np.linalg.svd(cov.matmat(B), full_matrices=False)
        targets = left @ right
    return B, max_iter


def _unit_columns(B: np.ndarray, cov: Covariance) -> np.ndarray:
    """Normalise the columns; an empty one becomes the feature of largest variance."""
    empty = ~B.any(axis=0)
    B[int(np.argmax(cov.diagonal)), empty] = 1.0
    return B / np.linalg.norm(B, axis=0)


def _notes(B: np.ndarray, cardinalities: tuple[int, ...], n_iter: int, max_iter: int) -> str:
    notes = []
    counts = np.count_nonzero(B, axis=0)
    if not np.array_equal(counts, cardinalities):
        notes.append(f"spca reaches {counts.tolist()} nonzeros of {list(cardinalities)} allowed")
    if n_iter >= max_iter:
        notes.append(f"spca stopped after max_iter={max_iter} rounds")
    return "; ".join(notes)


def solve(
    problem: Problem,
    rng: np.random.Generator,
    *,
    ridge: float,
    max_iter: int,
) -> Single:
    B, n_iter = fit(problem, rng, ridge=ridge, max_iter=max_iter)
    component = Component.from_vector(truncate(B, problem.s_max, problem.nonnegative)[:, 0])
    return Single(component, n_iter, _notes(B, problem.cardinalities, n_iter, max_iter))


def run(
    problem: Problem,
    options: Options,
    *,
    ridge: float | None = None,
    max_iter: int = 200,
    deflation: str = "auto",
) -> Found:
    """Find all components together when supports are free, one by one when they are disjoint."""
    if ridge is None:
        ridge = 1e-6 if problem.covariance.n_features <= DENSE_LIMIT else math.inf
    if ridge < 0 or (math.isfinite(ridge) and problem.covariance.n_features > DENSE_LIMIT):
        raise ValueError(
            f"ridge={ridge} must be nonnegative, and infinite for more than {DENSE_LIMIT} features "
            f"(there are {problem.covariance.n_features}); leave it out for a choice by size"
        )
    if problem.disjoint or deflation != "auto":
        return deflate(problem, options, solve, deflation=deflation, ridge=ridge, max_iter=max_iter)
    rng = np.random.default_rng(options.seed)
    B, n_iter = fit(problem, rng, ridge=ridge, max_iter=max_iter)
    components = tuple(Component.from_vector(B[:, j]) for j in range(problem.k))
    note = _notes(B, problem.cardinalities, n_iter, max_iter)
    return Found(components, n_iter, note, info={"joint": True})


METHOD = Method("spca", "Zou, Hastie & Tibshirani 2006", run)
