"""One pass over blocks of rows as a graph of dask: which tasks there are, what they do, and a run.

Neighbouring blocks that are small are made and summed inside one task; sums are merged two by two.
Where memory is too little for that, dask's threads add to few sums that are there from the start.
"""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.local
import dask.threaded
import numpy as np
import scipy.sparse as sp
from dask.base import tokenize
from dask.callbacks import Callback
from dask.core import get_dependencies
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.system import CPU_COUNT

from ..numerics.threads import one_blas_thread, thread_pool
from .layout import Layout
from .rows import TELL, Watch, block_table, working_bytes
from .table import stacked

TOGETHER = 1 << 25  # bytes of blocks that one task sums
MANY = 8  # tasks at once for which there should be room if their sums are merged two by two
LEAST = 1 << 25  # bytes of memory that a pass may take in any case
THREAD = 1 << 22  # bytes that a thread takes besides, most of them freed and not given back
# The sums that a task makes -> its name on dask's dashboard, which is that of the reporting stage.
PASSES = {"Moments": "moments", "Gram": "products", "Covarying": "covariation", "Strip": "rows"}


@dataclass(frozen=True)
class Size:
    """The size of a block, as a pass reports it."""

    rows: int
    bytes: int  # in double precision, with the indices of a sparse block
    held: int  # as it is
    dense: bool = False


UNKNOWN = Size(0, TOGETHER, TOGETHER)


@dataclass(frozen=True)
class Plan:
    """How the blocks of a pass are summed."""

    groups: list[range]  # of blocks that one task sums
    threads: int  # tasks that there is room for
    lanes: int = 0  # sums to which neighbouring groups are added in turn; 0: a sum for each group


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


