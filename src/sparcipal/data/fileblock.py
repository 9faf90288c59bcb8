"""Rows of a file that holds arrays, named so that they can be opened where they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .rows import csr_of, memory_map


@dataclass(frozen=True)
class Piece:
    """A contiguous part of a file that holds an array."""

    path: str
    dtype: str
    offset: int
    shape: tuple[int, ...]

    @staticmethod
    def of(array: np.ndarray) -> Piece | None:
        """The piece that an array shows; None for one that is in memory."""
        root = memory_map(array)
        if root is None or root.filename is None or not array.flags.c_contiguous:
            return None
        offset = root.offset + array.ctypes.data - root.ctypes.data
        return Piece(str(root.filename), array.dtype.str, offset, array.shape)

    def open(self) -> np.ndarray:
        if 0 in self.shape:  # nothing to map
            return np.empty(self.shape, dtype=self.dtype)
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


@dataclass(frozen=True)
class FileBlock:
    """Rows of a file, dense or CSR: opened where they are read. They were checked before."""

    parts: tuple[Piece, ...]
    shape: tuple[int, int]
    indptr: Piece | np.ndarray | None = None

    @staticmethod
    def of(X: Any, start: int, stop: int) -> FileBlock | None:
        """Rows of a memory map or of a CSR matrix of memory maps; None for anything else."""
        indptr: Any = None
        if sp.issparse(X):
            low, high = int(X.indptr[start]), int(X.indptr[stop])
            arrays, indptr = [X.data[low:high], X.indices[low:high]], X.indptr[start : stop + 1]
            indptr = Piece.of(indptr) or np.array(indptr)
        else:
            arrays = [X[start:stop]]
        parts = tuple(piece for array in arrays if (piece := Piece.of(array)) is not None)
        if len(parts) < len(arrays):
            return None
        return FileBlock(parts, (stop - start, X.shape[1]), indptr)

    def open(self) -> Any:
        arrays = [part.open() for part in self.parts]
        if self.indptr is None:
            return arrays[0]
        indptr = self.indptr.open() if isinstance(self.indptr, Piece) else self.indptr
        data, indices = arrays
        # a slice of the pointers of the whole matrix
        return csr_of(data, indices, indptr - indptr[0], self.shape)
