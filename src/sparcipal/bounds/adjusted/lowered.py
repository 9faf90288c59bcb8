"""Bound "adjusted"; statement and proof: docs/methods/adjusted.rst. What is left of a covariance:

    H = B - VV',  V = BY,  B = A + shift I positive semidefinite,

and how far rounding may have moved its entries (docs/methods/rounding.rst).
"""

from __future__ import annotations

import numpy as np

from ...numerics import margins
from ...numerics.margins import SAFETY
from ...problem.covariance import Covariance

MOST_ERROR = 0.1  # relative to variances, up to which products of errors are covered


class Lowered(Covariance):
    """H for Y on some features; `heights` are what the eigenvalues of (I - Y'BY)^-1 are at most."""

    def __init__(self, inner: Covariance, features: np.ndarray, y: np.ndarray) -> None:
        self.inner, self.features, self.y = inner, features, y
        self.shift = SAFETY * inner.psd_shift
        self.n_samples, self.unit, self.inert = inner.n_samples, inner.unit, inner.inert
        self.v = inner.columns(features) @ y
        self.v[features] += self.shift * y
        self.diagonal = inner.diagonal + self.shift - np.square(self.v).sum(axis=1)
        self.error_weights = np.maximum(inner.error_weights, inner.diagonal + self.shift)
        reach = float(np.linalg.norm(np.sqrt(self.error_weights[features]) @ np.abs(y)))
        rounded = margins.lowered(features.size, y.shape[1])
        error = (inner.error_unit + rounded) * reach
        self.error_unit = inner.error_unit + 3 * error + rounded
        self.sound = max(error, inner.error_unit) <= MOST_ERROR
        products = np.abs(y.T @ self.v[features]).sum(axis=1)
        self._products = products + SAFETY * y.shape[1] * reach * (error + rounded)

    @property
    def heights(self) -> np.ndarray | None:
        if not (self.sound and (self._products < 1.0).all()):
            return None
        heights = (1 + SAFETY * margins.claim()) / (1.0 - self._products)
        return np.sort(heights)[::-1]

    def matmat(self, Y: np.ndarray) -> np.ndarray:
        return self.inner.matmat(Y) + self.shift * Y - self.v @ (self.v.T @ Y)

    def submatrix(self, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        cols = rows if cols is None else cols
        found = self.inner.submatrix(rows, cols) - self.v[rows] @ self.v[cols].T
        if self.shift:
            found += self.shift * np.equal.outer(rows, cols)
        return found

    def restrict(self, keep: np.ndarray) -> Covariance:
        raise NotImplementedError("what is left of a covariance is not restricted")
