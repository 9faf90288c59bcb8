"""Tables that are not held in memory: blocks of rows, as often as asked.

A stage that needs all rows hands an empty accumulator (`Moments`, `Gram`) to `Rows.accumulate`.
Here that is a loop; a subclass may run it on many machines.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from ..problem.monitor import Monitor
from .table import Table, as_table, checked_names, is_lazy

DENSE_BLOCK = 1 << 25  # bytes of a dense block
SPARSE_BLOCK = 1 << 23  # stored entries of a sparse block
TELL = 0.2  # seconds between two reports of progress
GRACE = 1.0  # seconds that a pass may take beyond the time limit: it may be all but done


class Accumulator(Protocol):
    """Sums over rows that can be split and merged."""

    def add(self, block: Any, weights: np.ndarray | None = None) -> Any: ...
    def merge(self, other: Any) -> Any: ...
    def copy_empty(self) -> Any: ...


A = TypeVar("A", bound=Accumulator)


class Watch:
    """Told how far a pass is. Nothing is known before a pass has ended: whoever stops it gets an
    exception instead of an answer."""

    def __init__(self, monitor: Monitor, stage: str, what: str) -> None:
        self._monitor, self._stage, self._what = monitor, stage, what
        self._told = time.monotonic()
        monitor.update(stage, message=what)

    def __call__(self, done: int, total: int | None, unit: str = "rows") -> None:
        now = time.monotonic()
        part = f"{done} {unit}" if not total else f"{100 * done // total} % of the {unit}"
        if now - self._told >= TELL:
            self._told = now
            self._monitor.update(self._stage, message=f"{self._what}, {part}")
        if self._monitor.stopped == "user":
            raise KeyboardInterrupt(f"stopped while the rows were read ({part})")
        if self._monitor.overdue > GRACE:
            raise TimeoutError(
                f"time_limit ended while the rows were read ({part}), before anything is known of "
                "the answer; raise time_limit, or pass fewer rows"
            )


class Rows(ABC):
    """Rows of a table in blocks, dense or sparse, the same ones each time they are asked for.

    Parameters
    ----------
    n_features : int
    n_samples : int or None
        None until somebody has counted them.
    feature_names : tuple of str or None

    Subclasses say what the blocks are; whoever distributes them overrides `accumulate` too.
    """

    def __init__(
        self,
        n_features: int,
        n_samples: int | None = None,
        feature_names: tuple[str, ...] | None = None,
    ) -> None:
        self.n_features = n_features
        self.n_samples = n_samples
        self.feature_names = feature_names
        self.sample_weight: np.ndarray | None = None
        self.moments: Any = None  # Moments that somebody has counted already
        self.kept: Any = None  # where results of a pass can be kept
        self.watch: Watch | None = None  # of the pass that is made

    @abstractmethod
    def blocks(self) -> Iterator[Any]:
        """ndarrays or csr_arrays with all columns, checked, in order."""

    def accumulate(self, empty: A) -> A:
        """All rows added to an empty accumulator."""
        total = empty.copy_empty()
        start = 0
        for block in self.blocks():
            stop = start + block.shape[0]
            if self.sample_weight is None:
                total.add(block)
            else:
                self._counted(stop)
                total.add(block, self.sample_weight[start:stop])
            start = stop
            if self.watch is not None and start != self.n_samples:
                self.watch(start, self.n_samples)
        if self.n_samples is None:
            self.n_samples = start
        if self.sample_weight is not None and self.sample_weight.size != start:
            raise ValueError(
                f"sample_weight has {self.sample_weight.size} entries, but there are {start} rows; "
                "pass one per row"
            )
        if start != self.n_samples:
            raise ValueError(
                f"the blocks hold {start} rows now, but held {self.n_samples} before; a source of "
                "blocks must give the same rows each time"
            )
        return total

    def _counted(self, stop: int) -> None:
        if self.sample_weight is not None and stop > self.sample_weight.size:
            raise ValueError(
                f"sample_weight has {self.sample_weight.size} entries, but there are more rows; "
                "pass one per row"
            )

    def weighted(self, sample_weight: np.ndarray) -> Self:
        """The same rows, each with its weight."""
        self.sample_weight = np.asarray(sample_weight, dtype=np.float64)
        return self

    def nbytes(self) -> int | None:
        """Bytes of all rows in double precision (sparse: with their indices); None if unknown."""
        return None

    def gather(self) -> Table:
        """All rows in memory."""
        blocks = list(self.blocks())
        if any(sp.issparse(block) for block in blocks):
            X: Any = sp.vstack([sp.csr_array(block) for block in blocks], format="csr")
        else:
            X = np.concatenate(blocks)
        return as_table(Table(X, self.feature_names))


class MatrixRows(Rows):
    """An array, a memory map or a CSR matrix: blocks are views of it."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.shape[1], table.shape[0], table.feature_names)
        self.X = table.X
        self.moments, self.kept = table.moments, table.kept

    def nbytes(self) -> int:
        return working_bytes(self.X)

    def blocks(self) -> Iterator[Any]:
        for start, stop in self.borders():
            yield _view(self.X, start, stop) if sp.issparse(self.X) else self.X[start:stop]

    def borders(self) -> Iterator[tuple[int, int]]:
        """The first row of every block and the first one after it."""
        n = self.X.shape[0]
        if not sp.issparse(self.X):
            step = max(1, DENSE_BLOCK // max(1, self.X.itemsize * self.n_features))
            yield from ((start, min(start + step, n)) for start in range(0, n, step))
            return
        indptr = self.X.indptr
        start = 0
        while start < n:
            stop = int(np.searchsorted(indptr, int(indptr[start]) + SPARSE_BLOCK, side="right")) - 1
            stop = min(max(stop, start + 1), n)
            yield start, stop
            start = stop

    def gather(self) -> Table:
        return Table(self.X, self.feature_names)


class CalledRows(Rows):
    """A function that returns an iterator over blocks of rows, called once per pass."""

    def __init__(self, call: Callable[[], Iterable[Any]]) -> None:
        self._call = call
        self._kind: tuple[Any, ...] | None = None
        first = next(self._tables(), None)
        if first is None:
            raise ValueError("the source of blocks gives no block; there must be at least one row")
        super().__init__(first.shape[1], None, first.feature_names)

    def _tables(self) -> Iterator[Table]:
        made = self._call()
        if not isinstance(made, Iterable):
            raise TypeError(
                f"the source of blocks returns {type(made).__name__}, which cannot be iterated; "
                "it must return an iterator over blocks of rows"
            )
        start = 0
        for number, block in enumerate(made):
            try:
                table = as_table(block)
            except ValueError as error:
                if number == 0:
                    raise
                # The check counts rows from the first one of the block.
                where = f"block {number} (its row 0 is row {start} of the table)"
                raise ValueError(f"{where}: {error}") from error
            yield table
            start += table.shape[0]

    def blocks(self) -> Iterator[Any]:
        for number, table in enumerate(self._tables()):
            if table.shape[1] != self.n_features:
                raise ValueError(
                    f"block {number} has {table.shape[1]} features, but the first one has "
                    f"{self.n_features}; all blocks must have the same columns"
                )
            if table.feature_names != self.feature_names:
                raise ValueError(
                    f"block {number} has other feature names than the first one; all blocks must "
                    "have the same columns"
                )
            yield table.X.tocsr() if sp.issparse(table.X) else table.X


def as_rows(source: Any, feature_names: Iterable[str] | None = None) -> Rows:
    """Rows of anything that can give them twice.

    Parameters
    ----------
    source : callable, Rows, dask array, frame or list of blocks, or anything `as_table` takes
        A callable returns an iterator over blocks of rows (arrays, sparse matrices, frames), the
        same ones each time it is called.

    Raises
    ------
    TypeError
        For an iterator, which can be read once only.
    """
    rows: Rows
    if isinstance(source, Rows):
        rows = source
    elif is_lazy(source):
        from .dask import rows_of

        rows = rows_of(source)
    elif callable(source) and not hasattr(source, "shape"):
        rows = CalledRows(source)
    elif isinstance(source, Iterator):
        raise TypeError(
            f"X is a {type(source).__name__}, which can be read once only, but two passes are "
            "needed; pass a function that returns a new iterator each time: lambda: blocks()"
        )
    else:
        table = as_table(source)
        X = table.X
        if sp.issparse(X) and X.format != "csr":
            table = replace(table, X=X.tocsr())
        rows = MatrixRows(table)
        if "distributed" in sys.modules and memory_map(table.X) is not None:
            from .dask import spread

            rows = spread(rows)
    if feature_names is not None:
        names = checked_names(feature_names)
        if len(names) != rows.n_features:
            raise ValueError(
                f"feature_names has {len(names)} names, but there are {rows.n_features} features; "
                "pass one name per feature"
            )
        rows.feature_names = names
    return rows


def memory_map(X: Any) -> np.memmap | None:
    """The memory map that a matrix (of a sparse one, its entries) is a view of, if it is one."""
    array = X.data if sp.issparse(X) else X
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and not isinstance(array.base, np.ndarray):
            return array
        array = array.base
    return None


def working_bytes(X: Any) -> int:
    """What the road in memory takes: a table in double precision, a sparse one twice (centring)."""
    if sp.issparse(X):
        return 2 * int(X.nnz) * (8 + X.indices.itemsize) + X.indptr.nbytes
    return int(X.shape[0]) * int(X.shape[1]) * 8


def _view(X: sp.csr_array, start: int, stop: int) -> sp.csr_array:
    """Rows of a CSR matrix, sharing its entries; a memory map is not read."""
    low, high = int(X.indptr[start]), int(X.indptr[stop])
    # one type for both, or SciPy copies the indices wherever it looks at them
    indptr = (X.indptr[start : stop + 1] - low).astype(X.indices.dtype)
    return csr_of(X.data[low:high], X.indices[low:high], indptr, (stop - start, X.shape[1]))


def csr_of(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sp.csr_array:
    """A CSR matrix of these very arrays: none is read, checked or copied."""
    matrix = sp.csr_array(shape, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix
