"""Leading eigenpairs of a matrix that changes little from call to call; never proved.

The subspace of the last call is filtered by a Chebyshev polynomial in single precision, which damps
the eigenvalues below it. Ritz values and vectors follow in double precision, so that values are
wrong only by the square of what the vectors miss. Where residuals stay large LAPACK starts afresh.
"""

from __future__ import annotations

import numpy as np

from .eigen import largest_eigenpairs, partly

DEGREE = 8  # of one filter
FILTERS = 3  # before LAPACK starts afresh
ACCURATE = 0.02  # weighted residual, relative to the width over which eigenpairs matter
NARROW = 0.1  # least width of what a filter damps, relative to the spread of all eigenvalues
BELOW = 0.1  # margin below the smallest eigenvalue, relative to the spread of all
REFRESH = 40  # calls after which LAPACK starts afresh in any case
FIRST_REST, LONGEST_REST = 4, 64  # calls left to LAPACK after filters did not suffice
COARSE = 1e-3  # width, relative to the largest eigenvalue, for which single precision is enough


class LeadingSpace:
    """The subspace of the largest eigenvalues, kept between calls."""

    def __init__(self) -> None:
        self._basis = np.empty((0, 0), dtype=np.float32)
        self._low = self._cut = self._top = 0.0
        self._age = REFRESH
        self._rest, self._patience = 0, FIRST_REST  # calls without a filter, now and next time

    def pairs(
        self, matrix: np.ndarray, count: int, width: float, alike: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return about the `count` largest eigenvalues, increasing, and their eigenvectors as
        columns.

        The `alike` largest count alike, a smaller one by exp(its distance from them / width).
        """
        if not partly(count, len(matrix)):
            self._age = REFRESH
            coarse = width > COARSE * float(np.abs(matrix).max())
            w, q = np.linalg.eigh(matrix.astype(np.float32) if coarse else matrix)
            return w[-count:].astype(np.float64), q[:, -count:].astype(np.float64)
        if self._rest > 0:
            self._rest -= 1
            return largest_eigenpairs(matrix, count)
        self._age += 1
        if self._age <= REFRESH and self._widened(count):
            single = matrix.astype(np.float32)
            for _ in range(FILTERS):
                self._filter(single)
                if not np.isfinite(self._basis).all():  # the matrix has changed beyond recognition
                    break
                w, q, residuals = _ritz(matrix, self._basis)
                self._keep(w, q, count)
                weights = np.exp(np.minimum(w - w[-min(alike, w.size)], 0.0) / width)
                if np.sqrt(weights @ residuals / weights.sum()) <= ACCURATE * width:
                    self._patience = FIRST_REST
                    return w[-count:], q[:, -count:]
            # eigenvalues that lie close take more filters than LAPACK takes time
            self._rest, self._patience = self._patience, min(2 * self._patience, LONGEST_REST)
            self._age = REFRESH
            return largest_eigenpairs(matrix, count)
        w, q = largest_eigenpairs(matrix, count)
        self._keep(w, q, count)
        lowest = _smallest_eigenvalue(matrix)
        self._low, self._age = lowest - BELOW * (float(w[-1]) - lowest), 0
        return w, q

    def _widened(self, count: int) -> bool:
        """Let random vectors join a basis that is a little too small; False where it is far so."""
        n, have = self._basis.shape
        if have < count <= 2 * have:
            more = np.random.default_rng(count).standard_normal((n, count - have))
            self._basis = np.asfortranarray(np.hstack([more.astype(np.float32), self._basis]))
        return self._basis.shape[1] >= count

    def _keep(self, w: np.ndarray, q: np.ndarray, count: int) -> None:
        self._cut, self._top = float(w[-count]), float(w[-1])
        self._basis = np.asfortranarray(q[:, -count:], dtype=np.float32)

    def _filter(self, matrix: np.ndarray) -> None:
        """Multiply the basis by a Chebyshev polynomial of the matrix, small below the cut."""
        # an interval that is not too narrow keeps the polynomial in the range of single precision
        width = max(self._cut - self._low, NARROW * (self._top - self._low), 1e-30)
        half, centre = np.float32(width / 2), np.float32(self._low + width / 2)
        before: np.ndarray = self._basis
        now: np.ndarray = (matrix @ before - centre * before) / half
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(DEGREE - 1):
                before, now = now, (matrix @ now - centre * now) * (2 / half) - before
            self._basis = now / np.maximum(np.linalg.norm(now, axis=0), np.float32(1e-30))


class SoftTops:
    """The eigenpairs, of matrices of order n that change little, whose softmax weight counts.

    Up to the order `whole` all eigenpairs are computed, and those below exp(-cut) are left out;
    beyond, only those above exp(-reach), from `space` if there is one.
    """

    def __init__(
        self, n: int, whole: int, reach: float, cut: float, space: LeadingSpace | None = None
    ) -> None:
        self._n, self._kept = n, min(n, 24)
        self._whole, self._reach, self._cut, self._space = whole, reach, cut, space

    def pairs(self, matrix: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues, increasing, and eigenvectors that count at the temperature mu."""
        n = self._n
        if n <= self._whole:
            w, q = np.linalg.eigh(matrix)
            first = int(np.searchsorted(w, w[-1] - self._cut * mu))
            return w[first:], q[:, first:]
        while True:
            kept = self._kept
            if self._space is None:
                w, q = largest_eigenpairs(matrix, kept)
            else:
                w, q = self._space.pairs(matrix, kept, mu)
            if kept == n or w[0] < w[-1] - self._reach * mu:
                break
            self._kept = min(n, 2 * kept)
        # ask for a third more than was needed, so that the next call rarely has to repeat
        needed = int(np.count_nonzero(w >= w[-1] - self._reach * mu))
        self._kept = min(n, max(12, needed + needed // 3 + 4))
        return w, q


def _ritz(matrix: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Ritz values, increasing, Ritz vectors, and the squares of their residuals."""
    q: np.ndarray = np.linalg.qr(basis.astype(np.float64))[0]
    image = matrix @ q
    inner = q.T @ image
    w, turn = np.linalg.eigh((inner + inner.T) / 2)
    q, image = q @ turn, image @ turn
    residuals = image - q * w
    return w, q, (residuals * residuals).sum(axis=0)


def _smallest_eigenvalue(matrix: np.ndarray) -> float:
    import scipy.sparse.linalg as spla  # here: small problems do without

    try:
        w = spla.eigsh(
            matrix, 1, which="SA", tol=1e-2, v0=np.ones(len(matrix)), return_eigenvectors=False
        )
        return float(w[0])
    except spla.ArpackError:
        return float(np.linalg.eigvalsh(matrix)[0])
