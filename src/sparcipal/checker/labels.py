"""Bound "labels"; statement and proof: docs/methods/labels.rst.

The replay has two parts. `Rows` and `Groups` redo what is claimed of single groups of components:
the sum of the values of r of them, less their prices. `walk` follows the tree of cases and adds
up, in every leaf, the prices and what its groups are bounded by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .arithmetic import LEAST, Arithmetic, Numbers
from .budget import Budget, require
from .family import Case, Family
from .margins import term
from .pairsplit import Supports, charged
from .records import (
    LabelCase,
    LabelGroup,
    LabelLeaf,
    LabelPrices,
    Labels,
    LabelTouch,
    LabelTree,
    PairSplit,
    Problem,
)
from .tree import bits, replay

CHUNK = 400  # rows of the covariance held at a time


def recheck(record: Labels, case: Case) -> Numbers:
    """Return the largest sum that a leaf of the tree of cases allows."""
    cov, question, ar, budget = case
    require(question.k == 1 or question.disjoint, "this bound holds for disjoint supports only")
    for group in record.groups:
        require(group.prices < len(record.prices), "a certificate names prices that are not there")
    groups = Groups(record, Rows(record, case), case)
    largest = ar.number(-np.inf)
    for state, leaf in walk(record, question.k, cov.p, budget):
        if any(group.forced.bit_count() > question.s_max for group in state):
            continue  # no support is that large
        total = _leaf(state, leaf, record, groups, ar)
        largest = ar.maximum(largest, total)
    return largest + cov.rounding(question.n_nonzero)


# --- the tree of cases ---


@dataclass(frozen=True)
class State:
    """`count` components that contain the features `forced` and none of `banned`, as bits."""

    count: int
    forced: int
    banned: int


def walk(record: Labels, k: int, p: int, budget: Budget) -> Iterator[tuple[list[State], LabelLeaf]]:
    """Yield the leaves with their groups; Refused unless every case has its two sides."""
    nodes, size = record.nodes, 0.25 * p + 200.0  # bytes of a group
    seen = np.zeros(len(nodes), dtype=bool)
    waiting: list[tuple[int, list[State]]] = [(0, [State(k, 0, 0)])]
    held = 1  # groups in all the cases that wait
    while waiting:
        place, state = waiting.pop()
        held -= len(state)
        require(place < len(nodes) and not seen[place], "a case that is not there, or twice")
        seen[place] = True
        node = nodes[place]
        if isinstance(node, LabelLeaf):
            yield state, node
            continue
        assert isinstance(node, LabelCase)
        require(node.feature < p, "a case about a feature that is not there")
        require(node.group < len(state), "a case about a group that is not there")
        held += 2 * len(state) + 1
        budget.work(2 * (len(state) + 1) * (size + 500.0), "the groups of a case")
        budget.memory(held * size, "the groups of the cases that wait")
        waiting.append((node.out, _without(state, node.group, 1 << node.feature)))
        waiting.append((node.into, _with(state, node.group, 1 << node.feature)))


def _without(state: list[State], g: int, bit: int) -> list[State]:
    """Return the groups of the case that no component of group g contains the feature."""
    group = state[g]
    return [*state[:g], State(group.count, group.forced, group.banned | bit), *state[g + 1 :]]


def _with(state: list[State], g: int, bit: int) -> list[State]:
    """Return the groups of the case that a component of group g, and no other, has the feature."""
    group = state[g]
    own = [State(1, group.forced | bit, group.banned)]
    if group.count > 1:
        own.append(State(group.count - 1, 0, group.banned | bit))
    before = [State(other.count, other.forced, other.banned | bit) for other in state[:g]]
    after = [State(other.count, other.forced, other.banned | bit) for other in state[g + 1 :]]
    return [*before, *own, *after]


def _leaf(
    state: list[State], leaf: LabelLeaf, record: Labels, groups: Groups, ar: Arithmetic
) -> Numbers:
    """Return the prices of all features that some group may use, and what the groups are bounded
    by.

    Groups that name the same certificate are bounded together.
    """
    require(len(leaf.groups) == len(state), "a leaf does not name a certificate for each group")
    together: dict[int, int] = {}
    for group, place in zip(state, leaf.groups):
        require(place < len(record.groups), "a leaf names a certificate that is not there")
        proof = record.groups[place]
        named = proof.forced.size + proof.banned.size
        cost = named * (200.0 + groups.rows.cov.p / 16)
        groups.budget.work(cost, "the sets of a certificate")
        covered = (
            bits(proof.forced) & ~group.forced == 0 and bits(proof.banned) & ~group.banned == 0
        )
        require(covered, "a certificate speaks of fewer supports than its group has")
        together[place] = together.get(place, 0) + group.count
    numbers = {record.groups[place].prices for place in together}
    require(len(numbers) == 1, "the certificates of a leaf have different prices")
    prices = record.prices[numbers.pop()]
    cost = (prices.features.size + len(state)) * (300.0 + groups.rows.cov.p / 16)
    groups.budget.work(cost, "the prices of a leaf")
    unused = state[0].banned
    for group in state:
        unused &= group.banned
    paid = ar.array(prices.price)[[not unused >> int(j) & 1 for j in prices.features]]
    parts = [groups.bound(place, count) for place, count in together.items()]
    total, size = paid.sum(), paid.sum()
    for part in parts:
        total, size = total + part, size + abs(part)
    return total + (paid.size + len(parts) + 8) * ar.eps * size


# --- one group ---


class Groups:
    """What the certificates prove, each redone once."""

    def __init__(self, record: Labels, rows: Rows, case: Case) -> None:
        self.record, self.rows, self.ar, self.budget = record, rows, case.ar, case.budget
        self._known: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._trees: dict[int, Numbers] = {}
        self.held = 0.0  # bytes of the matrices that are known

    def bound(self, place: int, count: int) -> Numbers:
        """Bound what `count` components of this group are worth, prices subtracted."""
        group, ar = self.record.groups[place], self.ar
        require(count == 1 or group.forced.size == 0, "two components with the same feature")
        if isinstance(group, LabelTree):
            if place not in self._trees:
                self._trees[place] = self._replayed(group)
            # a component that need not contain a feature may be empty
            worth = self._trees[place]
            return count * (worth if group.forced.size else ar.maximum(worth, 0.0))
        require(count <= group.count, "a certificate is used for more components than it states")
        if place not in self._known:
            self._known[place] = self._redone(group)
        matrix, rivals = self._known[place]
        # a component that need not contain a feature may be empty
        zeros = ar.zeros(count if group.forced.size == 0 else 0)
        self.budget.work(8.0 * group.core.size**3 + 1e5, "the eigenvalues of a group")
        return ar.ky_fan(matrix, count, np.append(rivals, zeros))

    def _redone(self, group: LabelGroup) -> tuple[np.ndarray, np.ndarray]:
        """Return M, and the numbers of the features outside the core."""
        ar, rows, n = self.ar, self.rows, group.core.size
        s = rows.s
        require(group.forced.size <= s, "more features than a component may have")
        self._check_sets(group, group.pads)
        self.budget.work(4.0 * n**3 + 300.0 * n**2, "the certificate of a group")
        self.held += n * n * ar.bytes
        self.budget.memory(self.held + 12.0 * n * n * ar.bytes, "the certificates of groups")
        price = rows.price(self.record.prices[group.prices])
        core = rows.places(group.core)
        split = PairSplit(features=np.arange(n), u=group.u, r=group.r)
        pad = ar.array(group.pads)
        forced = np.isin(group.core, group.forced)
        of = Supports(np.arange(n), forced, s, rows.nonnegative, price[core], pad)
        on = charged(split, rows.block[np.ix_(core, core)], of, ar)
        w = np.linalg.eigvalsh(ar.floats(on.matrix))
        level = float(w[n - group.count]) if n >= group.count else -np.inf
        theta = ar.maximum(on.level, pad)
        rivals = rows.heights(core, theta, price, rows.places(group.banned), level, group.count)
        return on.matrix, rivals

    def _check_sets(self, group: LabelGroup | LabelTree, pads: np.ndarray) -> None:
        """Refuse a core that lacks a forced feature, holds a banned one, or has no pads."""
        inside = bool(np.isin(group.forced, group.core).all())
        require(inside, "a forced feature is not in the core")
        require(not np.isin(group.banned, group.core).any(), "a banned feature is in the core")
        outside = group.core.size + group.banned.size < self.rows.cov.p
        padded = self.rows.s == 1 or bool((pads >= LEAST).all())
        require(not outside or padded, "features outside the core need positive pads")

    def _replayed(self, group: LabelTree) -> Numbers:
        """Return what a support of the group is worth at most, by its branch and bound."""
        ar, rows = self.ar, self.rows
        problem = group.log[0]
        assert isinstance(problem, Problem)
        n, none = group.core.size, np.zeros(group.core.size)
        pads = none if problem.pads is None else problem.pads
        self._check_sets(group, pads if group.touch is None else group.touch.pads)
        prices = self.record.prices[group.prices]
        charged = np.zeros(n)
        named = np.isin(group.core, prices.features)
        charged[named] = prices.price[np.searchsorted(prices.features, group.core[named])]
        stated = none if problem.prices is None else problem.prices
        require(np.array_equal(charged, stated), "a proof speaks of other prices")
        require(problem.s >= rows.s, "a proof speaks of fewer features")
        signs = rows.nonnegative or not problem.nonnegative
        require(signs, "a proof speaks of nonnegative components only")
        forced = group.core[:0] if problem.forced is None else group.core[problem.forced]
        require(bool(np.isin(forced, group.forced).all()), "a tree forces a feature that is free")
        core = rows.places(group.core)
        block = rows.block[np.ix_(core, core)]
        inside = replay(group.log, block, ar, self.budget, anchored=True)
        if n + group.banned.size == rows.cov.p:
            return inside
        price = rows.price(prices)
        if group.touch is not None:
            return ar.maximum(inside, self._touching(group, group.touch, price))
        banned, level = rows.places(group.banned), ar.upper(inside)
        rivals = rows.heights(core, ar.array(pads), price, banned, level, 1)
        return ar.top(rivals, 1)[0]

    def _touching(self, group: LabelTree, touch: LabelTouch, price: np.ndarray) -> Numbers:
        """Return what a support of the group that leaves the core is worth at most.

        A row of the core pays its pad for a feature outside, and for one place less besides.
        """
        ar, rows, n = self.ar, self.rows, group.core.size
        require(rows.s > 1, "a support of one feature that is inside and outside")
        self.budget.work(12.0 * n**3 + 300.0 * n**2, "supports that leave a core")
        self.budget.memory(self.held + 12.0 * n * n * ar.bytes, "supports that leave a core")
        core, pad = rows.places(group.core), ar.array(touch.pads)
        split = PairSplit(features=np.arange(n), u=touch.u, r=touch.r)
        forced = np.isin(group.core, group.forced)
        of = Supports(np.arange(n), forced, rows.s - 1, rows.nonnegative, price[core], pad)
        matrix = charged(split, rows.block[np.ix_(core, core)], of, ar).matrix
        diagonal = np.diag_indices(n)
        matrix[diagonal] = matrix[diagonal] + pad * (1 + 8 * ar.eps)
        level = float(np.linalg.eigvalsh(ar.floats(matrix))[-1])
        rivals = rows.heights(core, pad, price, rows.places(group.banned), level, 1)
        return ar.ky_fan(matrix, 1, rivals)


class Rows:
    """Rows of the covariance against the field: all features that a record names."""

    def __init__(self, record: Labels, case: Case) -> None:
        cov, question, ar, budget = case
        self.cov, self.ar, self.budget, self._entries = cov, ar, budget, case.entries
        self.s, self.nonnegative = question.s_max, question.nonnegative
        named = [prices.features for prices in record.prices]
        named += [group.core for group in record.groups] + [group.banned for group in record.groups]
        field = np.unique(np.concatenate(named)).astype(np.intp)
        # variances tell nothing of the entries of a matrix that may not be a covariance
        self.field = np.arange(cov.p) if cov.given else field
        h = self.field.size
        budget.work(40.0 * h * h, "the features that labels name")
        block = case.entries(self.field)
        self.block = 0.5 * (block + block.T)
        self.size = ar.size(self.block, self.nonnegative)
        variance = ar.maximum(cov.diagonal + cov.entry_errors(ar), 0.0)
        rest = np.setdiff1d(np.arange(cov.p), self.field)
        order = np.argsort(-ar.floats(variance[rest]), kind="stable")
        self.rest, self.beyond = rest[order], variance[rest[order]]
        self.deviation = ar.sqrt(variance[self.field])
        self.reach = ar.top(ar.sqrt(self.beyond), self.s - 1)
        self._rest_rows: dict[int, np.ndarray] = {}
        self._among: dict[int, np.ndarray] = {}

    def places(self, features: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.field, features)

    def price(self, prices: LabelPrices) -> np.ndarray:
        price = self.ar.zeros(self.field.size)
        price[self.places(prices.features)] = self.ar.array(prices.price)
        return price

    def heights(
        self,
        core: np.ndarray,
        theta: np.ndarray,
        price: np.ndarray,
        banned: np.ndarray,
        level: float,
        count: int,
    ) -> np.ndarray:
        """Return m_b = A_bb - beta_b + the s - 1 largest of {A_ba^2 / (theta_a + beta_b) - beta_a}
        and {|A_bl| - beta_l} of all features outside the core that exceed `level`, and `count`
        times the level for the others."""
        h = self.field.size
        out = np.ones(h, dtype=bool)
        out[core], out[banned] = False, False
        of = _Outside(core, theta, price, np.flatnonzero(out))
        self.budget.work(60.0 * of.others.size * h, "features outside a core")
        found = [self._above(of, of.others, self.size[of.others], level)]
        needed = self._needed(of, level)
        for start in range(0, needed, CHUNK):
            rows = np.arange(start, min(start + CHUNK, needed))
            self.budget.work(60.0 * rows.size * h, "features outside a core")
            found.append(self._above(of, h + rows, self._charges(rows), level))
        lower = np.full(count, self.ar.number(level)) if np.isfinite(level) else self.ar.zeros(0)
        return np.concatenate([*found, lower])

    def _above(
        self, of: _Outside, features: np.ndarray, size: np.ndarray, level: float
    ) -> np.ndarray:
        """Return the m_b of these features (places in the field, then beyond it) that may be
        above."""
        ar, h = self.ar, self.field.size
        if features.size == 0:
            return ar.zeros(0)
        inside = features < h
        own = ar.zeros(features.size)
        own[inside] = self.deviation[features[inside]]
        own[~inside] = ar.sqrt(self.beyond[features[~inside] - h])
        names = np.append(self.field, self.rest)[features]
        price = ar.zeros(features.size)
        price[inside] = of.price[features[inside]]
        near = self._near(of, features, size, price)
        far = np.multiply.outer(own, self.reach)
        total = self._total(of, names, price, np.hstack([near, far]))
        high = np.flatnonzero(~np.asarray(total <= level, dtype=bool))
        if self.rest.size and high.size:
            exact = np.stack([self._among_rest(int(b)) for b in features[high]])
            both = np.hstack([near[high], exact])
            total[high] = self._total(of, names[high], price[high], both)
            high = high[~np.asarray(total[high] <= level, dtype=bool)]
        return total[high]

    def _near(
        self, of: _Outside, features: np.ndarray, size: np.ndarray, price: np.ndarray
    ) -> np.ndarray:
        """Return the s - 1 largest charges of each feature for those of the field."""
        ar, cross = self.ar, size[:, of.core]
        inner = cross * cross / (of.theta + price[:, None]) - of.price[of.core]
        outer = size[:, of.others] - of.price[of.others]
        outer[np.equal.outer(features, of.others)] = ar.number(0.0)
        return ar.top(ar.maximum(np.hstack([inner, outer]), 0.0), self.s - 1)

    def _total(
        self, of: _Outside, names: np.ndarray, price: np.ndarray, charges: np.ndarray
    ) -> np.ndarray:
        ar, s = self.ar, self.s
        variance = self.cov.diagonal[names]
        paid = ar.top_sum(ar.maximum(charges, 0.0), s - 1)
        most = ar.top(of.price, 1)[0]
        rounding = term("outside", s) * ar.eps * (abs(variance) + paid + 2 * s * most)
        return np.asarray(variance - price + paid + rounding)

    def _needed(self, of: _Outside, level: float) -> int:
        """Return how many features beyond the field, by decreasing variance, are not dismissed by
        it."""
        ar, h = self.ar, self.field.size
        low, high = 0, self.rest.size
        while low < high:
            middle = (low + high) // 2
            # the largest of what follows, up to how the order was rounded
            v = ar.top(self.beyond[middle:], 1)
            root = ar.sqrt(v)
            near = self._near(of, np.array([h]), (root * self.deviation)[None, :], ar.zeros(1))
            both = np.hstack([near, (root * self.reach)[None, :]])
            paid = ar.top_sum(ar.maximum(both, 0.0), self.s - 1)
            most = ar.top(of.price, 1)[0]
            at_most = v + paid + term("outside", self.s) * ar.eps * (v + paid + 2 * self.s * most)
            if ar.at_most(at_most, level):
                high = middle
            else:
                low = middle + 1
        return low

    def _charges(self, rows: np.ndarray) -> np.ndarray:
        """Return the sizes of the covariances of features beyond the field with those of the
        field."""
        new = [int(b) for b in rows if int(b) not in self._rest_rows]
        if new:
            h = self.field.size
            self.budget.memory(
                (len(self._rest_rows) + len(new)) * h * self.ar.bytes, "rows beyond a core"
            )
            block = self.ar.size(self._entries(self.rest[new], self.field), self.nonnegative)
            self._rest_rows.update(zip(new, block))
        return np.stack([self._rest_rows[int(b)] for b in rows])

    def _among_rest(self, b: int) -> np.ndarray:
        """Return the s - 1 largest charges of a feature for those beyond the field."""
        if b not in self._among:
            h, ar = self.field.size, self.ar
            feature = np.append(self.field, self.rest)[b]
            row = ar.size(self._entries(np.array([feature]), self.rest)[0], self.nonnegative)
            if b >= h:
                row[b - h] = ar.number(0.0)
            top = ar.zeros(self.s - 1)
            found = ar.top(row, self.s - 1)
            top[: found.size] = found
            self._among[b] = top
        return self._among[b]


class _Outside(NamedTuple):
    """A core that pays `theta`, the prices of the field, and the features outside that may join."""

    core: np.ndarray
    theta: np.ndarray
    price: np.ndarray
    others: np.ndarray


FAMILIES = (Family("labels", Labels, recheck),)
