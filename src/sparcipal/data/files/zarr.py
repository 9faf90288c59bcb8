"""Folders of zarr: a two-dimensional array in chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrow import in_batches, sizes_of
from .bytes import Path_, Source
from .reader import Parsed, Reader


def read_zarr(source: Path_, names: Any, *, key: str | None = None) -> Parsed:
    """Return the array of the folder, or of a group the one called `key`, X, or the only one with
    two dimensions."""
    return Parsed(np.asarray(_array(source, key)[:]))


def zarr_blocks(source: Path_, names: Any, *, key: str | None = None) -> Iterator[Parsed]:
    batches = in_batches(_array(source, key))
    assert batches is not None
    yield from map(Parsed, batches())


def _array(source: Path_, key: str | None) -> Any:
    try:
        import zarr
    except ImportError as error:
        raise ValueError(f"{source}: folders of zarr need zarr; pip install zarr") from error
    found = zarr.open(os.fspath(source), mode="r")
    if hasattr(found, "shape") and key is None:
        arrays = {"": found}
    else:
        arrays = {} if hasattr(found, "shape") else dict(found.arrays())
        wanted = key if key is not None else "X" if "X" in arrays else None
        flat = {name: array for name, array in arrays.items() if len(array.shape) == 2}
        if wanted is not None and wanted not in arrays:
            raise ValueError(f"{source}: no array {wanted!r}; there are {sizes_of(arrays)}")
        if wanted is None and len(flat) != 1:
            raise ValueError(
                f"{source}: which array? name one with key=...; there are {sizes_of(arrays)}"
            )
        arrays = {wanted: arrays[wanted]} if wanted is not None else flat
    (array,) = arrays.values()
    if len(array.shape) != 2:
        raise ValueError(f"{source}: the array has {len(array.shape)} dimensions; a table has two")
    return array


def _numbers(source: Source) -> int:
    try:
        array = _array(source, None)
    except Exception:  # reading meets the same error, or `key` says which array
        return 0
    return 8 * int(array.shape[0]) * int(array.shape[1])


READER = Reader(
    "zarr",
    (".zarr",),
    read_zarr,
    zarr_blocks,
    options={"key": (str,)},
    from_pipe=False,
    worth_caching=False,
    numbers=_numbers,
)
