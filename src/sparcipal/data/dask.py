"""The door to dask: passes over the rows, and the search, on the workers of a cluster.

A running `distributed.Client` is used when there is one, otherwise dask's threads. One task sums
one block, or some small ones that follow each other; the sums are merged two by two, in the order
of the blocks. What is summed together depends on the sizes of the blocks alone, and here on the
memory that threads share, so that neither the number of workers nor their speed changes a bit, and
with integer data the blocks do not either. On workers every task is a function of data that the
scheduler can recompute, because a worker may die at any moment; its key is made of the pass, of the
blocks' keys and of what is summed: the same call has the same keys.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import dask
import numpy as np
from dask.base import tokenize
from dask.delayed import Delayed

from ..numerics.threads import DASK_BACKEND, one_blas_thread, register_backend
from .columns import Column, looks_like_identifier
from .daskpass import (
    TOGETHER,
    UNKNOWN,
    Pass,
    Size,
    checked_block,
    computed,
    graph_of,
    large_graphs,
    memory_of_a_thread,
    nbytes_of,
    planned,
    running_client,
    same,
    shares_memory,
    size_of,
)
from .frames import Part, is_frame, part_of
from .layout import Layout, known_columns
from .moments import Moments
from .passes import FIRST, SQUARES
from .rows import A, Rows, Watch, block_table
from .scores import Scorer
from .table import Table, stacked

SMALL = 1 << 26  # bytes of a table that is assumed to fit any memory
FEW = 64  # blocks of unknown size that are not worth a look at the first one,
TIGHT = 16 * TOGETHER  # unless memory is less than this
BLOCK = "128 MiB"  # size of a block after chunked columns were put together
SHARE = 0.6  # of a worker's memory that dask fills before it writes to disk


class DaskRows(Rows):
    """Blocks of rows that dask computes when they are needed, here or on workers.

    Parameters
    ----------
    parts : sequence of Delayed
        One block of rows each: an array, a sparse matrix or a frame.
    layout : Layout
        The columns of every block.
    counts : sequence of int, optional
        The rows of each block.
    dense : bool
        Whether the blocks are known not to be sparse.
    first : Size, optional
        Of the first block, if it was looked at.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        layout: Layout,
        counts: Sequence[int] | None = None,
        *,
        dense: bool = False,
        notes: tuple[str, ...] = (),
        first: Size | None = None,
    ) -> None:
        n_samples, n_features = None if counts is None else sum(counts), layout.count
        super().__init__(n_features, n_samples, layout.names)
        self.notes, self._layout = notes, layout
        self.parts = list(parts)
        self._counts = None if counts is None else list(counts)
        # at most so large, or as a pass has found the blocks
        self._sizes: list[Size] | None = None
        self._bytes: int | None = None
        self._known, self._first = dense, first
        if counts is not None:
            most = [(count, 8 * count * n_features) for count in counts]
            self._sizes = [
                Size(count, size, size if dense else min(size, TOGETHER), dense)
                for count, size in most
            ]
            whole = sum(size for _, size in most)
            self._bytes = whole if dense or whole <= SMALL else None

    def blocks(self) -> Iterator[Any]:
        for part in self._checked_parts():
            (block,) = dask.compute(part)
            if block.shape[0]:
                yield block

    def gather(self) -> Table:
        with self._advised():
            made = dask.compute(*self._checked_parts())
        self._check_counts([block.shape[0] for block in made])
        blocks = [block for block in made if block.shape[0]]
        return stacked(blocks, self.feature_names)

    def gathered(self, limit: int, watch: Watch | None = None) -> Table | None:
        """Return all rows if they are few: fewer numbers than the covariance of the features has,
        which comes here otherwise."""
        size = self.nbytes(watch)
        few = size <= max(SMALL, 8 * self.n_features**2)
        return self.gather() if few and 2 * size <= limit else None

    def nbytes(self, watch: Watch | None = None) -> int:
        """Return the bytes of all rows; if unknown, a pass counts them, with the moments."""
        if self._bytes is None:
            moments = self._accumulate(Moments(self.n_features), watch, weighted=False)
            if self.sample_weight is None:
                self.moments = moments
        assert self._bytes is not None
        return self._bytes

    @property
    def room(self) -> int:
        """How many bytes sums may take: a share of what a thread of the smallest worker has."""
        client = running_client()
        if client is None or client.asynchronous:
            return super().room
        least = client.run_on_scheduler(memory_of_a_thread)
        return super().room if least is None else int(SHARE * least)

    def accumulate(self, empty: A, watch: Watch | None = None) -> A:
        return self._accumulate(empty, watch, weighted=self.sample_weight is not None)

    def _accumulate(self, empty: A, watch: Watch | None, *, weighted: bool) -> A:
        limit = self.memory_limit if shares_memory() else sys.maxsize
        products = min(8 * min(self.n_features, FIRST) ** 2, limit // SQUARES)
        plan = planned(self._block_sizes(limit), nbytes_of(empty), products, limit)
        weights = self._weights() if weighted else None
        task = graph_of(Pass(empty, self._layout), self.parts, plan, weights)
        with large_graphs(), self._advised():
            total, sizes = computed(task, plan, watch)
        self._learn(sizes)
        return total

    def _block_sizes(self, limit: int) -> list[Size]:
        """Return about how large each block is; where nothing is known, as the first one."""
        look = limit < TIGHT or (self._sizes is None and len(self.parts) > FEW)
        if look and not self._known:
            first = self._first or self._looked_at()
            first = first if first.rows else UNKNOWN
            sizes = self._sizes or [first] * len(self.parts)
            self._sizes = [replace(s, held=first.held, dense=first.dense) for s in sizes]
            self._known = True
        if self._sizes is None:
            self._sizes = [UNKNOWN] * len(self.parts)
        return self._sizes

    def _looked_at(self) -> Size:
        name = f"sparcipal-size-{tokenize(self.parts[0].key)}"
        first: Size = dask.compute(dask.delayed(size_of)(self.parts[0], dask_key_name=name))[0]
        return first

    def _checked_parts(self) -> list[Any]:
        check, columns = dask.delayed(checked_block), self._layout
        token = tokenize([part.key for part in self.parts], columns.count, columns.names)
        told = dask.delayed(same)(columns, dask_key_name=f"sparcipal-columns-{token}")
        return [
            check(part, number, told, dask_key_name=f"sparcipal-check-{token}-{number}")
            for number, part in enumerate(self.parts)
        ]

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
        self._check_counts([size.rows for size in sizes])
        self._sizes, self._known = sizes, True
        self._bytes = sum(size.bytes for size in sizes)

    def _check_counts(self, counts: list[int]) -> None:
        """Remember the rows of the blocks; refuse others than those before, and none at all."""
        if self._counts is not None and counts != self._counts:
            number = next(i for i, (a, b) in enumerate(zip(counts, self._counts)) if a != b)
            raise ValueError(
                f"block {number} holds {counts[number]} rows now, but held {self._counts[number]} "
                "before; a source of blocks must give the same rows each time"
            )
        self._counts, self.n_samples = counts, sum(counts)
        if self.n_samples == 0:
            raise ValueError(f"all {len(counts)} blocks of X are empty; pass at least one row")


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
    parts = _delayed(X)
    rows = X.chunks[0]
    known = not any(np.isnan(count) for count in rows)
    p = X.shape[1]
    if np.isnan(p):
        return _from_blocks(parts)
    counts = [int(count) for count in rows] if known else None
    return DaskRows(parts, Layout(int(p)), counts, dense=type(X._meta) is np.ndarray and known)


def _delayed(X: Any) -> list[Any]:
    """Return the blocks of an array or a frame; dask drops persisted ones where it optimizes."""
    parts = np.ravel(np.asarray(X.to_delayed(), dtype=object)).tolist()
    if any(part.key not in part.__dask_graph__() for part in parts):
        parts = np.ravel(np.asarray(X.to_delayed(optimize_graph=False), dtype=object)).tolist()
    return list(parts)


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
    full = all(getattr(dtype, "kind", "O") in "iub" for dtype in X.dtypes)  # none can be empty
    distinct = len(set(names)) == len(names)
    if full and distinct and not any(map(looks_like_identifier, names)):
        return DaskRows(_delayed(X), Layout(len(names), names))
    place = dict(zip(names, X.columns))
    # blocks tell which columns are features
    return _from_blocks(
        _delayed(X), (lambda some: _delayed(X[[place[n] for n in some]])) if distinct else None
    )


def _from_blocks(
    blocks: list[Any], only: Callable[[Sequence[str]], list[Any]] | None = None
) -> DaskRows:
    """Make rows of delayed blocks or futures; the first one gives the number of features.

    `only` makes blocks of some columns of a frame, which others may need to tell what they are.
    """
    if not blocks:
        raise ValueError("X is an empty list of blocks; pass at least one block of rows")
    parts = [block if dask.is_dask_collection(block) else _of_future(block) for block in blocks]
    name = f"sparcipal-columns-{tokenize(parts[0].key)}"

    def looked_at(names: Sequence[str]) -> Iterator[Part]:
        left = parts if only is None else only(names)
        count = 1
        while left:  # more and more at once: a few may tell
            yield from dask.compute(*[dask.delayed(part_of)(part, names) for part in left[:count]])
            left, count = left[count:], 2 * count

    first = dask.compute(dask.delayed(_part)(parts[0], dask_key_name=f"{name}-part"))[0]
    known = {} if first is None else known_columns(first, looked_at)
    look = dask.delayed(_columns)(parts[0], known, dask_key_name=name)
    layout, notes, size = dask.compute(look)[0]
    return DaskRows(parts, layout, notes=notes, first=size)


def _of_future(block: Any) -> Any:
    return dask.delayed(same)(block, dask_key_name=f"sparcipal-block-{block.key}")


def _part(block: Any) -> Part | None:
    return part_of(block) if is_frame(block) and len(block) else None


def _columns(block: Any, known: dict[str, Column]) -> tuple[Layout, tuple[str, ...], Size]:
    """Return the columns by the first block, what was set aside, and the size of the block."""
    try:
        table = block_table(block, None, known=known)
    except (TypeError, ValueError) as error:
        shape: tuple[int, ...] = getattr(block, "shape", ())
        if len(shape) == 2 and shape[0] == 0:  # no rows, but columns
            return Layout(int(shape[1])), (), UNKNOWN
        raise ValueError(f"block 0 of X: {error}") from error
    layout = Layout.of(block, table.shape[1], table.feature_names, known)
    return layout, table.notes, size_of(block)


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
            _score_frame,
            scorer,
            list(named),
            meta=_score_frame(used._meta, scorer, list(named)),
            token="sparcipal-scores",
        )
        return frame.values if columns is None else frame
    if columns is None:
        return scored
    from dask.dataframe import from_dask_array

    return from_dask_array(scored, columns=list(columns))


