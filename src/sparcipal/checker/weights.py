"""The weights of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numbers import plain

LIGHTEST = 1e-100  # where the least weight is below this part of the largest, variances underflow


def weights_of(sample_weight: Any) -> np.ndarray:
    """Return the weights of samples times a power of two, once they are seen to be such."""
    plain("sample_weight", sample_weight)
    weights = np.asarray(sample_weight)
    if weights.ndim != 1 or weights.dtype.kind not in "fiub":
        raise ValueError("sample_weight must be one number per sample")
    weights = weights.astype(np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite numbers that are not negative")
    if not weights.any():
        raise ValueError("sample_weight is zero for every sample")
    if weights[weights > 0].min() < LIGHTEST * weights.max():
        raise ValueError(
            f"sample_weight has positive weights below {LIGHTEST:g} of the largest; set them to "
            "zero, and compute the result again"
        )
    return np.ldexp(weights, -int(np.frexp(weights.max())[1]))


def shares(sample_weight: Any, n: int) -> np.ndarray:
    """Return the part of each of n samples."""
    weights = weights_of(sample_weight)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must be {n} numbers, one per sample")
    weights = weights / weights.max()
    return weights / weights.sum()
