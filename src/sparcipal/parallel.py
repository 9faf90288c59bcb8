"""The only file that starts threads: over kernels without the GIL they beat processes, and they
survive both forks and concurrent callers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any


@contextlib.contextmanager
def ordered_map(n_jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A `map` over `n_jobs` threads whose results come in the order of the items."""
    if n_jobs <= 1:
        yield map
        return
    with ThreadPoolExecutor(n_jobs) as threads:
        yield threads.map
