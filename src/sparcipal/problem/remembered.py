"""A covariance that keeps the entries it has formed, for several questions to the same data.

Proofs look at thousands of features outside a core, and proofs of similar questions at nearly the
same ones. What one of them formed serves the others; nothing is formed that no proof asked for.
"""

from __future__ import annotations

import numpy as np

from .covariance import Covariance, MatrixCovariance

LEAST = 200  # features of a square block that is worth keeping
CORE = 50  # features on the shorter side of another block that is
MOST = 4000  # features of the block that is kept, of 128 MB


def remembering(cov: Covariance) -> Covariance:
    """Return the covariance, or one that keeps blocks where the whole matrix is not formed."""
    if isinstance(cov, MatrixCovariance):
        return cov
    return RememberedCovariance(cov, _Block(cov), np.arange(cov.n_features))


class _Block:
    """Entries among some features of the whole covariance; at most MOST features."""

    def __init__(self, whole: Covariance) -> None:
        self.whole = whole
        self.place = np.full(whole.n_features, -1)  # of each feature in the block
        self.features = np.empty(0, dtype=np.intp)
        self.matrix = np.empty((0, 0))

    def holds(self, features: np.ndarray) -> bool:
        return bool((self.place[features] >= 0).all())

    def extend(self, features: np.ndarray) -> None:
        """Let features join the block, as many as there is room for."""
        new = features[self.place[features] < 0][: MOST - self.features.size]
        if not new.size:
            return
        old, every = self.features.size, np.append(self.features, new)
        rows = self.whole.submatrix(new, every)
        matrix = np.empty((every.size, every.size))
        matrix[:old, :old] = self.matrix
        matrix[old:] = rows
        matrix[:old, old:] = rows[:, :old].T
        self.features, self.matrix = every, matrix
        self.place[new] = np.arange(old, every.size)

    def among(self, features: np.ndarray) -> np.ndarray:
        """Return the square block of these features; what does not fit is formed once more."""
        self.extend(features)
        place = self.place[features]
        if (place >= 0).all():
            return np.take(self.matrix[place], place, axis=1)  # faster than both at once
        known, rest = np.flatnonzero(place >= 0), np.flatnonzero(place < 0)
        out = np.empty((features.size, features.size))
        out[np.ix_(known, known)] = self.matrix[np.ix_(place[known], place[known])]
        rows = self.whole.submatrix(features[rest], features)
        out[rest] = rows
        out[:, rest] = rows.T
        return out


class RememberedCovariance(Covariance):
    """Some features of a covariance whose larger blocks are kept."""

    def __init__(self, inner: Covariance, block: _Block, keep: np.ndarray) -> None:
        """`inner` has the features `keep` of the whole covariance, of which `block` has entries."""
        self.inner, self.block, self.keep = inner, block, keep
        self.n_samples, self.unit, self.psd_shift = inner.n_samples, inner.unit, inner.psd_shift
        self.diagonal, self.inert = inner.diagonal, inner.inert
        self.error_unit, self.error_weights = inner.error_unit, inner.error_weights

    def matmat(self, Y: np.ndarray) -> np.ndarray:
        return self.inner.matmat(Y)

    def forming(self, rows: np.ndarray, cols: np.ndarray) -> float:
        kept = self.block.holds(self.keep[rows]) and self.block.holds(self.keep[cols])
        return 0.0 if kept else self.inner.forming(rows, cols)

    def submatrix(self, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        own, block = self.keep[rows], self.block
        if cols is None:
            kept = own.size >= LEAST or block.holds(own)
            return block.among(own) if kept else self.inner.submatrix(rows)
        others = self.keep[cols]
        if min(own.size, others.size) >= CORE and own.size + others.size <= MOST:
            block.extend(np.union1d(own, others))
        if block.holds(own) and block.holds(others):
            return np.take(block.matrix[block.place[own]], block.place[others], axis=1)
        return self.inner.submatrix(rows, cols)

    def factor(self) -> np.ndarray | None:
        return self.inner.factor()

    def restrict(self, keep: np.ndarray) -> Covariance:
        return RememberedCovariance(self.inner.restrict(keep), self.block, self.keep[keep])
