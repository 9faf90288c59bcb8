"""This is the only file that starts threads. The kernels release the GIL, so that threads beat
processes, and they survive both forks and concurrent callers. Inside a joblib backend that has
registered here, its workers are used instead."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import ThreadpoolController

DASK_BACKEND = "DaskDistributedBackend"  # the class in joblib
# Class name of a joblib backend -> `map_on(backend, shared)`, which does there what `ordered_map`
# does on threads.
_BACKENDS: dict[str, Callable[[Any, tuple[Any, ...]], Any]] = {}


def register_backend(name: str, map_on: Callable[[Any, tuple[Any, ...]], Any]) -> None:
    """Run `ordered_map` by `map_on` wherever the joblib backend of this class name is active."""
    _BACKENDS[name] = map_on


@contextlib.contextmanager
def ordered_map(n_jobs: int, *shared: Any) -> Iterator[Callable[..., Iterator[Any]]]:
    """Give `submit(function, items)`, which yields function(*shared, item) in the order of items.

    It runs on `n_jobs` threads, or on the workers of a registered joblib backend that is active, as
    inside `joblib.parallel_config("dask")`; `shared` is sent to each worker once.
    """
    if n_jobs <= 1:
        yield lambda function, items: map(functools.partial(function, *shared), items)
        return
    backend = active_backend()
    map_on = _BACKENDS.get(type(backend).__name__)
    if map_on is not None:
        with map_on(backend, shared) as submit:
            yield submit
        return
    with ThreadPoolExecutor(n_jobs) as threads:
        yield lambda function, items: threads.map(functools.partial(function, *shared), items)


def thread_pool(n_threads: int) -> ThreadPoolExecutor:
    """Return threads for a scheduler that is not ours; they end with the block that uses them."""
    return ThreadPoolExecutor(n_threads)


def active_backend() -> Any:
    """Return the joblib backend that the caller has chosen; None before joblib is imported."""
    joblib = sys.modules.get("joblib")
    return None if joblib is None else joblib.parallel.get_active_backend()[0]


class _OneBlasThread:
    """Counts the callers inside: the first to enter limits the threads, the last to leave restores
    them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limits = contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limits.enter_context(_controller().limit(limits=1))
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limits.close()


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


# Our matrices are small: threads inside the linear algebra cost more than they bring, and the order
# of its sums, hence the last digit of the answer, would depend on how many there are.
one_blas_thread = _OneBlasThread()
