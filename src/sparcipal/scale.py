"""The only file that knows dask: work on the workers of a cluster."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import dask
import distributed

from .parallel import one_blas_thread


@contextlib.contextmanager
def map_on(client: Any, shared: tuple[Any, ...]) -> Iterator[Callable[..., Iterator[Any]]]:
    """`submit(function, items)` of `parallel.ordered_map` on the workers of a client."""
    if _inside_a_task():  # waiting here for other tasks would block the worker they need
        yield lambda function, items: map(functools.partial(function, *shared), items)
        return
    # The result of a task, not scattered data: if its worker dies, it is made again elsewhere.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
        common = client.submit(_same, shared, pure=False)

    def submit(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        futures = [client.submit(_call, function, common, item, pure=False) for item in items]
        return (future.result() for future in futures)

    yield submit


def _inside_a_task() -> bool:
    try:
        distributed.get_worker()
    except ValueError:
        return False
    return True


def _same(value: Any) -> Any:
    return value


def _call(function: Callable[..., Any], shared: tuple[Any, ...], item: Any) -> Any:
    with one_blas_thread:
        return function(*shared, item)
