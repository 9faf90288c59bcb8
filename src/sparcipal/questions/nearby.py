"""What else is nearly as good as an answer: `alternatives`.

The branch and bound that proves a support optimal lists, at a lower level, all supports above that
level (bounds/tree/listing.py). The list says what is unique, which features every good answer uses,
and what most of them are worth; the best answers without the others are fits of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..bounds.kyfan.certificate import KyFanSplit
from ..data.facts import Data
from ..data.inputs import Input, resolved
from ..data.passes import MEMORY_LIMIT
from ..data.rows import MatrixRows
from ..data.searched import Searched
from ..data.table import Table
from ..fit import fitted
from ..numerics.threads import one_blas_thread
from ..problem.answers import Alternatives, Cost, Nearby
from ..problem.components import variances
from ..problem.constraints import Columns, Constraints, mask_of
from ..problem.covariance import Covariance
from ..problem.monitor import Monitor, Progress
from ..problem.parameters import Complaints, flag, integer, number
from ..problem.problem import Component
from ..problem.result import Bound, Result, answer_of
from ..settings import Settings
from .beside import Beside, Neighbours, Wanted
from .refits import Fits
from .same import (
    Given,
    check_same,
    in_order,
    its_features,
    only_its_data,
    recheck,
    refuse_damaged,
)

MOST = 1000  # supports of a list, unless the user says
FORCE = 10  # outsiders with fits of their own, unless the user says
# What a question consists of, as a Result records it.
QUESTION = (
    "n_components", "n_nonzero_coefs", "supports", "objective", "uncorrelated", "nonnegative",
    "center", "scale", "certify", "tol", "max_nodes", "random_state", "include", "exclude",
    "missing",
)  # fmt: skip


class NotAnswered(ValueError):
    """Alternatives to this kind of answer, or with data of this kind, are not known; `more` is for
    people who write Python, `reason` for everyone."""

    def __init__(self, reason: str, more: str = "") -> None:
        super().__init__(reason + more)
        self.reason = reason


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
        What `sparse_pca` takes. Of data read in passes the features are asked about that the answer
        was searched among, and what others could do is bounded.
    covariance : array of shape (n_features, n_features)
        Instead of X.
    within : float
        Supports are listed that explain at least 1 - within of what the component explains.
    most : int
        The list ends once it has more supports than this, and those met together go on it together:
        it may hold some more. It is then known to be complete above a higher level.
    drop : bool
        Also find and prove the best answers without each feature that the answer uses, to a tenth
        of `within`, and to 0.1 % where `within` is more than 1 %, or as far as the proof of a fit
        comes.
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
        For several components, the supports near each of them while the others stay as they are;
        where components overlap, count only beyond each other or share their nonzeros, the joint
        cost of each feature alone.

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
    run = {"time_limit": time_limit, "n_jobs": n_jobs, "verbose": verbose, "callback": callback}
    refuse_damaged(answer)
    with only_its_data(answer), Complaints() as check:
        if answer is None:
            if given is not None and X is not None:
                raise TypeError(
                    f"given is a {type(given).__name__}, no result; pass alternatives(X, ...), or "
                    "alternatives(result, X)"
                )
            X = X if given is None else given
        else:
            check(_refuse_keywords, question)
            question = question_of(answer, QUESTION)
        wanted = Wanted(
            check(number, "within", within, 0.0, 1.0),
            check(integer, "most", most, 1),
            check(flag, "drop", drop),
            check(integer, "force", force, 0),
        )
        asked = Settings.noted(check, **{**question, **run, "memory_limit": memory_limit})
        check(refuse_pairs, asked)
        monitor = asked.monitor()
        with monitor.interruptible(), one_blas_thread:
            source = resolved(
                X,
                covariance,
                feature_names=feature_names,
                sample_weight=sample_weight,
                door=asked.door(monitor, check, None if answer is None else its_features(answer)),
            )
            if answer is None:
                answer = fitted(source, asked, monitor)
                return Answers(source, asked, monitor, answer, wanted).found()
            source = in_order(answer, source)
            answers = Answers(source, asked, monitor, answer, wanted)
            answers.recheck(Given(X, covariance, sample_weight))
            return answers.found()


def question_of(answer: Result, names: Sequence[str]) -> dict[str, Any]:
    """Return those keywords, of these names, that ask the question of a result once more."""
    settings = answer.settings
    asked = {name: settings[name] for name in names if name in settings}
    p = answer.n_features
    if asked.get("include"):
        asked["include"] = [mask_of(anchors, p) for anchors in asked["include"]]
    if asked.get("exclude"):
        asked["exclude"] = mask_of(asked["exclude"], p)
    total = settings.get("n_nonzero_total")
    return asked if total is None else {**asked, "n_nonzero_coefs": {"total": total}}


def _refuse_keywords(question: Iterable[str]) -> None:
    if question:
        raise TypeError(
            f"the result says what was asked; leave out {', '.join(question)} (beside it there are "
            "within, most, drop for the costs of leaving out features, and force)"
        )


def refuse_pairs(asked: Settings) -> None:
    if asked.missing == "pairwise":
        raise NotAnswered(
            "missing='pairwise': each covariance was estimated from other rows, and alternatives "
            "to such an answer are not computed; fit with missing='mean', missing='median' or "
            "missing='rows' to see them",
            " (the matrix itself can be asked: covariance=result.certificate.repair['matrix'])",
        )


class Answers:
    """One answer, the data it came from, and the fits that its alternatives need."""

    def __init__(
        self, source: Input, asked: Settings, monitor: Monitor, answer: Result, wanted: Wanted
    ) -> None:
        # fits behind costs speak of features by the names that the answer has
        found: Data = data_of(answer, source, asked, monitor)
        self.data = replace(found, feature_names=answer.feature_names)
        self.source, self.asked, self.monitor = source, asked, monitor
        self.answer, self.wanted = answer, wanted
        self.proved = answer.bound  # none of its kind explains more
        self.fits = Fits(self.data, asked, monitor, wanted.precision)
        self.cov: Covariance = self.fits.cov
        columns = Columns(source.n_features, source.feature_names)
        self.sizes, self.total = asked.budget(source.n_features, asked.available(columns))
        self.constraints = asked.constraints(columns, self.sizes, self.total)
        sums = asked.disjoint and asked.objective == "sum" and not asked.uncorrelated
        # whether a component can be replaced beside the others
        self.plain = len(self.sizes) == 1 or (sums and self.total is None)
        self._check()

    def _check(self) -> None:
        """Refuse a result that did not come from these data."""
        answer, fits = self.answer, self.fits
        components = tuple(map(Component, map(fits.places, answer.supports), answer.weights))
        kind = fits.of_the_kind(self.sizes, self.total, self.constraints)
        explained = variances(kind, components) * self.cov.unit
        for one, own, told in zip(components, explained, answer.variances):
            # a component that explains nothing is off by rounding of its features' variances
            largest = float(self.cov.diagonal[one.support].max()) * self.cov.unit
            if abs(own - told) > 1e-6 * max(abs(own), abs(told), 1e-6 * largest):
                raise ValueError(
                    f"a component explains {own:.6g} of these data, but the result says "
                    f"{told:.6g}; pass the data that it came from"
                )
        total = float(answer.variances.sum())
        if not abs(total - answer.value) <= 1e-6 * abs(total):
            raise ValueError(
                f"the components explain {total:.6g} together, but the result says "
                f"{answer.value:.6g}: it was changed; fit again"
            )

    def recheck(self, given: Given) -> str:
        """Refuse a result that claims too much; return why its bounds could not be rechecked."""
        why = recheck(self.answer, given, self.source)
        if why:
            self.proved = np.inf
        return why

    def found(self) -> Alternatives:
        answer, wanted = self.answer, self.wanted
        near = Neighbours(self.fits, answer, wanted, self.monitor)
        several = range(len(answer.supports))
        components = tuple(
            self._checked(near.nearby(self._beside(j))) for j in several if self.plain
        )
        joint: list[Cost | None] = []
        if len(several) > 1 and wanted.drop:
            shared = self._shared()
            used = np.unique(np.concatenate(answer.supports))
            for place, f in enumerate(used, 1):
                near.announce(f"together without {answer.feature_name(int(f))}", place, used.size)
                joint.append(self._joint_drop(int(f), components, shared))
        # after a stop the lists and costs that were still to come are missing
        status = near.stopped() or near.ended or "complete"
        costs = tuple(cost for cost in joint if cost is not None)
        return Alternatives(answer, wanted.within, components, costs, status)

    def _checked(self, near: Nearby) -> Nearby:
        """Refuse a bound that one of the supports beside the others exceeds."""
        better = max((entry.value for entry in near.supports), default=near.value) - near.value
        self._exceeded("one of their supports explains", self.answer.value + better)
        return near

    def _exceeded(self, what: str, value: float) -> None:
        """Refuse data with the same moments as those of the answer, or an answer whose bound is
        not proved: `what` explains more than the bound."""
        if value > self.answer.bound * (1 + 1e-6):
            raise ValueError(
                f"these are not the data of the result: {what} {value:.7g}, more than its bound "
                f"{self.answer.bound:.7g}; pass the data that it came from, or fit these again"
            )

    def _beside(self, j: int) -> Beside:
        answer, k = self.answer, len(self.answer.supports)
        include = self.constraints.include or ((),) * k
        taken = [np.union1d(s, np.array(own, int)) for s, own in zip(answer.supports, include)]
        sizes = self._sizes_in_order([t.size for t in taken])
        others = {int(f) for i, t in enumerate(taken) if i != j for f in t}
        exclude = tuple(sorted(others.union(self.constraints.exclude)))
        own = (include[j],) if include[j] else ()
        return Beside(j, sizes[j], taken[j].astype(np.intp), Constraints(own, exclude))

    def _sizes_in_order(self, used: list[int]) -> list[int]:
        """Return the cardinality of each component.

        With anchors it is the one at its place; otherwise the component with the most features is
        given the largest, and so on.
        """
        if self.constraints.include:
            return list(self.sizes)
        order = sorted(range(len(used)), key=lambda i: -used[i])
        sizes = [0] * len(used)
        for i, s in zip(order, sorted(self.sizes, reverse=True)):
            sizes[i] = s
        return sizes

    def _shared(self) -> KyFanSplit | None:
        """Return the Ky Fan split of the answer's joint proof, if it has one, on the features that
        were searched."""
        best = self._split_bound()
        return None if best is None or "u" not in best.data else KyFanSplit.of(best.data)

    def _split_bound(self) -> Bound | None:
        named = [bound for bound in self.answer.certificate.bounds if bound.name == "kyfan"]
        return min(named, key=lambda bound: bound.value, default=None)

    def _joint_drop(
        self, feature: int, components: tuple[Nearby, ...], shared: KyFanSplit | None
    ) -> Cost | None:
        """Return the best answer in which no component uses the feature."""
        answer, total = self.answer, self.total
        anchors = {f for own in self.constraints.include for f in own}
        exclude = tuple(sorted({*self.constraints.exclude, feature}))
        needed = max(self.sizes)
        if self.asked.disjoint:
            needed = sum(self.sizes) if total is None else total
        few = min(self.fits.free(exclude), answer.n_features - len(exclude)) < needed
        if feature in anchors or few or self.monitor.stopped is not None:
            return None
        constraints = Constraints(self.constraints.include, exclude)
        if components:
            supports = self._without(feature, components)
            split = self._split_bound()
            hard = split is not None and split.value > answer.value * (1 + self.fits.options.tol)
            fit = self.fits.joint(self.sizes, constraints, supports, shared, hard=hard)
        else:
            supports = [np.setdiff1d(support, feature) for support in answer.supports]
            fit = self.fits.again(
                self.fits.of_the_kind(self.sizes, total, constraints), constraints, supports
            )
        self._exceeded(f"without {answer.feature_name(feature)} components explain", fit.value)
        return Cost(feature, fit.value, min(fit.bound, self.proved), fit)

    def _without(self, feature: int, components: tuple[Nearby, ...]) -> list[np.ndarray]:
        """Return supports that do without the feature, for a search to start from.

        The component that uses it is given its best known support without it, the others keep
        theirs.
        """
        supports = [np.asarray(support) for support in self.answer.supports]
        component = next(j for j, own in enumerate(supports) if feature in own)
        near = components[component]
        fits = [cost.fit for cost in near.drops if cost.feature == feature]
        listed = _best_listed(near, feature)
        if fits and fits[0] is not None:
            supports[component] = fits[0].supports[0]
        elif listed is not None:
            supports[component] = listed
        else:
            supports[component] = np.setdiff1d(supports[component], feature)
        if supports[component].size == 0:
            anchors = [f for own in self.constraints.include for f in own]
            used = [*np.concatenate(supports), feature, *anchors, *self.constraints.exclude]
            free = np.setdiff1d(self.fits.kept, used)
            variance = self.cov.diagonal[self.fits.places(free)]
            supports[component] = free[np.argsort(-variance, kind="stable")[:1]]
        return supports


def _best_listed(near: Nearby, feature: int) -> np.ndarray | None:
    """Return the best support of a list that does without the feature, perhaps with one in its
    place that it can be exchanged for: a list has one support for all that exchanges lead to."""
    alike = [group for group in near.groups if feature in group]
    for entry in near.supports:
        if feature not in entry.support:
            return entry.support
        for group in alike:
            others = np.setdiff1d(group, entry.support)
            if others.size:
                return np.union1d(np.setdiff1d(entry.support, feature), others[:1])
    return None


def data_of(answer: Result, source: Input, asked: Settings, monitor: Monitor) -> Data:
    """Return the covariance of the features that the answer was searched among: all, or those that
    were kept of a table read in passes. A ValueError says why they are not the data of the
    answer."""
    screened = answer.certificate.bounds[0].data.get("screened")
    kept = None if screened is None else np.asarray(screened["kept"], dtype=np.intp)
    if kept is not None and isinstance(source.source, Table):
        rows, weights = MatrixRows(source.source), source.sample_weight
        source = replace(source, source=rows if weights is None else rows.weighted(weights))
    searched = Searched(source, asked.center, asked.scale, asked.memory_limit, monitor)
    every, told = np.arange(answer.n_features), answer.settings
    needed, anchors = sum(told["n_nonzero_coefs"]), told.get("include") or ()
    limits = Constraints(tuple(map(tuple, anchors)), tuple(told.get("exclude") or ()))
    searched.among(every if kept is None else kept, needed, limits)
    check_same(answer, searched.data)
    searched.measure_in(answer.certificate.unit)  # for proofs of one unit
    return searched.data if kept is not None else searched.data.in_memory()
