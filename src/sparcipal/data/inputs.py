"""Every kind of data becomes an `Input` here, once; the later stages see only that.

An Input holds a table in memory, rows to be read in passes, or a covariance, and is checked when it
is made.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics.threads import DASK_BACKEND, active_backend
from ..problem import parameters
from ..problem.constraints import Columns
from ..problem.covariance import Covariance, covariance_of
from ..problem.monitor import Monitor, Progress, reporter
from ..problem.parameters import Complaints
from .checks import Broken, Damaged
from .given import of_data
from .missing import Gaps, for_new_samples, without_gaps
from .notes import on_codes, tell
from .passes import MEMORY_LIMIT, memory_bytes, watch_moments
from .rows import MatrixRows, Rows, fits_memory, memory_map, quicker_in_passes, working_bytes
from .screening import Screened
from .slices import sliced
from .sources import as_rows, followable, in_blocks, is_lazy, listed_blocks
from .sums import Sums
from .table import (
    Table,
    checked_names,
    stacked,
    told_apart,
    untangled,
)


@dataclass(frozen=True)
class Input:
    """Checked data: a table in memory, rows to be read in passes, or a covariance."""

    source: Table | Rows | Covariance | Screened | Sums
    feature_names: tuple[str, ...] | None
    sample_weight: np.ndarray | None = None
    notes: tuple[str, ...] = ()  # what was set aside or converted, in sentences
    gaps: Gaps | None = None  # what was done about entries that were missing
    texts: dict[str, Any] | None = None  # how words were counted
    unfilled: Table | None = None  # the table in memory before its gaps were filled

    @property
    def n_features(self) -> int:
        source = self.source
        return source.shape[1] if isinstance(source, Table) else source.n_features

    @property
    def n_samples(self) -> int | None:
        """The number of rows; None of a covariance, and of blocks that no pass has counted."""
        source = self.source
        if isinstance(source, Table):
            return source.shape[0]
        return source.n_samples if isinstance(source, Rows) else None


@dataclass(frozen=True)
class Door:
    """How data are let in, and what is asked of their features.

    `question` is called with the features, and with the number of rows where that is known, before
    rows in blocks are read beyond the first block. Its complaints are told with those that `check`
    has from before and with what is wrong with the data, in one error.
    """

    memory_limit: int
    monitor: Monitor
    missing: str = "error"
    check: Complaints = field(default_factory=Complaints)
    question: Callable[[Columns, int | None], object] | None = None
    gaps: bool = False  # entries may be missing, and stay so: the sums that are asked for take them

    def show(self, n_features: int, names: tuple[str, ...] | None, n_samples: int | None) -> None:
        if self.question is not None:
            self.check(self.question, Columns(n_features, names), n_samples)

    def weights(self, sample_weight: Any, n_samples: int) -> np.ndarray | None:
        if sample_weight is None:
            return None
        found: np.ndarray | None = self.check(parameters.weights, sample_weight, n_samples)
        return found


def resolved(
    X: Any,
    covariance: Any = None,
    *,
    feature_names: Iterable[str] | None = None,
    sample_weight: Any = None,
    door: Door,
) -> Input:
    """Check X or a covariance, as the public functions take them, and return an Input.

    Data in blocks are read once to see whether they fit the memory limit; if they do not, the same
    pass has counted their moments.
    """
    with door.check as check:
        found: Input = check(_let_in, X, covariance, feature_names, sample_weight, door)
    return found


def _let_in(
    X: Any, covariance: Any, feature_names: Iterable[str] | None, sample_weight: Any, door: Door
) -> Input:
    if isinstance(X, Input):
        door.show(X.n_features, X.feature_names, X.n_samples)
        return X
    if (X is None) == (covariance is None):
        raise ValueError("pass exactly one of X (data) and covariance (a matrix)")
    if type(active_backend()).__name__ == DASK_BACKEND:
        from .dask import use_workers

        use_workers()
    if covariance is not None:
        if sample_weight is not None:
            door.check.add(ValueError("sample_weight needs the data; pass X instead of covariance"))
        return _covariance(covariance, feature_names, door)
    X = listed_blocks(X, door.memory_limit)  # what comes once only is kept here
    if door.missing != "error":
        found = _gaps_treated(X, feature_names, sample_weight, door)
        if found is not None:
            return found
    source, weights = _table_or_rows(X, feature_names, sample_weight, door)
    door.check.tell()
    notes = _noted(source) if isinstance(source, Table) else source.notes
    if isinstance(source, Table) and _like_covariance(source.X):
        notes = (*notes, "X is a symmetric matrix; if it is a covariance, pass covariance=X")
    _tell_beyond(X, notes)
    if isinstance(source, Rows):  # which already hold their weights
        return Input(source, source.feature_names, notes=notes, texts=source.texts)
    gaps = for_new_samples(source, door.missing, weights)
    return Input(source, source.feature_names, weights, notes, gaps, texts=source.texts)


def _noted(table: Table) -> tuple[str, ...]:
    """Return the notes of a table, those on codes of missing entries among them."""
    codes = on_codes(table.X, table.feature_names)
    return (*table.notes, *(note for note in codes if note not in table.notes))


def _tell_beyond(X: Any, notes: tuple[str, ...]) -> None:
    """Warn of what a Table that was given does not note itself."""
    own = X.notes if isinstance(X, Table) else ()
    tell(tuple(note for note in notes if note not in own))


def _like_covariance(X: Any) -> bool:
    """Return whether X is symmetric with a positive diagonal, as tables of samples hardly ever
    are."""
    n, p = X.shape
    if n != p or p < 3 or sp.issparse(X):
        return False
    return bool((np.diagonal(X) > 0).all() and np.array_equal(X, X.T))


def _shown(table: Table, feature_names: Iterable[str] | None, door: Door) -> Table:
    """Return the table with these names, of whose features the question has been asked."""
    table = table if feature_names is None else table._named(feature_names)
    door.show(table.shape[1], table.feature_names, table.shape[0])
    return table


def _gaps_treated(X: Any, feature_names: Any, sample_weight: Any, door: Door) -> Input | None:
    """Return the table once what is missing in it was treated; None when nothing is."""
    X, missing, memory_limit = listed_blocks(X), door.missing, door.memory_limit
    if is_lazy(X):
        raise ValueError(
            f"missing={missing!r} needs a table in memory, but X is lazy; pass X.compute() if that "
            "fits, or fill the entries before: X.fillna(X.mean()) of a frame"
        )
    table = _held(X, feature_names, door) if in_blocks(X) else untangled(X)
    table = _shown(table, feature_names, door)
    weights = door.weights(sample_weight, table.shape[0])
    table = table._check_but_for_gaps()
    if table._checked:
        return None
    large = working_bytes(table.X) > memory_limit
    if large and memory_map(table.X) is not None:
        raise ValueError(
            f"missing={missing!r} needs a table in memory, but X is a map of a file and would take "
            f"{working_bytes(table.X)} bytes, more than memory_limit={memory_limit}; pass "
            f"memory_limit={working_bytes(table.X)}, or fill the entries of the file"
        )
    door.check.tell()
    table = replace(table, notes=_noted(table))
    _tell_beyond(X, table.notes)
    unfilled = table
    table, weights, gaps = without_gaps(table, missing, weights)
    if large and missing != "pairwise":
        rows = MatrixRows(table)
        rows = rows if weights is None else rows.weighted(weights)
        return Input(rows, table.feature_names, notes=table.notes, gaps=gaps)
    filled = gaps is not None and gaps.fill is not None
    unfilled_if = unfilled if filled else None
    return Input(table, table.feature_names, weights, table.notes, gaps, unfilled=unfilled_if)


def _held(X: Any, feature_names: Any, door: Door) -> Table:
    """Return all blocks in memory, with what is missing in them."""
    rows = as_rows(X, feature_names, gaps=True)
    door.show(rows.n_features, rows.feature_names, rows.n_samples)
    door.check.tell()
    held: list[Any] = []
    size = 0
    for block in rows.blocks():
        size += working_bytes(block)
        if size > door.memory_limit:
            held.clear()  # the others are counted, to say how large it has to be
        else:
            held.append(rows.lasting(block))
    if size > door.memory_limit:
        raise ValueError(
            f"missing={door.missing!r} needs a table in memory, but the blocks would take {size} "
            f"bytes, more than memory_limit={door.memory_limit}; pass memory_limit={size}, or "
            "leave out or fill the entries in each block"
        )
    return Table(stacked(held, None).X, rows.feature_names, notes=rows.notes)


def _table_or_rows(
    X: Any, feature_names: Any, sample_weight: Any, door: Door
) -> tuple[Table | Rows, np.ndarray | None]:
    """Return a Table and its weights if X fits the memory limit, otherwise its rows in blocks,
    which hold theirs."""
    X = listed_blocks(X)
    advise = functools.partial(followable, X, door.memory_limit)
    try:
        return _checked(X, feature_names, sample_weight, door, advise)
    except ValueError as error:
        found = advise(error)
        if found is error:
            raise
        raise found from error


def _checked(
    X: Any,
    feature_names: Any,
    sample_weight: Any,
    door: Door,
    advise: Callable[[ValueError], ValueError],
) -> tuple[Table | Rows, np.ndarray | None]:
    """Do this for X in blocks, lazy or in memory."""
    beyond = None if is_lazy(X) else sliced(X, door.memory_limit, gaps=door.gaps)
    if beyond is None and not (in_blocks(X) or is_lazy(X) or isinstance(X, Iterator)):
        table = _shown(untangled(X), feature_names, door)
        weights = door.weights(sample_weight, table.shape[0])
        table = table._check_but_for_gaps() if door.gaps else table._check()
        if fits_memory(table.X, door.memory_limit) and not quicker_in_passes(table.X):
            return table, weights
        return _weighted(MatrixRows(table).within(door.memory_limit), weights), None
    rows = as_rows(X if beyond is None else beyond, feature_names, gaps=door.gaps)
    rows = rows.within(door.memory_limit)
    rows.advise = advise
    door.show(rows.n_features, rows.feature_names, rows.n_samples)
    n = np.size(sample_weight) if rows.n_samples is None else rows.n_samples
    rows = _weighted(rows, door.weights(sample_weight, n))
    door.check.tell()
    if door.gaps:  # a table of them, or moments, would have to be checked
        return rows, None
    held = rows.gathered(door.memory_limit, watch_moments(rows, door.monitor))
    if held is None:
        return rows, None
    table = replace(held, notes=rows.notes)._of_checked(held.X)
    if not quicker_in_passes(table.X):
        return table, door.weights(sample_weight, table.shape[0])
    return _weighted(MatrixRows(table), rows.sample_weight), None


def _weighted(rows: Rows, weights: np.ndarray | None) -> Rows:
    return rows if weights is None else rows.weighted(weights)


def _covariance(covariance: Any, feature_names: Iterable[str] | None, door: Door) -> Input:
    names = None if feature_names is None else checked_names(feature_names)
    source: Covariance | Screened | Sums | None = None
    if isinstance(covariance, Sums):
        names = covariance.feature_names if names is None else names
        source = covariance
    elif isinstance(covariance, Screened):
        source = covariance
    else:
        columns = getattr(covariance, "columns", None)
        if columns is not None:
            own = tuple(str(name) for name in columns)
            rows = getattr(covariance, "index", own)  # frames of some kinds have no names of rows
            if own != tuple(str(name) for name in rows):
                raise ValueError(
                    "covariance has other names in its rows than in its columns; reorder one"
                )
            names = told_apart(own) if names is None else names
        source = door.check(covariance_of, covariance)
    if source is None:  # features can be named even where numbers are wrong
        shape: tuple[int, ...] = getattr(covariance, "shape", ())
        if len(shape) == 2:
            door.show(shape[1], names, None)
        door.check.tell()
    assert source is not None
    if names is not None and len(names) != source.n_features:
        raise ValueError(
            f"feature_names has {len(names)} names for n_features={source.n_features} features"
        )
    door.show(source.n_features, names, None)
    return Input(source, names)


def read(
    source: Any,
    *,
    format: str | None = None,
    feature_names: Iterable[str] | str | os.PathLike[str] | None = None,
    cache: bool | str | os.PathLike[str] | None = None,
    callback: Callable[[Progress], object] | None = None,
    verbose: int = 0,
    memory_limit: float | str = MEMORY_LIMIT,
    **options: Any,
) -> Table:
    """Read a file, a folder of text, or anything `as_table` takes, into a Table.

    Parameters
    ----------
    source : str, path or data
        A file (compressed by gzip or not), a pattern as `part-*.csv` that names several with the
        same columns, a folder (text files, Parquet, zarr), "-" for standard input, or data.
    format : str, optional
        Instead of what the file name says; the guide has a table of all formats. Among them are
        "bagofwords" (UCI: document, word, count per line), "matrixmarket", "svmlight", "npz", "npy"
        (stays on disk as a memory map), "csv", "tsv", "parquet", "h5ad", "folder" (of text),
        "jsonl" and "lines" (one document per line), "zarr".
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
    memory_limit : int or str
        Bytes, or a size as "500MB": numbers that would take more than half of it are read in
        blocks, where the format has them, and stay in a file that is mapped into memory.
    **options
        Of that format. Documents ("folder", "jsonl", "lines", and a column of "csv" with
        `text_field`) have `stop_words` ("english" unless given; None or a list), `min_df`,
        `max_df`, `min_count`, `min_length`, `token_pattern`, `ngram_range`, `containing` (a word),
        `weighting` ("counts", "presence", "log", "tfidf") and `normalize`; `like` a Table or Result
        counts new texts as those of a fit; "jsonl" has
        `text_field`, texts in fields have `label_field` and `index` (which names them); "folder"
        has `pattern`; "npz" and "zarr" `key`; "h5ad" `layer`,
        `label` (a column of obs) and `mask_var` (a column of var that marks the genes to
        use; "highly_variable" where it is there, None for all);
        "matrixmarket" `transpose`; "svmlight" `n_features`. Tables ("csv", "tsv", "parquet",
        frames) have `columns` and `drop` (names, patterns as "gene*", ranges as
        "q1:q25", or a mask over all columns), `index` (the column that names the rows), `label` (a
        column kept beside the features), `one_hot` (columns of categories to encode); "csv" and
        "tsv" `header`, `decimal`, `thousands`, `na_values` and `transpose` (lines are features and
        columns samples, as in tables of genes), "csv" `delimiter`.

    Returns
    -------
    Table
        Columns of a table that cannot be features (text, dates, identifiers, empty ones) are set
        aside; a warning and `Table.notes` name them. Entries that are missing are NaN.

    Examples
    --------
    >>> import sparcipal
    >>> sparcipal.read([[1, 2], [3, 4]], feature_names=["a", "b"])
    <Table: 2 samples x 2 named features, ndarray of int64>
    """
    how = Reading(format, feature_names, cache, callback, verbose, memory_limit)
    table = read_table(source, how, **options)
    tell(table.notes)
    return table


@dataclass(frozen=True)
class Reading:
    """The keywords of `read` that all formats share."""

    format: str | None = None
    feature_names: Iterable[str] | str | os.PathLike[str] | None = None
    cache: bool | str | os.PathLike[str] | None = None
    callback: Callable[[Progress], object] | None = None
    verbose: int = 0
    memory_limit: float | str = MEMORY_LIMIT


def read_table(source: Any, how: Reading = Reading(), *, like: Any = None, **options: Any) -> Table:
    """Do what `read` does without its warning: the notes of the table say the same."""
    try:
        return _read_once(source, how, like, options)
    except Damaged:  # what the cache held, which is gone now
        return _read_once(source, how, like, options)


def _read_once(source: Any, how: Reading, like: Any, options: dict[str, Any]) -> Table:
    names = None if how.feature_names is None else _names(how.feature_names)
    field: dict[str, Any] = {}  # where the texts of `like` were, for files that have fields
    if like is not None:
        names, counted, field = _counted_like(like)
        options = {**counted, **options}
    if not isinstance(source, str | os.PathLike):
        limit = memory_bytes(how.memory_limit)
        table = of_data(source, how.format, names, options, limit)
        if table._checked:
            return table
        return replace(table, notes=_noted(table))._check_but_for_gaps()
    if source == "":  # Path("") would be the current folder
        raise ValueError("source='' is empty; name a file or folder")
    from .files.bytes import Source
    from .files.cache import cache_for
    from .files.formats import open_source, reader_for

    told = None
    if how.callback is not None or how.verbose:
        told = Monitor(reporter(how.callback, how.verbose))
    limit = memory_bytes(how.memory_limit)
    if field and "text_field" in reader_for(source, how.format, {**field, **options}).options:
        options = {**field, **options}
    job = Source(source, told, cache_for(how.cache, source), limit)
    try:
        found = open_source(job, how.format, names, options)
    except KeyboardInterrupt as error:
        if error.args:
            raise
        raise KeyboardInterrupt(f"stopped while {source} was read") from error
    table = untangled(found.matrix)
    names = names or table.feature_names
    if names is None and found.features is not None:
        names = checked_names(found.features)
    samples = table.sample_names if found.samples is None else tuple(found.samples)
    made = Table(
        table.X,
        names,
        samples,
        found.moments,
        found.cache_entry,
        found.labels,
        found.label_name,
        found.notes,
        found.texts,
    )
    try:
        return replace(made, notes=_noted(made))._check_but_for_gaps()
    except Broken as error:
        entry = found.cache_entry
        raise error if entry is None else entry.damaged(error) from error


def _counted_like(like: Any) -> tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]:
    """Return the words of a Table or Result, how they were counted and weighted, and the field of
    a file that the texts were in."""
    told = like.texts if isinstance(like, Table) else like.info.get("texts")
    if like.feature_names is None or not isinstance(told, dict):
        raise ValueError(
            "like has no words: it did not come from texts; pass a Table or Result of texts, as "
            "`read` makes them"
        )
    idf = {} if told.get("idf") is None else {"idf": told["idf"]}
    # The words are given: what chose them is not asked again.
    choosing = {"min_df", "max_df", "min_count", "containing"}
    asked = {name: value for name, value in told["options"].items() if name not in choosing}
    field = {"text_field": told["text_field"]} if "text_field" in told else {}
    return tuple(like.feature_names), {**asked, **idf}, field


def _names(names: Iterable[str] | str | os.PathLike[str]) -> tuple[str, ...]:
    if isinstance(names, str | os.PathLike):
        from .files.bytes import read_names

        return read_names(names)
    return checked_names(names)
