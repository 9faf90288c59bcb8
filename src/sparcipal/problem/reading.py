"""What the entries of a saved document may be, so that all that prints, counts or asks with them
finds the types, shapes, ranges and words that it relies on.

A kind is a function of an entry and of its place that returns the entry or raises ValueError.
Whether any of it is true is a question for `verify`, whose gate states the same once more, in code
of its own (checker/gate.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

Kind = Callable[[Any, str], Any]
DEEPEST = 32  # records and lists in one another


def said(raw: Any) -> str:
    """Return a short name of an entry, free of anything that a terminal could obey."""
    if isinstance(raw, str):
        return ascii(raw if len(raw) <= 40 else raw[:37] + "...")
    if raw is None or isinstance(raw, bool):
        return {None: "null", True: "true", False: "false"}[raw]
    if isinstance(raw, float):
        return repr(raw)
    if isinstance(raw, int):
        return str(raw) if abs(raw) < 10**30 else "a huge integer"
    kinds = {dict: "a record", list: "a list", np.ndarray: "an array"}
    return kinds.get(type(raw), f"a {type(raw).__name__}")


def demand(true: bool, where: str, raw: Any, wanted: str) -> None:
    """Raise ValueError, with the entry and what it should be, unless it is so."""
    if not true:
        raise ValueError(f"{where} is {said(raw)}, not {wanted}")


def entries(
    raw: Any, where: str, kinds: Mapping[str, Kind], absent: Iterable[str] = ()
) -> dict[str, Any]:
    """Return a record, each entry as its kind says; none may be there beside them, and only those
    named in `absent` may be missing."""
    demand(isinstance(raw, dict), where, raw, "a record")
    unknown = [name for name in raw if name not in kinds]
    if unknown:  # it would go unchecked
        raise ValueError(f"{where} has no entry {unknown[0]!a}")
    missing = [name for name in kinds if name not in raw and name not in absent]
    if missing:
        raise ValueError(f"{where} lacks the entry {missing[0]!r}")
    return {name: kinds[name](entry, f"{where}.{name}") for name, entry in raw.items()}


# --- kinds ---


def text(raw: Any, where: str) -> str:
    demand(isinstance(raw, str), where, raw, "a text")
    return str(raw)


def truth(raw: Any, where: str) -> bool:
    demand(isinstance(raw, bool), where, raw, "true or false")
    return bool(raw)


def word(*words: str) -> Kind:
    def read(raw: Any, where: str) -> str:
        demand(isinstance(raw, str) and raw in words, where, raw, f"one of {', '.join(words)}")
        return str(raw)

    return read


def integer(low: int | None = None, high: int | None = None) -> Kind:
    def read(raw: Any, where: str) -> int:
        demand(isinstance(raw, int) and not isinstance(raw, bool), where, raw, "an integer")
        demand(low is None or raw >= low, where, raw, f"at least {low}")
        demand(high is None or raw <= high, where, raw, f"at most {high}")
        return int(raw)

    return read


def number(low: float = -math.inf, high: float = math.inf, *, infinite: bool = False) -> Kind:
    """Return the kind of finite numbers, integers among them that are no larger than floats."""

    def read(raw: Any, where: str) -> float:
        fits = isinstance(raw, int | float) and not isinstance(raw, bool)
        demand(fits, where, raw, "a number")
        try:
            finite = math.isfinite(raw) or (infinite and not math.isnan(raw))
        except OverflowError:  # an integer too large for a float
            finite = False
        demand(finite, where, raw, "a finite number")
        demand(low <= raw <= high, where, raw, f"in {low:g}..{high:g}")
        return raw  # type: ignore[no-any-return]

    return read


def maybe(kind: Kind) -> Kind:
    return lambda raw, where: None if raw is None else kind(raw, where)


def many(kind: Kind, least: int = 0) -> Kind:
    def read(raw: Any, where: str) -> list[Any]:
        demand(isinstance(raw, list), where, raw, "a list")
        demand(len(raw) >= least, where, raw, f"one of {least} entries or more")
        return [kind(entry, f"{where}[{i}]") for i, entry in enumerate(raw)]

    return read


def record(kinds: Mapping[str, Kind], absent: Iterable[str] = ()) -> Kind:
    return lambda raw, where: entries(raw, where, kinds, absent)


def open_record(kinds: Mapping[str, Kind], rest: Kind, needed: Iterable[str] = ()) -> Kind:
    """Return the kind of records of which some entries are known, some of these `needed`, and all
    others are what `rest` says."""

    def read(raw: Any, where: str) -> dict[str, Any]:
        demand(isinstance(raw, dict), where, raw, "a record")
        missing = [name for name in needed if name not in raw]
        if missing:
            raise ValueError(f"{where} lacks the entry {missing[0]!r}")
        return {name: kinds.get(name, rest)(x, f"{where}[{name!a}]") for name, x in raw.items()}

    return read


def anything(raw: Any, where: str) -> Any:
    """Return what a proof holds: only `verify` reads it."""
    return raw


def plain(raw: Any, where: str) -> Any:
    """Return records, lists, texts and numbers; no arrays."""
    _look(raw, where, DEEPEST)
    return raw


def _look(raw: Any, where: str, depth: int) -> None:
    demand(depth > 0, where, raw, "so deep")
    demand(not isinstance(raw, np.ndarray), where, raw, "a plain entry")
    if isinstance(raw, int) and not isinstance(raw, bool):
        demand(abs(raw) < 10**30, where, raw, "an integer of so many digits")
    for entry in raw.values() if isinstance(raw, dict) else raw if isinstance(raw, list) else ():
        _look(entry, where, depth - 1)


def numbers(raw: Any, where: str) -> np.ndarray:
    """Return an array of finite numbers; lists are what `to_json(plain=True)` writes."""
    array = _vector(raw, where)
    demand(array.dtype.kind in "fiu" or not array.size, where, raw, "an array of numbers")
    array = array.astype(np.float64)
    demand(bool(np.isfinite(array).all()), where, raw, "an array of finite numbers")
    return array


def places(raw: Any, where: str) -> np.ndarray:
    """Return an array of numbers of features, in any order."""
    array = _vector(raw, where)
    demand(array.dtype.kind in "iu" or not array.size, where, raw, "an array of integers")
    demand(bool((array >= 0).all()), where, raw, "an array of numbers of features")
    return array.astype(np.intp)


def features(least: int = 0) -> Kind:
    """Return the kind of numbers of features, increasing, so that none is there twice."""

    def read(raw: Any, where: str) -> np.ndarray:
        array = places(raw, where)
        demand(array.size >= least, where, raw, f"one of {least} features or more")
        rising = bool((array[1:] > array[:-1]).all())
        demand(rising, where, raw, "one of features in increasing order")
        return array

    return read


def _vector(raw: Any, where: str) -> np.ndarray:
    if isinstance(raw, list):
        fits = all(type(x) is float or (type(x) is int and abs(x) < 2**53) for x in raw)
        demand(fits, where, raw, "one of numbers")
        raw = np.array(raw)
    demand(isinstance(raw, np.ndarray), where, raw, "an array")
    array: np.ndarray = raw
    demand(array.ndim == 1, where, raw, "one of one dimension")
    return array
