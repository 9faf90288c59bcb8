"""The only file that knows dask: passes over the rows, and the search, on the workers of a cluster.

A running `distributed.Client` is used when there is one, otherwise dask's threads. One task sums
one block; the sums are merged by a tree over the blocks in their order. Its shape depends on the
number of blocks alone, so that neither the number of workers nor their speed changes a bit, and
with integer data the blocks do not either. Every task is a function of data that the scheduler
can recompute, because a worker may die at any moment.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.callbacks import Callback
from dask.delayed import Delayed

from ..numerics.threads import DASK_BACKEND, one_blas_thread, register_backend
from .columns import looks_like_identifier
from .moments import Moments
from .rows import TELL, A, Rows, Watch, block_table, working_bytes
from .scores import Scorer
from .table import Table, as_table, stacked

FAN = 8  # sums merged by one task
SMALL = 1 << 26  # bytes of a dense table that is assumed to fit any memory
BLOCK = "128 MiB"  # size of a block after chunked columns were put together


@dataclass(frozen=True)
class Size:
    """The size of a block, as a pass reports it."""

    rows: int
    bytes: int  # in double precision, with the indices of a sparse block


class DaskRows(Rows):
    """Blocks of rows that dask computes when they are needed, here or on workers.

    Parameters
    ----------
    parts : sequence of Delayed
        One block of rows each: an array, a sparse matrix or a frame.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        n_features: int,
        feature_names: tuple[str, ...] | None = None,
        counts: Sequence[int] | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        n_samples = None if counts is None else sum(counts)
        super().__init__(n_features, n_samples, feature_names)
        self.notes = notes
        self.parts = list(parts)
        self._counts = None if counts is None else list(counts)
        dense = None if n_samples is None else 8 * n_samples * n_features
        self._bytes = dense if dense is not None and dense <= SMALL else None

    def blocks(self) -> Iterator[Any]:
        for part in self._checked_parts():
            (block,) = dask.compute(part)
            if block.shape[0]:
                yield block

    def gather(self) -> Table:
        blocks = [block for block in dask.compute(*self._checked_parts()) if block.shape[0]]
        return stacked(blocks, self.feature_names)

    def nbytes(self, watch: Watch | None = None) -> int:
        """Return the bytes of all rows; if unknown, a pass counts them, with the moments."""
        if self._bytes is None:
            moments = self._accumulate(Moments(self.n_features), watch, weighted=False)
            if self.sample_weight is None:
                self.moments = moments
        assert self._bytes is not None
        return self._bytes

    def accumulate(self, empty: A, watch: Watch | None = None) -> A:
        return self._accumulate(empty, watch, weighted=self.sample_weight is not None)

    def _accumulate(self, empty: A, watch: Watch | None, *, weighted: bool) -> A:
        # A task returns it, so that it is in the graph once and is recomputed if it is lost.
        topic = f"sparcipal-{uuid.uuid4()}"
        common = dask.delayed(_same, pure=False)(_Pass(empty, self._columns(), topic))
        add = dask.delayed(_summed, pure=False)
        merge = dask.delayed(_merged, pure=False)
        weights = self._weights() if weighted else [None] * len(self.parts)
        level = [
            add(common, part, number, weight)
            for number, (part, weight) in enumerate(zip(self.parts, weights))
        ]
        while len(level) > 1:
            level = [merge(common, level[i : i + FAN]) for i in range(0, len(level), FAN)]
        with _large_graphs():
            total, sizes = _computed(level[0], topic, len(self.parts), watch)
        self._learn(sizes)
        return total

    def _checked_parts(self) -> list[Any]:
        check = dask.delayed(checked_block, pure=False)
        columns = dask.delayed(_same, pure=False)(self._columns())
        return [check(part, number, columns) for number, part in enumerate(self.parts)]

    def _columns(self) -> _Columns:
        return _Columns(self.n_features, self._names_of_blocks)

    def _weights(self) -> list[np.ndarray]:
        assert self.sample_weight is not None
        if self._counts is None:
            self.nbytes()
        ends = np.cumsum(np.asarray(self._counts))
        if ends[-1] != self.sample_weight.size:
            raise ValueError(
                f"sample_weight has {self.sample_weight.size} entries, but there are {ends[-1]} "
                "rows; pass one per row"
            )
        return np.split(self.sample_weight, ends[:-1])

    def _learn(self, sizes: list[Size]) -> None:
        counts = [size.rows for size in sizes]
        if self._counts is not None and counts != self._counts:
            number = next(i for i, (a, b) in enumerate(zip(counts, self._counts)) if a != b)
            raise ValueError(
                f"block {number} holds {counts[number]} rows now, but held {self._counts[number]} "
                "before; a source of blocks must give the same rows each time"
            )
        self._counts, self.n_samples = counts, sum(counts)
        self._bytes = sum(size.bytes for size in sizes)
        if self.n_samples == 0:
            raise ValueError(f"all {len(counts)} blocks of X are empty; pass at least one row")


