"""Optimise a pair-split certificate: smooth, then L-BFGS over the packed (U, R).

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

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from ..kernels.pairsplit import smoothed_gradient, smoothed_matrix
from .certificate import Part, Split

MEMORY = 15
# Below this size a full eigendecomposition is as fast as a partial one.
FULL_EIGEN = 150


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
        self.unit = self.unit if self.unit > 0.0 else 1.0
        u = split.u[self.upper].astype(np.float64) / self.unit
        self.point = np.concatenate([u, split.r[self.upper].astype(np.float64)])
        self.z = np.zeros(n)
        self.leading = np.zeros(n)
        self._charge = np.empty((n, n))
        self._select = np.empty((n, n))
        self._matrix = np.empty((n, n))
        self._level = np.zeros(n)
        self._kept = min(n, 24)

    def split(self) -> Split:
        """The current point as a certificate of single precision."""
        u, r = self.unit * self.point[: self.pairs], self.point[self.pairs :]
        return Split.rounded(self.part.features, self.upper, u, r)

    def run(self, mu: float, max_iter: int, target: float) -> float:
        """Up to `max_iter` L-BFGS steps at smoothing `mu`; ends early once below `target`.

        Returns the largest eigenvalue of the last smoothed matrix: a guess of the bound.
        """
        part = self.part
        width = 10.0 * mu / part.s
        lowest = [np.inf]

        def evaluate(y: np.ndarray) -> tuple[float, np.ndarray]:
            value, top, grad = self._evaluate(y, mu, width)
            lowest[0] = top + 0.5 * width * part.s
            return value, grad

        def stop(history: list[float]) -> bool:
            if lowest[0] <= target:
                return True
            return len(history) > 25 and history[-26] - history[-1] < 0.01 * mu

        self.point = lbfgs(evaluate, self.point, max_iter, stop)
        return lowest[0]

    def _evaluate(self, y: np.ndarray, mu: float, width: float) -> tuple[float, float, np.ndarray]:
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
        w, q = self._top_eigenpairs(mu)
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
        self.work += float(n) ** 3 + 40.0 * n * n
        return float(w[-1] + mu * np.log(total)), float(w[-1]), grad

    def _top_eigenpairs(self, mu: float) -> tuple[np.ndarray, np.ndarray]:
        """The eigenpairs whose softmax weight is not negligible (all of them for small n)."""
        n = self.part.n
        if n <= FULL_EIGEN:
            w, q = np.linalg.eigh(self._matrix)
            first = int(np.searchsorted(w, w[-1] - 30.0 * mu))
            return w[first:], q[:, first:]
        while True:
            kept = self._kept
            w, q, _, _, _ = lapack.dsyevr(self._matrix, range="I", il=n - kept + 1, iu=n)
            w = w[:kept]
            if kept == n or w[0] < w[-1] - 14.0 * mu:
                break
            self._kept = min(n, 2 * kept)
        # keep a third more than was needed, so that the next call rarely repeats
        needed = int(np.count_nonzero(w >= w[-1] - 14.0 * mu))
        self._kept = min(n, max(12, needed + needed // 3 + 4))
        return w, q


def lbfgs(
    evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]],
    y: np.ndarray,
    max_iter: int,
    stop: Callable[[list[float]], bool],
) -> np.ndarray:
    """Limited-memory BFGS with a bracketing Wolfe search; returns the last point accepted."""
    value, grad = evaluate(y)
    history = [value]
    steps: list[np.ndarray] = []
    changes: list[np.ndarray] = []
    scales: list[float] = []
    for _ in range(max_iter):
        if stop(history):
            break
        direction = _two_loop(grad, steps, changes, scales)
        slope = float(grad @ direction)
        if slope >= 0.0:
            steps, changes, scales = [], [], []
            direction = _two_loop(grad, steps, changes, scales)
            slope = float(grad @ direction)
            if slope >= 0.0:
                break
        found = _wolfe(evaluate, y, value, slope, direction)
        if found is None:
            break
        new, value, new_grad = found
        step, change = new - y, new_grad - grad
        curvature = float(step @ change)
        if curvature > 1e-12 * float(np.sqrt((step @ step) * (change @ change))):
            steps.append(step)
            changes.append(change)
            scales.append(1.0 / curvature)
            if len(steps) > MEMORY:
                del steps[0], changes[0], scales[0]
        y, grad = new, new_grad
        history.append(value)
    return y


def _two_loop(
    grad: np.ndarray, steps: list[np.ndarray], changes: list[np.ndarray], scales: list[float]
) -> np.ndarray:
    direction = -grad
    if not steps:
        return direction * (0.01 / max(float(np.linalg.norm(grad)), 1e-300))
    weights = []
    for step, change, scale in zip(steps[::-1], changes[::-1], scales[::-1]):
        weight = scale * float(step @ direction)
        weights.append(weight)
        direction -= weight * change
    direction *= 1.0 / (scales[-1] * float(changes[-1] @ changes[-1]))
    for step, change, scale, weight in zip(steps, changes, scales, weights[::-1]):
        direction += (weight - scale * float(change @ direction)) * step
    return direction


def _wolfe(
    evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]],
    y: np.ndarray,
    value: float,
    slope: float,
    direction: np.ndarray,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """A step with sufficient decrease and flatter slope; None when nothing decreases."""
    low, high, length = 0.0, np.inf, 1.0
    best = None
    for _ in range(12):
        new = y + length * direction
        new_value, new_grad = evaluate(new)
        if not np.isfinite(new_value) or new_value > value + 1e-4 * length * slope:
            high = length
            # minimiser of the parabola through both values, kept inside the bracket
            rise = new_value - value - slope * length
            guess = -0.5 * slope * length**2 / rise if np.isfinite(rise) and rise > 0 else 0.0
            length = (
                0.5 * (low + high) if low > 0.0 else min(max(guess, 0.1 * length), 0.6 * length)
            )
            continue
        best = new, new_value, new_grad
        if float(new_grad @ direction) >= 0.9 * slope:
            break
        low = length
        length = 2.0 * length if high == np.inf else 0.5 * (low + high)
    return best
