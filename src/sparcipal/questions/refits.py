"""Fits to questions near one that is answered: without a feature, or with one more anchor.

They begin with the support of the answer and with the core of its proof, which nearly fit; a full
search follows only where the proof stays open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..bounds.strategy import WHOLE
from ..bounds.touch import Touch
from ..bounds.tree.log import Proof
from ..data.searched import Data
from ..fit import Answer, informative, result_of, solve
from ..problem.constraints import Constraints
from ..problem.monitor import Monitor
from ..problem.problem import Component, Problem
from ..problem.result import Result, Status
from ..search.method import Found
from ..search.registry import get_method
from ..search.warm import grow
from ..settings import Settings

TOL = 1e-3  # gap of what a feature is worth, unless the answer has a larger one


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
    """A support to grow, and what is known already."""

    support: np.ndarray
    known: Known


class Fits:
    """Answers questions about the same data, each with its proof."""

    def __init__(self, data: Data, asked: Settings, monitor: Monitor) -> None:
        self.data, self.cov = data, data.formed
        tol = max(asked.tol, TOL)
        self.settings = replace(
            asked,
            method="auto",
            method_options={},
            supports="disjoint",
            objective="sum",
            uncorrelated=False,
            tol=tol,
        )
        self.options = self.settings.options(monitor)

    def fit(
        self, sizes: tuple[int, ...], constraints: Constraints, start: Start | None = None
    ) -> Result:
        """The answer to another question; a start saves the search where the proof closes."""
        whole = Problem(self.cov, sizes, self.settings.nonnegative, constraints=constraints)
        answer = self._from(start, whole) if start is not None and start.support.size else None
        if answer is None or answer.certificate.status is not Status.OPTIMAL:
            fresh = solve(whole, get_method("auto"), {}, self.options, self.settings.certify)
            if answer is None or fresh.certificate.gap < answer.certificate.gap:
                answer = fresh
        record = self.settings.record(sizes, None, self.data, constraints)
        return result_of(answer, whole, self.data, record)

    def _from(self, start: Start, whole: Problem) -> Answer:
        alive = informative(whole)
        support = np.flatnonzero(np.isin(alive, start.support))
        if not whole.include:  # growing knows of no anchors
            cov = self.cov.restrict(alive).materialise()
            support = grow(cov, support, whole.cardinalities[0], whole.nonnegative)
        found = Found((Component(support, np.full(support.size, support.size**-0.5)),))
        warm = replace(get_method("auto"), run=lambda problem, options: found)
        again = start.known.among(alive)
        return solve(whole, warm, {}, self.options, self.settings.certify, again)
