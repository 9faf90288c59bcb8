"""Bound "tree"; statement and proof: docs/methods/tree.rst.

A node whose free features are nearly all alike is settled by the squares of their covariances.

Near-duplicates compete with one another in every node, so that branching on them closes nothing.
But a support of them has a matrix of almost rank one, whose largest eigenvalue is its Frobenius
norm but for a millionth: a sum over pairs of features. Supports of g such features and a set Q of
others are bounded by pairs after the features of Q are eliminated (Schur), and the sets that pairs
do not exclude, which are few, are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ...kernels.alike import sets_below
from ...numerics import margins
from ...numerics.margins import SAFETY, power_of_two
from ..pairsplit import Part, prove_below

ALIKE = 0.95  # correlation with the feature that has most others beside it
OTHERS = 10  # free features that are not alike: each subset of them is a case
SETS = 400_000  # sets of chosen features that are looked at in a node
LEFT = 2_000  # sets of a case that pairs do not exclude
BITS = 44  # of the integers that a sum over pairs is made of
BIG = 2**52  # a pair that no set has
PER_CASE, PER_SET, PER_SUPPORT = 3e5, 400.0, 1e5  # nanoseconds


@dataclass(frozen=True)
class Settled:
    """What was found at a node: the features that are alike, and the supports that are left."""

    group: np.ndarray  # places in the part
    supports: list[np.ndarray]  # places in the part
    complete: bool  # whether all other supports are at or below the level
    work: float


def alike_features(part: Part) -> np.ndarray | None:
    """Return the free features (places) that nearly all others are like, or None."""
    free = np.flatnonzero(~part.forced)
    variances = np.diagonal(part.a)[free]
    free = free[variances > 0.0]
    if free.size < 3:
        return None
    root = np.sqrt(np.diagonal(part.a)[free])
    close = np.abs(part.a[np.ix_(free, free)]) >= ALIKE * np.outer(root, root)
    group = free[close[int(np.argmax(close.sum(axis=1)))]]
    others = part.n - part.n_forced - group.size
    return group if others <= min(OTHERS, group.size - 1) else None


def few_alike(part: Part, group: np.ndarray, level: float, costly: bool) -> Settled:
    """Return the supports of the part that may be worth more than the level.

    A support has the forced features, some others and some of the group. Where no feature costs
    anything, the largest are enough.
    """
    forced = np.flatnonzero(part.forced)
    others = np.setdiff1d(np.flatnonzero(~part.forced), group)
    supports: list[np.ndarray] = []
    sets, work = SETS, 0.0
    for chosen in _subsets(others, part.s - forced.size):
        own = np.concatenate([forced, chosen]).astype(np.intp)
        room = min(part.s - own.size, group.size)
        for g in range(room + 1) if costly else [room]:
            work += PER_CASE
            if g == 0:
                supports += [own] if own.size else []
                continue
            pairs = _Pairs.of(part, own, group, g, level)
            looked, found = (0, None) if pairs is None else pairs.left(sets)
            sets -= looked
            work += PER_SET * looked
            if found is None:
                return Settled(group, supports, False, work)
            work += PER_SUPPORT * len(found)
            supports += [np.concatenate([own, group[one]]) for one in found]
    return Settled(group, [np.sort(support) for support in supports], True, work)


def all_below(part: Part, supports: list[np.ndarray], level: float) -> bool:
    """Return whether Cholesky proves each of these supports, less its prices, at most the level."""
    return all(
        prove_below(part.a[np.ix_(S, S)], level + float(part.price[S].sum())) for S in supports
    )


def _subsets(features: np.ndarray, most: int) -> Iterator[np.ndarray]:
    for count in range(min(most, features.size) + 1):
        for chosen in combinations(features.tolist(), count):
            yield np.array(chosen, dtype=np.intp)


@dataclass(frozen=True)
class _Pairs:
    """Sets of g features of a group, with costs in integers; a set that costs no less than the
    limit is, with the features that were eliminated, worth no more than the level."""

    single: np.ndarray  # (n,)
    pair: np.ndarray  # (n, n)
    limit: int
    g: int

    @staticmethod
    def of(part: Part, own: np.ndarray, group: np.ndarray, g: int, level: float) -> _Pairs | None:
        """Eliminate the features `own`; None where the level lies too low for that."""
        a, price = part.a[np.ix_(group, group)], part.price[group]
        ranked = np.sort(price)
        low, spread = float(ranked[:g].sum()), float(ranked[-g:].sum() - ranked[:g].sum())
        sizes_of_level = abs(level) + part.s * float(np.abs(part.price).max())
        tau = level + float(part.price[own].sum()) + low
        tau -= SAFETY * margins.alike(part.s) * sizes_of_level
        if not tau > 0.0:
            return None
        eliminated = _eliminated(part.a, own, group, tau, spread)
        if eliminated is None:
            return None
        n_matrix, k_matrix, error = a + eliminated[0], eliminated[1], eliminated[2]
        error += g * margins.alike(g) * float(np.abs(a).max())
        squares = n_matrix**2
        # what the largest eigenvalue is compared with: about that of the best set
        gain = -np.diagonal(squares) + 2 * tau * price - (g - 1) * squares.mean(axis=1)
        c = tau + max(float(price[np.argsort(gain)[:g]].sum()) - low, 0.0)
        slope = 2 * c
        if spread > 0.0:
            least = _least(n_matrix * k_matrix, g)
            slope += 2 * least + spread * _least(-(k_matrix**2), g)
        size = g * g * float(squares.max()) + g * abs(slope) * float(np.abs(price).max())
        size += 2 * c * (tau + sizes_of_level)
        size += c * c + (tau + spread) * error
        size += 2 * spread * g * g * float(np.abs(n_matrix * k_matrix).max())
        size += (spread * g * float(np.abs(k_matrix).max())) ** 2
        slack = SAFETY * (margins.alike(part.s) * size + 2 * (tau + spread) * error)
        unit = 2.0**BITS / power_of_two(size)
        single = np.floor(unit * (slope * price - np.diagonal(squares)))
        pair = np.floor(-2 * unit * squares)
        np.fill_diagonal(pair, 0)
        limit = np.ceil(unit * (c * c - 2 * c * tau + slope * low + slack))
        return _Pairs(single.astype(np.int64), pair.astype(np.int64), int(limit), g)

    def left(self, most: int) -> tuple[int, np.ndarray | None]:
        """Return how many sets were looked at, and those that are left, None if they are many.

        Features that are least like the others come first: sets with them cost most.
        """
        g, single = self.g, self.single
        order = np.argsort(-self.pair.sum(axis=1), kind="stable")
        single, pair = single[order], self.pair[np.ix_(order, order)]
        first = _cheapest(pair, g)
        if np.sort(2 * single + first[g])[:g].sum() >= 2 * self.limit:
            return 1, np.empty((0, g), dtype=np.intp)
        rest = np.full((single.size, g + 1, single.size), BIG, dtype=np.int64)
        for i in range(single.size - 1):
            rest[i, :, i:] = _cheapest(pair[i:, i:], g)
        rest[:, :2] = 0
        found = np.empty((LEFT, g), dtype=np.int64)
        each, score = np.empty((2, g + 1, single.size), dtype=np.int64)
        state = np.empty((6, g + 1), dtype=np.int64)
        looked, count = sets_below(single, pair, rest, self.limit, most, found, each, score, state)
        return looked, None if count < 0 else order[found[:count]]


def _eliminated(
    a: np.ndarray, own: np.ndarray, group: np.ndarray, tau: float, spread: float
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return B'H^-1 B and B'H^-1 (H + spread I)^-1 B, H = tau I - A_own, B = A_own,group, and what
    the first and `spread` times the second are off by in norm, in all; None if H is not positive.
    """
    if not own.size:
        nothing = np.zeros((group.size, group.size))
        return nothing, nothing, 0.0
    block, b = a[np.ix_(own, own)], a[np.ix_(own, group)]
    room = 0.5 * (tau - float(np.linalg.eigvalsh(block)[-1]))
    if not (room > 0.0 and prove_below(block, tau - room)):
        return None
    h = tau * np.eye(own.size) - block
    further = h + spread * np.eye(own.size)
    x, y = np.linalg.solve(h, b), np.linalg.solve(further, b)
    off = [
        (float(np.linalg.norm(b - one @ z)) + _rounded(one, z, b)) / room
        for one, z in ((h, x), (further, y))
    ]
    size_b, size_x, size_y = (float(np.linalg.norm(z)) for z in (b, x, y))
    error = size_b * off[0] + spread * (size_x * off[1] + size_y * off[0] + off[0] * off[1])
    error += margins.alike(own.size) * size_x * (size_b + spread * size_y)
    first, second = b.T @ x, x.T @ y
    return 0.5 * (first + first.T), 0.5 * (second + second.T), error


def _rounded(h: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    """Return at least the norm of what rounding changes in b - h x."""
    size = float(np.linalg.norm(b) + np.linalg.norm(h) * np.linalg.norm(x))
    return margins.alike(h.shape[0]) * size


def _least(matrix: np.ndarray, g: int) -> float:
    """Return at most the sum of any g rows and columns."""
    rows = np.sort(matrix, axis=1)[:, :g].sum(axis=1)
    return float(np.sort(rows)[:g].sum())


def _cheapest(pair: np.ndarray, g: int) -> np.ndarray:
    """Return (g + 1, n): the sum of the q - 1 smallest pairs of each feature, for q = 0, ..., g."""
    n = pair.shape[0]
    own = pair.copy()
    np.fill_diagonal(own, BIG)
    sums = np.cumsum(np.sort(own, axis=1), axis=1)
    out = np.full((g + 1, n), BIG, dtype=np.int64)
    out[:2] = 0
    filled = min(g, n)
    out[2 : filled + 1] = sums.T[: filled - 1]
    return out
