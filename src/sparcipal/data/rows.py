"""Tables that are not held in memory: blocks of rows, read as often as asked.

A stage that needs all rows hands an empty accumulator (`Moments`, `Gram`) to `Rows.accumulate`.
Here that is a loop; a subclass may run it on many machines.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from ..problem.covariance import DENSE_LIMIT
from ..problem.monitor import Monitor
from .arrow import Batches, plain_batch
from .checks import NotFinite
from .columns import Column, Wanted
from .frames import EVERYTHING, Part, from_frame, is_frame, part_of
from .layout import Layout, known_columns
from .moments import Moments
from .table import Table, checked_names, stacked, table_of, untangled

DENSE_BLOCK = 1 << 23  # bytes of a dense block
# Stored entries of a sparse block; the sums copy entries that are no integers.
SPARSE_BLOCK, COPIED_BLOCK = 1 << 23, 1 << 20
# Sparse tables of at least so many columns are read in passes even if they fit when columns times
# stored entries are more than this: 50,000 columns with 3 million entries are quicker in memory
# (6.6 CPU s, not 12.5), with 12 million in passes (11.6, not 26.8), as are a million with 4 (14.7,
# not 18.4, and a third of the memory).
WIDE, WORK = 10_000, 3e11
PIECES = 4  # of the memory limit, of which rows of a matrix by columns take one, or so many bytes
PIECE = 1 << 21
TELL = 0.2  # seconds between two reports of progress
GRACE = 1.0  # seconds beyond the time limit in which a pass may still finish


class Accumulator(Protocol):
    """Sums over rows that can be split and merged."""

    def add(self, block: Any, weights: np.ndarray | None = None) -> Any: ...
    def merge(self, other: Any) -> Any: ...
    def copy_empty(self) -> Any: ...


A = TypeVar("A", bound=Accumulator)


class Watch:
    """Reports how far a pass is. A pass that is stopped early has no result, so stopping raises."""

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
        None until a pass has counted them.
    feature_names : tuple of str or None

    A subclass says what the blocks are; one that distributes them overrides `accumulate` too.
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
        self._names_of_blocks = feature_names  # kept when `named` changes the names
        self.sample_weight: np.ndarray | None = None
        self.moments: Moments | None = None  # of these rows with these weights, once counted
        self.cache_entry: Any = None  # where results of a pass are stored
        self.notes: tuple[str, ...] = ()  # what was set aside, in sentences
        self.texts: dict[str, Any] | None = None  # how words were counted
        self.memory_limit = sys.maxsize  # bytes that a pass may take here
        # gives an error about missing entries the remedy that can be followed for these rows
        self.advise: Callable[[ValueError], ValueError] | None = None

    @contextlib.contextmanager
    def _advised(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            found = error if self.advise is None else self.advise(error)
            if found is error:
                raise
            raise found from error

    @abstractmethod
    def blocks(self) -> Iterator[Any]:
        """Yield ndarrays or csr_arrays with all columns, checked, in order."""

    def accumulate(self, empty: A, watch: Watch | None = None) -> A:
        """Add all rows to an empty accumulator and return it."""
        with self._advised():
            return self._summed(empty, self.blocks(), watch)

    def count(self, watch: Watch | None = None) -> Moments:
        """Return the moments of all columns; a pass is made only where none has counted them."""
        if self.moments is None:
            self.moments = self.accumulate(Moments(self.n_features), watch)
        return self.moments

    def gathered(self, limit: int, watch: Watch | None = None) -> Table | None:
        """Return all rows if they, a copy of them and their covariance take at most `limit` bytes;
        otherwise None.

        They are copied when they are put together, and when they are centred. Rows of unknown size
        are read. Once they are too many, the blocks held are counted and dropped, and the same pass
        goes on to count the moments.
        """
        size = self.nbytes(watch)
        if size is not None:
            return self.gather() if 2 * size + self._formed <= limit else None
        held: deque[Any] = deque()
        rows = total = 0
        reading = self.blocks()
        for block in reading:
            held.append(self.lasting(block))
            rows, total = rows + block.shape[0], total + working_bytes(block)
            if 2 * total + self._formed > limit:
                gathered = (held.popleft() for _ in range(len(held)))  # frees counted blocks
                blocks = itertools.chain(gathered, reading)
                self.moments = self._summed(Moments(self.n_features), blocks, watch)
                return None
            if watch is not None:
                watch(rows, self.n_samples)
        return stacked(held, self.feature_names)

    @property
    def _formed(self) -> int:
        return formed_bytes(self.n_features)

    def _summed(self, empty: A, blocks: Iterable[Any], watch: Watch | None) -> A:
        total = empty.copy_empty()
        start = 0
        for block in blocks:
            stop = start + block.shape[0]
            if self.sample_weight is None:
                total.add(block)
            else:
                self._counted(stop)
                total.add(block, self.sample_weight[start:stop])
            start = stop
            if watch is not None and start != self.n_samples:
                watch(start, self.n_samples)
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
        """Return the same rows, each with its weight; moments without weights are forgotten."""
        self.sample_weight = np.asarray(sample_weight, dtype=np.float64)
        self.moments = None
        return self

    def within(self, memory_limit: int) -> Self:
        """Return the same rows, of which passes take about so many bytes at most."""
        self.memory_limit = memory_limit
        return self

    def named(self, feature_names: Iterable[str]) -> Self:
        """Return the same rows, with these names of the features."""
        names = checked_names(feature_names)
        if len(names) != self.n_features:
            raise ValueError(
                f"feature_names has {len(names)} names, but there are {self.n_features} features; "
                "pass one name per feature"
            )
        self.feature_names = names
        return self

    def nbytes(self, watch: Watch | None = None) -> int | None:
        """Return the bytes of all rows in double precision, with sparse indices, or None."""
        return None

    @property
    def room(self) -> int:
        """Bytes that sums may take where they are summed, if that is not here."""
        return sys.maxsize

    def gather(self) -> Table:
        """Return all rows in memory."""
        return stacked([self.lasting(block) for block in self.blocks()], self.feature_names)

    def lasting(self, block: Any) -> Any:
        """Return a block that stays as it is when the next one is read."""
        return block


class MatrixRows(Rows):
    """A checked array, memory map or sparse matrix: blocks are views of it, but for those of a
    matrix by columns of which no copy by rows fits the limit."""

    def __init__(self, table: Table) -> None:
        if sp.issparse(table.X) and table.X.format not in ("csr", "csc"):
            table = replace(table, X=table.X.tocsr())
        super().__init__(table.shape[1], table.shape[0], table.feature_names)
        self.X = table.X
        self.moments, self.cache_entry = table.moments, table.cache_entry
        self.notes, self.texts = table.notes, table.texts
        self._table = table

    def nbytes(self, watch: Watch | None = None) -> int:
        return working_bytes(self.X)

    def blocks(self) -> Iterator[Any]:
        if sp.issparse(self.X) and self.X.format == "csc":
            if self._copied > max(self.memory_limit // PIECES, PIECE):
                yield from self._pieces()
                return
            self.X = self.X.tocsr()
        for start, stop in self._borders():
            yield _view(self.X, start, stop) if sp.issparse(self.X) else self.X[start:stop]

    @property
    def _copied(self) -> int:
        """Bytes of a copy of a matrix by columns."""
        return int(self.X.data.nbytes + self.X.indices.nbytes)

    def _pieces(self) -> Iterator[sp.csr_array]:
        """Yield rows of a matrix by columns, all of whose entries are looked at for each block."""
        n = self.X.shape[0]
        count = -(-self._copied // max(self.memory_limit // (2 * PIECES), PIECE))
        step = -(-n // count)
        yield from (sp.csr_array(self.X[start : start + step]) for start in range(0, n, step))

    def _borders(self) -> Iterator[tuple[int, int]]:
        """Yield the first row of every block and the first row after it."""
        n = self.X.shape[0]
        if not sp.issparse(self.X):
            step = max(1, DENSE_BLOCK // max(1, self.X.itemsize * self.n_features))
            yield from ((start, min(start + step, n)) for start in range(0, n, step))
            return
        indptr = self.X.indptr
        most = SPARSE_BLOCK if self.X.dtype.kind in "iub" else COPIED_BLOCK
        start = 0
        while start < n:
            stop = int(np.searchsorted(indptr, int(indptr[start]) + most, side="right")) - 1
            stop = min(max(stop, start + 1), n)
            yield start, stop
            start = stop

    def gather(self) -> Table:
        return self._table


class CalledRows(Rows):
    """A function that returns an iterator over blocks of rows, called once per pass.

    The first block, which says how many features there are, is read at once; the first pass goes on
    from there. With `gaps` entries may be missing. A block may be the caller's own array, which is
    filled again for the next one. `wanted` is what is asked of the columns of frames.
    """

    def __init__(
        self,
        call: Callable[[], Iterable[Any]],
        *,
        gaps: bool = False,
        wanted: Wanted = EVERYTHING,
    ) -> None:
        self._call, self._gaps, self._wanted = call, gaps, wanted
        self.of_frames = False
        self._layout: Layout | None = None  # the columns of all blocks, by the first one
        tables = self._tables()
        first = next(tables, None)
        if first is None:
            raise ValueError("the source of blocks gives no row; there must be at least one")
        self._told: int | None = getattr(call, "n_samples", None)
        super().__init__(first.shape[1], self._told, first.feature_names)
        self.notes = first.notes
        self._begun: Iterator[Table] | None = itertools.chain([first], tables)

    def nbytes(self, watch: Watch | None = None) -> int | None:
        return None if self._told is None else 8 * self._told * self.n_features

    def lasting(self, block: Any) -> Any:
        if isinstance(self._call, Batches):  # each of its blocks is an array of its own
            return block
        return block.copy() if sp.issparse(block) else np.array(block)

    def _reading(self) -> Generator[Any, None, None]:
        """Call the source and yield its blocks that have rows."""
        made = self._call()
        if not isinstance(made, Iterable):
            raise TypeError(
                f"the source of blocks returns {type(made).__name__}, which cannot be iterated; "
                "it must return an iterator over blocks of rows"
            )
        yield from filter(_has_rows, map(plain_batch, made))

    def _looked_at(self) -> tuple[Iterator[Any], dict[str, Column]]:
        """Return the blocks, and what they tell of the columns that the first one cannot tell."""
        blocks = self._reading()
        first = next(blocks, None)
        if not is_frame(first):
            return itertools.chain(() if first is None else [first], blocks), {}
        looked = False
        with contextlib.ExitStack() as stack:

            def again(names: Sequence[str]) -> Iterator[Part]:
                nonlocal looked
                looked = True
                blocks.close()  # two readings at once are more than DuckDB allows
                every = stack.enter_context(contextlib.closing(self._reading()))
                return (part_of(block, names) for block in every if is_frame(block))

            known = known_columns(part_of(first), again)
        return self._reading() if looked else itertools.chain([first], blocks), known

    def _tables(self) -> Iterator[Table]:
        again = self._layout is not None
        blocks, known = (self._reading(), {}) if again else self._looked_at()
        start = 0
        wrong: NotFinite | None = None  # which is counted to the end
        for number, block in enumerate(blocks):
            try:
                table = block_table(block, self._layout, self._gaps, known, self._wanted)
            except NotFinite as error:
                found = error.below(start)
                if wrong is not None and found.absent.size != wrong.absent.size:
                    break
                wrong = found if wrong is None else wrong.with_later(found)
                self._note_layout(block, found.absent.size, found.names, known)
            except ValueError as error:
                if wrong is not None:
                    break
                if number == 0:
                    raise
                # The message of the check counts rows from the start of the block.
                where = f"block {number} (its row 0 is row {start} of the table, counted from 0)"
                raise ValueError(f"{where}: {error}") from error
            else:
                self._note_layout(block, table.shape[1], table.feature_names, known)
                if wrong is None:
                    yield table
            start += block.shape[0] if hasattr(block, "shape") else len(block)
        if wrong is not None:
            raise wrong.among(start)

    def _note_layout(self, block: Any, count: int, names: Any, known: dict[str, Column]) -> None:
        self.of_frames = is_frame(block)
        if self._layout is None and self._wanted != EVERYTHING:
            self._layout = Layout(count, names)  # the other columns may hold anything
        elif self._layout is None:
            self._layout = Layout.of(block, count, names, known)

    def blocks(self) -> Iterator[Any]:
        for table in self.tables():
            yield table.X.tocsr() if sp.issparse(table.X) else table.X

    def tables(self) -> Iterator[Table]:
        """Yield the blocks with what is beside their features."""
        tables, self._begun = self._begun or self._tables(), None
        for number, table in enumerate(tables):
            if table.shape[1] != self.n_features:
                raise ValueError(
                    f"block {number} has {table.shape[1]} features, but the first one has "
                    f"{self.n_features}; all blocks must have the same columns"
                )
            if table.feature_names != self._names_of_blocks:
                raise ValueError(
                    f"block {number} has other feature names than the first one; all blocks must "
                    "have the same columns"
                )
            yield table


def _has_rows(block: Any) -> bool:
    shape: tuple[int, ...] = getattr(block, "shape", ())
    return not (len(shape) == 2 and shape[0] == 0)


def block_table(
    block: Any,
    layout: Layout | None,
    gaps: bool = False,
    known: Mapping[str, Column] | None = None,
    wanted: Wanted = EVERYTHING,
) -> Table:
    """Return a block of rows as a checked Table; of a frame the columns that the first block had.

    One block does not tell whether a column holds text as well as another does, nor whether it is
    empty or holds identifiers: that is `known`.
    """
    wanted = replace(wanted, known=known or {})
    if not is_frame(block):
        table = untangled(block)
    else:
        if layout is not None and layout.names is not None:
            layout.check(block)
            wanted = replace(wanted, columns=layout.names, drop=())
        table = table_of(from_frame(block, wanted))
    return table._check_but_for_gaps() if gaps else table._check()


def memory_map(X: Any) -> np.memmap | None:
    """Return the memory map that a matrix, or the entries of a sparse one, is a view of."""
    array = X.data if sp.issparse(X) else X
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and not isinstance(array.base, np.ndarray):
            return array
        array = array.base
    return None


def formed_bytes(n_features: int) -> int:
    """Return the bytes of the covariance of a table in memory, where it is formed."""
    return 8 * n_features**2 if n_features <= DENSE_LIMIT else 0


def fits_memory(X: Any, memory_limit: int) -> bool:
    """Return whether a table can be searched in memory: it is copied to be centred, and proofs take
    about as much again."""
    return 2 * working_bytes(X) + formed_bytes(X.shape[1]) <= memory_limit


def working_bytes(X: Any) -> int:
    """Return the bytes of a table in double precision, twice for a sparse one (centring)."""
    if sp.issparse(X):
        return 2 * int(X.nnz) * (8 + X.indices.itemsize) + X.indptr.nbytes
    return int(X.shape[0]) * int(X.shape[1]) * 8


def quicker_in_passes(X: Any) -> bool:
    """Return whether a table that fits is searched sooner by passes over it, on the features that
    matter.

    In memory the covariance of a wide sparse table is never formed: its products are repeated for
    every block of rows that a bound asks for, and each feature takes some kilobytes.
    """
    if not sp.issparse(X):
        return False
    return bool(X.shape[1] >= WIDE and float(X.shape[1]) * X.nnz >= WORK)


def _view(X: sp.csr_array, start: int, stop: int) -> sp.csr_array:
    """Return rows of a CSR matrix that share its arrays; no entry is read or copied."""
    low, high = int(X.indptr[start]), int(X.indptr[stop])
    # with different types SciPy would copy the indices at every use
    indptr = (X.indptr[start : stop + 1] - low).astype(X.indices.dtype)
    part = sp.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    part.data, part.indices, part.indptr = X.data[low:high], X.indices[low:high], indptr
    return part
