"""Bound "lowrank"; statement and proof: docs/methods/lowrank.rst.

Several components of V V', V with few columns, are bounded by prices and a search on the sphere.

For prices pi >= 0 and disjoint supports S_1..S_k of at most s rows,

    sum_j lambda_max(V_S V_S') <= sum pi + k max_c F_pi(c),

F_pi(c) the sum of the s largest positive (v_i.c)^2 - pi_i: every row is used at most once, and
sphere.py bounds the maximum. The right side is convex in pi. A subgradient is 1 - k on the rows
that attain the maximum, 1 elsewhere; steps are Polyak's (1969), towards the best value known, with
momentum. The first price of a row is what it is worth beyond the last row that is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...numerics import margins
from ...problem.problem import Options
from .sphere import Effort, SphereResult, sphere_search

STEPS = 400  # steps of one round, after which the prices are proved
ROUNDS = 4  # the steps go on if a proof meets a better point of the sphere
MOMENTUM = 0.9
CONES = 100_000  # cones of one proof
COARSE, FINE = 1e-2, 1e-6  # accuracy of a proof, relative to the maximum
SHARE = 0.02  # share of the gap that this accuracy may cost
PATIENCE = 150  # steps without progress before a round ends
RANDOM = 8  # points from which F is climbed, beside those of the answer and of earlier steps
NEAR = 0.5  # supports this close to the best, relative to its excess, share the subgradient


@dataclass(frozen=True)
class PricedSphere:
    """No k components explain more of V V' than `bound`."""

    bound: float
    prices: np.ndarray  # (p,) float32
    found: SphereResult
    steps: int


def priced_sphere(
    V: np.ndarray,
    s: int,
    supports: Sequence[np.ndarray],
    value: float,
    nonnegative: bool = False,
    options: Options | None = None,
) -> PricedSphere:
    """Find prices for as many components as `supports`, which explain `value`."""
    return _Prices(V, s, supports, value, nonnegative, options or Options()).run()


