"""Matrices whose sums round, for tests of margins."""

from __future__ import annotations

import numpy as np

from sparcipal.checker.covariance import CheckedCovariance, Question, covariance_of_data

E = 2.0**-20  # a unit of rounding so coarse that every margin can be seen
LESS = 1 - 1e-9  # of the sums that tests write down, for their own rounding


def matrices(count: int, p: int = 6):
    """Covariances whose sums round; the largest entry lies between 1 and 2."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((p + 2, p)) * 2.0 ** rng.integers(-3, 2, p)
        A = X.T @ X
        A = (A + A.T) / 2
        yield A * 2.0 ** -np.floor(np.log2(np.abs(A).max())), rng


def charges(A: np.ndarray, s: int, nonnegative: bool) -> np.ndarray:
    """The s - 1 largest entries of each row that count, the largest first."""
    off = np.maximum(A, 0.0) if nonnegative else np.abs(A)
    off = off - np.diag(np.diagonal(off))
    return -np.sort(-off, axis=1)[:, : s - 1]


def from_data(p: int = 6, scale: float = 1.0) -> CheckedCovariance:
    """A covariance of data, with no errors of its own."""
    X = np.random.default_rng(0).standard_normal((20, p)) * np.geomspace(2, 0.5, p) * scale
    cov = covariance_of_data(X, True, False, None, 1.0)[0]
    cov.error_unit = 0.0
    return cov


def one(*sizes: int, nonnegative: bool = False) -> Question:
    return Question(sizes, nonnegative, True, 0.0)
