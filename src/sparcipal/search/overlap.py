"""Search for every kind of components that is not the plain sum over disjoint supports.

The answers of a kind that another kind contains are among the starts of the other one, so that a
larger set of choices never has the smaller value:

    common        within orthogonal, and within free
    disjoint      within orthogonal; with adjusted variances, within free
    uncorrelated  within free, or within disjoint adjusted ones
    orthogonal    starts free as well
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ..problem.components import refit_one, variances
from ..problem.covariance import Covariance
from ..problem.problem import Component, Options, Problem
from .ascent import ascend
from .commonset import best_set
from .deflation import Single, beyond, deflate
from .tied import of_every_support

Answer = tuple[Component, ...]
Found = TypeVar("Found")


def _apart(sizes: tuple[int, ...], p: int) -> tuple[int, ...]:
    """Return sizes of disjoint supports among p features; the largest give way where need be."""
    left = list(sizes)
    while sum(left) > p:
        left[int(np.argmax(left))] -= 1
    return tuple(left)


def _orders(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the orders in which components of such sizes are made one after the other."""
    return list(dict.fromkeys([sizes, sizes[::-1]]))


@dataclass(frozen=True)
class Tools:
    """What simpler problems are answered with."""

    apart: Callable[[tuple[int, ...]], Answer]  # disjoint supports and a large sum of variances
    one: Callable[[Covariance, int], np.ndarray]  # a support for one component
    simple: Sequence[Answer]  # answers of simple methods


