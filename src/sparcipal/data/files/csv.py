"""CSV: samples in lines, fields separated by commas, semicolons or tabs."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator
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
        reader = csv.reader(chain(first, text), delimiter=delimiter)
        rows: Iterator[Line] = ((reader.line_num, row) for row in reader if row)
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
        has_labels = labels if labels is not None else not _is_number(row[0])
        width = len(row)
        if head is not None and len(head) not in (width, width - has_labels):
            raise ValueError(f"{source}: the header has {len(head)} fields, the first line {width}")
        if head is not None:
            head = head[len(head) - (width - has_labels) :]
        rows = chain([(line, row)], rows)
        while some := list(islice(rows, max(1, FIELDS // width))):
            matrix = _numbers(some, int(has_labels), width, head, source)
            samples = tuple(row[0] for _, row in some) if has_labels else None
            yield Parsed(matrix, None if head is None else tuple(head), samples)


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


def _numbers(
    rows: list[Line],
    first: int,
    width: int,
    head: list[str] | None,
    source: Path_,
) -> np.ndarray:
    out = np.empty((len(rows), width - first))
    for i, (line, row) in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"{source}, line {line}: {len(row)} fields instead of {width}")
        try:
            out[i] = [float(field) for field in row[first:]]
        except ValueError:
            wrong = next(j for j in range(first, width) if not _is_number(row[j]))
            _refuse_decimal_commas(line, row, source)
            name = f" ({head[wrong - first]!r})" if head is not None else ""
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
