"""UCI bag of words: three header lines (documents, words, entries), then `document word count`.

Ids start at 1. The header may be missing. The file is parsed in blocks of bytes, and every line is
checked: a wrong number of fields, an id out of range or a count too large is told with its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from .source import Path_, open_bytes, read_names

BLOCK = 1 << 23  # bytes parsed together
LARGEST = 2**31 - 1
SPACE, TAB, NEWLINE, RETURN, ZERO, NINE = b" \t\n\r09"


@dataclass
class _Entries:
    """What was parsed so far; ids as in the file."""

    rows: list[np.ndarray] = field(default_factory=list)
    cols: list[np.ndarray] = field(default_factory=list)
    counts: list[np.ndarray] = field(default_factory=list)
    total: int = 0


def read_bagofwords(source: Path_, names: tuple[str, ...] | None) -> tuple[Any, Any, None]:
    """Documents by words as int32 counts (CSR), and the vocabulary that lies beside the file."""
    beside = None if names is not None else _vocabulary_beside(source)
    vocabulary = names if beside is None else read_names(beside)
    with open_bytes(source) as stream:
        header, first, line = _header(stream, source)
        entries = _parse(stream, first, line, source, header)
    n_docs, n_words = _shape(entries, header, vocabulary, source, beside)
    matrix = sp.coo_array(
        (
            np.concatenate([np.empty(0, np.int32), *entries.counts]),
            (
                np.concatenate([np.empty(0, np.int32), *entries.rows]),
                np.concatenate([np.empty(0, np.int32), *entries.cols]),
            ),
        ),
        shape=(n_docs, n_words),
    ).tocsr()  # adds up repeated entries
    return matrix, vocabulary, None


def looks_like_bagofwords(source: Path_) -> bool:
    """Whether the first four lines are a header and an entry, or all four are entries."""
    with open_bytes(source) as stream:
        lines = [stream.readline(200).split() for _ in range(4)]
    if not all(part.isdigit() for line in lines for part in line):
        return False
    widths = [len(line) for line in lines if line]
    return widths in ([1, 1, 1, 3], [3], [3, 3], [3, 3, 3], [3, 3, 3, 3])


def _vocabulary_beside(source: Path_) -> Path | None:
    path = Path(source)
    name = path.name.removesuffix(".gz")
    if not name.startswith("docword"):
        return None
    for candidate in ("vocab" + name.removeprefix("docword"), "vocab.txt"):
        for end in ("", ".gz"):
            beside = path.with_name(candidate + end)
            if beside.exists():
                return beside
    return None


def _header(stream: BinaryIO, source: Path_) -> tuple[tuple[int, ...] | None, bytes, int]:
    """The three header figures (None without a header), bytes already read, and the next line."""
    lines = [stream.readline()]
    if len(lines[0].split()) == 3:
        return None, lines[0], 1
    lines += [stream.readline(), stream.readline()]
    figures = [line.split() for line in lines]
    if any(len(parts) != 1 or not parts[0].isdigit() for parts in figures):
        raise ValueError(
            f"{source}: not a bag of words; it starts with three lines (documents, words, entries) "
            "or with lines `document word count`"
        )
    return tuple(int(parts[0]) for parts in figures), b"", 4


def _blocks(stream: BinaryIO, rest: bytes) -> Iterator[bytes]:
    """Blocks of whole lines."""
    while chunk := stream.read(BLOCK):
        rest += chunk
        end = rest.rfind(b"\n") + 1
        if end:
            yield rest[:end]
            rest = rest[end:]
    if rest.strip():
        yield rest + b"\n"


def _parse(
    stream: BinaryIO, first: bytes, line: int, source: Path_, header: tuple[int, ...] | None
) -> _Entries:
    limits = (header[0], header[1], LARGEST) if header else (LARGEST, LARGEST, LARGEST)
    entries = _Entries()
    for block in _blocks(stream, first):
        table, lines = _numbers(block, line, source)
        for j, (what, limit) in enumerate(zip(("document", "word", "count"), limits)):
            low = 0 if what == "count" else 1
            wrong = np.flatnonzero((table[:, j] < low) | (table[:, j] > limit))
            if wrong.size:
                raise ValueError(
                    f"{source}, line {lines[wrong[0]]}: {what} {table[wrong[0], j]} is outside "
                    f"{low}..{limit}"
                )
        small = table.astype(np.int32)
        entries.rows.append(small[:, 0] - 1)
        entries.cols.append(small[:, 1] - 1)
        entries.counts.append(np.ascontiguousarray(small[:, 2]))
        entries.total += len(table)
        line += block.count(b"\n")
    return entries


def _numbers(block: bytes, line: int, source: Path_) -> tuple[np.ndarray, np.ndarray]:
    """The (m, 3) numbers of a block of lines and the line of each; exactly three a line."""
    text = np.frombuffer(block, dtype=np.uint8)
    digit = (text >= ZERO) & (text <= NINE)
    newline = text == NEWLINE
    strange = ~(digit | newline | (text == SPACE) | (text == TAB) | (text == RETURN))
    if strange.any():
        at = int(np.argmax(strange))
        where = line + int(np.count_nonzero(newline[:at]))
        raise ValueError(
            f"{source}, line {where}: {chr(text[at])!r} where a nonnegative integer is expected"
        )
    start = digit.copy()
    start[1:] &= ~digit[:-1]
    ends = np.flatnonzero(newline)
    fields = np.diff(np.cumsum(start)[ends], prepend=0)
    wrong = np.flatnonzero((fields != 3) & (fields != 0))
    if wrong.size:
        raise ValueError(
            f"{source}, line {line + int(wrong[0])}: {fields[wrong[0]]} fields instead of "
            "`document word count`"
        )
    # Nineteen digits and more could wrap around inside int64 and look innocent.
    starts, stops = np.flatnonzero(start), np.flatnonzero(digit & ~np.append(digit[1:], False))
    long = np.flatnonzero(stops - starts >= 18)
    if long.size:
        where = line + int(np.count_nonzero(newline[: starts[long[0]]]))
        raise ValueError(f"{source}, line {where}: a number of more than 18 digits")
    values = np.fromstring(block.decode("ascii"), dtype=np.int64, sep=" ")
    return values.reshape(-1, 3), line + np.flatnonzero(fields)


def _shape(
    entries: _Entries,
    header: tuple[int, ...] | None,
    vocabulary: tuple[str, ...] | None,
    source: Path_,
    beside: Path | None,
) -> tuple[int, int]:
    if header is not None:
        n_docs, n_words, n_entries = header
        if n_entries != entries.total:
            raise ValueError(
                f"{source}: the header says {n_entries} entries, the file has {entries.total}: "
                "it is cut short or its header is wrong"
            )
    else:
        n_docs = max((int(rows.max()) + 1 for rows in entries.rows), default=0)
        n_words = max((int(cols.max()) + 1 for cols in entries.cols), default=0)
        if vocabulary is not None and len(vocabulary) > n_words:
            n_words = len(vocabulary)
    if vocabulary is not None and len(vocabulary) != n_words:
        raise ValueError(
            f"{beside or 'feature_names'}: {len(vocabulary)} words, but {source} has {n_words}; "
            "pass the vocabulary of this file as feature_names"
        )
    return n_docs, n_words
