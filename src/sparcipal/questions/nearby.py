"""What else is nearly as good as an answer: `alternatives`.

The branch and bound that proves a support optimal lists, at a lower level, all supports above that
level (bounds/tree/listing.py). The list says what is unique, which features every good answer uses,
and what most of them are worth; the best answers without the others are fits of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import comb, prod
from typing import Any

import numpy as np

from ..bounds.kyfan.certificate import KyFanSplit
from ..bounds.pairsplit import proven_bound
from ..bounds.strategy import WHOLE
from ..bounds.tree.core import prove_large
from ..bounds.tree.listing import list_above
from ..bounds.tree.log import Proof
from ..bounds.tree.question import TreeQuestion
from ..data.inputs import Input, resolved
from ..data.passes import MEMORY_LIMIT
from ..data.searched import Data, Searched
from ..fit import fitted, informative
from ..numerics.margins import SAFETY
from ..numerics.threads import one_blas_thread
from ..problem.answers import Alternatives, Cost, Listed, Nearby, reached
from ..problem.components import newcomer_gain, nonnegative_leading
from ..problem.constraints import Columns, Constraints
from ..problem.covariance import Covariance
from ..problem.monitor import Monitor, Progress
from ..problem.parameters import Complaints, flag, integer, number
from ..problem.problem import Problem
from ..problem.result import Result, answer_of
from ..settings import Settings
from .refits import Fits, Known, Start

MOST = 1000  # supports of a list, unless the user says
FORCE = 10  # outsiders with fits of their own, unless the user says
TOL = 1e-6  # how far below the level asked for a list aims, relative to the largest variance
NODES = 5000
# What a question consists of, as a Result records it.
QUESTION = (
    "n_components", "n_nonzero_coefs", "supports", "objective", "uncorrelated", "nonnegative",
    "center", "scale", "certify", "tol", "max_nodes", "random_state", "include", "exclude",
    "missing",
)  # fmt: skip


class NotAnswered(ValueError):
    """Alternatives to this kind of answer, or with data of this kind, are not known."""


def alternatives(
    given: Any = None,
    X: Any = None,
    *,
    covariance: Any = None,
    within: float = 0.01,
    most: int = MOST,
    drop: bool = True,
    force: int = FORCE,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callable[[Progress], object] | None = None,
    sample_weight: Any = None,
    feature_names: Iterable[str] | None = None,
    memory_limit: float = MEMORY_LIMIT,
    **question: Any,
) -> Alternatives:
    """List everything that is nearly as good as an answer, and prove that nothing is missing.

    Parameters
    ----------
    given : Result, fitted SparsePCA, or data
        The answer, with the data it came from as `X` or `covariance`; or the data themselves, with
        the question in `question`.
    X : data
        What `sparse_pca` takes, in memory.
    covariance : array of shape (n_features, n_features)
        Instead of X.
    within : float
        Supports are listed that explain at least 1 - within of what the component explains.
    most : int
        The list ends with so many supports; it is then known to be complete above a higher level.
    drop : bool
        Also find and prove the best answers without each feature that the answer uses, to a tenth
        of `within`, or to 0.1 % where that is more than a percent.
    force : int
        For so many outsiders of each component, those that promise most, also find and prove the
        best answers with them. Of the others the list gives a bound.
    time_limit : float
        Seconds; what is known then is returned, and its status says so.
    n_jobs, verbose, callback, sample_weight, feature_names, memory_limit
        As for `sparse_pca`.
    **question
        With data only: `n_components`, `n_nonzero_coefs` and the other keywords of `sparse_pca`.

    Returns
    -------
    Alternatives
        For several components, the supports near each of them while the others stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import alternatives
    >>> A = np.diag([3.0, 3.0, 2.0, 1.0])
    >>> A[0, 1] = A[1, 0] = 1.0
    >>> found = alternatives(covariance=A, n_nonzero_coefs=2, within=0.3)
    >>> [entry.support.tolist() for entry in found.components[0].supports]
    [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3]]
    >>> found.components[0].unique, found.status
    (True, 'complete')
    """
    answer = answer_of(given)
    if answer is None:
        if given is not None and X is not None:
            raise TypeError(
                f"given is a {type(given).__name__}, no result; pass alternatives(X, ...), or "
                "alternatives(result, X)"
            )
        X = X if given is None else given
    elif question:
        raise TypeError(f"the result says what was asked; leave out {', '.join(question)}")
    else:
        settings = answer.settings
        _refuse_totals(settings.get("n_nonzero_total"), [t.size for t in answer.supports])
        if answer.certificate.screening:
            raise NotAnswered(
                "alternatives need the covariance of all features, and the result came from a "
                f"table read in passes that kept {answer.certificate.screening['kept']} of "
                f"{answer.n_features}; fit again with a larger memory_limit"
            )
        question = {name: settings[name] for name in QUESTION if name in settings}
    run = {"time_limit": time_limit, "n_jobs": n_jobs, "verbose": verbose, "callback": callback}
    with Complaints() as check:
        wanted = _Wanted(
            check(number, "within", within, 0.0, 1.0),
            check(integer, "most", most, 1),
            check(flag, "drop", drop),
            check(integer, "force", force, 0),
        )
        asked = check(Settings.of, **{**question, **run, "memory_limit": memory_limit})
    plain = asked.supports == "disjoint" and asked.objective == "sum" and not asked.uncorrelated
    if not plain and asked.n_components != 1:
        raise NotAnswered(
            f"alternatives of several components need supports='disjoint', got {asked.supports!r} "
            f"with objective={asked.objective!r}, uncorrelated={asked.uncorrelated!r}: "
            "what a component adds to others that it overlaps is not known from its support alone"
        )
    if isinstance(asked.n_nonzero_coefs, dict) and asked.n_components != 1:
        _refuse_totals(asked.n_nonzero_coefs.get("total"))
    if asked.missing == "pairwise":
        raise NotAnswered(
            "missing='pairwise': alternatives speak of one matrix and not of rows with gaps; pass "
            "covariance=result.certificate.repair['matrix'] and the question, or fit with "
            "missing='mean', 'median' or 'rows'"
        )
    monitor = asked.monitor()
    with monitor.interruptible(), one_blas_thread:
        source = resolved(
            X,
            covariance,
            feature_names=feature_names,
            sample_weight=sample_weight,
            memory_limit=asked.memory_limit,
            monitor=monitor,
            missing=asked.missing,
        )
        if answer is None:
            answer = fitted(source, asked, monitor)
        return _Answers(source, asked, monitor, answer, wanted).found()


def _refuse_totals(total: int | None, sizes: Sequence[int] = ()) -> None:
    """Refuse nonzeros that are shared: what one component may have depends on the others."""
    if total is None:
        return
    own = f"=[{', '.join(map(str, sizes))}], as it has them," if sizes else " one by one"
    raise NotAnswered(
        f"n_nonzero_coefs={{'total': {total}}}: alternatives need the nonzeros of each component; "
        f"pass n_nonzero_coefs{own} with the data"
    )


@dataclass(frozen=True)
class _Wanted:
    """What is asked of each component."""

    within: float
    most: int
    drop: bool
    force: int

    @property
    def precision(self) -> float:
        """The gap at which a cost is known well enough: a tenth of what counts as nearly as good,
        and of a percent where that is more."""
        return 0.1 * min(self.within, 0.01)


@dataclass(frozen=True)
class _Beside:
    """The question of one component, the others as they are."""

    component: int
    s: int
    support: np.ndarray  # with its anchors
    constraints: Constraints


class _Answers:
    """One answer, the data it came from, and the fits that its alternatives need."""

    def __init__(
        self, source: Input, asked: Settings, monitor: Monitor, answer: Result, wanted: _Wanted
    ) -> None:
        searched = Searched(source, asked.center, asked.scale, asked.memory_limit, monitor)
        searched.begin(sum(s.size for s in answer.supports))
        self.data: Data = searched.data
        if self.data.survivors is not None:
            raise NotAnswered(
                "alternatives need the covariance of all features, but the data are read in "
                "passes; raise memory_limit, or leave out features that hardly vary"
            )
        self.asked, self.monitor, self.answer, self.wanted = asked, monitor, answer, wanted
        self.fits = Fits(self.data, asked, monitor, wanted.precision)
        self.cov: Covariance = self.fits.cov
        self.unit = self.cov.unit
        columns = Columns(source.n_features, source.feature_names)
        self.sizes, total = asked.budget(source.n_features, asked.available(columns))
        self.constraints = asked.constraints(columns, self.sizes, total)
        self._check()
        self.ended = ""

    def _check(self) -> None:
        """Refuse a result that did not come from these data."""
        answer, p = self.answer, self.cov.n_features
        if answer.n_features != p:
            raise ValueError(
                f"the result has n_features={answer.n_features}, but the data have {p}; pass the "
                "data that it came from"
            )
        for support, weights, told in zip(answer.supports, answer.weights, answer.variances):
            own = float(weights @ self.cov.submatrix(support) @ weights) * self.unit
            if abs(own - told) > 1e-6 * max(abs(own), abs(told)):
                raise ValueError(
                    f"a component explains {own:.6g} of these data, but the result says "
                    f"{told:.6g}; pass the data that it came from"
                )

    def found(self) -> Alternatives:
        several = len(self.answer.supports) > 1
        besides = [self._beside(j) for j in range(len(self.answer.supports))]
        components = tuple(map(self.nearby, besides))
        joint: tuple[Cost, ...] = ()
        if several and self.wanted.drop:
            shared = self._shared()
            found = [
                self._joint_drop(feature, beside.component, near, shared)
                for beside, near in zip(besides, components)
                for feature in self.answer.supports[beside.component].tolist()
            ]
            joint = tuple(sorted(filter(None, found), key=lambda cost: cost.feature))
        status = self.ended or self._stopped() or "complete"
        return Alternatives(self.answer, self.wanted.within, components, joint, status)

    def _stopped(self) -> str:
        names = {"time": "time_limit", "user": "interrupted"}
        stopped = self.monitor.stopped
        return "" if stopped is None else names.get(stopped, stopped)

    def _beside(self, j: int) -> _Beside:
        answer, k = self.answer, len(self.answer.supports)
        include = self.constraints.include or ((),) * k
        taken = [np.union1d(s, np.array(own, int)) for s, own in zip(answer.supports, include)]
        sizes = self._sizes_in_order([t.size for t in taken])
        others = {int(f) for i, t in enumerate(taken) if i != j for f in t}
        exclude = tuple(sorted(others.union(self.constraints.exclude)))
        own = (include[j],) if include[j] else ()
        return _Beside(j, sizes[j], taken[j].astype(np.intp), Constraints(own, exclude))

    def _sizes_in_order(self, used: list[int]) -> list[int]:
        """The cardinality of each component: anchors keep their order, otherwise the largest
        components have the largest."""
        if self.constraints.include:
            return list(self.sizes)
        order = sorted(range(len(used)), key=lambda i: -used[i])
        sizes = [0] * len(used)
        for i, s in zip(order, sorted(self.sizes, reverse=True)):
            sizes[i] = s
        return sizes

    # --- one component ---

    def nearby(self, beside: _Beside) -> Nearby:
        wanted = self.wanted
        whole = Problem(
            self.cov, (beside.s,), self.asked.nonnegative, constraints=beside.constraints
        )
        alive = np.union1d(informative(whole), beside.support)
        problem = whole.among(alive, self.cov.restrict(alive).materialise())
        place = np.searchsorted(alive, beside.support)
        value = float(self.answer.variances[beside.component]) / self.unit
        asked = (1.0 - wanted.within) * value
        rounding = SAFETY * problem.covariance.rounding(beside.s)
        proof = self._listing(problem, place, value, asked - rounding, wanted.most)
        level = proof.bound + rounding
        self.ended = self.ended or (
            "" if level <= asked else self._stopped() or _word_for(proof.status)
        )
        groups = _groups(proof, alive)
        supports = self._listed(problem, proof, groups, alive)
        near = Nearby(
            component=beside.component,
            value=value * self.unit,
            asked=asked * self.unit,
            level=level * self.unit,
            supports=supports,
            groups=groups,
            drops=(),
            forces=(),
            **self._outsiders(problem, beside.component, supports, groups, level, alive),
            proof={**proof.data(), "kept": alive},
        )
        known = Known(proof, alive)
        drops: list[Cost | None] = []
        if wanted.drop:
            anchors = beside.constraints.include[0] if beside.constraints.include else ()
            features = np.setdiff1d(beside.support, anchors)
            drops = [self._drop(near, beside, int(f), known) for f in features]
        order = np.argsort(-near.with_value, kind="stable")[: wanted.force]
        forces = [self._force(near, beside, int(i), known) for i in order]
        near = _with_forces(near, [cost for cost in forces if cost is not None])
        return replace(near, drops=tuple(cost for cost in drops if cost is not None))

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
            monitor=self.monitor,
            effort="fast",
            forced=problem.forced,
            level=level - TOL * scale,
            most=most,
        )
        if cov.n_features <= WHOLE:
            return list_above(cov.dense(), s, question)
        return prove_large(cov, s, question)

    def _listed(
        self, problem: Problem, proof: Proof, groups: tuple[np.ndarray, ...], alive: np.ndarray
    ) -> tuple[Listed, ...]:
        """The listed supports with their weights, values and bounds, the best first."""
        rounding = SAFETY * problem.covariance.rounding(problem.cardinalities[0])
        scale = max(float(problem.covariance.diagonal.max()), 1e-300)
        entries = []
        for support in proof.listed:
            block = problem.covariance.submatrix(support)
            weights = _weights(block, problem.nonnegative)
            top = float(np.linalg.eigvalsh(block)[-1])
            # the checker's own margins are some units of rounding, as those of this proof are
            bound = proven_bound(block, top + 1e-12 * scale, scale) + rounding
            own = alive[support]
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
        """What each feature outside the component could be worth in it."""
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

    def _drop(self, near: Nearby, beside: _Beside, feature: int, known: Known) -> Cost | None:
        """The best answer without a feature: from the list, or by a fit."""
        others = [e for e in near.supports if feature not in near.needed(e)]
        # where no other feature could take its place, smaller supports are on no list
        if others and near.proof["kept"].size > beside.s:
            best = max(entry.value for entry in others)
            return Cost(feature, best, max(near.level, *(entry.bound for entry in others)))
        if self.monitor.stopped is not None:
            return None
        exclude = tuple(sorted({*beside.constraints.exclude, feature}))
        size = min(beside.s, self.cov.n_features - len(exclude))
        if size < 1:
            return None
        start = Start(np.setdiff1d(beside.support, feature), near.value, known)
        fit = self.fits.fit((size,), Constraints(beside.constraints.include, exclude), start)
        most = near.level if near.proof["kept"].size > beside.s else np.inf
        return Cost(feature, fit.value, min(fit.bound, most), fit)

    def _force(self, near: Nearby, beside: _Beside, i: int, known: Known) -> Cost | None:
        """The best answer with an outsider: one with one anchor more."""
        feature, leaving = int(near.outsiders[i]), int(near.leaving[i])
        own = beside.constraints.include[0] if beside.constraints.include else ()
        if self.monitor.stopped is not None or len(own) >= beside.s:
            return None
        anchors = tuple(sorted({*own, feature}))
        support = np.union1d(np.setdiff1d(beside.support, leaving), feature)
        constraints = Constraints((anchors,), beside.constraints.exclude)
        fit = self.fits.fit((beside.s,), constraints, Start(support, near.value, known))
        return Cost(feature, fit.value, fit.bound, fit)

    def _shared(self) -> KyFanSplit | None:
        """The split of the answer's own joint proof, on all features."""
        named = [bound for bound in self.answer.certificate.bounds if bound.name == "kyfan"]
        best = min(named, key=lambda bound: bound.value, default=None)
        if best is None or "u" not in best.data:
            return None
        split = KyFanSplit.of(best.data)
        kept = np.asarray(best.data.get("kept", np.arange(self.cov.n_features)))
        return replace(split, features=kept[split.features])

    def _joint_drop(
        self, feature: int, component: int, near: Nearby, shared: KyFanSplit | None
    ) -> Cost | None:
        """The best answer of all components without a feature, which one component uses."""
        anchors = {f for own in self.constraints.include for f in own}
        left = self.cov.n_features - len(self.constraints.exclude) - 1
        if feature in anchors or left < sum(self.sizes) or self.monitor.stopped is not None:
            return None
        exclude = tuple(sorted({*self.constraints.exclude, feature}))
        constraints = Constraints(self.constraints.include, exclude)
        supports = self._without(feature, component, near)
        fit = self.fits.joint(self.sizes, constraints, supports, shared)
        return Cost(feature, fit.value, min(fit.bound, self.answer.bound), fit)

    def _without(self, feature: int, component: int, near: Nearby) -> list[np.ndarray]:
        """Supports of all components without a feature: of its own one the best known."""
        supports = [np.asarray(support) for support in self.answer.supports]
        fits = [cost.fit for cost in near.drops if cost.feature == feature]
        listed = [entry for entry in near.supports if feature not in entry.support]
        if fits and fits[0] is not None:
            supports[component] = fits[0].supports[0]
        elif listed:
            supports[component] = listed[0].support
        else:
            supports[component] = np.setdiff1d(supports[component], feature)
        if supports[component].size == 0:
            used = np.concatenate([*supports, [feature]])
            free = np.setdiff1d(np.arange(self.cov.n_features), used)
            free = np.setdiff1d(free, self.constraints.exclude)
            supports[component] = free[np.argsort(-self.cov.diagonal[free], kind="stable")[:1]]
        return supports


