"""The only file that knows dask: passes over the rows, and the search, on the workers of a cluster.

A running `distributed.Client` is used when there is one, otherwise dask's threads. One task sums
one block, or some small ones that follow each other; the sums are merged two by two, in the order
of the blocks. What is summed together depends on the sizes of the blocks alone, so that neither the
number of workers nor their speed changes a bit, and with integer data the blocks do not either.
Every task is a function of data that the scheduler can recompute, because a worker may die at any
moment; its key is made of the pass, of the blocks' keys and of what is summed: the same call has
the same keys.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.base import tokenize
from dask.callbacks import Callback
from dask.core import get_dependencies
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from ..numerics.threads import DASK_BACKEND, one_blas_thread, register_backend
from .columns import looks_like_identifier
from .moments import Moments
from .rows import TELL, A, Rows, Watch, block_table, working_bytes
from .scores import Scorer
from .table import Table, as_table, stacked

SMALL = 1 << 26  # bytes of a table that is assumed to fit any memory
TOGETHER = 1 << 25  # bytes of blocks that one task sums
FEW = 64  # blocks of unknown size that are not worth a look at the first one
BLOCK = "128 MiB"  # size of a block after chunked columns were put together
SHARE = 0.6  # of a worker's memory that dask fills before it writes to disk
# What a task is called after, by the sums it makes: as the stage that reports them.
PASSES = {"Moments": "moments", "Gram": "products", "Covarying": "covariation", "Strip": "rows"}


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
    n_features : int
    feature_names : tuple of str, optional
    counts : sequence of int, optional
        The rows of each block.
    dense : bool
        Whether the blocks are known not to be sparse.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        n_features: int,
        feature_names: tuple[str, ...] | None = None,
        counts: Sequence[int] | None = None,
        *,
        dense: bool = False,
        notes: tuple[str, ...] = (),
    ) -> None:
        n_samples = None if counts is None else sum(counts)
        super().__init__(n_features, n_samples, feature_names)
        self.notes = notes
        self.parts = list(parts)
        self._counts = None if counts is None else list(counts)
        # bytes of every block: at most so many, or as a pass has found them
        self._sizes = None if counts is None else [8 * count * n_features for count in counts]
        whole = None if self._sizes is None else sum(self._sizes)
        self._bytes = whole if dense or (whole is not None and whole <= SMALL) else None

    def blocks(self) -> Iterator[Any]:
        for part in self._checked_parts():
            (block,) = dask.compute(part)
            if block.shape[0]:
                yield block

    def gather(self) -> Table:
        blocks = [block for block in dask.compute(*self._checked_parts()) if block.shape[0]]
        return stacked(blocks, self.feature_names)

    def gathered(self, limit: int, watch: Watch | None = None) -> Table | None:
        """Return all rows if they are few: fewer numbers than the covariance of the features has,
        which comes here otherwise."""
        size = self.nbytes(watch)
        few = size <= max(SMALL, 8 * self.n_features**2)
        return self.gather() if few and size <= limit else None

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
        """What sums may take: of the memory of the smallest worker, what one thread has."""
        client = _client()
        if client is None or client.asynchronous:
            return super().room
        least = client.run_on_scheduler(_memory_of_a_thread)
        return super().room if least is None else int(SHARE * least)

    def accumulate(self, empty: A, watch: Watch | None = None) -> A:
        return self._accumulate(empty, watch, weighted=self.sample_weight is not None)

    def _accumulate(self, empty: A, watch: Watch | None, *, weighted: bool) -> A:
        groups = _groups(self._block_sizes(), TOGETHER + _nbytes(empty))
        weights = self._weights() if weighted else None
        task = _graph(_Pass(empty, self._columns()), self.parts, groups, weights)
        with _large_graphs():
            total, sizes = _computed(task, len(groups), watch)
        self._learn(sizes)
        return total

    def _block_sizes(self) -> list[int]:
        """Return about how many bytes each block has; where nothing is known, as the first one."""
        if self._sizes is None:
            first = TOGETHER
            if len(self.parts) > FEW:
                name = f"sparcipal-size-{tokenize(self.parts[0].key)}"
                size = dask.delayed(_size)(self.parts[0], dask_key_name=name)
                (first,) = dask.compute(size)
            self._sizes = [first] * len(self.parts)
        return self._sizes

    def _checked_parts(self) -> list[Any]:
        check, columns = dask.delayed(checked_block), self._columns()
        token = tokenize([part.key for part in self.parts], columns.count, columns.names)
        told = dask.delayed(_same)(columns, dask_key_name=f"sparcipal-columns-{token}")
        return [
            check(part, number, told, dask_key_name=f"sparcipal-check-{token}-{number}")
            for number, part in enumerate(self.parts)
        ]

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
        self._sizes = [size.bytes for size in sizes]
        self._bytes = sum(self._sizes)
        if self.n_samples == 0:
            raise ValueError(f"all {len(counts)} blocks of X are empty; pass at least one row")


# the graph of a pass ------------------------------------------------------------------------------


def _groups(sizes: Sequence[int], together: int) -> list[range]:
    """Return which blocks one task sums: neighbours of at most `together` bytes, or one block."""
    found, start, held = [], 0, 0
    for number, size in enumerate(sizes):
        if number > start and held + size > together:
            found.append(range(start, number))
            start, held = number, 0
        held += size
    return [*found, range(start, len(sizes))]


def _nbytes(empty: Any) -> int:
    """Return the bytes of sums: a task that makes large ones reads as much."""
    return sum(held.nbytes for held in vars(empty).values() if isinstance(held, np.ndarray))


def _graph(
    common: _Pass, parts: Sequence[Any], groups: Sequence[range], weights: list[np.ndarray] | None
) -> Delayed:
    """Return the task of the total: groups of blocks are summed, and sums merged two by two."""
    keys = [part.key for part in parts]
    token = tokenize(common.empty, common.columns.count, common.columns.names, keys, weights)
    name = f"sparcipal-{PASSES.get(type(common.empty).__name__, 'sums')}"
    setup, summed, merged = (f"{name}-{step}-{token}" for step in ("setup", "sum", "merge"))
    made, before = _inside(parts) if len(groups) < len(parts) else ({}, _merged_graphs(parts))
    # A task returns it, so that it is in the graph once and is recomputed if it is lost.
    tasks: dict[Any, Any] = {**before, setup: (_same, common)}
    level: list[Any] = []
    for place, group in enumerate(groups):
        blocks = [made.get(number, keys[number]) for number in group]
        needed = {k for block in blocks if isinstance(block, _Inside) for k in block.needs}
        own = None if weights is None else [weights[number] for number in group]
        given = [[_Held(key), key] for key in sorted(needed, key=str)]
        tasks[(summed, place)] = (_summed, setup, blocks, group.start, own, given)
        level.append((summed, place))
    height = 0
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = []
        for place, pair in enumerate(pairs):
            if len(pair) == 2:
                tasks[(merged, height, place)] = (_merged, setup, *pair)
                pair = [(merged, height, place)]
            level += pair
        height += 1
    return Delayed(level[0], tasks, layer=summed)


class _Held:
    """Something that dask does not look into: a key, or a value as a task without arguments."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


