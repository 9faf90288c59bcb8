"""Bound "labels"; statement and proof: docs/methods/labels.rst.

A case that is still open, and its division by a feature. The feature is in one of the components of
a group, or in another group, or in no component. Most of these cases are settled by one certificate
of their own beside those of the leaf at hand; what is left of them stays open, and is nearer to the
target than the case was. A feature that a group cannot do without joins what it must contain: that
is an anchor for a component that had none, and a probe for one that had.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...problem.components import newcomer_gain
from ...problem.monitor import Monitor
from .groups import Group, evaluated
from .leaf import Leaf, leaf_of
from .optimise import LeafOptimiser
from .pricing import PricedLeaf
from .proof import Label, Proof, State, including, without
from .start import Start, extended, leading

TRIES = 3  # features of a support that are compared
STEPS = ((1e-3, 25), (3e-4, 40))
HOPELESS = 0.7  # of the distance to the target that is left after some steps
NEAR = 0.9  # features above this fraction of the level stay in a core that is cut down
MARGIN = 1e-10  # relative room for what rounding does to a sum of certificates
NONE = np.zeros(0, dtype=np.intp)

Supports = tuple[tuple[np.ndarray, ...], ...]


@dataclass(frozen=True)
class Branch:
    """A case that is still open, and what is known of it."""

    place: int
    state: State
    supports: Supports  # for each group, good supports of its components
    leaf: Leaf
    steps: int = 0  # how often the case has been worked on
    exact: PricedLeaf | None = None

    @property
    def total(self) -> float:
        exact = np.inf if self.exact is None else self.exact.total
        return min(self.leaf.total, exact)


def free_group(branch: Branch) -> int | None:
    """Return the group of components that need not contain any feature."""
    return next((g for g, label in enumerate(branch.state) if not label.forced), None)


def divided(
    start: Start, proof: Proof, branch: Branch, g: int, monitor: Monitor
) -> list[Branch] | None:
    """Divide a case by a feature of group g; None if there is no feature to ask for.

    Returns the cases that stay open; the others are in the proof.
    """
    choice = _chosen(start, branch, g, monitor)
    return None if choice is None else _Division(start, proof, branch, g, choice).run(monitor)


class _Choice(NamedTuple):
    """A feature by which a case is divided."""

    number: int  # of the support of the group that has the feature
    feature: int
    lacking: Group  # a certificate for the group without the feature


def _chosen(start: Start, branch: Branch, g: int, monitor: Monitor) -> _Choice | None:
    """Return a feature whose certificate closes the case without it, or has the lowest of some."""
    leaf, best = branch.leaf, None
    for number, support in enumerate(branch.supports[g]):
        for b in _candidates(start, support, branch.state[g]):
            if leaf.groups[g].core.size <= 1 or monitor.stopped:
                return None
            target = start.target - (leaf.total - leaf.found[g].total) + float(leaf.price[b])
            lacking = leaf.groups[g].without(b)
            lacking, total = below(start, lacking, leaf.price, target, monitor)
            left = total - target
            if best is None or left < best[0]:
                best = left, _Choice(number, b, lacking)
            if left <= 0.0:
                return best[1]
    return None if best is None else best[1]


def _candidates(start: Start, support: np.ndarray, label: Label) -> list[int]:
    """Return the features that a support loses most without."""
    allowed = [int(b) for b in support if int(b) not in label.banned | label.forced]
    a = start.rows.a

    def lost(b: int) -> float:
        rest = support[support != b]
        return -float(np.linalg.eigvalsh(a[np.ix_(rest, rest)])[-1]) if rest.size else 0.0

    return sorted(allowed, key=lost, reverse=True)[:TRIES]


class _Division:
    """The cases of one feature b: in group g, in another one, in none."""

    def __init__(self, start: Start, proof: Proof, branch: Branch, g: int, choice: _Choice) -> None:
        self.start, self.proof, self.branch, self.g = start, proof, branch, g
        self.number, self.b, self.lacking = choice
        leaf = branch.leaf
        self.prices = proof.add_prices(leaf.price)
        self.own = [proof.add_group(group, self.prices) for group in leaf.groups]
        # in all cases but that of group g
        self.own[g] = proof.add_group(choice.lacking, self.prices)
        rest = evaluated(choice.lacking, start.rows, leaf.price)
        self.saved = leaf.found[g].total - rest.total

    def run(self, monitor: Monitor) -> list[Branch]:
        start, branch, g, b = self.start, self.branch, self.g, self.b
        place, state, left = branch.place, branch.state, []
        for j in range(len(state)):
            if j == g or b in state[j].banned or len(state[j].forced) >= start.s:
                continue
            out, into = self.proof.case(place, b, j)
            closed = self._closed_in(j, monitor)
            if closed is None:
                left.append(self._open_in(into, including(state, j, b), j))
            else:
                own = [self.proof.add_group(closed, self.prices)]
                own += [self.own[j]] if state[j].count > 1 else []
                groups = [*self.own[:j], *own, *self.own[j + 1 :]]
                self.proof.leaf(into, including(state, j, b), groups)
            place, state = out, without(state, j, b)
        out, into = self.proof.case(place, b, g)
        nowhere = without(state, g, b)
        # nothing is paid for a feature that no component uses
        total = branch.leaf.total - self.saved - float(branch.leaf.price[b])
        if total <= start.target - MARGIN * start.value:
            self.proof.leaf(out, nowhere, self.own)
        else:
            left.append(self._open(out, nowhere, branch.supports))
        return [*left, self._open_in(into, including(state, g, b), g)]

    def _closed_in(self, j: int, monitor: Monitor) -> Group | None:
        """Return a certificate that rules out the feature in a component of group j."""
        start, leaf = self.start, self.branch.leaf
        group = leaf.groups[j]
        target = start.target - (leaf.total - leaf.found[j].total) + self.saved
        if group.count > 1:  # the other components of the group
            others = replace(group, count=group.count - 1)
            target -= evaluated(others, start.rows, leaf.price).total
        group, total = below(start, self._with(j), leaf.price, target, monitor)
        return group if total <= target else None

    def _with(self, j: int) -> Group:
        """Return a certificate of one component of group j that contains the feature."""
        group, price = self.branch.leaf.groups[j], self.branch.leaf.price
        if self.b not in group.core:
            group = extended(self.start, group, np.array([self.b]), price)
        return replace(group, count=1).forcing(self.b)

    def _open_in(self, place: int, state: State, j: int) -> Branch:
        """Return the case that a component of group j contains the feature."""
        start, branch, b = self.start, self.branch, self.b
        groups, supports = [], []
        for i, group in enumerate(branch.leaf.groups):
            good = branch.supports[i]
            if i != j:
                groups.append(_lacking(group, b))
                supports.append(good)
                continue
            number = self.number if j == self.g else _nearest(start, good, b)
            one = self._with(j)
            if group.count > 1:
                one = cut_down(start, one, good[number], branch.leaf.price)
            groups.append(one)
            supports.append((good[number],))
            if group.count > 1:
                groups.append(_lacking(replace(group, count=group.count - 1), b))
                supports.append((*good[:number], *good[number + 1 :]))
        return self._branch(place, state, groups, tuple(supports))

    def _open(self, place: int, state: State, supports: Supports) -> Branch:
        """Return the case that no component contains the feature."""
        groups = [
            _lacking(group, self.b) if self.b in label.banned else group  # its support is full
            for group, label in zip(self.branch.leaf.groups, state)
        ]
        groups[self.g] = self.lacking
        return self._branch(place, state, groups, supports)

    def _branch(self, place: int, state: State, groups: list[Group], supports: Supports) -> Branch:
        price = self.branch.leaf.price.copy()
        price[self.b] = 0.0  # at most one component can use it
        leaf = leaf_of(self.start, groups, price)
        fit = tuple(
            tuple(fitting(self.start, support, label) for support in good)
            for good, label in zip(supports, state)
        )
        return Branch(place, state, fit, leaf)


def _lacking(group: Group, b: int) -> Group:
    return group if group.banned[b] else group.without(b)


def _nearest(start: Start, supports: tuple[np.ndarray, ...], b: int) -> int:
    """Return the support that a feature covaries with most."""
    sizes = [float(np.square(start.rows.a[b, support]).sum()) for support in supports]
    return int(np.argmax(sizes))


def cut_down(start: Start, group: Group, support: np.ndarray, price: np.ndarray) -> Group:
    """Return a certificate on the part of its core that matters to one support."""
    paid = evaluated(group, start.rows, price).theta
    group = replace(group, pad=np.where(group.pad > 0.0, group.pad, start.pads(paid)))
    gain = start.gain(support, price)
    gain[group.forced] = np.inf
    order = group.core[np.argsort(-gain[group.core], kind="stable")]
    core = np.sort(order[: start.core_size(1)])
    for _ in range(5):
        part = replace(group, split=group.split.on(core), pad=group.pad[np.isin(group.core, core)])
        near = evaluated(part, start.rows, price, NEAR).violators
        new = np.setdiff1d(np.intersect1d(near, group.core), core)
        if new.size == 0:
            return part
        core = np.union1d(core, new)
    return replace(group, split=group.split.on(core), pad=group.pad[np.isin(group.core, core)])


def fitting(start: Start, support: np.ndarray, label: Label) -> np.ndarray:
    """Return a support that the label of its group allows, as near the given one as possible."""
    rows, forced = start.rows, np.array(sorted(label.forced), dtype=np.intp)
    allowed = np.ones(rows.field.size, dtype=bool)
    allowed[list(label.banned)] = False
    found = np.union1d(forced, support[allowed[support]]).astype(np.intp)
    while found.size > start.s:
        x = np.abs(leading(rows, found)[0])
        x[np.isin(found, forced)] = np.inf
        found = np.delete(found, int(np.argmin(x)))
    while found.size < start.s and np.count_nonzero(allowed) > found.size:
        score = np.where(allowed, rows.a.diagonal(), -np.inf)
        if found.size:
            x, value = leading(rows, found)
            link = rows.a[:, found] @ x
            gain = newcomer_gain(value, rows.a.diagonal(), link, rows.nonnegative)
            score = np.where(allowed, gain, -np.inf)
        score[found] = -np.inf
        found = np.union1d(found, [int(np.argmax(score))]).astype(np.intp)
    return found


def below(
    start: Start, group: Group, price: np.ndarray, target: float, monitor: Monitor
) -> tuple[Group, float]:
    """Return a certificate that a group is worth at most `target`, after some steps if needed, or
    the best one met; also what it is worth."""
    margin, previous, best = MARGIN * start.value, np.inf, None
    for mu, steps in ((0.0, 0), *STEPS):
        if steps:
            optimiser = LeafOptimiser(start.rows, [group], price, NONE, start.value, start.k)
            optimiser.run(mu, steps, float(price.sum()) + target - 10 * margin, monitor)
            group = optimiser.certificates()[0]
        found = evaluated(group, start.rows, price)
        total = found.total + margin
        if best is None or total < best[1]:
            best = group, total
        if total <= target:
            break
        inside = found.violators[found.violators < price.size]
        if inside.size:
            group = extended(start, group, inside, price)
        elif steps and total - target > HOPELESS * (previous - target):
            break
        previous = total
    assert best is not None
    return best