def _scores_of_array(X: Any, scorer: Scorer) -> Any:
    check_dimensions(X)
    if np.isnan(X.shape[1]):  # columns cannot be picked before they are counted
        return _scores_of_blocks(_delayed(by_rows(X)), scorer)
    scorer.check_width(X.shape[1])
    used = X[:, scorer.used].rechunk({1: -1})
    chunks = (used.chunks[0], (scorer.n_components,))
    meta = np.empty((0, 0))
    return used.map_blocks(scorer.of_columns, chunks=chunks, meta=meta, token="sparcipal-scores")


def _scores_of_blocks(blocks: Any, scorer: Scorer) -> Any:
    from dask.array import concatenate, from_delayed

    score, shape = dask.delayed(_score_block), (np.nan, scorer.n_components)
    parts = [blocks] if isinstance(blocks, Delayed) else blocks
    parts = [part if dask.is_dask_collection(part) else _of_future(part) for part in parts]
    name = f"sparcipal-scores-{tokenize([part.key for part in parts], scorer)}"
    lazy = [
        from_delayed(
            score(part, number, scorer, dask_key_name=f"{name}-{number}"), shape, dtype=np.float64
        )
        for number, part in enumerate(parts)
    ]
    return concatenate(lazy, allow_unknown_chunksizes=True)


