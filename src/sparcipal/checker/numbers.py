"""The numbers of an array, as float64 holds them."""

from __future__ import annotations

from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from .budget import Refused

TABLE = "two-dimensional table of finite numbers"
LARGEST = 2**53  # float64 holds all integers up to this one


def plain(name: str, given: Any) -> None:
    """Refuse an array that hides entries: NumPy would uncover them."""
    if np.ma.is_masked(given):
        raise ValueError(f"{name} is a masked array; fill or remove the masked entries first")


def doubles(
    name: str, numbers: np.ndarray, *, gaps: bool = False, rounded: bool = False
) -> np.ndarray:
    """Finite numbers as they are, or as float64 where they are longer; ValueError if that rounds,
    or has: where integers come `rounded` as floating-point numbers. Gaps refute a claim of none.

    Python's numbers are one by one the nearest float64, whole ones exactly.
    """
    if numbers.dtype == object:
        numbers = _of_objects(name, numbers)
    if numbers.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be a {TABLE}, not of {numbers.dtype}")
    finite = np.isfinite(numbers)
    nan = np.isnan(numbers)
    if not gaps and nan.any():
        raise Refused(
            f"{name} has {int(nan.sum())} missing entries (NaN), but the result speaks of complete "
            "data; pass the data that it came from"
        )
    if not (finite | nan).all():
        raise ValueError(f"{name} must be a {TABLE}, but has {int((~finite).sum())} infinite ones")
    if numbers.dtype.kind in "iu" and numbers.dtype.itemsize >= 8 and numbers.size:
        largest = max(int(numbers.max()), -int(numbers.min()))
        if largest > LARGEST:
            raise ValueError(_too_large(name, largest))
    if rounded and numbers.dtype.kind == "f":
        top = float(np.abs(numbers[~nan]).max(initial=0.0))
        if top >= LARGEST:
            raise ValueError(_too_large(name, int(top)))
    if numbers.dtype.kind == "f" and numbers.dtype.itemsize > 8:
        narrow = numbers.astype(np.float64)
        if not np.array_equal(narrow, numbers, equal_nan=gaps):
            raise ValueError(f"{name} holds numbers of {numbers.dtype} that float64 rounds")
        numbers = narrow
    return numbers


def _of_objects(name: str, numbers: np.ndarray) -> np.ndarray:
    out = np.empty(numbers.shape)
    for place, entry in np.ndenumerate(numbers):
        if entry is None or type(entry).__name__ == "NAType":
            out[place] = np.nan
            continue
        if not isinstance(entry, Real | Decimal):
            raise ValueError(f"{name} holds {entry!r}, which is not a real number")
        if isinstance(entry, Integral) and abs(int(entry)) > LARGEST:
            raise ValueError(_too_large(name, abs(int(entry))))
        out[place] = float(entry)
    return out


def _too_large(name: str, size: int) -> str:
    return f"{name} holds integers up to {size}, beyond 2**53, which float64 rounds"