def planned(sizes: Sequence[Size], sums: int, products: int, limit: int) -> Plan:
    """Return how to sum blocks of these sizes, in threads that share `limit` bytes.

    Sums that are merged two by two wait for each other, one on each level at worst. Where they
    leave no room for many tasks, there are as many lanes as there is room for, whose sums take all
    their blocks, in order. That depends on sizes and on the limit, not on the number of threads.
    All passes count on the sums of that of the `products`, and have as many threads: those of the
    next pass go on with memory that the threads before have freed and kept.
    """
    limit = max(limit, LEAST)
    groups = groups_of([size.bytes for size in sizes], TOGETHER + sums)
    sums = max(sums, products)
    waiting = (len(groups) - 1).bit_length() * sums
    threads = (limit - waiting) // _task_bytes(groups, sizes, sums)
    if threads >= min(MANY, len(groups)):
        return Plan(groups, threads)
    groups = groups_of([size.held for size in sizes], max(sums // 4, limit // 32))
    lanes = min(max(limit // _task_bytes(groups, sizes, sums), 1), len(groups))
    return Plan(groups, lanes, lanes)


def _task_bytes(groups: Sequence[range], sizes: Sequence[Size], sums: int) -> int:
    """Return about what a task takes: its sums and those of a block, of dense ones also a tile and
    its products; and the blocks twice, as they come and as they are checked or put together."""
    most = max(sum(size.held for size in sizes[group.start : group.stop]) for group in groups)
    return (4 if any(size.dense for size in sizes) else 2) * sums + 2 * most + THREAD


def graph_of(
    common: Pass, parts: Sequence[Any], plan: Plan, weights: list[np.ndarray] | None
) -> Delayed:
    """Return the task of the total: groups of blocks are summed, and sums merged two by two; or
    added to those of lanes."""
    keys, groups = [part.key for part in parts], plan.groups
    token = tokenize(common.empty, common.columns.count, common.columns.names, keys, weights)
    if plan.lanes:  # what is added cannot be added again: no task may be known from another run
        token = uuid.uuid4().hex
    name = f"sparcipal-{PASSES.get(type(common.empty).__name__, 'sums')}"
    setup, summed, merged = (f"{name}-{step}-{token}" for step in ("setup", "sum", "merge"))
    within = plan.lanes or len(groups) < len(parts)
    made, before = _inside(parts) if within else ({}, _merged_graphs(parts))
    # A task returns it, so that it is in the graph once and is recomputed if it is lost.
    tasks: dict[Any, Any] = {**before, setup: (same, common)}
    asked: list[tuple[Any, ...]] = []
    for group in groups:
        blocks = [made.get(number, keys[number]) for number in group]
        needed = {k for block in blocks if isinstance(block, _Inside) for k in block.needs}
        own = None if weights is None else [weights[number] for number in group]
        given = [[_Held(key), key] for key in sorted(needed, key=str)]
        asked.append((setup, blocks, group.start, own, given))
    if plan.lanes:
        lanes = [_Held(common.empty.copy_empty()) for _ in range(plan.lanes)]
        tasks |= _in_lanes(lanes, asked, summed)
        tasks[merged] = (_joined, lanes, [(summed, place) for place in range(len(asked))])
        return Delayed(merged, tasks, layer=summed)
    level: list[Any] = [(summed, place) for place in range(len(asked))]
    tasks |= {key: (_summed, *arguments) for key, arguments in zip(level, asked)}
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


def _in_lanes(
    lanes: list[_Held], asked: list[tuple[Any, ...]], summed: str
) -> dict[Any, tuple[Any, ...]]:
    """Return tasks that add groups to the sums of lanes, one after the other in each."""
    tasks: dict[Any, tuple[Any, ...]] = {}
    for lane, some in zip(lanes, np.array_split(np.arange(len(asked)), len(lanes))):
        before = None
        for place in some.tolist():
            tasks[(summed, place)] = (_added, lane, before, *asked[place])
            before = (summed, place)
    return tasks


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


def size_of(block: Any) -> Size:
    """Return about the size of a block; a task that checks it will say what is wrong."""
    shape: tuple[int, ...] = getattr(block, "shape", ())
    if len(shape) != 2:
        return UNKNOWN
    if not sp.issparse(block):
        most = 8 * int(np.prod(shape))
        return Size(int(shape[0]), most, most, dense=True)
    names = ("data", "indices", "indptr", "row", "col", "offsets")
    held = sum(getattr(block, name).nbytes for name in names if hasattr(block, name))
    return Size(int(shape[0]), working_bytes(block), held)


def _summed(
    common: Pass,
    parts: list[Any],
    first: int,
    weights: list[np.ndarray] | None,
    given: list[tuple[_Held, Any]],
) -> tuple[Any, list[Size]]:
    total = common.empty.copy_empty()
    return total, _add_to(total, common, parts, first, weights, given)


def _added(lane: _Held, _before: Any, *asked: Any) -> list[Size]:
    """Add to the sums of a lane, after those before; they are nobody else's meanwhile."""
    return _add_to(lane.value, *asked)


def _joined(lanes: list[_Held], sizes: list[list[Size]]) -> tuple[Any, list[Size]]:
    total = lanes[0].value
    for lane in lanes[1:]:
        total = total.merge(lane.value)
    return total, [size for some in sizes for size in some]


def _add_to(
    total: Any,
    common: Pass,
    parts: list[Any],
    first: int,
    weights: list[np.ndarray] | None,
    given: list[tuple[_Held, Any]],
) -> list[Size]:
    known = {key.value: value for key, value in given}
    blocks = [
        checked_block(block, first + place, common.columns)
        for place, block in enumerate(_made(parts, known))
    ]
    sizes = [size_of(block) for block in blocks]
    shares = [None] * len(blocks) if weights is None else weights
    with one_blas_thread:
        for block, share in _together(blocks, shares):
            total.add(block, share)
    return sizes


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


def computed(task: Delayed, plan: Plan, watch: Watch | None) -> Any:
    """Compute a task; `watch` is called as blocks are done and may end it by raising."""
    client, total = running_client(), len(plan.groups)
    if client is None:
        with contextlib.nullcontext() if watch is None else _Heard(watch, total):
            return _here(task, plan)
    if watch is None or client.asynchronous:
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


def _here(task: Delayed, plan: Plan) -> Any:
    """Compute a task with as many threads as dask would, unless there is room for fewer."""
    own = dask.config.get("num_workers", None) or CPU_COUNT
    threads = min(own, plan.threads)
    given = _scheduler() is not dask.threaded.get or dask.config.get("pool", None) is not None
    if given or (threads == own and not plan.lanes):
        return dask.compute(task)[0]
    if threads == 1:
        return dask.compute(task, scheduler="synchronous")[0]
    # Threads that end leave their memory to the next ones; those of dask would stay and keep it.
    kind = getattr(dask.threaded, "ContextAwareThreadPoolExecutor", thread_pool)
    with kind(threads) as pool:
        return dask.compute(task, pool=pool)[0]


def shares_memory() -> bool:
    """Return whether tasks run in this process."""
    here = (dask.threaded.get, dask.local.get_sync)
    return running_client() is None and _scheduler() in here


def _scheduler() -> Any:
    return dask.base.get_scheduler(cls=Delayed)


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
