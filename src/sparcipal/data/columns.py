"""Which columns of a table are features, and what the others are for.

A plan is made once, from what is known of each column; it names in sentences what is set aside, so
that no column is fitted or left out silently.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..problem.constraints import matched
from ..problem.parameters import is_mask
from .checks import check_shape
from .notes import ASIDE, listed

NUMBER, TEXT, DATE, EMPTY = "numbers", "text", "dates", "empty"
CATEGORIES = 30  # a column of text with at most so many distinct entries holds categories
DIFFER = 1 << 20  # rows by which identifiers are told: their entries differ in all of them
# Names that identifiers have; a column of distinct integers is one of them only by its name.
_IDENTIFIER = re.compile(
    r"(.*[\s_.-])?(id|ids|uid|uuid|guid|key|index|idx|row|rownum|nr|no)"
    r"|(sample|subject|patient|participant|respondent|person|customer|user|case|record|obs"
    r"|observation)([\s_.-]?(id|nr|no|number|name|code))?",
    re.I,
)
_CAMEL = re.compile(r".*[a-z](Id|ID|Key|Index)")
_UNNAMED = re.compile(r"\s*|Unnamed: \d+")  # as pandas calls what has no name


@dataclass(frozen=True)
class Wanted:
    """What is asked of the columns of a table.

    Parameters
    ----------
    columns, drop : sequence of str or bool
        Names, patterns (`gene*`) and ranges of names (`q1:q25`) of the columns to use and to leave;
        or a mask over all columns.
    index : str, int or bool
        The column that names the rows, by name or number; True for the first, False for none.
    label : str
        A column that is kept beside the features, for pictures and scores.
    one_hot : sequence of str, or True
        Columns of text to encode, one feature per category; True for all that hold categories.
    aside : bool
        Whether columns that cannot be features are set aside; otherwise they are an error.
    empty : bool
        Whether columns named in `columns` may be empty, as in new samples for a model.
    label_needed : bool
        Whether a label that the table does not have is an error; otherwise a note says so.
    known : mapping of str to Column, optional
        What many rows tell of columns of which a part of the rows cannot: those that begin without
        an entry, and identifiers. None where the frame holds all rows, and tells by itself.
    """

    columns: Any = None
    drop: Any = ()
    index: Any = None
    label: str | None = None
    one_hot: Any = ()
    aside: bool = True
    empty: bool = False
    label_needed: bool = True
    known: Mapping[str, Column] | None = None

    @staticmethod
    def of(options: dict[str, Any]) -> Wanted:
        """Return the part of the options of `read` that asks for columns, checked."""
        names = {field.name for field in fields(Wanted)}
        given = {name: value for name, value in options.items() if name in names}
        for name in ("columns", "drop", "one_hot"):
            if name in given and given[name] is not None and not isinstance(given[name], bool):
                given[name] = _chosen(name, given[name])
        if given.get("drop") is None:
            given.pop("drop", None)
        return Wanted(**given)


# The types of these options in a saved model.
OPTIONS: dict[str, tuple[type, ...]] = {
    "columns": (list,),
    "drop": (list,),
    "index": (str, int, bool),
    "label": (str,),
    "one_hot": (list, bool),
    "aside": (bool,),
    "empty": (bool,),
    "label_needed": (bool,),
}


@dataclass(frozen=True)
class Column:
    """What is known of a column: its name, what it holds, and what that looks like."""

    name: str
    kind: str  # NUMBER, TEXT, DATE, EMPTY, or a word for what a frame holds besides
    rows: int = 0
    distinct: int = 0  # 0 when they were not counted
    whole: bool = False  # integers only
    constant: bool = False
    stray: str = ""  # what is no number in a column of text whose other entries are
    written: str = ""  # what a column of text is whose entries are all numbers

    @property
    def unnamed(self) -> bool:
        return _UNNAMED.fullmatch(self.name) is not None

    @property
    def distinct_rows(self) -> bool:
        """Whether every row has another entry."""
        return self.rows > 1 and self.distinct == self.rows

    @property
    def categories(self) -> int:
        """How many categories a column of text holds; 0 when it holds none."""
        few = 1 < self.distinct <= min(CATEGORIES, max(self.rows // 2, 2))
        return self.distinct if self.kind == TEXT and few else 0

    @property
    def words(self) -> str:
        """What the column is, where it cannot be a feature."""
        if self.written:
            return self.written
        return f"text, {self.categories} categories" if self.categories else self.kind


@dataclass(frozen=True)
class Plan:
    """What each column is for, by number; `names` has one distinct name per column."""

    names: tuple[str, ...]
    features: tuple[int, ...]
    hot: tuple[int, ...] = ()
    index: int | None = None
    label: int | None = None
    notes: tuple[str, ...] = ()


def plan(columns: Sequence[Column], wanted: Wanted, where: str = "X") -> Plan:
    """Decide what each column is for; one ValueError names everything that cannot be done."""
    if wanted.known is None and columns and columns[0].rows == 0:  # all columns look empty
        check_shape(np.empty((0, len(columns))))
    names, notes = distinct([column.name for column in columns])
    problems: list[str] = []
    index = _index(columns, names, wanted, problems)
    label = None
    if wanted.label is not None and wanted.label not in names and not wanted.label_needed:
        notes = (*notes, f"there is no column {wanted.label!r}: the rows have no labels")
    elif wanted.label is not None:
        label = _find(wanted.label, names, "label", problems)
    exact: set[int] = set()
    chosen = set(range(len(names)))
    if wanted.columns is not None:
        lacking = [n for n in wanted.columns if n not in names] if wanted.empty else []
        if lacking:  # of new samples for a model: its features are no patterns
            others = [name for name in names if name not in wanted.columns]
            which = listed([_unknown(name, others) for name in lacking])
            raise ValueError(f"{where} lacks columns that the model was fitted on: {which}")
        picked, exact = matching(wanted.columns, names, "columns", problems)
        chosen = set(picked)
    dropped, _ = matching(wanted.drop, names, "drop", problems)
    hot, named = _hot(columns, names, wanted, problems)
    chosen |= named  # a category that is asked for by its name is a column that is wanted
    chosen -= {*dropped, *(j for j in (index, label) if j is not None and j not in exact)}
    hot &= chosen
    features: list[int] = []
    aside: list[str] = []
    unusable: list[str] = []
    stray: list[str] = []
    for j in sorted(chosen):
        blank = wanted.empty and j in exact and columns[j].kind == EMPTY
        why = "" if j in hot or blank else _no_feature(columns[j], asked=j in exact)
        if not why:
            features.append(j)
        elif columns[j].stray:
            stray.append(f"{names[j]!r} ({columns[j].stray})")
        elif j in exact or not wanted.aside:
            unusable.append(f"{names[j]!r} ({why})")
        else:
            aside.append(f"{names[j]!r} ({why})")
    if unusable:
        problems.append(
            f"{len(unusable)} column(s) that hold no numbers: {listed(unusable)}; drop or encode "
            "them (drop=..., one_hot=... for categories)"
        )
    if stray:
        problems.append(
            f"{len(stray)} column(s) that hold numbers but for some entries: {listed(stray)}; mend "
            "or empty these entries, or leave the columns out"
        )
    if problems:
        raise ValueError(f"{where} has {'; '.join(problems)}")
    if not features:
        call = "one_hot=..." if where != "X" else "sparcipal.read(X, one_hot=True)"
        ways = f"encode categories with {call}, or pass another table"
        if any(column.written for column in columns):
            ways = "convert them, for instance by X.astype(float)"
        raise ValueError(
            f"{where} has no column of numbers: {listed(aside) or 'none is left'}; {ways}"
        )
    if index is not None and columns[index].unnamed and columns[index].kind == NUMBER:
        aside.insert(0, f"column {index + 1} (no name, numbers the rows)")
    elif index is not None and wanted.index is None and wanted.columns is None:
        aside.insert(0, f"{names[index]!r} (names the rows)")
    if aside:
        notes = (*notes, f"{ASIDE}: {listed(aside)}")
    ordered = tuple(j for j in features if j not in hot)
    return Plan(names, ordered, tuple(j for j in features if j in hot), index, label, notes)


def distinct(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names that differ, as `price` and `price (2)`, and a sentence if they did not."""
    named = [n if n.strip() else f"column {j + 1}" for j, n in enumerate(names)]
    counts, taken = Counter(named), set(named)
    out: list[str] = []
    seen: Counter[str] = Counter()
    for name in named:
        seen[name] += 1
        new = name
        number = seen[name]
        while number > 1 and new in taken:
            new = f"{name} ({number})"
            number += 1
        taken.add(new)
        out.append(new)
    twice = [name for name, count in counts.items() if count > 1]
    if not twice:
        return tuple(out), ()
    shown = listed([f"{name!r} ({counts[name]} columns)" for name in twice])
    return tuple(out), (f"names made distinct, as {twice[0]!r} and {twice[0] + ' (2)'!r}: {shown}",)


