"""Eigenvalues by LAPACK and Lanczos, with a slower driver where the fast one fails."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import lapack

# Up to this order all eigenpairs are computed, which is faster than Lanczos and more reliable.
DENSE_EIGEN = 500

LANCZOS = 100  # order from which Lanczos is faster for one eigenpair of a matrix in memory


class Symmetric(Protocol):
    """A positive semidefinite matrix that need not exist in memory."""

    diagonal: np.ndarray

    def matvec(self, x: np.ndarray) -> np.ndarray: ...

    def matmat(self, Y: np.ndarray) -> np.ndarray: ...

    def dense(self) -> np.ndarray: ...


def factorises(matrix: np.ndarray) -> bool:
    """Return whether a symmetric matrix has a Cholesky factorisation; overwrites the matrix."""
    # The transpose is the same matrix in the order LAPACK works in place on.
    _, info = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    return bool(info == 0)


def all_eigenpairs(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues, increasing, and eigenvectors as columns; overwrites the matrix."""
    w, q, info = lapack.dsyevd(matrix.T, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError("the eigenvalues did not converge")
    return w, q


def largest_eigenpairs(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the `count` largest eigenvalues, increasing, and their eigenvectors as columns.

    The driver for a part of the spectrum fails on some matrices with many equal eigenvalues; the
    one for all of it does not, and is faster from a quarter of it on.
    """
    n = matrix.shape[0]
    count = min(count, n)
    if partly(count, n):
        w, q, found, _, info = lapack.dsyevr(matrix, range="I", il=n - count + 1, iu=n)
        if info == 0 and found == count:
            return w[:count], q[:, :count]
    w, q = np.linalg.eigh(matrix)
    return w[n - count :], q[:, n - count :]


def partly(count: int, n: int) -> bool:
    """Return whether the driver for a part of the spectrum is faster."""
    return 4 * count < n


def largest_eigenvalues(matrix: np.ndarray, count: int) -> np.ndarray:
    """Return the `count` largest eigenvalues, increasing."""
    n = matrix.shape[0]
    count = min(count, n)
    if count < n:
        w, _, found, _, info = lapack.dsyevr(matrix, compute_v=0, range="I", il=n - count + 1, iu=n)
        if info == 0 and found == count:
            return w[:count]
    return np.linalg.eigvalsh(matrix)[n - count :]


def leading_vector(
    matrix: np.ndarray, start: np.ndarray, tol: float = 1e-8
) -> tuple[float, np.ndarray]:
    """Return the largest eigenvalue and its eigenvector, by Lanczos from `start` where that is
    faster.

    Neither is proved; `tol` is relative.
    """
    if matrix.shape[0] > LANCZOS:
        import scipy.sparse.linalg as spla  # here: small problems do without

        try:
            w, q = spla.eigsh(matrix, 1, which="LA", tol=tol, v0=start)
            return float(w[0]), q[:, 0]
        except spla.ArpackError:
            pass
    w, q = largest_eigenpairs(matrix, 1)
    return float(w[0]), q[:, 0]


def leading_eigenpairs(
    matrix: Symmetric, count: int, rng: np.random.Generator, tol: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `count` largest eigenvalues (fewer if the order is smaller), decreasing, and their
    eigenvectors as columns. They are accurate to rounding or to `tol`, relatively, but not
    proved."""
    p = matrix.diagonal.size
    count = min(count, p)
    if p <= DENSE_EIGEN or count > p // 3:
        w, Q = largest_eigenpairs(matrix.dense(), count)
        return w[::-1].copy(), np.ascontiguousarray(Q[:, ::-1])
    # Starting near the deviations finds a coordinate eigenvector at once.
    start = np.sqrt(np.maximum(matrix.diagonal, 0.0)) * rng.uniform(0.5, 1.5, p)
    if not start.any():
        return np.zeros(count), np.eye(p, count)
    import scipy.sparse.linalg as spla

    operator = spla.LinearOperator(
        (p, p), matvec=lambda x: matrix.matvec(np.ravel(x)), matmat=matrix.matmat, dtype=np.float64
    )
    try:
        ncv = min(p, 2 * count + 30)
        w, Q = spla.eigsh(operator, k=count, which="LA", v0=start, ncv=ncv, tol=tol)
    except spla.ArpackNoConvergence:
        w, Q = range_finder(matrix, count, rng, steps=50)  # many equal eigenvalues
    order = np.argsort(-w, kind="stable")
    return w[order], np.ascontiguousarray(Q[:, order])


def range_finder(
    matrix: Symmetric, count: int, rng: np.random.Generator, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Approximate leading eigenpairs by a randomised range (Halko, Martinsson & Tropp 2011)."""
    p = matrix.diagonal.size
    Q = np.linalg.qr(rng.standard_normal((p, min(p, count + 10))))[0]
    for _ in range(steps):
        Q = np.linalg.qr(matrix.matmat(Q))[0]
    inner = Q.T @ matrix.matmat(Q)
    w, turn = np.linalg.eigh((inner + inner.T) / 2)
    return w[::-1][:count].copy(), (Q @ turn[:, ::-1])[:, :count]


def is_definite(matrix: np.ndarray) -> bool:
    """Return whether a symmetric matrix has a Cholesky factorisation; keeps the matrix."""
    return factorises(matrix.copy())


def inverse(matrix: np.ndarray) -> np.ndarray | None:
    """Return the inverse of a positive definite matrix; None when it is not one."""
    factor, info = lapack.dpotrf(matrix, lower=1)
    if info:
        return None
    found, info = lapack.dpotri(factor, lower=1)
    if info:
        return None
    found = np.tril(found)
    return np.asarray(found + np.tril(found, -1).T)
