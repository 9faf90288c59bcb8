"""The checker's own covariance, from the user's data, with plain NumPy and SciPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Question:
    """What the certificate claims to answer; `value` is in the proofs' units."""

    cardinalities: tuple[int, ...]
    nonnegative: bool
    disjoint: bool
    value: float
    total: int | None = None

    @property
    def n_nonzero(self) -> int:
        """Nonzeros of all components together, at most."""
        return sum(self.cardinalities) if self.total is None else self.total

    @property
    def k(self) -> int:
        return len(self.cardinalities)

    @property
    def s_max(self) -> int:
        return max(self.cardinalities)


class CheckedCovariance:
    """Entries of the covariance in the proofs' units, and how far rounding may have moved them."""

    largest = 1.0  # no variance can be larger, in the user's units

    def __init__(
        self,
        left: Any,
        mean: np.ndarray | None,
        unit: float,
        error_unit: float,
        inert: np.ndarray,
    ) -> None:
        # n x p rows already weighted, or the p x p matrix itself when mean is None
        self._left = left
        self._mean = mean
        self.unit = unit
        self.error_unit = error_unit
        self.inert = inert  # features that are constant, or rows that are zero
        if mean is None:
            self.diagonal = np.diagonal(left).copy()
            self.weights = np.abs(self.diagonal)
        else:
            squares = left.multiply(left) if sp.issparse(left) else left * left
            self.weights = np.asarray(squares.sum(axis=0)).ravel()
            self.diagonal = np.where(inert, 0.0, np.maximum(self.weights - mean * mean, 0.0))

    @property
    def p(self) -> int:
        return int(self.diagonal.size)

    @property
    def given(self) -> bool:
        return self._mean is None

    @property
    def doubt(self) -> float:
        """By how much the variances of features that were dropped may be off, in all."""
        return 0.0

    def submatrix(self, rows: Any, cols: Any = None) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.intp)
        same = cols is None
        cols = rows if same else np.asarray(cols, dtype=np.intp)
        if self._mean is None:
            return self._left[np.ix_(rows, cols)].copy()
        a = self._left[:, rows]
        b = a if same else self._left[:, cols]
        product = a.T @ b
        if sp.issparse(product):
            product = product.toarray()
        return product - np.outer(self._mean[rows], self._mean[cols])

    def dense(self) -> np.ndarray:
        return self.submatrix(np.arange(self.p))

    def gram(self) -> np.ndarray | None:
        """The n x n matrix with the same nonzero eigenvalues, for dense data."""
        if self._mean is None or sp.issparse(self._left) or self._mean.any():
            return None
        return self._left @ self._left.T

    def restrict(self, kept: np.ndarray) -> CheckedCovariance:
        """The same on some features, when the others are constant; ValueError when they are not."""
        others = np.ones(self.p, dtype=bool)
        others[kept] = False
        if np.unique(kept).size != kept.size or not self.inert[others].all():
            raise ValueError("a feature that varies was left out")
        square = self._mean is None
        left = self._left[np.ix_(kept, kept)] if square else self._left[:, kept]
        mean = None if self._mean is None else self._mean[kept]
        part = CheckedCovariance(left, mean, self.unit, self.error_unit, self.inert[kept])
        part.diagonal, part.weights = self.diagonal[kept], self.weights[kept]
        return part

    def in_range(self) -> bool:
        """Whether in these units no sum overflows and what underflow hides is next to nothing."""
        small = self.unit <= 8 * self.largest or (self.largest == 0 and self.unit == 1.0)
        return bool(small and np.abs(self.diagonal).max() <= 2.0**40)

    def rounding(self, s: int) -> float:
        """At most this much of a unit s-sparse quadratic form is rounding."""
        largest = np.sort(self.weights)[::-1][:s]
        return self.error_unit * float(largest.sum()) + 1e-290


def covariance_of(matrix: Any, unit: float) -> CheckedCovariance:
    A = np.asarray(matrix, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not np.isfinite(A).all():
        raise ValueError("covariance must be a square matrix of finite numbers")
    A = A / unit
    if not np.isfinite(A).all():
        raise OverflowError("the unit does not fit the covariance")
    A = (A + A.T) / 2
    covariance = CheckedCovariance(A, None, unit, 0.0, np.logical_not(A.any(axis=0)))
    covariance.largest = float(np.abs(A).max(initial=0.0)) * unit
    return covariance


def covariance_of_data(
    X: Any, center: bool, scale: bool, sample_weight: Any, unit: float
) -> tuple[CheckedCovariance, np.ndarray, np.ndarray]:
    """The covariance, the column means and the column scales, as the settings say."""
    X = matrix_of(X)
    share = _shares(sample_weight, X.shape[0])
    if not share.all():
        X, share = (X.tocsr() if sp.issparse(X) else X)[share > 0], share[share > 0]
        X = X.tocsc() if sp.issparse(X) else X
    n, p = X.shape
    low, high = _ranges(X)
    inert = low == high if center else (low == 0) & (high == 0)
    # Powers of two keep squares in range whatever the units: one per column when each is scaled.
    exponents = np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]
    if not scale:
        exponents = np.full(p, int(exponents.max()))
    Z, inner_mean, mean = _centred(X, share, exponents, center)
    if center and not sp.issparse(Z):
        Z[:, inert] = 0.0
    variance = _variances_around(Z, share, inner_mean)
    root = np.sqrt(share)
    Z = sp.csc_array(Z.multiply(root[:, None])) if sp.issparse(Z) else Z * root[:, None]
    error = (4 * n + 40) * EPS
    if not scale:
        # unit = (a power of two)^2 when it comes from data: exact, or covered by the error term
        ratio = float(np.ldexp(1.0, int(exponents[0]))) / np.sqrt(unit)
        covariance = CheckedCovariance(Z * ratio, inner_mean * ratio, unit, error, inert)
        covariance.largest = float(np.maximum(np.abs(low), np.abs(high)).max()) ** 2
        return covariance, np.ldexp(mean, exponents), np.ones(p)
    constant = inert | (variance == 0)
    spread = np.where(constant, 1.0, np.sqrt(variance))
    inverse = np.where(constant, 0.0, 1.0 / spread)
    Z = sp.csc_array(Z.multiply(inverse[None, :])) if sp.issparse(Z) else Z * inverse
    covariance = CheckedCovariance(Z, inner_mean * inverse, 1.0, 3 * error, inert)
    covariance.weights = covariance.weights**2 / np.maximum(covariance.diagonal, 1e-300)
    covariance.weights[constant] = 0.0
    return covariance, np.ldexp(mean, exponents), np.ldexp(spread, exponents)


def _shares(sample_weight: Any, n: int) -> np.ndarray:
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"sample_weight must be {n} finite numbers that are not negative")
    if not weights.any():
        raise ValueError("sample_weight is zero for every sample")
    weights = weights / weights.max()
    return weights / weights.sum()


def _centred(
    X: Any, share: np.ndarray, exponents: np.ndarray, center: bool
) -> tuple[Any, np.ndarray, np.ndarray]:
    """The table in its inner units, the mean still to be subtracted, and the whole mean."""
    p = X.shape[1]
    if not sp.issparse(X):
        Z = np.ldexp(np.asarray(X, dtype=np.float64), -exponents)
        mean = np.zeros(p)
        for _ in range(2 if center else 0):
            shift = share @ Z
            Z = Z - shift
            mean = mean + shift
        return Z, np.zeros(p), mean
    Z = sp.csc_array(X, dtype=np.float64, copy=True)
    column = np.repeat(np.arange(p), np.diff(Z.indptr))
    Z.data = np.ldexp(Z.data, -exponents[column])
    if not center:
        return Z, np.zeros(p), np.zeros(p)
    mean = np.asarray(Z.T @ share).ravel()
    # Columns without a zero are centred as they stand: no zero is lost, and no digit.
    full = np.diff(Z.indptr) == X.shape[0]
    Z.data -= np.where(full, mean, 0.0)[column]
    left = np.where(full, np.asarray(Z.T @ share).ravel(), 0.0)
    Z.data -= left[column]
    mean = mean + left
    return Z, np.where(full, 0.0, mean), mean


def _ranges(X: Any) -> tuple[np.ndarray, np.ndarray]:
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray(), high.toarray()
    return tuple(np.asarray(side, dtype=np.float64).ravel() for side in (low, high))  # type: ignore[return-value]


def _variances_around(Z: Any, share: np.ndarray, mean: np.ndarray) -> np.ndarray:
    if not sp.issparse(Z):
        return share @ Z**2
    column = np.repeat(np.arange(mean.size), np.diff(Z.indptr))
    around = share[Z.indices] * (Z.data - mean[column]) ** 2
    present = np.bincount(column, share[Z.indices], minlength=mean.size)
    variance = np.bincount(column, around, minlength=mean.size)
    return variance + np.maximum(1.0 - present, 0.0) * mean**2


def matrix_of(X: Any) -> Any:
    """The numbers of an array, a sparse matrix, a frame or a table; sparse ones as CSC."""
    part = getattr(X, "X", None)
    X = X if part is None else part
    if sp.issparse(X):
        X = sp.csc_array(X, copy=True)
        X.sum_duplicates()
    else:
        X = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
        if X.dtype == object:
            X = X.astype(np.float64)
    numbers = X.data if sp.issparse(X) else X
    if X.ndim != 2 or numbers.dtype.kind not in "fiub" or not np.isfinite(numbers).all():
        raise ValueError("X must be a two-dimensional table of finite numbers")
    return X


def factorises(matrix: np.ndarray) -> bool:
    """Whether there is a Cholesky factor. LAPACK may give one for entries that are no numbers."""
    if not np.isfinite(matrix).all() or np.diagonal(matrix).min(initial=1.0) <= 0.0:
        return False
    try:
        return bool(np.isfinite(np.linalg.cholesky(matrix)).all())
    except np.linalg.LinAlgError:
        return False


def names_of(X: Any) -> list[str] | None:
    """The feature names a table or frame brings."""
    for attribute in ("feature_names", "column_names", "columns"):
        names = getattr(X, attribute, None)
        if names is not None:
            return [str(name) for name in names]
    return None
