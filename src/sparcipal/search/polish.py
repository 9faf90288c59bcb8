"""Improve all weights on fixed supports together, for a larger sum of adjusted variances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..numerics.lbfgs import minimise, slow
from ..problem.covariance import Covariance
from ..problem.problem import Component

POLISH = 40  # L-BFGS steps on the weights
LIFTED = 1e-3  # squares of variables begin no smaller: at zero their gradient vanishes
LEAST = 1e-6  # nonnegative weights that end smaller become zero


def polished(
    cov: Covariance, components: Sequence[Component], nonnegative: bool = False
) -> list[Component]:
    """Return components on the same supports, with weights that L-BFGS has improved together.

    The sum of their adjusted variances is no smaller; only nonnegative weights, which begin at
    LIFTED or above, may end with a slightly smaller one. They are squares of the variables.

    With G = X'AX and v_j the coefficients of x_j beyond those before it, the j-th adjusted
    variance is v_j'G v_j, and its gradient in X is 2 A X v_j v_j'.
    """
    features = np.unique(np.concatenate([c.support for c in components]))
    A = cov.submatrix(features)
    k, places = len(components), [np.searchsorted(features, c.support) for c in components]
    ends = np.cumsum([c.support.size for c in components])[:-1]

    def matrix(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = np.zeros((features.size, k))
        for j, part in enumerate(np.split(y * y if nonnegative else y, ends)):
            X[places[j], j] = part
        norms = np.maximum(np.linalg.norm(X, axis=0), 1e-150)
        return X / norms, norms

    def evaluate(y: np.ndarray) -> tuple[float, np.ndarray]:
        X, norms = matrix(y)
        image = A @ X
        G = X.T @ image
        V = np.eye(k)
        for j in range(1, k):
            V[:j, j] = -np.linalg.lstsq(G[:j, :j], G[:j, j], rcond=1e-12)[0]
        slope = 2.0 * image @ (V @ V.T)
        slope -= X * np.einsum("ij,ij->j", X, slope)
        grad = np.concatenate([slope[places[j], j] / norms[j] for j in range(k)])
        return -float(np.einsum("ij,il,lj->", V, G, V)), -grad * (2 * y if nonnegative else 1.0)

    start = np.concatenate([c.weights for c in components])
    if nonnegative:
        start = np.sqrt(np.maximum(start, LIFTED))
    X, _ = matrix(minimise(evaluate, start, POLISH, _still))
    if nonnegative:
        X = np.where(X > LEAST, X, 0.0)
        X /= np.linalg.norm(X, axis=0)
    return [Component(c.support, X[places[j], j]) for j, c in enumerate(components)]


def _still(history: list[float]) -> bool:
    return slow(history, 5, 1e-12 * abs(history[-1]))
