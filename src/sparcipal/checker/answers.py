"""Alternatives to an answer (docs/methods/listing.rst), rechecked list by list.

The log of a list is replayed as that of a tree, with the listed supports left aside; what is said
of features follows from the list, or from fits that are rechecked as results of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import comb, prod
from typing import Any

import numpy as np

from ..problem.answers import Alternatives, Cost, Listed, Nearby
from ..problem.result import Result
from .arithmetic import Arithmetic, at_least
from .budget import Budget, require
from .constraints import numbered, with_anchors
from .covariance import EPS, CheckedCovariance, Question
from .dropped import ScreenedCovariance, touching
from .family import Case, family_of
from .gate import parse
from .records import Among, FeatureCost, ListedSupport, NearbyClaim, Problem, Tree, Twins
from .signs import none_above
from .tree import proved_by

STATUS = ("complete", "more", "nodes", "time_limit", "interrupted", "memory", "dropped")
# The part of deviations by which covariances of features that are exchanged may differ.
EQUAL = 2e-13
# The part of a value by which listed supports may fall short of what was asked for.
NEAR = 1e-5
# The part of a value by which bounds of listed supports may exceed it where weights have signs, and
# the part that the search for weights without signs may leave of their gradient.
BEST = 1e-9
AMONG = ("kept", "screened")  # what a proof says beside the record of a tree
# What the fit behind a cost has in common with the answer.
SAME = ("nonnegative", "center", "scale", "sample_weight", "missing")
# What the fit without a feature in any component has in common with it besides, and what the fit of
# one component is.
KIND = ("supports", "objective", "uncorrelated", "n_nonzero_total")
ALONE = dict(zip(KIND, ("disjoint", "sum", False, None)))


@dataclass(frozen=True)
class Answer:
    """The answer, whose own claim was rechecked, and the covariance of its data; `proved` rechecks
    other answers about them."""

    result: Result
    cov: CheckedCovariance
    rounded: CheckedCovariance
    proved: Callable[[Result], Result]
    ar: Arithmetic
    budget: Budget

    @property
    def exclude(self) -> set[int]:
        return set(self.result.settings.get("exclude") or ())

    @property
    def include(self) -> tuple[tuple[int, ...], ...]:
        given = self.result.settings.get("include") or ((),) * len(self.result.supports)
        return tuple(tuple(own) for own in given)

    def sizes(self) -> list[int]:
        """Return the cardinality of each component: with anchors in their order, otherwise the
        largest components have the largest."""
        sizes = list(self.result.settings["n_nonzero_coefs"])
        if self.result.settings.get("include"):
            return sizes
        used = [support.size for support in self.result.supports]
        order = sorted(range(len(used)), key=lambda i: -used[i])
        out = [0] * len(used)
        for i, s in zip(order, sorted(sizes, reverse=True)):
            out[i] = s
        return out


def check_alternatives(found: Alternatives, answer: Answer) -> None:
    """Refuse the alternatives unless all of them follow from the answer."""
    result = answer.result
    settings, k = result.settings, len(result.supports)
    require(settings.get("missing") != "pairwise", "alternatives of another question")
    kind = {name: settings.get(name) for name in KIND}
    plain = kind["n_nonzero_total"] is None if k == 1 else kind == ALONE
    within = found.within
    require(type(within) is float and 0.0 <= within <= 1.0, "within is no share")
    require(type(found.status) is str and found.status in STATUS, "a status that is none")
    for listed in (found.components, found.drops):
        require(type(listed) in (list, tuple), "components and drops: not lists")
    lists = k if plain else 0  # there are no lists for components that overlap
    require(len(found.components) == lists, "there is not one list per component")
    complete = True
    for j, near in enumerate(found.components):
        claim = _claimed(near, result.n_features)
        require(claim.component == j, "the lists are not in the order of the components")
        _Component(answer, claim, near, j).check(within)
        complete &= claim.level <= claim.asked
    require(complete or found.status != "complete", "a list may not be complete")
    require(k > 1 or not found.drops, "joint costs of one component")
    for cost in found.drops:
        _check_joint(cost, answer)


def _claimed(near: Nearby, p: int) -> NearbyClaim:
    require(type(near) is Nearby, "a list that is none")
    raw: dict[str, Any] = {field.name: getattr(near, field.name) for field in fields(NearbyClaim)}
    for name, kind, schema in (
        ("supports", Listed, ListedSupport),
        ("drops", Cost, FeatureCost),
        ("forces", Cost, FeatureCost),
    ):
        require(type(raw[name]) in (list, tuple), f"{name}: not a list")
        require(all(type(one) is kind for one in raw[name]), f"{name}: not a list of them")
        raw[name] = [{f.name: getattr(one, f.name) for f in fields(schema)} for one in raw[name]]
    return parse(NearbyClaim, raw, {"P": p}, "alternatives")


class _Component:
    """One component beside the others."""

    def __init__(self, answer: Answer, claim: NearbyClaim, near: Nearby, j: int) -> None:
        self.answer, self.claim, self.near, self.j = answer, claim, near, j
        self.taken = with_anchors(answer.result)
        self.s = answer.sizes()[j]
        others = (set(t.tolist()) for i, t in enumerate(self.taken) if i != j)
        self.exclude = answer.exclude.union(*others)
        self.anchors = answer.include[j]
        self.change = 0.0  # by which rows of features that are exchanged differ
        require("kept" in claim.proof, "alternatives that do not name the features of their proof")
        told = {name: claim.proof[name] for name in AMONG if name in claim.proof}
        self.among = parse(Among, told, {"P": answer.cov.p, "p": answer.cov.p}, "alternatives")
        inner, known = answer.cov.known()
        places = np.arange(known.size) if self.among.kept is None else self.among.kept
        self.kept = known[places]
        require(self.exclude.isdisjoint(self.kept.tolist()), "alternatives with excluded features")
        excluded = np.flatnonzero(np.isin(known, sorted(self.exclude)))
        self.part = inner.restrict(places, excluded)

    def check(self, within: float) -> None:
        claim, result = self.claim, self.answer.result
        looks = (2 + len(claim.drops)) * len(claim.supports) * (1 + len(claim.groups))
        members = 1 + sum(group.size for group in claim.groups) / (1 + len(claim.groups))
        self.answer.budget.work(looks * (1e4 + 100.0 * members), "exchanges of a list")
        require(claim.value == float(result.variances[self.j]), "another component")
        self._check_rounding()
        support, weights = result.supports[self.j], result.weights[self.j]
        require(bool(np.isin(support, self.kept).all()), "alternatives without the component")
        self._check_least(claim.value, support, weights, "the component explains less")
        asked = (1.0 - within) * (claim.value - claim.rounding)
        require(abs(claim.asked - asked) <= 8 * EPS * abs(asked), "another level was asked for")
        self._check_list()
        for entry in claim.supports:
            self._check_entry(entry)
        values = [entry.value for entry in claim.supports]
        require(values == sorted(values, reverse=True), "the list is not in the order of values")
        for costs in (claim.drops, claim.forces):
            require(len({cost.feature for cost in costs}) == len(costs), "a cost twice")
        for cost, given in zip(claim.drops, self.near.drops):
            self._check_drop(cost, given.fit)
        proved = {
            cost.feature: self._check_force(cost, given.fit)
            for cost, given in zip(claim.forces, self.near.forces)
        }
        self._check_outsiders(proved)

    def _check_list(self) -> None:
        """Replay the log; what it lists and exchanges is what is claimed."""
        answer, claim, part = self.answer, self.claim, self.part
        question = Question(
            (self.s,), answer.result.settings["nonnegative"], True, 0.0, None, (self.anchors,)
        )
        own = {key: value for key, value in claim.proof.items() if key not in AMONG}
        record: Tree = family_of("tree").read(own, part.p)
        case = Case(part, numbered(question, self.kept), answer.ar, answer.budget)
        proved = answer.ar.upper(proved_by(record, case, listing=True))
        level = at_least(proved, answer.cov.unit)
        require(level <= claim.level, f"only {level:.12g} is proved of what is not listed")
        self._check_dropped(question, level)
        problem = record.log[0]
        assert isinstance(problem, Problem)
        names = self.kept if record.touch is None else self.kept[record.touch.core]
        listed = {frozenset(names[support].tolist()) for support in problem.listed or ()}
        told = [frozenset(entry.support.tolist()) for entry in claim.supports]
        require(len(set(told)) == len(told) and set(told) == listed, "another list than the log's")
        groups: dict[int, set[int]] = {}
        if isinstance(problem.twins, Twins):
            one_sign = answer.result.settings["nonnegative"]
            factors = problem.twins.factors if one_sign else np.abs(problem.twins.factors)
            require(bool((factors == 1.0).all()), "features that differ cannot be exchanged")
            self._check_equal(problem.twins, names)
            for feature, leader in zip(problem.twins.features, problem.twins.leaders):
                own_group = groups.setdefault(int(leader), {int(names[leader])})
                own_group.add(int(names[feature]))
        claimed = {frozenset(group.tolist()) for group in claim.groups}
        require(claimed == {frozenset(g) for g in groups.values()}, "other groups than the log's")
        require(len(claim.groups) == len(claimed), "a group twice")
        exchanged = set().union(*claimed)
        require(exchanged.isdisjoint(self.anchors), "an anchor cannot be exchanged")
        kinds = [_first_of_its_kind(support, claimed) for support in told]
        most = max(map(len, kinds), default=0)
        short = [kind for kind in kinds if len(kind) < most]
        answer.budget.work(300.0 * len(short) * len(kinds), "supports inside others")
        again = len(set(kinds)) < len(told) or any(a < b for a in short for b in kinds)
        require(not again, "a listed support is an exchange or a part of another")
        component = answer.result.supports[self.j]
        first = _first_of_its_kind(frozenset(component.tolist()), claimed)
        holders = [e.value for e, own in zip(claim.supports, kinds) if first <= own]
        require(bool(holders) or not kinds, "the list does not have the component")
        slack = (2 * self._slack(component) + self.s * self.change) * answer.cov.unit
        least = min(holders, default=claim.value)
        require(least >= claim.value - slack, "the component explains more than the list says")

    def _check_dropped(self, question: Question, level: float) -> None:
        """Check, for a screened table, that no support with a dropped feature is above the level.

        The other supports are listed or below the level, so that what bounds them is known.
        """
        cov, record, ar = self.answer.cov, self.among.screened, self.answer.ar
        if not isinstance(cov, ScreenedCovariance):
            require(record is None, "alternatives of a screened table")
            return
        same = record is not None and np.array_equal(record.kept, cov.kept)
        require(same, "alternatives with other kept features")
        assert record is not None
        inside = -at_least(-record.inside, cov.unit)
        most = max([level, *(entry.bound for entry in self.claim.supports)])
        require(most <= inside, "the kept features' bound is too small")
        reach = touching(record, record.inside, Case(cov, question, ar, self.answer.budget))
        reached = at_least(ar.upper(reach), cov.unit)
        require(reached <= self.claim.level, "a support with a dropped feature may explain more")

    def _check_equal(self, twins: Twins, names: np.ndarray) -> None:
        """Check that rows of features that are exchanged are the same up to sign, but for rounding
        in the units of the two features."""
        leader, sign = np.arange(names.size), np.ones(names.size)
        leader[twins.features], sign[twins.features] = twins.leaders, twins.factors
        moved = np.unique(np.concatenate([twins.features, twins.leaders]))
        self.answer.budget.memory(24.0 * moved.size * names.size, "rows of equal features")
        cov = self.answer.rounded
        rows = cov.submatrix(names[moved], names)
        same = cov.submatrix(names[leader[moved]], names[leader])
        change = np.abs(rows - same * np.outer(sign[moved], sign))
        roots = np.sqrt(np.abs(cov.diagonal[names]))
        errors = np.sqrt(4 * cov.error_unit * cov.weights[names])
        roots, errors = (np.maximum(of, of[leader]) for of in (roots, errors))
        most = EQUAL * np.outer(roots[moved], roots) + np.outer(errors[moved], errors)
        require(bool((change <= most).all()), "features that differ cannot be exchanged")
        size = float(np.abs(cov.diagonal[self.kept]).max(initial=0.0))
        self.change = float(change.max(initial=0.0)) + 4 * EPS * size  # the rows were rounded

    def _check_entry(self, entry: ListedSupport) -> None:
        """Check what a listed support explains: the vector at least, no other more than the
        bound."""
        answer, unit = self.answer, self.answer.cov.unit
        support, x, rounded = entry.support, entry.weights, answer.rounded
        require(bool(np.isin(support, self.kept).all()), "a listed support uses other features")
        require(set(support.tolist()).isdisjoint(self.exclude), "a listed support is excluded")
        require(np.union1d(support, self.anchors).size <= self.s, "a listed support is too large")
        require(abs(float(np.linalg.norm(x)) - 1.0) <= (x.size + 8) * EPS, "weights of no unit")
        signed = not answer.result.settings["nonnegative"]
        require(signed or bool((x >= 0).all()), "a listed weight is negative")
        block = rounded.submatrix(support)
        own = float(x @ block @ x)
        slack = self._slack(support)
        require(abs(entry.value - own * unit) <= slack * unit, "a listed value is another one")
        rest = block @ x - own * x
        rest = rest if signed else np.where(x > 0, rest, np.maximum(rest, 0.0))
        still = float(np.linalg.norm(rest)) <= slack + (0.0 if signed else BEST * abs(own))
        require(still, "listed weights that others near them surpass")
        self._check_least(entry.value, support, x, "a listed support explains less")
        answer.cov.known()[0].charge(answer.budget, support.size, support.size)
        ar, block = answer.ar, answer.cov.submatrix(support)
        doubt = self.part.rounding(self.s) + self.s * self.change  # of supports after exchanges
        size = max(self.claim.value, float(np.abs(rounded.diagonal[self.kept]).max()) * unit)
        require(entry.value <= entry.bound, "a listed value is above its bound")
        near = entry.value >= self.claim.asked - NEAR * size
        require(near, "a listed support explains less than was asked for")
        limit = ar.number(entry.bound) / unit - doubt
        block = 0.5 * (block + block.T)
        if signed:
            proved = ar.below(block, limit)
            most = (BEST + 32 * support.size**2 * EPS) * size + 2 * (doubt + slack) * unit
            require(entry.bound - entry.value <= most, "listed weights that are not the best")
        else:
            proved = none_above(block, x, limit, ar, answer.budget)
        require(proved, "a listed support explains more")
        sizes = [(g.size, int(np.isin(g, support).sum())) for g in self.claim.groups]
        answer.budget.work(sum(10.0 * n * q for n, q in sizes), "the exchanges of a support")
        require(entry.count == prod(comb(*pair) for pair in sizes), "another number of supports")

    def _check_rounding(self) -> None:
        """Check that what is said to be for rounding is a few times that of this computation at
        most."""
        inner = self.answer.rounded.known()[0]
        sizes = np.sort(np.abs(inner.diagonal))[::-1][: self.s]
        most = inner.allowance(self.s) + 4 * (self.s + 8) * EPS * float(sizes.sum())
        fits = self.claim.rounding <= 8 * most * self.answer.cov.unit
        require(fits, "a rounding of values that is not that of this computation")

    def _check_least(self, value: float, support: np.ndarray, x: np.ndarray, reason: str) -> None:
        """Check that, whatever rounding did, the vector at unit length explains more than the value
        less the rounding: what is as good as it lies above a level that is measured from there."""
        answer, ar = self.answer, self.answer.ar
        cov = answer.cov if ar.exact else answer.rounded
        cov.known()[0].charge(answer.budget, support.size, support.size)
        block, w = cov.submatrix(support), ar.array(x)
        least = (w * ar.matmul(block, w)).sum() / (w * w).sum()
        size = float(np.abs(answer.rounded.diagonal[support]).sum())
        least = least - 4 * (self.s + 8) * ar.eps * size
        least = least - self.part.rounding(support.size)
        sure = ar.number(value) - ar.number(self.claim.rounding)
        require(bool(sure < least * answer.cov.unit), f"{reason} than its value less rounding")

    def _slack(self, support: np.ndarray) -> float:
        """Return by how much two honest computations of a value may differ."""
        rounded = self.answer.rounded
        size = float(np.abs(rounded.submatrix(support)).sum())
        return rounded.apart(support) + 8 * (self.s + 8) * EPS * size

    # --- what features are worth ---

    def _check_drop(self, cost: FeatureCost, fit: Any) -> None:
        claim, feature = self.claim, cost.feature
        used = feature in self.taken[self.j] and feature not in self.anchors
        require(used, "a cost of a feature that the component does not use")
        others = [entry for entry in claim.supports if feature not in self._needed(entry)]
        best = max((entry.value for entry in others), default=-np.inf)
        most = max([claim.level, *(entry.bound for entry in others)])
        if self.kept.size <= self.s:
            most = np.inf  # smaller supports without the feature are on no list
        if fit is not None:
            exclude = self.exclude | {feature}
            include = (self.anchors,) if self.anchors else None
            # a support has no more features than are left
            size = min(self.s, self.answer.cov.p - len(exclude))
            fit = _proved(fit, (size,), include, exclude, self.answer)
            best, most = max(best, fit.value), min(most, fit.bound)
        require(cost.value <= best, "no answer without a feature explains as much")
        require(cost.bound >= most, "an answer without a feature may explain more")

    def _check_force(self, cost: FeatureCost, fit: Any) -> FeatureCost:
        """Check the answer with an outsider, which is one with one anchor more."""
        there = bool(np.isin(cost.feature, self.claim.outsiders))
        require(there, "a cost of an outsider that is none")
        include = (tuple(sorted({*self.anchors, cost.feature})),)
        fit = _proved(fit, (self.s,), include, self.exclude, self.answer)
        require(cost.value <= fit.value, "no answer with a feature explains as much")
        require(cost.bound >= fit.bound, "an answer with a feature may explain more")
        return cost

    def _needed(self, entry: ListedSupport) -> set[int]:
        own = set(entry.support.tolist())
        for group in self.claim.groups:
            members = set(group.tolist())
            if not members <= own:
                own -= members
        return own

    def _check_outsiders(self, proved: dict[int, FeatureCost]) -> None:
        """Check each outsider in the place of a member, by a 2 x 2 problem; from the list; or by a
        fit that is `proved`."""
        claim, answer = self.claim, self.answer
        outsiders, unit, taken = claim.outsiders, answer.cov.unit, self.taken[self.j]
        others = np.setdiff1d(self.kept, taken)
        if taken.size >= self.s and np.isin(answer.result.supports[self.j], self.anchors).all():
            others = others[:0]  # no member can leave, and there is no place beside them
        # what is said of any other feature holds for all of them
        require(np.array_equal(outsiders, others), "an outsider that is none, or one is missing")
        if outsiders.size == 0:
            return
        known, bound = self._swapped()
        known, bound = known * unit, bound * unit
        most = np.full(outsiders.size, claim.level)
        for entry in claim.supports:
            own = set(entry.support.tolist())
            for group in claim.groups:
                own |= set(group.tolist()) if own & set(group.tolist()) else set()
            there = np.isin(outsiders, sorted(own))
            known[there] = np.maximum(known[there], entry.value)
            most[there] = np.maximum(most[there], entry.bound)
        for feature, cost in proved.items():
            there = outsiders == feature
            known[there] = np.maximum(known[there], cost.value)
            most[there] = np.minimum(most[there], cost.bound)
        require(bool((claim.with_value <= known + bound).all()), "an outsider adds less")
        require(bool((claim.with_bound >= most).all()), "an outsider may add more")

    def _swapped(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what outsiders in the place of the members that leave explain, and the rounding;
        no other member that may leave makes room for more."""
        answer, anchors, s = self.answer, np.array(self.anchors, dtype=np.intp), self.s
        support, x = answer.result.supports[self.j], answer.result.weights[self.j]
        outsiders, leaving, cov = self.claim.outsiders, self.claim.leaving, answer.rounded
        answer.budget.work(60.0 * outsiders.size * support.size * (cov.n or 1), "outsiders")
        A, cross = cov.submatrix(support), cov.submatrix(outsiders, support)
        if np.union1d(support, anchors).size < s:
            require(bool((leaving == outsiders).all()), "a member leaves where there is room")
            vectors, place = x[None, :], np.zeros(outsiders.size, dtype=np.intp)
        else:
            free = np.setdiff1d(support, anchors)
            require(
                bool(np.isin(leaving, free).all()), "a member leaves that is none, or must stay"
            )
            vectors = np.where(support[None, :] == free[:, None], 0.0, x[None, :])
            place = np.searchsorted(free, leaving)
        length = np.sqrt((vectors * vectors).sum(axis=1))
        vectors = vectors / np.where(length > 0, length, 1.0)[:, None]
        value = ((vectors @ A) * vectors).sum(axis=1)
        link, variance = cross @ vectors.T, cov.diagonal[outsiders][:, None]
        if answer.result.settings["nonnegative"]:
            link = np.maximum(link, 0.0)
        half = 0.5 * (value - variance)
        top = value - half + np.sqrt(half * half + link * link)
        top = np.where(length > 0, top, variance)  # an outsider alone
        own = np.take_along_axis(top, place[:, None], axis=1)[:, 0]
        doubt = 16 * (s + 8) * EPS * (np.abs(A).sum() + np.abs(variance[:, 0]))
        doubt = doubt + np.array([cov.apart(np.append(support, o)) for o in outsiders])
        best = bool((own >= top.max(axis=1) - 2 * doubt).all())
        require(best, "an outsider does better in the place of another member")
        return own, doubt


