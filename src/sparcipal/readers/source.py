"""Opening files: gzip or plain, standard input; a clear error when one is cut short or no text."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

Path_ = str | os.PathLike[str]


@contextlib.contextmanager
def open_bytes(source: Path_) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed when they are gzipped; "-" is standard input.

    What goes wrong while reading is told as a ValueError that names the file.
    """
    if str(source) == "-":
        yield sys.stdin.buffer
        return
    with open(source, "rb") as raw:
        try:
            if raw.peek(2)[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=raw) as stream:
                    yield io.BufferedReader(stream)
            else:
                yield raw
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{source}: the gzip file is damaged or cut short ({error}); fetch it again"
            ) from error


def decoded_lines(source: Path_, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Line numbers (from 1) and lines without their ends."""
    with open_bytes(source) as stream:
        for number, line in enumerate(stream, start=1):
            yield number, decode(line, source, encoding, number).rstrip("\r\n")


def decode(raw: bytes, source: Path_, encoding: str, line: int | None = None) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        where = f"{source}, line {line}" if line is not None else str(source)
        raise ValueError(
            f"{where}: not {encoding} text (byte {error.start}); name its encoding, for instance "
            'encoding="latin-1"'
        ) from error


def read_names(source: Path_) -> tuple[str, ...]:
    """One name per line; an empty last line is none."""
    names = [line for _, line in decoded_lines(source)]
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def stem_of(source: Path_) -> tuple[str, str]:
    """The lower-case file name without .gz, and its extension."""
    name = Path(source).name.lower().removesuffix(".gz")
    return name, Path(name).suffix
