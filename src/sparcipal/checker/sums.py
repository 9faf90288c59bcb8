"""Sums over the rows of a screened table, which are read once.

Integers are summed exactly. Other numbers are summed about shifts near their means, the first
ceil(sqrt n) rows into one sum, the next into another, and these sums are added: no number goes
through more than 2 ceil(sqrt n) + 8 additions, however the rows come in blocks. Where integers come
first and other numbers later, the exact sums are moved to the shifts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .budget import Refused
from .covariance import EPS
from .sparse import absent_weights
from .tables import Source

EXACT = 2**53  # integers below are exact in double precision
WORD = 2**62


@dataclass
class Sums:
    """Of all columns, and products of the kept ones, about `shift`."""

    kept: np.ndarray
    shift: np.ndarray
    exact: bool
    depth: int = 8  # no number goes through more additions
    n: int = 0
    weight: float = 0.0
    sums: Any = 0
    squares: Any = 0
    products: Any = 0
    low: Any = np.inf
    high: Any = -np.inf
    _wide: bool = field(default=False, repr=False)  # sums of squares may not fit a word

    @property
    def error(self) -> float:
        """Relative to the second moments about the shifts; of exact sums only the last steps are
        rounded."""
        return 12 * EPS if self.exact else (6 * self.depth + 40) * EPS

    # --- what the sums say ---

    def constant(self, center: bool) -> np.ndarray:
        if not center:
            return (self.low == 0) & (self.high == 0)
        same = self.low == self.high
        if self.exact:  # the range cannot tell integers beyond 2^53 apart
            same = same & (self.columns(center)[0] == 0)
        return same

    def columns(self, center: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the variances of all columns, how far off they may be, and means."""
        if self.exact:
            n, sums, squares = self.n, self.sums.astype(object), self.squares.astype(object)
            exact = (n * squares - sums * sums) / (n * n) if center else squares / n
            variances = np.asarray(exact, dtype=np.float64)
            return variances, 4 * EPS * variances, np.asarray(sums / n, dtype=np.float64)
        shift, mean, mass = self.shift, self.sums / self.weight, self.squares / self.weight
        variances = mass - mean * mean
        if not center:
            variances = self.squares / self.weight + 2 * shift * mean + shift**2
            mass = 2 * (mass + shift**2)
        return np.maximum(variances, 0.0), self.error * mass, mean + shift

    def matrix(self, center: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the covariance of the kept columns, and the second moments its error is relative
        to."""
        if self.exact:
            return self._exact_matrix(center)
        matrix, mean = self.products / self.weight, self.sums[self.kept] / self.weight
        shift, weights = self.shift[self.kept], np.diagonal(matrix).copy()
        if center:
            return matrix - np.outer(mean, mean), weights
        cross = np.outer(shift, mean)
        return matrix + cross + cross.T + np.outer(shift, shift), 2 * (weights + shift * shift)

    def _exact_matrix(self, center: bool) -> tuple[np.ndarray, np.ndarray]:
        near = np.rint(np.asarray(self.sums[self.kept] / self.n, dtype=np.float64))
        about, second = self._about(near.astype(np.int64) * int(center))
        matrix, mean = (np.asarray(a / self.n, dtype=np.float64) for a in (second, about))
        weights = np.diagonal(matrix).copy()
        return (matrix - np.outer(mean, mean) if center else matrix), weights

    def _about(self, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return exact sums of the kept columns about integers, and of their products."""
        n, size = self.n, float(np.abs(shift).max(initial=0))
        safe = 4 * max(float(np.diagonal(self.products).max()), n * size * size) < WORD
        kind: Any = np.int64 if safe else object
        c, products = shift.astype(kind), self.products.astype(kind)
        s = self.sums[self.kept].astype(kind)
        about = s - n * c
        return about, products - np.multiply.outer(c, about) - np.multiply.outer(s, c)

    def loose(self, center: bool) -> np.ndarray:
        """Return how far off the variances of another honest computation may be: one that sums
        about any number in the range of a column, in any order."""
        low, high = self.low, self.high
        if not center:
            low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        loose = (24 * self.n + 400) * EPS * (high - low) ** 2
        return np.where(self.constant(center), 0.0, loose)

    # --- summing ---

    def add_integers(self, block: Any) -> None:
        """Add exactly, in Python's integers if words are too short."""
        largest = float(max(abs(self.low).max(), abs(self.high).max(), 1.0))
        if self.n * largest * largest >= WORD and not self._wide:
            self._wide = True
            self.sums, self.squares, self.products = (
                np.asarray(a).astype(object) for a in (self.sums, self.squares, self.products)
            )
        kind: Any = object if self._wide else np.int64
        if sp.issparse(block):
            entries = block.data.astype(kind)
            sums, squares = np.zeros((2, block.shape[1]), dtype=kind)
            np.add.at(sums, block.indices, entries)
            np.add.at(squares, block.indices, entries * entries)
        else:
            table = block.astype(kind)
            sums, squares = table.sum(axis=0), (table * table).sum(axis=0)
        self.sums, self.squares = self.sums + sums, self.squares + squares
        # Products of integers by floating point, in pieces whose sums stay below 2^53.
        step = int((EXACT - 1) // (largest * largest))
        chosen = block[:, self.kept]
        for start in range(0, block.shape[0], max(step, 1)):
            part = chosen[start : start + max(step, 1)]
            if step == 0:
                rows = (part.toarray() if sp.issparse(part) else part).astype(kind)
                product: Any = rows.T @ rows
            else:
                rows = part.astype(np.float64)
                product = rows.T @ rows
                product = product.toarray() if sp.issparse(product) else product
                product = product.astype(np.int64).astype(kind)
            self.products = self.products + product

    def add_floats(self, block: Any, weights: np.ndarray | None) -> None:
        """Add rows about the shifts, so few at a time that the tree of additions stays flat."""
        table = block.astype(np.float64)
        share = np.ones(block.shape[0]) if weights is None else weights
        if sp.issparse(table):
            chosen = table[:, self.kept].toarray() - self.shift[self.kept]
            sums, squares = self._sparse(table, share)
            sums[self.kept] = share @ chosen
            squares[self.kept] = share @ chosen**2
        else:
            table = table - self.shift
            chosen = table[:, self.kept]
            heavy = table * share[:, None]
            sums, squares = heavy.sum(axis=0), (heavy * table).sum(axis=0)
        self.sums, self.squares = self.sums + sums, self.squares + squares
        chosen = chosen * np.sqrt(share)[:, None]
        self.products = self.products + chosen.T @ chosen

    def _sparse(self, table: Any, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sum stored entries only; rows without an entry in a column count as zeros, together, by
        their weight."""
        p, shift = table.shape[1], self.shift
        heavy = np.repeat(share, np.diff(table.indptr))
        entries = table.data - shift[table.indices]
        empty = absent_weights(table, share)
        sums = np.bincount(table.indices, heavy * entries, minlength=p) - empty * shift
        squares = np.bincount(table.indices, heavy * entries**2, minlength=p) + empty * shift**2
        return sums, squares

    def take(self, part: Sums) -> None:
        self.sums, self.squares = self.sums + part.sums, self.squares + part.squares
        self.products = self.products + part.products
        self.depth += 1

    def leave_integers(self) -> None:
        """Move exact sums to the shifts c, by way of the integers r next to them.

        For integers x, (x - r)^2 <= 4 (x - c)^2 and (r - c)^2 <= (x - c)^2: the moves round no more
        than a few eps of the second moments about c.
        """
        self.exact = False
        if self.n == 0:
            return
        r = np.rint(np.clip(self.shift, -EXACT, EXACT)).astype(np.int64)
        whole, n = r.astype(object), self.n
        sums = self.sums - n * whole
        squares = self.squares - whole * self.sums - whole * sums
        _, second = self._about(r[self.kept])
        s, q, P = (np.asarray(a, dtype=np.float64) for a in (sums, squares, second))
        left = self.shift - r
        self.sums, self.squares = s - n * left, q - 2 * left * s + n * left**2
        cross = np.outer(left[self.kept], s[self.kept])
        self.products = P - cross - cross.T + n * np.outer(left[self.kept], left[self.kept])
        self.depth += 4

    def count(self, block: Any, weights: np.ndarray | None) -> None:
        self.n += block.shape[0]
        self.weight += block.shape[0] if weights is None else float(weights.sum())
        sides = block.min(axis=0), block.max(axis=0)
        low, high = (s.toarray().ravel() if sp.issparse(s) else s for s in sides)
        self.low = np.minimum(self.low, np.asarray(low, dtype=np.float64))
        self.high = np.maximum(self.high, np.asarray(high, dtype=np.float64))


def summed(
    source: Source, kept: np.ndarray, weights: np.ndarray | None, about: np.ndarray, n: int
) -> Sums:
    """Return the sums over all rows, about n of them, near the means `about`."""
    room = math.isqrt(max(n, 1)) + 1
    total = Sums(kept, about, weights is None, depth=room + 8)
    part, inside = Sums(kept, about, False), 0
    for block, share in weighted(source, weights):
        if block.shape[1] != about.size:
            if total.n:
                raise ValueError("blocks of rows have different numbers of columns")
            raise Refused(f"the data has {block.shape[1]} features, not {about.size}")
        whole = _integers(block) if total.exact else None
        if whole is not None:
            total.count(whole, None)
            total.add_integers(whole)
            continue
        if total.exact:
            total.leave_integers()
        total.count(block, share)
        start = 0
        while start < block.shape[0]:
            stop = min(start + room - inside, block.shape[0])
            part.add_floats(block[start:stop], None if share is None else share[start:stop])
            inside, start = inside + stop - start, stop
            if inside == room:
                total.take(part)
                part, inside = Sums(kept, about, False), 0
    if total.n == 0:
        raise ValueError("X has no rows")
    if inside:
        total.take(part)
    return total


def weighted(source: Source, weights: np.ndarray | None) -> Iterator[tuple[Any, np.ndarray | None]]:
    """Yield blocks of rows of positive weight."""
    start = 0
    for block in source.blocks():
        stop = start + block.shape[0]
        if weights is None:
            if block.shape[0]:
                yield block, None
        else:
            share = weights[start:stop]
            if share.size != block.shape[0]:
                raise ValueError("there is not one sample weight per row")
            if (share > 0).any():
                yield block[share > 0], share[share > 0]
        start = stop
    if weights is not None and weights.size != start:
        raise ValueError("there is not one sample weight per row")


def _integers(block: Any) -> Any:
    """Return the block as integers, which floating-point numbers may be as well; None if it has
    others."""
    if block.dtype.kind in "iub":
        return block
    entries = block.data if sp.issparse(block) else block
    if not ((np.rint(entries) == entries).all() and np.abs(entries).max(initial=0.0) < EXACT):
        return None
    return block.astype(np.int64)
