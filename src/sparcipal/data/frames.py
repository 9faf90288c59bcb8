"""Data frames (pandas, polars, pyarrow) as a matrix with names.

pandas frames are read by their own interface, all others through narwhals, which scikit-learn 1.9
installs.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .checks import check_integers, object_to_float
from .columns import (
    DATE,
    DIFFER,
    EMPTY,
    NUMBER,
    TEXT,
    Column,
    Plan,
    Wanted,
    distinct,
    encoded,
    looks_like_identifier,
    plan,
)
from .files.fields import days_of, is_missing, is_number

EVERYTHING = Wanted(index=False)  # a frame has its own index
ALL = slice(None)
LOOKED_AT = 10_000  # entries of a column of text that tell whether most of them are numbers
# What columns are called that hold something else than numbers, text and dates: by the types of
# narwhals, and of Python for columns of objects.
TYPES = {
    "Time": "times",
    "List": "lists",
    "Array": "lists",
    "Struct": "records",
    "Binary": "bytes",
}
OBJECTS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((datetime.date, datetime.timedelta), DATE),
    (datetime.time, "times"),
    ((list, tuple, set, np.ndarray), "lists"),
    (dict, "records"),
)


class Framed(NamedTuple):
    """The features of a frame, and what is beside them."""

    matrix: Any
    features: tuple[str, ...] | None = None
    samples: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None
    label_name: str | None = None
    notes: tuple[str, ...] = ()


def is_frame(X: Any) -> bool:
    """Return whether X is a two-dimensional frame of columns, of any library."""
    maker = type(X).__module__.partition(".")[0]
    if maker in {"pandas", "polars", "pyarrow"}:
        return len(getattr(X, "shape", ())) == 2 or hasattr(X, "collect")
    return hasattr(X, "__narwhals_dataframe__") or hasattr(X, "__dataframe__")


def has_sparse_columns(frame: Any) -> bool:
    """Return whether a frame of pandas has columns that store some of their entries only."""
    return _is_pandas(frame) and any(hasattr(dtype, "fill_value") for dtype in frame.dtypes)


def from_frame(frame: Any, wanted: Wanted = EVERYTHING, where: str = "X") -> Framed:
    """Return the features of a frame as a matrix, and what is beside them; `where` begins an error.

    Columns that hold no numbers are set aside, or refused by name where `wanted` says so. Entries
    that are missing become NaN.
    """
    if has_sparse_columns(frame):
        return Framed(_sparse_pandas(frame), _pandas_names(frame), _pandas_samples(frame))
    return _framed(_opened(frame), wanted, where)


class Sections:
    """A frame of which some rows at a time become a matrix.

    All rows tell what a column is for, as where the frame becomes one matrix.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = _opened(frame)
        self._plan = _planned(self._frame, EVERYTHING, "X")
        names = tuple(self._plan.names[j] for j in self._plan.features)
        self.names = None if _only_numbered(self._frame, self._plan) else names
        self.notes = self._plan.notes
        self.rows, self.width = self._frame.rows, len(self._plan.features)

    def matrix(self, start: int, stop: int) -> np.ndarray:
        rows = slice(start, min(stop, self.rows))
        return _side_by_side(_features(self._frame, self._plan, rows), rows.stop - start)


@dataclass(frozen=True)
class Part:
    """What some rows of a frame tell of its columns, by their names.

    Parameters
    ----------
    columns : mapping of str to Column
    whole : mapping of str to ndarray
        The entries of columns of whole numbers that may be identifiers.
    """

    columns: dict[str, Column]
    whole: dict[str, np.ndarray]


def part_of(frame: Any, names: Iterable[str] | None = None) -> Part:
    """Return what some rows tell: of all columns, or of those that are named."""
    opened, own = _opened(frame), all_names(frame)
    chosen = set(own if names is None else names)
    columns: dict[str, Column] = {}
    whole: dict[str, np.ndarray] = {}
    for j, name in enumerate(own):
        if name in chosen:
            columns[name] = _column(opened, j, name, None)
            if columns[name].whole:
                whole[name] = opened.numbers(j)
    return Part(columns, whole)


def _opened(frame: Any) -> _Pandas | _Other:
    """Return a frame as columns that can be asked one by one."""
    if _is_pandas(frame):
        return _Pandas(frame)
    try:
        import narwhals.stable.v1 as nw
    except ImportError as error:
        raise ValueError(
            f"a {type(frame).__module__} frame needs narwhals: pip install narwhals, "
            "or pass frame.to_pandas()"
        ) from error
    # narwhals refuses names that are there twice
    wrapped = nw.from_native(_renamed(frame))
    if isinstance(wrapped, nw.LazyFrame):
        raise ValueError("X is a lazy frame; call X.collect() first")
    labels = frame.schema.names if _is_arrow(frame) else wrapped.columns
    return _Other(wrapped, tuple(labels))