class _Inside:
    """The tasks of one block, run inside the task that sums it."""

    def __init__(self, tasks: dict[Any, Any], key: Any, needs: frozenset[Any]) -> None:
        self.tasks, self.key, self.needs = tasks, key, needs

    def made(self, given: dict[Any, Any]) -> Any:
        known = {key: (_Held(given[key]),) for key in self.needs}
        return dask.get({**self.tasks, **known}, self.key)


def _merged_graphs(parts: Sequence[Any]) -> dict[Any, Any]:
    """Return the tasks of all blocks; most blocks share their layers."""
    layers = {id(layer): layer for part in parts for layer in _layers(part)}
    return {key: task for layer in layers.values() for key, task in dict(layer).items()}


def _inside(parts: Sequence[Any]) -> tuple[dict[int, _Inside], dict[Any, Any]]:
    """Return the blocks, by number, whose tasks can run inside another, and the graph of the rest.

    Tasks that several blocks use stay outside, as do blocks with futures or with annotations, which
    only the scheduler understands.
    """
    graph = _merged_graphs(parts)
    if any(getattr(layer, "annotations", None) for part in parts for layer in _layers(part)):
        return {}, graph
    uses = {key: get_dependencies(graph, key) for key in graph}
    reach = [_reached(part.key, uses) for part in parts]
    times = Counter(key for own in reach for key in own)
    made: dict[int, _Inside] = {}
    for number, (part, own) in enumerate(zip(parts, reach)):
        private = {key for key in own if times[key] == 1}
        if part.key in private and not any(_holds_future(graph[key]) for key in private):
            needs = frozenset(k for key in private for k in uses[key] if k not in private)
            made[number] = _Inside({key: graph[key] for key in private}, part.key, needs)
    inside = {key for block in made.values() for key in block.tasks}
    return made, {key: task for key, task in graph.items() if key not in inside}


