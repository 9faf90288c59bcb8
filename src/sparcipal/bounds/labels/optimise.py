"""Bound "labels"; statement and proof: docs/methods/labels.rst.

The certificates of all groups of a leaf and the prices that they share are optimised together, by
L-BFGS on the smoothed bound: for each group what kyfan/optimise.py does for one. The gradient in
the price of a feature is one less how often the groups use it; certificates with fixed prices are
the special case of no price that may move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...numerics.lbfgs import minimise, slow
from ..kyfan.optimise import Occupied
from ..pairsplit import Split
from .groups import Group
from .rows import Rows


class LeafOptimiser:
    """The smoothed bound of a leaf, its current point, and the work arrays."""

    def __init__(
        self,
        rows: Rows,
        groups: Sequence[Group],
        price: np.ndarray,
        free: np.ndarray,
        value: float,
        k: int,
    ) -> None:
        """`free` are the positions of the prices that may move, `value` the best known of k."""
        self.rows, self.k = rows, k
        self.groups, self.fixed, self.free = list(groups), price, free
        s = rows.q + 1
        largest = np.sort(rows.a.diagonal())[::-1][: s * k]
        self.u_unit = max(float(largest.mean()), 1e-300)
        self.price_unit = max(value / (s * k), 1e-300)
        self.mu_unit = max(value / k, 1e-300)
        self.work = [_Work(rows, group) for group in groups]
        parts = [part for work in self.work for part in (work.u / self.u_unit, work.r)]
        self.point = np.concatenate([*parts, price[free] / self.price_unit])
        self.lowest = np.inf  # the bound of the last point on the cores, not smoothed

    def run(self, mu: float, steps: int, target: float = -np.inf, stopped: object = None) -> None:
        """Take up to `steps` L-BFGS steps at temperature mu (relative to value / k)."""
        absolute = mu * self.mu_unit

        def stop(history: list[float]) -> bool:
            return (
                slow(history, 25, 0.01 * absolute * self.k)
                or self.lowest <= target
                or bool(getattr(stopped, "stopped", None))
            )

        self.point = minimise(
            lambda y: self._evaluate(y, absolute),
            self.point,
            steps,
            stop,
            nonnegative=self.free.size,
        )

    def prices(self) -> np.ndarray:
        """Return the prices, rounded to the single precision in which they are stored."""
        return self._prices(self.point).astype(np.float32).astype(np.float64)

    def _prices(self, y: np.ndarray) -> np.ndarray:
        price = self.fixed.copy()
        if self.free.size:
            price[self.free] = np.maximum(y[-self.free.size :], 0.0) * self.price_unit
        return price

    def certificates(self) -> list[Group]:
        out, start = [], 0
        for group, work in zip(self.groups, self.work):
            m = work.u.size
            u = self.u_unit * self.point[start : start + m]
            r = self.point[start + m : start + 2 * m]
            split = Split.rounded(group.core, work.upper, u, r)
            out.append(replace(group, split=split))
            start += 2 * m
        return out

    def _evaluate(self, y: np.ndarray, mu: float) -> tuple[float, np.ndarray]:
        from ...kernels.pairsplit import smoothed_gradient, smoothed_matrix

        s = self.rows.q + 1
        width = 10.0 * mu / s
        price, gradient = self._prices(y), np.empty_like(y)
        total = lowest = float(price.sum())
        used, start = np.zeros(price.size), 0
        for group, work in zip(self.groups, self.work):
            m = work.u.size
            u = self.u_unit * y[start : start + m]
            smoothed_matrix(
                work.a, u, y[start + m : start + 2 * m], work.forced, price[group.core],
                group.pad, s, width, width, self.rows.nonnegative, work.charge, work.select,
                work.matrix, work.level,
            )  # fmt: skip
            q, weight, value, top = work.occupied.pairs(work.matrix, mu)
            scaled = q * np.sqrt(weight)
            density = np.matmul(scaled, scaled.T, out=work.matrix)
            smoothed_gradient(
                u, work.forced, width, self.rows.nonnegative, work.charge, work.select, density,
                gradient[start : start + m], gradient[start + m : start + 2 * m],
            )  # fmt: skip
            gradient[start : start + m] *= self.u_unit
            diagonal = density.diagonal()
            used[group.core] += diagonal + diagonal @ work.select
            total += value
            # the smoothed charges lie below the charges by half their width each
            lowest += top + 0.5 * width * s * group.count
            start += 2 * m
        self.lowest = lowest
        if self.free.size:
            gradient[start:] = (1.0 - used[self.free]) * self.price_unit
        return total, gradient


class _Work:
    """The arrays of one group."""

    def __init__(self, rows: Rows, group: Group) -> None:
        n = group.core.size
        self.upper = np.triu_indices(n, 1)
        self.a = np.ascontiguousarray(rows.a[np.ix_(group.core, group.core)])
        self.u = group.split.u[self.upper].astype(np.float64)
        self.r = group.split.r[self.upper].astype(np.float64)
        self.forced = np.isin(group.core, group.forced)
        self.charge, self.select, self.matrix = np.empty((3, n, n))
        self.level = np.zeros(n)
        self.occupied = Occupied(n, group.count)
