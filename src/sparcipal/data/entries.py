"""Prepares blocks of rows for the sums of `Moments` and `Gram`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .checks import check_pointers

DIGIT = 60  # bits per word of a saved integer
WORD = 2**62  # sums below this fit an int64, with room for one more addition


def summable(
    block: Any, weights: np.ndarray | None, n_features: int | None
) -> tuple[Any, np.ndarray | None]:
    """Return a block as ndarray or canonical CSR, with its positive weights."""
    if sp.issparse(block):
        if block.format in ("csr", "csc"):
            check_pointers(block.indptr, block.indices, block.data)
        block = block if isinstance(block, sp.csr_array) else sp.csr_array(block)
        if not block.has_canonical_format:
            block = block.copy()
            block.sum_duplicates()
    else:
        block = np.asarray(block)
    if block.ndim != 2 or (n_features is not None and block.shape[1] != n_features):
        raise ValueError(
            f"a block has shape {block.shape}, but rows of {n_features} features are expected"
        )
    if block.dtype.kind not in "fiub":
        raise ValueError(f"a block has dtype {block.dtype}, which does not hold numbers")
    if block.dtype.kind == "f" and block.dtype.itemsize not in (4, 8):
        block = block.astype(np.float64)
    if weights is not None and not weights.all():
        # Samples of weight zero are removed, so that they do not hide constant columns.
        block, weights = block[weights > 0], weights[weights > 0]
    if (
        weights is None
        and block.dtype.kind == "f"
        and _whole(block.data if sp.issparse(block) else block)
    ):
        block = block.astype(np.int32)  # tables of text hold integers as floats: sums are exact
    return block, weights


def _whole(block: Any) -> bool:
    """Return whether all entries are integers of 32 bits; the first row settles most tables of
    others."""
    entries = block.data if sp.issparse(block) else block
    for part in (entries[:1], entries):
        with np.errstate(invalid="ignore"):
            if not (np.rint(part) == part).all():
                return False
    return bool(entries.size == 0 or max(abs(entries.max()), abs(entries.min())) < 2**31)


def largest_magnitude(block: Any) -> int | float:
    """Return the largest |x| of a block; an int for integers."""
    entries = block.data if sp.issparse(block) else block
    if entries.size == 0:
        return 0
    kind: Any = float if entries.dtype.kind == "f" else int
    return max(abs(kind(entries.max())), abs(kind(entries.min())))


def signed(data: np.ndarray) -> np.ndarray:
    """Convert booleans and uint64, whose products with an int64 are not integers; the largest ones
    to numbers in double precision, of which sums are not exact anyway."""
    if data.dtype == np.bool_:
        return data.view(np.uint8)
    if data.dtype != np.uint64:
        return data
    return data.astype(np.int64 if data.max(initial=0) < 2**63 else np.float64)


def stored(arrays: Any, name: str, dtype: Any, *shape: int | None) -> np.ndarray:
    """Return a copy of an array that was saved; ValueError where it is not of this kind, or not of
    this shape, in which None stands for any length."""
    if name not in arrays:
        raise ValueError(f"there is no {name!r}")
    found = np.asarray(arrays[name])
    fits = len(shape) == found.ndim and all(a in (None, b) for a, b in zip(shape, found.shape))
    if found.dtype != np.dtype(dtype) or not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(
            f"{name!r} is of {found.dtype} and shape {found.shape}, not of {np.dtype(dtype)} and "
            f"shape ({wanted})"
        )
    return np.array(found)


def words(values: np.ndarray) -> np.ndarray:
    """Split integers into int64 words, the lowest first; the highest has the sign."""
    rest, parts = values.astype(object), []
    while any(abs(int(v)) >= 2**DIGIT for v in (rest.max(initial=0), rest.min(initial=0))):
        parts.append((rest & (2**DIGIT - 1)).astype(np.int64))
        rest = rest >> DIGIT
    return np.stack([*parts, rest.astype(np.int64)])


def number(parts: Any) -> np.ndarray:
    """Return the integers that `words` has split."""
    parts = np.asarray(parts)
    if parts.shape[0] == 1:
        return np.array(parts[0], dtype=np.int64)
    total: Any = 0
    for part in parts[::-1]:
        total = total * 2**DIGIT + part.astype(object)
    return np.asarray(total)
