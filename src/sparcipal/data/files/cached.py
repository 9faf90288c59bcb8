"""Reading a file through the cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .bytes import Source
from .cache import Draft, Entry
from .reader import Columns, NotInBlocks, Parsed, Reader
from .spill import Spill, assemble, collect, temporary


def read_cached(
    reader: Reader, source: Source, names: tuple[str, ...] | None, options: dict[str, Any]
) -> Parsed:
    """Return what the reader makes of a source: from its cache entry if there is one, otherwise
    parsed, into a new entry when the arrays are large enough."""
    if not source.hashed:
        return streamed(reader, source, names, options)
    recipe = _recipe(reader.name, names, options)
    entry = source.cache.find(source, recipe)
    if entry is not None:
        return _from_entry(entry)
    if reader.blocks is not None:
        draft = source.cache.draft()
        if draft is None:
            return streamed(reader, source, names, options)
        with contextlib.suppress(NotInBlocks):
            return _stored(reader.blocks(source, names, **options), source, recipe, draft)
    parsed = reader.read(source, names, **options)
    if source.content is None or _nbytes(parsed.matrix) < source.cache.least:
        return parsed
    draft = source.cache.draft()
    return parsed if draft is None else _stored(iter([parsed]), source, recipe, draft)


def _stored(
    blocks: Iterator[Parsed | Columns], source: Source, recipe: str, draft: Draft
) -> Parsed:
    """Write blocks to a draft and make it an entry; in memory when they are too small for one, or
    when the disk fails."""
    spill = Spill(draft)
    try:
        facts, names = collect(blocks, spill)
        if source.content is not None and spill.nbytes >= source.cache.least:
            entry = spill.keep(source, recipe, facts, names)
            if entry is not None:
                return _from_entry(entry)
        return _made(spill, source, facts, names)
    finally:
        draft.abandon()


def streamed(
    reader: Reader, source: Source, names: tuple[str, ...] | None, options: dict[str, Any]
) -> Parsed:
    """Return what the reader makes of a source without a cache entry: numbers that may not fit are
    written to files as they come."""
    if reader.blocks is not None and str(source) != "-" and reader.is_large(source):
        with contextlib.suppress(NotInBlocks):
            return spooled(reader.blocks(source, names, **options), source)
    return reader.read(source, names, **options)


def spooled(blocks: Iterator[Parsed | Columns], source: Source) -> Parsed:
    """Write blocks to files that are mapped, and gone from their folder at once: the system frees
    them with the matrix."""
    with contextlib.ExitStack() as drafts:
        spill = Spill(None, more=lambda: temporary(source, drafts))
        facts, names = collect(blocks, spill)
        return _made(spill, source, facts, names)


def _made(spill: Spill, source: Source, facts: dict[str, Any], names: dict[str, Any]) -> Parsed:
    """Return what was spilled, in memory if it fits there."""
    return _with_arrays(Parsed(assemble(spill.without_entry(source), facts), **names))


def _from_entry(entry: Entry) -> Parsed:
    try:
        names = json.loads((entry.folder / "names.json").read_bytes())
        found: dict[str, Any] = {
            key: tuple(some) if isinstance(some, list) else some for key, some in names.items()
        }
        return _with_arrays(Parsed(assemble(entry.array, entry.facts), **found, cache_entry=entry))
    except MemoryError:
        raise
    except Exception as error:  # of many classes, by what is damaged
        raise entry.damaged(error) from error


def _with_arrays(parsed: Parsed) -> Parsed:
    """Return `parsed` with arrays in what is said of texts: in JSON the rareness is a list."""
    if not parsed.texts or "idf" not in parsed.texts:
        return parsed
    return parsed._replace(texts={**parsed.texts, "idf": np.asarray(parsed.texts["idf"])})


def _recipe(format: str, names: tuple[str, ...] | None, options: dict[str, Any]) -> str:
    """Return everything besides the content that decides what comes out."""
    asked = f"{names!r} {sorted(options.items())!r}"
    return f"{format} {hashlib.sha256(asked.encode(errors='surrogateescape')).hexdigest()[:16]}"


def _nbytes(matrix: Any) -> int:
    if not sp.issparse(matrix):
        return int(matrix.nbytes)
    return int(matrix.indptr.nbytes + matrix.indices.nbytes + matrix.data.nbytes)
