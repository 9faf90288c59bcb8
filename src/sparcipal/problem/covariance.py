"""The covariance A of a table: exact diagonal, products and submatrices; centring and scaling
implicit.

`Covariance` has several implementations, which the stages need not know. A dense array is centred
once; a sparse matrix keeps its zeros and the mean is subtracted inside every product; a given
matrix is used as it is.

Rounding. Every entry that comes out differs from the one exact arithmetic would give by at most
`error_unit * sqrt(error_weights[i] * error_weights[j])`, so that for a unit x with at most s
nonzeros `|x'(computed - exact)x| <= error_unit * (sum of the s largest error_weights)`: that is
`rounding(s)`.

Units. Inside, everything is multiplied by a power of two, so that the largest variance is about 1
whatever the scale of the data; `unit` turns inside variances back into the user's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..numerics import margins
from ..numerics.eigen import factorises
from ..numerics.margins import TINY, power_of_two, top_sum

# Up to this many features the matrix is formed once: products with it beat passes over the data.
DENSE_LIMIT = 3000
COPIED = 1 << 22  # entries of chosen columns that are copied at once
# Sparse columns whose second moment is this many times their variance are centred entry by entry.
MOSTLY_MEAN = 1000.0
# Means are centred more often where the least weight is below this fraction of the largest.
UNEVEN = 1e-8
# A part of a matrix with at least this many features is not copied.
LARGE_PART = 500


@dataclass(frozen=True)
class Doubt:
    """An entry A_ij may be off by unit sqrt(w_i w_j), and A + shift I is positive semidefinite."""

    unit: float = 0.0
    weights: np.ndarray | None = None  # w (p,); the variances when None
    shift: float = 0.0


class Covariance(ABC):
    """A symmetric positive semidefinite p x p matrix that need not exist in memory."""

    n_samples: int | None = None
    diagonal: np.ndarray  # (p,)
    unit: float = 1.0
    error_unit: float = 0.0
    error_weights: np.ndarray  # (p,)
    # A + psd_shift * I is positive semidefinite; 0 for data, proved for a given matrix.
    psd_shift: float = 0.0
    # Features known, not computed, to have zero covariance with everything: constant columns, zero
    # rows.
    inert: np.ndarray  # (p,) bool

    @property
    def n_features(self) -> int:
        return int(self.diagonal.size)

    @abstractmethod
    def matmat(self, Y: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def submatrix(self, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray: ...

    @abstractmethod
    def restrict(self, keep: np.ndarray) -> Covariance: ...

    def forming(self, rows: np.ndarray, cols: np.ndarray) -> float:
        """Estimate the nanoseconds of one core that entries take which are not in memory."""
        return (self.n_samples or 0) / 4 * rows.size * cols.size

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return self.matmat(x[:, None])[:, 0]

    def image(self, support: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return Ax for x with these weights on the support."""
        x = np.zeros(self.n_features)
        x[support] = weights
        return self.matvec(x)

    def columns(self, idx: np.ndarray) -> np.ndarray:
        return self.submatrix(np.arange(self.n_features), np.asarray(idx))

    def dense(self) -> np.ndarray:
        """Return the whole matrix; ask only for p up to DENSE_LIMIT."""
        return self.submatrix(np.arange(self.n_features))

    def factor(self) -> np.ndarray | None:
        """Return F (n x p) with A = F'F, for dense data; None otherwise."""
        return None

    def project(self, Q: np.ndarray) -> Covariance:
        """Return (I - QQ') A (I - QQ') for orthonormal directions Q."""
        return _Projected(self, Q)

    def rounding(self, s: int) -> float:
        return self.error_unit * top_sum(self.error_weights, s) + TINY

    @property
    def doubt(self) -> Doubt:
        return Doubt(self.error_unit, self.error_weights, self.psd_shift)

    def materialise(self) -> Covariance:
        """Return the covariance, with its matrix formed where that is small enough to pay."""
        if isinstance(self, MatrixCovariance) or self.n_features > DENSE_LIMIT:
            return self
        return MatrixCovariance(
            self.dense(), self.unit, self.doubt, n_samples=self.n_samples, inert=self.inert,
            factor=self.factor(),
        )  # fmt: skip


