"""From what people have to a Table: arrays, sparse matrices, memory maps, frames, AnnData, files.

Every entry point of the package takes what `as_table` takes. Nothing is clipped, dropped, imputed
or densified on the way: what cannot be used as it is gets an error that says where and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.monitor import Monitor, Progress
from . import frames
from .checks import check_array, check_shape, check_sparse, object_to_float
from .moments import Moments


@dataclass(frozen=True, eq=False)
class Table:
    """Samples by features, with names.

    Attributes
    ----------
    X : ndarray, memmap, csr_array or csc_array, shape (n_samples, n_features)
        Real and finite, in the dtype it came in.
    feature_names : tuple of str or None
    sample_names : tuple of str or None
    moments : Moments or None
        What the reader counted already, so that nobody has to read the rows for it again.
    kept : Entry or None
        Where the cache has X; further results that cost a pass over the rows can be kept with it.
    """

    X: Any
    feature_names: tuple[str, ...] | None = None
    sample_names: tuple[str, ...] | None = None
    moments: Moments | None = None
    kept: Any = None

    def __post_init__(self) -> None:
        for names, axis, what in (
            (self.feature_names, 1, "feature"),
            (self.sample_names, 0, "sample"),
        ):
            if names is not None and len(names) != self.X.shape[axis]:
                raise ValueError(
                    f"{what}_names has {len(names)} names, but X has {self.X.shape[axis]} {what}s; "
                    f"pass one name per {what}"
                )

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self.X.shape
        return int(n), int(p)

    def __repr__(self) -> str:
        n, p = self.shape
        kind = type(self.X).__name__
        stored = f", {self.X.nnz} stored" if hasattr(self.X, "nnz") else ""
        named = "named" if self.feature_names is not None else "unnamed"
        return f"<Table: {n} samples x {p} {named} features, {kind} of {self.X.dtype}{stored}>"


def as_table(X: Any, feature_names: Iterable[str] | None = None) -> Table:
    """A checked Table of anything that holds samples in rows and features in columns.

    Parameters
    ----------
    X : array-like, sparse matrix, memmap, data frame, AnnData or Table
        pandas, polars and pyarrow frames keep their column names.
    feature_names : iterable of str, optional
        One per column, instead of the names X brings.

    Raises
    ------
    ValueError
        When X is not two-dimensional, empty, not numeric, complex, or holds NaN or infinity.
    """
    table = _untangle(X)
    if feature_names is not None:
        table = replace(table, feature_names=checked_names(feature_names))
    check = check_sparse if sp.issparse(table.X) else check_array
    return replace(table, X=check(table.X, table.feature_names))


def checked_names(names: Iterable[str]) -> tuple[str, ...]:
    """Feature names as a tuple of str; ValueError when they are something else."""
    if isinstance(names, str | bytes):
        raise ValueError(f"feature_names={names!r} is one string; pass one name per feature")
    if not isinstance(names, Iterable):
        raise TypeError(f"feature_names must be a sequence of names, got {names!r}")
    found = tuple(names)
    for i, name in enumerate(found):
        if not isinstance(name, str):
            raise ValueError(
                f"feature_names[{i}]={name!r} is not a string; pass [str(name) for name in names]"
            )
    return tuple(str(name) for name in found)


def read(
    source: Any,
    *,
    format: str | None = None,
    feature_names: Iterable[str] | str | os.PathLike[str] | None = None,
    cache: bool | str | os.PathLike[str] | None = None,
    callback: Callable[[Progress], object] | None = None,
    verbose: int = 0,
    **options: Any,
) -> Table:
    """Read a file, a folder of text, or anything `as_table` takes, into a Table.

    Parameters
    ----------
    source : str, path or data
        A file (compressed by gzip or not), a folder of text files, "-" for standard input, or data.
    format : str, optional
        Instead of what the file name says; the guide has a table of all formats. Among them are
        "bagofwords" (UCI: document, word, count per line), "matrixmarket", "svmlight", "npz", "npy"
        (stays on disk as a memory map), "csv", "tsv", "parquet", "h5ad", "folder" (of text),
        "jsonl" and "lines" (one document per line).
    feature_names : iterable of str, or path of a file with one name per line, optional
        Instead of the names the source brings; `vocab.*.txt` beside `docword.*.txt` is found.
    cache : bool, "beside" or path, optional
        Where text that was parsed is kept as arrays, which the next `read` of the same content maps
        into memory. By default text whose arrays take more than 64 MB is kept in the folder named
        by the environment variable SPARCIPAL_CACHE, or the one of the system for caches;
        SPARCIPAL_CACHE=off switches that off. True: whatever the size; "beside": beside the source;
        a path: in that folder; False: not at all. A file that changes is parsed again.
    callback : callable, optional
        Called with a `Progress` about ten times a second: `done` of `total` bytes, and the time
        left in words. Returning True raises KeyboardInterrupt.
    verbose : int
        1 writes a line to stderr for every tenth of the source.
    **options
        Of that format. Documents ("folder", "jsonl", "lines") are counted by scikit-learn's
        vectorizer: `stop_words`, `min_df`, `max_df`, `ngram_range`, `encoding`; "jsonl" has
        `text_field`, "folder" `pattern`; "csv" and "tsv" `header` and `labels`; "npz" `key`; "h5ad"
        `layer`; "matrixmarket" `transpose`; "svmlight" `n_features`.

    Returns
    -------
    Table

    Examples
    --------
    >>> import io, sparcipal
    >>> sparcipal.read([[1, 2], [3, 4]], feature_names=["a", "b"])
    <Table: 2 samples x 2 named features, ndarray of int64>
    """
    if not isinstance(source, str | os.PathLike):
        if format is not None or options:
            given = ", ".join([*(["format"] if format else []), *options])
            raise ValueError(f"{given}: only for a file or folder, but source is {type(source)}")
        return as_table(source, None if feature_names is None else _names(feature_names))
    if source == "":  # which the system takes for the current folder
        raise ValueError("source='' is empty; name a file or folder")
    from .files.bytes import Source
    from .files.cache import cache_for
    from .files.formats import open_source

    names = None if feature_names is None else _names(feature_names)
    job = Source(source, _monitor(callback, verbose), cache_for(cache, source))
    found = open_source(job, format, names, options)
    table = replace(as_table(found.matrix, names), moments=found.moments, kept=found.cache_entry)
    if table.feature_names is None and found.features is not None:
        table = replace(table, feature_names=checked_names(found.features))
    if found.samples is not None:
        table = replace(table, sample_names=tuple(found.samples))
    return table


def _monitor(callback: Callable[[Progress], object] | None, verbose: int) -> Monitor | None:
    if callback is None and not verbose:
        return None
    from ..fit import reporter

    return Monitor(reporter(callback, verbose))


def _names(names: Iterable[str] | str | os.PathLike[str]) -> tuple[str, ...]:
    if isinstance(names, str | os.PathLike):
        from .files.bytes import read_names

        return read_names(names)
    return checked_names(names)


def _untangle(X: Any) -> Table:
    """Matrix and names out of whatever holds them; only kinds are looked at here, never entries."""
    if isinstance(X, Table):
        return X
    if isinstance(X, str | bytes | os.PathLike):
        raise ValueError(f"X={X!r} is a path, not data; pass sparcipal.read({X!r})")
    if sp.issparse(X):
        return Table(_flat_refused(X))
    if is_lazy(X):
        from .dask import rows_of

        return rows_of(X).gather()
    if frames.is_anndata(X):
        return Table(*frames.from_anndata(X))
    if frames.is_frame(X):
        return Table(*frames.from_frame(X))
    if isinstance(X, np.ma.MaskedArray):
        if np.ma.is_masked(X):
            raise ValueError(
                f"X is a masked array with {int(np.ma.getmaskarray(X).sum())} masked entries; "
                "remove these rows or columns, or fill the entries first"
            )
        X = X.data
    array = X if type(X) is np.memmap else _array(X)
    if array.dtype.kind == "O":
        array = object_to_float(array)
    return Table(_flat_refused(array))


def is_lazy(X: Any) -> bool:
    """Whether dask makes X: an array, a frame, or a list of delayed blocks or of futures."""
    if isinstance(X, list | tuple) and X:
        return all(map(_of_dask, X))
    return _of_dask(X)


def _of_dask(X: Any) -> bool:
    return hasattr(X, "__dask_graph__") or type(X).__module__.startswith("distributed.")


def _flat_refused(X: Any) -> Any:
    """X when it has two dimensions: only then can a Table count its names."""
    check_shape(X)
    return X


def _array(X: Any) -> np.ndarray:
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X is not a table of numbers: {error}") from error
