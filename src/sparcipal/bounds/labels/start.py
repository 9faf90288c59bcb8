"""Bound "labels"; statement and proof: docs/methods/labels.rst.

What labels start from: the certificate and the prices that a Ky Fan split amounts to, on its core,
and the best answer known, which says where to look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...problem.components import newcomer_gain
from ...problem.nonnegative import nonnegative_leading
from ..configuration.prices import converted
from ..kyfan.certificate import KyFanSplit
from ..kyfan.question import JointQuestion
from ..pairsplit import Split
from .groups import Group, evaluated
from .rows import Rows

CORE = 60  # features of the first core of a group, at least
PAD = 0.5  # pads, as a fraction of what the rows of the Ky Fan split pay
REACH = 0.8  # of the level: features beyond the core near it belong to the field
MOST_NEAR = 30  # of them, at most, for each component
CLAIMED = 0.3  # part of its price that counts against a feature that may join a core


@dataclass(frozen=True)
class Start:
    """Features are positions in the field: the core of the Ky Fan split, and what is near it."""

    rows: Rows
    k: int
    supports: tuple[np.ndarray, ...]  # of the best answer known
    value: float
    target: float  # what is to be proved
    price: np.ndarray  # (h,)
    whole: Group  # all components, the core of the Ky Fan split
    theta: np.ndarray  # (h,) what its rows pay
    gains: tuple[np.ndarray, ...]  # (h,) for each support, what a feature would add to it

    @staticmethod
    def of(
        question: JointQuestion,
        target: float,
        rows: Rows,
        price: np.ndarray,
        whole: Group,
        theta: np.ndarray,
    ) -> Start:
        supports = tuple(np.searchsorted(rows.field, support) for support in question.supports)
        gains = tuple(_gain(rows, support, price, whole.core) for support in supports)
        return Start(
            rows, whole.count, supports, question.value, target, price, whole, theta, gains
        )

    @property
    def s(self) -> int:
        return self.rows.q + 1

    def group(
        self, count: int, forced: Sequence[int] | np.ndarray, banned: np.ndarray, core: np.ndarray
    ) -> Group:
        """Return the certificate of all components on a part of its core, for some of them."""
        pad = self.pads(self.theta[core])
        some = np.sort(np.asarray(forced, dtype=np.intp))
        return Group(count, some, banned, self.whole.split.on(core), pad)

    def first_core(
        self, members: Sequence[int], forced: Sequence[int], banned: np.ndarray
    ) -> np.ndarray:
        """Return the features that fit some of the supports best, for a group of them."""
        gain = np.max([self.gains[j] for j in members], axis=0)
        gain[banned] = -np.inf
        gain[list(forced)] = np.inf
        size = min(self.core_size(len(members)), int(np.count_nonzero(gain > -np.inf)))
        return np.sort(np.argsort(-gain, kind="stable")[:size])

    def pads(self, theta: np.ndarray) -> np.ndarray:
        """Return pads: a fraction of theta, kept positive for features outside the core."""
        return single(np.maximum(PAD * theta, 1e-9 * self.value))

    def core_size(self, count: int) -> int:
        """Return how many features the first core of so many components has."""
        return max(CORE, 2 * self.s) * (1 + count // 2 if count > 1 else 1)

    def gain(self, support: np.ndarray, price: np.ndarray) -> np.ndarray:
        """Return what each feature would add to a support, less a part of its price."""
        return _gain(self.rows, support, price, np.arange(price.size))

    def completed(self, group: Group, price: np.ndarray, near: float, rounds: int = 5) -> Group:
        """Let features of the whole certificate near the level or above it join the core."""
        for _ in range(rounds):
            found = evaluated(group, self.rows, price, near)
            new = np.intersect1d(found.violators, self.whole.core)
            if new.size == 0:
                break
            core = np.union1d(group.core, new)
            group = self.group(group.count, group.forced, group.banned, core)
        return group

    def near(self) -> np.ndarray:
        """Return features beyond the field that may exceed the level later.

        Once components are told apart, only features that they compete for keep prices, and rows
        pay no more than their pads: features outside are then worth more than they are now.
        """
        rows, none = self.rows, np.zeros(self.price.size, dtype=bool)
        if rows.rest.size == 0 or not (self.theta > 0.0).all():
            return rows.rest[:0]
        groups, count = [], np.zeros(self.price.size, dtype=int)
        for j, support in enumerate(self.supports):
            anchor = [int(support[np.argmax(self.price[support])])]
            core = self.first_core([j], anchor, none)
            groups.append(self.group(1, anchor, none, core))
            count[core] += 1
        price, found = np.where(count >= 2, self.price, 0.0), []
        for group in groups:
            level = REACH * max(evaluated(group, rows, price).level, 0.0)
            features, heights = rows.heights(group.core, group.pad, price, none, level)
            beyond = features >= price.size
            order = np.argsort(-heights[beyond], kind="stable")[:MOST_NEAR]
            found.append(rows.rest[features[beyond][order] - price.size])
        return np.unique(np.concatenate(found))


def single(x: np.ndarray) -> np.ndarray:
    """Return the numbers rounded to single precision."""
    return x.astype(np.float32).astype(np.float64)


def started(question: JointQuestion, target: float, split: KyFanSplit) -> Start:
    """Convert a Ky Fan split, whose core holds the supports, to one level and prices."""
    s, k = max(question.cardinalities), len(question.cardinalities)
    nonnegative = question.nonnegative
    core = split.features.astype(np.intp)
    rows = Rows(question.cov, core, s, nonnegative)
    pair, price, _ = converted(rows.a, split, s, k, nonnegative)
    whole, price = _whole(k, np.arange(core.size), core.size, pair, split.pad), single(price)
    theta = evaluated(whole, rows, price).theta
    begun = Start.of(question, target, rows, price, whole, theta)
    more = begun.near()
    if more.size == 0:
        return begun
    field = np.union1d(core, more)
    rows, places = Rows(question.cov, field, s, nonnegative), np.searchsorted(field, core)
    whole = _whole(k, places, field.size, pair, split.pad)
    price = _placed(price, places, np.zeros(field.size))
    theta = _placed(theta, places, np.full(field.size, float(np.median(theta))))
    return Start.of(question, target, rows, price, whole, theta)


def _whole(k: int, core: np.ndarray, size: int, pair: Split, pad: float) -> Group:
    """Return the group of all components with a certificate on a core of a field of that size."""
    none, nothing = np.zeros(size, dtype=bool), np.zeros(0, dtype=np.intp)
    split = Split(core, pair.u, pair.r, pair.origin)
    return Group(k, nothing, none, split, np.full(core.size, float(pad)))


def _placed(values: np.ndarray, places: np.ndarray, into: np.ndarray) -> np.ndarray:
    into[places] = values
    return into


def leading(rows: Rows, support: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the best weights on a support, and its value."""
    block = rows.a[np.ix_(support, support)]
    x = nonnegative_leading(block) if rows.nonnegative else np.linalg.eigh(block)[1][:, -1]
    return x, float(x @ block @ x)


