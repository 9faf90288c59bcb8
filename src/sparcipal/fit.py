"""The whole method, stage by stage: data -> covariance -> elimination -> search -> refinement ->
proof.

This is the only file that names all stages. Each takes what the one before it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from . import settings as validate
from .bounds.strategy import Proved, prove
from .bounds.widen import Widened, widened
from .data.inputs import Data, data_of, from_screened
from .data.passes import MEMORY_LIMIT, Stream, memory_bytes
from .numerics.threads import one_blas_thread
from .problem.components import refit, rounding_of_value, variances
from .problem.eliminate import informative
from .problem.monitor import Monitor, Progress
from .problem.problem import Component, Options, Problem
from .problem.result import Bound, Certificate, Result, Status
from .search.method import Found, Method


def sparse_pca(
    X: Any = None,
    *,
    covariance: Any = None,
    n_components: int = 1,
    n_nonzero_coefs: int | Iterable[int] | Mapping[str, int] | None = None,
    supports: str = "disjoint",
    nonnegative: bool = False,
    method: str = "auto",
    method_options: Mapping[str, Any] | None = None,
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
    memory_limit: float = MEMORY_LIMIT,
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
    supports : {"disjoint", "free"}
        Whether a feature may serve in one component only, or in several. With "free", each
        component counts only the variance that those before it have not explained.
    nonnegative : bool
        Loadings that are not negative.
    method : str
        "auto" is the portfolio that a user should get; the others are there to compare.
    method_options : dict
        Keywords of the method itself.
    rank : int
        Rank of the sketch, for methods that work on one.
    center, scale : bool
        Subtract the mean (default); divide by the standard deviation (not the default).
    certify : {"fast", "full", False}
        How hard to prove: a deterministic budget of a few seconds, until `tol` or a limit, or the
        cheap bounds only.
    tol : float
        The relative gap that counts as optimal.
    max_nodes : int
        Limit on the nodes of the branch and bound.
    time_limit : float
        Seconds; the best answer so far is returned with its valid bound.
    n_jobs : int
        Threads, or inside `joblib.parallel_config("dask")` the workers of a cluster. Results do not
        depend on it.
    random_state : int, Generator, RandomState or None
    verbose : int
        1 prints a line per improvement to stderr.
    callback : callable
        Called with a Progress; return True to stop with the best answer so far.
    sample_weight : array of shape (n_samples,)
    feature_names : sequence of str
    memory_limit : int
        Bytes. Data that would take more in memory are read in passes: one for the variances, one
        for the covariance of the features that vary most. These are searched; the bound counts all.

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
    validate.choice("supports", supports, validate.SUPPORTS)
    validate.choice("certify", certify, validate.CERTIFY)
    nonnegative = validate.flag("nonnegative", nonnegative)
    chosen, own_options = validate.method_and_options(method, method_options)
    options = Options(
        rank=None if rank is None else validate.integer("rank", rank, 1),
        seed=validate.seed(random_state),
        n_jobs=validate.jobs(n_jobs),
        tol=validate.number("tol", tol, 0.0, 1.0),
        max_nodes=None if max_nodes is None else validate.integer("max_nodes", max_nodes, 0),
    )
    time_limit = validate.seconds("time_limit", time_limit)
    limit = memory_bytes(memory_limit)
    monitor = Monitor(reporter(callback, verbose), time_limit)
    options = replace(options, monitor=monitor)
    with one_blas_thread:
        data = data_of(X, covariance, center, scale, sample_weight, feature_names, limit, monitor)
    sizes, total = validate.budget(n_nonzero_coefs, n_components, supports, data.n_features, method)

    question = partial(
        Problem,
        cardinalities=sizes,
        nonnegative=nonnegative,
        disjoint=supports == "disjoint",
        total=total,
    )
    stages = partial(
        solve, method=chosen, method_options=own_options, options=options, certify=certify
    )
    with monitor.interruptible(), one_blas_thread:
        if isinstance(data, Stream):
            data, answer = _in_passes(data, question, stages, monitor)
        else:
            answer, _ = _answered(data, question, stages, monitor)
    settings = {
        "n_components": len(sizes),
        "n_nonzero_coefs": list(sizes),
        "supports": supports,
        "nonnegative": nonnegative,
        "method": method,
        "method_options": own_options,
        "rank": options.rank,
        "center": data.center,
        "scale": data.scaled,
        "certify": certify,
        "tol": options.tol,
        "max_nodes": options.max_nodes,
        "time_limit": time_limit,
        "random_state": options.seed,
        "sample_weight": data.weighted,
    }
    if total is not None:
        settings["n_nonzero_total"] = total
    return result_of(answer, question(data.covariance), data, settings)


@dataclass(frozen=True)
class Answer:
    """Components on all features, with what was proved; still in inside units."""

    components: tuple[Component, ...]
    certificate: Certificate
    found: Found
    again: Any = None  # what the proof for a neighbouring cardinality may begin with


def _in_passes(
    stream: Stream,
    question: partial[Problem],
    stages: partial[Answer],
    monitor: Monitor,
) -> tuple[Data, Answer]:
    """Keep some features, solve, and keep more until what is proved holds for all features."""
    stream.count(monitor)
    needed = sum(question.keywords["cardinalities"])
    needed = question.keywords["total"] or needed
    count = stream.first(needed)
    before: tuple[Data, Answer] | None = None
    while True:
        try:
            data = from_screened(stream.screened(count, monitor), stream.rows.feature_names)
        except (KeyboardInterrupt, TimeoutError):
            if before is None:
                raise
            return before[0], _cut_short(before[1], monitor)
        answer, wide = _answered(data, question, stages, monitor)
        before = data, answer
        last = count >= stream.most(needed) or monitor.stopped is not None
        if wide is None or wide.settled or last:
            return data, answer
        count = stream.more(count, needed, wide.enough * data.covariance.unit)


def _cut_short(answer: Answer, monitor: Monitor) -> Answer:
    """An answer that was about to be improved when the run was stopped."""
    certificate = answer.certificate
    if certificate.status is Status.OPTIMAL:
        return answer
    status = Status.INTERRUPTED if monitor.stopped == "user" else Status.TIME_LIMIT
    return replace(answer, certificate=replace(certificate, status=status))


def _answered(
    data: Data, question: partial[Problem], stages: partial[Answer], monitor: Monitor
) -> tuple[Answer, Widened | None]:
    monitor.unit = data.covariance.unit
    whole = question(data.covariance)
    if data.survivors is None:
        return stages(whole), None
    if whole.n_nonzero > whole.covariance.n_features and whole.disjoint:
        raise ValueError(
            f"covariance has {whole.covariance.n_features} kept features, but the components have "
            f"{whole.n_nonzero} nonzeros; keep more features"
        )
    whole = replace(whole, dropped=float(data.survivors.dropped.max(initial=0.0)))
    return extended(
        stages(whole), whole, data, stages.keywords["options"], stages.keywords["certify"]
    )


def extended(
    answer: Answer, whole: Problem, data: Data, options: Options, certify: Any
) -> tuple[Answer, Widened | None]:
    """What was proved of the kept features, said of all; None where none was dropped."""
    if data.survivors is None:
        return answer, None
    wide = widened(whole, answer.certificate, answer.components, data.survivors, options, certify)
    certificate = _judged(wide.certificate, answer.certificate, data)
    options.monitor.update("all features", value=certificate.value, bound=certificate.bound)
    return replace(answer, certificate=certificate), wide


def _judged(certificate: Certificate, inside: Certificate, data: Data) -> Certificate:
    """Status and message of a certificate that was extended to all features."""
    if certificate.gap <= certificate.tol:
        return replace(certificate, status=Status.OPTIMAL, message="")
    if certificate.bound <= inside.bound:
        return certificate
    status = Status.GAP if inside.status is Status.OPTIMAL else inside.status
    accept = f"accept: at most {_percent(certificate.gap)} below the optimum"
    remedy = "keep more features (a larger memory_limit)"
    if data.scaled:
        remedy += ": standardised columns cannot be screened by their variance"
    message = (
        f"gap {_percent(certificate.gap)} > tol {100 * certificate.tol:.3g} %, "
        f"{_percent(inside.gap)} among the kept features: {remedy}, or {accept}"
    )
    return replace(certificate, status=status, message=message)


def solve(
    whole: Problem,
    method: Method,
    method_options: dict[str, Any],
    options: Options,
    certify: Any,
    start: Any = None,
) -> Answer:
    """The stages between the covariance and the result; `start` is `again` of a neighbour."""
    monitor = options.monitor
    kept = informative(whole.covariance, whole.n_nonzero)
    eliminated = whole.covariance.n_features - kept.size
    monitor.update("eliminate", message=f"{eliminated} of {whole.covariance.n_features} features")
    reduced = whole.covariance if not eliminated else whole.covariance.restrict(kept)
    problem = replace(whole, covariance=reduced.materialise())
    found = method.run(problem, options, **method_options)
    components = refit(problem, found.components, orthogonal="orthogonal" in found.info)
    monitor.update("search", value=_value(problem, components), message=found.note)
    proved = prove(problem, components, found.bounds, options, certify, start)
    if method.name != "auto":
        # A method that is there to be compared keeps its own answer, even if the proof met a better
        # one.
        proved = replace(proved, components=components)
    certificate = _certificate(problem, proved, options, certify, found)
    monitor.update("done", value=certificate.value, bound=certificate.bound, nodes=proved.nodes)
    certificate = replace(certificate, eliminated=eliminated + proved.eliminated)
    lifted = tuple(Component(kept[c.support], c.weights) for c in proved.components)
    bounds = tuple(replace(b, data=_lift(b.data, kept, eliminated)) for b in certificate.bounds)
    return Answer(lifted, replace(certificate, bounds=bounds), found, proved.again)


def _value(problem: Problem, components: tuple[Component, ...]) -> float:
    return float(variances(problem, components).sum())


def _lift(data: dict[str, Any], kept: np.ndarray, eliminated: int) -> dict[str, Any]:
    """Proofs speak of the features that were kept: say which."""
    return {**data, "kept": kept} if eliminated else data


def _certificate(
    problem: Problem, proved: Proved, options: Options, certify: Any, found: Found
) -> Certificate:
    value = _value(problem, proved.components)
    rounding = rounding_of_value(problem, proved.components)
    bounds = tuple(sorted(proved.bounds, key=lambda bound: bound.value))
    lowest = bounds[0]
    if lowest.value < value - rounding:
        raise ArithmeticError(
            f"the bound {lowest.name!r} of {lowest.value:.12g} is below the value {value:.12g} "
            f"by more than rounding ({rounding:.3g}), so that one of them is wrong; please report "
            "it with the data"
        )
    # A bound can come out below the computed value by rounding only; the claim must not.
    bounds = tuple(b if b.value >= value else Bound(b.name, value, b.data) for b in bounds)
    certificate = Certificate(
        value=value,
        bound=bounds[0].value,
        rounding=rounding,
        status=Status.OPTIMAL,
        bounds=bounds,
        tol=options.tol,
        nodes=proved.nodes,
        guarantees=found.info.get("guarantees", {}),
        unit=problem.covariance.unit,
    )
    status = _status(certificate, proved, options)
    return replace(certificate, status=status, message=_message(certificate, status, certify))


def _status(certificate: Certificate, proved: Proved, options: Options) -> Status:
    if certificate.gap <= certificate.tol:
        return Status.OPTIMAL
    stopped = options.monitor.stopped
    if stopped is not None:
        return Status.TIME_LIMIT if stopped == "time" else Status.INTERRUPTED
    return Status.NODE_LIMIT if proved.out_of_nodes else Status.GAP


def _message(certificate: Certificate, status: Status, certify: Any) -> str:
    if status is Status.OPTIMAL:
        return ""
    gap = f"gap {_percent(certificate.gap)} > tol {100 * certificate.tol:.3g} %"
    accept = f"accept: at most {_percent(certificate.gap)} below the optimum"
    remedy = {
        Status.TIME_LIMIT: "raise time_limit",
        Status.INTERRUPTED: "let it run",
        Status.NODE_LIMIT: "raise max_nodes",
    }.get(status, "pass certify='full'" if certify != "full" else "ask for fewer nonzeros")
    return f"{gap}: {remedy}, or {accept}"


def _percent(fraction: float) -> str:
    """Three digits, rounded up: the words must not claim more than the numbers."""
    if not 0 < fraction < np.inf:
        return f"{100 * fraction:g} %"
    step = 10.0 ** (np.floor(np.log10(100 * fraction)) - 2)
    return f"{np.ceil(100 * fraction / step) * step:.3g} %"


def reporter(
    callback: Callable[[Progress], object] | None, verbose: Any
) -> Callable[[Progress], object] | None:
    level = validate.integer("verbose", verbose, 0)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}")
    if not level:
        return callback
    from .report.progress import ProgressLines

    lines = ProgressLines()

    def both(progress: Progress) -> object:
        lines(progress)
        return callback(progress) if callback is not None else None

    return both


def result_of(answer: Answer, whole: Problem, data: Data, settings: dict[str, Any]) -> Result:
    """Back to the user's units and features."""
    unit = whole.covariance.unit
    inside = answer.certificate
    bounds = tuple(replace(b, value=b.value * unit) for b in inside.bounds)
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
    )
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
        info=answer.found.info,
    )
