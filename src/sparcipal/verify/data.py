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
        left = self._left[np.ix_(kept, kept)] if self.given else self._left[:, kept]
        mean = None if self._mean is None else self._mean[kept]
        part = CheckedCovariance(left, mean, self.unit, self.error_unit, self.inert[kept])
        part.diagonal, part.weights = self.diagonal[kept], self.weights[kept]
        return part

    def rounding(self, s: int) -> float:
        """At most this much of a unit s-sparse quadratic form is rounding."""
        largest = np.sort(self.weights)[::-1][:s]
        return self.error_unit * float(largest.sum()) + 1e-290


def covariance_of(matrix: Any, unit: float) -> CheckedCovariance:
    A = np.asarray(matrix, dtype=np.float64) / unit
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not np.isfinite(A).all():
        raise ValueError("covariance must be a square matrix of finite numbers")
    A = (A + A.T) / 2
    return CheckedCovariance(A, None, unit, 0.0, np.logical_not(A.any(axis=0)))


def covariance_of_data(
    X: Any, center: bool, scale: bool, sample_weight: Any, unit: float
) -> tuple[CheckedCovariance, np.ndarray, np.ndarray]:
    """The covariance, the column means and the column scales, as the settings say."""
    X = matrix_of(X)
    n, p = X.shape
    if sample_weight is None:
        share = np.full(n, 1.0 / n)
    else:
        share = np.asarray(sample_weight, dtype=np.float64)
        share = share / share.sum()
    # A power of two keeps squares in range whatever the units of the data.
    shrink = 2.0 ** np.ceil(np.log2(max(_largest(X), 1e-300)))
    if sp.issparse(X):
        Z = sp.csc_array(X, dtype=np.float64, copy=True)
        Z.data /= shrink
        mean = np.asarray(Z.T @ share).ravel() if center else np.zeros(p)
        inner_mean = mean
        if center:
            # Columns without a zero are centred as they stand: no zero is lost, and no digit.
            full = np.diff(Z.indptr) == n
            column = np.repeat(np.arange(p), np.diff(Z.indptr))
            Z.data -= np.where(full, mean, 0.0)[column]
            left = np.where(full, np.asarray(Z.T @ share).ravel(), 0.0)
            Z.data -= left[column]
            mean = mean + left
            inner_mean = np.where(full, 0.0, mean)
    else:
        Z = np.asarray(X, dtype=np.float64) / shrink
        mean = np.zeros(p)
        if center:
            first = share @ Z
            Z = Z - first
            second = share @ Z
            Z = Z - second
            mean = first + second
        inner_mean = np.zeros(p)
    low, high = _ranges(X)
    inert = low == high if center else (low == 0) & (high == 0)
    if center and not sp.issparse(Z):
        Z[:, inert] = 0.0
    root = np.sqrt(share)
    Z = sp.csc_array(Z.multiply(root[:, None])) if sp.issparse(Z) else Z * root[:, None]
    spread = np.ones(p)
    error = (4 * n + 40) * EPS
    if scale:
        spread = np.sqrt(_variances_around(X, share, mean * shrink)) / shrink
        constant = inert | (spread == 0)
        inverse = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))
        Z = sp.csc_array(Z.multiply(inverse[None, :])) if sp.issparse(Z) else Z * inverse
        inner_mean = inner_mean * inverse
        spread = np.where(constant, 1.0, spread)
        error *= 3
        covariance = CheckedCovariance(Z, inner_mean, 1.0, error, inert)
        covariance.weights = covariance.weights**2 / np.maximum(covariance.diagonal, 1e-300)
        covariance.weights[constant] = 0.0
        return covariance, mean * shrink, spread * shrink
    # unit = (power of two)^2 when it comes from data, so this is exact; otherwise the error term
    # covers it.
    ratio = shrink / np.sqrt(unit)
    covariance = CheckedCovariance(Z * ratio, inner_mean * ratio, unit, error, inert)
    return covariance, mean * shrink, spread


def _ranges(X: Any) -> tuple[np.ndarray, np.ndarray]:
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray(), high.toarray()
    return np.asarray(low).ravel(), np.asarray(high).ravel()


def _variances_around(X: Any, share: np.ndarray, mean: np.ndarray) -> np.ndarray:
    if not sp.issparse(X):
        return share @ (np.asarray(X, dtype=np.float64) - mean) ** 2
    entries = sp.coo_array(X)
    around = share[entries.row] * (entries.data.astype(np.float64) - mean[entries.col]) ** 2
    present = np.bincount(entries.col, share[entries.row], minlength=mean.size)
    variance = np.bincount(entries.col, around, minlength=mean.size)
    return variance + np.maximum(1.0 - present, 0.0) * mean**2


def matrix_of(X: Any) -> Any:
    """The numbers of an array, a sparse matrix, a frame or a table."""
    for name in ("X", "to_numpy"):
        part = getattr(X, name, None)
        if part is not None:
            X = part() if callable(part) else part
    if not sp.issparse(X):
        X = np.asarray(X)
    numbers = X.data if sp.issparse(X) else X
    if X.ndim != 2 or numbers.dtype.kind not in "fiub" or not np.isfinite(numbers).all():
        raise ValueError("X must be a two-dimensional table of finite numbers")
    return X


def _largest(X: Any) -> float:
    data = X.data if sp.issparse(X) else X
    return float(np.abs(data.astype(np.float64)).max()) if data.size else 0.0
