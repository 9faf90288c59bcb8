"""The only file that starts threads: over kernels without the GIL they beat processes, and they
survive both forks and concurrent callers. Who wants other machines enters joblib's dask backend."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import ThreadpoolController


@contextlib.contextmanager
def ordered_map(n_jobs: int, *shared: Any) -> Iterator[Callable[..., Iterator[Any]]]:
    """`submit(function, items)`: function(*shared, item) of every item, in the order of the items.

    On `n_jobs` threads, or on the workers of a cluster for a caller inside
    `joblib.parallel_config("dask")`; what is `shared` travels to each of them once.
    """
    if n_jobs <= 1:
        yield lambda function, items: map(functools.partial(function, *shared), items)
        return
    client = _cluster()
    if client is not None:
        from ..data.dask import map_on

        with map_on(client, shared) as submit:
            yield submit
        return
    with ThreadPoolExecutor(n_jobs) as threads:
        yield lambda function, items: threads.map(functools.partial(function, *shared), items)


def _cluster() -> Any:
    """The client of joblib's dask backend if that is the active one, otherwise None."""
    joblib = sys.modules.get("joblib")  # who has not imported it has asked for nothing
    backend: Any = None if joblib is None else joblib.parallel.get_active_backend()[0]
    return backend.client if type(backend).__name__ == "DaskDistributedBackend" else None


class _OneBlasThread:
    """Counts who is inside: the first to enter limits the threads, the last to leave restores
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
