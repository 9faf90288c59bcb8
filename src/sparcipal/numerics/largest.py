"""The largest entries of rows, and what counts as large when weights are nonnegative."""

from __future__ import annotations

import numpy as np

LONG = 40  # entries of a row for one that is kept, from which on a heap is faster than a partition


def magnitudes(entries: np.ndarray, nonnegative: bool) -> np.ndarray:
    """Return absolute values; for nonnegative weights only positive entries count."""
    return np.maximum(entries, 0.0) if nonnegative else np.abs(entries)


def row_tops(rows: np.ndarray, count: int) -> np.ndarray:
    """Return the `count` largest entries of each row, unordered; all where there are no more."""
    split = rows.shape[1] - count
    if split <= 0:
        return rows
    if count <= 0:
        return rows[:, :0]
    if rows.shape[1] < LONG * count:
        return np.partition(rows, split, axis=1)[:, split:]
    from ..kernels.largest import tops  # imported here: it loads numba

    out = np.empty((rows.shape[0], count), dtype=rows.dtype)
    tops(np.ascontiguousarray(rows), out)
    return out


def positive_tops(rows: np.ndarray, count: int) -> np.ndarray:
    """Return the `count` largest entries of each row, unordered, negative ones counted as zero."""
    return np.maximum(row_tops(rows, count), 0.0)


def prefix_sums(values: np.ndarray, count: int) -> np.ndarray:
    """Return columns i = 0..count that hold the sum of the i largest of each row."""
    top = -np.sort(-row_tops(values, count), axis=1)
    out = np.zeros((values.shape[0], count + 1))
    np.cumsum(top, axis=1, out=out[:, 1 : top.shape[1] + 1])
    out[:, top.shape[1] + 1 :] = out[:, top.shape[1], None]
    return out
