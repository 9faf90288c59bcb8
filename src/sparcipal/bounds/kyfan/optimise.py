"""Bound "kyfan"; statement and proof: docs/methods/kyfan.rst.

A Ky Fan split is optimised by L-BFGS on the smoothed bound, over the packed (U, R) and the prices.

The sum of the k largest eigenvalues is smoothed by Fermi-Dirac weights of temperature mu, the sum
of the s-1 largest charges of a row to max {p.v - tau/2 |p|^2}, |U| to sqrt(U^2 + eps^2). With X the
matrix of the weights and p the smoothed choices the gradient in beta_b is
1 - X_bb - sum_a X_aa p_ab; in U and R it is that of the bound for one component. Conditioning asks
for eps = tau = 10 mu / s.
"""

from __future__ import annotations

import numpy as np

from ...numerics.eigen import all_eigenpairs, largest_eigenpairs, partly
from ...numerics.lbfgs import MEMORY, minimise, slow
from ...numerics.subspace import LeadingSpace
from ...problem.monitor import Monitor
from .certificate import KyFanSplit
from .question import Sizes

FULL_EIGEN = 120  # below this size a full eigendecomposition is as fast as a partial one
SHORT = 100  # steps of a run for which single precision is enough
SINGLE = 150  # up to this size double precision costs little, and saves a second compilation
# What a core of n features takes, in vectors or matrices of n^2 numbers: those in double precision,
# those in the precision of a run, and two for each of the steps that are stored, FEWEST at least.
MATRICES, VECTORS, FEWEST = 5, 6, 5
SMALL = 400  # features that are in a core together wherever there are no more, in 17 MB
REACH = 12.0  # weights below exp(-REACH) are neglected


