"""The gate: everything that comes from a file becomes a typed record here, or is refused.

A schema is a frozen dataclass whose fields are made by `entry(kind, meaning)`. `parse` is the only
code of the checker that looks at raw data: what it returns has the stated types, shapes, lengths
and ranges, so that the code behind it never indexes, unpacks or broadcasts with anything else.
`table` writes the same statements down for docs/proof_format.rst.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from .budget import Refused, require
from .plain import FLOATS, INTEGERS, MOST_ITEMS, TEXTS, array_of, plain, said

# A number, or the name of a size that is known when the record is read: p, n, k, ...
Limit = int | str
Sizes = dict[str, int]
Schema = TypeVar("Schema")


# --- kinds of fields ---


class Kind(Protocol):
    """What a field may hold."""

    def read(self, raw: Any, where: str, sizes: Sizes) -> Any:
        """Return the value, or Refused. Lengths that the kind names are added to `sizes`."""

    def text(self) -> str:
        """Return the same in words."""


@dataclass(frozen=True)
class Integer:
    """An integer: no truth value, no floating-point number."""

    low: Limit | None = None
    high: Limit | None = None
    names: str | None = None  # the number is known under this name from here on

    def read(self, raw: Any, where: str, sizes: Sizes) -> int:
        require(type(raw) in INTEGERS, f"{where}: {said(raw)} where an integer should be")
        value = int(raw)
        if self.low is not None:
            low = _size(self.low, sizes)
            require(value >= low, f"{where}: {said(value)}, at least {low}")
        if self.high is not None:
            high = _size(self.high, sizes)
            require(value <= high, f"{where}: {said(value)}, at most {high}")
        if self.names is not None:
            sizes[self.names] = value
        return value

    def text(self) -> str:
        return "integer" + _range(self.low, self.high)


@dataclass(frozen=True)
class Number:
    """A finite floating-point number, unless said otherwise."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    infinite: bool = False
    whole: bool = False  # integers count as well

    def read(self, raw: Any, where: str, sizes: Sizes) -> float:
        fits = type(raw) in FLOATS or (self.whole and type(raw) in INTEGERS)
        require(fits, f"{where}: {said(raw)} where a number should be")
        try:
            value = float(raw)
        except OverflowError:
            value = math.inf
        finite = math.isfinite(value) or (self.infinite and not math.isnan(value))
        require(finite, f"{where}: {value!r} is not finite")
        if self.low is not None:
            require(value >= self.low, f"{where}: {value!r}, at least {self.low:g}")
        if self.above is not None:
            require(value > self.above, f"{where}: {value!r}, above {self.above:g}")
        if self.high is not None:
            require(value <= self.high, f"{where}: {value!r}, at most {self.high:g}")
        return value

    def text(self) -> str:
        least = "" if self.above is None else f" above {self.above:g}"
        return ("number" if not self.infinite else "number or infinity") + (
            least or _range(self.low, self.high)
        )


@dataclass(frozen=True)
class PowerOfTwo:
    """A power of two, so that dividing by it rounds nothing."""

    def read(self, raw: Any, where: str, sizes: Sizes) -> float:
        value = Number(above=0.0).read(raw, where, sizes)
        require(math.frexp(value)[0] == 0.5, f"{where}: {value!r} is not a power of two")
        return value

    def text(self) -> str:
        return "power of two"


@dataclass(frozen=True)
class Truth:
    def read(self, raw: Any, where: str, sizes: Sizes) -> bool:
        fits = type(raw) in (bool, np.bool_)
        require(fits, f"{where}: {said(raw)}, neither true nor false")
        return bool(raw)

    def text(self) -> str:
        return "true or false"


