"""Sparse tables, centred where that costs no more than a mean subtracted inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

# A sparse column whose second moment is this many times its variance is centred entry by entry.
# The solver does so from twice as many on.
MOSTLY_MEAN = 500.0


def sparse_rows(
    X: Any,
    share: np.ndarray,
    exponents: np.ndarray,
    center: bool,
    inert: np.ndarray,
    dense: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Return the table in its inner units, the mean still to be subtracted, the whole mean, the
    variances; `dense` does the same for columns without zeros."""
    n, p = X.shape
    Z = sp.csc_array(X, dtype=np.float64, copy=True)
    Z.data = np.ldexp(Z.data, -np.repeat(exponents, np.diff(Z.indptr)))
    mean = np.asarray(Z.T @ share).ravel() if center else np.zeros(p)
    variance = _variances_around(Z, share, mean)
    # Columns that are little more than their mean lose their digits unless they are centred entry
    # by entry; hardly any of their zeros has weight.
    moved = center & ~inert & (variance + mean * mean >= MOSTLY_MEAN * variance)
    moved |= center & (np.diff(Z.indptr) == n)
    left = np.where(moved, 0.0, mean)
    if moved.any():
        part, rest, variance[moved] = dense(
            Z[:, moved].toarray(), share, np.zeros(int(moved.sum()), int), center, inert[moved]
        )
        mean[moved] = rest
        order = np.argsort(np.append(np.flatnonzero(~moved), np.flatnonzero(moved)))
        Z = sp.csc_array(sp.hstack([Z[:, ~moved], sp.csc_array(part)], format="csc")[:, order])
    return Z, left, mean, variance


def _variances_around(Z: sp.csc_array, share: np.ndarray, mean: np.ndarray) -> np.ndarray:
    column = np.repeat(np.arange(mean.size), np.diff(Z.indptr))
    around = share[Z.indices] * (Z.data - mean[column]) ** 2
    variance = np.bincount(column, around, minlength=mean.size)
    return variance + absent_weights(Z, share) * mean**2


def absent_weights(Z: Any, share: np.ndarray) -> np.ndarray:
    """Return per column the weight of the rows that hold no entry of it."""
    Z = sp.csc_array(Z)
    n, p = Z.shape
    count = np.diff(Z.indptr)
    if (share == share[0]).all():
        return (n - count) * share[0]
    total = float(share.sum())
    stored = np.bincount(np.repeat(np.arange(p), count), share[Z.indices], minlength=p)
    missing = np.where(count == n, 0.0, np.maximum(total - stored, 0.0))
    # The difference has no digits where it is small: there the weights are added up.
    for j in np.flatnonzero((missing < 0.5 * total) & (count < n)):
        absent = np.ones(n, dtype=bool)
        absent[Z.indices[Z.indptr[j] : Z.indptr[j + 1]]] = False
        missing[j] = float(share[absent].sum())
    return missing
