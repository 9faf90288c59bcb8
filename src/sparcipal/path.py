"""A whole path of cardinalities: value and bound for every number of nonzeros, in one call.

The covariance is computed once (of a table that does not fit, that of the features that vary most,
in passes over its rows), and each support grows out of the one before it: the features that
add most join, a short search follows, and the branch and bound corrects what that misses. The proof
begins with the certificate of the one before it, which needs a few steps to fit again. Only where
a proof stays open is the full search run as well: a path is never worse than separate calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import settings as validate
from .data.inputs import Data, data_of, from_screened
from .data.passes import MEMORY_LIMIT, Stream, memory_bytes
from .fit import Answer, extended, reporter, result_of, solve
from .numerics.threads import one_blas_thread
from .problem.eliminate import informative
from .problem.monitor import Monitor
from .problem.problem import Component, Options, Problem
from .problem.result import Result, Status
from .search.method import Found
from .search.warm import warm_support

LONGEST = 30  # numbers of nonzeros of a path, unless the user says


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

    def plot(self, ax: Any = None) -> Any:
        """Variance against the number of nonzeros, with the region where the optimum must lie."""
        from .report.plots import PathDisplay

        return PathDisplay(self.results).plot(ax=ax)


def sparse_path(
    X: Any = None,
    *,
    covariance: Any = None,
    n_nonzero_coefs: Iterable[int] | None = None,
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
) -> Path:
    """One sparse component for every number of nonzeros, each with its certificate.

    Parameters are those of `sparse_pca`, except

    n_nonzero_coefs : iterable of int
        The numbers of nonzeros; solved in increasing order. None means 1 to 30, or to n_features if
        that is less.
    time_limit : float
        Seconds for the whole path. What is not reached in time is bounded, but hardly searched.

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
    validate.choice("certify", certify, validate.CERTIFY)
    nonnegative = validate.flag("nonnegative", nonnegative)
    time_limit = validate.seconds("time_limit", time_limit)
    limit = memory_bytes(memory_limit)
    monitor = Monitor(reporter(callback, verbose), time_limit)
    with one_blas_thread:
        source = data_of(X, covariance, center, scale, sample_weight, feature_names, limit, monitor)
    sizes = _sizes(n_nonzero_coefs, source.n_features)
    options = Options(
        seed=validate.seed(random_state),
        n_jobs=validate.jobs(n_jobs),
        tol=validate.number("tol", tol, 0.0, 1.0),
        max_nodes=None if max_nodes is None else validate.integer("max_nodes", max_nodes, 0),
        monitor=monitor,
    )
    settings = {
        "n_components": 1,
        "supports": "disjoint",
        "nonnegative": nonnegative,
        "method": "auto",
        "method_options": {},
        "rank": None,
        "center": source.center,
        "scale": source.scale if isinstance(source, Stream) else source.scaled,
        "certify": certify,
        "tol": options.tol,
        "max_nodes": options.max_nodes,
        "time_limit": time_limit,
        "random_state": options.seed,
        "sample_weight": sample_weight is not None,
    }
    results: list[Result] = []
    with monitor.interruptible(), one_blas_thread:
        table = _Kept(source, sizes[-1], monitor)
        before: Answer | None = None
        for s in sizes:
            before, shown = _at(table, s, nonnegative, before, options, certify)
            whole = Problem(table.formed, (s,), nonnegative, True)
            answer = result_of(shown, whole, table.data, {**settings, "n_nonzero_coefs": [s]})
            results.append(answer)
    return Path(tuple(results))


class _Kept:
    """The covariance of all features, or of those that vary most: more of them when asked for."""

    def __init__(self, source: Data | Stream, needed: int, monitor: Monitor) -> None:
        self.monitor, self.needed, self.count = monitor, needed, 0
        self.stream = source if isinstance(source, Stream) else None
        if isinstance(source, Stream):
            source.count(monitor)
            self._read(source, source.first(needed))
        else:
            self._use(source)

    def _use(self, data: Data) -> None:
        if data.covariance.n_features < self.needed:
            raise ValueError(
                f"covariance has {data.covariance.n_features} kept features, but n_nonzero_coefs "
                f"has {self.needed}; keep more features"
            )
        self.data, self.formed = data, data.covariance.materialise()
        self.monitor.unit = data.covariance.unit

    def _read(self, stream: Stream, count: int) -> None:
        self._use(from_screened(stream.screened(count, self.monitor), stream.rows.feature_names))
        self.count = count

    def more(self, answer: Answer, enough: float) -> Answer | None:
        """Keep more features: the answer among them, or None when there are no more to keep."""
        stream = self.stream
        if stream is None or self.monitor.stopped or self.count >= stream.most(self.needed):
            return None
        kept = self.data.survivors
        assert kept is not None
        unit = self.data.covariance.unit
        try:
            self._read(stream, stream.more(self.count, self.needed, enough * unit))
        except (KeyboardInterrupt, TimeoutError):
            return None
        now = self.data.survivors
        assert now is not None
        (component,) = answer.components
        place = np.searchsorted(now.kept, kept.kept[component.support])
        return replace(answer, components=(Component(place, component.weights),), again=None)


def _at(
    table: _Kept,
    s: int,
    nonnegative: bool,
    before: Answer | None,
    options: Options,
    certify: Any,
) -> tuple[Answer, Answer]:
    """One cardinality: what the next one grows out of, and what is said of all features."""
    while True:
        whole = Problem(table.formed, (s,), nonnegative, True)
        answer = _step(whole, before, options, certify)
        shown, wide = extended(answer, whole, table.data, options, certify)
        if wide is None or wide.settled:
            return answer, shown
        before = table.more(answer, wide.enough)
        if before is None:
            return answer, shown


def _sizes(n_nonzero_coefs: Iterable[int] | None, n_features: int) -> list[int]:
    if n_nonzero_coefs is None:
        return list(range(1, min(LONGEST, n_features) + 1))
    sizes = sorted({validate.integer("n_nonzero_coefs", s, 1) for s in n_nonzero_coefs})
    if not sizes:
        raise ValueError("n_nonzero_coefs is empty; pass for instance range(1, 11)")
    if sizes[-1] > n_features:
        raise ValueError(
            f"n_nonzero_coefs has {sizes[-1]}, more than n_features={n_features}; pass numbers "
            f"between 1 and {n_features}, or None"
        )
    return sizes


def _step(whole: Problem, before: Answer | None, options: Options, certify: Any) -> Answer:
    """One cardinality: grow the answer before it; search afresh where the proof stays open."""
    fresh, _ = validate.method_and_options("auto", None)
    if before is None:
        return solve(whole, fresh, {}, options, certify)
    s = whole.cardinalities[0]
    near = warm_support(whole, before.components[0].support, options)
    # constant features are set aside before the search
    kept = informative(whole.covariance, s)
    support = np.flatnonzero(np.isin(kept, near))
    found = Found((Component(support, np.full(support.size, support.size**-0.5)),))
    warm = replace(fresh, run=lambda problem, options: found)
    answer = solve(whole, warm, {}, options, certify, before.again)
    if answer.certificate.status is Status.OPTIMAL or options.monitor.stopped is not None:
        return answer
    # a search without its proof is cheap; only a better answer is worth a second proof
    other = solve(whole, fresh, {}, options, False)
    if certify is False or other.certificate.value <= answer.certificate.value * (1 + options.tol):
        return answer
    return solve(whole, fresh, {}, options, certify, answer.again)
