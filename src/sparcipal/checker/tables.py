"""What the user passes to `verify` as X: rows of finite numbers, and feature names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .containers import contents, lasts, names_in, pieces
from .numbers import TABLE, doubles, plain

ENTRIES = 1 << 22  # of a block of rows


@dataclass(frozen=True)
class Source:
    """A table as rows that can be read again: whole (ndarray or CSC) or in blocks."""

    given: Any
    names: tuple[str, ...] | None = None

    def loaded(self) -> Source:
        """Return the same, read for good."""
        return Source(self.whole(), self.names)

    def whole(self, *, gaps: bool = False) -> Any:
        """Return all rows, read once: a dense array or a CSC array of finite numbers; with `gaps`,
        NaN stands for an entry that is missing."""
        given = self.given
        alone = type(given) is np.ndarray
        found = (matrix_of(piece, gaps=gaps) for piece in ([given] if alone else pieces(given)))
        parts = list(found if alone or lasts(given) else map(_lasting, found))
        if not any(min(part.shape) for part in parts):
            raise ValueError("X has no rows or no columns")
        if len(parts) == 1:
            return parts[0]
        if any(sp.issparse(part) for part in parts):
            return sp.csc_array(sp.vstack(parts, format="csc"))
        return np.concatenate(parts)

    def blocks(self) -> Iterator[Any]:
        """Yield the rows in order, some at a time: dense, or CSR."""
        for piece in pieces(self.given):
            # A memory map is brought in block by block, and checked there.
            table: Any = piece if isinstance(piece, np.ndarray) else matrix_of(piece)
            if table.ndim != 2:
                raise ValueError(f"X must be a {TABLE}")
            table = table.tocsr() if sp.issparse(table) else table
            n = table.shape[0]
            width = table.nnz / max(n, 1) if sp.issparse(table) else table.shape[1]
            step = max(1, int(ENTRIES / max(width, 1)))
            for start in range(0, n, step):
                block = matrix_of(table[start : start + step])
                yield block.tocsr() if sp.issparse(block) else block


def _check_pointers(X: Any) -> None:
    """Refuse pointers that are out of order, or beyond the entries: SciPy would follow them."""
    places = X.indptr
    rising = places.size and places[0] == 0 and bool((places[1:] >= places[:-1]).all())
    if not rising or int(places[-1]) > min(X.indices.size, X.data.size):
        raise ValueError("X is a broken sparse matrix: its index pointers do not increase from 0")


def _lasting(part: Any) -> Any:
    """Return rows that stay as they are when an array that a function gave is filled again."""
    return part if sp.issparse(part) else np.array(part)


def source_of(X: Any) -> Source:
    """Return the rows and the names of X, whatever holds them."""
    if isinstance(X, Source):
        return X
    return Source(X, None if type(X) is np.ndarray else names_in(X))


def matrix_of(X: Any, *, gaps: bool = False) -> Any:
    """Return the numbers of an array, a sparse matrix, a frame or a table; sparse ones as CSC."""
    X = X if type(X) is np.ndarray else contents(X, gaps)
    plain("X", X)
    if sp.issparse(X):
        if X.format in ("csr", "csc"):
            _check_pointers(X)
        X = sp.csc_array(X, copy=True)
        X.sum_duplicates()
        X.data = doubles("X", X.data)
    else:
        X = np.asarray(X)
        if X.ndim == 2:
            X = doubles("X", X, gaps=gaps)
    if X.ndim != 2:
        raise ValueError(f"X must be a {TABLE}")
    return X
