"""Matrices of formats that are slow to parse, kept as arrays and found again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .bytes import Source
from .cache import Cache, Draft, Entry, not_kept

Read = tuple[Any, tuple[str, ...] | None, tuple[str, ...] | None]  # matrix, features, samples
BLOCKWISE = {"csv", "matrixmarket", "parquet", "svmlight", "tsv"}  # see blocks.py


def read_or_kept(
    reader: Callable[..., Read],
    source: Source,
    format: str,
    names: tuple[str, ...] | None,
    options: dict[str, Any],
) -> Read:
    """What the reader gives: from the cache when it is there, into it when it is worth it."""
    cache: Cache = source.cache
    recipe = _recipe(format, names, options)
    if 4 * os.stat(source).st_size < cache.least:
        return reader(source, names, **options)
    entry = cache.find(source, recipe)
    if entry is not None:
        return _found(entry)
    source.fingerprint = True
    if format in BLOCKWISE:
        parsed = _in_blocks(reader, source, format, names, options, recipe)
        if parsed is not None:
            return parsed
    matrix, features, samples = reader(source, names, **options)
    if sp.issparse(matrix) and matrix.format != "csc":
        matrix = sp.csr_array(matrix)
    arrays = _arrays(matrix)
    if source.content is not None and sum(a.nbytes for a in arrays.values()) >= cache.least:
        draft = cache.draft()
        if draft is not None:
            facts = {"format": getattr(matrix, "format", None), "shape": list(matrix.shape)}
            found = {"features": features, "samples": samples}
            _keep(draft, arrays, found, facts, source, recipe)
    return matrix, features, samples


def _in_blocks(
    reader: Callable[..., Read],
    source: Source,
    format: str,
    names: tuple[str, ...] | None,
    options: dict[str, Any],
    recipe: str,
) -> Read | None:
    """Parsed block by block into the cache; None when the file must be read whole."""
    from .blocks import DiskFull, NotInBlocks, write_blocks

    cache: Cache = source.cache
    draft = cache.draft()
    if draft is None:
        return reader(source, names, **options)
    try:
        facts, found, size = write_blocks(source, format, names, options, draft)
        if source.content is None or size < cache.least:
            return _assembled(lambda name: np.array(draft.array(name)), facts, found)
        try:
            draft.write("names.json", json.dumps(found).encode())
            source.entry = cache.keep(draft, source, recipe, facts)
        except OSError as error:
            raise DiskFull(error) from error
        return _found(source.entry)
    except NotInBlocks:
        return None
    except DiskFull as error:
        not_kept(cache.folder, error.reason)
        return reader(source, names, **options)
    finally:
        draft.abandon()


def _recipe(format: str, names: tuple[str, ...] | None, options: dict[str, Any]) -> str:
    """Everything but the content that decides what comes out."""
    asked = f"{names!r} {sorted(options.items())!r}"
    return f"{format} {hashlib.sha256(asked.encode(errors='surrogateescape')).hexdigest()[:16]}"


def _arrays(matrix: Any) -> dict[str, np.ndarray]:
    if not sp.issparse(matrix):
        return {"X": matrix}
    return {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}


def _keep(
    draft: Draft,
    arrays: dict[str, np.ndarray],
    names: dict[str, Any],
    facts: dict[str, Any],
    source: Source,
    recipe: str,
) -> None:
    try:
        for name, array in arrays.items():
            draft.put(name, array)
        draft.write("names.json", json.dumps(names).encode())
        source.entry = source.cache.keep(draft, source, recipe, facts)
    except OSError as error:
        not_kept(source.cache.folder, error)
    finally:
        draft.abandon()


def _found(entry: Entry) -> Read:
    names = json.loads((entry.folder / "names.json").read_bytes())
    return _assembled(entry.array, entry.facts, names)


def _assembled(
    array: Callable[[str], np.ndarray], facts: dict[str, Any], names: dict[str, Any]
) -> Read:
    features, samples = (
        None if names[key] is None else tuple(names[key]) for key in ("features", "samples")
    )
    if facts["format"] is None:
        return array("X"), features, samples
    container = sp.csc_array if facts["format"] == "csc" else sp.csr_array
    # these very arrays: of some types SciPy would make copies in memory
    matrix = container(tuple(facts["shape"]), dtype=array("data").dtype)
    matrix.data, matrix.indices = array("data"), array("indices")
    indptr = np.array(array("indptr"))
    small = matrix.indices.dtype == np.int32 and indptr[-1] <= np.iinfo(np.int32).max
    matrix.indptr = indptr.astype(np.int32) if small else indptr
    return matrix, features, samples
