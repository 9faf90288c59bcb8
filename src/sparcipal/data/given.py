"""Data that are no file, as a Table: frames, matrices, texts, and what gives blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .checks import check_integers
from .columns import OPTIONS, Wanted
from .frames import EVERYTHING, from_frame, is_frame
from .rows import CalledRows
from .sources import as_rows, in_blocks, is_lazy, listed_blocks
from .table import Table, as_table, is_texts, table_of


def of_data(
    source: Any,
    format: str | None,
    names: tuple[str, ...] | None,
    options: dict[str, Any],
    memory_limit: int,
) -> Table:
    """Return data as a Table; frames, and blocks of them, have the options of tables. Entries of
    theirs may be missing."""
    if is_texts(source):
        return _of_texts(source, names, options)
    of_tables = format is None and set(options) <= set(OPTIONS)
    wanted = Wanted.of({"index": False, **options}) if of_tables else None
    blocks = _partitions(source)
    if blocks is None:
        blocks = source if is_lazy(source) else listed_blocks(source, memory_limit)
    if wanted is not None and in_blocks(blocks):
        table = _of_blocks(blocks, wanted, options, memory_limit)
    elif wanted is not None and is_frame(source) and not is_lazy(source):
        table = table_of(from_frame(source, wanted))
    elif format is not None or options:
        given = ", ".join([*(["format"] if format else []), *options])
        raise ValueError(f"{given}: only for a file or folder, but source is {type(source)}")
    elif is_lazy(source) or isinstance(source, Iterator):
        return as_rows(source, names).gather()
    else:
        return as_table(source, names)
    return table if names is None else table._named(names)


def _partitions(X: Any) -> Callable[[], Iterator[Any]] | None:
    """Return the parts of a dask frame as a function of blocks; None of anything else."""
    if not (is_lazy(X) and type(X).__name__ == "DataFrame"):  # delayed objects have any attribute
        return None
    return lambda: (part.compute() for part in X.partitions)


def _of_texts(texts: Any, names: tuple[str, ...] | None, options: dict[str, Any]) -> Table:
    """Return a list of texts as a Table of its words."""
    from .files.documents import Document, count_words, opening

    found = count_words((Document(t, opening(t)) for t in texts), names, "the texts", options)
    return Table(found.matrix, found.features, found.samples, texts=found.texts)._check()


def _of_blocks(
    call: Callable[[], Iterable[Any]], wanted: Wanted, asked: Iterable[str], memory_limit: int
) -> Table:
    """Return blocks of rows as a Table: in memory, or in a file that is mapped if they are more
    than half of the limit."""
    from .files.bytes import Source
    from .files.cached import spooled
    from .files.reader import NotInBlocks, Parsed

    if wanted.one_hot:
        raise ValueError(
            "one_hot needs all categories, but blocks come one after the other; pass one frame "
            "(X.collect() of polars, X.to_table() of pyarrow, X.arrow() of DuckDB)"
        )

    def parsed(kind: Any = None) -> Iterator[Parsed]:
        rows = CalledRows(call, gaps=True, wanted=wanted)
        if wanted != EVERYTHING and not rows.of_frames:
            raise ValueError(
                f"{', '.join(asked)}: for columns of frames, but the blocks are arrays"
            )
        for table in rows.tables():
            if kind is not None and table.X.dtype != kind:
                check_integers(table.X.data if sp.issparse(table.X) else table.X, table.X.dtype)
            yield Parsed(
                table.X if kind is None else table.X.astype(kind, copy=False),
                table.feature_names,
                table.sample_names,
                labels=table.labels,
                label_name=table.label_name,
                notes=rows.notes,
            )

    source = Source("X", memory_limit=memory_limit)
    try:
        found = spooled(parsed(), source)
    except NotInBlocks:  # as whole numbers in one block, and with gaps in another
        found = spooled(parsed(np.float64), source)
    return Table(
        found.matrix,
        found.features,
        found.samples,
        labels=found.labels,
        label_name=found.label_name,
        notes=found.notes,
    )