def _with_forces(near: Nearby, forces: list[Cost]) -> Nearby:
    """The same with the answers that outsiders have of their own."""
    low, high = near.with_value.copy(), near.with_bound.copy()
    for cost in forces:
        place = near.outsiders == cost.feature
        low[place] = np.maximum(low[place], cost.value)
        high[place] = np.minimum(high[place], cost.bound)
    return replace(near, forces=tuple(forces), with_value=low, with_bound=high)


def _weights(block: np.ndarray, nonnegative: bool) -> np.ndarray:
    """The best unit vector for a block; its largest entry is positive."""
    x = nonnegative_leading(block) if nonnegative else np.linalg.eigh(block)[1][:, -1]
    x = x / np.linalg.norm(x)
    return x if x[int(np.argmax(np.abs(x)))] > 0 else -x


def _groups(proof: Proof, alive: np.ndarray) -> tuple[np.ndarray, ...]:
    """Groups of features that can be exchanged, as the log has them."""
    if not proof.log or not proof.log[0]["twins"]:
        return ()
    core = alive if proof.touch is None else alive[proof.touch["core"]]
    twins = proof.log[0]["twins"]
    leaders = np.unique(twins["leaders"])
    return tuple(
        np.sort(core[np.append(twins["features"][twins["leaders"] == leader], leader)])
        for leader in leaders
    )


def _word_for(status: str) -> str:
    return {"optimal": "nodes", "time": "time_limit", "user": "interrupted"}.get(status, status)