def column_names(frame: Any) -> tuple[str, ...] | None:
    """Return the names of all columns of a frame; None where they are only numbered."""
    if _is_pandas(frame):
        return _pandas_names(frame)
    if hasattr(frame, "collect_schema"):  # polars, where only this does not warn of a scan
        return tuple(frame.collect_schema().names())
    return tuple(frame.schema.names if _is_arrow(frame) else frame.columns)


def all_names(frame: Any) -> tuple[str, ...]:
    """Return a name for each column of a frame; all differ."""
    names = column_names(frame)
    return distinct(tuple(map(str, frame.columns)) if names is None else names)[0]


def kinds_beside(
    frame: Any, features: tuple[str, ...], known: Mapping[str, Column]
) -> dict[str, str]:
    """Return what the columns hold that are no features, by name."""
    names, chosen = all_names(frame), set(features)
    kinds: dict[str, str] = {}
    if chosen.issuperset(names):
        return kinds
    opened = _opened(frame)
    for j, name in enumerate(names):
        if name not in chosen:
            empty = name not in known and opened.unfilled(j)
            kind = known[name].kind if name in known else opened.kind(j)
            kinds[name] = EMPTY if empty else kind
    return kinds


def _is_pandas(frame: Any) -> bool:
    return type(frame).__module__.partition(".")[0] == "pandas"


def _is_arrow(frame: Any) -> bool:
    return type(frame).__module__.partition(".")[0] == "pyarrow"


def _renamed(frame: Any) -> Any:
    """Rename columns of an Arrow table, which may have several of one name."""
    if _is_arrow(frame) and len(set(frame.schema.names)) < len(frame.schema.names):
        return frame.rename_columns(list(distinct(frame.schema.names)[0]))
    return frame


