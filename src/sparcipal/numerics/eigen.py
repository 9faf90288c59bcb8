"""LAPACK as the stages need it: the largest eigenvalues even where the fast driver gives up."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack


def factorises(matrix: np.ndarray) -> bool:
    """Whether the Cholesky factorisation of a symmetric matrix runs through; destroys it."""
    # The transpose is the same matrix in the order LAPACK works in place on.
    _, info = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    return bool(info == 0)


def all_eigenpairs(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, increasing, and eigenvectors as columns, in the place of the matrix."""
    w, q, info = lapack.dsyevd(matrix.T, overwrite_a=1)
    if info:
        raise np.linalg.LinAlgError("the eigenvalues did not converge")
    return w, q


def largest_eigenpairs(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` largest eigenvalues, increasing, and their eigenvectors as columns.

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
    """Whether the driver for a part of the spectrum is the faster one."""
    return 4 * count < n


def largest_eigenvalues(matrix: np.ndarray, count: int) -> np.ndarray:
    """The `count` largest eigenvalues, increasing."""
    n = matrix.shape[0]
    count = min(count, n)
    if count < n:
        w, _, found, _, info = lapack.dsyevr(matrix, compute_v=0, range="I", il=n - count + 1, iu=n)
        if info == 0 and found == count:
            return w[:count]
    return np.linalg.eigvalsh(matrix)[n - count :]
