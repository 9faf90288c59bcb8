"""Parquet, by pyarrow: columns of numbers with their names."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import frames
from ..arrow import batches_of, file_batches, rows_together
from ..columns import OPTIONS, Wanted, matching
from ..layout import known_columns
from ..notes import listed
from .bytes import Path_, Source, open_bytes
from .reader import NotInBlocks, Parsed, Reader, check_same_columns
from .schemas import common_schema

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
    with _named(source):
        several = _several(source, wanted)
        table = parquet.read_table(source) if several is None else several.to_table()
    if table.schema.pandas_metadata:
        with contextlib.suppress(ImportError):
            table = table.to_pandas()  # restores the labels of the rows
    return _told(_parsed(table, wanted, source), source)


def _told(parsed: Parsed, source: Path_) -> Parsed:
    """Return it with a note on the other files of the folder."""
    home = Path(source)
    others = [path for path in sorted(home.rglob("*")) if path.suffix != ".parquet"]
    left = [str(p.relative_to(home)) for p in others if p.is_file() and not _hidden(p, home)]
    note = f"{source}: read as a folder of Parquet, without {listed([repr(n) for n in left])}"
    return parsed._replace(notes=(*parsed.notes, note)) if left else parsed


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
    with _named(source):
        several = _several(source, wanted)
        data = dataset.dataset(source, format="parquet") if several is None else several
        step = _step(source, len(data.schema.names))
        data.head(0)
    about = data.schema.pandas_metadata or {}
    if any(isinstance(index, str) for index in about.get("index_columns", ())):
        raise NotInBlocks("the rows have labels")

    def tables(names: Sequence[str] | None = None) -> Iterator[Any]:
        alone = several is None
        path = os.fspath(source)
        some = None if names is None else [*names]
        batches = file_batches(path, step, columns=some) if alone else batches_of(data, step, some)
        yield from (pa.Table.from_batches([b]) for b in batches if len(b))

    # pyarrow opens the files itself; open_bytes hashes one and notices when it changes
    with _named(source), open_bytes(source) if several is None else contextlib.nullcontext():
        first = next(tables(), None)
        if first is not None:
            looked = known_columns(
                frames.part_of(first), lambda names: map(frames.part_of, tables(names))
            )
            wanted = replace(wanted, known=looked)
        for number, table in enumerate(tables()):
            parsed = _parsed(table, wanted, source)
            yield parsed if number else _told(parsed, source)
            # what the first rows tell of a column holds for all
            wanted = replace(wanted, columns=parsed.features, drop=())


@contextlib.contextmanager
def _named(source: Path_) -> Iterator[None]:
    """Name the file where pyarrow refuses it, and say in words that it does not read columns of one
    name."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid as error:
        if not ("duplicate field names" in str(error) or "Multiple matches" in str(error)):
            raise ValueError(f"{source}: damaged, or not parquet ({error})") from error
        raise ValueError(
            f"{source}: several columns have the same name, which pyarrow does not read; write the "
            "files with names that differ"
        ) from error


def _several(source: Path_, wanted: Wanted) -> Any:
    """Return the files of a folder or a pattern as one dataset, None of a single file; ValueError
    where their columns differ and none are named."""
    import pyarrow.dataset as dataset

    shown: Sequence[Path_] = source.parts if isinstance(source, Source) else ()
    asked: dict[str, Any] = {"format": "parquet"}
    if not shown and os.path.isdir(source):
        home = Path(source)
        shown = [path for path in sorted(home.rglob("*.parquet")) if not _hidden(path, home)]
        if not shown:
            raise ValueError(f"{source}: no Parquet file in it, but for hidden ones")
        asked |= {"partitioning": "hive", "partition_base_dir": str(home)}
    if not shown:
        return None
    paths = [*map(str, shown)]
    data = dataset.dataset(paths, **asked)
    schemas = {part.path: part.physical_schema for part in data.get_fragments()}
    first, known = next(iter(schemas.items()))
    for path, schema in schemas.items() if wanted.columns is None else ():
        check_same_columns(schema.names, path, first, known.names)
    common = common_schema([data.schema, *schemas.values()])
    _refuse_mixed(source, schemas, wanted)
    return data if common.equals(data.schema) else dataset.dataset(paths, schema=common, **asked)


def _refuse_mixed(source: Path_, schemas: dict[str, Any], wanted: Wanted) -> None:
    """Refuse columns that hold numbers in one file and text or dates in another: as text the rows
    of each file would be judged by themselves."""
    import pyarrow as pa

    def holds(kind: Any) -> str:
        counts = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        numbers = pa.types.is_boolean(kind) or any(is_one(kind) for is_one in counts)
        return "numbers" if numbers else "other"

    kinds: dict[str, dict[str, tuple[str, Any]]] = {}
    for path, schema in schemas.items():
        for field in schema:
            found = kinds.setdefault(field.name, {})
            if not pa.types.is_null(field.type):
                found.setdefault(holds(field.type), (path, field.type))
    names = [*kinds]
    used = [*range(len(names))]
    if wanted.columns is not None:
        used, _ = matching(wanted.columns, names, "columns", [])
    dropped, _ = matching(wanted.drop, names, "drop", [])
    mixed = [names[j] for j in used if j not in dropped and len(kinds[names[j]]) > 1]
    told = [
        f"{name!r} ({' and '.join(f'{kind} in {path}' for path, kind in kinds[name].values())})"
        for name in mixed
    ]
    if told:
        raise ValueError(
            f"{source}: files that are read as one table must hold the same in a column: "
            f"{listed(told)}; convert the columns, or leave them out (drop=...)"
        )


def _hidden(path: Path, home: Path) -> bool:
    """Return whether a file, or a folder on the way to it, is one that engines keep for
    themselves."""
    return any(name.startswith((".", "_")) for name in path.relative_to(home).parts)


def _step(source: Path_, columns: int) -> int:
    """Return how many rows are read together: they take some of the limit, with all copies, but not
    so little that the work for each column of each block is all that it costs."""
    limit = source.memory_limit if isinstance(source, Source) else 1 << 30
    most = min(ROWS, limit // (PARTS * 8 * max(columns, 1)))
    return max(most, rows_together(columns))


def _numbers(source: Source) -> int:
    """Return the bytes of the numbers, by what the file says of itself."""
    try:
        import pyarrow.dataset as dataset

        several = _several(source, Wanted(columns=()))
        data = dataset.dataset(source, format="parquet") if several is None else several
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
    joins=True,
)
