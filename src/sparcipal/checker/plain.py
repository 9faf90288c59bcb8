"""Raw objects as plain ones: copies of built-in types and of arrays that are nothing more.

Records, lists, numbers and texts must be of the built-in types themselves (numbers also of NumPy's
of at most 64 bits), because the methods of a subclass may answer differently at each call. Arrays
are copied, floating-point ones to double precision: a comparison of single precision with a Python
number would round that number first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .budget import require

MOST_ITEMS = 10_000_000  # of one list
MOST_DEPTH = 32  # of records and lists in one another
INTEGERS = frozenset((int, *(np.dtype(code).type for code in "bhilqBHILQ")))
FLOATS = frozenset((float, np.float32, np.float64))
TEXTS = frozenset((str, np.str_))


def array_of(raw: Any, where: str, holds: str, ndim: int) -> np.ndarray:
    """Return a copy that is an ndarray and nothing more; integers keep their size."""
    array = _unmasked(raw, where)
    kind, size = array.dtype.kind, array.dtype.itemsize
    fits = {
        "numbers": kind == "f" and size in (4, 8),
        "integers": kind in "iu" and size <= 8,
        "bytes": kind == "i" and size == 1,
    }
    require(fits[holds], f"{where}: an array of {array.dtype}")
    require(array.ndim == ndim, f"{where}: an array of {array.ndim} dimensions, not {ndim}")
    target = np.dtype(np.float64) if kind == "f" else array.dtype.newbyteorder("=")
    return np.array(array, dtype=target, order="C")


def _unmasked(raw: Any, where: str) -> np.ndarray:
    """Return an array as it stands; of a subclass, a copy without the methods of that."""
    array = isinstance(raw, np.ndarray) and not isinstance(raw, np.ma.MaskedArray)
    require(array, f"{where}: {said(raw)} where an array should be")
    return raw if type(raw) is np.ndarray else np.array(raw, order="C")


def plain(raw: Any, where: str, depth: int = MOST_DEPTH) -> Any:
    """Return a copy of records and lists with all that is in them, so that later reads see the
    same."""
    require(depth > 0, f"{where}: nested too deeply")
    kind = type(raw)
    if kind is dict:
        require(all(type(key) is str for key in raw), f"{where}: a name that is no text")
        return {key: plain(item, where, depth - 1) for key, item in raw.items()}
    if kind in (list, tuple):
        require(len(raw) <= MOST_ITEMS, f"{where}: {len(raw)} entries, at most {MOST_ITEMS}")
        return [plain(item, where, depth - 1) for item in raw]
    if isinstance(raw, np.ndarray):
        return np.array(_unmasked(raw, where))
    known = raw is None or kind in INTEGERS | FLOATS | TEXTS or kind in (bool, np.bool_)
    require(known, f"{where}: {said(raw)} in a proof")
    return raw.item() if isinstance(raw, np.generic) else raw


def said(raw: Any) -> str:
    """Return a short name of what was found, free of anything a terminal could obey."""
    if type(raw) in TEXTS:
        return ascii(raw if len(raw) <= 40 else raw[:37] + "...")
    if type(raw) in (bool, float) or raw is None:
        return repr(raw)
    if type(raw) is int:
        return str(raw) if abs(raw) < 10**30 else "a huge integer"
    return f"a {type(raw).__name__}"