def difference(names: Sequence[str], known: Sequence[str]) -> str:
    """Say which of the columns that are known are lacking, and which there are besides."""
    here, there = set(names), set(known)
    lacks = [repr(name) for name in known if name not in here]
    has = [repr(name) for name in names if name not in there]
    found = (("lacks", lacks), ("has", has))
    return " and ".join(f"{verb} {listed(some)}" for verb, some in found if some)


def looks_like_identifier(name: str) -> bool:
    """Return whether a column would be an identifier if its entries are distinct integers."""
    named = _IDENTIFIER.fullmatch(name) or _CAMEL.fullmatch(name) or _UNNAMED.fullmatch(name)
    return named is not None


def encoded(entries: Sequence[str | None], name: str) -> tuple[np.ndarray, list[str]]:
    """Return one column of zeros and ones per category, and their names `name=category`."""
    categories = sorted({entry for entry in entries if entry is not None})
    place = {category: i for i, category in enumerate(categories)}
    out = np.zeros((len(entries), len(categories)))
    for row, entry in enumerate(entries):
        if entry is None:
            out[row] = np.nan
        else:
            out[row, place[entry]] = 1.0
    return out, [f"{name}={category}" for category in categories]


def matching(
    patterns: Any, names: Sequence[str], option: str, problems: list[str]
) -> tuple[list[int], set[int]]:
    """Return the columns that names, patterns and ranges stand for, and those named exactly."""
    place = {name: j for j, name in enumerate(names)}
    found: list[int] = []
    exact: set[int] = set()
    unknown = []
    backwards = []
    patterns = patterns or ()
    if is_mask(patterns):
        if len(patterns) != len(names):
            problems.append(f"{len(names)} columns for a mask {option} of {len(patterns)} entries")
            return [], set()
        found = np.flatnonzero(patterns).tolist()
        return found, set(found)
    for pattern in patterns:
        first, colon, last = pattern.partition(":")
        if pattern in place:
            found.append(place[pattern])
            exact.add(place[pattern])
        elif colon and first in place and last in place and place[first] <= place[last]:
            found += range(place[first], place[last] + 1)
        elif colon and first in place and last in place:
            backwards.append(
                f"a range {option}={pattern!r} that runs backwards: write '{last}:{first}'"
            )
        else:
            several = matched(pattern, names)
            found += several
            if not several:
                others = [name for name in names if name not in patterns]
                unknown.append(_unknown(pattern, others))
    problems += backwards
    if unknown:
        problems.append(f"no column for {option}={listed(unknown)}")
    return found, exact


