"""The beginning of a table of text: its encoding, its first lines, and what separates fields."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator
from typing import BinaryIO

from .bytes import Path_
from .fields import is_number


@contextlib.contextmanager
def decoding(stream: BinaryIO, source: Path_, encoding: str) -> Iterator[Iterator[str]]:
    """Decode a stream to lines with any kind of line end, and drop a byte order mark."""
    seen = 0
    start = stream.peek(2)[:2] if hasattr(stream, "peek") else b""
    if encoding == "utf-8" and start in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"  # Excel's "Unicode text"
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
        # a chunk of the file is decoded at once: lines of it were not seen yet
        line = seen + len((error.object[: error.start] + b".").splitlines())
        raise ValueError(
            f"{source}, line {line}: not {encoding} text; name its encoding, for instance "
            'encoding="latin-1"'
        ) from error


def first_lines(text: Iterator[str]) -> Iterator[str]:
    """Yield the lines up to the second one that is not empty."""
    found = 0
    for line in text:
        yield line
        found += bool(line.strip("\r\n"))
        if found == 2:
            return


def delimiter_of(text: str) -> str:
    """Tell what separates the fields by the first two lines; a comma when in doubt."""
    first, second = [*text.lstrip("\r\n").split("\n", 2), ""][:2]
    for mark in ";\t|":
        if mark not in first or (second.strip() and mark not in second):
            continue
        if "," not in first or any(map(_has_decimal_comma, first.split(mark))):
            return mark
        if _numbers(first, second, mark) > max(_numbers(first, second, ","), 0):
            return mark
    return ","


def _numbers(first: str, second: str, mark: str) -> int:
    """Count the numbers of the second line if a mark parts both lines into as many fields."""
    rows = list(csv.reader([first, second], delimiter=mark))
    if len(rows) < 2 or len(rows[0]) != len(rows[1]):
        return -1
    return sum(is_number(e) or (mark != "," and _has_decimal_comma(e)) for e in rows[1])


def _has_decimal_comma(field: str) -> bool:
    return field.count(",") == 1 and is_number(field.replace(",", "."))
