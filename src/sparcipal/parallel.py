"""The only file that starts threads: over kernels without the GIL they beat processes, and they
survive both forks and concurrent callers."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import ThreadpoolController


@contextlib.contextmanager
def ordered_map(n_jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A `map` over `n_jobs` threads whose results come in the order of the items."""
    if n_jobs <= 1:
        yield map
        return
    with ThreadPoolExecutor(n_jobs) as threads:
        yield threads.map


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
