"""Tables that other libraries hold or scan, some rows at a time: pyarrow, polars, DuckDB, zarr.

Each becomes a function that returns blocks of rows, the same ones each time, so that it is read as
any other source of blocks: names and columns without numbers are treated as those of frames.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .files.schemas import with_types
from .notes import listed

BYTES = 1 << 21  # of numbers in a block, about
BUFFER = 1 << 14  # bytes of a column of Parquet that are read together, instead of a whole one


@dataclass(frozen=True)
class Batches:
    """A function that returns blocks of rows, and how many rows where the source says so."""

    blocks: Callable[[], Iterator[Any]]
    n_samples: int | None = None
    library: str = ""  # that reads them
    untyped: tuple[str, ...] = ()  # columns without an entry in the first file, so without a type

    def __call__(self) -> Iterator[Any]:
        with failures_named(self.library, self.untyped):
            yield from self.blocks()


def in_batches(X: Any) -> Batches | None:
    """Return a function of blocks for what is scanned or stored in chunks; None for other data."""
    library = type(X).__module__.partition(".")[0].lstrip("_")
    maker = _MAKERS.get(library)
    if maker is None:
        return None
    with failures_named(library):
        found = maker(X)
    return None if found is None else replace(found, library=library)


@contextlib.contextmanager
def failures_named(library: str, untyped: tuple[str, ...] = ()) -> Iterator[None]:
    """Turn an exception of a library's own into a ValueError that names it, and columns without a
    type where it is about these."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0].lstrip("_") != library:
            raise
        words = f"{type(error).__name__}: {error}"
        if untyped and "null" in str(error).lower():
            which = listed([*map(repr, untyped)])
            raise ValueError(
                f"X: {library} cannot read it: the types of the first file are taken for all, and "
                f"it has no entry in {which}; {_REMEDIES[library].format(untyped[0])} ({words})"
            ) from error
        raise ValueError(f"X: {library} cannot read it ({words})") from error


def plain_batch(X: Any) -> Any:
    """Return a RecordBatch as a Table of Arrow, anything else as it is."""
    if type(X).__module__.partition(".")[0] == "pyarrow" and type(X).__name__ == "RecordBatch":
        import pyarrow as pa

        return pa.Table.from_batches([X])
    return X


def is_read_once(X: Any) -> bool:
    """Return whether X is a RecordBatchReader, whose batches come once only."""
    known = type(X).__module__.partition(".")[0] == "pyarrow"
    return known and type(X).__name__ == "RecordBatchReader"


def _of_pyarrow(X: Any) -> Batches | None:
    if not hasattr(X, "to_batches") or not hasattr(X, "scanner"):
        return None  # a table in memory
    data = with_types(X)
    step = rows_together(len(data.schema.names))
    untyped = tuple(field.name for field in data.schema if str(field.type) == "null")
    return Batches(
        lambda: map(plain_batch, filter(len, batches_of(data, step))),
        _counted(data),
        untyped=untyped,
    )


def _counted(data: Any) -> int | None:
    """Return the number of rows of a dataset, if files of Parquet say it."""
    import pyarrow.dataset as dataset

    if not isinstance(getattr(data, "format", None), dataset.ParquetFileFormat):
        return None
    try:
        return sum(part.count_rows() for part in data.get_fragments())
    except ValueError:  # rows of it were chosen
        return None


def batches_of(data: Any, step: int, columns: list[str] | None = None) -> Iterator[Any]:
    """Yield the rows of a dataset of pyarrow, or some columns of them, at most `step` at a time, in
    little memory.

    A scan holds some row groups of Parquet at once even if it reads nothing ahead. A file that has
    the columns of the dataset is read by itself instead, which holds one.
    """
    try:
        parts = list(data.get_fragments())
    except ValueError:  # rows or columns of it were chosen
        yield from data.to_batches(columns=columns, batch_size=step, **_sparing(data))
        return
    for part in parts:
        if hasattr(part, "row_groups") and part.physical_schema.equals(data.schema):
            groups = [group.id for group in part.row_groups]
            with part.open() as stream:
                yield from file_batches(stream, step, groups, columns)
        else:
            how = {"schema": data.schema, "columns": columns, "batch_size": step}
            yield from part.to_batches(**how, **_sparing(part))


