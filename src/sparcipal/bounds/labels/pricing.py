"""Bound "labels"; statement and proof: docs/methods/labels.rst.

Exact pricing for each group of a leaf. At fixed prices a branch and bound proves what the best
support of a group is worth, features forced in and banned as the group says; prices come from a
linear program over the supports met so far, near those of the optimised leaf. Supports that leave
the core are bounded first, by one certificate (touch.py); where that fails, rows of the core pay
their pads for features outside in every node, and the m_b with pads for theta stand beside the
tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...numerics.margins import power_of_two
from ...problem.monitor import Monitor, Quiet
from ..configuration.prices import Pool, Program
from ..enumeration import Kind
from ..tree.log import Proof as TreeProof
from ..tree.question import TreeQuestion
from ..tree.search import prove
from .groups import Group, evaluated
from .leaf import Leaf
from .start import Start, extended, single
from .touch import Touch, touch_record, touching

ROUNDS = 12  # how often supports that proofs met may move the prices
MOVES = 25  # of the prices until the local search finds no new support
SHARE = 0.4  # of the room between the linear program and the target that the prices leave
MOST_ROOM = 5e-4  # of the value: more room makes no proof easier
FAR = 10.0  # times the value: what forced and banned features are made to cost in a local search
PADS = (0.05, 0.1, 0.17, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.2)  # fractions of theta
GROW_AT, MOST_NEW = 0.4, 60  # a core may grow by so many features so that smaller pads are enough
FIRST_WORK = 5e8  # of a first branch and bound, in units of about a nanosecond


@dataclass(frozen=True)
class Priced:
    """A group whose supports a branch and bound has been through."""

    group: Group  # its core and the pads; the split is where the proof started
    proof: TreeProof
    touch: Touch | None = None

    @property
    def bound(self) -> float:
        bound = self.proof.bound
        if self.touch is not None:
            bound = max(bound, self.touch.bound)
        return bound if self.group.forced.size else max(bound, 0.0)


@dataclass(frozen=True)
class PricedLeaf:
    """A branch and bound for each group of a leaf, at common prices."""

    price: np.ndarray
    groups: tuple[Priced, ...]

    @property
    def total(self) -> float:
        parts = sum(priced.group.count * priced.bound for priced in self.groups)
        return float(self.price.sum()) + parts


def priced_leaf(
    start: Start,
    leaf: Leaf,
    supports: Sequence[Sequence[np.ndarray]],
    work: float,
    monitor: Monitor,
) -> PricedLeaf | None:
    """Return proofs for the groups of a leaf, the best met; None if there are none.

    `supports` are some supports of each group.
    """
    search = _Search(start, leaf, supports, monitor)
    best: PricedLeaf | None = None
    for _ in range(ROUNDS):
        found = search.prices()
        if found is None or search.work >= work or monitor.stopped:
            break
        tried = search.attempt(*found, work)
        if tried is None:  # a support was met that the prices do not know
            continue
        if best is None or tried.total < best.total:
            best = tried
        break
    return best


class _Search:
    def __init__(
        self,
        start: Start,
        leaf: Leaf,
        supports: Sequence[Sequence[np.ndarray]],
        monitor: Monitor,
    ) -> None:
        self.start, self.leaf, self.monitor = start, leaf, monitor
        self.groups = list(leaf.groups)
        self.counts = np.array([group.count for group in self.groups])
        self.center, self.work = leaf.price, 0.0
        a, s, nonnegative = start.rows.a, start.s, start.rows.nonnegative
        self.order = list(range(len(self.groups)))  # in which groups are priced
        self.pools, self.shifts = [], []
        for group, some in zip(self.groups, supports):
            pool = Pool(a, (Kind(s),), nonnegative, start.value)
            shift = np.where(group.banned, FAR * start.value, 0.0)
            shift[group.forced] = -FAR * start.value
            self.pools.append(pool)
            self.shifts.append(shift)
            for support in some:
                pool.add(support)
            pool.search(self.center + shift)

    # --- prices ---

    def prices(self) -> tuple[np.ndarray, np.ndarray, float] | None:
        """Return prices, what the best support known of each group is worth, and the room left."""
        target, value = self.start.target, self.start.value
        width = self.center + 0.1 * value / (self.start.k * self.start.s)
        found = None
        for _ in range(MOVES):
            program = self._program()
            least = program.least_total()
            if least >= target:
                return None
            room = min((1 - SHARE) * (target - least), MOST_ROOM * value)
            level = target - room
            moved = program.closest(self.center, width, level)
            if moved is None:
                return None
            price = single(moved)
            new = False
            for pool, shift in zip(self.pools, self.shifts):
                new |= pool.search(price + shift)
            best = np.array([self._best(j, price)[1] for j in range(len(self.pools))])
            total = float(price.sum() + self.counts @ best)
            found = price, best, target - total
            if not new or total <= level + 0.1 * min(target - least, MOST_ROOM * value):
                break
        return found if found is not None and found[2] > 0.0 else None

    def _best(self, j: int, price: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the support of a group that is worth most."""
        pool, group = self.pools[j], self.groups[j]
        keys = [key for key in pool.columns if _admits(group, key)]
        key = max(keys, key=lambda key: pool.worth(key, price))
        return np.array(key), pool.worth(key, price)

    def _program(self) -> Program:
        """Return the program of prices on which no support known of a group exceeds its level."""
        supports = [
            (j, key, value)
            for j, (pool, group) in enumerate(zip(self.pools, self.groups))
            for key, value in pool.columns.items()
            if _admits(group, key)
        ]
        return Program.of(self.center.size, self.counts, supports, least_level=None)

    # --- proofs ---

    def attempt(
        self, price: np.ndarray, best: np.ndarray, room: float, work: float
    ) -> PricedLeaf | None:
        """Prove what every group is worth; None once a support is met that is worth more."""
        parts = len(self.groups)
        small = 0.02 * room / parts / self.counts
        found: list[Priced | None] = [None] * parts
        used = 0.0
        for sweep in range(2):
            left = [j for j in self.order if found[j] is None or not _closed(found[j])]
            for place, j in enumerate(left):
                share = float(small[j])
                if sweep:
                    share = max((0.98 * room - used) / (len(left) - place) / self.counts[j], share)
                budget = work - self.work
                budget = budget / (len(left) - place) if sweep else min(FIRST_WORK, budget)
                if budget <= 0 or self.monitor.stopped:
                    break
                again = self._proved(j, price, best[j], best[j] + share, budget)
                if again is None:
                    # next time the group whose supports are not all known comes first
                    self.order.remove(j)
                    self.order.insert(0, j)
                    return None
                old = found[j]
                found[j] = again if old is None or again.bound < old.bound else old
                used += share * self.counts[j] if _closed(found[j]) else 0.0
        if any(priced is None for priced in found):
            return None
        return PricedLeaf(price, tuple(priced for priced in found if priced is not None))

    def _proved(
        self, j: int, price: np.ndarray, known: float, target: float, work: float
    ) -> Priced | None:
        """Prove that no support of a group is worth more than the target, or find one."""
        rows = self.start.rows
        touch = touching(self.start, self.groups[j], price, target, self.monitor)
        if touch is not None:
            group = self.groups[j] = touch.group
            group = replace(group, pad=np.zeros(group.core.size))
        else:
            group = self._padded(j, price, target)
        core = group.core
        a = np.ascontiguousarray(rows.a[np.ix_(core, core)])
        unit = power_of_two(float(np.abs(a).max()))
        support, _ = self._best(j, price)
        inside = np.isin(support, core).all()
        size = max(abs(known), float(np.abs(a).max()))
        question = TreeQuestion(
            nonnegative=rows.nonnegative,
            prices=price[core],
            incumbent=(np.searchsorted(core, support), known) if inside else None,
            tol=max((target - known) / size, 1e-9),
            monitor=Quiet(self.monitor),
            effort=work,
            start=group.split.scaled(1.0 / unit),
            pads=group.pad if group.pad.any() else None,
            enough=target + 0.1 * (target - known),
            forced=np.searchsorted(core, group.forced) if group.forced.size else None,
        )
        proof = prove(a, rows.q + 1, question)
        self.work += proof.work
        if proof.status == "enough":
            self.pools[j].add(core[proof.support])
            return None
        if touch is None:
            heights = rows.heights(core, group.pad, price, group.banned, proof.bound)[1]
            if heights.size:  # features outside that no pads clear
                proof = replace(proof, bound=float(heights.max()), status="outside")
        return Priced(group, proof, touch)

    def _padded(self, j: int, price: np.ndarray, target: float) -> Group:
        """Return a group with the smallest pads at which no feature outside exceeds the target."""
        rows, group = self.start.rows, self.groups[j]
        if group.core.size + int(group.banned.sum()) == rows.cov.n_features:
            return replace(group, pad=np.zeros(group.core.size))
        for grows in (True, False):
            theta = np.maximum(evaluated(group, rows, price).theta, 1e-9 * self.start.value)
            for factor in PADS:
                pads = single(factor * theta)
                found = rows.heights(group.core, pads, price, group.banned, target)[0]
                if found.size == 0:
                    return replace(group, pad=pads)
                inside = bool((found < price.size).all())
                if grows and factor >= GROW_AT and inside and found.size <= MOST_NEW:
                    group = self.groups[j] = extended(self.start, group, np.sort(found), price)
                    break
            else:
                break
        return replace(group, pad=pads)


def _admits(group: Group, key: tuple[int, ...]) -> bool:
    """Return whether a support has the forced features of a group and no banned one."""
    return set(group.forced.tolist()) <= set(key) and not group.banned[list(key)].any()


def _closed(priced: Priced | None) -> bool:
    return priced is not None and priced.proof.status == "optimal"


def tree_record(priced: Priced, prices: int, field: np.ndarray) -> dict[str, Any]:
    """Return the data of a group's branch and bound at the prices of that number."""
    group = priced.group
    data = {
        "prices": prices,
        "forced": field[group.forced].astype(np.int32),
        "banned": np.sort(field[group.banned]).astype(np.int32),
        "core": field[group.core].astype(np.int32),
        "log": priced.proof.log,
    }
    return data if priced.touch is None else {**data, "touch": touch_record(priced.touch)}
