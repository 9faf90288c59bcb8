"""A whole path of cardinalities: value and bound for every number of nonzeros, in one call.

The covariance is computed once (of a table that does not fit, that of the features that vary most,
in passes over its rows), and each support grows out of the one before it: the features that
add most join, a short search follows, and the branch and bound corrects what that misses. The proof
begins with the certificate of the one before it, which needs a few steps to fit again. Only where
a proof stays open is the full search run as well: no value is worse than that of a separate call.

Beyond EACH nonzeros among many features the default effort proves a cardinality only if the last
proof, scaled, leaves more than SCALED open and more than AGAIN times as much as it left itself, and
then to AIM where neighbours are asked for too: a proof of the last tenths of a per cent would take
most of the time and serve one of them. So the region where the optima lie costs few proofs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .bounds.neighbour import neighbour_bound
from .bounds.strategy import WHOLE
from .data.facts import Data
from .data.inputs import resolved
from .data.notes import tell
from .data.passes import MEMORY_LIMIT
from .data.searched import Searched
from .fit import remarked, result_of, solve
from .numerics.threads import one_blas_thread
from .problem.constraints import Columns, Constraints, check_anchors
from .problem.monitor import Monitor
from .problem.parameters import Complaints, integers, known_keywords, refuse
from .problem.problem import Component, Options, Problem, informative
from .problem.result import Bound, Result, Status
from .rounds import Answer, settled
from .search.method import Found
from .search.registry import get_method
from .search.warm import grow, warm_support
from .settings import Settings

LONGEST = 30  # numbers of nonzeros of a path, unless the user says
EACH = 30  # nonzeros up to which the default effort proves each cardinality
SCALED = 0.015  # gap up to which the scaled bound of a smaller cardinality will do
AGAIN = 1.5  # or so many times what the last proof left open, as the next one would leave as much
SEARCHED = 3  # effort of a search, as in a separate call
AIM = 0.002  # gap that a proof then leaves open
DENSE = 25  # sizes closer than a part in so many are neighbours


@dataclass(frozen=True)
class Path:
    """Results for increasing numbers of nonzeros; iterates over them.

    Attributes
    ----------
    results : tuple of Result
    """

    results: tuple[Result, ...]

    @property
    def n_nonzero_coefs(self) -> np.ndarray:
        return np.array([result.settings["n_nonzero_coefs"][0] for result in self.results])

    @property
    def values(self) -> np.ndarray:
        return np.array([result.value for result in self.results])

    @property
    def bounds(self) -> np.ndarray:
        return np.array([result.bound for result in self.results])

    @property
    def gaps(self) -> np.ndarray:
        return np.array([result.gap for result in self.results])

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, position: int) -> Result:
        return self.results[position]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def _repr_html_(self) -> str:
        from .report.cards import path_card

        return path_card(self)

    def plot(self, ax: Any = None) -> Any:
        """Variance against the number of nonzeros, with the region where the optimum must lie."""
        from .report.plots import PathDisplay

        return PathDisplay(self.results).plot(ax=ax)


@known_keywords
def sparse_path(
    X: Any = None,
    *,
    covariance: Any = None,
    n_components: int = 1,
    n_nonzero_coefs: Iterable[int] | None = None,
    supports: str = "disjoint",
    objective: str | None = None,
    uncorrelated: bool = False,
    nonnegative: bool = False,
    center: bool = True,
    scale: bool = False,
    certify: str | bool = "fast",
    tol: float = 1e-6,
    max_nodes: int | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    callback: Any = None,
    sample_weight: Any = None,
    feature_names: Iterable[str] | None = None,
    memory_limit: float = MEMORY_LIMIT,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    missing: str = "error",
) -> Path:
    """Sparse components for every number of nonzeros, each answer with its certificate.

    Parameters are those of `sparse_pca`, except

    n_nonzero_coefs : iterable of int
        The numbers of nonzeros of each component; solved in increasing order. None means 1 to 30,
        or to n_features // n_components if that is less. Components in a common set, and
        uncorrelated ones, need at least `n_components` nonzeros.
    time_limit : float
        Seconds for the whole path. What is not reached in time is bounded, but hardly searched.
    certify : {"fast", "full", False}
        As for `sparse_pca`; but beyond 30 nonzeros of more than 400 features "fast" proves one
        number of nonzeros only if the proof for a smaller one leaves a gap of more than 1.5 % (or
        of 1.5 times what it left for its own number), and of consecutive numbers to a gap of 0.2 %.

    Returns
    -------
    Path

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import sparse_path
    >>> A = np.array([[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 3.5]])
    >>> sparse_path(covariance=A, n_nonzero_coefs=[1, 2, 3]).values.round(6).tolist()
    [3.5, 4.0, 4.0]
    """
    with Complaints() as check:
        numbers = check(_numbers, n_nonzero_coefs, check)
        settings = Settings.noted(
            check,
            n_components=n_components,
            supports=supports,
            objective=objective,
            uncorrelated=uncorrelated,
            nonnegative=nonnegative,
            center=center,
            scale=scale,
            certify=certify,
            tol=tol,
            max_nodes=max_nodes,
            time_limit=time_limit,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            callback=callback,
            memory_limit=memory_limit,
            include=include,
            exclude=exclude,
            missing=missing,
        )
        monitor = settings.monitor()
        refused = not numbers and n_nonzero_coefs is not None

        def sizes_among(columns: Columns, n_samples: int | None = None) -> list[int]:
            return _sizes_among(columns, settings, numbers or None, refused)

        with monitor.interruptible(), one_blas_thread:
            given = resolved(
                X,
                covariance,
                feature_names=feature_names,
                sample_weight=sample_weight,
                door=settings.door(monitor, check, sizes_among),
            )
            limits = (settings.center, settings.scale, settings.memory_limit)
            searched = Searched(given, *limits, monitor)
            columns = Columns(given.n_features, given.feature_names)
            found = path_among(searched, settings, columns, sizes_among(columns), monitor)
            tell(searched.on_constants)
            return found


def path_among(
    searched: Searched,
    settings: Settings,
    columns: Columns,
    sizes: list[int],
    monitor: Monitor,
    *,
    thorough: bool = True,
) -> Path:
    """Return the path of `sizes`, increasing; without `thorough` no answer is searched for
    afresh."""
    k = settings.n_components
    asked = settings.constraints(columns, sizes[:1] * k, None)
    needed = sizes[-1] if settings.supports == "common" else k * sizes[-1]
    searched.begin(needed, asked)
    _check_kept(searched.data, needed if settings.disjoint else max(sizes[-1], k))
    options = settings.options(monitor, searched.room(settings.memory_limit))
    steps = _Steps(settings, options, asked, columns, thorough)
    results: list[Result] = []
    before: Answer | None = None
    for s, last, after in zip(sizes, [0, *sizes], [*sizes[1:], np.inf]):
        dense = min(s - last, after - s) <= s // DENSE
        before, result = steps.at((s,) * k, searched, before, dense)
        results.append(result)
    return Path(tuple(results))


@dataclass(frozen=True)
class _Steps:
    """What all steps of a path have in common."""

    settings: Settings
    options: Options
    asked: Constraints
    columns: Columns
    thorough: bool

    def at(
        self, sizes: tuple[int, ...], searched: Searched, before: Answer | None, dense: bool
    ) -> tuple[Answer | None, Result]:
        """Solve one cardinality: the answer from which the next one grows, and the result.

        `dense` says whether cardinalities nearby are asked for as well.
        """
        settings, options = self.settings, self.options

        def question(data: Data) -> Problem:
            whole = Problem(
                data.formed,
                sizes,
                settings.nonnegative,
                settings.supports,
                constraints=self.asked,
                objective=settings.objective or "sum",
                uncorrelated=settings.uncorrelated,
            )
            if data.survivors is None:
                return whole
            check_anchors(self.asked, data.survivors.kept, self.columns)
            among = whole.among(data.survivors.kept, data.formed)
            return replace(among, dropped=float(data.survivors.dropped.max(initial=0.0)))

        def answer(whole: Problem, before: Answer | None, part: Options) -> Answer:
            if before is not None and not np.array_equal(before.alive, informative(whole)):
                before = replace(before, again=None)  # constant features fill larger supports
            if settings.certify == "fast" and before is not None and _serves_several(whole):
                aimed = replace(part, aim=AIM) if dense else part
                return _scaled_step(whole, before, aimed, self.thorough)
            return _step(whole, before, part, settings.certify, self.thorough)

        options.monitor.begin_question()  # what is said of this size begins with it
        options.monitor.update("path", message=f"{sizes[0]} nonzeros")
        found = settled(searched, question, answer, options, settings.certify, before)
        data, record = found.data, settings.record(sizes, None, found.data, self.asked)
        told = result_of(found.shown, question(data), data, record)
        return found.inside, remarked(told, searched)


def _check_kept(data: Data, needed: int) -> None:
    if data.covariance.n_features < needed:
        raise ValueError(
            f"covariance has {data.covariance.n_features} kept features, but the components need "
            f"{needed}; keep more features"
        )


def _numbers(n_nonzero_coefs: Iterable[int] | None, check: Complaints) -> list[int] | None:
    """Return the cardinalities that were asked for, increasing."""
    if n_nonzero_coefs is None:
        return None
    if not isinstance(n_nonzero_coefs, Iterable):
        raise TypeError(
            f"n_nonzero_coefs={n_nonzero_coefs!r}: a path takes several numbers; write "
            "for instance range(1, 11)"
        )
    given = list(n_nonzero_coefs)
    if not given:
        raise ValueError("n_nonzero_coefs is empty; pass for instance range(1, 11)")
    return sorted(set(integers("n_nonzero_coefs", given, 1, check)))


def _sizes_among(
    columns: Columns, settings: Settings, numbers: list[int] | None, refused: bool
) -> list[int]:
    """Return the cardinalities of a path; one error names all that is wrong with them and with
    names."""
    with Complaints() as check:
        available = check(settings.available, columns)
        room = columns.count if available is None else available
        sizes: list[int] | None = check(_sizes, numbers, settings, room)
        # where numbers do not fit, or were refused, the names are checked all the same
        first = sizes[:1] if sizes and not refused else [columns.count]
        check(settings.constraints, columns, first * settings.n_components, None)
    assert sizes is not None
    return sizes


def _sizes(sizes: list[int] | None, settings: Settings, n_features: int) -> list[int]:
    """Return the cardinalities in their order; without any, from what is needed at least on."""
    k, include = settings.n_components, settings.include
    wrong = []
    most = n_features // k if settings.disjoint else n_features
    needed = k if settings.supports == "common" or settings.uncorrelated else 1
    if settings.disjoint and k > n_features:
        wrong.append(
            f"n_components={k} components cannot have disjoint supports among "
            f"n_features={n_features} features; ask for at most {n_features}"
        )
        most = n_features
    elif sizes is not None and (sizes[0] < needed or needed > most):
        kind = "in a common set" if settings.supports == "common" else "that are uncorrelated"
        wrong.append(
            f"n_nonzero_coefs has {sizes[0]}, but n_components={k} components {kind} need at least "
            f"{needed} nonzeros each; pass numbers from {needed} on, or fewer components"
        )
    if sizes is not None and sizes[-1] > most:
        apart = settings.disjoint and 1 < k <= n_features
        room = f"n_features // n_components={most}" if apart else f"n_features={n_features}"
        wrong.append(
            f"n_nonzero_coefs has {sizes[-1]}, more than {room}; pass numbers between {needed} and "
            f"{most}, or None"
        )
    refuse(wrong)
    if sizes is not None:
        return sizes
    first = max(needed, len(include) if k == 1 and isinstance(include, Sized) else 1)
    return list(range(first, max(first, min(LONGEST, most)) + 1))


def _step(
    whole: Problem, before: Answer | None, options: Options, certify: Any, thorough: bool
) -> Answer:
    """Solve one cardinality: grow the answer before it; search afresh where the proof stays
    open."""
    fresh = get_method("auto")
    if before is None:
        return solve(whole, fresh, {} if thorough else {"effort": 0}, options, certify)
    if whole.constraints != Constraints():
        return solve(whole, fresh, {}, options, certify, before.again)
    answer = _grown(whole, before, options, certify, int(thorough))
    proved = answer.certificate.status is Status.OPTIMAL
    if proved or not thorough or options.monitor.stopped is not None:
        return answer
    # a search without its proof is cheap; only a better answer is worth a second proof
    other = solve(whole, fresh, {}, options, False)
    if certify is False or other.certificate.value <= answer.certificate.value * (1 + options.tol):
        return answer
    known = replace(fresh, run=lambda problem, options: other.found)
    return solve(whole, known, {}, options, certify, answer.again)


def _scaled_step(whole: Problem, before: Answer, options: Options, thorough: bool) -> Answer:
    """Solve one of many cardinalities: its proof is that of a smaller one if that says enough."""
    fresh, alive = get_method("auto"), informative(whole)
    support = before.components[0].support
    if thorough:
        start = grow(whole.covariance, support, whole.cardinalities[0], whole.nonnegative)
    else:
        start = warm_support(whole, support, options)
    whole = replace(whole, starts=((start,),))
    found: list[Found] = []

    def search(problem: Problem, options: Options) -> Found:
        found.append(fresh.run(problem, options, effort=SEARCHED if thorough else 0))
        return replace(found[0], bounds=_scaled(whole, before, alive))

    near = solve(whole, replace(fresh, run=search), {}, options, False)
    enough = max(SCALED, AGAIN * before.left)
    if near.certificate.gap <= enough or options.monitor.stopped is not None:
        return replace(near, again=before.again, left=before.left)
    known = replace(fresh, run=lambda problem, options: found[0])
    answer = solve(whole, known, {}, options, "fast", before.again)
    return replace(answer, left=answer.certificate.gap)


def _grown(
    whole: Problem,
    before: Answer,
    options: Options,
    certify: Any,
    effort: int,
) -> Answer:
    """Return the answer of a short search that begins with the supports of a smaller
    cardinality."""
    fresh = get_method("auto")
    if whole.k > 1:
        near = replace(whole, starts=(tuple(c.support for c in before.components),))
        return solve(near, fresh, {"effort": effort}, options, certify, before.again)
    wanted = warm_support(whole, before.components[0].support, options)
    # constant features are set aside before the search
    alive = informative(whole)
    support = np.flatnonzero(np.isin(alive, wanted))
    found = Found((Component.even(support),))
    warm = replace(fresh, run=lambda problem, options: found)
    return solve(whole, warm, {}, options, certify, before.again)


def _serves_several(whole: Problem) -> bool:
    """Return whether one proof may serve several cardinalities: not where features were dropped."""
    many = whole.covariance.n_features > WHOLE and not whole.dropped
    one = whole.k == 1 and whole.constraints == Constraints()
    return one and many and whole.cardinalities[0] > EACH


def _scaled(whole: Problem, before: Answer, alive: np.ndarray) -> tuple[Bound, ...]:
    """Return what the best bound of a smaller cardinality says of this one."""
    lowest = before.certificate.bounds[0]
    found = neighbour_bound(whole, lowest, before.components[0].support.size, alive)
    return () if found is None else (found,)
