"""PCA and thresholding (Cadima & Jolliffe 1995): the s largest loadings of the first component."""

from __future__ import annotations

import numpy as np
import scipy.sparse.linalg as spla

from ...problem.covariance import Covariance
from ...problem.problem import Component, Options, Problem
from ..deflation import deflate
from ..method import Found, Method

# Up to here a full eigendecomposition is as fast as an iterative one, and always converges.
DENSE_EIGEN = 300


def one(
    cov: Covariance, s: int, nonnegative: bool, options: Options, rng: np.random.Generator
) -> Component:
    """The leading eigenvector cut to its s largest entries (nonnegative: the better sign)."""
    u = leading_eigenvectors(cov, 1, rng)[:, 0]
    if not nonnegative:
        return Component.from_vector(truncate(u[:, None], s, False)[:, 0])
    both = truncate(np.column_stack([u, -u]), s, True)
    return Component.from_vector(both[:, int(np.argmax(quadratic_forms(cov, both)))])


def run(problem: Problem, options: Options, *, deflation: str = "auto") -> Found:
    return deflate(problem, options, one, deflation=deflation)


def truncate(Y: np.ndarray, s: int, nonnegative: bool) -> np.ndarray:
    """Each column of Y (p x m) cut to its s largest entries and normalised.

    Largest by size, or largest positive ones when `nonnegative`. A column with nothing to keep
    becomes the unit vector of its largest entry, so that the result always holds unit vectors.
    """
    p, m = Y.shape
    score = np.maximum(Y, 0.0) if nonnegative else np.abs(Y)
    out = np.zeros((p, m))
    if s < p:
        rows = np.argpartition(score, p - s, axis=0)[p - s :]  # (s, m)
        kept = np.take_along_axis(score if nonnegative else Y, rows, axis=0)
        np.put_along_axis(out, rows, kept, axis=0)
    else:
        out[:] = score if nonnegative else Y
    # Scaling by the largest entry first keeps the norm from underflowing.
    size = np.abs(out).max(axis=0)
    empty = size == 0
    out /= np.where(empty, 1.0, size)
    out[np.argmax(Y[:, empty], axis=0), np.flatnonzero(empty)] = 1.0
    return out / np.linalg.norm(out, axis=0)


def quadratic_forms(cov: Covariance, X: np.ndarray) -> np.ndarray:
    """x'Ax for every column x of X."""
    return np.einsum("ij,ij->j", X, cov.matmat(X))


def leading_eigenvectors(cov: Covariance, count: int, rng: np.random.Generator) -> np.ndarray:
    """Orthonormal approximations (p x count) to the leading eigenvectors: a guide, not a proof."""
    p = cov.n_features
    count = min(count, p)
    if p <= DENSE_EIGEN or count > p // 3:
        return np.linalg.eigh(cov.dense())[1][:, ::-1][:, :count]
    operator = spla.LinearOperator(
        (p, p), matvec=lambda x: cov.matvec(np.ravel(x)), matmat=cov.matmat, dtype=np.float64
    )
    # Centred at the variances, so that a zero matrix or a coordinate eigenvector is met at once.
    start = np.sqrt(np.maximum(cov.diagonal, 0.0)) * rng.uniform(0.5, 1.5, p)
    if not np.any(start):
        return np.eye(p, count)
    try:
        values, vectors = spla.eigsh(operator, k=count, which="LA", v0=start, tol=1e-8)
    except spla.ArpackNoConvergence as stopped:
        values, vectors = stopped.eigenvalues, stopped.eigenvectors
        if values.size < count:
            return _subspace_iteration(cov, count, rng)
    return vectors[:, np.argsort(values)[::-1]]


def _subspace_iteration(cov: Covariance, count: int, rng: np.random.Generator) -> np.ndarray:
    """What to do when Lanczos gives up (many equal eigenvalues): plain, slow, cannot fail."""
    Q = np.linalg.qr(rng.standard_normal((cov.n_features, count + 5)))[0]
    for _ in range(50):
        Q = np.linalg.qr(cov.matmat(Q))[0]
    turn = np.linalg.eigh(Q.T @ cov.matmat(Q))[1][:, ::-1]
    return (Q @ turn)[:, :count]


METHOD = Method("threshold", "Cadima & Jolliffe 1995", run)
