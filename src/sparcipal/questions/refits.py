"""Fits to questions near one that is answered: without a feature, or with one more anchor.

They begin with the support of the answer and with the core of its proof, which nearly fit. Where
the new answer explains much less than the old one, or its proof stays open, a full search follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..bounds.kyfan.certificate import KyFanSplit
from ..bounds.strategy import WHOLE
from ..bounds.touch import Touch
from ..bounds.tree.log import Proof
from ..data.facts import Data
from ..fit import result_of, solve
from ..problem.components import refit_one
from ..problem.constraints import Constraints
from ..problem.monitor import Aside, Monitor
from ..problem.problem import Component, Problem, informative
from ..problem.remembered import remembering
from ..problem.result import Bound, Result, Status
from ..rounds import Answer, extended
from ..search.method import Found
from ..search.registry import get_method
from ..search.warm import grow
from ..settings import Settings

FAR = 0.1  # an answer that loses this share of the variance is searched for from the beginning


@dataclass(frozen=True)
class Known:
    """The proof of an answer, and the features it speaks of."""

    proof: Proof
    alive: np.ndarray

    def among(self, alive: np.ndarray) -> Touch | None:
        """Return the core and its certificate for another question about the features `alive`."""
        touch = self.proof.again
        if not isinstance(touch, Touch) or alive.size <= WHOLE:
            return None
        core = self.alive[touch.core]
        stay = np.flatnonzero(np.isin(core, alive))
        split = touch.split.on(stay).scaled(1.0)
        return replace(touch, core=np.searchsorted(alive, core[stay]), split=split)


@dataclass(frozen=True)
class Start:
    """A support to grow; `value` and `known` are those of the answer it was taken from."""

    support: np.ndarray
    value: float
    known: Known


class Fits:
    """Answers questions about the same data, each with its proof."""

    def __init__(self, data: Data, asked: Settings, monitor: Monitor, tol: float) -> None:
        """`tol` is the gap of the answers, unless a larger one was asked for."""
        self.data, self.cov = data, remembering(data.formed)
        survivors = data.survivors
        # the features that were searched: all, or those that a table read in passes has kept
        self.kept = np.arange(self.cov.n_features) if survivors is None else survivors.kept
        self.asked = replace(
            asked, method="auto", method_options={}, init=None, tol=max(asked.tol, tol)
        )
        self.settings = replace(
            self.asked, supports="disjoint", objective="sum", uncorrelated=False
        )
        self.options = self.settings.options(Aside(monitor))

    def places(self, features: np.ndarray) -> np.ndarray:
        """Return the positions of features among those that were searched, which has them all."""
        return np.searchsorted(self.kept, features).astype(np.intp)

    def free(self, exclude: Sequence[int]) -> int:
        """Count the features that were searched and are not excluded."""
        return int(np.count_nonzero(~np.isin(self.kept, exclude)))

    def question(self, sizes: tuple[int, ...], constraints: Constraints) -> Problem:
        """Return the question with features numbered by their positions among those searched."""
        whole = Problem(self.cov, sizes, self.settings.nonnegative, constraints=constraints)
        if self.data.survivors is None:
            return whole
        dropped = float(self.data.survivors.dropped.max(initial=0.0))
        return replace(whole.among(self.kept, self.cov), dropped=dropped)

    def fit(
        self, sizes: tuple[int, ...], constraints: Constraints, start: Start | None = None
    ) -> Result:
        """Return the answer to another question; a start saves the search if its proof closes."""
        whole = self.question(sizes, constraints)
        answer = self._from(start, whole) if start is not None and start.support.size else None
        if answer is None:
            answer = solve(whole, get_method("auto"), {}, self.options, self.settings.certify)
        return self._result(answer, whole, self.settings, constraints)

    def joint(
        self,
        sizes: tuple[int, ...],
        constraints: Constraints,
        supports: Sequence[np.ndarray],
        shared: KyFanSplit | None,
        *,
        hard: bool,
    ) -> Result:
        """Return several components that answer another question.

        The search starts from known `supports`, the proof from `shared`: the split of a joint proof
        of a similar question, on the features that were searched. Where proofs are `hard`, better
        supports are searched for before one, as a proof that stays open would be made again.
        """
        whole = self.question(sizes, constraints)
        alive, auto = informative(whole), get_method("auto")
        certify = self.settings.certify
        start = None
        if shared is not None:
            split = shared.among(alive)
            start = Bound("kyfan", np.inf, split.data()) if split.features.size else None
        known = tuple(Component.even(np.searchsorted(alive, self.places(own))) for own in supports)
        warm = replace(auto, run=lambda problem, options: Found(known))
        answer = solve(whole, warm, {}, self.options, False if hard else certify, start)
        closed = answer.certificate.status is Status.OPTIMAL
        if not closed and self.options.monitor.stopped is None:
            other = solve(whole, auto, {}, self.options, False)
            better = other.certificate.value > answer.certificate.value * (1 + self.options.tol)
            if better:
                known = tuple(
                    Component(np.searchsorted(alive, c.support), c.weights)
                    for c in other.components
                )
            if better or (hard and certify):
                answer = solve(whole, warm, {}, self.options, certify, start)
        return self._result(answer, whole, self.settings, constraints)

    def of_the_kind(
        self, sizes: tuple[int, ...], total: int | None, constraints: Constraints
    ) -> Problem:
        """Return the question for components of the kind that was asked for, which may overlap."""
        asked = self.asked
        return replace(
            self.question(sizes, constraints),
            supports=asked.supports,
            objective=asked.objective or "sum",
            uncorrelated=asked.uncorrelated,
            total=total,
        )

    def again(
        self, whole: Problem, constraints: Constraints, supports: Sequence[np.ndarray]
    ) -> Result:
        """Return the answer to a question made by `of_the_kind`, searched from known `supports`."""
        known = tuple(map(self.places, supports))
        begun, effort = whole, {}
        if whole.total is None:  # a total is searched from starts of its own
            # uncorrelated components without a feature are often far from those with it
            begun = replace(whole, starts=(known,))
            effort = {"effort": int(whole.uncorrelated)}
        answer = solve(begun, get_method("auto"), effort, self.options, self.asked.certify)
        return self._result(answer, whole, self.asked, constraints)

    def _result(
        self, answer: Answer, whole: Problem, settings: Settings, constraints: Constraints
    ) -> Result:
        """Extend what was found and proved among the features searched to all features."""
        shown, _ = extended(answer, whole, self.data, self.options, settings.certify)
        record = settings.record(whole.cardinalities, whole.total, self.data, constraints)
        return result_of(shown, whole, self.data, record)

    def _from(self, start: Start, whole: Problem) -> Answer | None:
        """Return the answer that grows out of the start; None if another one is likely to be
        better."""
        alive = informative(whole)
        support = np.flatnonzero(np.isin(self.kept[alive], start.support))
        if not whole.include:  # growing knows of no anchors
            cov = self.cov.restrict(alive).materialise()
            support = grow(cov, support, whole.cardinalities[0], whole.nonnegative)
        even = Component.even(alive[support])
        near = refit_one(self.cov, even, whole.nonnegative)
        value = float(near.weights @ self.cov.submatrix(near.support) @ near.weights)
        if value * self.cov.unit < (1 - FAR) * start.value:
            return None
        found = Found((Component(support, even.weights),))
        warm = replace(get_method("auto"), run=lambda problem, options: found)
        again, certify = start.known.among(self.kept[alive]), self.settings.certify
        answer = solve(whole, warm, {}, self.options, certify, again)
        if answer.certificate.status is Status.OPTIMAL or self.options.monitor.stopped is not None:
            return answer
        # a search without its proof is cheap; only a better answer is worth another proof
        other = solve(whole, get_method("auto"), {}, self.options, False)
        better = other.certificate.value > answer.certificate.value * (1 + self.options.tol)
        return None if better else answer
