"""Checks of a matrix. Each refusal says what is wrong, where, and what to do."""

from __future__ import annotations

import decimal
import numbers
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from .notes import on_codes

# Entries are checked in blocks of this size, so that a memory map is never read into memory whole.
BLOCK = 1_000_000
LARGEST = 2**53  # float64 holds all integers up to this one
IMPUTE = "remove these rows or columns, or impute the entries first"
FILLED = (
    "missing='mean' or missing='median' to fill the entries, or missing='pairwise' for the "
    "covariances of what is there"
)
WAYS_OUT = f"pass missing='rows' to leave out these rows, {FILLED}"
# Rules need a table in memory: the same of lazy data, and of rows that are more than may be held.
WAYS_OUT_LAZY = (
    "leave out or fill these entries before, as X.dropna() and X.fillna(X.mean()) of a frame do, "
    "or pass missing=... with X.compute() if that fits in memory"
)
WAYS_OUT_BEYOND = (
    "leave out or fill these entries in the source; missing='rows', 'mean', 'median' and "
    "'pairwise' need the table in memory: pass memory_limit={} with them"
)
_ANY_WAYS_OUT = re.compile(
    "|".join(
        r"\d+".join(map(re.escape, ways.split("{}")))
        for ways in (WAYS_OUT, WAYS_OUT_LAZY, WAYS_OUT_BEYOND)
    )
)
OF_SUMS = "sums know nothing of missing entries: fill them, or leave these rows out, before"


@contextmanager
def other_ways_out(remedy: str) -> Iterator[None]:
    """Replace the remedy of an error about gaps, where `missing=` is no keyword or is settled."""
    try:
        yield
    except ValueError as error:
        if not _ANY_WAYS_OUT.search(str(error)):
            raise
        raise ValueError(_ANY_WAYS_OUT.sub(lambda _: remedy, str(error))) from error


class Broken(ValueError):
    """The arrays of a sparse matrix are not those of any."""


def broken(what: object) -> Broken:
    return Broken(f"X is a broken sparse matrix: {what}; build it again")


class Damaged(ValueError):
    """What the cache held of a source cannot be used, and is gone: it can be read again."""


class NotFinite(ValueError):
    """Entries that are NaN or infinite, counted; what is found in further rows can be added.

    Parameters
    ----------
    infinite : int
    first : (int, int)
        The row and the column of the first one.
    absent : ndarray of shape (p,)
        How many are NaN in each column.
    names : tuple of str or None
    ways_out : tuple of str
        What can be done about missing entries, and what looks like more; nothing of sparse rows.
    rows : int
        How many rows were looked at; 0 where that is not known.
    """

    def __init__(
        self,
        infinite: int,
        first: tuple[int, int],
        absent: np.ndarray,
        names: tuple[str, ...] | None,
        ways_out: tuple[str, ...],
        rows: int = 0,
    ) -> None:
        self.infinite, self.first, self.absent = infinite, first, absent
        self.names, self.ways_out, self.rows = names, ways_out, rows
        super().__init__(self._words())

    def __reduce__(self) -> Any:
        return NotFinite, (
            self.infinite, self.first, self.absent, self.names, self.ways_out, self.rows
        )  # fmt: skip

    def among(self, rows: int) -> NotFinite:
        """Return the same of so many rows in all."""
        return NotFinite(self.infinite, self.first, self.absent, self.names, self.ways_out, rows)

    def below(self, rows: int) -> NotFinite:
        """Return the same of rows that follow so many others."""
        first = self.first[0] + rows, self.first[1]
        return NotFinite(self.infinite, first, self.absent, self.names, self.ways_out[:1])

    def with_later(self, other: NotFinite) -> NotFinite:
        """Add what is found in rows further down."""
        infinite, absent = self.infinite + other.infinite, self.absent + other.absent
        ways_out = self.ways_out if other.ways_out else ()
        return NotFinite(infinite, self.first, absent, self.names, ways_out)

    def _words(self) -> str:
        nan, infinite = int(self.absent.sum()), self.infinite
        infinities = "1 infinity" if infinite == 1 else f"{infinite} infinities"
        kinds = [f"{nan} NaN"] * (nan > 0) + [infinities] * (infinite > 0)
        (row, column), names = self.first, self.names
        # a named column may have another number in the file
        place = f"column {column}, X[{row}, {column}]" if names is None else repr(names[column])
        where = f"the first in row {row} (counted from 0), {place}"
        remedy = IMPUTE
        if nan and not infinite and self.ways_out:
            remedy = "; ".join([_by_column(self.absent, names), *self.ways_out])
        return f"X contains {' and '.join(kinds)}, {where}; {remedy}"


