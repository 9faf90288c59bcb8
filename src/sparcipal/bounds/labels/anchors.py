"""Bound "labels"; statement and proof: docs/methods/labels.rst.

Anchors: features that every solution above the target uses, no two of them in one component.

With the prices of the Ky Fan split all supports tie at its level, and the bound exceeds the target
by a gap. A feature whose price is the gap or more is used by every solution above the target; two
features are in different components if supports that contain both are worth the gap less than the
level. Both are leaves of the tree of cases with the certificate of the split for all other groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...problem.monitor import Monitor
from .groups import Group, evaluated
from .leaf import Leaf, leaf_of, optimised
from .optimise import LeafOptimiser
from .start import Start, extended

PAIR = ((1e-3, 25), (3e-4, 40))
WITHOUT = ((3e-4, 30), (3e-4, 40), (1e-4, 40))
WORTH = 0.35  # of the gap: the price from which on it is tried to prove that a feature is used
NEAR = 0.97


@dataclass(frozen=True)
class Anchors:
    """Anchors by the number of their support, and what proves them."""

    features: dict[int, int]
    unused: dict[int, Leaf]  # by feature: no solution above the target does without it
    pairs: dict[tuple[int, int], Group]  # by numbers of supports: none has both in one component


def find_anchors(start: Start, monitor: Monitor) -> Anchors:
    """Find as many anchors as can be proved."""
    whole = evaluated(start.whole, start.rows, start.price)
    total = float(start.price.sum()) + whole.total
    gap = total - start.target
    features: dict[int, int] = {}
    unused: dict[int, Leaf] = {}
    for j, support in enumerate(start.supports):
        a = int(support[np.argmax(start.price[support])])
        price = float(start.price[a])
        if price >= gap * (1 + 1e-9):
            features[j] = a
        elif price >= WORTH * gap and not monitor.stopped:
            leaf = without_feature(start, a, monitor)
            if leaf.total <= start.target:
                features[j], unused[a] = a, leaf
    rest = max(start.k - 1, 0)
    others = (
        float(
            np.sort(np.concatenate([np.linalg.eigvalsh(whole.matrix), whole.heights]))[-rest:].sum()
        )
        if rest
        else 0.0
    )
    target = start.target - float(start.price.sum()) - others
    pairs: dict[tuple[int, int], Group] = {}
    failing = []
    names = sorted(features)
    for q, i in enumerate(names):
        for j in names[q + 1 :]:
            group = None
            if start.s >= 2 and not monitor.stopped:
                group = apart(start, i, features[i], j, features[j], target, monitor)
            if group is None and start.s >= 2:
                failing.append((i, j))
            elif group is not None:
                pairs[i, j] = group
    kept = cover(names, failing, {j: float(start.price[a]) for j, a in features.items()})
    return Anchors({j: features[j] for j in kept}, unused, pairs)


def cover(names: list[int], failing: list[tuple[int, int]], worth: dict[int, float]) -> list[int]:
    """Drop names, those in most failing pairs first, until no failing pair is left."""
    kept = list(names)
    while failing:
        most = max(kept, key=lambda j: (sum(j in pair for pair in failing), -worth[j]))
        kept.remove(most)
        failing = [pair for pair in failing if most not in pair]
    return kept


def without_feature(start: Start, a: int, monitor: Monitor) -> Leaf:
    """Bound the solutions that do without a feature, all components alike."""
    price = start.price.copy()
    price[a] = 0.0
    leaf = leaf_of(start, [start.whole.without(a)], price)
    return optimised(start, leaf, WITHOUT, monitor)


def apart(
    start: Start, i: int, a: int, j: int, b: int, target: float, monitor: Monitor
) -> Group | None:
    """Return a certificate that supports with both features are worth at most `target`."""
    if known_worth(start, i, a, j, b) > target:
        return None
    none = np.zeros(start.price.size, dtype=bool)
    core = start.first_core([i, j], [a, b], none)
    group = start.group(1, [a, b], none, core)
    group = start.completed(group, start.price, NEAR, rounds=4)
    for mu, steps in ((0.0, 0), *PAIR):
        if steps:
            no_prices = np.zeros(0, dtype=np.intp)
            optimiser = LeafOptimiser(
                start.rows, [group], start.price, no_prices, start.value, start.k
            )
            aim = float(start.price.sum()) + target * (1 - 1e-4)
            optimiser.run(mu, steps, aim, monitor)
            group = optimiser.certificates()[0]
        found = evaluated(group, start.rows, start.price)
        if found.total <= target * (1 - 1e-9):
            return group
        new = found.violators[found.violators < start.price.size]
        if new.size:
            group = extended(start, group, new, start.price)
    return None


def known_worth(start: Start, i: int, a: int, j: int, b: int) -> float:
    """Return what some supports with both features are worth: no proof can go below it."""
    best = -np.inf
    for number, keep, new in ((i, a, b), (j, b, a)):
        support = start.supports[number]
        block = start.rows.a[np.ix_(support, support)]
        w, q = np.linalg.eigh(block)
        score = np.square(q[:, -1]) * w[-1] - start.price[support]
        score[support == keep] = np.inf
        for drop in np.argsort(score)[:2]:
            other = np.append(np.delete(support, drop), new)
            if not start.rows.nonnegative:
                value = float(np.linalg.eigvalsh(start.rows.a[np.ix_(other, other)])[-1])
                best = max(best, value - float(start.price[other].sum()))
    return best
