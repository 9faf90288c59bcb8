"""Rounds of search and proof: what is proved of the kept features is extended to all, and more are
kept while that leaves too much.

A table that is held has one round. One that is read in passes has as many as its features ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .bounds.dropped import Kept, Widened, narrowed, widened
from .data.searched import Data, Known, Searched
from .problem.components import variances
from .problem.monitor import Partial
from .problem.problem import Component, Options, Problem
from .problem.result import Certificate
from .search.method import Found
from .verdict import cut_short, extended_claim


@dataclass(frozen=True)
class Answer:
    """Components on all features, with what was proved; still in inside units."""

    components: tuple[Component, ...]
    certificate: Certificate
    found: Found
    alive: np.ndarray  # the features that were searched, by which `again` numbers them
    again: Any = None  # what the proof for a neighbouring cardinality may begin with
    left: float = 0.0  # the gap of the proof that neighbouring cardinalities are bounded by


def settled(
    searched: Searched,
    question: Callable[[Data], Problem],
    answer: Callable[[Problem, Answer | None, Options], Answer],
    options: Options,
    certify: Any,
    before: Answer | None = None,
) -> tuple[Answer, Answer]:
    """Solve, and keep more features until what is proved of them holds for all.

    Returns the answer among the kept features, and what is said of all. `before` is an answer to a
    similar question, among the same kept features.
    """
    options.monitor.begin_question()
    best: Round | None = None
    tried = False  # whether rows were read for a bound while more features could be kept
    while True:
        data = searched.data
        whole = question(data)
        # what is proved of the kept features is not yet of all
        part = options if data.survivors is None else _partial(options)
        inside = answer(whole, before, part)
        shown, wide = extended(inside, whole, data, part, certify)
        if wide is not None:
            claim = shown.certificate
            options.monitor.update("all features", value=claim.value, bound=claim.bound)
        if wide is None or wide.settled:
            break
        values = variances(whole, inside.components).tolist()
        known = Known(inside.components, values, whole.nonnegative)
        try:
            best = Round.of(inside, shown, data).unless(best)
            early = searched.looked and not tried  # rows may take less than more features do
            if early:
                tried = True
                shown, missed = _narrowed(whole, inside, shown, searched, options, certify)
                best = Round.of(inside, shown, data).unless(best)
                if shown.certificate.bound <= wide.target:
                    break
            if not searched.more(wide.enough, known):
                if not early:
                    shown, missed = _narrowed(whole, inside, shown, searched, options, certify)
                    best = Round.of(inside, shown, data).unless(best)
                if not searched.exchange(missed, known):
                    break
        except (KeyboardInterrupt, TimeoutError):
            claim = cut_short(shown.certificate, options.monitor.stopped)
            return inside, replace(shown, certificate=claim)
        before = _moved(inside, data, searched.data)
    last = Round.of(inside, shown, data)
    best = last.unless(best)
    if best is not last and best.kept is not None:
        try:  # the data that the better answer speaks of
            searched.back_to(best.kept)
        except (KeyboardInterrupt, TimeoutError):
            return inside, shown
    return best.inside, best.shown


@dataclass(frozen=True, eq=False)
class Round:
    """An answer among some kept features; the data are not held beyond it."""

    inside: Answer
    shown: Answer
    kept: np.ndarray | None
    unit: float

    @staticmethod
    def of(inside: Answer, shown: Answer, data: Data) -> Round:
        kept = None if data.survivors is None else data.survivors.kept
        return Round(inside, shown, kept, data.covariance.unit)

    def unless(self, before: Round | None) -> Round:
        """Return this round, unless the one before it is as good and more was proved of it."""
        if before is None:
            return self
        old, new = before.shown.certificate, self.shown.certificate
        ratio = before.unit / self.unit
        as_good = old.value * ratio * (1 + 1e-12) >= new.value
        return before if as_good and old.bound * ratio < new.bound else self


def _narrowed(
    whole: Problem,
    inside: Answer,
    shown: Answer,
    searched: Searched,
    options: Options,
    certify: Any,
) -> tuple[Answer, np.ndarray]:
    """Return what is said of all features by rows of their covariance; also features that were
    missed."""
    kept = searched.data.survivors
    if not searched.in_passes or kept is None:
        return shown, np.empty(0, dtype=np.intp)
    among, every = Kept(whole, inside.components, inside.certificate, kept), searched.every_row()
    found = narrowed(among, shown.certificate, every, _partial(options), certify)
    claim = extended_claim(found.certificate, among.certificate, searched.data.scaled)
    options.monitor.update("all features", value=claim.value, bound=claim.bound)
    return replace(shown, certificate=claim), found.missed


def _partial(options: Options) -> Options:
    return replace(options, monitor=Partial(options.monitor))


def _moved(answer: Answer, old: Data, new: Data) -> Answer:
    """Return the same components among more kept features."""
    assert old.survivors is not None
    assert new.survivors is not None
    kept, now = old.survivors.kept, new.survivors.kept
    components = tuple(
        Component(np.searchsorted(now, kept[c.support]), c.weights) for c in answer.components
    )
    return replace(answer, components=components, again=None)


def extended(
    answer: Answer, whole: Problem, data: Data, options: Options, certify: Any
) -> tuple[Answer, Widened | None]:
    """Return what was proved of the kept features, said of all; None where none was dropped."""
    if data.survivors is None:
        return answer, None
    wide = widened(whole, answer.certificate, answer.components, data.survivors, options, certify)
    certificate = extended_claim(wide.certificate, answer.certificate, data.scaled)
    return replace(answer, certificate=certificate), wide
