"""UCI bag of words: three header lines (documents, words, entries), then `document word count`.

Ids start at 1. The header may be missing. Every line is checked: a wrong number of fields, an id
out of range or a count too large is told with its line. Documents in order, words in order inside
them, give the matrix in one pass; any other order, and entries that come twice, cost another.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..moments import Moments
from .bagparse import LARGEST, Entries, csr, in_order, parse
from .bytes import Path_, Source, open_bytes, read_names
from .cache import Cache, Draft, Entry, not_kept
from .pieces import Pieces

SLICE = 1 << 18  # entries whose moments are counted together
ROWS = 65535  # whose counts a packed word holds
ROOM = 1 << 20  # documents and words that a header may promise, however few entries there are
RECIPE = "bagofwords"
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]  # indptr, indices, data


def read_bagofwords(source: Path_, names: tuple[str, ...] | None) -> tuple[Any, Any, None]:
    """Documents by words as small unsigned counts (CSR), and the vocabulary beside the file."""
    job = source if isinstance(source, Source) else Source(source)
    beside = None if names is not None else _vocabulary_beside(job)
    vocabulary = names if beside is None else read_names(beside)
    if job.cache is not None:
        job.entry = job.cache.find(job, RECIPE)
    if job.entry is None:
        arrays, facts = _read(job)
    else:
        arrays, facts = _arrays_of(job.entry), job.entry.facts
    n_words = facts["words"]
    if vocabulary is not None and not facts["header"] and len(vocabulary) > n_words:
        n_words = len(vocabulary)
    if vocabulary is not None and len(vocabulary) != n_words:
        raise ValueError(
            f"{beside or 'feature_names'}: {len(vocabulary)} words, but {source} has {n_words}; "
            "pass the vocabulary of this file as feature_names"
        )
    matrix = csr(*arrays, n_words)
    job.moments = _moments(matrix, job.entry)
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


def _read(job: Source) -> tuple[Arrays, dict[str, Any]]:
    """Parse, into the cache when there is one and the source is large enough for it."""
    size = os.stat(job).st_size if str(job) != "-" else 0
    cache: Cache | None = job.cache
    job.fingerprint = cache is not None and 4 * size >= cache.least
    with contextlib.ExitStack() as drafts:
        with open_bytes(job) as stream:
            header, first, line = _header(stream, job)
            # An entry takes a byte at least, however well compressed: a header cannot make us set
            # aside more than that.
            expected = min(header[2], size) if header else size // 5
            wanted = job.fingerprint and cache is not None and 5 * expected >= cache.least
            pieces = Pieces(max(expected, 1), _draft(cache, drafts) if wanted else None)
            entries = parse(stream, first, line, job, header, pieces)
        return _finished(entries, header, job, drafts)


def _finished(
    entries: Entries, header: tuple[int, ...] | None, job: Source, drafts: contextlib.ExitStack
) -> tuple[Arrays, dict[str, Any]]:
    n_documents, n_words = _shape(entries, header, job)
    if not entries.ordered:
        draft = None if entries.pieces.draft is None else _draft(job.cache, drafts)
        entries = in_order(entries, job, draft)
    facts = {"words": n_words, "header": header is not None}
    arrays = (entries.pointers(n_documents), *entries.pieces.finish())
    if entries.pieces.draft is not None:
        arrays = _keep(arrays, entries.pieces.draft, job, facts)
    return arrays, facts


def _draft(cache: Cache | None, drafts: contextlib.ExitStack) -> Draft | None:
    """A new draft that is gone when the stack closes, unless it became an entry."""
    draft = None if cache is None else cache.draft()
    if draft is not None:
        drafts.callback(draft.abandon)
    return draft


def _keep(arrays: Arrays, draft: Draft, job: Source, facts: dict[str, Any]) -> Arrays:
    try:
        draft.put("indptr", arrays[0])
        job.entry = job.cache.keep(draft, job, RECIPE, facts)
        return _arrays_of(job.entry)
    except OSError as error:
        not_kept(job.cache.folder, error)
        return arrays[0], np.array(arrays[1]), np.array(arrays[2])


def _arrays_of(entry: Entry) -> Arrays:
    return np.array(entry.array("indptr")), entry.array("indices"), entry.array("data")


def _moments(matrix: Any, entry: Entry | None) -> Moments | None:
    """Exact moments of the columns; kept with the matrix."""
    if matrix.shape[1] > ROOM + 16 * matrix.nnz:
        return None  # mostly words that never occur: whoever needs them counts them
    name = f"moments-{matrix.shape[1]}"
    kept = None if entry is None else entry.load(name)
    if kept is not None:
        return Moments.from_arrays(kept)
    largest = int(matrix.data.max(initial=0))
    if largest**2 * matrix.nnz < 2**62:
        moments = tallied(matrix)
    else:
        moments = Moments(matrix.shape[1]).add(matrix)
    if entry is not None:
        entry.store(name, moments.arrays())
    return moments


def tallied(matrix: Any) -> Moments:
    """Moments of a canonical matrix of counts whose squares add up in 64 bits."""
    from ...kernels.parse import tally

    n, p = matrix.shape
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    table, high = np.zeros((p, 3), dtype=np.int64), np.zeros(p, dtype=np.int64)
    seen = np.zeros(p, dtype=np.uint16)
    for first in range(0, n, ROWS):
        packed = np.zeros(p, dtype=np.uint64)
        end = int(indptr[min(first + ROWS, n)])
        for start in range(int(indptr[first]), end, SLICE):
            part = slice(start, min(start + SLICE, end))
            tally(indices[part], data[part].astype(np.int32), packed, seen, table, high)
        # one field at a time: what is left in pieces between larger arrays is never given back
        for column, shift in enumerate((0, 20, 40)):
            field = (packed >> np.uint64(shift)) & np.uint64(0xFFFFF if shift < 40 else 0xFFFFFF)
            table[:, column] += field.view(np.int64)
    entries, sums, squares = table.T
    # frexp gives the place of the highest bit
    small = np.frexp(seen.astype(np.float64))[1] - 1
    high = np.where(high > 0, high, np.maximum(small, 0))
    low = np.zeros(p)
    everywhere = np.flatnonzero(entries == n)
    if everywhere.size:
        low[everywhere] = _smallest(everywhere, indices, data, p)
    return Moments.from_arrays(
        {
            "rows": np.array([n, 1, 0]),
            "weight": np.array([np.nan]),
            "low": low,
            "high": high.astype(np.float64),
            "sums": sums[None],
            "squares": squares[None],
        }
    )


def _smallest(columns: np.ndarray, indices: np.ndarray, data: np.ndarray, p: int) -> np.ndarray:
    """The smallest count of words that occur in every document; few do."""
    place = np.full(p, columns.size)
    place[columns] = np.arange(columns.size)
    low = np.full(columns.size + 1, LARGEST)
    for start in range(0, indices.size, SLICE):
        part = slice(start, start + SLICE)
        np.minimum.at(low, place[indices[part]], data[part])
    return low[:-1]


def _shape(entries: Entries, header: tuple[int, ...] | None, source: Path_) -> tuple[int, int]:
    """Documents and words, by the header if there is one and it can be true."""
    total = int(entries.lengths.sum())
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
