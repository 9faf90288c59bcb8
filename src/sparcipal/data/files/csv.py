"""CSV: samples in lines, fields separated by commas, semicolons, tabs or bars.

The opening of a file tells what each column is; the lines after it are parsed in blocks. Everything
that is wrong with a file is said at once.
"""

from __future__ import annotations

import csv
import numbers
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain, islice
from typing import Any

import numpy as np

from ..checks import LARGEST
from ..columns import (
    DATE,
    EMPTY,
    NUMBER,
    OPTIONS,
    TEXT,
    Column,
    Plan,
    Wanted,
    distinct,
    encoded,
    plan,
)
from .beginning import decoding, delimiter_of, first_lines
from .bytes import Path_, open_bytes
from .fields import (
    PLAIN,
    Ambiguous,
    Style,
    beside_others,
    is_date,
    is_missing,
    is_number,
    looks_numbered,
    percents,
    style_of,
    without_codes,
)
from .problems import Problems
from .reader import NotInBlocks, Parsed, Reader

Line = tuple[int, list[str]]  # its number, its fields
FIELDS = 1 << 18  # fields parsed together
OPENING = 1 << 18  # fields by which the columns are told
# What names features, not samples.
_FEATURES = re.compile(
    r"\s*(gene|transcript|protein|probe|probe ?set|feature|metabolite|otu|asv|taxon|symbol)s?"
    r"([ _.-]?(id|name|symbol)s?)?\s*",
    re.I,
)


@dataclass(frozen=True)
class _Asked:
    """The options of the format; those of `Wanted` are with the others in `rest`."""

    header: bool | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str | None = None
    thousands: str | None = None
    na_values: Any = ()
    transpose: bool = False

    @staticmethod
    def of(options: dict[str, Any]) -> tuple[_Asked, Wanted]:
        own = {f.name for f in fields(_Asked)}
        asked = _Asked(**{name: value for name, value in options.items() if name in own})
        for name, value in (("decimal", asked.decimal), ("thousands", asked.thousands)):
            if value not in (None, ",", "."):
                raise ValueError(f"{name}={value!r} must be ',' or '.'")
        for name in ("label", "one_hot"):
            if asked.transpose and options.get(name):
                raise ValueError(
                    f"{name}={options[name]!r} names a column, and with transpose=True columns are "
                    f"samples; leave out {name}, or transpose the file before"
                )
        return asked, Wanted.of(options)

    @property
    def missing(self) -> frozenset[str]:
        given = self.na_values
        if given is None:
            return frozenset()
        codes = [given] if isinstance(given, str | numbers.Real) else given
        if not isinstance(codes, list | tuple | set | frozenset | np.ndarray) or not all(
            isinstance(code, str | numbers.Real) and not isinstance(code, bool) for code in codes
        ):
            raise TypeError(
                f"na_values={given!r} must be what stands for a missing entry: a text, a number, "
                "or a list of them"
            )
        return frozenset(str(code).strip() for code in codes)


def read_csv(source: Path_, names: Any, **options: Any) -> Parsed:
    """Read a table whose first line may name the columns and whose first column the rows.

    `header`, `index`, `delimiter`, `decimal` and `thousands` say so where the guess is wrong.
    Fields are separated by commas, or by semicolons, tabs or bars where the first line has no
    comma.
    With `transpose` lines are features and columns samples, as in tables of genes.
    """
    blocks = list(_blocks(source, options))
    matrices = [block.matrix for block in blocks]
    whole = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
    first = blocks[0]

    def joined(parts: Iterable[Any], there: Any) -> tuple[str, ...] | None:
        return None if there is None else tuple(chain.from_iterable(parts))

    samples = joined((block.samples for block in blocks), first.samples)
    labels = joined((block.labels for block in blocks), first.labels)
    if options.get("transpose"):
        lines, notes = (None, ()) if samples is None else distinct(samples)
        told = (*first.notes, *notes)
        return first._replace(
            matrix=np.ascontiguousarray(whole.T), features=lines, samples=first.features, notes=told
        )
    return first._replace(matrix=whole, samples=samples, labels=labels)


def csv_blocks(source: Path_, names: Any, **options: Any) -> Iterator[Parsed]:
    """Return the table of `read_csv`, some lines at a time."""
    if options.get("transpose"):
        raise NotInBlocks("a sample is a column, which ends with the file")
    return _blocks(source, options)