class Overlap:
    """The search for one problem; answers to the smaller problems are found once each."""

    def __init__(self, problem: Problem, options: Options, tools: Tools, effort: int) -> None:
        """`effort` says how many starts near the best answers follow."""
        self.problem, self.options, self.effort = problem, options, effort
        self.apart, self.one, self.simple = tools.apart, tools.one, list(tools.simple)
        self.sizes = _apart(problem.cardinalities, problem.covariance.n_features)
        self._found: dict[str, Any] = {}

    def best(self) -> Answer:
        problem = self.problem
        if problem.common:
            return self._common()
        if self.effort == 0 and problem.starts and not problem.uncorrelated:
            # near an answer that is known, those of other kinds hardly lead to a better one
            return ascend(problem, self._shared(), self.one, self.options, 0)
        if problem.orthogonal:
            return self._orthogonal()
        if problem.uncorrelated:
            return self._uncorrelated(problem.supports)
        return self._disjoint() if problem.supports == "disjoint" else self._free()

    def _free(self) -> Answer:
        starts = [*self._shared(), self._disjoint()]
        if not self.problem.nonnegative:
            starts += [self._orthogonal()]
            sizes = self.problem.cardinalities
            if len(set(sizes)) == 1 and self.problem.k <= sizes[0]:
                starts.append(self._common())
            if all(s >= j for j, s in enumerate(sorted(sizes), 1)):
                starts.append(self._uncorrelated("free"))
        return self._ascended(starts, supports="free", objective="adjusted", uncorrelated=False)

    def _once(self, name: str, find: Callable[[], Found]) -> Found:
        if name not in self._found:
            self._found[name] = find()
        found: Found = self._found[name]
        return found

    def _shared(self) -> list[Answer]:
        """Return components found one after the other, and those of simple methods."""
        return [*self._in_turn(), *self.simple]

    def _in_turn(self) -> list[Answer]:
        """Return components found one after the other, the longest or the shortest first."""
        return [
            self._once(f"in turn {sizes}", partial(self._one_by_one, sizes))
            for sizes in _orders(self.problem.cardinalities)
        ]

    def _one_by_one(self, sizes: tuple[int, ...]) -> Answer:
        def single(problem: Problem, rng: np.random.Generator) -> Single:
            support = self.one(problem.covariance, problem.s_max)
            return Single(Component.even(support))

        kind = {"supports": "free", "objective": "adjusted", "uncorrelated": False}
        free = self._as(sizes=sizes, **kind)
        return self._weighted(deflate(free, self.options, single).components)

    def _weighted(self, components: Answer) -> Answer:
        cov, nonnegative = self.problem.covariance, self.problem.nonnegative
        return tuple(refit_one(cov, c, nonnegative) for c in components)

    def _disjoint(self) -> Answer:
        """Return components with disjoint supports and a large adjusted variance."""
        return self._once("disjoint", self._search_disjoint)

    def _search_disjoint(self) -> Answer:
        starts = [self._largest_sum(), *map(self._apart_one_by_one, _orders(self.sizes))]
        starts += [self._made_disjoint(answer) for answer in self._shared()]
        return self._ascended(
            starts, supports="disjoint", objective="adjusted", uncorrelated=False, sizes=self.sizes
        )

    def _apart_one_by_one(self, sizes: tuple[int, ...]) -> Answer:
        """Return components of which each explains most beyond those before, on other features."""
        cov = self.problem.covariance
        free = np.arange(cov.n_features)
        found: list[Component] = []
        for s in sizes:
            rest = beyond(cov, found).restrict(free)
            places = self.one(rest, s)
            best = refit_one(rest, Component.even(places), self.problem.nonnegative)
            found.append(Component(free[best.support], best.weights))
            free = np.setdiff1d(free, free[places])
        return tuple(found)

    def _orthogonal(self) -> Answer:
        starts = [self._largest_sum(), *self._in_turn()]
        sizes = self.problem.cardinalities
        if len(set(sizes)) == 1 and self.problem.k <= sizes[0]:
            starts.append(self._common())
        return self._ascended(starts, supports="orthogonal", objective="sum", uncorrelated=False)

    def _uncorrelated(self, supports: str) -> Answer:
        kind = self._uncorrelated_kind(supports)
        found = [self._uncorrelated_way(supports, tight) for tight in (False, True)]
        return max(found, key=lambda one: float(variances(kind, one).sum()))

    def _uncorrelated_kind(self, supports: str) -> Problem:
        sizes = self.sizes if supports == "disjoint" else self.problem.cardinalities
        return self._as(supports=supports, objective="adjusted", uncorrelated=True, sizes=sizes)

    def _uncorrelated_way(self, supports: str, tight: bool) -> Answer:
        """Return where one of two ways ends; each begins a free one with its own disjoint one,
        because a better start may well lead to a worse end."""
        return self._once(
            f"uncorrelated {supports} {tight}", partial(self._search_uncorrelated, supports, tight)
        )

    def _search_uncorrelated(self, supports: str, tight: bool) -> Answer:
        kind = self._uncorrelated_kind(supports)
        starts: list[Answer] = []
        if supports == "free" and all(s >= j for j, s in enumerate(sorted(self.sizes), 1)):
            starts.append(self._uncorrelated_way("disjoint", tight))
        every = self._once(f"every {supports}", lambda: of_every_support(kind, self.options))
        if every is not None:
            return max([every, *starts], key=lambda one: float(variances(kind, one).sum()))
        starts.append(self._disjoint())
        if supports == "free":
            sizes = kind.cardinalities
            starts += self._shared()
            if len(set(sizes)) == 1 and self.problem.k <= sizes[0]:
                starts.append(self._common())
        # every exchange is dear here, and more starts near the best answer hardly find a better one
        effort = min(self.effort, 1)
        return ascend(kind, starts, self.one, self.options, effort, tight=tight)

    def _common(self) -> Answer:
        return self._once("common", self._search_common)

    def _search_common(self) -> Answer:
        starts = [self._largest_sum(), *self.simple]
        problem = self._as(supports="common", objective="sum", uncorrelated=False)
        return best_set(problem, starts, self.options)

    def _largest_sum(self) -> Answer:
        return self._once("sum", lambda: self.apart(self.sizes))

    def _made_disjoint(self, components: Answer) -> Answer:
        """Give every feature to the component with the largest weight; fill up by variance."""
        p = self.problem.covariance.n_features
        W = np.abs(np.column_stack([c.vector(p) for c in components]))
        owner = np.where(W.any(axis=1), W.argmax(axis=1), -1)
        spare = [int(i) for i in np.argsort(-self.problem.covariance.diagonal) if owner[i] < 0]
        made = []
        for j, s in enumerate(self.sizes):
            own = np.flatnonzero(owner == j)
            own = own[np.argsort(-W[own, j], kind="stable")][:s]
            while own.size < s and spare and (own.size == 0 or len(spare) > self.problem.k):
                own = np.append(own, spare.pop(0))
            if own.size == 0:
                return self._largest_sum()
            made.append(Component.even(np.sort(own)))
        return self._weighted(tuple(made))

    def _as(self, *, sizes: tuple[int, ...] | None = None, **changed: object) -> Problem:
        kind = replace(self.problem, **changed)  # type: ignore[arg-type]
        return kind if sizes is None else replace(kind, cardinalities=sizes)

    def _ascended(
        self, starts: Sequence[Answer], sizes: tuple[int, ...] | None = None, **kind: object
    ) -> Answer:
        return ascend(self._as(sizes=sizes, **kind), starts, self.one, self.options, self.effort)