class _Prices:
    def __init__(
        self,
        V: np.ndarray,
        s: int,
        supports: Sequence[np.ndarray],
        value: float,
        nonnegative: bool,
        options: Options,
    ) -> None:
        self.V, self.s, self.k = V, s, len(supports)
        self.supports, self.value = supports, value
        self.nonnegative, self.options = nonnegative, options
        sizes = np.einsum("ij,ij->i", V, V)
        # Rows this short are hardly ever chosen; the proof looks at all of them.
        self.long = np.argsort(-sizes, kind="stable")[: 4 * self.k * s + 200]
        rng = np.random.default_rng(options.seed)
        own = [leading_direction(V[support]) for support in supports]
        self.points = np.array([*own, *rng.standard_normal((RANDOM, V.shape[1]))]).T
        self.steps = 0

    def run(self) -> PricedSphere:
        tol, monitor = self.options.tol, self.options.monitor
        price, best = min((self._first(), np.zeros(len(self.V))), key=self._guess), None
        for _ in range(ROUNDS):
            price, guess = self._descend(price)
            proved = self._proved(price, guess - self.value)
            if best is None or proved.bound < best.bound:
                best = proved
            gap = best.bound - self.value
            missed = proved.bound - guess > 0.1 * gap
            if gap <= tol * self.value or monitor.stopped or not missed:
                break
            met = [leading_direction(self.V[support]) for support in proved.found.others]
            self.points = np.column_stack([self.points, proved.found.c, *met])
        assert best is not None
        return best

    def _descend(self, price: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best prices of some steps, and an estimate of their bound."""
        best, lowest, gap = price, np.inf, np.inf
        step = np.zeros_like(price)
        enough, stale = 0.3 * self.options.tol * self.value, 0
        for _ in range(STEPS):
            values, supports = self._climb(price)
            total = float(price.sum()) + self.k * float(values.max(initial=0.0))
            stale = 0 if total - self.value < 0.99 * gap else stale + 1
            if total < lowest:
                best, lowest, gap = price, total, total - self.value
            self.steps += 1
            if gap <= enough or stale > PATIENCE or self.options.monitor.stopped:
                break
            slope = self._slope(price, values, supports)
            # A component that would push a price below zero is removed from the slope.
            slope[(price <= 0.0) & (slope > 0.0)] = 0.0
            size = float(slope @ slope)
            if size == 0.0:
                break
            length = max(total - self.value, 0.0) / size
            step = MOMENTUM * step + (1.0 - MOMENTUM) * length * slope
            price = np.maximum(price - step, 0.0)
        return best, lowest

    def _guess(self, price: np.ndarray) -> float:
        return float(price.sum()) + self.k * float(self._climb(price)[0].max())

    def _climb(self, price: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return F at local maxima near the known points, and the rows that attain it."""
        rows, paid = self.V[self.long], price[self.long][:, None]
        points, split = self.points, self.long.size - min(self.s, self.long.size)
        for _ in range(3):
            points = _directions(points)
            dots = rows @ points
            seen = np.maximum(dots, 0.0) if self.nonnegative else dots
            gains = np.square(seen) - paid
            chosen = np.zeros(gains.shape, dtype=bool)
            np.put_along_axis(chosen, np.argpartition(gains, split, axis=0)[split:], True, axis=0)
            chosen &= gains > 0.0
            image = rows.T @ np.where(chosen, seen, 0.0)
            points = np.where(image.any(axis=0), image, points)
        values = np.where(chosen, gains, 0.0).sum(axis=0)
        self.points[:, : len(self.supports)] = points[:, : len(self.supports)]
        return values, [self.long[column] for column in chosen.T]

    def _first(self) -> np.ndarray:
        """Return (max_j (v_i.c_j)^2 - lam)_+, lam that of the last row used; c_j from supports."""
        dots = np.column_stack([self.V @ leading_direction(self.V[S]) for S in self.supports])
        if self.nonnegative:
            dots = np.maximum(dots, 0.0)
        worth = np.square(dots).max(axis=1)
        used = min(self.k * self.s, worth.size)
        last = float(np.partition(worth, worth.size - used)[worth.size - used])
        return np.maximum(worth - last, 0.0)

    def _slope(
        self, price: np.ndarray, values: np.ndarray, supports: list[np.ndarray]
    ) -> np.ndarray:
        """Return a subgradient, averaged over the supports that are nearly the best."""
        used = sum(float(price[support].sum()) for support in self.supports)
        mean = (self.value - used) / self.k  # what a component of the answer is worth
        top = float(values.max())
        near = {
            supports[i].tobytes(): supports[i]
            for i in np.flatnonzero(values >= top - NEAR * max(top - mean, 0.0))
        }
        slope = np.ones_like(price)
        for support in near.values():
            slope[support] -= self.k / len(near)
        return slope

    def _proved(self, price: np.ndarray, gap: float) -> PricedSphere:
        """Prove the bound of the prices, rounded as they are stored, over the whole sphere."""
        price = price.astype(np.float32)
        exact = price.astype(np.float64)
        eps = COARSE
        if self.value > 0.0:
            eps = float(np.clip(SHARE * gap / self.value, FINE, COARSE))
        found = sphere_search(
            self.V,
            self.s,
            nonnegative=self.nonnegative,
            prices=exact,
            effort=Effort(eps, eps * self.value / self.k, CONES, others=2 * self.k),
            options=self.options,
        )
        total = float(exact.sum()) + self.k * found.bound
        return PricedSphere(
            total * (1 + margins.SAFETY * margins.priced(exact.size)), price, found, self.steps
        )


def _directions(points: np.ndarray) -> np.ndarray:
    """Scale the columns to unit length without underflow; zero columns stay zero."""
    size = np.abs(points).max(axis=0)
    points = points / np.where(size > 0.0, size, 1.0)
    length = np.linalg.norm(points, axis=0)
    return points / np.where(length > 0.0, length, 1.0)


def leading_direction(rows: np.ndarray) -> np.ndarray:
    """Return the unit vector c that maximises the sum of (row.c)^2 over the rows (m, r)."""
    if rows.shape[0] == 0:
        return np.eye(rows.shape[1])[0]
    lead: np.ndarray = np.linalg.svd(rows, full_matrices=False)[2][0]
    # Nonnegative components depend on the sign: take the one with the larger positive part.
    dots = rows @ lead
    up, down = np.maximum(dots, 0.0), np.maximum(-dots, 0.0)
    return lead if float(up @ up) >= float(down @ down) else -lead
