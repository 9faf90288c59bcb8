"""Parquet, by pyarrow: columns of numbers with their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from .. import frames
from .bytes import Path_, open_bytes
from .reader import NotInBlocks, Parsed, Reader

LARGEST_WHOLE = 1 << 30  # bytes of numbers that are read at once
ROWS = 1 << 16  # rows read together otherwise


def read_parquet(source: Path_, names: Any) -> Parsed:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ValueError(
            f"{source}: Parquet files need pyarrow; pip install 'sparcipal[io]'"
        ) from error
    table = parquet.read_table(os.fspath(source))
    if not table.schema.pandas_metadata:
        return Parsed(*frames.from_frame(table))
    try:
        return Parsed(*frames.from_frame(table.to_pandas()))  # restores the labels of the rows
    except ImportError:
        return Parsed(*frames.from_frame(table))


def parquet_blocks(source: Path_, names: Any) -> Iterator[Parsed]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    # pyarrow opens the file itself; open_bytes hashes it and notices when it changes
    with open_bytes(source), parquet.ParquetFile(os.fspath(source)) as file:
        about = file.schema_arrow.pandas_metadata or {}
        if any(isinstance(index, str) for index in about.get("index_columns", ())):
            raise NotInBlocks("the rows have labels")
        for batch in file.iter_batches(ROWS):
            yield Parsed(*frames.from_frame(pa.Table.from_batches([batch])))


def _is_large(source: Path_) -> bool:
    """Whether the numbers may not fit into memory: parsing is fast and no reason for the cache."""
    try:
        import pyarrow.parquet as parquet

        about = parquet.read_metadata(os.fspath(source))
    except Exception:  # `read_parquet` meets the same error and has the words for it
        return False
    return 8 * int(about.num_rows) * int(about.num_columns) > LARGEST_WHOLE


READER = Reader(
    "parquet",
    (".parquet", ".pq"),
    read_parquet,
    parquet_blocks,
    from_pipe=False,
    worth_caching=_is_large,
)
