"""Tables that other libraries hold or scan, some rows at a time: pyarrow, polars, DuckDB, zarr.

Each becomes a function that returns blocks of rows, the same ones each time, so that it is read as
any other source of blocks: names and columns without numbers are treated as those of frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

BYTES = 1 << 22  # of numbers in a block, about


def in_batches(X: Any) -> Callable[[], Iterator[Any]] | None:
    """Return a function of blocks for what is scanned or stored in chunks; None for other data."""
    maker = type(X).__module__.partition(".")[0].lstrip("_")
    found = _MAKERS.get(maker)
    return None if found is None else found(X)


def plain_batch(X: Any) -> Any:
    """Return a RecordBatch as a Table of Arrow, anything else as it is."""
    if type(X).__module__.partition(".")[0] == "pyarrow" and type(X).__name__ == "RecordBatch":
        import pyarrow as pa

        return pa.Table.from_batches([X])
    return X


def is_read_once(X: Any) -> bool:
    """Whether X is a RecordBatchReader, whose batches come once only."""
    known = type(X).__module__.partition(".")[0] == "pyarrow"
    return known and type(X).__name__ == "RecordBatchReader"


def _of_pyarrow(X: Any) -> Callable[[], Iterator[Any]] | None:
    if not hasattr(X, "to_batches") or not hasattr(X, "scanner"):
        return None  # a table in memory
    step = _rows(len(X.schema.names))
    return lambda: map(plain_batch, filter(len, X.to_batches(batch_size=step, **sparing(X))))


def sparing(data: Any) -> dict[str, Any]:
    """Return the keywords with which a dataset of pyarrow is scanned in little memory.

    By default it reads 16 batches of 4 files ahead, and the columns of a Parquet file whole.
    """
    import pyarrow.dataset as dataset

    kept: dict[str, Any] = {"batch_readahead": 0, "fragment_readahead": 0, "use_threads": False}
    if isinstance(getattr(data, "format", None), dataset.ParquetFileFormat):
        lean = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
        kept["fragment_scan_options"] = lean
    return kept


def _of_polars(X: Any) -> Callable[[], Iterator[Any]] | None:
    if type(X).__name__ != "LazyFrame":
        return None
    if not hasattr(X, "collect_batches"):
        return lambda: iter([X.collect()])
    step = _rows(len(X.collect_schema().names()))
    return lambda: filter(
        len, X.collect_batches(chunk_size=step, maintain_order=True, engine="streaming")
    )


def _of_duckdb(X: Any) -> Callable[[], Iterator[Any]] | None:
    if not hasattr(X, "columns") or not hasattr(X, "project"):
        return None
    step = _rows(len(X.columns))

    def blocks() -> Iterator[Any]:
        again = X.project("*")  # a relation that was fetched gives no more rows
        reader = getattr(again, "to_arrow_reader", None) or again.fetch_record_batch
        yield from map(plain_batch, filter(len, reader(step)))

    return blocks


def _of_zarr(X: Any) -> Callable[[], Iterator[Any]] | None:
    if len(getattr(X, "shape", ())) != 2:
        return None
    n, chunk = X.shape[0], max(1, X.chunks[0])
    step = max(1, _rows(X.shape[1]) // chunk) * chunk
    return lambda: (X[start : start + step] for start in range(0, n, step))


def _rows(columns: int) -> int:
    return max(1, BYTES // (8 * max(columns, 1)))


_MAKERS = {"pyarrow": _of_pyarrow, "polars": _of_polars, "duckdb": _of_duckdb, "zarr": _of_zarr}
