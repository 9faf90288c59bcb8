"""Files that hold a matrix: svmlight, .npz, .npy, .h5ad."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import frames
from . import bytes as limits
from .bytes import Path_, open_bytes, size_words

PATIENCE = 20.0  # seconds for the structure of a small .h5ad file
Read = tuple[Any, tuple[str, ...] | None, tuple[str, ...] | None]  # matrix, features, samples


def read_svmlight(source: Path_, names: Any, *, n_features: int | None = None) -> Read:
    """The features; the label that starts each line is no feature and is left out."""
    from sklearn.datasets import load_svmlight_file

    if n_features is None and names is not None:
        n_features = len(names)
    with open_bytes(source) as stream:
        try:
            matrix, _ = load_svmlight_file(stream, n_features=n_features)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{source}: not a svmlight file: {error}") from error
    return sp.csr_array(matrix), None, None


def read_npy(source: Path_, names: Any) -> Read:
    """The array stays on disk, read-only, and is paged in as needed."""
    try:
        return np.load(os.fspath(source), mmap_mode="r", allow_pickle=False), None, None
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{source}: not an array of numbers: {error}") from error


def read_npz(source: Path_, names: Any, *, key: str | None = None) -> Read:
    """A sparse matrix saved by SciPy, or one array of a NumPy archive.

    Without `key` the array is the one called X, or the only two-dimensional one. An array of
    strings called feature_names or features names the columns.
    """
    try:
        with open(source, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            _check_ratio(stream, source)
            if key is None and {"format", "data", "shape"} <= set(archive.files):
                stream.seek(0)
                return sp.csr_array(sp.load_npz(stream)), None, None
            key = _the_array(archive, source) if key is None else key
            if key not in archive.files:
                raise ValueError(f"{source}: no array {key!r}; there are {_listed(archive)}")
            matrix = archive[key]
            return matrix, _npz_names(archive, matrix), None
    except (zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{source}: the .npz file is damaged: {error}") from error


def read_h5ad(source: Path_, names: Any, *, layer: str | None = None) -> Read:
    try:
        import anndata
    except ImportError as error:
        raise ValueError(
            f"{source}: .h5ad files need anndata; pip install 'sparcipal[anndata]'"
        ) from error
    try:
        _check_h5(source)
        found = frames.from_anndata(anndata.read_h5ad(os.fspath(source)), layer)
    except OSError as error:  # the words of HDF5 do not name the file
        raise ValueError(f"{source}: damaged, or not h5ad ({error})") from error
    if found[0].dtype.kind not in "biuf":
        raise ValueError(f"{source}: the matrix holds {found[0].dtype} instead of numbers")
    return found


def _check_h5(source: Path_) -> None:
    """What h5check.py has to say of the file, in time, or that it did not survive it."""
    path = os.fspath(source)
    script = Path(__file__).with_name("h5check.py")
    command = [sys.executable, "-P", os.fspath(script), path, str(limits.LARGE), str(limits.RATIO)]
    seconds = PATIENCE + os.path.getsize(path) / 1e7
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"{source}: damaged: the HDF5 library has not found its way through it in "
            f"{seconds:.0f} s"
        ) from None
    if done.returncode < 0:
        raise ValueError(f"{source}: damaged: the HDF5 library crashes on it")
    if done.returncode:
        raise ValueError(f"{source}: {done.stderr.strip()}")


def _check_ratio(stream: Any, source: Path_) -> None:
    """The sizes in the directory of the archive; the arrays are not unpacked for it."""
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
    flat = [name for name in archive.files if archive[name].ndim == 2]
    if len(flat) != 1:
        raise ValueError(
            f"{source}: which array? name one with key=...; there are {_listed(archive)}"
        )
    return str(flat[0])


def _listed(archive: Any) -> str:
    return ", ".join(f"{name!r} {archive[name].shape}" for name in archive.files) or "none"


def _npz_names(archive: Any, matrix: np.ndarray) -> tuple[str, ...] | None:
    for name in ("feature_names", "features"):
        if name in archive.files and matrix.ndim == 2:
            found = archive[name]
            if found.dtype.kind == "U" and found.shape == (matrix.shape[1],):
                return tuple(map(str, found))
    return None
