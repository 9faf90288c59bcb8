"""Bound "enumeration"; statement and proof: docs/methods/enumeration.rst.

The bound evaluates every support.

A signed component never loses by a larger support, so supports of exactly s features are enough.
The best nonnegative x is the leading eigenvector of A on its own support, so there all supports of
at most s features count whose leading eigenvector has one sign. Several disjoint components are the
best packing of such supports, found by a depth-first search through the supports in the order of
their values. With anchors, a component has at most s features together with them, and none that is
an anchor of another.

LAPACK's eigenvalues order the supports; a Cholesky factorisation of each bounds the error of its
value. A support T whose computed vector q has both signs is passed over: if the best x >= 0
were positive on all of T, it would be a leading eigenvector, and on the arc from x to q (or -q)
some entry vanishes first, at a point z >= 0 on fewer features. In the plane of x and q the Rayleigh
quotient falls all the way from x, so z'Az >= q'Aq / q'q: fewer features are worth as much, up to
the difference of the proved bound on T and this quotient.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from math import comb

import numpy as np

from ..numerics import margins
from ..numerics.margins import SAFETY
from ..problem.monitor import Monitor
from ..problem.problem import Component, Options, Problem
from ..problem.result import Bound
from .cheap import proved_margins

BATCH = 16_384
ONE_SIGN = 1e-9


def count_supports(problem: Problem) -> int:
    """Return how many supports an enumeration would look at."""
    p = problem.covariance.n_features
    return sum(
        comb(p, size) for s in set(problem.cardinalities) for size in _sizes(s, problem.nonnegative)
    )


def exhaust(
    problem: Problem, options: Options, most: int, known: float = -np.inf
) -> tuple[tuple[Component, ...], Bound | None, int]:
    """Return the best components, the bound if the search was complete, and how many packings it
    looked at.

    Packings worth no more than `known` are skipped, so that there may be no components.
    """
    A = problem.covariance.dense()
    A = (A + A.T) / 2
    kinds = kinds_of(problem)
    scored = {kind: _scored(A, kind, problem.nonnegative) for kind in set(kinds)}
    tables = {kind: (values, supports) for kind, (values, supports, _) in scored.items()}
    packing = _Packing(tables, kinds, A.shape[0], options.monitor, most, known)
    packing.search()
    components = tuple(_component(A, support) for support in _padded(packing.supports, problem))
    if problem.include and problem.k > 1:  # supports came in the order of their kinds
        order = sorted(range(problem.k), key=lambda j: kinds[j])
        complete = len(packing.supports) == problem.k
        components = tuple(components[order.index(j)] for j in range(problem.k)) * complete
    if not packing.complete:
        return components, None, packing.looked
    m = sum(problem.cardinalities)
    rounding = problem.covariance.rounding(m)
    margin = sum(scored[kind][2] for kind in kinds) + rounding
    margin += margins.packing(problem.k) * packing.rest[0]  # rounding of the sums of values
    bound = Bound("enumeration", packing.value + SAFETY * margin, margin=SAFETY * rounding)
    return components, bound, packing.looked


@dataclass(frozen=True, order=True)
class Kind:
    """Components of at most s features with some anchors and without some features."""

    s: int
    anchors: tuple[int, ...] = ()
    banned: tuple[int, ...] = ()

    def admits(self, support: tuple[int, ...]) -> bool:
        """Return whether a support has all anchors, nothing banned and at most s features."""
        own = set(support)
        return len(own) <= self.s and own.issuperset(self.anchors) and own.isdisjoint(self.banned)

    def least(self, worth: float) -> float:
        """Return at least what a component is worth: zero if it may be empty."""
        return worth if self.anchors else max(worth, 0.0)


def kinds_of(problem: Problem) -> list[Kind]:
    """Return the kind of each component; the anchors of others are banned."""
    anchors = problem.include or ((),) * problem.k
    every = {feature for own in anchors for feature in own}
    return [
        Kind(s, tuple(sorted(own)), tuple(sorted(every - set(own))))
        for s, own in zip(problem.cardinalities, anchors)
    ]


def _sizes(s: int, nonnegative: bool) -> range:
    return range(1, s + 1) if nonnegative else range(s, s + 1)


def _scored(
    A: np.ndarray, kind: Kind, nonnegative: bool
) -> tuple[np.ndarray, list[tuple[int, ...]], float]:
    """Return the value of every support, the largest first, and a bound on their errors.

    Supports leave room for the anchors.
    """
    s, forced = kind.s, np.array(kind.anchors, dtype=np.intp)
    features = [feature for feature in range(A.shape[0]) if feature not in kind.banned]
    values: list[np.ndarray] = []
    supports: list[tuple[int, ...]] = []
    margin, lost = 0.0, 0.0
    for size in _sizes(s, nonnegative):
        combinations = itertools.combinations(features, size)
        while batch := list(itertools.islice(combinations, BATCH)):
            index = np.array(batch, dtype=np.intp)
            if forced.size:
                free = size - np.isin(index, forced).sum(axis=1)
                index = index[free + forced.size <= s]
                batch = [tuple(row) for row in index.tolist()]
                if not batch:
                    continue
            blocks = A[index[:, :, None], index[:, None, :]]
            if nonnegative:
                w, Q = np.linalg.eigh(blocks)
                top, lead = w[:, -1], Q[:, :, -1]
                good = np.logical_or(
                    (lead >= -ONE_SIGN).all(axis=1), (lead <= ONE_SIGN).all(axis=1)
                )
            else:
                top, good = np.linalg.eigvalsh(blocks)[:, -1], np.ones(len(batch), dtype=bool)
            missing = proved_margins(blocks, top)
            margin = max(margin, float(missing.max()))
            if not good.all():
                above = top + missing - _quotients(blocks, lead)
                lost = max(lost, float(above[~good].max()))
            values.append(top[good])
            supports.extend(itertools.compress(batch, good))
    everything = np.concatenate(values)
    order = np.argsort(-everything, kind="stable")
    # a skipped support may refer to one that is skipped too, and so on down to a single feature
    return everything[order], [supports[i] for i in order], margin + (s - 1) * lost


def _quotients(blocks: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return q'Aq / q'q, rounded down."""
    m = blocks.shape[-1]
    image = (blocks @ vectors[:, :, None])[:, :, 0]
    length = np.square(vectors).sum(axis=1)
    size = np.sqrt(np.square(blocks).sum(axis=(1, 2)))
    return (vectors * image).sum(axis=1) / length - margins.quotient(m) * size


