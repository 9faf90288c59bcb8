"""Batches that come once only, a RecordBatchReader's, kept so that they can be read again."""

from __future__ import annotations

import itertools
import mmap
import tempfile
from collections.abc import Iterator
from typing import Any

from ..arrow import Batches, failures_named, plain_batch, rows_together

ROWS = 4  # times as many rows together as where each of them is read for a block
PART = 8  # batches stay in memory that take one of so many parts of the memory limit


def kept(reader: Any, memory_limit: int) -> Batches:
    """Return the batches of a reader as blocks of rows: held in memory, or in a file that is mapped
    if they are many. The file has no name, and is gone with them."""
    held: list[Any] = []
    size = 0
    with failures_named("pyarrow"):
        batches = filter(len, reader)
        for batch in batches:
            held.append(batch)
            size += batch.nbytes
            if PART * size > memory_limit:
                return _in_file(reader.schema, itertools.chain(_taken(held), batches))
    if not held:
        raise ValueError("X is a RecordBatchReader without rows; its batches come once only")
    return Batches(lambda: _cut(iter(held)), sum(map(len, held)), "pyarrow")


def _in_file(schema: Any, batches: Iterator[Any]) -> Batches:
    import pyarrow as pa

    rows = 0
    try:
        with tempfile.TemporaryFile() as file:
            with pa.ipc.new_stream(file, schema) as stream:
                for batch in batches:
                    stream.write_batch(batch)
                    rows += len(batch)
                    del batch
                    pa.default_memory_pool().release_unused()  # it would keep what was freed
            file.flush()
            mapped = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        if isinstance(error, pa.ArrowException):
            raise
        raise ValueError(
            "X is a RecordBatchReader, whose batches come once only, and they could not be kept in "
            f"a temporary file ({error}); make room or set TMPDIR, or pass a larger memory_limit"
        ) from error
    return Batches(lambda: _cut(pa.ipc.open_stream(pa.BufferReader(mapped))), rows, "pyarrow")


def _taken(held: list[Any]) -> Iterator[Any]:
    """Yield the entries of a list, which forgets them."""
    while held:
        yield held.pop(0)


def _cut(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the rows of batches, not too many of them at once."""
    for batch in batches:
        table = plain_batch(batch)
        step = ROWS * rows_together(table.num_columns)
        yield from (table.slice(start, step) for start in range(0, len(table), step))
