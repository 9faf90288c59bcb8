"""What gives rows more than once: blocks of rows, what dask or other libraries scan, matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .arrow import Batches, in_batches, is_read_once, plain_batch
from .checks import WAYS_OUT, WAYS_OUT_BEYOND, WAYS_OUT_LAZY, NotFinite
from .files.once import kept
from .frames import is_frame
from .passes import MEMORY_LIMIT
from .rows import CalledRows, MatrixRows, Rows, memory_map
from .slices import sliced
from .table import Table, as_table


def as_rows(
    source: Any,
    feature_names: Iterable[str] | None = None,
    *,
    gaps: bool = False,
    memory_limit: int = MEMORY_LIMIT,
) -> Rows:
    """Return the rows of anything that can give them twice.

    Parameters
    ----------
    source : callable, Rows, dask array, frame or list of blocks, or anything `as_table` takes
        A callable returns an iterator over blocks of rows (arrays, sparse matrices, frames), the
        same ones each time it is called.
    gaps : bool
        Whether entries of its blocks may be missing.
    memory_limit : int
        Batches that come once only are kept in a file where they are more than a part of it, and of
        a frame whose numbers would take more some rows are converted at a time.

    Raises
    ------
    TypeError
        For an iterator, which can be read once only.
    """
    rows: Rows
    source = listed_blocks(source, memory_limit)
    if isinstance(source, Rows):
        rows = source
    elif is_lazy(source):
        from .dask import rows_of

        rows = rows_of(source)
    elif in_blocks(source):
        rows = CalledRows(source, gaps=gaps)
    elif isinstance(source, Iterator):
        raise TypeError(
            f"X is a {type(source).__name__}, which can be read once only, but two passes are "
            "needed; pass a function that returns a new iterator each time: lambda: blocks()"
        )
    else:
        rows = sliced(source, memory_limit, gaps=gaps) or MatrixRows(as_table(source))
    return rows if feature_names is None else rows.named(feature_names)


def listed_blocks(X: Any, memory_limit: int = MEMORY_LIMIT) -> Any:
    """Return a list of blocks of rows, or what other libraries scan, as a function that gives
    blocks; anything else as it is."""
    if is_read_once(X):
        return kept(X, memory_limit)
    scanned = in_batches(X)
    if scanned is not None:
        return scanned
    X = plain_batch(X)
    blocks = isinstance(X, list | tuple) and len(X) > 0 and not is_lazy(X)
    if blocks and all(is_frame(b) or len(getattr(b, "shape", ())) == 2 for b in X):
        return Batches(lambda: map(plain_batch, X))
    return X


def in_blocks(X: Any) -> bool:
    """Return whether X gives blocks of rows: a function that returns them, or Rows."""
    return isinstance(X, Rows) or (callable(X) and not hasattr(X, "shape"))


def followable(X: Any, memory_limit: int, error: ValueError) -> ValueError:
    """Return an error about missing entries with a remedy that can be followed for X: rules need a
    table in memory. Any other error stays as it is."""
    if WAYS_OUT not in str(error):
        return error
    remedy = WAYS_OUT_LAZY
    if not is_lazy(X):
        mapped = memory_map(X.X if isinstance(X, Table) else X) is not None
        needed = 8 * error.rows * error.absent.size if isinstance(error, NotFinite) else 0
        if not (in_blocks(X) or mapped) or needed <= memory_limit:
            return error
        remedy = WAYS_OUT_BEYOND.format(needed)
    return ValueError(str(error).replace(WAYS_OUT, remedy))


def is_lazy(X: Any) -> bool:
    """Return whether X is made by dask: an array, a frame, or a list of delayed blocks or of
    futures."""
    if isinstance(X, list | tuple) and X:
        return all(map(_of_dask, X))
    return _of_dask(X)


def _of_dask(X: Any) -> bool:
    return hasattr(X, "__dask_graph__") or type(X).__module__.startswith("distributed.")
