"""What the entries of a column of a text file are: numbers, and how they are written; dates; text.

A comma may part the thousands of a number or its decimals. Which of them is told by all entries of
the column together, and the entry that tells it is named.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

# What stands for an entry that is missing, in any case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "#na", "<na>", "?", "nil"})
LOGICAL = {"true": 1.0, "false": 0.0}
_INTEGER = re.compile(r"[+-]?\d+")
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_THOUSANDS = re.compile(rf"[+-]?\d{{1,3}}(?:[,'\u2019\u00a0\u202f ]\d{{3}})+(?:\.\d*)?{_EXPONENT}")
_DECIMAL = re.compile(
    rf"[+-]?(?:\d+|\d{{1,3}}(?:[.'\u2019\u00a0\u202f ]\d{{3}})+|)(?:,\d+)?{_EXPONENT}"
)
_POINTS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+")
MIDNIGHT = " 00:00:00"
_SPACED = re.compile(r"['\u2019\u00a0\u202f ]")
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})|"
    r"\d{1,2}[- ](?:[A-Za-z]{3,9})[- ,]+\d{2,4}|[A-Za-z]{3,9} \d{1,2},? \d{4})"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
PLAIN, COMMA, GROUPED, TRUTH = "plain", "decimal comma", "thousands separator", "true and false"


def is_missing(entry: str, more: frozenset[str] = frozenset()) -> bool:
    stripped = entry.strip()
    return stripped.lower() in MISSING or stripped in more


def is_number(entry: str) -> bool:
    """Return whether an entry is a number as C writes it, NaN and infinity included."""
    try:
        float(entry)
    except ValueError:
        return False
    return "_" not in entry  # which Python allows


def is_date(entry: str) -> bool:
    return _DATE.fullmatch(entry.strip()) is not None


@dataclass(frozen=True)
class Style:
    """How the numbers of a column are written, and the words that say why."""

    name: str = PLAIN
    evidence: str = ""
    percent: bool = False  # every number has the sign

    @property
    def parse(self) -> Callable[[str], float]:
        """A function from an entry to its number; ValueError when it is none."""
        parse = _PARSERS[self.name]
        return (lambda entry: parse(_before_percent(entry))) if self.percent else parse

    def rounds(self, entry: str, value: float) -> bool:
        """Return whether an entry is an integer that is another number in floating point."""
        bare = _SPACED.sub("", entry.strip()).replace("." if self.name == COMMA else ",", "")
        return _INTEGER.fullmatch(bare) is not None and int(bare) != int(value)

    def values(self, codes: Iterable[str]) -> list[float]:
        """Return the numbers among the codes of missing entries, as this column or C writes
        them."""
        found = set()
        for code in codes:
            for parse in (self.parse, _plain):
                with contextlib.suppress(ValueError):
                    found.add(parse(code))
                    break
        return sorted(found)


def without_codes(values: Any, codes: Sequence[float]) -> np.ndarray:
    """Return the numbers, with NaN for those that stand for a missing entry: 99.0 as well as 99."""
    out = np.asarray(values, dtype=float)
    return np.where(np.isin(out, codes), np.nan, out) if codes else out


class Ambiguous(ValueError):
    """Raised for entries that are numbers in both ways of reading their commas."""


def style_of(entries: Sequence[str], decimal: str | None, thousands: str | None) -> Style | None:
    """Return the way in which the numbers of a column are written; None when one of them is no
    number.

    `decimal` and `thousands` say what the user knows of the comma.
    """
    if percents(entries):
        bare = style_of([_before_percent(entry) for entry in entries], decimal, thousands)
        return None if bare is None else replace(bare, percent=True)
    if all(map(is_number, entries)):
        return Style()
    if all(entry.strip().lower() in LOGICAL for entry in entries):
        return Style(TRUTH)
    stripped = [entry.strip() for entry in entries]
    grouped = [e for e in stripped if not is_number(e) and not _THOUSANDS.fullmatch(e)]
    comma = [e for e in stripped if not (e and _DECIMAL.fullmatch(e))]
    if decimal == ",":
        return None if comma else Style(COMMA)
    if thousands is not None or decimal == ".":
        return None if grouped else Style(GROUPED)
    if grouped and comma:
        return None
    if not grouped and comma:
        # An entry that cannot have a decimal comma, such as 1,200,000 or 1,200.5.
        told = next((e for e in comma if "," in e), comma[0])
        return Style(GROUPED, f"as {told!r} shows")
    if not comma and grouped:
        return Style(COMMA, f"as {grouped[0]!r} shows")
    return _undecided(stripped)


def percents(entries: Sequence[str]) -> bool:
    """Return whether every entry ends with a percent sign."""
    return bool(entries) and all(entry.rstrip().endswith("%") for entry in entries)


def _before_percent(entry: str) -> str:
    before, sign, after = entry.strip().rpartition("%")
    if not sign or after:
        raise ValueError(entry)
    return before.rstrip()


def with_points(entries: Sequence[str]) -> bool:
    """Return whether all entries are whole numbers whose thousands may be parted by points."""
    stripped = [entry.strip() for entry in entries]
    grouped = [bool(_POINTS.fullmatch(entry)) for entry in stripped]
    whole = all(g or _INTEGER.fullmatch(e) for g, e in zip(grouped, stripped))
    return any(grouped) and whole


def beside_others(
    styles: list[Style], present: Sequence[Sequence[str]], undecided: list[int]
) -> list[int]:
    """Settle `styles` by what the numbers of other columns show, those in `undecided` and those
    whose points may part thousands; return the columns of which nothing tells."""
    decided = {style.name for style in styles} - {PLAIN, TRUTH}
    plain = [j for j, s in enumerate(styles) if s.name == PLAIN and j not in undecided]
    grouped = [j for j in plain if with_points(present[j])]
    if len(decided) == 1:
        # Beside decimal commas the points of 1.200 and 13.400 part thousands.
        for j in undecided + (grouped if decided == {COMMA} else []):
            name = next(iter(decided))
            styles[j] = replace(styles[j], name=name, evidence="as in the other columns")
        return []
    points = (e for j in plain if j not in grouped for e in present[j] if "." in e)
    pointed = next(points, None)
    if decided or pointed is None:
        return undecided
    for j in undecided:
        evidence = f"as {pointed!r} has a decimal point"
        styles[j] = replace(styles[j], name=GROUPED, evidence=evidence)
    return []


def _undecided(entries: Sequence[str]) -> Style:
    """Tell the comma by the company that entries such as 1,200 keep."""
    with_comma = [e for e in entries if "," in e]
    if not with_comma:  # 1 200, which only a separator can make
        return Style(GROUPED, f"as {entries[0]!r} shows")
    leading = next((e for e in with_comma if e.lstrip("+-").startswith("0")), None)
    if leading is not None:
        return Style(COMMA, f"as {leading!r} shows")
    large = next((e for e in entries if _INTEGER.fullmatch(e) and abs(int(e)) >= 1000), None)
    if large is not None:
        return Style(COMMA, f"as {large!r} has no separator")
    small = next((e for e in entries if _INTEGER.fullmatch(e)), None)
    if small is not None:
        return Style(GROUPED, f"as {small!r} has no decimals beside {with_comma[0]!r}")
    raise Ambiguous(with_comma[0])


def _plain(entry: str) -> float:
    if "_" in entry:
        raise ValueError(entry)
    return float(entry)


def _comma(entry: str) -> float:
    entry = entry.strip()
    if not (entry and _DECIMAL.fullmatch(entry)):
        raise ValueError(entry)
    return float(_SPACED.sub("", entry).replace(".", "").replace(",", "."))


def _grouped(entry: str) -> float:
    entry = entry.strip()
    if _THOUSANDS.fullmatch(entry):
        return float(_SPACED.sub("", entry).replace(",", ""))
    return _plain(entry)


def _truth(entry: str) -> float:
    found = LOGICAL.get(entry.strip().lower())
    if found is None:
        raise ValueError(entry)
    return found


_PARSERS: dict[str, Callable[[str], float]] = {
    PLAIN: _plain,
    COMMA: _comma,
    GROUPED: _grouped,
    TRUTH: _truth,
}


def looks_numbered(head: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether a first line of numbers names the columns: integers in equal steps, as 0, 1, 2
    or 2001, 2002, 2003, above columns that hold something else."""
    if len(head) < 3 or not below or not all(_INTEGER.fullmatch(e.strip()) for e in head):
        return False
    numbers = [int(e) for e in head]
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    if len(steps) != 1 or steps == {0}:
        return False
    other = 0
    for j, number in enumerate(numbers):
        entries = [row[j] for row in below if j < len(row) and is_number(row[j])]
        values = [float(e) for e in entries if math.isfinite(float(e))]
        fractions = any(not v.is_integer() for v in values)
        other += bool(values) and (fractions or not min(values) <= number <= max(values))
    return 2 * other > len(numbers)


def days_of(times: Sequence[str | None]) -> list[str | None]:
    """Return moments as days where all of them are midnight, as a file has them."""
    if all(time is None or time == "NaT" or time.endswith(MIDNIGHT) for time in times):
        return [None if time is None else time.partition(MIDNIGHT)[0] for time in times]
    return list(times)