def _blocks(source: Path_, options: dict[str, Any]) -> Iterator[Parsed]:
    asked, wanted = _Asked.of(options)
    problems = Problems(source)
    with open_bytes(source) as stream, decoding(stream, source, asked.encoding) as text:
        first = list(first_lines(text))
        if first and first[0].startswith("PK\x03\x04"):
            raise ValueError(f"{source} is a zip archive, as .xlsx is; save the table as CSV")
        delimiter = asked.delimiter
        if found := re.fullmatch(r"sep=(.)\s*", first[0] if first else ""):  # as Excel writes
            first, delimiter = first[1:], found[1]
            first += islice(text, 1)
        delimiter = delimiter_of("".join(first)) if delimiter is None else delimiter
        lines = chain(first, text)
        rows = _rows(lines, delimiter)
        opening = list(islice(rows, 2))
        width = max(len(opening[-1][1]) if opening else 1, 1)
        look = None if wanted.one_hot else max(0, min(OPENING, FIELDS) // width - 2)
        opening += islice(rows, look)
        layout, body = _layout(opening, delimiter, asked, wanted, problems)
        yield layout.parsed(body, problems)
        done, step = opening[-1][0], max(1, FIELDS // layout.width)
        while block := list(islice(lines, step)):
            plain = layout.parsed_plainly(block)
            if plain is None:
                break
            yield plain
            done += len(block)
        # From the first line that needs more care on, rows are parsed across blocks, since a quoted
        # field may go on in the next one.
        rows = _rows(chain(block, lines), delimiter, done)
        while some := list(islice(rows, step)):
            yield layout.parsed(some, problems)
    problems.refuse()


def head_of(source: Path_, encoding: str) -> list[str]:
    """Return the fields of the first line."""
    with open_bytes(source) as stream, decoding(stream, source, encoding) as text:
        first = list(first_lines(text))
    found = next(_rows(first, delimiter_of("".join(first))), (0, []))
    return [field.strip() for field in found[1]]


def _rows(lines: Iterable[str], delimiter: str, done: int = 0) -> Iterator[Line]:
    """Yield numbers and fields of lines that are not empty, after `done` other lines."""
    reader = csv.reader(lines, delimiter=delimiter)
    return ((done + reader.line_num, row) for row in reader if row)


@dataclass(frozen=True)
class _Layout:
    """What the opening tells about all lines."""

    delimiter: str
    width: int  # fields of a line
    plan: Plan
    head: tuple[str, ...] | None  # names of the features
    styles: tuple[Style, ...]  # of all columns
    named: bool  # whether the file names its columns
    label_name: str | None = None
    notes: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()

    def parsed(self, rows: Sequence[Line], problems: Problems) -> Parsed:
        kept = []
        for line, row in rows:
            if len(row) == self.width:
                kept.append((line, row))
            else:
                problems.width(line, len(row), self.width)
        plan = self.plan
        out = np.empty((len(kept), len(plan.features)))
        for i, j in enumerate(plan.features):
            out[:, i] = self._numbers(kept, j, problems)
        head = self.head
        for j in plan.hot:
            entries = [None if self._absent(row[j]) else row[j].strip() for _, row in kept]
            block, names = encoded(entries, plan.names[j])
            out = np.concatenate([out, block], axis=1)
            head = (*(head or ()), *names)
        return Parsed(out, head, *self._beside([row for _, row in kept]))

    def _absent(self, entry: str) -> bool:
        return is_missing(entry, self.missing)

    def _beside(self, rows: Sequence[Sequence[str]]) -> tuple[Any, ...]:
        """Return what a block has beside its numbers, as the fields of Parsed after the
        features."""
        index, label = self.plan.index, self.plan.label
        samples = None if index is None else tuple(row[index] for row in rows)
        labels = None if label is None else tuple(row[label] for row in rows)
        return samples, None, None, labels, self.label_name, None, self.notes

    def _numbers(self, rows: list[Line], j: int, problems: Problems) -> Any:
        parse = self.styles[j].parse
        codes = self.styles[j].values(self.missing)
        try:
            values = without_codes([parse(row[j]) for _, row in rows], codes)
        except ValueError:
            values = None
        if values is not None:
            for i in np.flatnonzero(np.abs(values) >= LARGEST):
                if self.styles[j].rounds(rows[i][1][j], values[i]):
                    name = self.plan.names[j] if self.named else None
                    problems.large(j, name, rows[i][0], rows[i][1][j])
                    break
            return values
        found = []
        for line, row in rows:
            try:
                found.append(parse(row[j]))
            except ValueError:
                found.append(np.nan)
                if not self._absent(row[j]):
                    name = self.plan.names[j] if self.named else None
                    problems.entry(j, name, line, row[j])
        return without_codes(found, codes)

    def parsed_plainly(self, lines: list[str]) -> Parsed | None:
        """The same by np.loadtxt, in half the time. None for lines that it does not take: quoted,
        with a wrong number of fields, or with anything but numbers as C writes them."""
        used = [self.styles[j] for j in self.plan.features]
        plain = all(style.name == PLAIN and not style.percent for style in used)
        if self.plan.hot or not plain or any('"' in line for line in lines):
            return None
        lines = [line for line in lines if line.strip("\r\n")]
        if any(line.count(self.delimiter) != self.width - 1 for line in lines):
            return None
        beside = self.plan.index is not None or self.plan.label is not None
        split = [line.rstrip("\r\n").split(self.delimiter) for line in lines] if beside else ()
        if not any(map(str.strip, lines)):
            return None
        try:
            matrix = np.loadtxt(
                lines,
                delimiter=self.delimiter,
                comments=None,
                ndmin=2,
                encoding=None,
                usecols=self.plan.features,
            )
        except ValueError:
            return None
        if (
            matrix.shape != (len(lines), len(self.plan.features))
            or (np.abs(matrix) >= LARGEST).any()
        ):
            return None
        matrix = without_codes(matrix, Style().values(self.missing))
        return Parsed(matrix, self.head, *self._beside(split))


def _layout(
    opening: list[Line], delimiter: str, asked: _Asked, wanted: Wanted, problems: Problems
) -> tuple[_Layout, list[Line]]:
    """Return the layout of a table by its opening, and the lines of it that hold samples."""
    source = problems.source
    if not opening:
        raise ValueError(f"{source}: the file is empty")
    notes: list[str] = []
    head, body = _headed(opening, delimiter, asked, notes)
    if not body:
        raise ValueError(f"{source}: a header and no line of numbers")
    width = len(body[0][1])
    if head is not None and len(head) == width - 1:
        if all(not row[-1].strip() for _, row in body if len(row) == width):
            head = [*head, ""]
            notes.append(
                "lines end with a separator that the header lacks: names are from the left"
            )
        else:
            head = ["", *head]  # as R writes tables: the first column names the rows
    if head is not None and len(head) != width:
        raise ValueError(
            f"{source}: the header has {len(head)} fields, the first line {width}, separated by "
            f"{delimiter!r}; delimiter=... names another separator"
        )
    rows = [row for _, row in body if len(row) == width]
    names = head if head is not None else [f"column {j + 1}" for j in range(width)]
    columns, styles = _columns(rows, names, asked, problems)
    made = plan(columns, wanted, str(source))
    notes += _style_notes(made, styles)
    if made.index is not None and not asked.transpose and _FEATURES.fullmatch(names[made.index]):
        notes.append(
            f"{names[made.index]!r} names the rows; if they are features and the columns samples, "
            "pass transpose=True"
        )
    all_used = made.features == tuple(range(width)[int(made.index == 0) :]) and not made.hot
    named = head is not None
    features = tuple(made.names[j] for j in made.features)
    label_name = None if made.label is None else made.names[made.label]
    return _Layout(
        delimiter,
        width,
        made,
        features if named or not all_used else None,
        tuple(styles),
        named,
        label_name,
        (*notes, *made.notes),
        asked.missing,
    ), body


def _headed(
    opening: list[Line], delimiter: str, asked: _Asked, notes: list[str]
) -> tuple[list[str] | None, list[Line]]:
    """Return the names in the first line, if it holds names, and the lines of samples."""
    first = opening[0][1]
    if asked.header is not None:
        return (first, opening[1:]) if asked.header else (None, opening)
    comma = delimiter != ","

    def numeric(entry: str) -> bool:
        return is_number(entry) or (comma and is_number(entry.replace(",", ".")))

    below = [row for _, row in opening[1:]]
    if any(numeric(entry) and re.search(r"\d*[.,]\d|\d[.,]", entry) for entry in first):
        return None, opening  # names are not written with decimals
    # nan, inf and 1e5 may be names: they are, beside texts above numbers
    odd = any(numeric(e) and not re.fullmatch(r"\s*[+-]?\d+\s*", e) for e in first)
    named = below and any(numeric(b) and not numeric(a) for a, b in zip(first, below[0]))
    if odd and not named:
        return None, opening
    blank = len(first) > 1 and not first[0].strip()
    if all(map(numeric, first[1:] if blank else first)):
        start = int(blank)
        if not looks_numbered(first[start:], [row[start:] for row in below]):
            return None, opening
        if not blank:
            shown = ", ".join(first[:3])
            notes.append(
                f"the first line ({shown}, ...) was taken for names; header=False reads it as data"
            )
        return first, opening[1:]
    return first, opening[1:]


def _columns(
    rows: list[list[str]], names: Sequence[str], asked: _Asked, problems: Problems
) -> tuple[list[Column], list[Style]]:
    """Return what each column holds, and how its numbers are written."""
    kinds: list[str] = []
    styles: list[Style] = []
    undecided: dict[int, str] = {}
    present = []
    for j in range(len(names)):
        entries = [row[j] for row in rows]
        there = [entry for entry in entries if not is_missing(entry, asked.missing)]
        present.append(there)
        try:
            kind, style = _kind(there, asked)
        except Ambiguous as error:
            kind, style, undecided[j] = NUMBER, Style(percent=percents(there)), str(error)
        kinds.append(kind)
        styles.append(style)
    numbers = [there if kind == NUMBER else [] for kind, there in zip(kinds, present)]
    left = beside_others(styles, numbers, list(undecided))
    for j in left:
        entry, named = undecided[j], f" ({names[j]!r})" if names[j] else ""
        problems.other(
            f"column {j + 1}{named}: {entry!r} can be {entry.replace(',', '')} or "
            f"{entry.replace(',', '.')}, and no other entry tells which; pass thousands=',' "
            "or decimal=','"
        )
    if left:
        problems.refuse()
    columns = [
        Column(
            name.strip(),
            kind,
            len(rows),
            len(set(there)),
            style.name == PLAIN and all(re.fullmatch(r"\s*[+-]?\d+\s*", e) for e in there),
        )
        for name, kind, style, there in zip(names, kinds, styles, present)
    ]
    return columns, styles


def _kind(there: list[str], asked: _Asked) -> tuple[str, Style]:
    if not there:
        return EMPTY, Style()
    style = style_of(there, asked.decimal, asked.thousands)
    if style is not None:
        return NUMBER, style
    if all(map(is_date, there)):
        return DATE, Style()
    numbers = re.compile(r"\s*[+-]?[\d.,]+\s*(%?)\s*")
    found = [(entry, numbers.fullmatch(entry)) for entry in there]
    good = [entry for entry, number in found if is_number(entry) or (number and not number[1])]
    signed = sum(bool(number and number[1]) for _, number in found)  # %, which others lack
    if 2 * (len(good) + signed) < len(there):
        return TEXT, Style()
    # Numbers but for some entries: they are named as problems where they are parsed.
    return NUMBER, style_of(good, asked.decimal, asked.thousands) or Style()


def _style_notes(made: Plan, styles: list[Style]) -> list[str]:
    told: dict[str, list[str]] = {}
    for j in made.features:
        if styles[j].evidence:
            told.setdefault(styles[j].name, []).append(f"{made.names[j]!r} ({styles[j].evidence})")
        if styles[j].percent:
            told.setdefault("percent sign, 5 % read as 5,", []).append(repr(made.names[j]))
    return [
        f"numbers with a {kind} in {', '.join(some[:3])}"
        + (f" and {len(some) - 3} more columns" if len(some) > 3 else "")
        for kind, some in told.items()
    ]


READER = Reader(
    "csv",
    (".csv",),
    read_csv,
    csv_blocks,
    options={
        "header": (bool,),
        "delimiter": (str,),
        "encoding": (str,),
        "decimal": (str,),
        "thousands": (str,),
        "na_values": (list, str, int, float),
        "transpose": (bool,),
        **OPTIONS,
    },
    tabular=True,
)
