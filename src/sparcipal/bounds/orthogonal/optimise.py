"""Bound "orthogonal"; statement and proof: docs/methods/orthogonal.rst.

L with Z = LL', and how diag Z is shared between beta and gamma, are optimised by L-BFGS, first with
the pair-split bound of the maximum over supports, then with the maximum over a pool of supports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from ...numerics.lbfgs import minimise, slow
from ...numerics.subspace import SoftTops
from ...problem.monitor import Monitor
from ..pairsplit import Part
from ..pairsplit.starts import best_start

FULL_EIGEN = 150  # below this order a full eigendecomposition is as fast as a partial one
REACH = 14.0  # weights below exp(-REACH) are neglected where not all eigenpairs are computed
POOL = 3000  # supports that are looked at in one evaluation


@dataclass(frozen=True)
class Moved:
    """Z = LL', and the share of its diagonal that is paid once for all components."""

    L: np.ndarray  # (n, m)
    beta: np.ndarray  # (n,) >= 0
    gamma: np.ndarray  # (n,) >= 0, with beta + gamma >= diag Z


class Optimiser:
    """The current point (L, b, U, R), with beta = sigmoid(b) diag Z, and how it is evaluated."""

    def __init__(self, a: np.ndarray, k: int, s: int, L: np.ndarray, paid: float) -> None:
        n = a.shape[0]
        self.a, self.n, self.k, self.s, self.columns = a, n, k, s, L.shape[1]
        self.upper = np.triu_indices(n, 1)
        self.pairs = self.upper[0].size
        self.unit = float(np.sort(np.diagonal(a))[-s:].mean()) or 1.0
        self._forced, self._none = np.zeros(n, dtype=bool), np.zeros(n)
        rest = a - L @ L.T
        part = Part(np.arange(n), rest, self._forced, self._none, s, False, self._none)
        start = best_start(part)[0]
        self.point = np.concatenate(
            [
                L.ravel() / np.sqrt(self.unit),
                np.full(n, np.log(paid / (1.0 - paid))),
                start.u[self.upper].astype(np.float64) / self.unit,
                start.r[self.upper].astype(np.float64),
            ]
        )
        self._charge, self._select, self._matrix = (np.empty((n, n)) for _ in range(3))
        self._level = np.zeros(n)
        self._tops = SoftTops(n, FULL_EIGEN, REACH, 2 * REACH)
        self.pool = np.empty((0, s), dtype=np.intp)

    def moved(self) -> Moved:
        L, _, sigma = self._parts(self.point)
        diagonal = np.einsum("ij,ij->i", L, L)
        return Moved(L, sigma * diagonal, (1.0 - sigma) * diagonal)

    def run(self, mu: float, steps: int, monitor: Monitor) -> None:
        """Take up to so many steps on the pair-split bound, at smoothing mu in units of A."""
        self.point = minimise(
            lambda y: self._with_pair_split(y, mu), self.point, steps, _stopping(mu, monitor)
        )

    def run_pool(self, mu: float, steps: int, monitor: Monitor) -> None:
        """Take up to so many steps on the maximum over the pool."""
        split = self.point[self._first :].copy()  # the pool does not move it
        point = minimise(
            lambda y: self._with_pool(y, mu),
            self.point[: self._first].copy(),
            steps,
            _stopping(mu, monitor),
        )
        self.point = np.concatenate([point, split])

    def add(self, supports: Sequence[np.ndarray]) -> int:
        """Add supports of s features to the pool; return how many are new."""
        known = {row.tobytes() for row in self.pool}
        new = []
        for support in supports:
            full = np.sort(np.asarray(support, dtype=np.intp))
            if full.size == self.s and full.tobytes() not in known:
                known.add(full.tobytes())
                new.append(full)
        if new:
            self.pool = np.concatenate([self.pool, np.array(new)])
        return len(new)

    def everything(self) -> bool:
        """Put all supports into the pool, if they are few."""
        if comb(self.n, self.s) > POOL:
            return False
        every = np.array(list(combinations(range(self.n), self.s)), dtype=np.intp)
        self.pool = every
        return True

    @property
    def _first(self) -> int:
        return self.n * self.columns + self.n

    def _parts(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m = self.n * self.columns
        L = np.sqrt(self.unit) * y[:m].reshape(self.n, self.columns)
        b = y[m : m + self.n]
        return L, b, 1.0 / (1.0 + np.exp(-np.clip(b, -40.0, 40.0)))

    def _slopes(
        self, y: np.ndarray, density: np.ndarray, used: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the total of beta and the gradient in (L, b), from that of the maximum: `density`
        in the matrix and `used` in gamma."""
        k = self.k
        L, _, sigma = self._parts(y)
        diagonal = np.einsum("ij,ij->i", L, L)
        in_diagonal = sigma + k * used * (1.0 - sigma)
        in_L = 2.0 * (in_diagonal[:, None] * L - k * (density @ L))
        in_b = diagonal * sigma * (1.0 - sigma) * (1.0 - k * used)
        paid = float((sigma * diagonal).sum())
        return paid, np.concatenate([np.sqrt(self.unit) * in_L.ravel(), in_b])

    def _with_pair_split(self, y: np.ndarray, mu: float) -> tuple[float, np.ndarray]:
        from ...kernels.pairsplit import smoothed_gradient, smoothed_matrix

        first = self._first
        L, _, sigma = self._parts(y)
        diagonal = np.einsum("ij,ij->i", L, L)
        gamma = (1.0 - sigma) * diagonal
        u, r = self.unit * y[first : first + self.pairs], y[first + self.pairs :]
        width = 10.0 * mu / self.s
        smoothed_matrix(
            self.a - L @ L.T, u, r, self._forced, -gamma, self._none, self.s, width, width, False,
            self._charge, self._select, self._matrix, self._level,
        )  # fmt: skip
        w, q = self._tops.pairs(self._matrix, mu)
        weight = np.exp((w - w[-1]) / mu)
        total = float(weight.sum())
        scaled = q * np.sqrt(weight / total)
        density = scaled @ scaled.T
        own = np.diagonal(density)
        paid, slopes = self._slopes(y, density, own + own @ self._select)
        gradient = np.empty_like(y)
        gradient[:first] = slopes
        smoothed_gradient(
            u, self._forced, width, False, self._charge, self._select, density,
            gradient[first : first + self.pairs], gradient[first + self.pairs :],
        )  # fmt: skip
        gradient[first:] *= self.k
        gradient[first : first + self.pairs] *= self.unit
        return paid + self.k * (float(w[-1]) + mu * np.log(total)), gradient

    def _with_pool(self, y: np.ndarray, mu: float) -> tuple[float, np.ndarray]:
        L, _, sigma = self._parts(y)
        diagonal = np.einsum("ij,ij->i", L, L)
        gamma = (1.0 - sigma) * diagonal
        blocks = (self.a - L @ L.T)[self.pool[:, :, None], self.pool[:, None, :]]
        values, q = np.linalg.eigh(blocks)
        values += gamma[self.pool].sum(axis=1)[:, None]
        top = float(values.max())
        weight = np.exp((values - top) / mu)
        total = float(weight.sum())
        weight /= total
        near = np.flatnonzero(weight.max(axis=1) > 1e-12)
        density, used = np.zeros((self.n, self.n)), np.zeros(self.n)
        for i in near:
            support = self.pool[i]
            scaled = q[i] * np.sqrt(weight[i])
            density[np.ix_(support, support)] += scaled @ scaled.T
            used[support] += weight[i].sum()
        paid, gradient = self._slopes(y, density, used)
        return paid + self.k * (top + mu * np.log(total)), gradient


def _stopping(mu: float, monitor: Monitor) -> Callable[[list[float]], bool]:
    def stop(history: list[float]) -> bool:
        return slow(history, 15, 0.01 * mu) or monitor.stopped is not None

    return stop
