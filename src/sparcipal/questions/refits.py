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
from ..data.searched import Data
from ..fit import Answer, informative, result_of, solve
from ..problem.components import refit_one
from ..problem.constraints import Constraints
from ..problem.monitor import Monitor
from ..problem.problem import Component, Problem
from ..problem.remembered import remembering
from ..problem.result import Bound, Result, Status
from ..search.method import Found
from ..search.registry import get_method
from ..search.warm import grow
from ..settings import Settings

FAR = 0.1  # share of the variance after whose loss an answer is likely to be another one


@dataclass(frozen=True)
class Known:
    """The proof of an answer, and the features it speaks of."""

    proof: Proof
    alive: np.ndarray

    def among(self, alive: np.ndarray) -> Touch | None:
        """The core and its certificate for the features that another question has."""
        touch = self.proof.again
        if not isinstance(touch, Touch) or alive.size <= WHOLE:
            return None
        core = self.alive[touch.core]
        stay = np.flatnonzero(np.isin(core, alive))
        split = touch.split.on(stay).scaled(1.0)
        return replace(touch, core=np.searchsorted(alive, core[stay]), split=split)


@dataclass(frozen=True)
class Start:
    """A support to grow, what it came from explains, and what is known of that."""

    support: np.ndarray
    value: float
    known: Known


class Fits:
    """Answers questions about the same data, each with its proof."""

    def __init__(self, data: Data, asked: Settings, monitor: Monitor, tol: float) -> None:
        """`tol` is the gap of the answers, unless a larger one was asked for."""
        self.data, self.cov = data, remembering(data.formed)
        self.settings = replace(
            asked,
            method="auto",
            method_options={},
            supports="disjoint",
            objective="sum",
            uncorrelated=False,
            tol=max(asked.tol, tol),
        )
        self.options = self.settings.options(monitor)

    def fit(
        self, sizes: tuple[int, ...], constraints: Constraints, start: Start | None = None
    ) -> Result:
        """The answer to another question; a start saves the search where the proof closes."""
        whole = Problem(self.cov, sizes, self.settings.nonnegative, constraints=constraints)
        answer = self._from(start, whole) if start is not None and start.support.size else None
        if answer is None:
            answer = solve(whole, get_method("auto"), {}, self.options, self.settings.certify)
        record = self.settings.record(sizes, None, self.data, constraints)
        return result_of(answer, whole, self.data, record)

    def joint(
        self,
        sizes: tuple[int, ...],
        constraints: Constraints,
        supports: Sequence[np.ndarray],
        shared: KyFanSplit | None,
    ) -> Result:
        """The answer of several components to another question, from known `supports` and from the
        split of a joint proof, on all features, that nearly fits."""
        whole = Problem(self.cov, sizes, self.settings.nonnegative, constraints=constraints)
        alive, auto = informative(whole), get_method("auto")
        certify = self.settings.certify
        start = None
        if shared is not None:
            split = shared.among(alive)
            start = Bound("kyfan", np.inf, split.data()) if split.features.size else None
        known = tuple(
            Component(np.searchsorted(alive, own), np.full(own.size, own.size**-0.5))
            for own in supports
        )
        warm = replace(auto, run=lambda problem, options: Found(known))
        answer = solve(whole, warm, {}, self.options, certify, start)
        closed = answer.certificate.status is Status.OPTIMAL
        if not closed and self.options.monitor.stopped is None:
            other = solve(whole, auto, {}, self.options, False)
            if other.certificate.value > answer.certificate.value * (1 + self.options.tol):
                place = {int(f): i for i, f in enumerate(alive)}
                known = tuple(
                    Component(np.array([place[int(f)] for f in c.support]), c.weights)
                    for c in other.components
                )
                answer = solve(whole, warm, {}, self.options, certify, start)
        record = self.settings.record(sizes, None, self.data, constraints)
        return result_of(answer, whole, self.data, record)

    def _from(self, start: Start, whole: Problem) -> Answer | None:
        """The answer that grows out of the start; None if another one is likely to be better."""
        alive = informative(whole)
        support = np.flatnonzero(np.isin(alive, start.support))
        if not whole.include:  # growing knows of no anchors
            cov = self.cov.restrict(alive).materialise()
            support = grow(cov, support, whole.cardinalities[0], whole.nonnegative)
        even = Component(alive[support], np.full(support.size, support.size**-0.5))
        near = refit_one(self.cov, even, whole.nonnegative)
        value = float(near.weights @ self.cov.submatrix(near.support) @ near.weights)
        if value * self.cov.unit < (1 - FAR) * start.value:
            return None
        found = Found((Component(support, even.weights),))
        warm = replace(get_method("auto"), run=lambda problem, options: found)
        again, certify = start.known.among(alive), self.settings.certify
        answer = solve(whole, warm, {}, self.options, certify, again)
        if answer.certificate.status is Status.OPTIMAL or self.options.monitor.stopped is not None:
            return answer
        # a search without its proof is cheap; only a better answer is worth another proof
        other = solve(whole, get_method("auto"), {}, self.options, False)
        better = other.certificate.value > answer.certificate.value * (1 + self.options.tol)
        return None if better else answer
