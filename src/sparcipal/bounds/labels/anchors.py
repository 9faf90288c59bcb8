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
OTHERS = 6  # features of a support that may be tried as anchors


@dataclass(frozen=True)
class Anchors:
    """Anchors by the number of their support, and what proves them."""

    features: dict[int, int]
    unused: dict[int, Leaf]  # by feature: no solution above the target does without it
    pairs: dict[tuple[int, int], Group]  # by numbers of supports: none has both in one component


def find_anchors(start: Start, monitor: Monitor) -> Anchors:
    """Find as many anchors as can be proved."""
    search = _Search(start, monitor)
    for j in range(start.k):
        search.first(j)
    names = sorted(search.features)
    failing = [
        (i, j)
        for q, i in enumerate(names)
        for j in names[q + 1 :]
        if not search.apart(i, search.features[i], j, search.features[j])
    ]
    worth = {j: float(start.price[a]) for j, a in search.features.items()}
    kept = {j: search.features[j] for j in cover(names, failing, worth)}
    for j in range(start.k):
        if j not in kept and not monitor.stopped:
            other = search.another(j, kept)
            if other is not None:
                kept[j] = other
            elif j in search.features:
                kept = search.exchanged(j, kept)
    pairs = {
        (i, j): group
        for (i, a, j, b), group in search.pairs.items()
        if group is not None and kept.get(i) == a and kept.get(j) == b
    }
    return Anchors(kept, search.unused, pairs)


class _Search:
    """What has been proved of features and pairs of features."""

    def __init__(self, start: Start, monitor: Monitor) -> None:
        self.start, self.monitor = start, monitor
        whole = evaluated(start.whole, start.rows, start.price)
        paid, k = float(start.price.sum()), start.k
        self.gap = paid + whole.total - start.target
        every = np.sort(np.concatenate([np.linalg.eigvalsh(whole.matrix), whole.heights]))
        others = float(every[max(every.size - k + 1, 0) :].sum())
        self.target = start.target - paid - others  # of supports with two anchors
        self.features: dict[int, int] = {}
        self.unused: dict[int, Leaf] = {}
        self.pairs: dict[tuple[int, int, int, int], Group | None] = {}

    def first(self, j: int) -> None:
        """Try the feature of the highest price of a support."""
        start, support = self.start, self.start.supports[j]
        a = int(support[np.argmax(start.price[support])])
        price = float(start.price[a])
        if price >= self.gap * (1 + 1e-9):
            self.features[j] = a
        elif price >= WORTH * self.gap and not self.monitor.stopped:
            leaf = without_feature(start, a, self.monitor)
            if leaf.total <= start.target:
                self.features[j], self.unused[a] = a, leaf

    def another(self, j: int, kept: dict[int, int]) -> int | None:
        """Return a feature of a support that is apart from all anchors, if there is one."""
        start, support = self.start, self.start.supports[j]
        price = start.price[support]
        order = support[np.argsort(-price, kind="stable")][:OTHERS]
        for b in (int(b) for b in order if start.price[b] >= self.gap * (1 + 1e-9)):
            worth = [known_worth(start, i, a, j, b) for i, a in kept.items()]
            if max(worth, default=-np.inf) <= self.target and all(
                self.apart(i, a, j, b) for i, a in kept.items()
            ):
                return b
        return None

    def exchanged(self, j: int, kept: dict[int, int]) -> dict[int, int]:
        """Add the anchor of support j, if only one other is in its way and can be exchanged.

        Returns the anchors as they were if that fails.
        """
        b = self.features[j]
        against = [i for i, a in kept.items() if not self.apart(i, a, j, b)]
        if len(against) != 1:
            return kept
        others = {i: a for i, a in kept.items() if i != against[0]} | {j: b}
        new = self.another(against[0], others)
        return kept if new is None else others | {against[0]: new}

    def apart(self, i: int, a: int, j: int, b: int) -> bool:
        """Return whether two features are proved to be in different components."""
        if i > j:
            i, a, j, b = j, b, i, a
        if self.start.s < 2:
            return True
        if (i, a, j, b) not in self.pairs:
            group = None
            if not self.monitor.stopped:
                group = self._proved_apart(i, a, j, b)
            self.pairs[i, a, j, b] = group
        return self.pairs[i, a, j, b] is not None

    def _proved_apart(self, i: int, a: int, j: int, b: int) -> Group | None:
        """Return a certificate that supports with both features are worth at most the target."""
        start, target = self.start, self.target
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
                optimiser.run(mu, steps, aim, self.monitor)
                group = optimiser.certificates()[0]
            found = evaluated(group, start.rows, start.price)
            if found.total <= target * (1 - 1e-9):
                return group
            new = found.violators[found.violators < start.price.size]
            if new.size:
                group = extended(start, group, new, start.price)
        return None


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
