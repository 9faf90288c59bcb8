"""UCI bag of words: three header lines (documents, words, entries), then `document word count`.

Ids start at 1. The header may be missing. Every line is checked: a wrong number of fields, an id
out of range or a count too large is reported with its line. A file with its documents in order, and
the words in order inside them, is parsed to the matrix in one pass; any other order and repeated
entries cost two more passes over the parsed arrays: pieces are sorted, and merged.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..checks import Broken
from ..moments import Moments
from ..rows import MatrixRows
from ..table import Table
from .bytes import Path_, Source, damaged, open_bytes, read_names, spoiled
from .cache import Cache, Draft, Entry
from .reader import Parsed, Reader
from .spill import Spill, assemble, pointers, temporary

NAME = "bagofwords"
ROOM = 1 << 20  # documents and words that a header may promise, however few entries there are
BLOCK = 1 << 20  # bytes parsed together
LONGEST = 1 << 16  # bytes of a line
PAD = 32  # bytes after the last line that the parser may look at
LARGEST = 2**31 - 1  # document, word or count
SLICE = 1 << 20  # entries sorted together, if there is room
SORTING = 96  # bytes for each of them


def read_bagofwords(source: Source, names: tuple[str, ...] | None) -> Parsed:
    """Return documents by words as small counts (CSR), and the vocabulary beside the file.

    The cache entry holds the counts only: the vocabulary may change without them.
    """
    beside = None if names is not None else _vocabulary_beside(source)
    vocabulary = names if beside is None else read_names(beside)
    matrix, has_header, entry = _counts(source)
    n_words = matrix.shape[1]
    if vocabulary is not None and not has_header and len(vocabulary) > n_words:
        n_words = len(vocabulary)
        matrix.resize(matrix.shape[0], n_words)
    if vocabulary is not None and len(vocabulary) != n_words:
        raise ValueError(
            f"{beside or 'feature_names'}: {len(vocabulary)} words, but {source} has {n_words}; "
            "pass the vocabulary of this file as feature_names"
        )
    return Parsed(matrix, vocabulary, None, _moments(matrix, entry), entry)


def looks_like_bagofwords(source: Path_) -> bool:
    """Return whether the first four lines are a header and an entry, or all four are entries."""
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


def _counts(source: Source) -> tuple[Any, bool, Entry | None]:
    """Return the matrix, whether the file has a header, and the cache entry: found, made or
    None."""
    cache: Cache | None = source.cache
    entry = None if cache is None else cache.find(source, NAME)
    if entry is not None:
        try:
            return assemble(entry.array, entry.facts), entry.facts["header"], entry
        except MemoryError:
            raise
        except Exception as error:  # of many classes, by what is damaged
            raise entry.damaged(error) from error
    with contextlib.ExitStack() as drafts:
        spill, facts = _parsed(source, drafts)
        entry = spill.keep(source, NAME, facts, {})
        array = spill.without_entry(source) if entry is None else entry.array
        return assemble(array, facts), facts["header"], entry


def _parsed(source: Source, drafts: contextlib.ExitStack) -> tuple[Spill, dict[str, Any]]:
    """Parse, to where the arrays can stay."""
    with open_bytes(source) as stream:
        header, first, line = _header(stream, source)
        # A header cannot make us set aside more than the file can hold: an entry takes a byte at
        # least, however well it is compressed.
        expected = min(header[2], source.size) if header else source.size // 5
        spill = _spill(source, drafts, expected, surely=header is not None)
        entries = parse(stream, first, line, source, header, spill)
    n_documents, n_words = _shape(entries, header, source)
    lengths = np.zeros(n_documents, dtype=np.int64)
    for documents, counts in spill.chunks("documents", "lengths"):
        np.add.at(lengths, documents - 1, counts)
    if entries.ordered:
        spill.drop("documents", "lengths")
    else:
        spill.finish()
        spill, lengths = in_order(entries, lengths, source)
    spill.add("indptr", pointers(lengths))
    spill.finish()
    facts = {"sparse": True, "shape": [n_documents, n_words], "header": header is not None}
    return spill, facts


def _spill(source: Source, drafts: contextlib.ExitStack, expected: int, *, surely: bool) -> Spill:
    """Return where the arrays go: to a draft of the cache when they are large enough for it,
    otherwise to memory, and to files that are mapped once they are more than may be held there.

    Only a header tells before; a file without one may have half as many entries as it could, and
    one that is compressed tells nothing by its size.
    """

    def lasting() -> Draft | None:
        draft: Draft | None = source.cache.draft()
        if draft is not None:
            drafts.callback(draft.abandon)  # unless it became an entry
        return draft

    def mapped() -> Draft | None:
        return temporary(source, drafts)

    count = max(expected, 1)
    if source.hashed and 5 * expected >= source.cache.least:
        draft = lasting()
        if draft is not None:
            return Spill(draft, count, more=lasting)
    large = surely and 5 * expected > source.room
    return Spill(None, count, room=0 if large else source.room, more=mapped)


def _moments(matrix: Any, entry: Entry | None) -> Moments | None:
    """Return exact moments of the columns, stored with the cache entry."""
    if matrix.shape[1] > ROOM + 16 * matrix.nnz:
        return None  # nearly all words never occur: the arrays would be larger than the matrix
    name = f"moments-{matrix.shape[1]}"
    stored = None if entry is None else entry.load(name)
    if stored is not None:
        return Moments.from_arrays(stored)
    try:
        moments = MatrixRows(Table(matrix)).accumulate(Moments(matrix.shape[1]))
    except Broken as error:
        raise error if entry is None else entry.damaged(error) from error
    if entry is not None:
        entry.store(name, moments.arrays())
    return moments


def _header(stream: BinaryIO, source: Source) -> tuple[tuple[int, ...] | None, bytes, int]:
    """Return the three header figures (None without a header), bytes already read, and the next
    line."""
    lines = [stream.readline(1 << 16)]
    if len(lines[0].split()) == 3:
        return None, lines[0], 1
    lines += [stream.readline(1 << 16), stream.readline(1 << 16)]
    figures = [line.split() for line in lines]
    if any(len(parts) != 1 or not parts[0].isdigit() or len(parts[0]) > 18 for parts in figures):
        raise ValueError(
            f"{source}: not a bag of words; it starts with three lines (documents, words, entries) "
            "or with lines `document word count`"
        )
    return tuple(int(parts[0]) for parts in figures), b"", 4


def _shape(entries: Entries, header: tuple[int, ...] | None, source: Source) -> tuple[int, int]:
    """Return the numbers of documents and words: those of the header if there is one and they are
    plausible."""
    total = entries.spill.count("indices")
    if header is None:
        return entries.last_document, entries.last_word
    if header[2] != total:
        raise ValueError(
            f"{source}: the header says {header[2]} entries, the file has {total}: it is cut short "
            "or its header is wrong"
        )
    for what, said in zip(("documents", "words"), header):
        if said > min(LARGEST, ROOM + 1000 * total):
            raise ValueError(
                f"{source}: the header says {said} {what}, but there are only {total} entries: its "
                "header is wrong"
            )
    return header[0], header[1]


# --- lines to entries ---


@dataclass(frozen=True)
class Entries:
    """Parsed entries, spilled: words (`indices`, from 0) and counts (`data`), in runs of so many
    (`lengths`) of one document (`documents`, from 1)."""

    spill: Spill
    last_document: int
    last_word: int
    ordered: bool  # documents in order, and words in order inside them


def _kind(largest: int) -> Any:
    """Return the smallest type of counts: one byte each until one of all so far needs more."""
    kinds = (np.uint8, np.uint16, np.uint32, np.uint64)
    return next(kind for kind in kinds if largest <= np.iinfo(kind).max)


def parse(
    stream: BinaryIO,
    first: bytes,
    line: int,
    source: Source,
    header: tuple[int, ...] | None,
    spill: Spill,
) -> Entries:
    """Parse all entries of a stream whose next line has number `line`; `first` was read already."""
    from ...kernels import parse as kernel

    most = (min(header[0], LARGEST), min(header[1], LARGEST)) if header else (LARGEST, LARGEST)
    limits = np.array([*most, LARGEST])
    state = np.zeros(kernel.SIZE, dtype=np.int64)
    state[[kernel.GROUPED, kernel.SORTED]] = 1
    numbers = np.zeros(3, dtype=np.int64)
    swift = int(sys.byteorder == "little")
    buffer = _Buffer(stream, first)
    indices, counts, documents, lengths = (np.empty(0, dtype=np.int32) for _ in range(4))

    def keep(entries: int, runs: int) -> None:
        spill.add("indices", indices[:entries])
        spill.add("data", counts[:entries], _kind(int(state[kernel.LARGEST])))
        spill.add("documents", documents[:runs])
        spill.add("lengths", lengths[:runs])

    keep(0, 0)  # the arrays exist even without an entry
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
        keep(found, int(state[kernel.RUNS]))
    ordered = bool(state[kernel.GROUPED] and state[kernel.SORTED])
    last_document, last_word = int(state[kernel.LAST_DOCUMENT]), int(state[kernel.LAST_WORD])
    return Entries(spill, last_document, last_word, ordered)


def words_at(text: np.ndarray) -> np.ndarray:
    """Return the 64-bit word that starts at every byte; nothing is copied."""
    return np.lib.stride_tricks.as_strided(
        text[:8].view(np.uint64), shape=(text.size - 7,), strides=(1,), writeable=False
    )


class _Buffer:
    """Whole lines of a stream, a block at a time; the rest of a block is moved to the front."""

    def __init__(self, stream: BinaryIO, first: bytes) -> None:
        self._stream = stream
        self._filled = len(first)
        self._used = 0
        self._allocate(BLOCK + len(first))
        self.text[: len(first)] = np.frombuffer(first, dtype=np.uint8)

    def _allocate(self, size: int) -> None:
        self.text = np.zeros(size + PAD, dtype=np.uint8)
        self.words = words_at(self.text)

    def fill(self, source: Path_, line: int) -> int:
        """Return the end of the whole lines that are now in `text`; 0 when there are no more."""
        rest = self._filled - self._used
        self.text[:rest] = self.text[self._used : self._filled].copy()
        self._filled, self._used = rest, 0
        while True:
            room = self.text[self._filled : self.text.size - PAD].data
            try:
                count = self._stream.readinto(room)  # type: ignore[attr-defined]
            except spoiled() as error:
                where = f" after line {line - 1}" if line > 1 else ""
                raise damaged(source, error, where) from error
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
        """Return the place after the last newline; 0 when there is none."""
        for look in (64, self._filled):  # nearly always among the last bytes
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
    """Read to the end: when a fault in the text comes from a damaged gzip file, the check sum there
    says so."""
    try:
        while stream.read(1 << 20):
            pass
    except spoiled() as error:
        raise damaged(source, error, f", first seen in line {line}") from error


def _fault(raw: bytes, line: int, limits: np.ndarray, source: Path_) -> str:
    """Say what is wrong with a line that is no entry."""
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


# --- entries in any order ---


def in_order(entries: Entries, lengths: np.ndarray, source: Source) -> tuple[Spill, np.ndarray]:
    """Return the words and counts sorted by documents and words, with repeated ones added up, and
    how many each document has; `lengths` says how many it had.

    Pieces are sorted by themselves, then merged, as many documents at a time as there is room for.
    """
    step = int(min(SLICE, max(source.room // SORTING, 1)))
    spill, width, largest = entries.spill, entries.last_word, 0
    pieces, ends = spill.another(spill.count("indices")), [0]
    for key, counts in _keys(spill, width, step):
        key, sums = _added_up(key, counts)
        largest = max(largest, int(sums.max()))
        pieces.add("key", key)
        pieces.add("sum", sums, _kind(largest))
        ends.append(ends[-1] + key.size)
    pieces.finish()
    out = pieces.another(ends[-1])
    spill.discard()
    keys, counts = np.asarray(pieces.array("key")), np.asarray(pieces.array("sum"))
    borders, starts = width * _borders(lengths, step), ends[:-1]
    lengths, largest = np.zeros_like(lengths), 0
    for border in borders:
        stops = [a + int(keys[a:b].searchsorted(border)) for a, b in zip(starts, ends[1:])]
        parts = [slice(a, b) for a, b in zip(starts, stops) if a < b]
        starts = stops
        key, sums = _added_up(*(np.concatenate([x[p] for p in parts]) for x in (keys, counts)))
        document, word = np.divmod(key, width)
        largest = max(largest, int(sums.max()))
        if largest > LARGEST:
            j = int(np.argmax(sums))
            raise ValueError(
                f"{source}: the counts of word {word[j] + 1} in document {document[j]} add up to "
                f"{sums[j]}, more than {LARGEST}"
            )
        out.add("indices", word.astype(np.int32))
        out.add("data", sums, _kind(largest))
        np.add.at(lengths, document - 1, 1)
    return out, lengths


def _keys(spill: Spill, width: int, step: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield documents and words as one number, and counts, about `step` entries at a time."""
    names = ("documents", "lengths", "indices", "data")
    documents, lengths, indices, data = map(spill.array, names)
    run = at = 0
    while run < lengths.size:
        ends = np.cumsum(lengths[run : run + step], dtype=np.int64)
        count = max(int(np.searchsorted(ends, step, side="right")), 1)
        some, stop = slice(run, run + count), at + int(ends[count - 1])
        key = np.repeat(documents[some].astype(np.int64) * width, lengths[some])
        key += indices[at:stop]
        yield key, data[at:stop]
        run, at = run + count, stop


def _added_up(key: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys in order, each once, with the sums of their counts."""
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    return key[first], np.add.reduceat(counts[order].astype(np.int64), first)


def _borders(lengths: np.ndarray, step: int) -> np.ndarray:
    """Return the documents (from 1) before which slices end: a slice has some entries, and no more
    than `step` unless one document has."""
    total = np.cumsum(lengths)
    found, done = [], 0
    while done < total[-1]:
        more = np.searchsorted(total, (done, done + step), side="right")
        count = max(int(more[0]) + 1, int(more[1]))
        found.append(count + 1)
        done = int(total[count - 1])
    return np.array(found, dtype=np.int64)


READER = Reader(
    NAME,
    ("", ".txt"),
    read_bagofwords,
    worth_caching=False,  # the reader looks after its cache entry itself
    prefixes=("docword",),
    recognises=looks_like_bagofwords,
)