class _Packing:
    """Searches for disjoint supports, one per component, with the largest sum of values."""

    def __init__(
        self,
        tables: dict[Kind, tuple[np.ndarray, list[tuple[int, ...]]]],
        kinds: list[Kind],
        p: int,
        monitor: Monitor,
        most: int,
        known: float,
    ) -> None:
        self.tables = tables
        self.kinds = sorted(kinds)
        self.member = {
            kind: _membership(supports, kind.anchors, p) for kind, (_, supports) in tables.items()
        }
        # rest[level] bounds what the components from that level on can explain
        heads = [float(tables[kind][0][0]) for kind in self.kinds]
        self.rest = [sum(heads[level:]) for level in range(len(heads) + 1)]
        self.monitor, self.most = monitor, most
        self.looked = 0
        self.complete = True
        self.value, self.supports = known, list[tuple[int, ...]]()

    def search(self) -> None:
        p = self.member[self.kinds[0]].shape[1]
        self._descend(0, np.zeros(p, dtype=bool), 0, 0.0, [])

    def _descend(
        self, level: int, used: np.ndarray, start: int, total: float, chosen: list[tuple[int, ...]]
    ) -> None:
        self.looked += 1
        if self.looked > self.most or self.monitor.stopped:
            self.complete = False
            return
        if total > self.value:
            self.value, self.supports = total, list(chosen)
        if level == len(self.kinds):
            return
        kind = self.kinds[level]
        values, supports = self.tables[kind]
        # Components of one kind are alike: take their supports in increasing position.
        first = start if level and kind == self.kinds[level - 1] else 0
        # The other components of the kind come later in the table, and are worth no more.
        end = level + self.kinds[level:].count(kind)
        alike, others = end - level - 1, self.rest[end]
        # Nothing after this position can lead to a better total.
        least = self.value - total - others
        least /= alike + 1 if least > 0 else 1
        last = int(np.searchsorted(-values, -least, side="left")) if np.isfinite(least) else None
        free = np.flatnonzero(~(self.member[kind][first:last] & used).any(axis=1)) + first
        for i in free:
            most = values[i] + alike * max(values[i], 0.0) + others
            if total + most <= self.value or not self.complete:
                break
            taken = used | self.member[kind][i]
            value = total + float(values[i])
            self._descend(level + 1, taken, int(i) + 1, value, [*chosen, supports[i]])


def _membership(supports: list[tuple[int, ...]], anchors: tuple[int, ...], p: int) -> np.ndarray:
    """Return the places that each support takes, with those of its anchors."""
    member = np.zeros((len(supports), p), dtype=bool)
    for row, support in enumerate(supports):
        member[row, list(support)] = True
    member[:, list(anchors)] = True
    return member


def _padded(chosen: list[tuple[int, ...]], problem: Problem) -> Iterable[tuple[int, ...]]:
    """Give a feature of its own to each component that can explain nothing: an anchor first, then
    that of largest variance, as rounding leaves negative ones in given matrices."""
    used = {i for support in chosen for i in support}
    varying = np.argsort(-problem.covariance.diagonal, kind="stable")
    order = [*problem.forced.tolist(), *varying.tolist()]
    spare = (i for i in order if i not in used)
    yield from chosen
    for _ in range(problem.k - len(chosen)):
        yield (next(spare),)


def _component(A: np.ndarray, support: tuple[int, ...]) -> Component:
    index = np.array(support, dtype=np.intp)
    weights = np.linalg.eigh(A[np.ix_(index, index)])[1][:, -1]
    return Component(index, weights)