def check_array(X: np.ndarray, names: tuple[str, ...] | None, *, gaps: bool = False) -> np.ndarray:
    """Check that a dense X is two-dimensional, real, finite and not empty, and return it.

    With `gaps`, NaN stands for an entry that is missing.
    """
    check_shape(X)
    _check_dtype(X.dtype)
    if X.dtype.kind == "f":
        _check_finite(X, names, gaps)
        if X.dtype.itemsize > 8:
            X = _narrowed(X)
    check_integers(X, X.dtype)
    return X


def check_sparse(X: Any, names: tuple[str, ...] | None) -> Any:
    """Check that a sparse X has valid indices and real, finite entries, and return it as csr_array
    or csc_array that shares its memory, unless entries are stored twice."""
    check_shape(X)
    _check_dtype(X.dtype)
    container = sp.csc_array if X.format == "csc" else sp.csr_array
    if X.format in ("csc", "csr"):  # SciPy shortens the others to where the pointers end
        check_pointers(X.indptr, X.indices, X.data)
    # SciPy would copy 32-bit indices that have 64-bit pointers, as those of large files do.
    mixed = type(X) is container and X.indices.dtype != X.indptr.dtype
    X = X if mixed else container(X)
    try:
        if mixed:
            _check_indices(X, X.shape[X.format == "csr"])
        else:
            X.check_format(full_check=True)
    except ValueError as error:
        raise broken(error) from error
    # SciPy sums entries that are stored twice in their own type, and would do it in the caller's
    # arrays when it is asked for the largest ones of columns.
    summed = X.format == "csc" or X.dtype.itemsize < 8
    if summed and not mixed and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.dtype.kind == "f" and not np.isfinite(X.data).all():
        bad = np.flatnonzero(~np.isfinite(X.data))
        # The pointers give the row (csr) or column (csc) of an entry, the index gives the other.
        outer = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        inner = int(X.indices[bad[0]])
        row, column = (inner, outer) if X.format == "csc" else (outer, inner)
        absent = bad[np.isnan(X.data[bad])]
        columns = np.searchsorted(X.indptr, absent, side="right") - 1
        columns = columns if X.format == "csc" else X.indices[absent]
        counts = np.bincount(columns, minlength=X.shape[1])
        raise NotFinite(bad.size - absent.size, (row, column), counts, names, ())
    check_integers(X.data, X.dtype)
    return X


def check_pointers(indptr: Any, indices: Any, data: Any) -> None:
    """Refuse pointers that compiled code must not follow: out of order, or beyond the entries."""
    kinds = {array.dtype.kind for array in (indptr, indices)}
    if not kinds <= {"i", "u"} or not indptr.ndim == indices.ndim == data.ndim == 1:
        raise broken("indices are not integers")
    if not indptr.size or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise broken("index pointers do not increase from 0")
    if int(indptr[-1]) > min(indices.size, data.size):
        same = "" if indices.size == data.size else ", which should have the same size,"
        raise broken(
            f"{indices.size} indices and {data.size} entries{same} for {indptr[-1]} places"
        )


def _check_indices(X: Any, width: int) -> None:
    """Make these checks of SciPy's `check_format(full_check=True)` in blocks."""
    indices = X.indices
    if not int(X.indptr[-1]) == indices.size == X.data.size:
        raise ValueError(f"{indices.size} indices and {X.data.size} entries for {X.nnz} places")
    for start in range(0, indices.size, BLOCK):
        part = indices[start : start + BLOCK]
        if int(part.min()) < 0 or int(part.max()) >= width:
            raise ValueError(f"an index is not in 0..{width - 1}")


