"""The supports near one component while the others stay as they are, for `alternatives`.

The list holds supports of the features that were searched. When a table is read in passes, other
features were dropped. Supports with one of these are not listed, so the list is complete only above
what they explain at most (bounds/dropped.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, prod
from typing import Any

import numpy as np

from ..bounds.dropped import Among, beyond
from ..bounds.pairsplit import proven_bound
from ..bounds.strategy import WHOLE
from ..bounds.tree.core import prove_large
from ..bounds.tree.listing import list_above
from ..bounds.tree.log import Proof
from ..bounds.tree.positive import nonnegative_bound
from ..bounds.tree.question import TreeQuestion
from ..numerics.margins import SAFETY, TIE, few
from ..problem.answers import Cost, Listed, Nearby, reached
from ..problem.components import newcomer_gain, rounding_of_value
from ..problem.constraints import Constraints
from ..problem.monitor import Aside, Monitor
from ..problem.nonnegative import nonnegative_leading, stationary
from ..problem.problem import Component, Problem, informative
from ..problem.result import Result
from .refits import Fits, Known, Start

TOL = 1e-6  # how far below the level asked for a list aims, relative to the largest variance
NODES = 5000
GUESSES = 200  # outsiders that are tried with the features they covary with most


@dataclass(frozen=True)
class Wanted:
    """What is asked of each component."""

    within: float
    most: int
    drop: bool
    force: int

    @property
    def precision(self) -> float:
        """The gap at which a cost is known well enough: a tenth of `within`, and at most 0.1 %."""
        return 0.1 * min(self.within, 0.01)


@dataclass(frozen=True)
class Beside:
    """The question of one component while the others stay as they are."""

    component: int
    s: int
    support: np.ndarray  # with its anchors
    constraints: Constraints


class Neighbours:
    """Finds what is near the components of an answer; `ended` says what ended a list early."""

    def __init__(self, fits: Fits, answer: Result, wanted: Wanted, monitor: Monitor) -> None:
        self.fits, self.answer, self.wanted, self.monitor = fits, answer, wanted, monitor
        self.unit = fits.cov.unit
        self.ended = ""

    def nearby(self, beside: Beside) -> Nearby:
        """Return the list of one component, what its features are worth, and the proof of both."""
        fits, wanted = self.fits, self.wanted
        whole = fits.question((beside.s,), beside.constraints)
        inner = np.union1d(informative(whole), fits.places(beside.support))
        problem = whole.among(inner, fits.cov.restrict(inner).materialise())
        alive = fits.kept[inner]
        place = np.searchsorted(alive, beside.support)
        value = float(self.answer.variances[beside.component]) / self.unit
        # rounding may have raised the answer's value: the level is lower by that much, so that
        # supports exactly as good as the answer are listed
        own = _rounding_of_values(problem)
        asked = (1.0 - wanted.within) * (value - own)
        rounding = SAFETY * problem.covariance.rounding(beside.s)
        proof = self._listing(problem, place, value, asked - rounding, wanted.most)
        level = proof.bound + rounding
        self.ended = self.ended or (
            "" if level <= asked else self.stopped() or _word_for(proof.status)
        )
        groups = _groups(proof, alive)
        answer, j = self.answer, beside.component
        found = Component(answer.supports[j], answer.weights[j])
        supports = self._listed(problem, proof, groups, alive, found)
        level, dropped = self._beyond(whole, beside, supports, level, asked)
        if level > asked:
            self.ended = self.ended or "dropped"
        near = Nearby(
            component=beside.component,
            value=value * self.unit,
            rounding=own * self.unit,
            asked=asked * self.unit,
            level=level * self.unit,
            supports=supports,
            groups=groups,
            drops=(),
            forces=(),
            **self._outsiders(problem, beside.component, supports, groups, level, alive),
            proof={**proof.data(), **dropped, "kept": inner},
        )
        known = Known(proof, alive)
        drops: list[Cost | None] = []
        if wanted.drop:
            anchors = beside.constraints.include[0] if beside.constraints.include else ()
            features = np.setdiff1d(beside.support, anchors)
            for number, f in enumerate(features, 1):
                self.announce(f"without {self.answer.feature_name(int(f))}", number, features.size)
                drops.append(self._drop(near, beside, int(f), known))
        near = _with_forces(near, self._forces(near, beside, known))
        return replace(near, drops=tuple(cost for cost in drops if cost is not None))

    def announce(self, what: str, place: int, count: int) -> None:
        """Say which answer is looked for: each may take as long as a fit."""
        if self.monitor.stopped is None:
            self.monitor.update("alternatives", message=f"{what}, {place} of {count}")

    def stopped(self) -> str:
        """Return what has stopped the run, or "" if nothing has."""
        names = {"time": "time_limit", "user": "interrupted"}
        stopped = self.monitor.stopped
        return "" if stopped is None else names.get(stopped, stopped)

    def _beyond(
        self,
        whole: Problem,
        beside: Beside,
        supports: tuple[Listed, ...],
        level: float,
        asked: float,
    ) -> tuple[float, dict[str, Any]]:
        """Return the level above which no support with a dropped feature is missing either, and its
        proof; the same level where all features were searched."""
        fits = self.fits
        survivors = fits.data.survivors
        if survivors is None:
            return level, {}
        bounds = [entry.bound / self.unit for entry in supports]
        inside = max([level, *bounds]) * (1 + few())
        support = fits.places(beside.support)
        own = Component.even(support)
        among = Among(whole, inside, (), (own,))
        found = beyond(among, survivors.dropped, asked, fits.options, fits.settings.certify)
        data, bound = found.data, found.bound
        told = self.answer.certificate.bounds[0].data["screened"]
        # rows of all features were read for the answer, and say the same of its alternatives
        if len(self.answer.supports) == 1 and told["rule"] == "rows" and told["touching"] < bound:
            data, bound = {"rule": "rows", "split": told["split"]}, float(told["touching"])
        record = {"kept": survivors.kept.astype(np.int32), "inside": inside, **data}
        return max(level, bound), {"screened": {**record, "touching": bound}}

    def _listing(
        self, problem: Problem, support: np.ndarray, value: float, level: float, most: int
    ) -> Proof:
        cov, s = problem.covariance, problem.cardinalities[0]
        scale = max(abs(value), float(cov.diagonal.max(initial=0.0)))
        question = TreeQuestion(
            nonnegative=problem.nonnegative,
            incumbent=(support, value),
            tol=TOL,
            max_nodes=NODES,
            monitor=Aside(self.monitor),
            effort="fast",
            forced=problem.forced,
            level=level - TOL * scale,
            most=most,
        )
        if cov.n_features <= WHOLE:
            return list_above(cov.dense(), s, question)
        return prove_large(cov, s, question)

    def _listed(
        self,
        problem: Problem,
        proof: Proof,
        groups: tuple[np.ndarray, ...],
        alive: np.ndarray,
        found: Component,
    ) -> tuple[Listed, ...]:
        """Return the listed supports with their weights, values and bounds, the best first; one
        that holds the component that was found explains no less."""
        rounding = SAFETY * problem.covariance.rounding(problem.cardinalities[0])
        scale = max(float(problem.covariance.diagonal.max()), 1e-300)
        entries = []
        for support in proof.listed:
            block, own = problem.covariance.submatrix(support), alive[support]
            weights = _weights(block, problem.nonnegative, _carried(found, own, groups))
            if problem.nonnegative:
                bound = nonnegative_bound(block, weights, scale) + rounding
            else:
                top = float(np.linalg.eigvalsh(block)[-1])
                # room for the margins of the checker, which proves the same with its own rounding
                bound = proven_bound(block, top + 1e-12 * scale, scale) + rounding
            value = float(weights @ block @ weights)
            count = prod(comb(g.size, int(np.isin(g, own).sum())) for g in groups)
            entries.append(Listed(own, weights, value * self.unit, bound * self.unit, count))
        return tuple(sorted(entries, key=lambda e: (-e.value, e.support.tolist())))

    def _outsiders(
        self,
        problem: Problem,
        component: int,
        supports: tuple[Listed, ...],
        groups: tuple[np.ndarray, ...],
        level: float,
        alive: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Return what each feature outside the component could be worth in it."""
        cov, nonnegative = problem.covariance, problem.nonnegative
        taken = np.union1d(self.answer.supports[component], alive[problem.forced])
        others = np.setdiff1d(np.arange(cov.n_features), np.searchsorted(alive, taken))
        support = np.searchsorted(alive, self.answer.supports[component])
        weights = self.answer.weights[component]
        room = taken.size < problem.cardinalities[0]
        free = ~np.isin(support, problem.forced)
        if others.size == 0 or not (room or free.any()):
            none = np.empty(0)
            empty = none.astype(np.intp)
            return {"outsiders": empty, "leaving": empty, "with_value": none, "with_bound": none}
        columns = cov.columns(support)
        block = columns[support]
        # the weights without one member each, or as they are where there is room for one more
        vectors = weights[None, :] if room else np.where(np.eye(support.size) > 0, 0.0, weights)
        vectors = vectors if room else vectors[free]
        length = np.linalg.norm(vectors, axis=1)
        vectors = vectors / np.where(length > 0.0, length, 1.0)[:, None]
        values = np.einsum("ti,ij,tj->t", vectors, block, vectors)
        cross = columns[others] @ vectors.T  # (m, t)
        diagonal = cov.diagonal[others][:, None]
        guess = values + newcomer_gain(values, diagonal, cross, nonnegative)
        guess = np.where(length > 0.0, guess, diagonal)  # an outsider alone
        best = np.argmax(guess, axis=1)
        value = np.take_along_axis(guess, best[:, None], 1)[:, 0] * self.unit
        own = alive[others]
        leaving = own if room else alive[support[free][best]]
        bound = np.full(others.size, level * self.unit)
        place = {int(f): i for i, f in enumerate(own)}
        for entry in supports:
            for f in reached(entry, groups):
                if f in place:
                    value[place[f]] = max(value[place[f]], entry.value)
                    bound[place[f]] = max(bound[place[f]], entry.bound)
        return {"outsiders": own, "leaving": leaving, "with_value": value, "with_bound": bound}

    # --- what features are worth ---

    def _drop(self, near: Nearby, beside: Beside, feature: int, known: Known) -> Cost | None:
        """Return the best answer without a feature, from the list or by a fit."""
        others = [e for e in near.supports if feature not in near.needed(e)]
        # if no other feature can take its place, the answer is a smaller support, and lists have
        # none that are contained in another
        listed = None
        if others and near.proof["kept"].size > beside.s:
            best = max(entry.value for entry in others)
            listed = Cost(feature, best, max(near.level, *(entry.bound for entry in others)))
            if listed.bound - listed.value <= self.fits.options.tol * near.value:
                return listed
        if self.monitor.stopped is not None:
            return listed
        exclude = tuple(sorted({*beside.constraints.exclude, feature}))
        size = min(beside.s, self.answer.n_features - len(exclude))
        if not 1 <= size <= self.fits.free(exclude):
            return listed
        start = Start(np.setdiff1d(beside.support, feature), near.value, known)
        fit = self.fits.fit((size,), Constraints(beside.constraints.include, exclude), start)
        if listed is not None:
            value, bound = max(fit.value, listed.value), min(fit.bound, listed.bound)
            return Cost(feature, value, bound, fit)
        most = near.level if near.proof["kept"].size > beside.s else np.inf
        return Cost(feature, fit.value, min(fit.bound, most), fit)

    def _forces(self, near: Nearby, beside: Beside, known: Known) -> list[Cost]:
        """Return the best answers with the outsiders that promise most, the cheapest first.

        An answer with one outsider often uses others, too, which then promise as much.
        """
        promise = np.maximum(near.with_value, self._partnered(near, beside))
        found: list[Cost] = []
        count = min(self.wanted.force, promise.size)
        for place in range(1, count + 1):
            i = int(np.argmax(promise))
            name = self.answer.feature_name(int(near.outsiders[i]))
            self.announce(f"with {name}", place, count)
            cost = self._force(near, beside, i, known)
            if cost is None or cost.fit is None:
                break
            found.append(cost)
            members = np.isin(near.outsiders, cost.fit.supports[0]) & np.isfinite(promise)
            promise[members] = np.maximum(promise[members], cost.value)
            promise[i] = -np.inf
        return sorted(found, key=lambda cost: -cost.value)

    def _partnered(self, near: Nearby, beside: Beside) -> np.ndarray:
        """Return what each outsider explains together with the features it covaries with most.

        Only the GUESSES that do best in the place of a member are tried; the others have -inf.
        """
        fits, guess = self.fits, np.full(near.outsiders.size, -np.inf)
        anchors = np.array([f for own in beside.constraints.include for f in own], dtype=np.intp)
        none = self.wanted.force == 0 or anchors.size >= beside.s or guess.size == 0
        if none or self.monitor.stopped is not None:
            return guess
        inner, first = near.proof["kept"], fits.places(anchors)
        likely = np.argsort(-near.with_value, kind="stable")[:GUESSES]
        places = fits.places(near.outsiders[likely])
        rows = np.abs(fits.cov.submatrix(places, inner))
        partners = []
        for place, row in zip(places, rows):
            order = inner[np.argsort(-row, kind="stable")[: beside.s + anchors.size + 1]]
            both = np.concatenate([first, [place], order])
            chosen = both[np.sort(np.unique(both, return_index=True)[1])][: beside.s]
            partners.append(np.sort(chosen))
        every = np.unique(np.concatenate(partners))
        among = fits.cov.submatrix(every)  # once for all
        for i, chosen in zip(likely, partners):
            own = np.searchsorted(every, chosen)
            guess[i] = float(np.linalg.eigvalsh(among[np.ix_(own, own)])[-1]) * self.unit
        return guess

    def _force(self, near: Nearby, beside: Beside, i: int, known: Known) -> Cost | None:
        """Return the best answer that contains an outsider, by a fit with one more anchor."""
        feature, leaving = int(near.outsiders[i]), int(near.leaving[i])
        own = beside.constraints.include[0] if beside.constraints.include else ()
        if self.monitor.stopped is not None or len(own) >= beside.s:
            return None
        anchors = tuple(sorted({*own, feature}))
        support = np.union1d(np.setdiff1d(beside.support, leaving), feature)
        constraints = Constraints((anchors,), beside.constraints.exclude)
        fit = self.fits.fit((beside.s,), constraints, Start(support, near.value, known))
        return Cost(feature, fit.value, fit.bound, fit)


