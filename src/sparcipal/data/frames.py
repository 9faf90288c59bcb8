"""Data frames (pandas, polars, pyarrow) and AnnData as a matrix with names.

pandas frames are read by their own interface, all others through narwhals, which scikit-learn 1.9
installs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from .checks import check_integers, object_to_float

Named = tuple[Any, tuple[str, ...] | None, tuple[str, ...] | None]  # matrix, features, samples


def is_anndata(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "anndata" and hasattr(X, "var_names")


def is_frame(X: Any) -> bool:
    """Whether X is a two-dimensional frame of columns, of any library."""
    maker = type(X).__module__.partition(".")[0]
    if maker in {"pandas", "polars", "pyarrow"}:
        return len(getattr(X, "shape", ())) == 2 or hasattr(X, "collect")
    return hasattr(X, "__narwhals_dataframe__") or hasattr(X, "__dataframe__")


def from_anndata(adata: Any, layer: str | None = None) -> Named:
    """The matrix of an AnnData object (or one of its layers), cells in rows, genes in columns."""
    if layer is not None and layer not in adata.layers:
        known = ", ".join(map(repr, adata.layers)) or "none"
        raise ValueError(f"layer={layer!r} is not in this AnnData object; its layers: {known}")
    matrix = adata.X if layer is None else adata.layers[layer]
    if matrix is None:
        raise ValueError("the AnnData object has no X; name a layer, or set adata.X")
    if hasattr(matrix, "to_memory"):
        matrix = matrix.to_memory()
    elif type(matrix).__module__.partition(".")[0] == "h5py":
        matrix = matrix[...]
    return matrix, tuple(map(str, adata.var_names)), tuple(map(str, adata.obs_names))


def check_unique(frame: Any) -> None:
    """Refuse columns that share a name, with one message for all kinds of frames."""
    arrow = type(frame).__module__.partition(".")[0] == "pyarrow"
    labels = frame.schema.names if arrow else frame.columns
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        shown = ", ".join(map(repr, twice[:3]))
        more = f" and {len(twice) - 3} more" if len(twice) > 3 else ""
        raise ValueError(
            f"X has several columns of the same name: {shown}{more}; rename or drop them, so that "
            "each name is there once"
        )


def from_frame(frame: Any) -> Named:
    """The matrix of a frame and its names; a ValueError names columns that hold no numbers."""
    if type(frame).__module__.partition(".")[0] == "pandas":
        return _from_pandas(frame)
    try:
        import narwhals.stable.v1 as nw
    except ImportError as error:
        raise ValueError(
            f"a {type(frame).__module__} frame needs narwhals: pip install narwhals, "
            "or pass frame.to_pandas()"
        ) from error
    # a lazy frame would have to resolve its schema to name its columns
    if not hasattr(frame, "collect") and hasattr(frame, "columns"):
        check_unique(frame)
    wrapped = nw.from_native(frame)
    if isinstance(wrapped, nw.LazyFrame):
        raise ValueError("X is a lazy frame; call X.collect() first")
    return _from_columns(
        tuple(wrapped.columns),
        [
            (dtype.is_numeric() or dtype == nw.Boolean, str(dtype))
            for dtype in wrapped.schema.values()
        ],
        lambda j: int(wrapped[:, j].null_count()),
        lambda j: wrapped[:, j].to_numpy(),
        len(wrapped),
    ), tuple(wrapped.columns), None  # fmt: skip


def _from_pandas(frame: Any) -> Named:
    names = _pandas_names(list(frame.columns))
    samples = None
    if not hasattr(frame.index, "start"):  # a RangeIndex only numbers the rows
        samples = tuple(map(str, frame.index))
    sparse = [hasattr(dtype, "fill_value") for dtype in frame.dtypes]
    if any(sparse):
        return _sparse_pandas(frame, sparse), names, samples
    matrix = _from_columns(
        names or tuple(map(str, frame.columns)),
        [(_is_number(frame, j), str(dtype)) for j, dtype in enumerate(frame.dtypes)],
        lambda j: int(frame.iloc[:, j].isna().sum()),
        lambda j: frame.iloc[:, j].to_numpy(),
        len(frame),
    )
    return matrix, names, samples


def _is_number(frame: Any, j: int) -> bool:
    """Return whether a column holds numbers or booleans, by its type or, for objects, its
    entries."""
    dtype = frame.dtypes.iloc[j]
    if dtype.kind != "O":
        return dtype.kind in "fiub"
    column = frame.iloc[:, j].to_numpy()
    return str(dtype) == "object" and not any(isinstance(entry, str | bytes) for entry in column)


def _pandas_names(columns: list[Any]) -> tuple[str, ...] | None:
    """Column labels as names: None when they are numbers, TypeError when only some are strings."""
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
    return None


def _from_columns(
    names: tuple[str, ...],
    kinds: list[tuple[bool, str]],
    missing: Any,
    values: Any,
    n_rows: int,
) -> np.ndarray:
    wrong = [f"{name!r} ({kind})" for name, (good, kind) in zip(names, kinds) if not good]
    if wrong:
        shown = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise ValueError(
            f"X has {len(wrong)} column(s) that hold no numbers: {shown}; drop or encode them first"
        )
    columns = []
    for j, name in enumerate(names):
        absent = missing(j)
        if absent:
            raise ValueError(
                f"X contains {absent} missing or NaN entries in column {j} ({name!r}); remove "
                "these rows or columns, or impute the entries first"
            )
        column = np.asarray(values(j))
        check_integers(column, column.dtype)  # beside columns of fractions they would be rounded
        # Decimals, nullable integers and objects arrive as Python numbers.
        columns.append(object_to_float(column) if column.dtype.kind == "O" else column)
    dtype = np.result_type(*columns) if columns else np.dtype(float)
    out = np.empty((n_rows, len(columns)), dtype=dtype, order="F")
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def _sparse_pandas(frame: Any, sparse: list[bool]) -> Any:
    dense = [str(c) for c, s in zip(frame.columns, sparse) if not s]
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
    return frame.sparse.to_coo().tocsr()
