"""One pass over blocks of rows as a graph of dask: which tasks there are, what they do, and a run.

Neighbouring blocks that are small are made and summed inside one task; sums are merged two by two.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
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

from ..numerics.threads import one_blas_thread
from .layout import Layout
from .rows import TELL, Watch, block_table, working_bytes
from .table import stacked

TOGETHER = 1 << 25  # bytes of blocks that one task sums
# The sums that a task makes -> its name on dask's dashboard, which is that of the reporting stage.
PASSES = {"Moments": "moments", "Gram": "products", "Covarying": "covariation", "Strip": "rows"}


@dataclass(frozen=True)
class Size:
    """The size of a block, as a pass reports it."""

    rows: int
    bytes: int  # in double precision, with the indices of a sparse block


def groups_of(sizes: Sequence[int], together: int) -> list[range]:
    """Return which blocks one task sums: neighbours of at most `together` bytes, or one block."""
    found, start, held = [], 0, 0
    for number, size in enumerate(sizes):
        if number > start and held + size > together:
            found.append(range(start, number))
            start, held = number, 0
        held += size
    return [*found, range(start, len(sizes))]


def nbytes_of(empty: Any) -> int:
    """Return the bytes of sums: a task that makes large ones reads as much."""
    return sum(held.nbytes for held in vars(empty).values() if isinstance(held, np.ndarray))


def graph_of(
    common: Pass, parts: Sequence[Any], groups: Sequence[range], weights: list[np.ndarray] | None
) -> Delayed:
    """Return the task of the total: groups of blocks are summed, and sums merged two by two."""
    keys = [part.key for part in parts]
    token = tokenize(common.empty, common.columns.count, common.columns.names, keys, weights)
    name = f"sparcipal-{PASSES.get(type(common.empty).__name__, 'sums')}"
    setup, summed, merged = (f"{name}-{step}-{token}" for step in ("setup", "sum", "merge"))
    made, before = _inside(parts) if len(groups) < len(parts) else ({}, _merged_graphs(parts))
    # A task returns it, so that it is in the graph once and is recomputed if it is lost.
    tasks: dict[Any, Any] = {**before, setup: (same, common)}
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


def _made(parts: Sequence[Any], given: dict[Any, Any]) -> list[Any]:
    """Return blocks; those inside are made by one run of dask, since a run for each would cost as
    much as summing a small block."""
    inside = [part for part in parts if isinstance(part, _Inside)]
    tasks = {key: task for part in inside for key, task in part.tasks.items()}
    known = {key: (_Held(given[key]),) for part in inside for key in part.needs}
    made = iter(dask.get({**tasks, **known}, [part.key for part in inside]) if inside else ())
    return [next(made) if isinstance(part, _Inside) else part for part in parts]


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


class Pass:
    """The empty accumulator and the columns; no dataclass, as dask would search its fields for each
    block."""

    def __init__(self, empty: Any, columns: Layout) -> None:
        self.empty, self.columns = empty, columns


def checked_block(block: Any, number: int, columns: Layout) -> Any:
    """Return a block as a checked ndarray or csr_array with these columns, maybe of no rows."""
    n_features, feature_names = columns.count, columns.names
    shape = getattr(block, "shape", None)
    if shape is not None and len(shape) == 2 and shape[0] == 0 and shape[1] >= n_features:
        return np.empty((0, n_features))
    try:
        table = block_table(block, columns)
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


def same(value: Any) -> Any:
    return value


def size_of(block: Any) -> int:
    """Return about how many bytes a block has; a task that checks it will say what is wrong."""
    if sp.issparse(block):
        return working_bytes(block)
    shape = getattr(block, "shape", ())
    return 8 * int(np.prod(shape)) if len(shape) == 2 else TOGETHER


def _summed(
    common: Pass,
    parts: list[Any],
    first: int,
    weights: list[np.ndarray] | None,
    given: list[tuple[_Held, Any]],
) -> tuple[Any, list[Size]]:
    known = {key.value: value for key, value in given}
    blocks = [
        checked_block(block, first + place, common.columns)
        for place, block in enumerate(_made(parts, known))
    ]
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
    common: Pass, one: tuple[Any, list[Size]], other: tuple[Any, list[Size]]
) -> tuple[Any, list[Size]]:
    total = common.empty.copy_empty().merge(one[0]).merge(other[0])
    return total, [*one[1], *other[1]]


def computed(task: Delayed, total: int, watch: Watch | None) -> Any:
    """Compute a task; `watch` is called as blocks are done and may end it by raising."""
    client = running_client()
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
    """Ask the scheduler how many tasks of a group are done; it counts them without our help."""
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


def memory_of_a_thread(dask_scheduler: Any = None) -> float | None:
    """Return the least memory that a thread of a worker has; None where there is no limit."""
    workers = dask_scheduler.workers.values()
    return min((w.memory_limit / w.nthreads for w in workers if w.memory_limit), default=None)


def running_client() -> Any:
    """Return the running client, unless another scheduler is configured."""
    chosen = dask.config.get("scheduler", None)
    if "distributed" not in sys.modules or chosen not in (None, "distributed", "dask.distributed"):
        return None
    import distributed

    try:
        return distributed.default_client()
    except ValueError:
        return None


def large_graphs() -> Any:
    """Silence dask's warning about arrays in the graph; scattered data die with a worker."""
    if "distributed" not in sys.modules:
        return contextlib.nullcontext()
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