class KyFanOptimiser:
    """The smoothed bound on one core, its current point, and the work arrays."""

    def __init__(
        self,
        a: np.ndarray,
        split: KyFanSplit,
        sizes: Sizes,
        value: float,
        floor: float | None = None,
        *,
        priced: bool = True,
    ):
        n, k, total = a.shape[0], sizes.k, sizes.total
        self.a = np.ascontiguousarray(a)
        self.features, self.pad = split.features, split.pad
        self.s, self.k, self.nonnegative = sizes.s, k, sizes.nonnegative
        # The floor under the prices is one more variable; `total` features pay it.
        self.total, self.floored = total, floor is not None
        self.pairs = n * (n - 1) // 2
        # All U share one unit, because their conditioning depends on it, and all prices another.
        largest = np.sort(np.diagonal(a))[::-1][:total]
        self.u_unit = max(float(largest.mean()), 1e-300)
        self.price_unit = max(value / total, 1e-300)
        self.mu_unit = max(value / k, 1e-300)
        above = np.maximum(split.price - (floor or 0.0), 0.0)
        prices = above if floor is None else np.append(above, floor)
        self.point = np.concatenate([split.u / self.u_unit, split.r, prices / self.price_unit])
        self.price_unit *= priced  # in units of zero, prices that are not allowed stay at zero
        self._pads = np.full(n, split.pad)
        self._forced = np.zeros(n, dtype=bool)
        self._charge, self._select, self._matrix = np.empty((3, n, n))
        self._level = np.zeros(n)
        self._occupied = Occupied(n, k, LeadingSpace())

    def split(self) -> KyFanSplit:
        u, r, price, floor = self._unpacked(self.point)
        return KyFanSplit.rounded(self.features, u, r, price + floor, self.pad)

    @property
    def floor(self) -> float | None:
        return self._unpacked(self.point)[3] if self.floored else None

    def run(
        self,
        mu: float,
        max_iter: int,
        monitor: Monitor | None = None,
        work: float = np.inf,
        room: float = np.inf,
    ) -> float:
        """Take up to max_iter L-BFGS steps at temperature mu (relative to value / k).

        Ends after about `work` nanoseconds of one core, by count, and returns what was spent. Fewer
        steps are stored where more would take more than `room` bytes.
        """
        self._occupied.work = 0.0
        absolute = mu * self.mu_unit
        least = 0.01 * absolute * self.k

        def stop(history: list[float]) -> bool:
            stopped = monitor is not None and monitor.stopped is not None
            return slow(history, 25, least) or stopped or self._occupied.work >= work

        early = self.a.shape[0] > SINGLE and (max_iter < SHORT or work < np.inf)
        kind = np.dtype(np.float32 if early else np.float64)
        self.point = minimise(
            lambda y: self._evaluate(y, absolute),
            # single precision is enough for a run that ends early, if the vectors are long
            self.point.astype(kind, copy=False),
            max_iter,
            stop,
            nonnegative=self.a.shape[0] + self.floored,
            memory_size=int(
                min(
                    MEMORY,
                    max(max_iter // 8, FEWEST),
                    _stored(self.a.shape[0], room, kind.itemsize),
                )
            ),
        )
        return self._occupied.work

    def _unpacked(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return U, R, the prices above the floor and the floor."""
        m, n = self.pairs, self.a.shape[0]
        u = np.multiply(y[:m], self.u_unit, dtype=np.float64)
        r = y[m : 2 * m].astype(np.float64, copy=False)
        price = np.multiply(np.maximum(y[2 * m :], 0.0), self.price_unit, dtype=np.float64)
        floor = float(price[n]) if self.floored else 0.0
        return u, r, price[:n], floor

    def _evaluate(self, y: np.ndarray, mu: float) -> tuple[float, np.ndarray]:
        from ...kernels.pairsplit import smoothed_gradient, smoothed_matrix

        width = 10.0 * mu * self.k / self.total
        u, r, price, floor = self._unpacked(y)
        smoothed_matrix(
            self.a, u, r, self._forced, price + floor, self._pads, self.s, width, width,
            self.nonnegative, self._charge, self._select, self._matrix, self._level,
        )  # fmt: skip
        q, weight, value, _ = self._occupied.pairs(self._matrix, mu)
        scaled = q * np.sqrt(weight)
        # this overwrites the matrix, which is not needed after its eigenvectors are known
        density = np.matmul(scaled, scaled.T, out=self._matrix)
        gradient = np.empty_like(y)
        m = self.pairs
        smoothed_gradient(
            u, self._forced, width, self.nonnegative, self._charge, self._select, density,
            gradient[:m], gradient[m : 2 * m],
        )  # fmt: skip
        gradient[:m] *= self.u_unit
        diagonal = np.diagonal(density)
        used = diagonal + diagonal @ self._select
        gradient[2 * m : 2 * m + price.size] = (1.0 - used) * self.price_unit
        if self.floored:
            gradient[-1] = (self.total - float(used.sum())) * self.price_unit
        return value + float(price.sum()) + floor * self.total, gradient


class Occupied:
    """The leading eigenpairs of matrices of order n that change little, with the weights that sum
    to k; `work` counts what they take."""

    def __init__(self, n: int, k: int, space: LeadingSpace | None = None) -> None:
        self._n, self._k, self._space = n, k, space
        self._kept = min(n, max(2 * k, k + 12))
        self.work = 0.0

    def pairs(self, matrix: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Return eigenvectors, their Fermi-Dirac weights, the smoothed sum of the k largest
        eigenvalues and that sum itself; the matrix is overwritten."""
        n, k = self._n, self._k
        while True:
            whole = n <= FULL_EIGEN or not partly(self._kept, n)
            self.work += step_work(n, None if whole else self._kept)
            if whole:
                w, q = all_eigenpairs(matrix)
            elif self._space is None:
                w, q = largest_eigenpairs(matrix, self._kept)
            else:
                w, q = self._space.pairs(matrix, self._kept, mu, alike=k)
            weight, nu, value = fermi_dirac(w, k, mu)
            if whole or w[0] < nu - REACH * mu:
                break
            self._kept = min(n, self._kept + self._kept // 2)
        needed = int(np.count_nonzero(w >= nu - REACH * mu))
        self._kept = min(n, max(k + 4, needed + needed // 4 + 4))
        used = weight > 1e-12
        return q[:, used], weight[used], value, float(w[-k:].sum())


def step_work(n: int, kept: int | None) -> float:
    """Estimate the nanoseconds of one core that a step takes; `kept` is None for all eigenpairs."""
    pairs = 0.35 * n if kept is None else 1.2 * kept
    return (40.0 + pairs) * float(n) ** 2 + 3e5


def fermi_dirac(w: np.ndarray, k: int, mu: float) -> tuple[np.ndarray, float, float]:
    """Return weights 1 / (1 + exp((nu - w) / mu)) that sum to k, nu, and the smoothed sum."""
    if w.size <= k:
        return np.ones(w.size), float(w[0]) - 100.0 * mu, float(w.sum())
    low, high = float(w[0]) - 40.0 * mu, float(w[-1]) + 40.0 * mu
    nu = float(w[w.size - k]) * 0.5 + float(w[w.size - k - 1]) * 0.5
    for _ in range(100):
        weight = 1.0 / (1.0 + np.exp(np.clip((nu - w) / mu, -500.0, 500.0)))
        excess = float(weight.sum()) - k
        if abs(excess) < 1e-12 * k:
            break
        low, high = (nu, high) if excess > 0.0 else (low, nu)
        slope = float((weight * (1.0 - weight)).sum()) / mu
        step = nu + excess / slope if slope > 0.0 else np.inf
        nu = step if low < step < high else 0.5 * (low + high)
    empty = 1.0 - weight
    entropy = -(weight * np.log(np.maximum(weight, 1e-300))).sum()
    entropy -= (empty * np.log(np.maximum(empty, 1e-300))).sum()
    return weight, nu, float((w * weight).sum() + mu * entropy)


def largest_core(room: float) -> float:
    """Return how many features can be in a core that takes `room` bytes, in single precision; as
    many as a small problem has in any case, so that a larger one is proved no worse."""
    return max(float(np.sqrt(room / (8 * MATRICES + 4 * (VECTORS + 2 * FEWEST)))), float(SMALL))


def _stored(n: int, room: float, itemsize: int) -> float:
    """Return how many steps can be stored beside a core of n features."""
    return max((room / n**2 - 8 * MATRICES) / itemsize - VECTORS, 2 * FEWEST) // 2
