"""Rounds of search and proof: what is proved of the kept features is extended to all, and more are
kept while that leaves too much.

A table that is held has one round. One that is read in passes has as many as its features ask for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .bounds.dropped import PAD, ROUGH, Kept, Widened, narrowed, widened
from .bounds.kyfan import SMALL
from .data.facts import Data
from .data.searched import Known, Searched
from .numerics.margins import TINY
from .problem.components import variances
from .problem.monitor import Aside, Monitor, Partial
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
) -> Settled:
    """Solve, and keep more features until what is proved of them holds for all.

    `before` is an answer to a similar question, among the same kept features.
    """
    best: Round | None = None
    unpriced = False  # whether rows of all features take the place of prices for the dropped ones
    tried = False  # whether rows were read for a bound while more features could be kept
    monitor = options.monitor
    monitor.begin_question()
    while True:
        data = searched.data
        whole = question(data)
        if unpriced:
            whole = replace(whole, dropped=min(whole.dropped, TINY))
        part = options if data.survivors is None else _partial(options, best)
        inside = answer(whole, before, part)
        shown, wide = extended(inside, whole, data, part, certify)
        if wide is None:  # what was proved is proved of all features
            return Settled(inside, shown, data)
        best = _better(Round.of(inside, shown, whole, data), best, monitor)
        if wide.settled and shown.certificate.gap <= ROUGH:
            break
        if not unpriced and _dear(shown, inside, whole, searched):
            unpriced, before = True, inside
            continue
        values = variances(whole, inside.components).tolist()
        known = Known(inside.components, values, whole.nonnegative)
        try:
            if wide.settled:  # the bound needs no more features, but the components may
                if not (certify and searched.beside(known)):
                    break
                before = _moved(inside, data, searched.data)
                continue
            early = searched.looked and not tried  # rows may take less than more features do
            if early:
                tried = True
                shown, missed = _narrowed(whole, inside, shown, searched, options, certify)
                best = _better(Round.of(inside, shown, whole, data), best, monitor)
                if shown.certificate.bound <= wide.target:
                    break
            if not searched.more(wide.enough, known):
                if not early:
                    shown, missed = _narrowed(whole, inside, shown, searched, options, certify)
                    best = _better(Round.of(inside, shown, whole, data), best, monitor)
                if not searched.exchange(missed, known):
                    break
        except (KeyboardInterrupt, TimeoutError):
            best = best.cut_short(monitor.stopped)
            break
        before = _moved(inside, data, searched.data)
    with contextlib.suppress(KeyboardInterrupt, TimeoutError):
        if monitor.stopped is None:
            searched.back_to(best.kept)
    return best.on(searched.data)


@dataclass(frozen=True, eq=False)
class Settled:
    """An answer, what was proved of all features, and the data for what is told of it."""

    inside: Answer | None  # among the features that are searched now; None if they are others
    shown: Answer  # among the features of `data`
    data: Data


@dataclass(frozen=True, eq=False)
class Round:
    """An answer among some kept features; of the data only what it uses is held beyond it."""

    inside: Answer
    shown: Answer
    kept: np.ndarray
    used: Data

    @staticmethod
    def of(inside: Answer, shown: Answer, whole: Problem, data: Data) -> Round:
        assert data.survivors is not None
        asked = whole.n_nonzero + len(whole.constraints.exclude)  # features that there must be
        some = np.arange(min(asked, data.covariance.n_features))
        places = np.concatenate([some, *(component.support for component in inside.components)])
        return Round(inside, shown, data.survivors.kept, data.part(np.unique(places)))

    def cut_short(self, stopped: str | None) -> Round:
        """Return the same for a run that was stopped when it was about to go on."""
        claim = cut_short(self.shown.certificate, stopped)
        return replace(self, shown=replace(self.shown, certificate=claim))

    def on(self, data: Data) -> Settled:
        """Return the answer beside the data that were searched last."""
        assert data.survivors is not None
        assert self.used.survivors is not None
        now, used = data.survivors.kept, self.used.survivors.kept
        if np.array_equal(now, self.kept):
            return Settled(self.inside, self.shown, data)
        known = np.isin(used, now).all()
        inside = _renumbered(self.inside, self.kept, now) if known else None
        return Settled(inside, _renumbered(self.shown, self.kept, used), self.used)


def _better(new: Round, before: Round | None, monitor: Monitor) -> Round:
    """Return the round with the smaller gap, and report what is said of it."""
    best = new
    if before is not None and before.shown.certificate.gap < new.shown.certificate.gap:
        best = before
    claim = best.shown.certificate
    ratio = best.used.covariance.unit / new.used.covariance.unit
    monitor.begin_question()  # of values and bounds that belong together
    monitor.update("all features", value=claim.value * ratio, bound=claim.bound * ratio)
    return best


def _dear(shown: Answer, inside: Answer, whole: Problem, searched: Searched) -> bool:
    """Return whether prices that keep dropped features away leave a wide gap, where the covariances
    of all features can be read instead and not all kept ones are in the core."""
    paid = (float(b.data["pad"]) for b in inside.certificate.bounds if b.name == "kyfan")
    usual = PAD * inside.certificate.value / whole.n_nonzero
    return (
        shown.certificate.gap > ROUGH
        and whole.covariance.n_features > SMALL
        and max(paid, default=0.0) > 2 * usual
        and searched.rows_are_cheap
    )


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
    return replace(shown, certificate=claim), found.missed


def _partial(options: Options, best: Round | None = None) -> Options:
    """Return the options of a part of the features, whose bounds are not reported; nor are the
    values of a later round, which may prove too little to be the answer."""
    outer = options.monitor
    return replace(options, monitor=Partial(outer) if best is None else Aside(outer))


def _moved(answer: Answer, old: Data, new: Data) -> Answer:
    """Return the same components among more kept features."""
    assert old.survivors is not None
    assert new.survivors is not None
    return _renumbered(answer, old.survivors.kept, new.survivors.kept)


def _renumbered(answer: Answer, kept: np.ndarray, now: np.ndarray) -> Answer:
    """Return the same components among other kept features."""
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