# These are neither dataclasses nor tuples, because dask would search their fields for each block.


class _Columns:
    """The number and names of the columns that every block must have."""

    def __init__(self, count: int, names: tuple[str, ...] | None = None) -> None:
        self.count, self.names = count, names


class _Pass:
    """The empty accumulator, the columns, and the topic under which blocks report."""

    def __init__(self, empty: Any, columns: _Columns, topic: str) -> None:
        self.empty, self.columns, self.topic = empty, columns, topic


def checked_block(block: Any, number: int, columns: _Columns) -> Any:
    """Return a block as a checked ndarray or csr_array with these columns, maybe of no rows."""
    n_features, feature_names = columns.count, columns.names
    shape = getattr(block, "shape", None)
    if shape is not None and len(shape) == 2 and shape[0] == 0 and shape[1] >= n_features:
        return np.empty((0, n_features))
    try:
        table = block_table(block, feature_names)
    except (TypeError, ValueError) as error:
        raise ValueError(f"block {number} of X: {error}") from error
    if table.shape[1] != n_features:
        raise ValueError(
            f"block {number} of X has {table.shape[1]} columns instead of {n_features}; all blocks "
            "must have the same columns"
        )
    if None not in (table.feature_names, feature_names) and table.feature_names != feature_names:
        raise ValueError(
            f"block {number} of X has other feature names than the first one; all blocks must "
            "have the same columns"
        )
    return table.X.tocsr() if sp.issparse(table.X) else table.X


# Tasks do not change their arguments, as they may run again on them after a worker's death.


def _same(value: Any) -> Any:
    return value


def _summed(
    common: _Pass, part: Any, number: int, weights: np.ndarray | None
) -> tuple[Any, list[Size]]:
    block = checked_block(part, number, common.columns)
    total = common.empty.copy_empty()
    with one_blas_thread:
        if block.shape[0]:
            total.add(block, weights)
    worker = _worker()
    if worker is not None:
        worker.log_event(common.topic, number)
    return total, [Size(block.shape[0], working_bytes(block))]


def _merged(common: _Pass, parts: list[tuple[Any, list[Size]]]) -> tuple[Any, list[Size]]:
    total = common.empty.copy_empty()
    for part, _ in parts:
        total.merge(part)
    return total, [size for _, sizes in parts for size in sizes]


def _computed(task: Any, topic: str, total: int, watch: Watch | None) -> Any:
    """Compute a task; `watch` is called as blocks are done and may end it by raising."""
    client = _client()
    if watch is None or (client is not None and client.asynchronous):
        return dask.compute(task)[0]
    done: set[int] = set()  # a set, so that a block recomputed after a worker's death counts once
    if client is None:
        with _Heard(lambda: watch(len(done), total, "blocks"), done):
            return dask.compute(task)[0]
    client.subscribe_topic(topic, lambda event: done.add(event[1]))
    future = client.compute(task)
    try:
        while not future.done():
            with contextlib.suppress(TimeoutError):
                future.result(timeout=TELL)
            if not future.done():
                watch(min(len(done), total), total, "blocks")
        return future.result()
    finally:
        future.cancel()
        client.unsubscribe_topic(topic)