def _with_forces(near: Nearby, forces: list[Cost]) -> Nearby:
    """Return `near` with what the fits for single outsiders found and proved."""
    low, high = near.with_value.copy(), near.with_bound.copy()
    for cost in forces:
        place = near.outsiders == cost.feature
        low[place] = np.maximum(low[place], cost.value)
        high[place] = np.minimum(high[place], cost.bound)
    return replace(near, forces=tuple(forces), with_value=low, with_bound=high)


def _weights(block: np.ndarray, nonnegative: bool, known: np.ndarray | None) -> np.ndarray:
    """Return the best unit vector for a block that is found, no worse than the known one; its
    largest entry is positive."""
    if nonnegative:
        x = nonnegative_leading(block, known)
        if known is not None and known @ block @ known > (1 + TIE) * (x @ block @ x):
            x = known
        x = stationary(block, x)
    else:
        x = np.linalg.eigh(block)[1][:, -1]
    x = x / np.linalg.norm(x)
    return x if x[int(np.argmax(np.abs(x)))] > 0 else -x


def _carried(
    found: Component, own: np.ndarray, groups: tuple[np.ndarray, ...]
) -> np.ndarray | None:
    """Return the component as a vector on a support that holds it, perhaps after exchanges."""
    moved: dict[int, int] = {}
    for group in groups:
        pair = (of[np.isin(of, group)].tolist() for of in (found.support, own))
        moved.update(zip(*pair))
    places = [moved.get(f, f) for f in found.support.tolist()]
    if len(set(places)) < len(places) or not np.isin(places, own).all():
        return None
    x = np.zeros(own.size)
    x[np.searchsorted(own, places)] = found.weights
    return x


def _groups(proof: Proof, alive: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the groups of features that can be exchanged for each other, by the log."""
    if not proof.log or not proof.log[0]["twins"]:
        return ()
    core = alive if proof.touch is None else alive[proof.touch["core"]]
    twins = proof.log[0]["twins"]
    leaders = np.unique(twins["leaders"])
    return tuple(
        np.sort(core[np.append(twins["features"][twins["leaders"] == leader], leader)])
        for leader in leaders
    )


def _rounding_of_values(problem: Problem) -> float:
    """Return by how much rounding may have raised the value of any support.

    The support of the largest variances has the largest rounding.
    """
    variances, s = problem.covariance.diagonal, problem.cardinalities[0]
    largest = np.argsort(-variances, kind="stable")[:s]
    top = Component.even(np.sort(largest))
    return rounding_of_value(problem, (top,))


def _word_for(status: str) -> str:
    return {"optimal": "nodes", "time": "time_limit", "user": "interrupted"}.get(status, status)
