"""Matrices whose sums round, for tests of margins."""

from __future__ import annotations

import numpy as np


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
