"""Sums of products of chosen columns: by BLAS where rows are full, pair by pair where they are not.

Exact for integers, as `Moments` are; otherwise about a shift, with a bounded height of the tree of
additions. A `Strip` holds the products of a few columns with all."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas

from .entries import WORD, largest_magnitude, number, signed, stored, summable, words

FEW, ENTRIES = 1 << 18, 1 << 20  # entries of a dense tile: few, unless there are as many sums
# Above this share of nonzeros among the chosen columns, a dense product is faster.
FULL = 0.25
ROWS = 64  # rows of a matrix that are worked on together
# Sums of integers below these are exact in floating point, whatever the order.
SINGLE, DOUBLE = 2**24, 2**53
FEWEST = 4096  # 32-bit sums pay if at least so many rows fit between two carries to 64 bits


class Gram:
    """Sums of products of chosen columns, over blocks of rows; merges like `Moments`.

    Parameters
    ----------
    columns : increasing integers
        Which columns of the blocks. `Moments.gram` makes a Gram that suits the data.
    shift : ndarray, optional
        What is subtracted from each column first: then nothing is summed exactly.
    exponent : int
        Entries are multiplied by this power of two, when not summed exactly.

    Attributes
    ----------
    n_samples : int
    exact : bool
    """

    def __init__(self, columns: Any, shift: np.ndarray | None = None, exponent: int = 0) -> None:
        self.columns = column_numbers(columns)
        m = self.columns.size
        self.shift, self.exponent = shift, int(exponent)
        self.n_samples = 0
        self.exact = shift is None
        kind: Any = np.int64 if self.exact else np.float64
        self.sums, self.second = np.zeros(m, dtype=kind), np.zeros((m, m), dtype=kind)
        self.depth = 0
        self._weight: float | None = None
        self._reach = 0

    def __repr__(self) -> str:
        kind = "exact" if self.exact else "rounded"
        return f"<Gram: {self.n_samples} samples x {self.columns.size} columns, {kind}>"

    def copy_empty(self) -> Gram:
        """Return the same columns of no rows."""
        return Gram(self.columns, self.shift, self.exponent)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Send an empty one without its zeros."""
        if self.n_samples == 0:
            return Gram, (self.columns, self.shift, self.exponent)
        return super().__reduce_ex__(protocol)

    @property
    def weight(self) -> float:
        """The number of rows, or the sum of their weights."""
        return float(self.n_samples) if self._weight is None else self._weight

    def add(self, block: Any, weights: np.ndarray | None = None) -> Self:
        """Count a block of rows, all columns of the table in it."""
        block, weights = summable(block, weights, None)
        if self.columns.size and block.shape[1] <= self.columns[-1]:
            raise ValueError(
                f"a block has {block.shape[1]} columns, but column {self.columns[-1]} is asked for"
            )
        if block.shape[0]:
            self._add_block(block, weights)
        return self

    def merge(self, other: Gram) -> Self:
        """Add the sums over other rows of the same table."""
        same = np.array_equal(self.columns, other.columns) and self.exponent == other.exponent
        if not same or not _same_shift(self.shift, other.shift):
            raise ValueError("sums of different columns, or about different shifts, cannot merge")
        if other.n_samples == 0:
            return self
        if other._weight is not None:
            self._add_weight(other._weight)
        if self.exact and not other.exact:
            self._round()
        self._grow(other._reach)
        self.sums = self.sums + other.sums
        if self.second.dtype == other.second.dtype:
            self.second += other.second
        else:
            self.second = self.second + other.second
        self.n_samples += other.n_samples
        self.depth = max(self.depth, other.depth) + 1
        return self

    def subtract(self, other: Gram) -> Self:
        """Take away the sums over rows that were added before; exact, for integers only."""
        check_exact(self.exact and other.exact)
        n = self.n_samples - other.n_samples
        second = self.second - other.second
        if (
            not np.array_equal(self.columns, other.columns)
            or n < 0
            or np.diagonal(second).min() < 0
        ):
            raise ValueError("the rows that are subtracted were not all added before")
        self.n_samples, self.second, self.sums = n, second, self.sums - other.sums
        return self

    def _grow(self, reach: int) -> None:
        """Make room for sums of products up to `reach` more."""
        self._reach += reach
        if self.exact and self._reach >= WORD:
            self._reach = int(np.diagonal(self.second).max(initial=0)) + reach
            if self._reach >= WORD:
                self.sums, self.second = self.sums.astype(object), self.second.astype(object)

    def _add_weight(self, weight: float) -> None:
        """Add the weight of a block; rows with and without weights are not mixed."""
        if self._weight is None and self.n_samples:
            raise ValueError("rows with and without sample weights cannot be added to one Gram")
        self._weight = (self._weight or 0.0) + weight

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all there is as arrays that `numpy.savez` takes; `from_arrays` is the inverse."""
        rows = np.array([self.n_samples], dtype=np.int64)
        out = {"rows": rows, "columns": self.columns, "sums": self.sums, "second": self.second}
        if self.second.dtype == object:
            return {**out, "sums": words(self.sums), "second": words(self.second)}
        if self.exact:
            return out
        out["rows"] = np.array([self.n_samples, self.depth, self.exponent], dtype=np.int64)
        out["weight"] = np.array([np.nan if self._weight is None else self._weight])
        return out if self.shift is None else {**out, "shift": self.shift}

    @staticmethod
    def from_arrays(arrays: Any) -> Gram:
        exact = np.shape(arrays.get("rows")) == (1,)
        rows = stored(arrays, "rows", np.int64, 1 if exact else 3)
        columns = stored(arrays, "columns", np.intp, None)
        m, kind = columns.size, np.int64 if exact else np.float64
        shift = None if exact or "shift" not in arrays else stored(arrays, "shift", np.float64, m)
        new = Gram(columns, shift, 0 if exact else int(rows[2]))
        new.n_samples = int(rows[0])
        if exact and np.ndim(arrays.get("second")) == 3:
            new.sums = number(stored(arrays, "sums", kind, None, m))
            new.second = number(stored(arrays, "second", kind, None, m, m))
        else:
            new.sums = stored(arrays, "sums", kind, m)
            new.second = stored(arrays, "second", kind, m, m)
        if exact:
            new._reach = int(np.diagonal(new.second).max(initial=0))
        else:
            weight = float(stored(arrays, "weight", np.float64, 1)[0])
            new.exact, new.depth = False, int(rows[1])
            new._weight = None if np.isnan(weight) else weight
        return new

    def _round(self) -> None:
        """Give up exactness: some rows are not integers."""
        if self.exact:
            self.exact, self.depth = False, 2
            self.sums, self.second = self.sums.astype(np.float64), self.second.astype(np.float64)

    def _add_block(self, block: Any, weights: np.ndarray | None) -> None:
        """Add a block (ndarray or canonical CSR) to the sums."""
        if weights is not None:
            self._add_weight(float(weights.sum()))
        if self.exact and (weights is not None or block.dtype.kind == "f"):
            self._round()
        if self.exact:
            self._add_integers(block)
        else:
            self._add_floats(block, weights)
        self.n_samples += block.shape[0]

    @property
    def _step(self) -> int:
        """Rows of a dense tile."""
        m = max(self.columns.size, 1)
        return max(1, min(max(m * m, FEW), ENTRIES) // m)

    def _add_integers(self, block: Any) -> None:
        largest = int(largest_magnitude(block))
        rows = block.shape[0]
        self._grow(largest * largest * rows)
        if largest * largest >= DOUBLE:
            chosen = block[:, self.columns]
            X = (chosen.toarray() if sp.issparse(chosen) else chosen).astype(object)
            self.sums, self.second = self.sums + X.sum(axis=0), self.second + X.T @ X
            return
        if sp.issparse(block) and self._share(block) < FULL:
            self._pairs(block, largest)
            return
        step = self._step
        square = max(largest * largest, 1)
        kind: Any = np.float32 if square * 64 < SINGLE else np.float64
        step = min(step, max(1, ((SINGLE if kind is np.float32 else DOUBLE) - 1) // square))
        for start in range(0, rows, step):
            tile = self._tile(block, start, min(start + step, rows), kind)
            self.sums += tile.sum(axis=0, dtype=np.float64).astype(np.int64)
            self.second += _product(tile).astype(np.int64)

    def _add_floats(self, block: Any, weights: np.ndarray | None) -> None:
        rows, step = block.shape[0], self._step
        shifted = self.shift is not None and bool(self.shift.any())
        if sp.issparse(block) and not shifted and self._share(block) < FULL:
            self._float_pairs(block, weights)
            self.depth = max(self.depth, rows + 8) + 1
            return
        for start in range(0, rows, step):
            tile = self._tile(block, start, min(start + step, rows), np.float64)
            if shifted:
                tile -= self.shift
            np.ldexp(tile, self.exponent, out=tile)
            if weights is None:
                self.sums += tile.sum(axis=0)
            else:
                heavy = weights[start : start + tile.shape[0], None]
                self.sums += (heavy * tile).sum(axis=0)
                tile *= np.sqrt(heavy)
            self.second += _product(tile)
            self.depth = max(self.depth, tile.shape[0] + 8) + 1

    def _float_pairs(self, block: sp.csr_array, weights: np.ndarray | None) -> None:
        m, longest = self.columns.size, int(np.diff(block.indptr).max(initial=0))
        data = np.ldexp(block.data.astype(np.float64), self.exponent)
        place, part = self._place(block.shape[1]), np.zeros((m, m))
        scratch = np.empty(longest)
        if weights is None:
            self.sums += _kernel_pairs(block, data, place, range(block.shape[0]), part, scratch)
        else:
            per_row = np.diff(block.indptr)
            where = place[block.indices]
            heavy = data * np.repeat(weights, per_row)
            self.sums += np.bincount(where[where >= 0], heavy[where >= 0], minlength=m)
            data *= np.repeat(np.sqrt(weights), per_row)
            _kernel_pairs(block, data, place, range(block.shape[0]), part, scratch)
        _add_symmetric(self.second, part)

    def _share(self, block: sp.csr_array) -> float:
        """Estimate how full the chosen columns are, from the first entries of the block."""
        chosen = np.zeros(block.shape[1], dtype=bool)
        chosen[self.columns] = True
        sample = block.indices[: 1 << 16]
        inside = np.count_nonzero(chosen[sample]) / max(sample.size, 1)
        return float(inside * block.nnz / max(block.shape[0] * self.columns.size, 1))

    def _place(self, width: int) -> np.ndarray:
        place = np.full(width, -1, dtype=np.int32)
        place[self.columns] = np.arange(self.columns.size, dtype=np.int32)
        return place

    def _pairs(self, block: sp.csr_array, largest: int) -> None:
        """Add all pairs of entries, row by row; in 32 bits, half the cache, if carries are rare."""
        rows, m = block.shape[0], self.columns.size
        square = max(largest * largest, 1)
        step = (2**31 - 1) // square
        kind: Any = np.int32
        if step < min(FEWEST, rows):
            kind, step = np.int64, (WORD - 1) // square
        place, data = self._place(block.shape[1]), signed(block.data)
        scratch = np.empty(int(np.diff(block.indptr).max(initial=0)), dtype=kind)
        for start in range(0, rows, step):
            part = np.zeros((m, m), dtype=kind)
            some = range(start, min(start + step, rows))
            sums = _kernel_pairs(block, data, place, some, part, scratch)
            self.sums = self.sums + sums
            _add_symmetric(self.second, part)

    def _tile(self, block: Any, start: int, stop: int, kind: Any) -> np.ndarray:
        """Return the chosen columns of some rows as a dense array."""
        if not sp.issparse(block):
            return block[start:stop, self.columns].astype(kind)
        from ..kernels.stream import spread_rows

        tile = np.zeros((stop - start, self.columns.size), dtype=kind)
        place = self._place(block.shape[1])
        spread_rows(block.indptr, block.indices, signed(block.data), place, start, stop, tile)
        return tile


def column_numbers(columns: Any, n_features: int | None = None) -> np.ndarray:
    """Return numbers of columns, increasing and each once; ValueError for anything else."""
    given = np.asarray(columns)
    whole = given.dtype.kind in "iu" or not given.size
    found = given.astype(np.intp) if whole else np.zeros(0, dtype=np.intp)
    if given.ndim != 1 or not whole or (np.diff(found) <= 0).any() or (found < 0).any():
        raise ValueError(
            "columns must be increasing integers from 0 on, each column once; sort them, and pass "
            "places instead of names or a mask"
        )
    if n_features is not None and found.size and found[-1] >= n_features:
        raise ValueError(f"there is no column {found[-1]}: they are 0 to {n_features - 1}")
    return found


def check_exact(exact: bool) -> None:
    """Refuse to subtract sums that are rounded: errors would outgrow what is left."""
    if not exact:
        raise ValueError(
            "only sums of integers without sample weights can be subtracted, since others are "
            "rounded; fit the rows that are left (sparse_pca, or Sums.of to go on from them)"
        )


class Strip:
    """Sums of products of some columns with all, over blocks of rows; merges like `Moments`.

    Parameters
    ----------
    columns : integers
    shift, factor : ndarrays of shape (p,)
        What is subtracted from every column, and the power of two by which it is multiplied then.
    exact : bool
        Whether entries and shifts are integers, all factors one, and all sums of squares about the
        shifts below 2^52. Then (Cauchy-Schwarz) no sum on the way leaves the integers of double
        precision, and nothing is rounded.

    Attributes
    ----------
    weight : float
    cross : ndarray of shape (m, p)
    sums, mass : ndarrays of shape (p,)
        Sums, and sums of squares that are at least as large as any that was rounded.
    """

    def __init__(
        self, columns: np.ndarray, shift: np.ndarray, factor: np.ndarray, exact: bool = False
    ) -> None:
        self.columns, self.shift, self.factor = np.asarray(columns, dtype=np.intp), shift, factor
        self.exact = exact
        self.n_samples, self.weight = 0, 0.0
        self.cross = np.zeros((self.columns.size, shift.size))
        self.sums = np.zeros(shift.size)
        self.mass = np.zeros(shift.size)

    def copy_empty(self) -> Strip:
        return Strip(self.columns, self.shift, self.factor, self.exact)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Send an empty one without its zeros."""
        if self.n_samples == 0:
            return Strip, (self.columns, self.shift, self.factor, self.exact)
        return super().__reduce_ex__(protocol)

    def merge(self, other: Strip) -> Self:
        self.n_samples += other.n_samples
        self.weight += other.weight
        self.cross += other.cross
        self.sums += other.sums
        self.mass += other.mass
        return self

    def add(self, block: Any, weights: np.ndarray | None = None) -> Self:
        block, weights = summable(block, weights, self.shift.size)
        if not sp.issparse(block):
            self._add_dense(block, weights)
        elif self.exact:
            self._add_integers(block.astype(np.float64))
        else:
            self._add_sparse(block.astype(np.float64), weights)
        self.n_samples += block.shape[0]
        self.weight += block.shape[0] if weights is None else float(weights.sum())
        return self

    @property
    def _step(self) -> int:
        """Rows of a dense tile."""
        return max(1, FEW // self.shift.size)

    def _add_dense(self, block: Any, weights: np.ndarray | None = None) -> None:
        """Add rows, sparse or not, some of them at a time."""
        for start in range(0, block.shape[0], self._step):
            part = block[start : start + self._step]
            part = part.toarray() if sp.issparse(part) else part
            tile = np.subtract(part, self.shift, dtype=np.float64)
            if not self.exact:
                tile *= self.factor
            heavy = None if weights is None else weights[start : start + self._step, None]
            self._add_tile(tile, heavy)

    def _add_tile(self, tile: np.ndarray, heavy: np.ndarray | None) -> None:
        weighed = tile if heavy is None else heavy * tile
        # in place: the product of a strip would take as much as the strip does
        chosen = weighed[:, self.columns]
        self.cross = blas.dgemm(1.0, tile.T, chosen, 1.0, self.cross.T, overwrite_c=1).T
        self.sums += weighed.sum(axis=0)
        self.mass += (weighed * tile).sum(axis=0)

    def _add_integers(self, block: sp.csr_array) -> None:
        """Add integers, so few rows at a time that sums about zero are exact, too.

        No sum on the way to those about the shifts exceeds four times the largest sum of squares of
        entries and shifts, by Cauchy and Schwarz.
        """
        rows = block.shape[0]
        squares = np.bincount(block.indices, block.data * block.data, minlength=self.shift.size)
        if 16 * float((squares + rows * self.shift**2).max(initial=0.0)) < DOUBLE:
            sums = self._add_products(block, block, rows, self.shift)
            self.mass += squares - self.shift * (2 * sums - rows * self.shift)
        elif rows > self._step:
            self._add_integers(block[: rows // 2])
            self._add_integers(block[rows // 2 :])
        else:
            self._add_dense(block)

    def _add_sparse(self, block: sp.csr_array, weights: np.ndarray | None) -> None:
        """Add stored entries; the mass counts those and the shifts, since their sums cancel."""
        block.data *= self.factor[block.indices]
        shift = self.shift * self.factor
        weighed = block if weights is None else sp.csr_array(block.multiply(weights[:, None]))
        rows = block.shape[0] if weights is None else float(weights.sum())
        self._add_products(block, weighed, rows, shift)
        squares = np.bincount(block.indices, block.data * weighed.data, minlength=shift.size)
        self.mass += 2 * (squares + rows * shift**2)

    def _add_products(
        self, block: sp.csr_array, weighed: sp.csr_array, rows: float, shift: np.ndarray
    ) -> np.ndarray:
        """Add x y - c y - d x + c d for the shifts c and d of x and y, and return the sums of x."""
        sums, own = np.asarray(weighed.sum(axis=0)).ravel(), self.columns
        product = sp.csr_array(weighed[:, own].T @ block)
        product.sum_duplicates()
        row = np.repeat(np.arange(own.size), np.diff(product.indptr))
        self.cross[row, product.indices] += product.data
        if shift.any():  # few counts have a mean of a half or more
            self.cross -= np.outer(shift[own], sums - rows * shift)
            self.cross -= np.outer(sums[own], shift)
        self.sums += sums - rows * shift
        return sums


def _kernel_pairs(
    block: sp.csr_array,
    data: np.ndarray,
    place: np.ndarray,
    rows: range,
    part: np.ndarray,
    scratch: np.ndarray,
) -> np.ndarray:
    from ..kernels.stream import add_pairs

    sums = np.zeros(part.shape[0], dtype=np.int64 if part.dtype.kind == "i" else np.float64)
    column = np.empty(scratch.size, dtype=np.uint32)
    of_rows = block.indptr, block.indices, data, place, rows.start, rows.stop
    add_pairs(*of_rows, part, sums, column, scratch)
    return sums


def _add_symmetric(total: np.ndarray, part: np.ndarray) -> None:
    """Add sums of pairs, each in one of its two places, to both; the diagonal counts once."""
    total += part
    total += part.T
    diagonal = np.diag_indices(part.shape[0])
    total[diagonal] -= part[diagonal]


def _product(tile: np.ndarray) -> np.ndarray:
    """Return tile' tile, exactly symmetric."""
    syrk = blas.ssyrk if tile.dtype == np.float32 else blas.dsyrk
    whole: np.ndarray = syrk(1.0, tile.T)
    for start in range(0, whole.shape[0], ROWS):  # some rows at a time: there is no second matrix
        rows = slice(start, start + ROWS)
        corner = np.triu(whole[rows, rows])
        whole[rows, rows] = corner + np.triu(corner, 1).T
        whole[start + ROWS :, rows] = whole[rows, start + ROWS :].T
    return whole


def _same_shift(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