def _chosen(name: str, given: Any) -> tuple[str, ...] | tuple[bool, ...]:
    if isinstance(given, str):
        return (given,)
    found = tuple(given)
    if is_mask(found):
        return tuple(map(bool, found))
    if not all(isinstance(entry, str) for entry in found):
        raise TypeError(f"{name} must be names or patterns of columns, or a mask, got {given!r}")
    return found


def _index(
    columns: Sequence[Column], names: Sequence[str], wanted: Wanted, problems: list[str]
) -> int | None:
    given = wanted.index
    if given is False or (given is None and not columns):
        return None
    if given is True:
        return 0
    if isinstance(given, str):
        return _find(given, names, "index", problems)
    if given is not None:
        if not 0 <= given < len(columns):
            problems.append(f"no column for index={given}: it has {len(columns)}")
            return None
        return int(given)
    first = columns[0]
    if len(columns) == 1:
        return None
    if first.unnamed and _numbers_rows(first):
        return 0
    many = 2 * first.distinct > first.rows
    named = first.kind == TEXT and (many or first.unnamed)
    dated = first.kind == DATE and first.distinct_rows
    if named or dated:
        return 0
    by_name = (j for j, column in enumerate(columns) if _is_identifier(column))
    return next(by_name, None)


def _numbers_rows(column: Column) -> bool:
    return column.kind != NUMBER or (column.whole and column.distinct_rows)


def _is_identifier(column: Column) -> bool:
    """Return whether every row has another entry, a whole number or text, and the name says why."""
    kind = column.kind == TEXT or (column.kind == NUMBER and column.whole)
    return kind and column.distinct_rows and looks_like_identifier(column.name)


def _no_feature(column: Column, *, asked: bool) -> str:
    """Return why a column cannot be a feature; empty when it can. What was asked for by its name
    may be an identifier."""
    if column.kind != NUMBER:
        return column.words
    return "identifier" if not asked and _is_identifier(column) else ""


def _hot(
    columns: Sequence[Column], names: Sequence[str], wanted: Wanted, problems: list[str]
) -> tuple[set[int], set[int]]:
    """Return the columns to encode, and those of them that are asked for by their names."""
    if wanted.one_hot is True:
        return {j for j, column in enumerate(columns) if column.categories}, set()
    found, named = matching(wanted.one_hot, names, "one_hot", problems)
    many = [
        f"{names[j]!r} ({columns[j].distinct} of {columns[j].rows} entries differ)"
        for j in found
        if columns[j].kind == TEXT and columns[j].distinct > max(CATEGORIES, columns[j].rows // 2)
    ]
    if many:
        problems.append(f"too many categories for one_hot: {listed(many)}")
    return set(found), named


def _find(name: str, names: Sequence[str], option: str, problems: list[str]) -> int | None:
    if name in names:
        return names.index(name)
    problems.append(f"no column for {option}={_unknown(name, names)}")
    return None


def _unknown(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name)
