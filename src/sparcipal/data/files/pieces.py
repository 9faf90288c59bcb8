"""Column numbers and counts of a sparse matrix, arriving in pieces: kept in files while there is
room on the disk, otherwise in memory.

Counts take one byte each until one needs two or four.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np

from .cache import Column, Draft, not_kept

CHUNK = 1 << 22  # entries copied together


def narrowest(largest: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds counts up to `largest`."""
    for kind in (np.uint8, np.uint16):
        if largest <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.uint32)


class Pieces:
    """Indices and counts, appended to. `expected` entries are set aside when they go to memory.

    When the disk of `draft` is full, what is there is brought into memory, the draft is abandoned
    with a warning, and the work goes on.
    """

    def __init__(self, expected: int, draft: Draft | None) -> None:
        self.draft = draft
        self._expected = expected
        self._memory = _InMemory(expected) if draft is None else None
        self._disk: _OnDisk | None = None
        if draft is not None:
            self._safely(lambda: None)

    def add(self, indices: np.ndarray, counts: np.ndarray, largest: int) -> None:
        """Append; no count of this piece or of those before is above `largest`."""
        if self._memory is None:
            self._safely(lambda: self._disk.add(indices, counts, largest))  # type: ignore[union-attr]
            if self._memory is None:
                return
        self._memory.add(indices, counts, largest)

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """The arrays, or maps of their files."""
        if self._memory is None:
            self._safely(lambda: self._disk.finish())  # type: ignore[union-attr]
        kept: Any = self._disk if self._memory is None else self._memory
        found: tuple[np.ndarray, np.ndarray] = kept.arrays()
        return found

    def _safely(self, step: Any) -> None:
        """A step on the disk; in memory from here on when it fails."""
        draft = self.draft
        if draft is None:
            return
        try:
            if self._disk is None:
                self._disk = _OnDisk(draft)
            step()
        except OSError as error:
            not_kept(draft.folder.parent, error)
            self._memory = _InMemory(self._expected)
            if self._disk is not None:
                self._disk.rescue(self._memory)
            draft.abandon()
            self.draft = self._disk = None


class _InMemory:
    """Arrays that grow; a page set aside costs nothing until it is written."""

    def __init__(self, expected: int) -> None:
        self.count = 0
        self._indices = _set_aside(expected, np.dtype(np.int32))
        self._data = _set_aside(expected, np.dtype(np.uint8))

    def add(self, indices: np.ndarray, counts: np.ndarray, largest: int) -> None:
        end = self.count + indices.size
        if end > self._indices.size:
            self._resize(max(end, self._indices.size + self._indices.size // 2))
        if narrowest(largest).itemsize > self._data.dtype.itemsize:
            self._data = self._moved(self._data, self._indices.size, narrowest(largest))
        self._indices[self.count : end] = indices
        self._data[self.count : end] = counts
        self.count = end

    def _resize(self, size: int) -> None:
        self._indices = self._moved(self._indices, size, self._indices.dtype)
        self._data = self._moved(self._data, size, self._data.dtype)

    def _moved(self, array: np.ndarray, size: int, dtype: np.dtype[Any]) -> np.ndarray:
        new = _set_aside(size, dtype)
        new[: self.count] = array[: self.count]
        return new

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        if self._indices.size > self.count + self.count // 8:
            self._resize(self.count)
        return self._indices[: self.count], self._data[: self.count]


def _set_aside(size: int, dtype: np.dtype[Any]) -> np.ndarray:
    """An empty array. Not NumPy's own: it asks for huge pages, which cost far more than they bring
    to memory that is filled once from front to back."""
    room = max(size * dtype.itemsize, 1)
    private = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
    pages = mmap.mmap(-1, room, flags=private) if private else mmap.mmap(-1, room)
    return np.frombuffer(pages, dtype=dtype, count=size)


class _OnDisk:
    """The files indices.npy and data.npy of a draft; OSError when the disk is full."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.count = 0
        self._indices = draft.column("indices", np.int32)
        # One column per width, joined at the end; the last one grows.
        self._columns = [draft.column("data", np.uint8)]

    def add(self, indices: np.ndarray, counts: np.ndarray, largest: int) -> None:
        kind = narrowest(largest)
        if kind.itemsize > self._columns[-1].dtype.itemsize:
            self._columns.append(self.draft.column(f"data-{kind.itemsize}", kind))
        self._indices.write(indices)
        self._columns[-1].write(counts)
        self.count += indices.size

    def finish(self) -> None:
        self._indices.close()
        if len(self._columns) == 1:
            self._columns[0].close()
            return
        wide = self.draft.column("data-wide", self._columns[-1].dtype)
        for column in self._columns:
            for chunk in _chunks(column):
                wide.write(chunk)
        wide.close()
        for column in self._columns[1:]:
            column.path.unlink()
        wide.path.replace(self._columns[0].path)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return self.draft.array("indices"), self.draft.array("data")

    def rescue(self, memory: _InMemory) -> None:
        """Bring what was added completely into memory."""
        self._indices.abandon()
        for column in self._columns:
            for chunk in _chunks(column):
                indices = self._indices.part(memory.count, chunk.size)
                memory.add(indices, chunk, int(np.iinfo(chunk.dtype).max))


def _chunks(column: Column) -> Iterator[np.ndarray]:
    column.abandon()
    for start in range(0, column.count, CHUNK):
        yield column.part(start, min(CHUNK, column.count - start))