class _Heard(Callback):  # type: ignore[misc]
    """Reports each block that dask's threads have summed."""

    def __init__(self, look: Callable[[], None], done: set[int]) -> None:
        super().__init__()
        self._look, self._done = look, done

    def _posttask(self, key: Any, *rest: Any) -> None:
        if str(key).startswith("_summed"):
            self._done.add(len(self._done))
            self._look()


def _client() -> Any:
    """The running client, unless another scheduler is configured."""
    chosen = dask.config.get("scheduler", None)
    if "distributed" not in sys.modules or chosen not in (None, "distributed", "dask.distributed"):
        return None
    import distributed

    try:
        return distributed.default_client()
    except ValueError:
        return None


# rows of dask objects ----------------------------------------------------------------------------


def rows_of(source: Any) -> DaskRows:
    """Make rows of a dask array, a dask data frame, or delayed blocks."""
    if isinstance(source, list | tuple):
        return _from_blocks(list(source))
    if isinstance(source, Delayed):  # tested first, because it answers to every attribute
        return _from_blocks([source])
    if hasattr(source, "map_partitions") and hasattr(source, "columns"):
        return _from_frame(source)
    if hasattr(source, "rechunk"):
        return _from_array(source)
    raise TypeError(
        f"X is a lazy {type(source).__module__}.{type(source).__name__}; pass a dask array, a dask "
        "data frame or a list of delayed blocks of rows"
    )


def _from_array(X: Any) -> DaskRows:
    X = by_rows(X)
    parts = X.to_delayed().ravel().tolist()
    rows = X.chunks[0]
    known = not any(np.isnan(count) for count in rows)
    p = X.shape[1]
    if np.isnan(p):
        return _from_blocks(parts)
    return DaskRows(parts, int(p), counts=[int(count) for count in rows] if known else None)


def by_rows(X: Any) -> Any:
    """Rechunk a dask array so that blocks have all columns, unless they have them already."""
    check_dimensions(X)
    if len(X.chunks[1]) == 1:
        return X
    if any(np.isnan(count) for axis in X.chunks for count in axis):
        return X.rechunk({1: -1})
    return X.rechunk({0: "auto", 1: -1}, block_size_limit=dask.utils.parse_bytes(BLOCK))


def check_dimensions(X: Any) -> None:
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions, shape {X.shape}; pass samples in rows and features in "
            "columns"
        )


def _from_frame(X: Any) -> DaskRows:
    names = tuple(str(name) for name in X.columns)
    numbers = all(getattr(dtype, "kind", "O") in "fiub" for dtype in X.dtypes)
    if numbers and not any(map(looks_like_identifier, names)) and len(set(names)) == len(names):
        return DaskRows(X.to_delayed(), len(names), names)
    return _from_blocks(X.to_delayed())  # the first block tells which columns are features


def _from_blocks(blocks: list[Any]) -> DaskRows:
    """Make rows of delayed blocks or futures; the first one gives the number of features."""
    if not blocks:
        raise ValueError("X is an empty list of blocks; pass at least one block of rows")
    same = dask.delayed(_same, pure=False)
    parts = [block if dask.is_dask_collection(block) else same(block) for block in blocks]
    width, names, notes = dask.compute(dask.delayed(_columns, pure=False)(parts[0]))[0]
    return DaskRows(parts, width, names, notes=notes)


def _columns(block: Any) -> tuple[int, tuple[str, ...] | None, tuple[str, ...]]:
    try:
        table = as_table(block)
    except (TypeError, ValueError) as error:
        shape: tuple[int, ...] = getattr(block, "shape", ())
        if len(shape) == 2 and shape[0] == 0:  # no rows, but columns
            return int(shape[1]), None, ()
        raise ValueError(f"block 0 of X: {error}") from error
    return table.shape[1], table.feature_names, table.notes


# scores, lazily ----------------------------------------------------------------------------------


