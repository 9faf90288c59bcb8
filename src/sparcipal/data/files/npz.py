"""Archives .npz of NumPy arrays, or with a sparse matrix saved by SciPy."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import bytes as limits
from .bytes import Path_, size_words
from .reader import Parsed, Reader


def read_npz(source: Path_, names: Any, *, key: str | None = None) -> Parsed:
    """A sparse matrix saved by SciPy, or one array of a NumPy archive.

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
    "npz", (".npz",), read_npz, options={"key": (str,)}, from_pipe=False, worth_caching=False
)