def file_batches(
    source: Any, step: int, groups: list[int] | None = None, columns: list[str] | None = None
) -> Iterator[Any]:
    """Yield the rows of a Parquet file, or of some of its row groups, or some columns of them."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(source, buffer_size=BUFFER, pre_buffer=False) as file:
        for batch in file.iter_batches(step, row_groups=groups, columns=columns, use_threads=False):
            yield batch
            pa.default_memory_pool().release_unused()  # it would keep what was freed


def _sparing(data: Any) -> dict[str, Any]:
    """Return the keywords with which pyarrow reads little ahead, where it has to scan.

    By default it reads 16 batches of 4 files ahead, and the columns of a Parquet file whole.
    """
    import pyarrow.dataset as dataset

    kept: dict[str, Any] = {"batch_readahead": 0, "fragment_readahead": 0, "use_threads": False}
    if isinstance(getattr(data, "format", None), dataset.ParquetFileFormat):
        lean = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        kept["fragment_scan_options"] = lean
    return kept


def _of_polars(X: Any) -> Batches | None:
    if type(X).__name__ != "LazyFrame":
        return None
    if not hasattr(X, "collect_batches"):
        return Batches(lambda: iter([X.collect()]))
    step = rows_together(_columns_of_scan(X))
    untyped = tuple(name for name, kind in X.collect_schema().items() if str(kind) == "Null")
    if X.explain(optimized=False).startswith("Parquet SCAN"):
        import polars as pl

        count = X.select(pl.len()).collect().item()
        return Batches(lambda: _slices(X, step), count, untyped=untyped)
    return Batches(
        lambda: filter(
            len, X.collect_batches(chunk_size=step, maintain_order=True, engine="streaming")
        ),
        untyped=untyped,
    )


def _columns_of_scan(X: Any) -> int:
    import polars as pl

    try:
        return len(X.collect_schema().names())
    except pl.exceptions.DuplicateError as error:
        raise ValueError(
            f"X has several columns of the same name, which polars does not scan ({error}); write "
            "the files with names that differ"
        ) from error


def _slices(X: Any, step: int) -> Iterator[Any]:
    """Yield some rows of a scan of Parquet after the other: polars goes to their row groups.

    Its streaming engine reads files ahead, as many row groups at once as it finds good.
    """
    start, part = 0, X.head(step).collect()
    while len(part):
        yield part
        start += len(part)
        part = X.slice(start, step).collect()


def _of_duckdb(X: Any) -> Batches | None:
    if not hasattr(X, "columns") or not hasattr(X, "project"):
        return None
    step = rows_together(len(X.columns))

    def blocks() -> Iterator[Any]:
        again = X.project("*")  # a relation that was fetched gives no more rows
        reader = getattr(again, "to_arrow_reader", None) or again.fetch_record_batch
        yield from map(plain_batch, filter(len, reader(step)))

    return Batches(blocks)


def _of_zarr(X: Any) -> Batches | None:
    if hasattr(X, "arrays"):
        raise ValueError(
            f"X is a group of zarr; pass one of its arrays: {sizes_of(dict(X.arrays()))}"
        )
    if len(getattr(X, "shape", ())) != 2:
        return None
    n, chunk = X.shape[0], max(1, X.chunks[0])
    step = max(1, rows_together(X.shape[1]) // chunk) * chunk
    return Batches(lambda: (X[start : start + step] for start in range(0, n, step)), n)


def sizes_of(arrays: Mapping[str, Any]) -> str:
    """List the arrays of a group for a message."""
    return ", ".join(f"{name!r} {array.shape}" for name, array in arrays.items()) or "none"


def rows_together(columns: int) -> int:
    """Return how many rows a block has."""
    return max(1, BYTES // (8 * max(columns, 1)))


_REMEDIES = {  # for columns without a type
    "polars": "leave them out, X.drop({!r}), or scan file by file: "
    'pl.concat([pl.scan_parquet(file) for file in files], how="vertical_relaxed")',
    "pyarrow": "pass the dataset as it was before rows or columns of it were chosen, or make it "
    "with a schema that has their types: dataset(files, schema=...)",
}
_MAKERS = {"pyarrow": _of_pyarrow, "polars": _of_polars, "duckdb": _of_duckdb, "zarr": _of_zarr}