class Word:
    """One of the words of a list."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def read(self, raw: Any, where: str, sizes: Sizes) -> str:
        fits = type(raw) in TEXTS and raw in self.words
        require(fits, f"{where}: {said(raw)}, not one of {', '.join(self.words)}")
        return str(raw)

    def text(self) -> str:
        return "one of " + ", ".join(f"``{word}``" for word in self.words)


@dataclass(frozen=True)
class Text:
    """Any text, none of which means anything to the checker."""

    def read(self, raw: Any, where: str, sizes: Sizes) -> str:
        require(type(raw) in TEXTS, f"{where}: {said(raw)} where a text should be")
        return str(raw)

    def text(self) -> str:
        return "text"


@dataclass(frozen=True)
class Features:
    """Numbers of features, 0 <= j < `of`, strictly increasing: none is there twice."""

    of: str = "p"
    least: int = 0
    most: Limit | None = None
    names: str | None = None  # their number is known under this name from here on

    def read(self, raw: Any, where: str, sizes: Sizes) -> np.ndarray:
        array = array_of(raw, where, "integers", 1)
        require(array.size >= self.least, f"{where}: {array.size} features, at least {self.least}")
        if self.most is not None:
            most = _size(self.most, sizes)
            require(array.size <= most, f"{where}: {array.size} features, at most {most}")
        if array.size:
            limit = _size(self.of, sizes)
            low, high = int(array.min()), int(array.max())
            require(low >= 0 and high < limit, f"{where}: features must lie in 0..{limit - 1}")
            rising = bool((array[1:] > array[:-1]).all())
            require(rising, f"{where}: features out of order, or one of them twice")
        if self.names is not None:
            sizes[self.names] = int(array.size)
        return array.astype(np.intp)

    def text(self) -> str:
        count = "" if self.least == 0 else f", at least {self.least}"
        count += "" if self.most is None else f", at most {self.most}"
        count += "" if self.names is None else f"; *{self.names}* is how many"
        return f"increasing integers in 0..{self.of}-1{count}"


@dataclass(frozen=True)
class Indices:
    """Numbers of features, 0 <= j < `of`, as many as `length` says, in any order."""

    length: str
    of: str = "p"

    def read(self, raw: Any, where: str, sizes: Sizes) -> np.ndarray:
        array = array_of(raw, where, "integers", 1)
        count, limit = _size(self.length, sizes), _size(self.of, sizes)
        require(array.size == count, f"{where}: {array.size} features, not {count}")
        fits = array.size == 0 or (int(array.min()) >= 0 and int(array.max()) < limit)
        require(fits, f"{where}: features must lie in 0..{limit - 1}")
        return array.astype(np.intp)

    def text(self) -> str:
        return f"*{self.length}* integers in 0..{self.of}-1"


@dataclass(frozen=True)
class Numbers:
    """Finite floating-point numbers, single or double precision, as many as `length` says."""

    length: str | None = None
    low: float | None = None
    high: float | None = None
    above: float | None = None

    def read(self, raw: Any, where: str, sizes: Sizes) -> np.ndarray:
        array = array_of(raw, where, "numbers", 1)
        if self.length is not None:
            count = self.count(_size(self.length, sizes))
            require(array.size == count, f"{where}: {array.size} numbers, not {count}")
        return _within(array, where, self.low, self.high, self.above)

    def count(self, length: int) -> int:
        return length

    def text(self) -> str:
        least = "" if self.above is None else f" above {self.above:g}"
        return f"{self._length()} numbers" + (least or _range(self.low, self.high))

    def _length(self) -> str:
        return "any number of" if self.length is None else f"*{self.length}*"


@dataclass(frozen=True)
class Triangle(Numbers):
    """The entries above the diagonal of a square matrix of order `length`, row by row."""

    def count(self, length: int) -> int:
        return length * (length - 1) // 2

    def _length(self) -> str:
        return f"*{self.length}* (*{self.length}* - 1) / 2"


@dataclass(frozen=True)
class Matrix:
    """A matrix of finite numbers with `rows` rows and at most `most` columns."""

    rows: str
    most: int

    def read(self, raw: Any, where: str, sizes: Sizes) -> np.ndarray:
        array = array_of(raw, where, "numbers", 2)
        rows = _size(self.rows, sizes)
        fits = array.shape[0] == rows and 1 <= array.shape[1] <= self.most
        require(fits, f"{where}: {array.shape}, not {rows} rows and 1 to {self.most} columns")
        return _within(array, where, None, None, None)

    def text(self) -> str:
        return f"*{self.rows}* rows of at most {self.most} numbers"


@dataclass(frozen=True)
class Codes:
    """Small integers, as many as there are."""

    low: int
    high: int

    def read(self, raw: Any, where: str, sizes: Sizes) -> np.ndarray:
        array = array_of(raw, where, "bytes", 1)
        fits = array.size == 0 or (int(array.min()) >= self.low and int(array.max()) <= self.high)
        require(fits, f"{where}: codes must be bytes in {self.low}..{self.high}")
        return array

    def text(self) -> str:
        return f"bytes in {self.low}..{self.high}"


class Record:
    """A record of one of the given schemas: the first whose keys are those that are there."""

    def __init__(self, *schemas: type) -> None:
        self.schemas = schemas

    def read(self, raw: Any, where: str, sizes: Sizes) -> Any:
        return parse(_chosen(self.schemas, raw, where), raw, sizes, where)

    def text(self) -> str:
        return " or ".join(f":ref:`{schema.__name__}`" for schema in self.schemas)


@dataclass(frozen=True)
class Many:
    """A list of what `kind` says."""

    kind: Kind
    least: int = 0
    names: str | None = None

    def read(self, raw: Any, where: str, sizes: Sizes) -> tuple[Any, ...]:
        require(type(raw) in (list, tuple), f"{where}: {said(raw)} where a list should be")
        require(len(raw) >= self.least, f"{where}: {len(raw)} entries, at least {self.least}")
        require(len(raw) <= MOST_ITEMS, f"{where}: {len(raw)} entries, at most {MOST_ITEMS}")
        if self.names is not None:
            sizes[self.names] = len(raw)
        return tuple(
            self.kind.read(item, f"{where}[{i}]", dict(sizes)) for i, item in enumerate(raw)
        )

    def text(self) -> str:
        return f"list of {self.kind.text()}" + (f"; *{self.names}* is how many" * bool(self.names))


class Steps:
    """A list of records that say what they are in their entry `step`; one kind comes first."""

    def __init__(self, first: str, **schemas: tuple[type, ...]) -> None:
        self.first, self.schemas = first, schemas

    def read(self, raw: Any, where: str, sizes: Sizes) -> tuple[Any, ...]:
        require(type(raw) in (list, tuple), f"{where}: {said(raw)} where a list should be")
        require(1 <= len(raw) <= MOST_ITEMS, f"{where}: {len(raw)} steps")
        out: list[Any] = []
        for i, item in enumerate(raw):
            place = f"{where}[{i}]"
            require(type(item) is dict, f"{place}: {said(item)} where a record should be")
            words = (self.first,) if i == 0 else tuple(w for w in self.schemas if w != self.first)
            step = Word(*words).read(item.get("step"), f"{place}.step", sizes)
            rest = {key: value for key, value in item.items() if key != "step"}
            out.append(parse(_chosen(self.schemas[step], rest, place), rest, dict(sizes), place))
        return tuple(out)

    def text(self) -> str:
        kinds = (
            " or ".join(f":ref:`{schema.__name__}`" for schema in schemas) + f" (``{step}``)"
            for step, schemas in self.schemas.items()
        )
        return f"list of steps, each with its kind in ``step``: {'; '.join(kinds)}"


@dataclass(frozen=True)
class Maybe:
    """What `kind` says, or nothing (null)."""

    kind: Kind

    def read(self, raw: Any, where: str, sizes: Sizes) -> Any:
        return None if raw is None else self.kind.read(raw, where, sizes)

    def text(self) -> str:
        return f"{self.kind.text()}, or null"


@dataclass(frozen=True)
class Document:
    """A record whose schema another entry decides; it passes the gate there, as a copy."""

    def read(self, raw: Any, where: str, sizes: Sizes) -> dict[str, Any]:
        require(type(raw) is dict, f"{where}: {said(raw)} where a record should be")
        return plain(raw, where)

    def text(self) -> str:
        return "record"


@dataclass(frozen=True)
class Named:
    """A record of some of these names, with an entry of one kind for each."""

    kind: Kind
    names: tuple[str, ...]

    def read(self, raw: Any, where: str, sizes: Sizes) -> dict[str, Any]:
        require(type(raw) is dict, f"{where}: {said(raw)} where a record should be")
        require(len(raw) <= MOST_ITEMS, f"{where}: {len(raw)} entries")
        named = {Word(*self.names).read(name, where, sizes): name for name in raw}
        return {name: self.kind.read(raw[key], where, sizes) for name, key in named.items()}

    def text(self) -> str:
        names = ", ".join(f"``{name}``" for name in self.names)
        return f"for some of the names {names}: {self.kind.text()}"


# --- schemas ---


def entry(kind: Kind, meaning: str, *, optional: bool = False, key: str | None = None) -> Any:
    """Return a field of a schema: what it may hold and what it means. An optional one may be
    absent.

    `key` is its name in the file, where that is no name for a field.
    """
    made = {"kind": kind, "meaning": meaning, "optional": optional, "key": key}
    if optional:
        return dataclasses.field(default=None, kw_only=True, metadata=made)
    return dataclasses.field(kw_only=True, metadata=made)


def parse(schema: type[Schema], raw: Any, sizes: Sizes, where: str = "") -> Schema:
    """Return the record that `raw` is, or Refused with the place where it is not.

    Fields are read in the order of the schema, so that lengths are known before they are used.
    """
    place = where or schema.__name__
    require(type(raw) is dict, f"{place}: {said(raw)} where a record should be")
    fields = _keys(schema)
    for key in raw:
        require(
            type(key) is str and key in fields, f"{place}: there is no entry called {said(key)}"
        )
    found = {}
    for key, field in fields.items():
        if key in raw:
            found[field.name] = field.metadata["kind"].read(raw[key], f"{place}.{key}", sizes)
        else:
            require(field.metadata["optional"], f"{place}: the entry {key!r} is missing")
    return schema(**found)


def table(schema: type) -> str:
    """Return the fields of a schema as a table for the documents."""
    lines = [".. list-table::", "   :widths: 18 37 45", "   :header-rows: 1", ""]
    rows = [("entry", "holds", "meaning")]
    for key, field in _keys(schema).items():
        made = field.metadata
        name = f"``{key}``" + (" (may be absent)" if made["optional"] else "")
        rows.append((name, made["kind"].text(), made["meaning"]))
    for row in rows:
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return "\n".join(lines)


def nested(schema: type) -> list[type]:
    """Return the schemas that the fields of a schema name, in their order."""
    found: list[type] = []
    for field in dataclasses.fields(schema):
        found += [s for s in _named(field.metadata["kind"]) if s not in found]
    return found


def _named(kind: Any) -> list[type]:
    if isinstance(kind, Record):
        return list(kind.schemas)
    if isinstance(kind, Steps):
        return [schema for schemas in kind.schemas.values() for schema in schemas]
    return _named(kind.kind) if isinstance(kind, Many | Maybe) else []


# --- what kinds have in common ---


def _keys(schema: Any) -> dict[str, dataclasses.Field]:
    """Return the fields of a schema by their names in a file."""
    return {field.metadata["key"] or field.name: field for field in dataclasses.fields(schema)}


def _chosen(schemas: tuple[type, ...], raw: Any, where: str) -> type:
    """Return the schema whose entries are those of `raw`; of several, the first that has its
    keys."""
    if len(schemas) == 1 or type(raw) is not dict:
        return schemas[0]
    for schema in schemas:
        fields = _keys(schema)
        needed = {key for key, field in fields.items() if not field.metadata["optional"]}
        if needed <= set(raw) <= set(fields):
            return schema
    names = " or ".join(schema.__name__ for schema in schemas)
    raise Refused(f"{where}: a record with other entries than those of {names}")


def _within(
    array: np.ndarray, where: str, low: float | None, high: float | None, above: float | None
) -> np.ndarray:
    require(bool(np.isfinite(array).all()), f"{where}: a number that is not finite")
    if low is not None:
        require(bool((array >= low).all()), f"{where}: a number below {low:g}")
    if above is not None:
        require(bool((array > above).all()), f"{where}: a number that is not above {above:g}")
    if high is not None:
        require(bool((array <= high).all()), f"{where}: a number above {high:g}")
    return array


def _size(limit: Limit, sizes: Sizes) -> int:
    return limit if isinstance(limit, int) else sizes[limit]


def _range(low: Any, high: Any) -> str:
    if low is None and high is None:
        return ""
    if high is None:
        return f", at least {low}"
    return f", at most {high}" if low is None else f" in {low}..{high}"
