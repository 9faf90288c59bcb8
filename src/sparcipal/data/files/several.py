"""Files that a pattern names, one after the other, as one table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .bytes import Source
from .cached import spooled, streamed
from .reader import Columns, Parsed, Reader, check_same_columns


def read_several(
    reader: Reader,
    source: Source,
    paths: list[Path],
    names: tuple[str, ...] | None,
    options: dict[str, Any],
) -> Parsed:
    """Return the rows of all files, which must have the same columns; in blocks if they may not
    fit."""
    if reader.counts_words:
        raise ValueError(
            f"{source}: texts of several files are counted together only if one folder holds them; "
            "name the folder, or join the files"
        )
    if reader.joins:
        return streamed(reader, source.of_parts(paths), names, options)
    parts = [source.beside(path) for path in paths]
    whole = sum(_size(reader, part) for part in parts)
    held = _each(reader, parts, names, options, in_blocks=whole > source.room)
    blocks = _alike(held, paths)
    if whole > source.room:
        return spooled((parsed for parsed, _ in blocks), source)
    return _stacked([parsed for parsed, _ in blocks])


def _size(reader: Reader, source: Source) -> int:
    return 4 * source.size if reader.numbers is None else reader.numbers(source)


def _each(
    reader: Reader,
    parts: list[Source],
    names: tuple[str, ...] | None,
    options: dict[str, Any],
    in_blocks: bool,
) -> Iterator[tuple[Parsed, int]]:
    """Yield tables, and from which file each is."""
    for number, part in enumerate(parts):
        if in_blocks and reader.blocks is not None:
            for block in reader.blocks(part, names, **options):
                if isinstance(block, Columns):
                    raise ValueError(
                        f"{part}: columns of this format are counted at the end of each file; join "
                        "the files, or raise memory_limit"
                    )
                yield block, number
        else:
            yield streamed(reader, part, names, options), number


def _alike(blocks: Iterator[tuple[Parsed, int]], paths: list[Path]) -> Iterator[tuple[Parsed, int]]:
    """Yield the same tables, with their columns in the order of the first one."""
    first: Parsed | None = None
    for parsed, number in blocks:
        first = parsed if first is None else first
        known, names = first.features, parsed.features
        width, own = first.matrix.shape[1], parsed.matrix.shape[1]
        if known is not None and names is not None:
            why = f" ({'; '.join(parsed.notes)})" if parsed.notes else ""
            check_same_columns(names, paths[number], paths[0], known, why)
            if names != known:
                place = {name: j for j, name in enumerate(names)}
                order = [place[name] for name in known]
                parsed = parsed._replace(matrix=parsed.matrix[:, order], features=known)
        elif width != own or known != names:
            detail = f"{own} columns instead of {width}" if own != width else "other columns"
            raise ValueError(
                f"{paths[number]} has {detail}, compared with {paths[0]}; files that are read as "
                "one table must have the same columns"
            )
        yield parsed, number


def _stacked(parts: list[Parsed]) -> Parsed:
    matrices = [part.matrix for part in parts]
    if any(sp.issparse(matrix) for matrix in matrices):
        matrix: Any = sp.vstack([sp.csr_array(m) for m in matrices], format="csr")
    else:
        matrix = np.concatenate(matrices)
    return parts[0]._replace(
        matrix=matrix,
        samples=_joined([part.samples for part in parts]),
        labels=_joined([part.labels for part in parts]),
        moments=None,
        cache_entry=None,
    )


def _joined(names: list[Any]) -> tuple[str, ...] | None:
    if any(some is None for some in names):
        return None
    return tuple(name for some in names for name in some)