class _Pandas:
    """The columns of a pandas frame, one by one."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self._dtypes = list(frame.dtypes)  # which pandas makes anew each time
        self.names = _pandas_names(frame)
        self.labels = self.names or tuple(map(str, frame.columns))
        self.rows = len(frame)
        self._views: dict[int, np.ndarray] = {}

    @property
    def samples(self) -> tuple[str, ...] | None:
        return _pandas_samples(self.frame)

    def kind(self, j: int) -> str:
        dtype = self._dtypes[j]
        if dtype.kind in "fiub":
            return NUMBER
        if dtype.kind in "Mm":
            return DATE
        if dtype.kind == "O" and str(dtype) == "object":
            return _kind_of_objects(self.frame.iloc[:, j])
        return TEXT if dtype.kind == "O" or str(dtype) in ("category", "string", "str") else (
            str(dtype)
        )  # fmt: skip

    def unfilled(self, j: int) -> bool:
        """Return whether the column has no entry."""
        column = self.frame.iloc[:, j]
        return bool(column[:1].isna().all() and column.isna().all())

    def categories(self, j: int) -> bool:
        return str(self._dtypes[j]) == "category"

    def numbers(self, j: int, rows: slice = ALL) -> np.ndarray:
        dtype = self._dtypes[j]
        if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
            if j not in self._views:  # no copy; finding a column takes longer than many rows
                self._views[j] = self.frame.iloc[:, j].to_numpy()
            found = self._views[j][rows]
            small = dtype.kind == "f" and dtype.itemsize < 8
            return found.astype(np.float64) if small and np.isnan(found).any() else found
        column = self.frame.iloc[rows, j]
        if column.isna().any() and column.dtype.kind != "O":
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(column.to_numpy())

    def whole(self, j: int) -> bool:
        """Return whether the column is one of integers, which gaps turn into floating-point
        numbers."""
        return getattr(self._dtypes[j], "kind", "") in "iu"

    def texts(self, j: int, most: int | None = None) -> list[str | None]:
        column = self.frame.iloc[:most, j]
        told = [None if gone else str(e) for e, gone in zip(column, column.isna())]
        return days_of(told) if getattr(column.dtype, "kind", "") == "M" else told

    def distinct(self, j: int) -> int:
        return int(self.frame.iloc[:, j].nunique())


class _Other:
    """The columns of a frame of another library, through narwhals, one by one."""

    def __init__(self, wrapped: Any, labels: tuple[str, ...]) -> None:
        # narwhals lists all names to find one column
        self.columns = list(wrapped.iter_columns())
        self.names: tuple[str, ...] | None = labels
        self.labels = labels
        self.samples = None
        self.rows = len(wrapped)
        self._kinds = list(wrapped.schema.values())
        self._plain: dict[int, Any] = {}  # native columns of numbers without gaps, or None

    def kind(self, j: int) -> str:
        import narwhals.stable.v1 as nw

        dtype = self._kinds[j]
        if dtype.is_numeric() or dtype == nw.Boolean:
            return NUMBER
        if dtype in (nw.String, nw.Categorical, nw.Enum):
            return TEXT
        if dtype in (nw.Date, nw.Datetime, nw.Duration):
            return DATE
        if dtype == nw.Unknown:
            return self._kind_of_native(j)
        return TYPES.get(type(dtype).__name__, f"of type {type(dtype).__name__}")

    def _kind_of_native(self, j: int) -> str:
        """Return what a column holds of a type that narwhals does not know."""
        native = self.columns[j].to_native()
        known = str(native.type if hasattr(native, "type") else native.dtype)
        if "interval" in known:  # of months, days and nanoseconds, as DuckDB has them
            return DATE
        return EMPTY if known.lower() == "null" else f"of type {known}"

    def unfilled(self, j: int) -> bool:
        """Return whether the column has no entry."""
        column = self.columns[j]
        for part in (column[:1], column):
            if part.dtype.is_float():
                part = part.filter(~part.is_nan())
            if part.null_count() < len(part):
                return False
        return True

    def categories(self, j: int) -> bool:
        import narwhals.stable.v1 as nw

        return self._kinds[j] in (nw.Categorical, nw.Enum)

    def numbers(self, j: int, rows: slice = ALL) -> np.ndarray:
        import narwhals.stable.v1 as nw

        if self._kinds[j] in (nw.Int128, nw.UInt128):
            raise ValueError(
                f"{self.labels[j]!r} is of type {self._kinds[j]}, which NumPy does not have; cast "
                "the column to Int64, or to Float64, or leave it out"
            )
        column = self.columns[j]
        if rows == ALL:
            return np.asarray(column.to_numpy())
        if j not in self._plain:  # where narwhals takes longer than many rows
            plain = self._kinds[j].is_integer() or self._kinds[j].is_float()
            native = column.to_native()
            sliced = plain and column.null_count() == 0 and hasattr(native, "slice")
            self._plain[j] = native if sliced else None
        native = self._plain[j]
        if native is None:
            return np.asarray(column[rows].to_numpy())
        return np.asarray(native.slice(rows.start, rows.stop - rows.start).to_numpy())

    def whole(self, j: int) -> bool:
        return bool(self.columns[j].dtype.is_integer())

    def texts(self, j: int, most: int | None = None) -> list[str | None]:
        column = self.columns[j] if most is None else self.columns[j][:most]
        told = [None if entry is None else str(entry) for entry in column.to_list()]
        return days_of(told) if column.dtype.is_temporal() else told

    def distinct(self, j: int) -> int:
        return int(self.columns[j].n_unique())


def _planned(frame: _Pandas | _Other, wanted: Wanted, where: str) -> Plan:
    names = distinct(frame.labels)[0]
    columns = [_column(frame, j, name, wanted.known) for j, name in enumerate(names)]
    return plan(columns, wanted, where)


def _features(frame: _Pandas | _Other, made: Plan, rows: slice = ALL) -> list[np.ndarray]:
    """Return the columns of numbers that are features, or some rows of them."""
    parts: list[np.ndarray] = []
    for j in made.features:
        column = frame.numbers(j, rows)
        # Decimals, nullable integers and objects arrive as Python numbers.
        column = object_to_float(column) if column.dtype.kind == "O" else column
        # beside columns of fractions they would be rounded, and with gaps they are
        check_integers(column, column.dtype, rounded=frame.whole(j))
        parts.append(column)
    return parts


def _side_by_side(parts: list[np.ndarray], rows: int) -> np.ndarray:
    matrix = np.empty((rows, len(parts)), dtype=np.result_type(*parts), order="F")
    for j, part in enumerate(parts):
        matrix[:, j] = part
    return matrix


def _only_numbered(frame: _Pandas | _Other, made: Plan) -> bool:
    """Return whether the columns have no names, and all of them are features."""
    return frame.names is None and len(made.features) == len(frame.labels)


def _framed(frame: _Pandas | _Other, wanted: Wanted, where: str) -> Framed:
    """Plan the columns of a frame and put its features side by side."""
    made = _planned(frame, wanted, where)
    parts = _features(frame, made)
    features = [made.names[j] for j in made.features]
    for j in made.hot:
        block, added = encoded(frame.texts(j), made.names[j])
        parts.extend(block.T)
        features += added
    return Framed(
        _side_by_side(parts, frame.rows),
        None if _only_numbered(frame, made) else tuple(features),
        frame.samples if made.index is None else _filled(frame.texts(made.index)),
        None if made.label is None else _filled(frame.texts(made.label)),
        None if made.label is None else made.names[made.label],
        made.notes,
    )


def _filled(texts: list[str | None]) -> tuple[str, ...]:
    return tuple("" if text is None else text for text in texts)


def _column(
    frame: _Pandas | _Other, j: int, called: str, known: Mapping[str, Column] | None
) -> Column:
    """Return what is known of a column, which is `called` so beside others of its name; entries are
    counted only where that can matter."""
    name = frame.labels[j]
    if known is not None and called in known:
        return replace(known[called], name=name)
    if known is None and frame.unfilled(j):
        return Column(name, EMPTY, frame.rows)
    kind = frame.kind(j)
    if kind == TEXT:
        stray, numeric = _stray(frame, j)
        written = ""
        if numeric:
            written = "categories of numbers" if frame.categories(j) else "numbers stored as text"
        return Column(name, kind, frame.rows, frame.distinct(j), stray=stray, written=written)
    if known is not None or kind != NUMBER or not looks_like_identifier(name):
        return Column(name, kind, frame.rows)
    numbers = frame.numbers(j)[:DIFFER]
    if numbers.dtype.kind not in "iu":
        return Column(name, kind, frame.rows)
    return Column(name, kind, numbers.size, np.unique(numbers).size, whole=True)


def _stray(frame: _Pandas | _Other, j: int) -> tuple[str, bool]:
    """Return what is no number in a column of text whose other entries are, empty where most are
    text; and whether all are numbers."""
    first = frame.texts(j, LOOKED_AT)
    some = [text for text in first if not (text is None or is_missing(text))]
    if 2 * sum(map(is_number, some)) < max(len(some), 1):
        return "", False
    texts = first if frame.rows <= LOOKED_AT else frame.texts(j)
    there = [(i, t) for i, t in enumerate(texts) if not (t is None or is_missing(t))]
    wrong = [(i, text) for i, text in there if not is_number(text)]
    if not wrong:
        return "", True
    row, text = wrong[0]
    return f"{len(wrong)} of {len(there)}, such as {text!r} in row {row} (counted from 0)", False


def _kind_of_objects(column: Any) -> str:
    """Return what a column of Python objects holds, by the first of them that is no number."""
    kind = NUMBER
    for entry in column[column.notna()]:
        if isinstance(entry, str | bytes):
            return TEXT
        if kind == NUMBER and not isinstance(entry, numbers.Number | decimal.Decimal | np.bool):
            named = (word for types, word in OBJECTS if isinstance(entry, types))
            kind = next(named, f"objects of type {type(entry).__name__}")
    return kind


def _pandas_samples(frame: Any) -> tuple[str, ...] | None:
    if hasattr(frame.index, "start"):  # a RangeIndex only numbers the rows
        return None
    names = list(map(str, frame.index))
    if getattr(frame.index.dtype, "kind", "") == "M":
        names = [str(day) for day in days_of(names)]
    return tuple(names)


def _pandas_names(frame: Any) -> tuple[str, ...] | None:
    """Return column labels as names; None when they only number the columns, TypeError when some of
    them are strings and others are not."""
    columns = list(frame.columns)
    if all(isinstance(c, str) for c in columns):
        return tuple(columns)
    if any(isinstance(c, str) for c in columns):
        other = next(c for c in columns if not isinstance(c, str))
        raise TypeError(
            f"Feature names are only supported if all input features have string names, but X also "
            f"has the column {other!r}; rename them: X.columns = X.columns.astype(str)"
        )
    if all(isinstance(c, tuple) for c in columns):
        return tuple(" ".join(map(str, c)) for c in columns)
    if columns == list(range(len(columns))):
        return None
    return tuple(map(str, columns))


def _sparse_pandas(frame: Any) -> Any:
    dtypes = zip(frame.columns, frame.dtypes)
    dense = [str(c) for c, dtype in dtypes if not hasattr(dtype, "fill_value")]
    if dense:
        raise ValueError(
            f"X mixes sparse columns and dense ones ({dense[0]!r} is dense); convert all of them, "
            "for instance X.astype(pandas.SparseDtype(float, 0))"
        )
    filled = [c for c, dtype in zip(frame.columns, frame.dtypes) if dtype.fill_value != 0]
    if filled:
        raise ValueError(
            f"the sparse column {filled[0]!r} is filled with something else than 0; convert it: "
            "X.astype(pandas.SparseDtype(float, 0))"
        )
    for j, dtype in enumerate(frame.dtypes):  # beside fractions, long integers are rounded
        check_integers(frame.iloc[:, j].array.sp_values, dtype.subtype)
    return frame.sparse.to_coo().tocsr()
