"""Parquet, by pyarrow: columns of numbers with their names."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import frames
from ..arrow import batches_of, file_batches
from ..columns import OPTIONS, Wanted
from .bytes import Path_, Source, open_bytes
from .reader import NotInBlocks, Parsed, Reader, check_same_columns

ROWS = 1 << 16  # rows read together, if they are not too wide
PARTS = 16  # of the memory limit, of which rows that are read together take one


def read_parquet(source: Path_, names: Any, **options: Any) -> Parsed:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ValueError(
            f"{source}: Parquet files need pyarrow; pip install 'sparcipal[io]'"
        ) from error
    wanted = _wanted(options)
    if isinstance(source, Source) and not source.alone:  # which other files may fill
        wanted = replace(wanted, unfilled=frozenset())
    whole = os.path.isdir(source)
    with _distinct_names(source):
        table = _folder(source, wanted).to_table() if whole else parquet.read_table(source)
    if table.schema.pandas_metadata:
        with contextlib.suppress(ImportError):
            table = table.to_pandas()  # restores the labels of the rows
    return _parsed(table, wanted, source)


def _wanted(options: dict[str, Any]) -> Wanted:
    """A frame has its own index, unless a column is named."""
    return Wanted.of({"index": False, **options})


def _parsed(frame: Any, wanted: Wanted, source: Path_ = "X") -> Parsed:
    found = frames.from_frame(frame, wanted, str(source))
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
    import pyarrow.dataset as dataset

    wanted = _wanted(options)
    if wanted.one_hot:
        raise NotInBlocks("categories are known at the end of the file")
    whole = os.path.isdir(source)
    with _distinct_names(source):
        data = _folder(source, wanted) if whole else dataset.dataset(source, format="parquet")
        step = _step(source, len(data.schema.names))
        data.head(0)
    about = data.schema.pandas_metadata or {}
    if any(isinstance(index, str) for index in about.get("index_columns", ())):
        raise NotInBlocks("the rows have labels")

    def tables() -> Iterator[Any]:
        batches = batches_of(data, step) if whole else file_batches(os.fspath(source), step)
        yield from (pa.Table.from_batches([b]) for b in batches if len(b))

    # pyarrow opens the files itself; open_bytes hashes one and notices when it changes
    with contextlib.nullcontext() if whole else open_bytes(source):
        alone = not isinstance(source, Source) or source.alone  # others may fill a column
        empty = frames.unfilled_columns(tables()) if alone else frozenset()
        wanted = replace(wanted, unfilled=empty)
        for table in tables():
            parsed = _parsed(table, wanted, source)
            yield parsed
            # what the first rows tell of a column holds for all
            wanted = replace(wanted, columns=parsed.features, drop=())


@contextlib.contextmanager
def _distinct_names(source: Path_) -> Iterator[None]:
    """Say in words that pyarrow does not read columns of one name."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid as error:
        if not ("duplicate field names" in str(error) or "Multiple matches" in str(error)):
            raise
        raise ValueError(
            f"{source}: several columns have the same name, which pyarrow does not read; write the "
            "files with names that differ"
        ) from error


def _folder(source: Path_, wanted: Wanted) -> Any:
    """Return the Parquet files of a folder as one dataset; ValueError where their columns differ
    and none are named."""
    import pyarrow.dataset as dataset

    paths = sorted(map(str, Path(source).rglob("*.parquet")))
    data = dataset.dataset(paths, format="parquet", partitioning="hive")
    parts = [(part.path, part.physical_schema.names) for part in data.get_fragments()]
    for path, names in parts if wanted.columns is None else ():
        check_same_columns(names, path, *parts[0])
    return data


def parsed_batches(reader: Any) -> Iterator[Parsed]:
    """Yield the batches of a RecordBatchReader, each as a table."""
    import pyarrow as pa

    yield from (_parsed(pa.Table.from_batches([b]), _wanted({})) for b in reader if len(b))


def _step(source: Path_, columns: int) -> int:
    """Return how many rows are read together: they take some of the limit, with all copies."""
    limit = source.memory_limit if isinstance(source, Source) else 1 << 30
    return max(1, min(ROWS, limit // (PARTS * 8 * max(columns, 1))))


def _numbers(source: Source) -> int:
    """Return the bytes of the numbers, by what the file says of itself."""
    try:
        import pyarrow.dataset as dataset

        whole = os.path.isdir(source)
        data = _folder(source, Wanted()) if whole else dataset.dataset(source, format="parquet")
        return 8 * int(data.count_rows()) * len(data.schema.names)
    except Exception:  # `read_parquet` meets the same error and has the words for it
        return 0


def _is_large(source: Source) -> bool:
    """Return whether the numbers may not fit into memory: parsing is fast and no reason for the
    cache."""
    return _numbers(source) > source.room


READER = Reader(
    "parquet",
    (".parquet", ".pq"),
    read_parquet,
    parquet_blocks,
    options=OPTIONS,
    from_pipe=False,
    tabular=True,
    worth_caching=_is_large,
    numbers=_numbers,
)
