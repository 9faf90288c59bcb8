"""Which containers `verify` takes as X, decided by their types: rows, columns and names.

Only types are asked what X is, never X itself: a frame has an attribute for each of its columns,
whatever their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .budget import Refused, require
from .numbers import doubles


def _maker(X: Any) -> str:
    """Return the package that a type is from."""
    return type(X).__module__.partition(".")[0]


def _is_table(X: Any) -> bool:
    """Return whether X is a record with a field X, such as what `read` returns."""
    return "X" in getattr(type(X), "__dataclass_fields__", ())


def _is_frame(X: Any) -> bool:
    kinds = ("__dataframe__", "__narwhals_dataframe__")
    known = _maker(X) in ("pandas", "polars", "pyarrow") and hasattr(type(X), "columns")
    return not _is_scanned(X) and (known or any(hasattr(type(X), k) for k in kinds))


# What a type has if its rows are read when they are asked for.
SCANNED = {
    "pyarrow": "scanner",
    "polars": "collect",
    "duckdb": "project",
    "_duckdb": "project",
    "zarr": "chunks",
}


def _is_batch(X: Any) -> bool:
    return _maker(X) == "pyarrow" and type(X).__name__ == "RecordBatch"


def _is_scanned(X: Any) -> bool:
    return _maker(X) in SCANNED and hasattr(type(X), SCANNED[_maker(X)])


def _is_dask(X: Any) -> bool:
    return _maker(X) in ("dask", "dask_expr", "distributed")


def _is_block(X: Any) -> bool:
    """Return whether X is rows of a table, which may come one after the other in a list."""
    return _is_frame(X) or ((isinstance(X, np.ndarray) or sp.issparse(X)) and X.ndim == 2)


def pieces(X: Any) -> Iterator[Any]:
    """Yield the parts that X comes in, one after the other."""
    if isinstance(X, list | tuple) and X and all(map(_is_dask, X)):
        for part in X:
            yield from pieces(part)
    elif _is_scanned(X):
        yield from _scanned_pieces(X)
    elif _is_dask(X):
        yield from _dask_pieces(X)
    elif _is_table(X) or isinstance(X, np.ndarray) or sp.issparse(X) or _is_frame(X):
        yield contents(X) if _is_table(X) else X
    elif isinstance(X, list | tuple) and X and all(map(_is_block, X)):
        yield from X
    elif callable(getattr(type(X), "blocks", None)):
        yield from X.blocks()
    elif callable(X):
        yield from X()
    elif isinstance(X, list | tuple) or hasattr(type(X), "__array__") or _maker(X) == "anndata":
        yield X
    elif _maker(X) == "pyarrow" and type(X).__name__ == "RecordBatchReader":
        raise TypeError(
            "X is a RecordBatchReader, whose batches come once only, and rows may be read again; "
            "pass what it reads, the list of its batches or X.read_all()"
        )
    else:
        raise TypeError(f"X is a {type(X).__name__}, which is no table; call verify(result, X)")


def lasts(X: Any) -> bool:
    """Return whether a piece of X stays as it is when the next one is read; a function may give one
    array again and again."""
    if isinstance(X, _Named):
        return lasts(X.given)
    return isinstance(X, list | tuple) or not (hasattr(type(X), "blocks") or callable(X))


def _scanned_pieces(X: Any) -> Iterator[Any]:
    if _maker(X) == "pyarrow":
        yield from filter(len, X.to_batches())
    elif _maker(X) == "polars":
        batches = hasattr(type(X), "collect_batches")
        yield from X.collect_batches(maintain_order=True) if batches else [X.collect()]
    elif _maker(X) == "zarr":
        step = max(1, X.chunks[0])
        yield from (X[start : start + step] for start in range(0, X.shape[0], step))
    else:
        again = X.project("*")  # a relation that was fetched has no more rows
        fetch = getattr(type(X), "to_arrow_reader", None) or type(X).fetch_record_batch
        yield from filter(len, fetch(again))


def _dask_pieces(X: Any) -> Iterator[Any]:
    if hasattr(type(X), "result"):  # a future
        yield X.result()
    elif hasattr(type(X), "npartitions") and hasattr(type(X), "partitions"):
        parts = X.blocks if hasattr(type(X), "numblocks") else X.partitions
        count = X.numblocks[0] if hasattr(type(X), "numblocks") else X.npartitions
        for i in range(count):
            yield parts[i].compute()
    else:
        yield X.compute()


def contents(X: Any, gaps: bool = False) -> Any:
    if _is_table(X):
        return contents(X.X, gaps)
    if _maker(X) == "anndata" and hasattr(type(X), "var_names"):
        return contents(X.X, gaps)
    if _maker(X) == "anndata":  # a view of the matrix of AnnData, which is a class of its own there
        return X.copy() if not sp.issparse(X) else sp.csr_array(X.tocsr())
    if _is_frame(X):
        return _frame(X, gaps)
    return X


def _frame(X: Any, gaps: bool = False) -> Any:
    """Return the columns of a frame side by side, in the type that holds them all."""
    if _is_batch(X):
        columns = [np.asarray(column.to_numpy(zero_copy_only=False)) for column in X.columns]
        whole = ["int" in str(column.type) for column in X.columns]
    elif _maker(X) == "pandas":
        if all(getattr(dtype, "fill_value", None) == 0 for dtype in X.dtypes):
            for j in range(X.shape[1]):  # one by one, as below
                doubles("X", np.asarray(X.iloc[:, j].array.sp_values))
            return X.sparse.to_coo()
        columns = [np.asarray(X.iloc[:, j].to_numpy()) for j in range(X.shape[1])]
        kinds = [getattr(dtype, "subtype", dtype) for dtype in X.dtypes]
        whole = [getattr(kind, "kind", "") in "iu" for kind in kinds]
    else:
        import narwhals.stable.v1 as nw

        wrapped = nw.from_native(_renamed(X), eager_only=True)
        columns = [np.asarray(column.to_numpy()) for column in wrapped.iter_columns()]
        whole = [column.dtype.is_integer() for column in wrapped.iter_columns()]
    # One by one: beside columns of fractions, long integers would be rounded; with gaps they are.
    read = (doubles("X", c, gaps=gaps, rounded=w) for c, w in zip(columns, whole))
    return np.column_stack(list(read))


def _renamed(X: Any) -> Any:
    """Rename columns of an Arrow table, which may have several of one name."""
    names = _labels(list(X.schema.names)) if _maker(X) == "pyarrow" else None
    return X if names is None else X.rename_columns(list(names))


@dataclass(frozen=True)
class _Named:
    """Data that come in pieces; of each piece that is a frame, the columns that are named, or those
    of the first such piece."""

    given: Any
    names: tuple[str, ...] | None
    others: list[int] = field(default_factory=list)  # columns that were left, per piece
    feature_names = None

    def blocks(self) -> Iterator[Any]:
        names = self.names
        for piece in pieces(self.given):
            columns = names_in(piece) if _is_frame(piece) else None
            names = columns if names is None else names
            if columns is None or names is None or columns == names:
                yield piece
                continue
            if not set(names) <= set(columns):
                check_names(names, columns)
            self.others.append(len(columns) - len(names))
            yield _taken(piece, _places(columns, names))


def chosen(X: Any, names: tuple[str, ...] | None) -> tuple[Any, list[int]]:
    """Return the columns of X that a result names, and how many others there are.

    What comes in pieces is known only once they are read: the counts follow then.
    """
    genes = _maker(X) == "anndata" and hasattr(type(X), "var_names")
    lazy = _is_dask(X) and not (hasattr(type(X), "partitions") and hasattr(type(X), "columns"))
    listed = isinstance(X, list | tuple) and bool(X) and all(_is_block(x) or _is_dask(x) for x in X)
    if lazy or listed or _is_scanned(X) or (callable(X) and not _is_frame(X) and not _is_dask(X)):
        parts = _Named(X, names)
        return parts, parts.others
    if names is None or not (genes or _is_frame(X) or _is_dask(X)):
        return X, []
    columns = names_in(X) or ()
    if len(columns) <= len(names) or not set(names) <= set(columns):
        return X, []
    return _taken(X, _places(columns, names)), [len(columns) - len(names)]


def _places(columns: tuple[str, ...], names: tuple[str, ...]) -> list[int]:
    require(len(set(names)) == len(names), "feature_names: a name is there twice")
    return [columns.index(name) for name in names]


def _taken(X: Any, places: list[int]) -> Any:
    if _maker(X) == "anndata":
        return X[:, places]
    if _is_dask(X):
        return X[[X.columns[place] for place in places]]
    if _maker(X) == "pandas":
        return X.iloc[:, places]
    if _is_batch(X):
        return X.select(places)
    import narwhals.stable.v1 as nw

    return nw.from_native(_renamed(X), eager_only=True)[:, places].to_native()


def names_in(X: Any) -> tuple[str, ...] | None:
    """Return the feature names that a table or frame brings; numbered columns have none."""
    if _is_table(X):
        names = X.feature_names
        return None if names is None else tuple(map(str, names))
    if _maker(X) == "anndata" and hasattr(type(X), "var_names"):
        return _apart(list(map(str, X.var_names)))
    if _is_dask(X) and hasattr(type(X), "partitions") and not hasattr(type(X), "numblocks"):
        return _labels(list(X.columns))
    if _maker(X) == "pandas" and _is_frame(X):
        return _labels(list(X.columns))
    if _is_batch(X):
        return _labels(list(X.schema.names))
    if _is_frame(X):
        import narwhals.stable.v1 as nw

        return _labels(nw.from_native(_renamed(X), eager_only=True).columns)
    if callable(getattr(type(X), "blocks", None)):
        names = X.feature_names
        return None if names is None else tuple(map(str, names))
    return None


def names_of(covariance: Any) -> tuple[str, ...] | None:
    """Return the feature names that a frame brings which holds a covariance."""
    named = _maker(covariance) in ("pandas", "polars")
    return _apart(list(map(str, covariance.columns))) if named else None


def check_names(names: tuple[str, ...] | None, columns: tuple[str, ...] | None) -> None:
    """Refuse columns of other names or in another order, where a result and its data have names."""
    if names is None or columns is None or columns == names:
        return
    p, found = len(names), len(columns)
    require(found == p, f"the result speaks of {p} features, the data has {found}")
    j = next(j for j in range(p) if columns[j] != names[j])
    first = f"feature {j} is {names[j]!r} in the result, {columns[j]!r} in the data"
    if sorted(columns) == sorted(names):
        raise Refused(
            f"the data have the same feature names in another order: {first}; pass the columns in "
            "the order of the fit"
        )
    raise Refused(
        f"the feature names differ from the data's: {first}; pass a table without names, or with "
        "those of the fit"
    )


def _labels(columns: list[Any]) -> tuple[str, ...] | None:
    """Return labels as names that differ; None where they only number the columns."""
    if columns == list(range(len(columns))):
        return None
    return _apart([" ".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in columns])


def _apart(names: list[str]) -> tuple[str, ...]:
    """Return names that differ: the second column called `a` is `a (2)`."""
    joined = [name if name.strip() else f"column {j + 1}" for j, name in enumerate(names)]
    taken, seen = set(joined), dict.fromkeys(joined, 0)
    for j, name in enumerate(joined):
        seen[name] += 1
        number = seen[name]
        while number > 1 and joined[j] in taken:
            joined[j] = f"{name} ({number})"
            number += 1
        taken.add(joined[j])
    return tuple(joined)
