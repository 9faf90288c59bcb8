"""The entries of a bag of words: blocks of bytes to pieces, faults to sentences, and any order to
the right one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from .bytes import Path_, damaged, spoiled
from .cache import Draft
from .pieces import Pieces

BLOCK = 1 << 20  # bytes parsed together
LONGEST = 1 << 16  # bytes of a line
PAD = 32  # bytes the parser may look at behind the last line
LARGEST = 2**31 - 1
SLICE = 1 << 22  # entries sorted together


@dataclass
class Entries:
    """Parsed entries: words from 0, counts, and runs of entries of one document (from 1)."""

    pieces: Pieces
    documents: np.ndarray
    lengths: np.ndarray
    last_document: int
    last_word: int
    ordered: bool  # documents never go back, words go up inside them

    def pointers(self, n_documents: int) -> np.ndarray:
        """Where the entries of each document start and end, for entries in order."""
        out = np.zeros(n_documents + 1, dtype=np.int64)
        np.add.at(out, self.documents, self.lengths)
        np.cumsum(out, out=out)
        return out


@dataclass
class _Runs:
    documents: list[np.ndarray] = field(default_factory=list)
    lengths: list[np.ndarray] = field(default_factory=list)

    def joined(self) -> tuple[np.ndarray, np.ndarray]:
        none = np.empty(0, dtype=np.int32)
        return np.concatenate([none, *self.documents]), np.concatenate([none, *self.lengths])


def parse(
    stream: BinaryIO,
    first: bytes,
    line: int,
    source: Path_,
    header: tuple[int, ...] | None,
    pieces: Pieces,
) -> Entries:
    """All entries of a stream whose next line has number `line`; `first` was read already."""
    from ...kernels import parse as kernel

    most = (min(header[0], LARGEST), min(header[1], LARGEST)) if header else (LARGEST, LARGEST)
    limits = np.array([*most, LARGEST])
    state = np.zeros(kernel.SIZE, dtype=np.int64)
    state[[kernel.GROUPED, kernel.SORTED]] = 1
    numbers = np.zeros(3, dtype=np.int64)
    swift = int(sys.byteorder == "little")
    runs = _Runs()
    buffer = _Buffer(stream, first)
    indices, counts, documents, lengths = (np.empty(0, dtype=np.int32) for _ in range(4))
    while end := buffer.fill(source, line):
        room = end // 6 + 1  # the shortest entry takes six bytes
        if room > indices.size:
            indices, counts, documents, lengths = (np.empty(room, np.int32) for _ in range(4))
        kernel.parse_lines(
            buffer.text, buffer.words, end, swift, limits, state, numbers, indices, counts,
            documents, lengths,
        )  # fmt: skip
        found, blank = int(state[kernel.ENTRIES]), int(state[kernel.BLANK])
        line += found + blank
        if state[kernel.FAULT]:
            _drain(stream, source, line)
            raise ValueError(_fault(buffer.line_at(int(state[kernel.AT])), line, limits, source))
        pieces.add(indices[:found], counts[:found], int(state[kernel.LARGEST]))
        runs.documents.append(documents[: state[kernel.RUNS]].copy())
        runs.lengths.append(lengths[: state[kernel.RUNS]].copy())
    ordered = bool(state[kernel.GROUPED] and state[kernel.SORTED])
    return Entries(
        pieces, *runs.joined(), int(state[kernel.LAST_DOCUMENT]), int(state[kernel.LAST_WORD]),
        ordered,
    )  # fmt: skip


class _Buffer:
    """Whole lines of a stream, a block at a time, with what is left over moved to the front."""

    def __init__(self, stream: BinaryIO, first: bytes) -> None:
        self._stream = stream
        self._filled = len(first)
        self._used = 0
        self._allocate(BLOCK + len(first))
        self.text[: len(first)] = np.frombuffer(first, dtype=np.uint8)

    def _allocate(self, size: int) -> None:
        self.text = np.zeros(size + PAD, dtype=np.uint8)
        # the 64-bit word that starts at every byte
        self.words = np.lib.stride_tricks.as_strided(
            self.text[:8].view(np.uint64), shape=(size + PAD - 7,), strides=(1,), writeable=False
        )

    def fill(self, source: Path_, line: int) -> int:
        """The end of the whole lines that are now in `text`; 0 when there are no more."""
        rest = self._filled - self._used
        self.text[:rest] = self.text[self._used : self._filled].copy()
        self._filled, self._used = rest, 0
        while True:
            room = self.text[self._filled : self.text.size - PAD].data
            try:
                count = self._stream.readinto(room)  # type: ignore[attr-defined]
            except spoiled() as error:
                raise damaged(source, error, f" after line {line - 1}") from error
            self._filled += count
            if not count:
                break
            end = self._last_end()
            if end:
                self._used = end
                return end
            if self._filled > LONGEST:
                raise ValueError(
                    f"{source}, line {line}: longer than {LONGEST} bytes; not a bag of words"
                )
            self._widen()
        if not bytes(self.text[: self._filled]).strip():
            return 0
        self.text[self._filled] = 10  # the last line has no end; PAD has room for one
        self._used = self._filled
        return self._filled + 1

    def _last_end(self) -> int:
        """Behind the last newline; 0 when there is none."""
        for look in (64, self._filled):  # nearly always in the last bytes
            start = max(self._filled - look, 0)
            found = self.text[start : self._filled].tobytes().rfind(b"\n")
            if found >= 0:
                return start + found + 1
        return 0

    def _widen(self) -> None:
        old = self.text[: self._filled]
        self._allocate(2 * (self.text.size - PAD))
        self.text[: old.size] = old

    def line_at(self, start: int) -> bytes:
        stop = start + int(np.argmax(self.text[start:] == 10))
        return self.text[start:stop].tobytes()


def _drain(stream: BinaryIO, source: Path_, line: int) -> None:
    """A fault in the text may come from a damaged gzip file: its check sum is at the end."""
    try:
        while stream.read(1 << 20):
            pass
    except spoiled() as error:
        raise damaged(source, error, f", first seen in line {line}") from error


def _fault(raw: bytes, line: int, limits: np.ndarray, source: Path_) -> str:
    """What is wrong with a line that is no entry."""
    where = f"{source}, line {line}: "
    for c in raw:
        if c not in b"0123456789 \t\r":
            return f"{where}{chr(c)!r} where a nonnegative integer is expected"
    fields = raw.split()
    if len(fields) != 3:
        return f"{where}{len(fields)} fields instead of `document word count`"
    if max(map(len, fields)) > 18:
        return f"{where}a number of more than 18 digits"
    for what, found, low, limit in zip(
        ("document", "word", "count"), map(int, fields), (1, 1, 0), limits
    ):
        if not low <= found <= limit:
            return f"{where}{what} {found} is outside {low}..{limit}"
    return f"{where}not an entry `document word count`"


def in_order(entries: Entries, source: Path_, draft: Draft | None) -> Entries:
    """The same entries with documents and words in order, those of one place added up."""
    indices, data = entries.pieces.finish()
    order = np.argsort(entries.documents, kind="stable")
    documents, lengths = entries.documents[order], entries.lengths[order].astype(np.int64)
    ends = np.cumsum(entries.lengths, dtype=np.int64)[order]
    out, runs, largest = Pieces(indices.size, draft), _Runs(), 0
    for a, b in _slices(documents, lengths):
        count = lengths[a:b]
        inside = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        at = np.repeat(ends[a:b] - count, count) + inside
        key = np.repeat(documents[a:b].astype(np.int64), count) * (entries.last_word + 1)
        key += indices[at]
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        sums = np.add.reduceat(data[at][order].astype(np.int64), first)
        document, word = np.divmod(key[first], entries.last_word + 1)
        largest = max(largest, int(sums.max()))
        if largest > LARGEST:
            j = int(np.argmax(sums))
            raise ValueError(
                f"{source}: the counts of word {word[j] + 1} in document {document[j]} add up to "
                f"{sums[j]}, more than {LARGEST}"
            )
        out.add(word.astype(np.int32), sums, largest)
        found, times = np.unique(document, return_counts=True)
        runs.documents.append(found)
        runs.lengths.append(times)
    return Entries(out, *runs.joined(), entries.last_document, entries.last_word, True)


def _slices(documents: np.ndarray, lengths: np.ndarray) -> Iterator[tuple[int, int]]:
    """Runs of whole documents with about SLICE entries together."""
    last = np.flatnonzero(np.append(documents[1:] != documents[:-1], True)) + 1  # ends of documents
    total = np.cumsum(lengths)[last - 1]
    a = done = 0
    while a < documents.size:
        i = int(np.searchsorted(total, done + SLICE))
        i = min(i, last.size - 1)
        yield a, int(last[i])
        a, done = int(last[i]), int(total[i])


def csr(indptr: np.ndarray, indices: Any, data: Any, n_words: int) -> Any:
    """The matrix on these arrays; pointers as small as the indices, as SciPy wants them."""
    import scipy.sparse as sp

    if indptr[-1] <= LARGEST:
        indptr = indptr.astype(np.int32)
    return sp.csr_array((data, indices, indptr), shape=(indptr.size - 1, n_words))