def _first_of_its_kind(support: frozenset[int], groups: set[frozenset[int]]) -> frozenset[int]:
    """Return the support with the first features of each group in place of those that it has of
    it."""
    for group in groups:
        support = (support - group) | set(sorted(group)[: len(support & group)])
    return support


def _check_joint(cost: Cost, answer: Answer) -> None:
    """Check the best answer without a feature in any component: a fit, or no better than all."""
    require(type(cost) is Cost, "a cost that is none")
    raw = {field.name: getattr(cost, field.name) for field in fields(FeatureCost)}
    claim = parse(FeatureCost, raw, {}, "alternatives")
    settings = answer.result.settings
    include = answer.include if settings.get("include") else None
    exclude = answer.exclude | {claim.feature}
    sizes = tuple(settings["n_nonzero_coefs"])
    kind = {name: settings.get(name) for name in KIND}
    fit = _proved(cost.fit, sizes, include, exclude, answer, kind)
    require(claim.value <= fit.value, "no answer without a feature explains as much")
    most = min(fit.bound, answer.result.bound)
    require(claim.bound >= most, "an answer without a feature may explain more")


def _proved(
    fit: Any,
    sizes: tuple[int, ...],
    include: tuple[tuple[int, ...], ...] | None,
    exclude: set[int],
    answer: Answer,
    kind: dict[str, Any] | None = None,
) -> Result:
    """Return the claim of a fit that answers the question behind a cost, once it is rechecked; it
    is one of a component alone, or of the `kind`."""
    require(isinstance(fit, Result), "a cost without the answer behind it")
    answer.budget.work(1e8, "the answer behind a cost")  # for reading the data once more
    claim = answer.proved(fit)
    told, asked, result = claim.settings, answer.result.settings, answer.result
    table = (claim.n_features, claim.n_samples) == (result.n_features, result.n_samples)
    names = claim.feature_names == result.feature_names
    require(table and names, "a cost with the answer to other features")
    same = all(told.get(name) == asked.get(name) for name in SAME)
    same &= all(told.get(name) == value for name, value in (kind or ALONE).items())
    same &= told["n_nonzero_coefs"] == sizes
    same &= tuple(told.get("exclude") or ()) == tuple(sorted(exclude))
    same &= (told.get("include") or None) == include
    require(bool(same), "a cost with the answer to another question")
    return claim