def _gain(rows: Rows, support: np.ndarray, price: np.ndarray, core: np.ndarray) -> np.ndarray:
    """Return what each feature of the field would add to a support, less a part of its price."""
    x, value = leading(rows, support)
    link = rows.a[:, support] @ x
    gain = newcomer_gain(value, rows.a.diagonal(), link, rows.nonnegative)
    gain = _placed((gain - CLAIMED * price)[core], core, np.full(price.size, -np.inf))
    gain[support] = np.inf
    return gain


def extended(start: Start, group: Group, new: np.ndarray, price: np.ndarray) -> Group:
    """Let features join a core, split as features outside it are."""
    core = np.union1d(group.core, new)
    old, added = np.searchsorted(core, group.core), np.searchsorted(core, new)
    n, a = core.size, start.rows.a
    u, r = np.zeros((n, n)), np.zeros((n, n))
    u[np.ix_(old, old)], r[np.ix_(old, old)] = group.split.u, group.split.r
    cross = a[np.ix_(new, group.core)]
    u[np.ix_(added, old)], u[np.ix_(old, added)] = cross, cross.T
    u[np.ix_(added, added)] = a[np.ix_(new, new)]
    theta = evaluated(group, start.rows, price).theta
    paid = np.maximum(theta, 1e-9 * start.value)[None, :] + price[new][:, None]
    width = 3e-3 * start.value / (start.k * start.s)
    ratio = np.log(np.hypot(cross, width)) - np.log(paid)
    r[np.ix_(added, old)], r[np.ix_(old, added)] = ratio, -ratio.T
    upper = np.triu_indices(n, 1)
    split = Split.rounded(core, upper, u[upper], r[upper])
    pad = start.pads(start.theta[core])
    pad[old] = group.pad
    return Group(group.count, group.forced, group.banned, split, pad)