def lazy_scores(source: Any, scorer: Scorer, columns: Sequence[str] | None) -> Any:
    """Return the scores of samples held by dask, which dask computes lazily.

    They are a dask array or, with `columns`, a dask frame with these names. Of an array or a frame,
    only the columns that components use are read.
    """
    if isinstance(source, list | tuple | Delayed):
        scored = _scores_of_blocks(source, scorer)
    elif hasattr(source, "rechunk"):
        scored = _scores_of_array(source, scorer)
    else:
        scorer.check_width(len(source.columns))
        used = source[[source.columns[i] for i in scorer.used]]
        named = range(scorer.n_components) if columns is None else columns
        frame = used.map_partitions(
            _score_frame, scorer, list(named), meta=_score_frame(used._meta, scorer, list(named))
        )
        return frame.values if columns is None else frame
    if columns is None:
        return scored
    from dask.dataframe import from_dask_array

    return from_dask_array(scored, columns=list(columns))


def _scores_of_array(X: Any, scorer: Scorer) -> Any:
    check_dimensions(X)
    if np.isnan(X.shape[1]):  # columns cannot be picked before they are counted
        return _scores_of_blocks(by_rows(X).to_delayed().ravel().tolist(), scorer)
    scorer.check_width(X.shape[1])
    used = X[:, scorer.used].rechunk({1: -1})
    chunks = (used.chunks[0], (scorer.n_components,))
    return used.map_blocks(scorer.of_columns, chunks=chunks, meta=np.empty((0, 0)))


def _scores_of_blocks(blocks: Any, scorer: Scorer) -> Any:
    from dask.array import concatenate, from_delayed

    score = dask.delayed(_score_block, pure=False)
    parts = [blocks] if isinstance(blocks, Delayed) else blocks
    lazy = [
        from_delayed(score(part, number, scorer), (np.nan, scorer.n_components), dtype=np.float64)
        for number, part in enumerate(parts)
    ]
    return concatenate(lazy, allow_unknown_chunksizes=True)


def _score_block(block: Any, number: int, scorer: Scorer) -> np.ndarray:
    return scorer(checked_block(block, number, _Columns(scorer.n_features)))


def _score_frame(frame: Any, scorer: Scorer, columns: list[Any]) -> Any:
    values = scorer.of_columns(frame.to_numpy(dtype=np.float64))
    return type(frame)(values, index=frame.index, columns=columns)


# the search on workers ---------------------------------------------------------------------------


@contextlib.contextmanager
def map_on(backend: Any, shared: tuple[Any, ...]) -> Iterator[Callable[..., Iterator[Any]]]:
    """`submit(function, items)` of `threads.ordered_map`, on the workers of dask's backend."""
    if _worker() is not None:  # waiting here for other tasks would block the worker they need
        yield lambda function, items: map(functools.partial(function, *shared), items)
        return
    client = backend.client
    # A task returns it instead of scattering it, so that it is recomputed if its worker dies.
    with _large_graphs():
        common = client.submit(_same, shared, pure=False)

    def submit(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        futures = [client.submit(_call, function, common, item, pure=False) for item in items]
        return _results(futures)

    yield submit


def use_workers() -> None:
    """Have the search and the proof run on workers inside `joblib.parallel_config("dask")`."""
    register_backend(DASK_BACKEND, map_on)


def _results(futures: list[Any]) -> Iterator[Any]:
    """Yield results one by one; the rest is cancelled when the caller stops asking."""
    try:
        yield from (future.result() for future in futures)
    finally:
        for future in futures:
            if not future.done():
                future.cancel()


def _worker() -> Any:
    """Return the worker that runs this code; None outside a cluster."""
    if "distributed" not in sys.modules:  # dask works without it
        return None
    import distributed

    try:
        return distributed.get_worker()
    except ValueError:
        return None


def _call(function: Callable[..., Any], shared: tuple[Any, ...], item: Any) -> Any:
    with one_blas_thread:
        return function(*shared, item)


def _large_graphs() -> Any:
    """Silence dask's warning about arrays in the graph; scattered data die with a worker."""
    if "distributed" not in sys.modules:
        return contextlib.nullcontext()
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
