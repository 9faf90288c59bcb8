"""Arrays that arrive in pieces, and the matrix that they make.

Pieces go to the files of a draft while its disk has room, otherwise to memory: a parsed file
need not fit into memory, and a full disk costs a warning and not the work done so far. The draft is
one of the cache, or a temporary one to which arrays move when they outgrow memory.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import check_pointers
from .bytes import Source
from .cache import Column, Draft, Entry, warn_not_cached
from .reader import Columns, Names, NotInBlocks, Parsed

CHUNK = 1 << 20  # entries copied together


def temporary(source: Source, drafts: contextlib.ExitStack) -> Draft | None:
    """Return a draft for arrays that no entry keeps: in the folder of the cache if there is one,
    otherwise in that of the system. Its files are gone from there when the stack closes; the system
    frees them with the maps of them. None, with a warning, when there can be none."""
    kept = None if source.cache is None else source.cache.draft()
    try:
        folder = Path(tempfile.mkdtemp(prefix="sparcipal-")) if kept is None else kept.folder
    except OSError as error:
        warn_not_cached(Path(tempfile.tempdir or "temporary files"), error)
        return None
    draft = Draft(folder, lasting=False)
    drafts.callback(draft.abandon)
    return draft


class Spill:
    """Named arrays that grow: in the files of a draft, or in memory.

    Parameters
    ----------
    draft : Draft or None
        None for memory.
    expected : int
        So many entries of each array are set aside when they are in memory.
    room : int
        Arrays in memory move to a draft once they take more bytes.
    more : callable, optional
        Returns a new draft, or None; without it nothing moves.
    """

    def __init__(
        self,
        draft: Draft | None,
        expected: int = 0,
        *,
        room: int = 0,
        more: Callable[[], Draft | None] | None = None,
    ) -> None:
        self.draft = draft  # None while the arrays are in memory
        self._expected, self._room, self._more = expected, room, more
        self._parts: dict[str, Column | _InMemory] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._n_files = 0

    def add(self, name: str, piece: np.ndarray, dtype: Any = None) -> None:
        """Append to an array; what is there is converted when `dtype` is wider than before."""
        kind = np.dtype(piece.dtype if dtype is None else dtype)

        def append() -> None:
            if name not in self._parts:
                self._parts[name] = self._new(name, kind)
            elif kind.itemsize > self._parts[name].dtype.itemsize:
                self._rewrite(name, kind)
            self._parts[name].write(piece)

        self._attempt(append)
        if self.draft is None and self._more is not None and self.nbytes > self._room:
            self.draft = self._more()
            self._attempt(self._move)

    def another(self, expected: int) -> Spill:
        """Return one for other arrays: in files where these are, otherwise in memory as far as
        these leave room."""
        if self._more is None:
            return Spill(None, expected)
        if self.draft is not None:
            return Spill(self._more(), expected, room=self._room, more=self._more)
        return Spill(None, expected, room=self._room - self.nbytes, more=self._more)

    def subtract(self, name: str, shift: int) -> None:
        """Take a number from every entry of an array."""
        self._attempt(lambda: self._rewrite(name, self._parts[name].dtype, shift))

    def chunks(self, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield arrays of one length, some entries at a time."""
        parts = [self._parts[name] for name in names]
        for start in range(0, parts[0].count, CHUNK):
            yield tuple(part.part(start, min(CHUNK, part.count - start)) for part in parts)

    def drop(self, *names: str) -> None:
        """Forget arrays that are not finished."""
        for name in names:
            _remove(self._parts.pop(name))

    def discard(self) -> None:
        """Forget everything."""
        self._parts.clear()
        self._drop_draft()

    def finish(self, **shapes: tuple[int, ...]) -> None:
        """Complete the arrays; those that are not flat have their shape here."""
        self._shapes = shapes
        self._attempt(self._close)

    def array(self, name: str) -> np.ndarray:
        """Return a finished array: a map of its file, or in memory."""
        part = self._parts[name]
        if isinstance(part, Column) and self.draft is not None:
            return self.draft.array(name)
        found = part.part(0, part.count)
        return found.reshape(self._shapes.get(name, found.shape))

    def in_memory(self, name: str) -> np.ndarray:
        """Return a finished array that survives its draft."""
        return np.array(self.array(name)) if self.draft is not None else self.array(name)

    def without_entry(self, source: Source) -> Callable[[str], np.ndarray]:
        """Return what gives the arrays where the cache does not keep them: in memory if they fit
        there."""
        return self.in_memory if self.nbytes <= source.room else self.array

    def count(self, name: str) -> int:
        """Return how many entries an array has."""
        return self._parts[name].count

    @property
    def nbytes(self) -> int:
        return sum(part.count * part.dtype.itemsize for part in self._parts.values())

    def keep(
        self, source: Source, recipe: str, facts: dict[str, Any], names: dict[str, Any]
    ) -> Entry | None:
        """Make the draft the cache entry of a source; None when they are more than the cache may
        have, or when the arrays are in memory, which is where they are brought when the disk
        fails."""
        if self.draft is None or not self.draft.lasting:
            return None
        if not source.cache.has_room(source, self.nbytes):
            return None
        # opened before the folder gets another name, which another process may then remove
        maps = {name: self.array(name) for name in self._parts}
        try:
            self.draft.write("names.json", json.dumps(names).encode())
            entry: Entry = source.cache.keep(self.draft, source, recipe, facts)
            return entry
        except OSError as error:
            warn_not_cached(source.cache.folder, error)
            fits = self.nbytes <= source.room
            self._parts = {
                name: _InMemory.of(np.array(array) if fits else array)
                for name, array in maps.items()
            }
            self._drop_draft()
            return None

    # --- one step on the disk or in memory ---

    def _attempt(self, step: Callable[[], None]) -> None:
        """Take a step, which leaves its arrays as they were when it fails. When the disk fails, all
        arrays move to memory and the step is taken there."""
        try:
            step()
        except OSError as error:
            if self.draft is None:
                raise
            warn_not_cached(self.draft.folder.parent, error)
            for name, part in self._parts.items():
                if isinstance(part, Column):
                    part.abandon()
                    memory = _InMemory(part.dtype, max(self._expected, part.count))
                    _copy(part, memory)
                    self._parts[name] = memory
            self._drop_draft()
            step()

    def _drop_draft(self) -> None:
        """Go on in memory."""
        if self.draft is not None:
            self.draft.abandon()
        self.draft = self._more = None

    def _move(self) -> None:
        """Bring arrays from memory to the draft; where there is none, no other is asked for."""
        if self.draft is None:
            self._more = None
            return
        for name, part in self._parts.items():
            if isinstance(part, _InMemory):
                self._rewrite(name, part.dtype)

    def _new(self, name: str, dtype: np.dtype[Any]) -> Column | _InMemory:
        if self.draft is None:
            return _InMemory(dtype, self._expected)
        # An array that is rewritten has two files for a while.
        self._n_files += 1
        return self.draft.column(f"{name}-{self._n_files}", dtype)

    def _rewrite(self, name: str, dtype: np.dtype[Any], shift: int = 0) -> None:
        old, new = self._parts[name], self._new(name, dtype)
        _copy(old, new, shift)
        self._parts[name] = new
        _remove(old)

    def _close(self) -> None:
        for name, part in self._parts.items():
            if isinstance(part, Column):
                part.close(self._shapes.get(name))
                part.rename(name)
            else:
                part.trim()


