"""Parquet, by pyarrow: columns of numbers with their names."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from .. import frames
from ..columns import OPTIONS, Wanted
from .bytes import Path_, open_bytes
from .reader import NotInBlocks, Parsed, Reader

LARGEST_WHOLE = 1 << 30  # bytes of numbers that are read at once
ROWS = 1 << 16  # rows read together otherwise


def read_parquet(source: Path_, names: Any, **options: Any) -> Parsed:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ValueError(
            f"{source}: Parquet files need pyarrow; pip install 'sparcipal[io]'"
        ) from error
    table = parquet.read_table(os.fspath(source))
    if table.schema.pandas_metadata:
        with contextlib.suppress(ImportError):
            table = table.to_pandas()  # restores the labels of the rows
    return _parsed(table, _wanted(options))


def _wanted(options: dict[str, Any]) -> Wanted:
    """A frame has its own index, unless a column is named."""
    return Wanted.of({"index": False, **options})


def _parsed(frame: Any, wanted: Wanted) -> Parsed:
    found = frames.from_frame(frame, wanted)
    return Parsed(
        found.matrix,
        found.features,
        found.samples,
        labels=found.labels,
        label_name=found.label_name,
        notes=found.notes,
    )


def parquet_blocks(source: Path_, names: Any, **options: Any) -> Iterator[Parsed]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    wanted = _wanted(options)
    if wanted.one_hot:
        raise NotInBlocks("categories are known at the end of the file")
    # pyarrow opens the file itself; open_bytes hashes it and notices when it changes
    with open_bytes(source), parquet.ParquetFile(os.fspath(source)) as file:
        about = file.schema_arrow.pandas_metadata or {}
        if any(isinstance(index, str) for index in about.get("index_columns", ())):
            raise NotInBlocks("the rows have labels")
        for batch in file.iter_batches(ROWS):
            yield _parsed(pa.Table.from_batches([batch]), wanted)


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
    options=OPTIONS,
    from_pipe=False,
    tabular=True,
    worth_caching=_is_large,
)
