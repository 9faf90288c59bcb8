"""Frames in memory whose numbers do not fit the limit, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .arrow import Batches
from .frames import Sections, has_sparse_columns, is_frame
from .rows import DENSE_BLOCK, CalledRows, fits_memory
from .table import Table

PARTS = 16  # of the memory limit, of which rows that are read together take one


def sliced(X: Any, memory_limit: int, *, gaps: bool = False) -> CalledRows | None:
    """Return the rows of a frame whose numbers do not fit the limit; None of anything else."""
    if not is_frame(X) or has_sparse_columns(X):
        return None
    n, p = X.shape
    if _fit(n, p, memory_limit):
        return None
    frame = Sections(X)
    if _fit(n, frame.width, memory_limit):
        return None
    step = max(1, max(DENSE_BLOCK, memory_limit // PARTS) // (8 * frame.width))

    def blocks() -> Iterator[Table]:
        for start in range(0, n, step):
            yield Table(frame.matrix(start, start + step), frame.names, notes=frame.notes)

    return CalledRows(Batches(blocks, n), gaps=gaps)


def _fit(n: int, p: int, memory_limit: int) -> bool:
    return fits_memory(np.broadcast_to(0.0, (n, p)), memory_limit)  # which takes no memory
