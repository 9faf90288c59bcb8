"""The whole method, stage by stage: data -> covariance -> elimination -> search -> refinement ->
proof.

This is the only file that names all stages. Each takes what the one before it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .bounds.joint import prove_better
from .bounds.proved import Proved
from .bounds.strategy import prove
from .data.explained import predicting
from .data.facts import Data
from .data.inputs import Input, resolved
from .data.notes import tell
from .data.passes import MEMORY_LIMIT
from .data.scores import filling
from .data.searched import Searched
from .numerics.threads import one_blas_thread
from .problem.components import check_uncorrelated, redundancy, refit, variances
from .problem.constraints import Columns, check_anchors, check_left
from .problem.monitor import Meter, Monitor, Progress
from .problem.parameters import Complaints, known_keywords
from .problem.problem import Component, Options, Problem, informative
from .problem.result import Result
from .rounds import Answer, settled
from .search.method import Method
from .settings import Settings
from .verdict import certificate_of, kept_promises

SEARCHES = 4  # more searches, with new seeds, where a proof leaves a gap
SEARCHING = 3.5e9  # work of all searches of the default, about nanoseconds of one core by count


@known_keywords
def sparse_pca(
    X: Any = None,
    *,
    covariance: Any = None,
    n_components: int = 1,
    n_nonzero_coefs: int | Iterable[int] | Mapping[str, int] | None = None,
    supports: str = "disjoint",
    objective: str | None = None,
    uncorrelated: bool = False,
    nonnegative: bool = False,
    method: str = "auto",
    method_options: Mapping[str, Any] | None = None,
    init: Any = None,
    rank: int | None = None,
    center: bool = True,
    scale: bool = False,
    certify: str | bool = "fast",
    tol: float = 1e-6,
    max_nodes: int | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    callback: Callable[[Progress], object] | None = None,
    sample_weight: Any = None,
    feature_names: Iterable[str] | None = None,
    memory_limit: float | str = MEMORY_LIMIT,
    include: Iterable[Any] | None = None,
    exclude: Iterable[Any] | None = None,
    missing: str = "error",
) -> Result:
    """Principal components with few nonzero loadings, and a certificate of how good they are.

    Parameters
    ----------
    X : array, sparse matrix, frame, memory map or Table of shape (n_samples, n_features)
        The data; or pass `covariance`. A sparse matrix is centred implicitly and stays sparse. What
        does not fit in memory may be a function that returns an iterator over blocks of rows, the
        same ones each time, or anything of dask.
    covariance : array of shape (n_features, n_features), or Screened
        A covariance or correlation matrix instead of data; or the covariance of some features with
        the variances of all.
    n_components : int
        The number of components, k.
    n_nonzero_coefs : int, one int per component, or {"total": int}
        At most so many nonzero loadings each, or for all components together. None means 10, or
        n_features // n_components if that is less.
    supports : {"disjoint", "free", "orthogonal", "common"}
        A feature serves in one component only; in any; in any while the components are orthogonal;
        or all components use one set of `n_nonzero_coefs` features.
    objective : {"sum", "adjusted"}
        Whether the variances of the components are added, or what each explains beyond those before
        it in the best order. None means "adjusted" for free supports and "sum" otherwise.
    uncorrelated : bool
        Components whose scores are uncorrelated, for free and disjoint supports.
    nonnegative : bool
        Loadings that are not negative.
    method : str
        "auto" is the portfolio that a user should get; the others are there to compare.
    method_options : dict
        Keywords of the method itself.
    init : list of supports, one per component, or Result
        Features, by name or number, with which the search begins; a list of them for one component.
        A Result, or a fitted estimator, gives its own supports, but for excluded features.
        An answer of disjoint components (sum of variances) is never worse than these supports are.
    rank : int
        Rank of the sketch, for methods that work on one.
    center, scale : bool
        Subtract the mean (default); divide by the standard deviation (not the default), or with
        center=False by the root of the mean square.
    certify : {"fast", "full", False}
        How hard to prove: a deterministic budget of a few seconds; until `tol`, a limit, or the
        end of what proofs can improve; or the cheap bounds only.
    tol : float
        The relative gap that counts as optimal.
    max_nodes : int
        Limit on the nodes of the branch and bound.
    time_limit : float
        Seconds; the best answer so far is returned with its valid bound.
    n_jobs : int
        Threads, or workers of `joblib.parallel_config("dask")`. Results do not depend on it.
    random_state : int, Generator, RandomState or None
    verbose : int
        1 prints a line per improvement to stderr.
    callback : callable
        Called with a Progress; return True to stop with the best answer so far.
    sample_weight : array of shape (n_samples,)
        Not negative. A weight that is positive is at least 1e-100 of the largest.
    feature_names : sequence of str
    memory_limit : int or str
        Bytes, or a size as "500MB" and "2GiB". Data that would take more than half of it in memory
        are read in passes: one for the variances, others for the features that covary and for the
        covariance of those that are kept. These are searched; the bound counts all.
    include : list of names, patterns or numbers, or mask; or one such list per component
        Features that a component must use. They take their places among its nonzeros whatever their
        best loadings are, and the components are then in the order of these lists.
    exclude : list of names, patterns or numbers, or mask
        Features that no component may use; a pattern is as `gene*`.
    missing : {"error", "rows", "mean", "median", "pairwise"}
        What to do about entries that are missing (NaN): refuse them, leave out their rows, fill
        them with the mean or median of their column, or use the covariance of each pair of
        features over the rows that have both, moved to the nearest positive semidefinite matrix.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import sparse_pca
    >>> A = np.array([[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 3.5]])
    >>> result = sparse_pca(covariance=A, n_nonzero_coefs=2)
    >>> round(result.value, 6), result.status.value
    (4.0, 'optimal')
    """
    with Complaints() as check:
        settings = Settings.noted(
            check,
            n_components=n_components,
            n_nonzero_coefs=n_nonzero_coefs,
            supports=supports,
            objective=objective,
            uncorrelated=uncorrelated,
            nonnegative=nonnegative,
            method=method,
            method_options=method_options,
            init=init,
            rank=rank,
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
        with monitor.interruptible(), one_blas_thread:
            given = resolved(
                X,
                covariance,
                feature_names=feature_names,
                sample_weight=sample_weight,
                door=settings.door(monitor, check),
            )
            return fitted(given, settings, monitor, aloud=True)


def fitted(given: Input, settings: Settings, monitor: Monitor, *, aloud: bool = False) -> Result:
    """Answer the question that the settings put to the data; `aloud` warns of constant features
    and of fewer components than were asked for, which the result names in any case."""
    columns = Columns(given.n_features, given.feature_names)
    limits = settings.question(columns)
    sizes, total, asked = limits.sizes, limits.total, limits.constraints
    searched = Searched(given, settings.center, settings.scale, settings.memory_limit, monitor)

    def question(data: Data) -> Problem:
        whole = Problem(
            data.covariance,
            sizes,
            settings.nonnegative,
            settings.supports,
            total,
            constraints=asked,
            starts=limits.starts,
            objective=settings.objective or "sum",
            uncorrelated=settings.uncorrelated,
        )
        kept = data.survivors
        if kept is None:
            check_left(asked, data.covariance.inert)
            return whole
        check_anchors(asked, kept.kept, columns)
        whole = whole.among(kept.kept, data.covariance)
        free = whole.covariance.n_features - len(whole.constraints.exclude)
        needed = whole.n_nonzero if whole.disjoint else max(whole.s_max, whole.k)
        if needed > free:
            raise ValueError(f"covariance: {free} features are kept, {needed} needed; keep more")
        return replace(whole, dropped=float(kept.dropped.max(initial=0.0)))

    def answer(whole: Problem, before: Answer | None, part: Options) -> Answer:
        if before is not None:  # an answer among fewer features
            known = tuple(component.support for component in before.components)
            whole = replace(whole, starts=(*whole.starts, known))
        return solve(whole, settings.search, settings.method_options, part, settings.certify)

    needed = sum(sizes) if total is None else total
    plain = settings.supports == "disjoint" and (settings.objective or "sum") == "sum"
    rough = len(sizes) > 1 and settings.certify == "fast"
    searched.begin(needed, asked, rough=rough, apart=plain)
    options = settings.options(monitor, searched.room(settings.memory_limit))
    if aloud:
        remark = settings.remark(sizes)
        tell((*([remark] if remark else []), *searched.on_constants))
    found = settled(searched, question, answer, options, settings.certify)
    data, record = found.data, settings.record(sizes, total, found.data, asked)
    result = result_of(found.shown, question(data), data, record)
    return remarked(result, searched, settings.remark(sizes))


def remarked(result: Result, searched: Searched, more: str = "") -> Result:
    """Add to a result what is known of its table beside the numbers, and `more` if there is."""
    used = np.unique(np.concatenate(result.supports))
    beside = [*searched.on_copies(used), *searched.on_trends(used)]
    notes, texts = [*searched.notes, *([more] if more else []), *beside], searched.given.texts
    told: dict[str, Any] = {"notes": notes} if notes else {}
    if texts is not None:
        told["texts"] = texts
    return replace(result, info={**result.info, **told}) if told else result


def solve(
    whole: Problem,
    method: Method,
    method_options: dict[str, Any],
    options: Options,
    certify: Any,
    start: Any = None,
) -> Answer:
    """Run the stages between the covariance and the result; `start` is `again` of a neighbour."""
    monitor = options.monitor
    alive = informative(whole)
    eliminated = whole.covariance.n_features - alive.size
    out = len(whole.constraints.exclude)
    told = f"{eliminated} of {whole.covariance.n_features} features, {out} of them excluded"
    monitor.update("eliminate", message=told if out else told.partition(",")[0])
    reduced = whole.covariance if not eliminated else whole.covariance.restrict(alive)
    problem = whole.among(alive, reduced.materialise())
    searching = replace(options, meter=Meter(SEARCHING))
    found = method.run(problem, searching, **method_options)
    components = refit(problem, found.components)
    monitor.update("search", value=float(variances(problem, components).sum()), message=found.note)
    proved = prove(problem, components, found.bounds, options, certify, start)
    apart = method.name == "auto" and problem.k > 1 and problem.disjoint
    # where features were screened out, the default proof is rough, and its gap says little
    close = start is None and not problem.adjusted and not problem.dropped
    quick = certify == "fast" and close
    if apart and (quick or certify == "full"):
        proved = searched_on(problem, proved, method, method_options, searching, certify)
    if method.name != "auto":
        # A method that is there to be compared keeps its own answer, even if the proof met a better
        # one.
        proved = replace(proved, components=components)
    check_uncorrelated(problem, proved.components)
    certificate = certificate_of(problem, proved, options, certify, found)
    monitor.update("done", value=certificate.value, bound=certificate.bound, nodes=proved.nodes)
    certificate = replace(certificate, eliminated=eliminated - out + proved.eliminated)
    lifted = tuple(Component(alive[c.support], c.weights) for c in proved.components)
    bounds = certificate.bounds
    if eliminated:  # a proof speaks of the features that are left: it says which
        bounds = tuple(replace(b, data={**b.data, "kept": alive}) for b in bounds)
    return Answer(lifted, replace(certificate, bounds=bounds), found, alive, proved.again)


def searched_on(
    problem: Problem,
    proved: Proved,
    method: Method,
    method_options: dict[str, Any],
    options: Options,
    certify: str,
) -> Proved:
    """Search with new seeds while the gap is open: a bound can be tight where the search is not.

    By default all searches share one account, and another one begins if it holds the mean of
    those before. A better value is proved anew where that costs no more than the first proof.
    """
    first = proved.value(problem)
    for done in range(1, 1 + SEARCHES):
        value, meter = proved.value(problem), options.meter
        spent = certify == "fast" and meter.left < (SEARCHING - meter.left) / done
        if proved.lowest <= value * (1 + options.tol) or options.monitor.stopped or spent:
            break
        again = method.run(problem, replace(options, seed=options.seed + done), **method_options)
        better = replace(proved, components=refit(problem, again.components))
        if better.value(problem) > value:
            proved = better
            options.monitor.update("search", value=proved.value(problem), message=again.note)
    value = proved.value(problem)
    if first * (1 + options.tol) < value * (1 + options.tol) < proved.lowest:
        proved = prove_better(problem, proved, options, certify)
    return proved


def _redundancy(whole: Problem, answer: Answer) -> dict[str, Any]:
    """Return how far several components repeat each other."""
    if whole.k == 1:
        return {}
    correlation, adjusted = redundancy(whole.covariance, answer.components)
    unit = whole.covariance.unit
    return {"redundancy": {"correlation": correlation, "adjusted": adjusted * unit}}


def result_of(answer: Answer, whole: Problem, data: Data, settings: dict[str, Any]) -> Result:
    """Return the result in the user's units and features."""
    unit = whole.covariance.unit
    inside = answer.certificate
    bounds = tuple(replace(b, value=b.value * unit, margin=b.margin * unit) for b in inside.bounds)
    screening = {
        name: value * unit if name in ("largest_dropped", "inside", "touching") else value
        for name, value in inside.screening.items()
    }
    certificate = replace(
        inside,
        value=inside.value * unit,
        bound=inside.bound * unit,
        rounding=inside.rounding * unit,
        bounds=bounds,
        screening=screening,
        repair=_repair(data),
    )
    certificate = replace(certificate, guarantees=kept_promises(certificate))
    kept = None if data.survivors is None else data.survivors.kept
    return Result(
        supports=tuple(c.support if kept is None else kept[c.support] for c in answer.components),
        weights=tuple(c.weights for c in answer.components),
        variances=variances(whole, answer.components) * unit,
        total_variance=data.total_variance * unit,
        n_features=data.n_features,
        n_samples=data.n_samples,
        feature_names=data.feature_names,
        mean=data.mean,
        scale=data.scale,
        settings=settings,
        certificate=certificate,
        n_iter=answer.found.n_iter,
        note=answer.found.note,
        info={
            **answer.found.info,
            **filling(data, answer.components),
            **_redundancy(whole, answer),
            **predicting(data, answer.components),
        },
    )


def _repair(data: Data) -> dict[str, Any]:
    """Return the matrix that value and bound speak of, where it was made of pairs of features."""
    found = data.repaired
    if found is None:
        return {}
    return {"moved": found.moved, "relative": found.relative, "matrix": found.matrix}
