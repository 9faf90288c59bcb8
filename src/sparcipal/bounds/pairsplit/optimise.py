"""The pair split; statement and proof: docs/methods/pairsplit.rst.

A pair-split certificate is optimised by L-BFGS on the smoothed bound, over the packed (U, R).

lambda_max is smoothed to mu log sum exp(lambda / mu), the sum of the q largest charges of a row to
max {p.v - tau/2 |p|^2 : 0 <= p <= 1, sum p <= q}, and |U| to sqrt(U^2 + eps^2). With X the softmax
density matrix of M and p the smoothed choices,

    df/dU_ij = -2 X_ij + U_ij / (U_ij^2 + eps^2) (X_ii p_ij V_ij + X_jj p_ji V_ji)
    df/dR_ij = X_ii p_ij V_ij - X_jj p_ji V_ji.

eps = tau = 10 mu / s, and U in one common unit: the conditioning depends on both. The problem is
jointly convex in (U, V), so every iterate is a certificate, and z_j = X_jj + sum_i X_ii p_ij is a
relaxed indicator of the support: it is rounded for incumbents and branched on.
"""

from __future__ import annotations

import numpy as np

from ...numerics.lbfgs import minimise, slow
from ...numerics.subspace import LeadingSpace, SoftTops
from ...problem.monitor import Monitor
from .certificate import Part, Split

# Up to this size a full eigendecomposition is as fast as a partial one; beyond it L-BFGS works in
# single precision, as its vectors are long.
FULL_EIGEN = 80
REACH = 10.0  # weights below exp(-REACH) are neglected where not all eigenpairs are computed


class Optimiser:
    """One subproblem's smoothed objective, its current point, and the work arrays."""

    def __init__(self, part: Part, split: Split) -> None:
        n = part.n
        self.part = part
        self.upper = np.triu_indices(n, 1)
        self.pairs = self.upper[0].size
        self.n_eigen = 0
        self.work = 0.0
        # U in units of a typical variance of the solution, R as it is
        self.unit = float(np.sort(np.diagonal(part.a))[-part.s :].mean())
        self.unit = self.unit if self.unit > 1e-290 else 1.0  # others are zero but for denormals
        u = split.u[self.upper].astype(np.float64) / self.unit
        self.point = np.concatenate([u, split.r[self.upper].astype(np.float64)])
        self.z = np.zeros(n)
        self.leading = np.zeros(n)
        self._charge = np.empty((n, n))
        self._select = np.empty((n, n))
        self._matrix = np.empty((n, n))
        self._level = np.zeros(n)
        self._tops = SoftTops(n, FULL_EIGEN, REACH, 3 * REACH, LeadingSpace())

    def split(self) -> Split:
        """Return the current point as a certificate of single precision."""
        u, r = self.unit * self.point[: self.pairs], self.point[self.pairs :]
        return Split.rounded(self.part.features, self.upper, u, r)

    def run(
        self,
        mu: float,
        max_iter: int,
        target: float,
        monitor: Monitor | None = None,
        most: float = np.inf,
    ) -> float:
        """Take up to `max_iter` L-BFGS steps at smoothing `mu`; end early once below `target`, when
        the monitor says stop, or after so much work.

        Returns the largest eigenvalue of the last smoothed matrix: a guess of the bound.
        """
        part = self.part
        width = 10.0 * mu / part.s
        lowest = [np.inf]

        def evaluate(y: np.ndarray) -> tuple[float, np.ndarray]:
            value, top, grad = self._evaluate(y.astype(np.float64), mu, width)
            lowest[0] = top + 0.5 * width * part.s
            return value, grad.astype(y.dtype)

        def stop(history: list[float]) -> bool:
            if lowest[0] <= target or self.work >= most:
                return True
            if monitor is not None and monitor.stopped is not None:
                return True
            return slow(history, 25, 0.01 * mu)

        # as a certificate is stored
        kind = np.float32 if part.n > FULL_EIGEN else np.float64
        found = minimise(evaluate, self.point.astype(kind), max_iter, stop)
        self.point = found.astype(np.float64)
        return lowest[0]

    def _evaluate(self, y: np.ndarray, mu: float, width: float) -> tuple[float, float, np.ndarray]:
        from ...kernels.pairsplit import smoothed_gradient, smoothed_matrix

        part, n = self.part, self.part.n
        u, r = self.unit * y[: self.pairs], y[self.pairs :]
        smoothed_matrix(
            part.a,
            u,
            r,
            part.forced,
            part.price,
            part.pad,
            part.s,
            width,
            width,
            part.nonnegative,
            self._charge,
            self._select,
            self._matrix,
            self._level,
        )
        w, q = self._tops.pairs(self._matrix, mu)
        weight = np.exp((w - w[-1]) / mu)
        total = weight.sum()
        scaled = q * np.sqrt(weight / total)
        density = scaled @ scaled.T
        grad = np.empty_like(y)
        smoothed_gradient(
            u,
            part.forced,
            width,
            part.nonnegative,
            self._charge,
            self._select,
            density,
            grad[: self.pairs],
            grad[self.pairs :],
        )
        grad[: self.pairs] *= self.unit
        diagonal = np.diagonal(density)
        self.z = diagonal + diagonal @ self._select
        self.leading = q[:, -1]
        self.n_eigen += 1
        self.work += step_work(n)
        return float(w[-1] + mu * np.log(total)), float(w[-1]), grad


def step_work(n: int) -> float:
    """Estimate the nanoseconds of one core that a step on n features takes."""
    if n <= FULL_EIGEN:
        return 0.15 * float(n) ** 3 + 80.0 * n * n + 3e5
    return 0.03 * float(n) ** 3 + 45.0 * n * n + 3e5