def object_to_float(X: np.ndarray) -> np.ndarray:
    """Convert an array of Python numbers to float64; anything else in it is an error."""
    out = np.empty(X.shape, dtype=np.float64)
    for position, entry in np.ndenumerate(X):
        if entry is None:
            entry = np.nan
        if isinstance(entry, numbers.Complex) and not isinstance(entry, numbers.Real):
            raise ValueError(f"Complex data not supported: X{list(position)} is {entry!r}")
        if isinstance(entry, str | bytes):
            raise ValueError(
                f"X{list(position)} is {entry!r}, not a number; convert or remove the columns "
                "that hold text"
            )
        if not isinstance(entry, numbers.Real | decimal.Decimal):
            raise TypeError(
                f"X{list(position)} is {entry!r}: argument must be a string or a real number, "
                f"not {type(entry).__name__!r}; X holds numbers only"
            )
        if isinstance(entry, numbers.Integral) and abs(int(entry)) > LARGEST:
            raise ValueError(_too_large(abs(int(entry))))
        out[position] = entry
    return out


def check_shape(X: Any) -> None:
    if X.ndim != 2:
        remedy = {
            0: "pass a table of samples in rows and features in columns",
            1: "pass X.reshape(-1, 1) for one feature or X.reshape(1, -1) for one sample",
        }.get(X.ndim, "pass X.reshape(len(X), -1) if the first axis holds the samples")
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: X has shape {X.shape}; {remedy}"
        )
    n, p = X.shape
    if n == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=({n}, {p})) while a minimum of 1 is required."
        )
    if p == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n}, {p})) while a minimum of 1 is required."
        )


def _check_dtype(dtype: np.dtype[Any]) -> None:
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: X has dtype {dtype}; pass X.real, or real and imaginary "
            "parts side by side"
        )
    if dtype.kind not in "fiub":
        raise ValueError(
            f"X has dtype {dtype}, which does not hold numbers; convert or remove these columns"
        )


def check_integers(entries: np.ndarray, dtype: np.dtype[Any], rounded: bool = False) -> None:
    """Refuse integers beyond 2^53: converting them to floating point would round them, or has where
    they come `rounded`."""
    if rounded and dtype.kind == "f":
        largest = float(np.nanmax(np.abs(entries), initial=0.0))
        if largest >= LARGEST:
            raise ValueError(_too_large(int(largest)))
    if dtype.kind not in "iu" or dtype.itemsize < 8 or entries.size == 0:
        return
    low, high = int(entries.min()), int(entries.max())
    if max(high, -low) > LARGEST:
        raise ValueError(_too_large(max(high, -low)))


def _too_large(size: int) -> str:
    return (
        f"X holds integers up to {size}, beyond 2**53 = {LARGEST}, which floating point cannot "
        "hold exactly; subtract a constant from each column first"
    )


def has_gaps(X: np.ndarray) -> bool:
    """Return whether a dense X has entries that are missing."""
    step = max(1, BLOCK // X.shape[1])
    return any(np.isnan(X[i : i + step]).any() for i in range(0, X.shape[0], step))


def _check_finite(X: np.ndarray, names: tuple[str, ...] | None, gaps: bool) -> None:
    infinite = 0
    first: tuple[int, int] | None = None
    absent = np.zeros(X.shape[1], dtype=np.int64)
    step = max(1, BLOCK // X.shape[1])
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        finite = np.isfinite(block)
        missing = np.isnan(block)
        if gaps:
            finite |= missing
            missing = missing & False
        if finite.all():
            continue
        absent += missing.sum(axis=0)
        if first is None:
            row, column = np.unravel_index(int(np.argmin(finite)), finite.shape)
            first = start + int(row), int(column)
        infinite += int(finite.size - np.count_nonzero(finite)) - int(missing.sum())
    if first is not None:
        ways_out = (WAYS_OUT, *on_codes(X, names)) if absent.any() and not infinite else (WAYS_OUT,)
        raise NotFinite(infinite, first, absent, names, ways_out, X.shape[0])


def _by_column(absent: np.ndarray, names: tuple[str, ...] | None) -> str:
    """Say how many entries are missing in each column, the most first."""
    order = [int(j) for j in np.argsort(-absent, kind="stable") if absent[j]]
    shown = [f"{names[j] if names is not None else f'x{j}'!r} {absent[j]}" for j in order[:6]]
    more = f" and {len(order) - 6} more columns" if len(order) > 6 else ""
    return f"missing by column: {', '.join(shown)}{more}"


def _narrowed(X: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        narrow = X.astype(np.float64)
    if not np.array_equal(narrow, X, equal_nan=True):
        raise ValueError(
            f"X has dtype {X.dtype} and entries that float64 cannot hold; convert it yourself with "
            "X.astype('float64') if rounding is fine"
        )
    return narrow