def _score_block(block: Any, number: int, scorer: Scorer) -> np.ndarray:
    return scorer(checked_block(block, number, Layout(scorer.n_features)))


def _score_frame(frame: Any, scorer: Scorer, columns: list[Any]) -> Any:
    values = scorer.of_columns(frame.to_numpy(dtype=np.float64))
    return type(frame)(values, index=frame.index, columns=columns)


# the search on workers ---------------------------------------------------------------------------


@contextlib.contextmanager
def map_on(backend: Any, shared: tuple[Any, ...]) -> Iterator[Callable[..., Iterator[Any]]]:
    """Give `submit(function, items)` of `threads.ordered_map`, on workers of dask's backend."""
    if _worker() is not None:  # waiting here for other tasks would block the worker they need
        yield lambda function, items: map(functools.partial(function, *shared), items)
        return
    client = backend.client
    # A task returns it instead of scattering it, so that it is recomputed if its worker dies.
    with large_graphs():
        common = client.submit(same, shared, key=f"sparcipal-shared-{uuid.uuid4().hex}")

    def submit(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        # Rounds of a search may have the same items: each has keys of its own.
        called = getattr(function, "__name__", "task").strip("_").replace("_", "-")
        name = f"sparcipal-{called}-{uuid.uuid4().hex}"
        futures = [
            client.submit(_call, function, common, item, key=(name, place))
            for place, item in enumerate(items)
        ]
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