def _layers(part: Any) -> list[Any]:
    graph = part.__dask_graph__()
    return list(graph.layers.values()) if isinstance(graph, HighLevelGraph) else [graph]


def _reached(key: Any, uses: dict[Any, set[Any]]) -> set[Any]:
    """Return a key and all that it is made of."""
    found, open_keys = {key}, [key]
    while open_keys:
        new = uses[open_keys.pop()] - found
        found |= new
        open_keys += new
    return found


def _holds_future(task: Any) -> bool:
    if type(task).__module__.startswith("distributed."):
        return True
    if isinstance(task, dict):
        return any(map(_holds_future, task.values()))
    if isinstance(task, list | tuple | set):
        return any(map(_holds_future, task))
    inner = [getattr(task, name, None) for name in ("args", "kwargs", "value")]
    return type(task).__module__.startswith("dask.") and any(map(_holds_future, inner))


# These are neither dataclasses nor tuples, because dask would search their fields for each block.


class _Columns:
    """The number and names of the columns that every block must have."""

    def __init__(self, count: int, names: tuple[str, ...] | None = None) -> None:
        self.count, self.names = count, names


class _Pass:
    """The empty accumulator and the columns."""

    def __init__(self, empty: Any, columns: _Columns) -> None:
        self.empty, self.columns = empty, columns


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


def _size(block: Any) -> int:
    """Return about how many bytes a block has; a task that checks it will say what is wrong."""
    if sp.issparse(block):
        return working_bytes(block)
    shape = getattr(block, "shape", ())
    return 8 * int(np.prod(shape)) if len(shape) == 2 else TOGETHER


def _summed(
    common: _Pass,
    parts: list[Any],
    first: int,
    weights: list[np.ndarray] | None,
    given: list[tuple[_Held, Any]],
) -> tuple[Any, list[Size]]:
    known = {key.value: value for key, value in given}
    blocks = []
    for place, part in enumerate(parts):
        block = part.made(known) if isinstance(part, _Inside) else part
        blocks.append(checked_block(block, first + place, common.columns))
    sizes = [Size(block.shape[0], working_bytes(block)) for block in blocks]
    shares = [None] * len(blocks) if weights is None else weights
    total = common.empty.copy_empty()
    with one_blas_thread:
        for block, share in _together(blocks, shares):
            total.add(block, share)
    return total, sizes


