"""Archives .npz of NumPy arrays, or with a sparse matrix saved by SciPy."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import bytes as limits
from .bytes import Path_, size_words
from .reader import NotInBlocks, Parsed, Reader


def read_npz(source: Path_, names: Any, *, key: str | None = None) -> Parsed:
    """Return a sparse matrix saved by SciPy, or one array of a NumPy archive.

    Without `key` the array is the one called X, or the only two-dimensional one. An array of
    strings called feature_names or features names the columns.
    """
    try:
        with open(source, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            _check_ratio(stream, source)
            if key is None and {"format", "data", "shape"} <= set(archive.files):
                stream.seek(0)
                return Parsed(sp.csr_array(sp.load_npz(stream)))
            key = _the_array(archive, source) if key is None else key
            if key not in archive.files:
                raise ValueError(f"{source}: no array {key!r}; there are {_listed(archive)}")
            matrix = archive[key]
            return Parsed(matrix, _feature_names(archive, matrix))
    except (zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{source}: the .npz file is damaged: {error}") from error


def npz_blocks(source: Path_, names: Any, *, key: str | None = None) -> Iterator[Parsed]:
    """Yield the rows of an array, or of a sparse matrix by rows, unpacked some at a time."""
    with open(source, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
        _check_ratio(stream, source)
        if key is None and {"format", "data", "shape", "indptr"} <= set(archive.files):
            yield from _sparse_blocks(archive, source)
            return
        if key is None:
            flat = [name for name in archive.files if len(_Member(archive, name).shape) == 2]
            key = "X" if "X" in archive.files else flat[0] if len(flat) == 1 else None
        if key is None or key not in archive.files:
            raise NotInBlocks("which array is not known")
        array = _Member(archive, key)
        if len(array.shape) != 2 or array.fortran or array.dtype.kind not in "fiub":
            raise NotInBlocks("not rows of numbers")
        step = max(1, _piece(source) // max(1, array.dtype.itemsize * array.shape[1]))
        for start in range(0, array.shape[0], step):
            count = min(step, array.shape[0] - start)
            rows = array.take(count * array.shape[1]).reshape(count, array.shape[1])
            yield Parsed(rows, _feature_names(archive, rows))


def _sparse_blocks(archive: Any, source: Path_) -> Iterator[Parsed]:
    if archive["format"].item() != b"csr":
        raise NotInBlocks("the matrix is not stored by rows")
    indptr, width = archive["indptr"].astype(np.int64), int(archive["shape"][1])
    data, indices = _Member(archive, "data"), _Member(archive, "indices")
    entries = max(1, _piece(source) // (data.dtype.itemsize + indices.dtype.itemsize))
    start, n = 0, indptr.size - 1
    while start < n:
        stop = int(np.searchsorted(indptr, indptr[start] + entries, side="right")) - 1
        stop = min(max(stop, start + 1), n)
        count = int(indptr[stop] - indptr[start])
        parts = (data.take(count), indices.take(count), indptr[start : stop + 1] - indptr[start])
        yield Parsed(sp.csr_array(parts, shape=(stop - start, width)))
        start = stop


def _piece(source: Path_) -> int:
    """Return how many bytes are unpacked together."""
    limit = source.memory_limit if isinstance(source, limits.Source) else 1 << 30
    return max(1 << 16, limit // 16)


class _Member:
    """An array of an archive, unpacked from its beginning on."""

    def __init__(self, archive: Any, name: str) -> None:
        self._stream = archive.zip.open(f"{name}.npy")
        version = np.lib.format.read_magic(self._stream)
        head = {(1, 0): np.lib.format.read_array_header_1_0}.get(
            version, np.lib.format.read_array_header_2_0
        )
        self.shape, self.fortran, self.dtype = head(self._stream)

    def take(self, count: int) -> np.ndarray:
        """Return the next entries; an EOFError when there are not so many."""
        raw = self._stream.read(count * self.dtype.itemsize)
        if len(raw) != count * self.dtype.itemsize:
            raise EOFError("an array is cut short")
        return np.frombuffer(raw, dtype=self.dtype)


def _numbers(source: Path_) -> int:
    try:
        with zipfile.ZipFile(source) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError):  # `read_npz` says what is wrong
        return 0


def _check_ratio(stream: Any, source: Path_) -> None:
    """Refuse an archive that unpacks to far more than its size, by the sizes in its directory."""
    with zipfile.ZipFile(stream) as archive:
        entries = archive.infolist()
    size = sum(entry.file_size for entry in entries)
    if size > limits.LARGE and size > limits.RATIO * sum(e.compress_size for e in entries):
        raise ValueError(
            f"{source}: the arrays unpack to {size_words(size)}, more than {limits.RATIO} times "
            "their size; save them as .npy if you trust the file"
        )


def _the_array(archive: Any, source: Path_) -> str:
    if "X" in archive.files:
        return "X"
    matrices = [name for name in archive.files if archive[name].ndim == 2]
    if len(matrices) != 1:
        raise ValueError(
            f"{source}: which array? name one with key=...; there are {_listed(archive)}"
        )
    return str(matrices[0])


def _listed(archive: Any) -> str:
    return ", ".join(f"{name!r} {archive[name].shape}" for name in archive.files) or "none"


def _feature_names(archive: Any, matrix: np.ndarray) -> tuple[str, ...] | None:
    for name in ("feature_names", "features"):
        if name in archive.files and matrix.ndim == 2:
            found = archive[name]
            if found.dtype.kind == "U" and found.shape == (matrix.shape[1],):
                return tuple(map(str, found))
    return None


READER = Reader(
    "npz",
    (".npz",),
    read_npz,
    npz_blocks,
    options={"key": (str,)},
    from_pipe=False,
    worth_caching=False,
    numbers=_numbers,
)
