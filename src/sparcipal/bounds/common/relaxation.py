"""Bound "common"; statement and proof: docs/methods/common.rst.

The best inequality for a set of sets: max <A, W> over 0 <= W <= Diag(z), tr W <= k, 0 <= z <= 1,
z = 1 where a feature is forced and sum z = s, by an interior-point method in z alone. With D =
Diag(z)^(1/2), C = D(A - lI)D = Q diag(c) Q' and the barriers mu (log det W + log det(D^2 - W)), the
best W is D Q diag(q) Q' D with 1/(1-q) - 1/q = c / mu, and the gradient in z is the diagonal of a
matrix Z with A <= lI + Z. Newton's matrix needs what a change of z does to Z:

    dZ_ii / dz_j = -(1 / z_i z_j) sum_ab Q_ia Q_ja G_ab Q_ib Q_jb,  G = mu / (qq' + (1-q)(1-q)'),

which is a sum of few squared matrices because G has a low rank up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...numerics.margins import top_sum

ITERATIONS = 60
SHRINK = 0.25  # factor on mu after a step of some length
FIRST, LAST = 0.1, 1e-12  # mu, in what a feature is worth
NEGLECTED = 1e-6  # eigenvalues of G, relative to the largest
BACK = 0.9  # part of the way to the boundary that a step may go
NEAR = 1e-13  # how close to 0 and 1 z comes
PART = 0.05  # a bound is good enough if so much of what it lacks could still be gained


@dataclass(frozen=True)
class Sets:
    """The sets T with forced <= T <= all features here, |T| <= s, that meet the group if there is
    one."""

    a: np.ndarray  # (n, n) covariance
    k: int
    s: int
    forced: np.ndarray  # (n,) bool
    pads: np.ndarray  # what features outside are worth, the s largest
    group: np.ndarray | None = None  # (n,) bool, free features

    @property
    def room(self) -> int:
        return self.s - int(np.count_nonzero(self.forced))

    def worth(self, coef: np.ndarray) -> float:
        """Return the largest sum of coefficients over a set, with no rounding accounted for."""
        free, room = ~self.forced, self.room
        own = float(coef[self.forced].sum())
        if self.group is None:
            return own + top_sum(np.append(coef[free], self.pads), room)
        best = int(np.flatnonzero(self.group)[np.argmax(coef[self.group])])
        free[best] = False
        return own + float(coef[best]) + top_sum(np.append(coef[free], self.pads), room - 1)


@dataclass(frozen=True)
class Relaxed:
    """An inequality value(T) <= k l + sum of z over T, as L with A <= lI + LL', about; and the
    point where it was found."""

    L: np.ndarray  # (n, r)
    bound: float
    share: np.ndarray  # (n,) z: how much of each feature the relaxation takes
    iterations: int = 0


def relaxed(sets: Sets, target: float) -> Relaxed:
    """Return the best inequality for these sets, or one that is below the target, or one near the
    best where that is above."""
    point = _Point(sets)
    best: Relaxed | None = None
    count = 0
    while count < ITERATIONS:
        count += 1
        point.evaluate()
        if best is None or point.bound < best.bound:
            best = Relaxed(point.factor(), point.bound, point.z.copy())
        reached = best.bound <= target or point.primal > target
        lacking = max(PART * (best.bound - target), 1e-9 * best.bound)
        if reached and (best.bound <= target or best.bound - point.primal <= lacking):
            break
        if best.bound - point.primal <= 1e-9 * best.bound or not point.step():
            break
    assert best is not None
    return replace(best, iterations=count)


class _Point:
    """The current z and l, and everything that follows from them."""

    def __init__(self, sets: Sets) -> None:
        self.sets, n = sets, len(sets.a)
        self.free = np.flatnonzero(~sets.forced)
        count = self.free.size + sets.pads.size
        # sums of z that are fixed; features outside come last
        self.rules = np.ones((1, count))
        y = np.full(count, sets.room / count)
        if sets.group is not None:
            inside = np.append(sets.group[self.free], np.zeros(sets.pads.size, dtype=bool))
            self.rules = np.vstack([self.rules, inside])
            size = np.count_nonzero(inside)
            y = np.where(inside, 1 / size, (sets.room - 1) / (count - size))
        self.z, self.outside = np.ones(n), y[self.free.size :]
        self.z[self.free] = y[: self.free.size]
        diagonal = np.diagonal(sets.a)
        self.scale = max(top_sum(diagonal, sets.s), 1e-100)
        self.l = 0.1 * self.scale / sets.k
        self.mu = FIRST * self.scale / n

    def evaluate(self) -> None:
        """Solve for W at z and l."""
        a, k, z, mu = self.sets.a, self.sets.k, self.z, self.mu
        d = np.sqrt(z)
        C = a * np.outer(d, d)
        C[np.diag_indices(len(a))] -= self.l * z
        self.c, self.Q = np.linalg.eigh(C)
        r = self.c / mu
        root = np.sqrt(r * r + 4.0)
        h = np.where(r > 0.0, 4.0 / (np.abs(r) + root), root - r)
        self.q, self.e = 2.0 / (2.0 + h), h / (2.0 + h)  # q and 1 - q
        self.squares = self.Q * self.Q
        self.bound = k * self.l + self.sets.worth((self.squares @ np.maximum(self.c, 0.0)) / z)
        self.trace = float((self.squares.T @ z) @ self.q)
        primal = float(self.q @ self.c) + self.l * self.trace
        self.primal = primal * min(1.0, k / self.trace) + float(self.outside @ self.sets.pads)

    def factor(self) -> np.ndarray:
        """Return L with LL' = Z, the positive part of C taken back from the scale of z."""
        L = self.Q * np.sqrt(np.maximum(self.c, 0.0)) / np.sqrt(self.z)[:, None]
        kept = np.square(L).sum(axis=0) > 1e-10 * self.scale
        kept[-1] = True
        return L[:, kept]

    def step(self) -> bool:
        """Take Newton's step towards the saddle point in (z, l); False where there is none."""
        y = np.append(self.z[self.free], self.outside)
        P, slope, t, curve, lacking = self._newton(y)
        try:
            factored = cho_factor(P, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        columns = cho_solve(factored, np.column_stack([slope, self.rules.T]), check_finite=False)
        if not np.isfinite(columns).all():
            return False
        prices = np.linalg.lstsq(self.rules @ columns[:, 1:], self.rules @ columns[:, 0])[0]
        dy = columns[:, 0] - columns[:, 1:] @ prices
        dl = float((t @ dy - lacking) / curve)
        down, up = dy < 0.0, dy > 0.0
        length = min(
            1.0,
            BACK * float(np.min(-y[down] / dy[down], initial=np.inf)),
            BACK * float(np.min((1.0 - y[up]) / dy[up], initial=np.inf)),
            BACK * self.l / -dl if dl < 0.0 else np.inf,
        )
        y = np.clip(y + length * dy, NEAR, 1.0 - NEAR)
        self.z[self.free], self.outside = y[: self.free.size], y[self.free.size :]
        self.l += length * dl
        if length > 0.3:
            self.mu *= SHRINK
        return self.mu > LAST * self.scale / self.sets.s and length > 1e-8

    def _newton(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        """Return Newton's matrix and slope in y = (free z, those outside) after l is eliminated,
        how the trace of W changes with y and with l, and how far it is from its optimum."""
        mu, Q, inside = self.mu, self.Q, slice(self.free.size)
        both, none = np.outer(self.q, self.q), np.outer(self.e, self.e)
        E = (Q.T * self.z) @ Q
        t = np.zeros(y.size)
        t[inside] = np.einsum("ia,ia->i", Q @ (both / (both + none) * E), Q)[self.free] / y[inside]
        curve = float((E * E * (both * none / (mu * (both + none)))).sum()) + mu / self.l**2
        lacking = self.sets.k - self.trace - mu / self.l
        P = np.outer(t, t) / curve
        P[inside, inside] += _squares(mu / (both + none), Q[self.free] / np.sqrt(y[inside, None]))
        P[np.diag_indices(y.size)] *= 1 + 1e-9
        P[np.diag_indices(y.size)] += mu / (1.0 - y) ** 2 + mu / y**2
        slope = mu / y - mu / (1.0 - y) + t * lacking / curve
        slope[inside] += (self.squares[self.free] @ (mu / self.e)) / y[inside]
        slope[self.free.size :] += self.sets.pads
        return P, slope, t, curve, lacking


def _squares(G: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return sum_ab Q_ia Q_ja G_ab Q_ib Q_jb for all i, j."""
    g, v = np.linalg.eigh(G)
    total = np.zeros((len(Q), len(Q)))
    for r in np.flatnonzero(np.abs(g) > NEGLECTED * np.abs(g).max()):
        S = (Q * v[:, r]) @ Q.T
        total += g[r] * S * S
    return total