class MatrixCovariance(Covariance):
    """A given (or formed) matrix."""

    def __init__(
        self,
        matrix: np.ndarray,
        unit: float = 1.0,
        doubt: Doubt = Doubt(),
        *,
        n_samples: int | None = None,
        inert: np.ndarray | None = None,
        factor: np.ndarray | None = None,
    ) -> None:
        self.matrix, self._factor = matrix, factor
        self.diagonal = np.ascontiguousarray(np.diagonal(matrix))
        self.unit, self.psd_shift, self.n_samples = unit, doubt.shift, n_samples
        self.error_unit = doubt.unit
        self.error_weights = np.abs(self.diagonal) if doubt.weights is None else doubt.weights
        self.inert = np.logical_not(matrix.any(axis=0)) if inert is None else inert

    def forming(self, rows: np.ndarray, cols: np.ndarray) -> float:
        return 0.0

    def matmat(self, Y: np.ndarray) -> np.ndarray:
        if self._factor is not None and 4 * len(self._factor) < self.n_features:
            return self._factor.T @ (self._factor @ Y)  # of few samples, less to read
        return self.matrix @ Y

    def image(self, support: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return weights @ self.matrix[support]  # rows lie together in memory, columns do not

    def submatrix(self, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        return self.matrix[np.ix_(rows, rows if cols is None else cols)]

    def dense(self) -> np.ndarray:
        return self.matrix

    def factor(self) -> np.ndarray | None:
        return self._factor

    def restrict(self, keep: np.ndarray) -> MatrixCovariance:
        return MatrixCovariance(
            self.submatrix(keep),
            self.unit,
            Doubt(self.error_unit, self.error_weights[keep], self.psd_shift),
            n_samples=self.n_samples,
            factor=None if self._factor is None else self._factor[:, keep],
        )

    def measured_in(self, unit: float) -> MatrixCovariance:
        """Return the same in another unit, a power of two."""
        ratio = self.unit / unit
        doubt = Doubt(self.error_unit, self.error_weights * ratio, self.psd_shift * ratio)
        return MatrixCovariance(
            self.matrix * ratio, unit, doubt, n_samples=self.n_samples, inert=self.inert
        )


class PartCovariance(Covariance):
    """Some features of a large matrix that is not copied for products."""

    def __init__(self, whole: MatrixCovariance, keep: np.ndarray) -> None:
        self.whole, self.keep = whole, keep
        self.diagonal, self.inert = whole.diagonal[keep], whole.inert[keep]
        self.unit, self.psd_shift, self.n_samples = whole.unit, whole.psd_shift, whole.n_samples
        self.error_unit, self.error_weights = whole.error_unit, whole.error_weights[keep]
        self._formed: np.ndarray | None = None

    def forming(self, rows: np.ndarray, cols: np.ndarray) -> float:
        return 0.0

    def matmat(self, Y: np.ndarray) -> np.ndarray:
        padded = np.zeros((self.whole.n_features, Y.shape[1]))
        padded[self.keep] = Y
        return self.whole.matmat(padded)[self.keep]

    def submatrix(self, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        return self.whole.submatrix(self.keep[rows], None if cols is None else self.keep[cols])

    def dense(self) -> np.ndarray:
        if self._formed is None:
            self._formed = self.whole.submatrix(self.keep)
        return self._formed

    def restrict(self, keep: np.ndarray) -> Covariance:
        return PartCovariance(self.whole, self.keep[keep])


class DenseCovariance(Covariance):
    """Y'Y for a dense, centred and scaled Y (n x p)."""

    def __init__(self, Y: np.ndarray, inert: np.ndarray, unit: float, error_unit: float) -> None:
        self.Y, self.inert = Y, inert
        self.n_samples = Y.shape[0]
        self.unit = unit
        self.diagonal = np.einsum("ij,ij->j", Y, Y)
        self.error_unit = error_unit
        self.error_weights = self.diagonal

    def matmat(self, Y: np.ndarray) -> np.ndarray:
        return self.Y.T @ (self.Y @ Y)

    def submatrix(self, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        every = np.arange(self.n_features)
        if cols is None:
            if np.array_equal(rows, every):
                return self.Y.T @ self.Y
            return self._among(rows)
        few, many = (rows, cols) if rows.size <= cols.size else (cols, rows)
        left, step = self.Y[:, few], max(1, COPIED // len(self.Y))
        if np.array_equal(many, every):
            out = left.T @ self.Y
        else:
            out = np.empty((few.size, many.size))
            for start in range(0, many.size, step):
                out[:, start : start + step] = left.T @ self.Y[:, many[start : start + step]]
        return out if few is rows else np.ascontiguousarray(out.T)

    def _among(self, rows: np.ndarray) -> np.ndarray:
        """Return the covariances of some features; of many, some columns at a time are copied."""
        step = max(1, COPIED // len(self.Y))
        if rows.size <= 4 * step:
            left = self.Y[:, rows]
            return left.T @ left
        out = np.empty((rows.size, rows.size))
        for start in range(0, rows.size, step):
            own = slice(start, start + step)
            left = self.Y[:, rows[own]]
            out[own, own] = left.T @ left
            for first in range(0, start, step):
                before = slice(first, first + step)
                out[own, before] = left.T @ self.Y[:, rows[before]]
                out[before, own] = out[own, before].T
        return out

    def restrict(self, keep: np.ndarray) -> Covariance:
        Y = self.Y.T[keep].T  # `take` into an array would set aside a second one
        return DenseCovariance(Y, self.inert[keep], self.unit, self.error_unit)

    def factor(self) -> np.ndarray:
        return self.Y


class SparseCovariance(Covariance):
    """X'X - mm' for a sparse X (n x p, already divided by sqrt n) and the mean m: X is never
    densified."""

    def __init__(
        self,
        X: sp.csc_array,
        mean: np.ndarray,
        inert: np.ndarray,
        unit: float,
        diagonal: np.ndarray,
        error: tuple[float, np.ndarray],
    ) -> None:
        self.X = X
        self.mean = mean
        self.inert = inert
        self.n_samples = X.shape[0]
        self.unit = unit
        self.diagonal = diagonal
        self.error_unit, self.error_weights = error

    def matmat(self, Y: np.ndarray) -> np.ndarray:
        return self.X.T @ (self.X @ Y) - np.outer(self.mean, self.mean @ Y)

    def forming(self, rows: np.ndarray, cols: np.ndarray) -> float:
        stored = np.diff(self.X.indptr)
        # the products of stored entries, if columns are independent, and an array for the sums
        products = float(stored[rows].sum()) * float(stored[cols].sum()) / self.X.shape[0]
        return 2.0 * products + 30.0 * rows.size * cols.size

    @cached_property
    def _by_rows(self) -> sp.csr_array:
        """The same entries by rows, as a product of few columns with most of them reads them."""
        return self.X.tocsr()

    def submatrix(self, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        if cols is None:
            every = np.array_equal(rows, np.arange(self.n_features))  # whose copy would cost most
            left = self.X if every else self.X[:, rows]
            found = (left.T @ left).toarray()
        else:
            few, many = (rows, cols) if rows.size <= cols.size else (cols, rows)
            left = self.X[:, few].T
            if 2 * many.size > self.n_features:  # most columns: all are read, and none copied
                found = (left @ self._by_rows).toarray()[:, many]
            else:
                found = (left @ self.X[:, many]).toarray()
            found = found if few is rows else np.ascontiguousarray(found.T)
        found -= np.outer(self.mean[rows], self.mean[rows if cols is None else cols])
        return np.asarray(found)

    def restrict(self, keep: np.ndarray) -> Covariance:
        return SparseCovariance(
            self.X[:, keep], self.mean[keep], self.inert[keep], self.unit, self.diagonal[keep],
            (self.error_unit, self.error_weights[keep]),
        )  # fmt: skip


class _Projected(Covariance):
    def __init__(self, inner: Covariance, Q: np.ndarray) -> None:
        self.inner = inner
        self.Q = Q
        self.AQ = inner.matmat(Q)
        self.QAQ = Q.T @ self.AQ
        self.n_samples = inner.n_samples
        self.unit = inner.unit
        correction = 2 * (Q * self.AQ).sum(axis=1) - ((Q @ self.QAQ) * Q).sum(axis=1)
        self.diagonal = np.maximum(inner.diagonal - correction, 0.0)
        # A projected matrix only guides the search for the next component and proves nothing.
        self.error_unit = inner.error_unit
        self.error_weights = inner.error_weights
        self.inert = inner.inert

    def matmat(self, Y: np.ndarray) -> np.ndarray:
        Y = Y - self.Q @ (self.Q.T @ Y)
        Z = self.inner.matmat(Y)
        return Z - self.Q @ (self.Q.T @ Z)

    def submatrix(self, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        cols = rows if cols is None else cols
        cross = self.Q[rows] @ self.AQ[cols].T + self.AQ[rows] @ self.Q[cols].T
        return self.inner.submatrix(rows, cols) - cross + self.Q[rows] @ self.QAQ @ self.Q[cols].T

    def restrict(self, keep: np.ndarray) -> MatrixCovariance:
        return MatrixCovariance(self.submatrix(keep), self.unit)


def covariance_of(
    matrix: Any, *, n_samples: int | None = None, inert: np.ndarray | None = None
) -> MatrixCovariance:
    """Check a given symmetric positive semidefinite matrix and scale it to inside units.

    `n_samples` and the features known to be `inert` are passed on, where they are known.

    Raises ValueError when it is not square, not finite, not symmetric or not positive semidefinite,
    saying by how much.
    """
    if sp.issparse(matrix):
        raise ValueError(
            "covariance is a sparse matrix; pass covariance.toarray(), or sparse data as X"
        )
    if np.ma.is_masked(matrix):
        raise ValueError("covariance is a masked array; fill the masked entries first")
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(
            f"covariance must be a square matrix, got shape {matrix.shape}; "
            "pass a data table as X instead"
        )
    slack = margins.indefinite(np.float32 if matrix.dtype == np.float32 else np.float64)
    A = _as_float64(matrix, "covariance")
    largest = max(float(A.max()), -float(A.min()))
    if largest > 1e300 or 0 < largest < 1e-290:
        raise ValueError(
            f"covariance has its largest entry at {largest:.3g}, near the end of floating point; "
            "multiply it by a constant so that entries lie between 1e-290 and 1e300"
        )
    unit = power_of_two(largest)
    if inert is None:  # before entries can underflow
        inert = np.logical_not(A.any(axis=0) | A.any(axis=1))
    A *= 1.0 / unit
    skew = float((A - A.T).max())
    if skew > slack:
        raise ValueError(
            f"covariance must be symmetric, but entries differ from their mirror image by up to "
            f"{skew * unit:.3g}; pass (A + A.T) / 2 if that is rounding"
        )
    if skew > 0:
        A = (A + A.T) / 2
    shift = proved_psd_shift(A, slack, unit)
    return MatrixCovariance(A, unit, Doubt(shift=shift), n_samples=n_samples, inert=inert)


def covariance_of_data(
    X: Any,
    *,
    center: bool = True,
    scale: bool = False,
    sample_weight: np.ndarray | None = None,
) -> tuple[Covariance, np.ndarray, np.ndarray]:
    """Return covariance (divided by n, or by the sum of weights), column means and column scales of
    a table.

    Means are zero without centring, scales are one without scaling; a constant column is scaled by
    one.
    """
    p = X.shape[1]
    if sample_weight is not None and not sample_weight.all():
        # Samples of weight zero are removed, so that they do not hide constant columns.
        present = sample_weight > 0
        X, sample_weight = (X.tocsr() if sp.issparse(X) else X)[present], sample_weight[present]
    weights = _row_weights(sample_weight)
    largest = _largest(X)
    if largest > 1e150:
        raise ValueError(
            f"X has an entry of size {largest:.3g}, whose square overflows; divide X by a constant "
            "so that entries stay below 1e150"
        )
    build = _sparse_data if sp.issparse(X) else _dense_data
    if scale:
        # Every column is scaled by its own power of two, so that no square over- or underflows.
        exponents = _column_exponents(X)
        covariance, mean, spread = build(X, exponents, 1.0, weights, center, scale)
        spread = np.where(covariance.inert, 1.0, np.ldexp(spread, exponents))
        return covariance, np.ldexp(mean, exponents), spread
    # Constant columns explain nothing, however large they are: they do not set the unit.
    largest = _largest_varying(X) if center else largest
    shrink = power_of_two(largest)
    exponents = np.full(p, int(np.log2(shrink)))
    unit = shrink * shrink
    if unit < 1e-290:
        raise ValueError(
            f"X has no entry larger than {largest:.3g} in a column that varies, so that variances "
            "underflow; multiply X by a constant so that entries reach at least 1e-140"
        )
    covariance, mean, _ = build(X, exponents, unit, weights, center, scale)
    return covariance, mean * shrink, np.ones(p)


def _dense_data(
    X: Any,
    exponents: np.ndarray,
    unit: float,
    weights: np.ndarray | None,
    center: bool,
    scale: bool,
) -> tuple[DenseCovariance, np.ndarray, np.ndarray]:
    n, p = X.shape
    # Entries as they came identify a constant column: scaled, small ones underflow.
    constant = np.equal(X, X[:1]).all(axis=0)
    inert = constant if center else constant & np.equal(X[0], 0)
    Y = np.array(X, dtype=np.float64, order="F", copy=True)
    np.ldexp(Y, -exponents, out=Y)
    mean = np.zeros(p)
    if center:
        mean[constant] = Y[0, constant]
        Y[:, constant] = 0.0
        for _ in range(_centrings(weights)):
            shift = Y.mean(axis=0) if weights is None else weights @ Y
            Y -= shift
            mean += shift
    if weights is None:
        Y /= np.sqrt(n)
    else:
        Y *= np.sqrt(weights)[:, None]
    spread = np.ones(p)
    if scale:
        deviation = np.sqrt(np.einsum("ij,ij->j", Y, Y))
        spread = np.where(deviation > 0, deviation, 1.0)
        Y /= spread
        inert = inert | (deviation == 0)
    return DenseCovariance(Y, inert, unit, margins.dense_products(n)), mean, spread


def _sparse_data(
    X: Any,
    exponents: np.ndarray,
    unit: float,
    weights: np.ndarray | None,
    center: bool,
    scale: bool,
) -> tuple[SparseCovariance, np.ndarray, np.ndarray]:
    n, p = X.shape
    C = sp.csc_array(X, dtype=np.float64, copy=True)
    C.sum_duplicates()
    # Entries, not variances, identify a constant column, because rounding can leave a variance;
    # and entries as they came, because small ones underflow when they are scaled.
    low, high = (f(axis=0).toarray().ravel() for f in (C.min, C.max))
    inert = low == high if center else (low == 0) & (high == 0)
    C.data = np.ldexp(C.data, -np.repeat(exponents, np.diff(C.indptr)))
    if center:
        C = _filled(C, ~inert & _mostly_mean(C, weights))
    removed = _center_full_columns(C, weights) if center else np.zeros(p)
    C.data[np.repeat(inert, np.diff(C.indptr))] = 0.0  # what is left of them is rounding
    mean = np.zeros(p)
    if center:
        mean = np.asarray(C.mean(axis=0) if weights is None else C.T @ weights).ravel()
        # The mean left in a full column is only rounding.
        mean[removed != 0] = 0.0
    entries = C.copy()
    if weights is None:
        C.data /= np.sqrt(n)
    else:
        C.data *= np.sqrt(weights)[C.indices]
    if not scale:
        second = _second_moments(C)
        diagonal = np.where(inert, 0.0, np.maximum(second - mean * mean, 0.0))
        error = margins.sparse_products(n)
        plain = SparseCovariance(C, mean, inert, unit, diagonal, (error, second))
        return plain, mean + removed, np.ones(p)
    spread = _sparse_deviations(entries, mean, weights)
    inert = inert | (spread == 0)  # the deviation underflowed
    spread = np.where(inert, 1.0, spread)
    C.data /= np.repeat(spread, np.diff(C.indptr))
    # Both the entry and the deviations it is divided by carry an error relative to the second
    # moments.
    squares, ones = _second_moments(C) ** 2, np.where(inert, 0.0, 1.0)
    error = margins.scaled_sparse_products(n)
    scaled = SparseCovariance(C, mean / spread, inert, unit, ones, (error, squares))
    return scaled, mean + removed, spread


def _second_moments(C: sp.csc_array) -> np.ndarray:
    return np.asarray(C.multiply(C).sum(axis=0)).ravel()


def _center_full_columns(C: sp.csc_array, weights: np.ndarray | None) -> np.ndarray:
    """Subtract the mean from columns without a zero, in place; return what was subtracted.

    Such a column loses nothing by being centred explicitly, and subtracting the square of a large
    mean later would cancel most digits of its variance.
    """
    n, p = C.shape
    full = np.diff(C.indptr) == n
    removed = np.zeros(p)
    for j in np.flatnonzero(full):
        part = slice(C.indptr[j], C.indptr[j + 1])
        for _ in range(_centrings(weights)):
            column = C.data[part]
            shift = column.mean() if weights is None else column @ weights[C.indices[part]]
            C.data[part] -= shift
            removed[j] += shift
    return removed


def _mostly_mean(C: sp.csc_array, weights: np.ndarray | None) -> np.ndarray:
    """Return the columns whose second moment is nearly the square of the mean, so that X'X - mm'
    would cancel nearly all digits of their variances."""
    mean = np.asarray(C.mean(axis=0) if weights is None else C.T @ weights).ravel()
    variance = _sparse_deviations(C, mean, weights) ** 2
    return variance + mean * mean >= MOSTLY_MEAN * variance


def _filled(C: sp.csc_array, chosen: np.ndarray) -> sp.csc_array:
    """Return the matrix with the zeros of the chosen columns stored."""
    if not chosen.any():
        return C
    n, count = C.shape[0], np.diff(C.indptr)
    indptr = np.append(0, np.cumsum(np.where(chosen, n, count)))
    new, old = np.repeat(chosen, np.diff(indptr)), np.repeat(chosen, count)
    data, indices = np.empty(new.size), np.empty(new.size, dtype=C.indices.dtype)
    data[~new], indices[~new] = C.data[~old], C.indices[~old]
    data[new] = C[:, np.flatnonzero(chosen)].toarray().ravel(order="F")
    indices[new] = np.tile(np.arange(n), int(chosen.sum()))
    return sp.csc_array((data, indices, indptr), shape=C.shape)


def _sparse_deviations(C: sp.csc_array, mean: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return standard deviations without the cancellation of E[x^2] - E[x]^2."""
    n, p = C.shape
    share = np.full(n, 1.0 / n) if weights is None else weights
    column = np.repeat(np.arange(p), np.diff(C.indptr))
    around = share[C.indices] * (C.data - mean[column]) ** 2
    variance = np.bincount(column, around, minlength=p)
    stored = np.bincount(column, share[C.indices], minlength=p)
    missing = np.maximum(1.0 - stored, 0.0)
    count = np.diff(C.indptr)
    if weights is not None:
        # A small difference has lost its digits, so the weights of the zeros are added up.
        for j in np.flatnonzero((missing < 0.5) & (count < n)):
            absent = np.ones(n, dtype=bool)
            absent[C.indices[C.indptr[j] : C.indptr[j + 1]]] = False
            missing[j] = weights[absent].sum()
    missing[count == n] = 0.0
    return np.sqrt(variance + missing * mean**2)


def _centrings(weights: np.ndarray | None) -> int:
    """Return how often to subtract the mean; each time removes the rounding error of the last.

    A column that varies only in rows of little weight needs a more accurate mean.
    """
    even = weights is None or float(weights.min()) >= UNEVEN * float(weights.max())
    return 2 if even else 10


def _row_weights(sample_weight: np.ndarray | None) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weights = sample_weight / sample_weight.max()  # scaled so that their sum does not overflow
    return weights / weights.sum()


def _column_exponents(X: Any) -> np.ndarray:
    """Return per column the exponent of the power of two next above its largest entry."""
    sides = (X.max(axis=0), X.min(axis=0))
    if sp.issparse(X):
        sides = tuple(side.toarray().ravel() for side in sides)
    largest = np.maximum(*(np.abs(np.asarray(side, dtype=np.float64)) for side in sides))
    return np.frexp(largest)[1]


def _largest(X: Any) -> float:
    data = X.data if sp.issparse(X) else X
    if data.size == 0:
        return 0.0
    return float(max(abs(float(data.max())), abs(float(data.min()))))


def _largest_varying(X: Any) -> float:
    """Return the size of the largest entry of a column that is not constant; zero if there is
    none."""
    if 0 in X.shape:
        return 0.0
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    low, high = (np.asarray(side, dtype=np.float64) for side in (low, high))
    sizes = np.maximum(np.abs(low), np.abs(high))
    return float(sizes[low != high].max(initial=0.0))


def _as_float64(matrix: np.ndarray, name: str) -> np.ndarray:
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {matrix.dtype}")
    out = np.array(matrix, dtype=np.float64, order="C")
    if matrix.dtype.kind in "iu":
        rounded = max(int(matrix.max()), -int(matrix.min())) > 2**53
    else:
        rounded = matrix.dtype.itemsize > 8 and bool(((out != matrix) & (matrix == matrix)).any())
    if rounded:
        raise ValueError(
            f"{name} has dtype {matrix.dtype} and entries that float64 cannot hold; convert it "
            "yourself with .astype('float64') if rounding is fine"
        )
    if not np.isfinite(out).all():
        raise ValueError(f"{name} contains NaN or infinity; remove or impute these entries first")
    return out


def check_part(given: Covariance, features: np.ndarray) -> None:
    """Refuse a given matrix unless its part is a covariance beside its own size, not only beside
    that of features which are left out."""
    A, whole = given.submatrix(features), np.linalg.norm(given.dense())
    own = power_of_two(float(np.abs(A).max(initial=0.0)))
    slack = max(margins.indefinite(), given.psd_shift / (10 * max(float(whole), 1e-300)))
    proved_psd_shift(A / own, slack, own * given.unit, "without the excluded features ")


def refuse_negative(given: Covariance, features: np.ndarray) -> None:
    """Name the smallest variance of a given matrix, where none may be negative."""
    j = features[int(np.argmin(given.diagonal[features]))]
    raise ValueError(
        f"covariance has a negative variance, {float(given.diagonal[j]) * given.unit:.3g} in row "
        f"{j}, and what components explain beyond those before them is not negative; exclude that "
        "feature, or set its row and column to zero"
    )


def proved_psd_shift(A: np.ndarray, slack: float, unit: float, where: str = "") -> float:
    """Return a shift for which a Cholesky factorisation proves A + shift I PSD."""
    p = A.shape[0]
    margin = margins.semidefinite(p) * (abs(float(np.trace(A))) + 1.0)
    shift = margin
    while shift <= max(slack * float(np.linalg.norm(A)), 2 * margin):
        shifted = A.copy()
        shifted[np.diag_indices(p)] += shift
        if factorises(shifted):
            # The checker tries other shifts, up to three times the one needed.
            return 4 * shift + margin
        shift *= 10
    low, high = np.linalg.eigvalsh(A)[[0, -1]]
    compared = f" ({100 * low / high:.2g} % of the largest)" if high > 0 else ""
    raise ValueError(
        f"covariance must be positive semidefinite, but {where}its smallest eigenvalue is "
        f"{low * unit:.3g}{compared}; it is not a covariance matrix"
    )
