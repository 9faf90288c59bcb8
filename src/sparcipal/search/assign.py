"""Assign features to components exactly, by a maximum weight assignment.

This is the inner problem of Asteris, Papailiopoulos, Kyrillidis and Dimakis (2015): rows are
features, column j takes need[j] of them, no row is used twice, and the total weight is largest.
"""

from __future__ import annotations

import numpy as np


def assign(weight: np.ndarray, need: np.ndarray) -> np.ndarray:
    """Return the column of every row, or -1; weight is (k, p), nonnegative, and sum(need) <= p.

    A row above a column's need-th largest weight goes to the column where it exceeds that weight
    most, which is optimal for the counts it produces; augmenting paths assign the missing units.
    Negative weights mark rows that must stay free, as long as enough others remain.
    """
    k, p = weight.shape
    if k == 1:
        owner = np.full(p, -1)
        owner[np.argpartition(-weight[0], need[0] - 1)[: need[0]]] = 0
        return owner
    surplus = weight - _prices(weight, need)[:, None]
    owner = np.where(surplus.max(axis=0) > 0.0, surplus.argmax(axis=0), -1)
    owned = np.flatnonzero(owner >= 0)
    missing = need - np.bincount(owner[owned], minlength=k)
    rows = np.concatenate([owned, _best_free(weight, np.flatnonzero(owner < 0), missing.sum())])
    part = np.ascontiguousarray(weight[:, rows].T)
    part_owner = owner[rows]
    _augment(part, missing, part_owner)
    owner[rows] = part_owner
    return owner


def _prices(weight: np.ndarray, need: np.ndarray) -> np.ndarray:
    """Return the need-th largest weight of every column."""
    ranks = weight.shape[1] - need
    price: np.ndarray = np.partition(weight, np.unique(ranks), axis=1)[np.arange(need.size), ranks]
    return price


def dual_bound(weight: np.ndarray, need: np.ndarray) -> float:
    """Bound every assignment: sum the price of every unit and the best surplus of every row."""
    price = _prices(weight, need)
    surplus = (weight - price[:, None]).max(axis=0)
    return float(need @ price + np.maximum(surplus, 0.0).sum())


def _best_free(weight: np.ndarray, free: np.ndarray, units: int) -> np.ndarray:
    """Return the free rows that can enter when `units` are missing: the best of each column."""
    if free.size <= units:
        return free
    best = np.argpartition(-weight[:, free], units - 1, axis=1)[:, :units]
    return free[np.unique(best)]


def _augment(weight: np.ndarray, missing: np.ndarray, owner: np.ndarray) -> None:
    from ..kernels.matching import augment

    k = weight.shape[1]
    integers = np.empty((k + 2, k), dtype=np.int64)
    reals = np.empty((k + 1, k))
    augment(weight, missing, owner, reals[:k], integers[:k], reals[k], integers[k], integers[k + 1])
