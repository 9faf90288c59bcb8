"""CSV: samples in lines, fields separated by commas, semicolons or tabs."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, BinaryIO

import numpy as np

from .bytes import Path_, open_bytes
from .reader import Parsed, Reader

Line = tuple[int, list[str]]  # its number, its fields
FIELDS = 1 << 20  # fields parsed together


def read_csv(
    source: Path_,
    names: Any,
    *,
    header: bool | None = None,
    labels: bool | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Parsed:
    """A first line with text in it is a header, a first column with text in it labels the samples;
    `header` and `labels` say so where that guess is wrong. Fields are separated by commas, or by
    semicolons or tabs where the first line has no comma."""
    blocks = csv_blocks(
        source, names, header=header, labels=labels, delimiter=delimiter, encoding=encoding
    )
    matrices, heads, samples, *_ = zip(*blocks)
    whole = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
    labels_found = None if samples[0] is None else tuple(chain.from_iterable(samples))
    return Parsed(whole, heads[0], labels_found)


def csv_blocks(
    source: Path_,
    names: Any,
    *,
    header: bool | None = None,
    labels: bool | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Iterator[Parsed]:
    """The table of `read_csv`, some lines at a time."""
    with open_bytes(source) as stream, _decoding(stream, source, encoding) as text:
        first = list(_first_lines(text))
        delimiter = _delimiter("".join(first)) if delimiter is None else delimiter
        lines = chain(first, text)
        layout, opening = _layout(_rows(lines, delimiter), source, delimiter, header, labels)
        yield layout.parsed([opening], source)
        done, step = opening[0], max(1, FIELDS // layout.width)
        while block := list(islice(lines, step)):
            plain = layout.parsed_plainly(block)
            if plain is None:
                break
            yield plain
            done += len(block)
        # From a line that needs more care on: a quoted field may go on in the next block.
        rows = _rows(chain(block, lines), delimiter, done)
        while some := list(islice(rows, step)):
            yield layout.parsed(some, source)


def _rows(lines: Iterable[str], delimiter: str, done: int = 0) -> Iterator[Line]:
    """Numbers and fields of lines that are not empty, after `done` other lines."""
    reader = csv.reader(lines, delimiter=delimiter)
    return ((done + reader.line_num, row) for row in reader if row)


@dataclass(frozen=True)
class _Layout:
    """What the first lines tell about all others."""

    delimiter: str
    head: tuple[str, ...] | None
    labelled: bool
    width: int  # fields of a line, its label included

    def parsed(self, rows: list[Line], source: Path_) -> Parsed:
        labels = tuple(row[0] for _, row in rows) if self.labelled else None
        return Parsed(_numbers(rows, self, source), self.head, labels)

    def parsed_plainly(self, lines: list[str]) -> Parsed | None:
        """The same by np.loadtxt, in half the time. None for lines that it does not take: quoted,
        with a wrong number of fields, or with anything but numbers as C writes them."""
        if any('"' in line for line in lines):
            return None
        lines = [line for line in lines if line.strip("\r\n")]
        labels = None
        if self.labelled:
            parts = [line.partition(self.delimiter) for line in lines]
            labels, lines = tuple(part[0] for part in parts), [part[2] for part in parts]
        if not any(map(str.strip, lines)):
            return None
        try:
            matrix = np.loadtxt(
                lines, delimiter=self.delimiter, comments=None, ndmin=2, encoding=None
            )
        except ValueError:
            return None
        if matrix.shape != (len(lines), self.width - self.labelled):
            return None
        return Parsed(matrix, self.head, labels)


def _layout(
    rows: Iterator[Line],
    source: Path_,
    delimiter: str,
    header: bool | None,
    labels: bool | None,
) -> tuple[_Layout, Line]:
    """The layout of a table, and its first line of numbers."""
    line, row = next(rows, (0, []))
    if not row:
        raise ValueError(f"{source}: the file is empty")
    if delimiter != "," and header is None:
        _refuse_decimal_commas(line, row, source)
    has_header = header if header is not None else not all(map(_is_number, row))
    head = row if has_header else None
    if has_header:
        line, row = next(rows, (0, []))
    if not row:
        raise ValueError(f"{source}: a header and no line of numbers")
    if delimiter != "," and labels is None:
        _refuse_decimal_commas(line, row, source, fields=1)
    labelled = labels if labels is not None else not _is_number(row[0])
    width = len(row)
    if head is not None and len(head) not in (width, width - labelled):
        raise ValueError(f"{source}: the header has {len(head)} fields, the first line {width}")
    if head is not None:
        head = head[len(head) - (width - labelled) :]
    names = None if head is None else tuple(head)
    return _Layout(delimiter, names, bool(labelled), width), (line, row)


@contextlib.contextmanager
def _decoding(stream: BinaryIO, source: Path_, encoding: str) -> Iterator[Iterator[str]]:
    """Decode a stream to lines with any kind of line end, and drop a byte order mark."""
    seen = 0
    text = io.TextIOWrapper(stream, encoding, newline="")

    def lines() -> Iterator[str]:
        nonlocal seen
        for line in text:
            seen += 1
            yield line.removeprefix("\ufeff") if seen == 1 else line

    try:
        yield lines()
        text.detach()  # closing the stream is left to the caller
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{source}: not {encoding} text (after line {seen}); name its encoding, for instance "
            'encoding="latin-1"'
        ) from error


def _first_lines(text: Iterator[str]) -> Iterator[str]:
    """Yield the lines up to the second one that is not empty."""
    found = 0
    for line in text:
        yield line
        found += bool(line.strip("\r\n"))
        if found == 2:
            return


def _delimiter(text: str) -> str:
    """Tell what separates the fields by the first two lines; a comma when in doubt."""
    first, second = [*text.lstrip("\r\n").split("\n", 2), ""][:2]
    for mark in ";\t":
        if mark not in first or (second.strip() and mark not in second):
            continue
        if "," not in first or any(map(_has_decimal_comma, first.split(mark))):
            return mark
    return ","


def _has_decimal_comma(field: str) -> bool:
    return field.count(",") == 1 and _is_number(field.replace(",", "."))


def _refuse_decimal_commas(
    line: int, row: list[str], source: Path_, fields: int | None = None
) -> None:
    """Raise when a number is written with a comma: it would be taken for a name or a label."""
    for j, field in enumerate(row[:fields]):
        if _has_decimal_comma(field):
            raise ValueError(
                f"{source}, line {line}: {field!r}, column {j + 1} has a decimal comma: write "
                "numbers with a point, or read the file with pandas.read_csv(..., decimal=',') "
                "and pass the frame (header=True or labels=True where it is a name)"
            ) from None


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _numbers(rows: list[Line], layout: _Layout, source: Path_) -> np.ndarray:
    width, first = layout.width, int(layout.labelled)
    out = np.empty((len(rows), width - first))
    for i, (line, row) in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"{source}, line {line}: {len(row)} fields instead of {width}")
        try:
            out[i] = [float(field) for field in row[first:]]
        except ValueError:
            wrong = next(j for j in range(first, width) if not _is_number(row[j]))
            _refuse_decimal_commas(line, row, source)
            name = f" ({layout.head[wrong - first]!r})" if layout.head is not None else ""
            raise ValueError(
                f"{source}, line {line}: {row[wrong]!r}, column {wrong + 1}{name} is not a number: "
                "remove or encode columns of text, and impute missing entries, first"
            ) from None
    return out


READER = Reader(
    "csv",
    (".csv",),
    read_csv,
    csv_blocks,
    options={"header": (bool,), "labels": (bool,), "delimiter": (str,), "encoding": (str,)},
)
