"""Bound "adjusted"; statement and proof: docs/methods/adjusted.rst.

H = KK' is optimised by L-BFGS on log(the pair-split bound of H) + log(KF_k(F)), F the matrix with
the eigenvalues of H^-1 A. Both factors are smoothed: the first one as in pairsplit/optimise.py,
the second one by Fermi-Dirac weights phi. With X the density matrix of the first and W'W = phi,

    d/dH = X / bound - ww' / KF,   w = H^-1 G V phi^1/2 for A = GG' and eigenvectors V of F.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from ...numerics.eigen import FULL_EIGEN, REACH, SoftTops, largest_eigenpairs
from ...numerics.lbfgs import minimise
from ...problem.monitor import Monitor
from ..kyfan.optimise import fermi_dirac
from ..pairsplit import Part, Split
from ..pairsplit.starts import best_start

RANK = 1e-12  # eigenvalues of A below this part of the largest do not steer the search
COOLER = 0.3  # temperature of the eigenvalue sum, relative to its largest term


class Optimiser:
    """The current point (K, U, R), and the work arrays of its evaluation."""

    def __init__(self, a: np.ndarray, k: int, s: int, nonnegative: bool, h: np.ndarray) -> None:
        n = a.shape[0]
        self.n, self.k, self.s, self.nonnegative = n, k, s, nonnegative
        w, q = np.linalg.eigh(a)
        useful = w > RANK * max(float(w[-1]), 1e-300)
        self.root = q[:, useful] * np.sqrt(w[useful])  # A = GG'
        self.upper, self.lower = np.triu_indices(n, 1), np.tril_indices(n)
        self.pairs = self.upper[0].size
        none = np.zeros(n)
        self._none, self._forced = none, np.zeros(n, dtype=bool)
        start = best_start(Part(np.arange(n), h, self._forced, none, s, nonnegative, none))[0]
        self.point = np.concatenate(
            [np.linalg.cholesky(h)[self.lower], start.u[self.upper], start.r[self.upper]]
        ).astype(np.float64)
        self._charge, self._select, self._matrix = (np.empty((n, n)) for _ in range(3))
        self._level = np.zeros(n)
        self._tops, self._kept_sum = SoftTops(n), min(n, k + 12)

    def matrix(self) -> np.ndarray:
        """H at the current point."""
        factor = self._factor(self.point)
        return factor @ factor.T

    def split(self, features: np.ndarray) -> Split:
        """The pair split of H at the current point."""
        first = self.point.size - 2 * self.pairs
        u, r = self.point[first : first + self.pairs], self.point[first + self.pairs :]
        return Split.rounded(features, self.upper, u, r)

    def run(self, mu: float, steps: int, monitor: Monitor) -> None:
        """Take up to so many L-BFGS steps at smoothing mu, relative to the pair-split bound."""

        def stop(history: list[float]) -> bool:
            slow = len(history) > 10 and history[-11] - history[-1] < 1e-3 * mu
            return slow or monitor.stopped is not None

        self.point = minimise(lambda y: self._evaluate(y, mu), self.point, steps, stop)

    def _factor(self, y: np.ndarray) -> np.ndarray:
        factor = np.zeros((self.n, self.n))
        factor[self.lower] = y[: y.size - 2 * self.pairs]
        return factor

    def _evaluate(self, y: np.ndarray, mu: float) -> tuple[float, np.ndarray]:
        from ...kernels.pairsplit import smoothed_gradient, smoothed_matrix

        factor, first = self._factor(y), y.size - 2 * self.pairs
        u, r = y[first : first + self.pairs], y[first + self.pairs :]
        width = 10.0 * mu / self.s
        smoothed_matrix(
            factor @ factor.T, u, r, self._forced, self._none, self._none, self.s, width, width,
            self.nonnegative, self._charge, self._select, self._matrix, self._level,
        )  # fmt: skip
        w, q = self._tops.pairs(self._matrix, mu)
        weight = np.exp((w - w[-1]) / mu)
        total = float(weight.sum())
        bound = float(w[-1]) + mu * np.log(total)
        scaled = q * np.sqrt(weight / total)
        density = scaled @ scaled.T
        gradient = np.empty_like(y)
        smoothed_gradient(
            u, self._forced, width, self.nonnegative, self._charge, self._select, density,
            gradient[first : first + self.pairs], gradient[first + self.pairs :],
        )  # fmt: skip
        gradient[first:] /= bound
        ky_fan, w_sum = self._ky_fan(factor, mu)
        slope = density / bound - w_sum @ w_sum.T / ky_fan
        gradient[:first] = (2.0 * slope @ factor)[self.lower]
        return float(np.log(bound) + np.log(ky_fan)), gradient

    def _ky_fan(self, factor: np.ndarray, mu: float) -> tuple[float, np.ndarray]:
        """Return the smoothed KF_k(F) and w (n, m) with gradient -ww' in H."""
        image = solve_triangular(factor, self.root, lower=True, check_finite=False)
        f = image @ image.T
        while True:
            kept = self.n if self.n <= FULL_EIGEN else self._kept_sum
            w, q = np.linalg.eigh(f) if kept == self.n else largest_eigenpairs(f, kept)
            absolute = COOLER * mu * float(w[-1])
            weight, nu, value = fermi_dirac(w, self.k, absolute)
            if kept == self.n or w[0] < nu - REACH * absolute:
                break
            self._kept_sum = min(self.n, 2 * kept)
        scaled = q * np.sqrt(weight * np.maximum(w, 0.0))
        return value, solve_triangular(factor, scaled, lower=True, trans="T", check_finite=False)


def step_work(n: int) -> float:
    """Estimate the nanoseconds of one core that an evaluation takes."""
    return 0.9 * float(n) ** 3 + 100.0 * n * n + 4e5
