"""Bound "labels"; statement and proof: docs/methods/labels.rst.

The certificates of a leaf, one for each of its groups, and their common prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...problem.monitor import Monitor
from .groups import Evaluated, Group, evaluated
from .optimise import LeafOptimiser
from .start import Start, extended

Schedule = Sequence[tuple[float, int]]  # temperatures and steps
MOST_GROWTH = 150  # features that may join a core after one stage


@dataclass(frozen=True)
class Leaf:
    """Certificates and prices, and the bound that they amount to."""

    groups: tuple[Group, ...]
    price: np.ndarray
    found: tuple[Evaluated, ...]

    @property
    def total(self) -> float:
        return float(self.price.sum()) + sum(found.total for found in self.found)


def leaf_of(start: Start, groups: Sequence[Group], price: np.ndarray) -> Leaf:
    """Evaluate certificates at prices."""
    found = tuple(evaluated(group, start.rows, price) for group in groups)
    return Leaf(tuple(groups), price, found)


def optimised(start: Start, leaf: Leaf, schedule: Schedule, monitor: Monitor) -> Leaf:
    """Return the best leaf met in some stages; cores grow after each of them.

    Prices of features that only one component can use become zero.
    """
    best = leaf
    for mu, steps in schedule:
        if best.total <= start.target or monitor.stopped:
            break
        leaf = grown(start, leaf)
        free = contested(leaf)
        optimiser = LeafOptimiser(start.rows, leaf.groups, leaf.price, free, start.value, start.k)
        optimiser.run(mu, steps, start.target, monitor)
        groups, price = optimiser.certificates(), optimiser.prices()
        leaf = unpriced(start, leaf_of(start, groups, price))
        if leaf.total < best.total:
            best = leaf
    return best


def grown(start: Start, leaf: Leaf) -> Leaf:
    """Let the features that stand above the level of a group join its core."""
    groups, changed = [], False
    for group, found in zip(leaf.groups, leaf.found):
        inside = found.violators < leaf.price.size
        order = np.argsort(-found.heights[inside], kind="stable")[:MOST_GROWTH]
        new = np.sort(found.violators[inside][order])
        if new.size:
            group, changed = extended(start, group, new, leaf.price), True
        groups.append(group)
    return leaf_of(start, groups, leaf.price) if changed else leaf


def contested(leaf: Leaf) -> np.ndarray:
    """Return the features that are in the cores of two components or more."""
    count = np.zeros(leaf.price.size, dtype=int)
    for group in leaf.groups:
        count[group.core] += min(group.count, 2)
    return np.flatnonzero(count >= 2)


def unpriced(start: Start, leaf: Leaf) -> Leaf:
    """Drop the prices of features that nothing competes for."""
    price = np.zeros(leaf.price.size)
    kept = contested(leaf)
    price[kept] = leaf.price[kept]
    if np.array_equal(price, leaf.price):
        return leaf
    return leaf_of(start, leaf.groups, price)