def _remove(part: Column | _InMemory) -> None:
    if isinstance(part, Column):
        part.abandon()
        part.path.unlink()


def _copy(old: Column | _InMemory, new: Column | _InMemory, shift: int = 0) -> None:
    for start in range(0, old.count, CHUNK):
        piece = old.part(start, min(CHUNK, old.count - start))
        new.write(piece - shift if shift else piece)


class _InMemory:
    """An array that grows in memory, with the methods of `cache.Column`."""

    def __init__(self, dtype: np.dtype[Any], expected: int) -> None:
        self.dtype = dtype
        self.count = 0
        self._room = _set_aside(expected, dtype)

    @staticmethod
    def of(array: np.ndarray) -> _InMemory:
        made = _InMemory(array.dtype, 0)
        made.count, made._room = array.size, array.reshape(-1)
        return made

    def write(self, piece: np.ndarray) -> None:
        end = self.count + piece.size
        if end > self._room.size:
            self._resize(max(end, self._room.size + self._room.size // 2))
        self._room[self.count : end] = piece.ravel()
        self.count = end

    def part(self, start: int, count: int) -> np.ndarray:
        return self._room[start : start + count]

    def trim(self) -> None:
        """Give back room that was not needed."""
        if self._room.size > self.count + self.count // 8:
            self._resize(self.count)

    def _resize(self, size: int) -> None:
        new = _set_aside(size, self.dtype)
        new[: self.count] = self._room[: self.count]
        self._room = new


def _set_aside(size: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Return an empty array whose pages take no memory until they are written.

    NumPy asks the system for huge pages. Filling 300 MB from front to back took 0.20 to 0.22 s of
    CPU time in ordinary pages and 0.17 to 0.71 s in huge ones, which the system first has to find
    (Linux, three runs each).
    """
    room = max(size * dtype.itemsize, 1)
    private = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
    pages = mmap.mmap(-1, room, flags=private) if private else mmap.mmap(-1, room)
    return np.frombuffer(pages, dtype=dtype, count=size)


# --- blocks of rows ---


def collect(
    blocks: Iterator[Parsed | Columns], spill: Spill
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Spill blocks of rows, dense or sparse, one after the other. Returns what `assemble` needs
    besides the arrays, and the names of features and samples."""
    rows = width = 0
    kind: np.dtype[Any] | None = None
    features: Names = None
    samples: list[str] = []
    labels: list[str] = []
    first: Parsed | None = None
    lengths = [np.empty(0, dtype=np.int64)]
    end = Columns(0)
    for block in blocks:
        if isinstance(block, Columns):
            end = block
            continue
        matrix, features = block.matrix, block.features
        if kind not in (None, matrix.dtype):
            raise NotInBlocks(f"{matrix.dtype} after {kind}")
        kind = matrix.dtype
        rows, width = rows + matrix.shape[0], max(width, matrix.shape[1])
        samples += block.samples or ()
        labels += block.labels or ()
        first = block if first is None else first
        if sp.issparse(matrix):
            matrix = sp.csr_array(matrix)
            lengths.append(np.diff(matrix.indptr))
            small = width <= np.iinfo(np.int32).max
            spill.add("indices", matrix.indices, np.int32 if small else np.int64)
            spill.add("data", matrix.data)
        else:
            spill.add("X", matrix)
    sparse = len(lengths) > 1
    if sparse and end.first:
        spill.subtract("indices", end.first)
    shape = (rows, end.total or width)
    if sparse:
        spill.add("indptr", pointers(np.concatenate(lengths)))
        spill.finish()
    else:
        spill.finish(X=shape)
    names: dict[str, Any] = {
        "features": features,
        "samples": tuple(samples) if samples else None,
        "labels": tuple(labels) if labels else None,
        "label_name": None if first is None else first.label_name,
        "notes": () if first is None else first.notes,
        "texts": None if first is None else _listed(first.texts),
    }
    return {"sparse": sparse, "shape": list(shape)}, names


def _listed(texts: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what was said of texts, as JSON holds it."""
    if texts is None or "idf" not in texts:
        return texts
    return {**texts, "idf": texts["idf"].tolist()}


def pointers(lengths: np.ndarray) -> np.ndarray:
    """Return where the entries of each row start and end."""
    out = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def assemble(array: Callable[[str], np.ndarray], facts: dict[str, Any]) -> Any:
    """Return the matrix on arrays that were spilled, which are not copied; ValueError where they
    make none."""
    shape = tuple(facts["shape"])
    if not facts["sparse"]:
        X = array("X")
        if X.shape != shape:
            raise ValueError(f"the array has shape {X.shape}, not {shape}")
        return X
    data, indices, indptr = array("data"), array("indices"), np.array(array("indptr"))
    check_pointers(indptr, indices, data)
    if indptr.shape != (shape[0] + 1,) or not int(indptr[-1]) == indices.size == data.size:
        raise ValueError(f"the pointers are not those of {shape[0]} rows of {data.size} entries")
    # Assigned, as the constructor would copy arrays of some types into memory.
    matrix = sp.csr_array(shape, dtype=data.dtype)
    small = indices.dtype == np.int32 and indptr[-1] <= np.iinfo(np.int32).max
    matrix.data, matrix.indices = data, indices
    matrix.indptr = indptr.astype(np.int32) if small else indptr
    return matrix
