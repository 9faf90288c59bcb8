"""Assign features to components exactly, by a maximum weight assignment.

This is the inner problem of Asteris, Papailiopoulos, Kyrillidis and Dimakis (2015): component j
takes need[j] features, no feature goes to two components, and the total weight is largest.
"""

from __future__ import annotations

import numpy as np


def assign(weight: np.ndarray, need: np.ndarray) -> np.ndarray:
    """Return the component of every feature, or -1 for a free one.

    weight (k, p) is nonnegative and sum(need) <= p. The price of a component is its need-th largest
    weight. A feature whose weight exceeds a price goes to the component where it does so most,
    which is optimal for the counts that result; augmenting paths assign the places that are left.
    Negative weights mark features that must stay free, as long as enough others remain.
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
    """Return the need-th largest weight of every component."""
    ranks = weight.shape[1] - need
    price: np.ndarray = np.partition(weight, np.unique(ranks), axis=1)[np.arange(need.size), ranks]
    return price


def dual_bound(weight: np.ndarray, need: np.ndarray) -> float:
    """Return a bound on the weight of every assignment.

    It adds the price of every place and, for every feature, the largest surplus over a price.
    """
    price = _prices(weight, need)
    surplus = (weight - price[:, None]).max(axis=0)
    return float(need @ price + np.maximum(surplus, 0.0).sum())


def _best_free(weight: np.ndarray, free: np.ndarray, units: int) -> np.ndarray:
    """Return the free features that can fill `units` places: the best ones of each component."""
    if free.size <= units:
        return free
    best = np.argpartition(-weight[:, free], units - 1, axis=1)[:, :units]
    return free[np.unique(best)]


def _augment(weight: np.ndarray, missing: np.ndarray, owner: np.ndarray) -> None:
    """Fill the `missing` places of every component by augmenting paths; `owner` is changed.

    Here weight is (features, components), as the kernel takes it.
    """
    from ..kernels.matching import augment

    k = weight.shape[1]
    integers = np.empty((k + 2, k), dtype=np.int64)
    reals = np.empty((k + 1, k))
    augment(weight, missing, owner, reals[:k], integers[:k], reals[k], integers[k], integers[k + 1])