def _together(blocks: list[Any], weights: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield blocks with their weights, those of the same kind as one: sums cost a little each."""
    filled = [(block, share) for block, share in zip(blocks, weights) if block.shape[0]]
    if len({(type(block), block.dtype) for block, _ in filled}) != 1:
        yield from filled
        return
    some = [share for _, share in filled if share is not None]
    yield stacked([block for block, _ in filled], None).X, np.concatenate(some) if some else None


def _merged(
    common: _Pass, one: tuple[Any, list[Size]], other: tuple[Any, list[Size]]
) -> tuple[Any, list[Size]]:
    total = common.empty.copy_empty().merge(one[0]).merge(other[0])
    return total, [*one[1], *other[1]]


def _computed(task: Delayed, total: int, watch: Watch | None) -> Any:
    """Compute a task; `watch` is called as blocks are done and may end it by raising."""
    client = _client()
    if watch is None or (client is not None and client.asynchronous):
        return dask.compute(task)[0]
    if client is None:
        with _Heard(watch, total):
            return dask.compute(task)[0]
    future = client.compute(task)
    try:
        while not future.done():
            with contextlib.suppress(TimeoutError):
                future.result(timeout=TELL)
            if not future.done():
                watch(_done(client, task.layer, total), total, "blocks")
        return future.result()
    except BaseException:
        future.cancel()
        raise
    finally:
        future.release()


def _done(client: Any, group: str, total: int) -> int:
    """Ask the scheduler how many tasks of a group are done: nothing is kept there for that."""
    waiting = client.run_on_scheduler(_waiting, group=group)
    return 0 if waiting is None else max(total - waiting, 0)


def _waiting(group: str, dask_scheduler: Any = None) -> int | None:
    """Return how many tasks of a group are not done; None while the scheduler knows none."""
    known = dask_scheduler.task_groups.get(group)
    if known is None:
        return None
    return sum(known.states[s] for s in ("waiting", "queued", "no-worker", "processing"))


class _Heard(Callback):  # type: ignore[misc]
    """Reports each group of blocks that dask's threads have summed."""

    def __init__(self, watch: Watch, total: int) -> None:
        super().__init__()
        self._watch, self._done, self._total = watch, 0, total

    def _posttask(self, key: Any, *rest: Any) -> None:
        if isinstance(key, tuple) and "-sum-" in str(key[0]):
            self._done += 1
            self._watch(self._done, self._total, "blocks")


def _memory_of_a_thread(dask_scheduler: Any = None) -> float | None:
    """Return the least memory that a thread of a worker has; None where there is no limit."""
    workers = dask_scheduler.workers.values()
    return min((w.memory_limit / w.nthreads for w in workers if w.memory_limit), default=None)


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
    parts = _delayed(X)
    rows = X.chunks[0]
    known = not any(np.isnan(count) for count in rows)
    p = X.shape[1]
    if np.isnan(p):
        return _from_blocks(parts)
    counts = [int(count) for count in rows] if known else None
    return DaskRows(parts, int(p), counts=counts, dense=type(X._meta) is np.ndarray and known)


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
    numbers = all(getattr(dtype, "kind", "O") in "fiub" for dtype in X.dtypes)
    if numbers and not any(map(looks_like_identifier, names)) and len(set(names)) == len(names):
        return DaskRows(_delayed(X), len(names), names)
    return _from_blocks(_delayed(X))  # the first block tells which columns are features


def _from_blocks(blocks: list[Any]) -> DaskRows:
    """Make rows of delayed blocks or futures; the first one gives the number of features."""
    if not blocks:
        raise ValueError("X is an empty list of blocks; pass at least one block of rows")
    parts = [block if dask.is_dask_collection(block) else _of_future(block) for block in blocks]
    look = dask.delayed(_columns)(
        parts[0], dask_key_name=f"sparcipal-columns-{tokenize(parts[0].key)}"
    )
    width, names, notes = dask.compute(look)[0]
    return DaskRows(parts, width, names, notes=notes)


def _of_future(block: Any) -> Any:
    return dask.delayed(_same)(block, dask_key_name=f"sparcipal-block-{block.key}")


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
        common = client.submit(_same, shared, key=f"sparcipal-shared-{uuid.uuid4().hex}")

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


def _large_graphs() -> Any:
    """Silence dask's warning about arrays in the graph; scattered data die with a worker."""
    if "distributed" not in sys.modules:
        return contextlib.nullcontext()
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
