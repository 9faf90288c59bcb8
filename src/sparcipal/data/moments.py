"""First and second moments of columns, summed over blocks of rows in any engine, then merged.

Integers are summed exactly: 64-bit words as long as no sum can leave them, Python's integers
beyond, so that neither the blocks nor the order of merging changes a bit of the result.

Other numbers are summed in double precision about a shift near the data: a row of dense data; of
sparse data the mean of the first rows where more than half of these hold an entry, zero elsewhere.
A sum computed by a tree of additions of height h is off by at most about h eps times the sum of
magnitudes, whatever the tree: `depth` is h and `mass` bounds the magnitudes.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ..numerics import margins
from ..problem import parameters
from .checks import broken
from .entries import WORD, largest_magnitude, number, signed, stored, summable, words
from .products import Gram, check_exact, column_numbers

TILE = 1 << 18  # entries of a dense block worked on together
# Columns with zeros whose squared mean is this many times their variance are summed about the mean.
MOSTLY_MEAN = 1000.0
_SUMS = ("sums", "squares")


class Moments:
    """Number of rows, sums, sums of squares, smallest and largest value of every column.

    `add` takes blocks of rows; `merge` adds the moments of other rows, in any order: with integer
    data the outcome is the same to the last bit.

    Parameters
    ----------
    n_features : int

    Attributes
    ----------
    n_samples : int
        Rows seen.
    exact : bool
        Only integers so far, without weights: all sums are exact.
    low, high : ndarray of shape (n_features,)
        The smallest and the largest value of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from sparcipal import Moments
    >>> left, right = Moments(2).add(np.array([[1, 5], [2, 5]])), Moments(2).add(np.array([[6, 5]]))
    >>> left.merge(right).variances().round(6).tolist()
    [4.666667, 0.0]
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = parameters.integer("n_features", n_features, 0)
        self.n_samples = 0
        self.exact = True
        self.sums: np.ndarray = np.zeros(self.n_features, dtype=np.int64)
        self.squares: np.ndarray = np.zeros(self.n_features, dtype=np.int64)
        self.low = np.full(self.n_features, np.inf)
        self.high = np.full(self.n_features, -np.inf)
        self._reach = 0  # no sum of squares is larger
        # The following describe sums that are not exact.
        self._weight: float | None = None  # of all rows, when they have weights
        # a broadcast zero takes no memory; exact sums do not use it
        self._shift: np.ndarray = np.broadcast_to(0.0, self.n_features)
        self._mass: np.ndarray = self._shift
        self._depth = 0

    def __repr__(self) -> str:
        kind = "exact" if self.exact else "rounded"
        return f"<Moments: {self.n_samples} samples x {self.n_features} features, {kind}>"

    def copy_empty(self) -> Moments:
        """Return moments of no rows, for another part of the same table."""
        return Moments(self.n_features)

    # --- summing ---

    def add(self, block: Any, weights: np.ndarray | None = None) -> Self:
        """Count a block of rows: an array or a sparse matrix with these columns."""
        block, weights = summable(block, weights, self.n_features)
        if block.shape[0] == 0:
            return self
        part = self._of_block(block, weights)
        if not part.exact and not np.isfinite(part.squares).all():
            bad = int(np.argmin(np.isfinite(part.squares)))
            raise ValueError(
                f"column {bad} holds NaN, infinity or numbers whose squares overflow; remove or "
                "impute these entries, or divide by a constant, first"
            )
        return self.merge(part)

    def _of_block(self, block: Any, weights: np.ndarray | None) -> Moments:
        part = Moments(self.n_features)
        part.n_samples = block.shape[0]
        whole = weights is None and block.dtype.kind in "iub"
        largest = largest_magnitude(block)
        if whole and largest * largest * part.n_samples < WORD:
            part._reach = int(largest) ** 2 * part.n_samples
            if sp.issparse(block):
                part._sparse(block, None, None)
            else:
                part._dense_integers(block)
        elif whole:
            part._large_integers(block)
        else:
            part.exact, part._depth = False, part.n_samples + 6
            part._weight = None if weights is None else float(weights.sum())
            # the shift of earlier blocks is used again, so that merging need not move sums
            known = not self.exact and self.n_samples > 0
            if sp.issparse(block):
                part._sparse(block, weights, self._shift if known else None)
            else:
                # a row of little weight may lie far from the others
                row = 0 if weights is None else int(np.argmax(weights))
                part._shift = self._shift if known else np.array(block[row], dtype=np.float64)
                part._dense_floats(block, weights)
            part._mass = part.squares.copy()
        return part

    def _sparse(
        self, block: sp.csr_array, weights: np.ndarray | None, shift: np.ndarray | None
    ) -> None:
        from ..kernels.stream import add_entries

        kind: Any = np.int64 if self.exact else np.float64
        table = np.zeros((self.n_features, 5), dtype=kind)
        table[:, 2] = np.iinfo(np.int64).max if self.exact else np.inf
        table[:, 3] = np.iinfo(np.int64).min if self.exact else -np.inf
        data = signed(block.data)
        bad = add_entries(block.indices, data, table, kind(1))
        if bad >= 0:
            raise broken(f"column index {block.indices[bad]} is not in 0..{self.n_features - 1}")
        self.sums, self.squares = table[:, 0].copy(), table[:, 1].copy()
        stored = table[:, 4] > 0
        self.low[stored], self.high[stored] = table[stored, 2], table[stored, 3]
        zeros = table[:, 4] < block.shape[0]
        self.low[zeros] = np.minimum(self.low[zeros], 0.0)
        self.high[zeros] = np.maximum(self.high[zeros], 0.0)
        if self.exact:
            return
        self._shift = _middle(block) if shift is None else shift
        shifted = bool(self._shift.any())
        if weights is None and not shifted:
            return
        heavy = sp.csr_array(block, dtype=np.float64, copy=shifted)
        if shifted:
            heavy.data -= self._shift[heavy.indices]
        share = np.ones(block.shape[0]) if weights is None else weights
        self.sums = np.asarray(share @ heavy).ravel()
        self.squares = np.asarray(share @ heavy.power(2)).ravel()
        if shifted:
            missing = _missing(block, share, np.flatnonzero(zeros & (self._shift != 0)))
            self.sums -= missing * self._shift
            self.squares += missing * self._shift**2

    def _dense_integers(self, block: np.ndarray) -> None:
        self._range(block)
        for part in tiles(block):
            tile = part.astype(np.int64)
            self.sums += tile.sum(axis=0)
            self.squares += np.einsum("ij,ij->j", tile, tile)

    def _large_integers(self, block: Any) -> None:
        """Sum squares that need more than 64 bits, slowly, in Python's integers."""
        if sp.issparse(block):
            low, high = block.min(axis=0), block.max(axis=0)
            self.low, self.high = (np.asarray(s.todense(), np.float64).ravel() for s in (low, high))
            column, entries = block.indices, block.data.astype(object)
        else:
            self._range(block)
            column = np.tile(np.arange(self.n_features), block.shape[0])
            entries = block.astype(object).ravel()
        self.sums = self.sums.astype(object)
        self.squares = self.squares.astype(object)
        np.add.at(self.sums, column, entries)
        np.add.at(self.squares, column, entries * entries)
        self._reach = int(self.squares.max())

    def _dense_floats(self, block: np.ndarray, weights: np.ndarray | None) -> None:
        self._range(block)
        self.sums, self.squares = np.zeros(self.n_features), np.zeros(self.n_features)
        start = 0
        for part in tiles(block):
            tile = np.subtract(part, self._shift, dtype=np.float64)
            heavy = tile
            if weights is not None:
                heavy = tile * weights[start : start + tile.shape[0], None]
                start += tile.shape[0]
            self.sums += heavy.sum(axis=0)
            self.squares += np.einsum("ij,ij->j", heavy, tile)

    def _range(self, block: np.ndarray) -> None:
        self.low = np.asarray(block.min(axis=0), dtype=np.float64)
        self.high = np.asarray(block.max(axis=0), dtype=np.float64)

    def subtract(self, other: Moments) -> Self:
        """Take away the moments of rows that were counted before, as the oldest ones of a window.

        That is exact, and so for integers without weights only. `low` and `high` then bound the
        values that are left; a column is known to be constant when its variance is zero.
        """
        check_exact(self.exact and other.exact)
        n = self.n_samples - other.n_samples
        if other.n_features != self.n_features or n < 0:
            raise ValueError(
                f"moments of {other.n_samples} rows x {other.n_features} features are no part of "
                f"those of {self.n_samples} x {self.n_features}; subtract rows that were added"
            )
        sums, squares = self.sums - other.sums, self.squares - other.squares
        whole = sums.astype(object)
        spread = n * squares.astype(object) - whole * whole
        if (spread < 0).any() or (n == 0 and sums.any()):
            raise ValueError("the rows that are subtracted were not all added before")
        self.n_samples, self.sums, self.squares = n, sums, squares
        if n == 0:
            self.low, self.high = np.full_like(self.low, np.inf), np.full_like(self.high, -np.inf)
        else:
            still, mean = spread == 0, np.asarray(whole / n, dtype=np.float64)
            self.low = np.where(still, mean, self.low)
            self.high = np.where(still, mean, self.high)
        return self

    def merge(self, other: Moments) -> Self:
        """Add the moments of other rows of the same table."""
        if other.n_features != self.n_features:
            raise ValueError(
                f"moments of {other.n_features} features cannot be merged into those of "
                f"{self.n_features}; they are of different tables"
            )
        if other.n_samples == 0:
            return self
        if self.n_samples and (self._weight is None) != (other._weight is None):
            raise ValueError(
                "moments with and without sample weights cannot be merged; weight all rows, or none"
            )
        if self.n_samples == 0 and not other.exact:
            self._shift = other._shift
        if self.exact and other.exact:
            self._grow(other)
        else:
            self._round()
            other = other.copy()
            other._round()
            other._move(self._shift)
            self._mass = self._mass + other._mass
            self._depth = max(self._depth, other._depth) + 1
            if other._weight is not None:
                self._weight = (self._weight or 0.0) + other._weight
        self.sums = self.sums + other.sums
        self.squares = self.squares + other.squares
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self.n_samples += other.n_samples
        return self

    def copy(self) -> Moments:
        new = Moments(self.n_features)
        new.__dict__.update(self.__dict__)
        return new

    def _grow(self, other: Moments) -> None:
        """Go on with Python's integers if the sums may outgrow 64 bits."""
        self._reach += other._reach
        if self._reach >= WORD:
            self._reach = int(self.squares.max(initial=0)) + int(other.squares.max(initial=0))
        if self._reach >= WORD:
            self.sums, self.squares = self.sums.astype(object), self.squares.astype(object)

    def _round(self) -> None:
        """Give up exactness: other rows are not integers."""
        if not self.exact:
            return
        self.exact = False
        if self.n_samples == 0:
            return
        # Exact sums are moved to the integers next to the means before they are rounded, and stay
        # there: about zero, large means would take the digits of small deviations.
        n, sums, squares = self.n_samples, self.sums.astype(object), self.squares.astype(object)
        middle = np.rint(np.asarray(sums / n, dtype=np.float64)).astype(np.int64)
        c = middle.astype(object)
        self.squares = (squares - 2 * c * sums + n * c * c).astype(np.float64)
        self.sums = (sums - n * c).astype(np.float64)
        self._mass, self._depth = self.squares, 2
        self._shift = middle.astype(np.float64)

    def _move(self, shift: np.ndarray) -> None:
        """Move the sums to another shift."""
        if np.array_equal(shift, self._shift):
            return
        step = self._shift - shift
        n = self.n_samples if self._weight is None else self._weight
        self.squares = self.squares + 2 * step * self.sums + n * step * step
        self.sums = self.sums + n * step
        self._mass = 2 * (self._mass + n * step * step)
        self._depth, self._shift = self._depth + 6, shift

    # --- statistics ---

    @property
    def weight(self) -> float:
        """The number of rows, or the sum of their weights."""
        return float(self.n_samples) if self._weight is None else self._weight

    @property
    def weighted(self) -> bool:
        return self._weight is not None

    @property
    def constant(self) -> np.ndarray:
        """Columns that hold one value only, told by their entries, not by rounding."""
        same = self.low == self.high
        # the range is kept in double precision, which does not distinguish larger integers
        unsure = same & (np.abs(self.high) >= 2.0**53)
        if self.exact and unsure.any():
            sums, squares = (a[unsure].astype(object) for a in (self.sums, self.squares))
            same[unsure] = (self.n_samples * squares == sums * sums).astype(bool)
        return same

    def means(self) -> np.ndarray:
        """Return the column means."""
        inside = np.asarray(self.sums / self.weight, dtype=np.float64)
        return np.where(self.constant, self.low, inside + self._shift)

    def variances(self, center: bool = True) -> np.ndarray:
        """Return column variances (divided by n, or the sum of weights); without centring,
        E[x^2]."""
        if self.exact:
            return self._exact_variances(center)
        total = self.squares / self.weight
        mean = self.sums / self.weight
        if center:
            out = np.where(self.constant, 0.0, total - mean * mean)
        else:
            out = total + 2 * self._shift * mean + self._shift * self._shift
        return np.maximum(out, 0.0)

    def _exact_variances(self, center: bool) -> np.ndarray:
        n, largest = self.n_samples, int(self.squares.max(initial=0))
        # the final sums decide, so that the result does not depend on the order of additions
        kind: Any = np.int64 if n * max(largest, n) < WORD else object
        squares, sums = self.squares.astype(kind), self.sums.astype(kind)
        if not center:
            return np.asarray(squares / n, dtype=np.float64)
        return np.asarray((n * squares - sums * sums) / (n * n), dtype=np.float64)

    def errors(self, center: bool = True) -> np.ndarray:
        """Return how far `variances` may be from what exact arithmetic gives."""
        if self.exact:
            return margins.few() * self.variances(center)
        mass = self._mass / self.weight
        if not center:
            mass = 2 * (mass + self._shift * self._shift)
        # a checker that sums the rows again may use a higher tree of additions
        depth = max(self._depth, margins.height(self.n_samples))
        return np.where(self.constant & center, 0.0, margins.variance(depth) * mass)

    def screen(self, count: int, center: bool = True) -> np.ndarray:
        """Return the `count` columns of largest variance, in increasing order; ties go to the
        first."""
        order = np.argsort(-self.variances(center), kind="stable")
        return np.sort(order[: max(int(count), 0)])

    def gram(self, columns: Any) -> Gram:
        """Return an empty Gram for these columns of the same table: summed exactly, or about the
        means."""
        columns = column_numbers(columns, self.n_features)
        if self.exact:
            return Gram(columns)
        # Zero stays zero in columns that have zeros, so that sparse rows are not filled, unless
        # they have so few that the square of the mean would cancel the variance.
        means, zeros = self.means(), (self.low <= 0.0) & (self.high >= 0.0)
        zeros &= means * means < MOSTLY_MEAN * self.variances()
        shift = np.where(zeros, 0.0, means)[columns]
        largest = float(np.maximum(np.abs(self.low), np.abs(self.high)).max(initial=0.0))
        return Gram(columns, shift, -int(np.frexp(largest)[1]))

    # --- saving ---

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all there is as arrays that `numpy.savez` takes; `from_arrays` is the inverse."""
        weight = np.nan if self._weight is None else self._weight
        out = {
            "rows": np.array([self.n_samples, int(self.exact), self._depth], dtype=np.int64),
            "weight": np.array([weight]),
            "low": self.low,
            "high": self.high,
        }
        if self.exact:
            return {**out, "sums": words(self.sums), "squares": words(self.squares)}
        return {
            **out,
            "sums": self.sums,
            "squares": self.squares,
            "shift": self._shift,
            "mass": self._mass,
        }

    @staticmethod
    def from_arrays(arrays: Any) -> Moments:
        rows, low = stored(arrays, "rows", np.int64, 3), stored(arrays, "low", np.float64, None)
        new = Moments(low.size)
        new.n_samples, new.exact, new._depth = int(rows[0]), bool(rows[1]), int(rows[2])
        weight = float(stored(arrays, "weight", np.float64, 1)[0])
        new._weight = None if np.isnan(weight) else weight
        new.low, new.high = low, stored(arrays, "high", np.float64, low.size)
        if new.exact:
            sums, squares = (stored(arrays, k, np.int64, None, low.size) for k in _SUMS)
            new.sums, new.squares = number(sums), number(squares)
            new._reach = int(new.squares.max(initial=0))
        else:
            new.sums, new.squares = (stored(arrays, k, np.float64, low.size) for k in _SUMS)
            new._shift, new._mass = (
                stored(arrays, k, np.float64, low.size) for k in ("shift", "mass")
            )
        return new


def check_moments(moments: Moments, center: bool, scale: bool) -> None:
    """Refuse moments of which no covariance can be made."""
    n = moments.n_samples
    if n == 0:
        raise ValueError("X has no rows; pass at least one sample")
    if center and n == 1:
        raise ValueError(
            "X has 1 sample, n_samples=1: centring leaves nothing of it; pass at least 2 samples, "
            "or center=False"
        )
    size = np.maximum(np.abs(moments.low), np.abs(moments.high))
    if size.max() > 1e150:
        raise ValueError(
            f"X has an entry of size {size.max():.3g}, whose square overflows; divide X by a "
            "constant so that entries stay below 1e150"
        )
    small = size[(size > 0) & ~(moments.constant & center)] if scale else size.max(keepdims=True)
    if small.size and 0 < small.min() < 1e-140:
        raise ValueError(
            f"X has no entry larger than {small.min():.3g}{' in a column' if scale else ''}, so "
            "that variances underflow; multiply X by a constant so that entries reach at least "
            "1e-140"
        )


def tiles(block: np.ndarray) -> list[np.ndarray]:
    """Cut a dense block into pieces that fit a cache."""
    step = max(1, TILE // max(block.shape[1], 1))
    return [block[start : start + step] for start in range(0, block.shape[0], step)]


def _middle(block: sp.csr_array) -> np.ndarray:
    """Return shifts: the mean of columns with entries in more than half of these rows, or 0."""
    count = np.bincount(block.indices, minlength=block.shape[1])
    total = np.bincount(block.indices, block.data.astype(np.float64), minlength=block.shape[1])
    return np.where(2 * count > block.shape[0], total / np.maximum(count, 1), 0.0)


def _missing(block: sp.csr_array, share: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the weight of the rows without an entry in each of `columns`, zero elsewhere."""
    out = np.zeros(block.shape[1])
    by_column = sp.csc_array(block[:, columns])
    for place, j in enumerate(columns):
        # The weights are added up, because a difference from the total would cancel.
        absent = np.ones(block.shape[0], dtype=bool)
        absent[by_column.indices[by_column.indptr[place] : by_column.indptr[place + 1]]] = False
        out[j] = share[absent].sum()
    return out
