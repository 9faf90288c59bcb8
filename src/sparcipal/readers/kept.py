"""Matrices of formats that are slow to parse, kept as arrays and found again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .cache import Cache, Draft, Entry, not_kept
from .source import Source

Read = tuple[Any, tuple[str, ...] | None, tuple[str, ...] | None]  # matrix, features, samples


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
    features, samples = (
        None if names[key] is None else tuple(names[key]) for key in ("features", "samples")
    )
    if entry.facts["format"] is None:
        return entry.array("X"), features, samples
    container = sp.csc_array if entry.facts["format"] == "csc" else sp.csr_array
    indptr = np.array(entry.array("indptr"))
    parts = (entry.array("data"), entry.array("indices"), indptr)
    return container(parts, shape=tuple(entry.facts["shape"])), features, samples
