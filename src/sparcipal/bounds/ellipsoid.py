"""Bound "ellipsoid"; statement and proof: docs/methods/ellipsoid.rst.

For A = F'F with columns f_i of F (n x p): if T and all P_i are positive semidefinite and f_i f_i'
<= T + P_i, no support of s features explains more than lambda_max(s T + sum_i P_i). Features inside
the ellipsoid f'T^-1 f <= 1 need no P_i; the others get one of rank one, w_i w_i'. So all features
are bounded at once by n x n matrices, which is cheap where samples are few.

T is found together with a density matrix Y as the saddle point of s <T, Y> + sum_i kappa_i, where
kappa_i is the largest eigenvalue of C (f_i f_i' - T) C if that is positive, C = Y^(1/2). With C T C
= R diag(l) R' and g = R'C f_i it is the root of sum_k g_k^2 / (kappa + l_k) = 1, and the best P_i
is kappa h h' with h = C^-1 R q, q = g / (kappa + l) divided by its length. Any T and Y give a valid
bound, because the stored cover is made to include every feature afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..numerics import margins
from ..numerics.margins import SAFETY, SINGLE
from ..problem.components import variances
from ..problem.monitor import Monitor
from ..problem.problem import Component, Options, Problem
from ..problem.result import Bound
from .cheap import proved_eigenvalue_sum
from .pairsplit.certificate import top_eigenvalue

MOST_SAMPLES = 400
# Rounds between two evaluations of the averages; the steps restart from the best averages.
ROUNDS = {"fast": (20, 20, 20, 20), "full": (20, 20, 20, 20, 40, 80, 120)}
# The steps end after so much work, counted in about nanoseconds of one core.
WORK = {"fast": 4e9, "full": np.inf}
MULTIPLES = 2.0 ** np.arange(-1, 9)  # factors on the first T that are tried
MIXED = 0.1  # share of the identity in the first density matrix
# Limits on how much of its first half the second half of a step undoes, relatively: below SHORT the
# next step is longer, above LONG it is shorter, and above REFUSED the step is not made.
SHORT, LONG, REFUSED = 0.4, 0.7, 1.0
FIRST_STEP, LONGER, SHORTER, MUCH_SHORTER = 0.3, 1.2, 0.8, 0.5
NEAR = 0.2  # features with a smaller f'T^-1 f are left out until the next evaluation
FLOOR = 1e-8  # smallest eigenvalue of T, relative to the largest
NEWTON = 30  # largest number of Newton steps


@dataclass(frozen=True)
class Cover:
    """T and w_i with f_i f_i' <= stretch (T + w_i w_i') for every feature, w_i = 0 if not named."""

    T: np.ndarray  # (n, n)
    features: np.ndarray  # (m,) increasing
    W: np.ndarray  # (m, n) float32
    stretch: float = 1.0

    def record(self) -> dict[str, Any]:
        """Return the fields that a proof stores; a checker computes the stretch again."""
        features = self.features.astype(np.int32)
        return {"features": features, "order": len(self.T), "T": self.T, "W": self.W}

    def bound(self, s: int) -> float:
        """Return an upper bound on stretch * lambda_max(s T + sum of w_i w_i')."""
        W = self.W.astype(np.float64)
        matrix = s * self.T + W.T @ W
        rounding = SAFETY * margins.sum_of(len(W) + 4) * float(np.trace(matrix))
        return self.stretch * (proved_eigenvalue_sum(matrix, 1) + rounding)


def ellipsoid_bound(
    problem: Problem,
    components: tuple[Component, ...],
    options: Options,
    effort: str,
    below: float = np.inf,
    most: float = np.inf,
) -> Bound | None:
    """Add the bounds of each component alone; None where there are many samples or none.

    The steps end where those of the last rounds, once more, would not lead below `below`, and after
    `most` work.
    """
    F = problem.covariance.factor()
    value = float(variances(problem, components).sum())
    if F is None or not F.shape[0] < F.shape[1] or F.shape[0] > MOST_SAMPLES or not value > 0.0:
        return None
    share, first = value / problem.k, components[0]
    saddle = Saddle(F / np.sqrt(share), problem.s_max, F[:, first.support] @ first.weights)
    most = min(WORK[effort], most)
    for number, rounds in enumerate(ROUNDS[effort]):
        before = saddle.lowest
        lowest = saddle.improve(rounds, options.monitor, most)
        closed = problem.k == 1 and lowest <= 1 + options.tol / 2
        if closed or saddle.work > most or options.monitor.stopped is not None:
            break
        # the first rounds may be slow, but not without any gain
        ahead = lowest - (before - lowest) if number or lowest == before else 0.0
        if problem.k == 1 and ahead * share > below:
            break
    options.meter.spend(saddle.work)
    cover = covering(F, share * saddle.best[0], np.sqrt(share) * saddle.directions())
    if not np.isfinite(cover.stretch):
        return None
    sizes = problem.cardinalities
    total = sum(cover.bound(s) for s in sizes) * (1 + SAFETY * margins.sum_of(len(sizes) + 8))
    rounding = sum(problem.covariance.rounding(s) for s in sizes)
    margin = SAFETY * problem.covariance.rounding(problem.n_nonzero)
    return Bound("ellipsoid", total + SAFETY * rounding, cover.record(), margin)


def covering(F: np.ndarray, T: np.ndarray, directions: np.ndarray) -> Cover:
    """Lengthen the columns of `directions` (n x p) to cover the features outside T.

    With h = L^-1 f and g = L^-1 w, LL' = T, the feature is covered if |h|^2 - (g'h)^2 / (1 + |g|^2)
    <= 1. A useless direction, such as zero, is replaced by the feature itself.
    """
    T = (T + T.T) / 2
    eigenvalues = np.linalg.eigvalsh(T)
    T = T + max(0.0, FLOOR * float(eigenvalues[-1]) - float(eigenvalues[0])) * np.eye(len(T))
    inverse = np.linalg.inv(np.linalg.cholesky(T))
    h = inverse @ F
    reach = (h * h).sum(axis=0)
    outside = np.flatnonzero(reach > 1.0)
    h, w = h[:, outside], directions[:, outside]
    g, over = inverse @ w, reach[outside] - 1.0
    along, own = (g * h).sum(axis=0) ** 2, (g * g).sum(axis=0)
    useful = along > over * own * (1 + 1e-6)
    square = over / np.where(useful, along - over * own, 1.0)
    w = np.where(useful, w * np.sqrt(square), F[:, outside])
    # in single precision a vector may become shorter, but not by more than this
    W = ((1 + SINGLE) * w.T).astype(np.float32)
    cover = Cover(T, outside, W)
    return replace(cover, stretch=_stretch(F, cover, inverse))


def _stretch(F: np.ndarray, cover: Cover, inverse: np.ndarray) -> float:
    """Return a factor, hardly above one, with which T + w_i w_i' covers every feature.

    For any matrix C and numbers a_i, with E = C T C' - I and u_i = f_i - a_i w_i, it is at least
    (|C u_i|^2 + a_i^2) / (1 - |E|).
    """
    n, W = len(F), cover.W.astype(np.float64).T
    rounds = SAFETY * margins.whitened(n)
    sizes = np.abs(inverse)
    residual = np.abs(inverse @ cover.T @ inverse.T - np.eye(n))
    residual += rounds * (sizes @ np.abs(cover.T) @ sizes.T)
    missing = float(residual.sum(axis=1).max())
    g, h = inverse @ W, inverse @ F
    a = (g * h[:, cover.features]).sum(axis=0) / (1 + (g * g).sum(axis=0))
    size = np.linalg.norm(F, axis=0)
    h[:, cover.features] -= g * a
    size[cover.features] += np.linalg.norm(W, axis=0) * np.abs(a)
    rows = np.linalg.norm(inverse, axis=1)
    reach = ((np.abs(h) + rounds * np.outer(rows, size)) ** 2).sum(axis=0)
    reach[cover.features] += a * a
    largest = float(reach.max(initial=0.0)) / (1 - missing) if missing < 0.5 else np.inf
    return max(1.0, largest) * (1 + SAFETY * margins.sum_of(n + 8))


class Saddle:
    """Extragradient steps for T and Y, in units where the value is one.

    Steps are multiplicative: log Y moves along B = s T + sum P_i, and T along its gradient G = s Y
    - sum v_i v_i' (v_i = C R q_i) in its own geometry. How far the second half of a step departs
    from the first says how long the next may be.
    """

    def __init__(self, F: np.ndarray, s: int, direction: np.ndarray) -> None:
        self.F, self.s, self.step, self.work = F, s, FIRST_STEP, 0.0
        n, p = F.shape
        u = direction / max(float(np.linalg.norm(direction)), 1e-300)
        threshold = max(float(np.sort((u @ F) ** 2)[-min(s, p)]), 1e-6)
        T = threshold * (0.6 * np.eye(n) + 0.4 * np.outer(u, u))
        Y = (1 - MIXED) * np.outer(u, u) + MIXED * np.eye(n) / n
        self._columns = F
        # where many features are as long as those of the solution, a larger ellipsoid is better
        tops = [top_eigenvalue(self._at(m * T, Y).B) for m in MULTIPLES]
        self.best = float(MULTIPLES[int(np.argmin(tops))]) * T, Y
        self.lowest = min(tops)

    def improve(self, rounds: int, monitor: Monitor, work: float) -> float:
        """Make some rounds from the best T and Y, until that much work was done in all; return an
        estimate of the best bound."""
        (T, Y), total = self.best, 0.0
        self._columns = self.F[:, _reach(T, self.F) > NEAR]
        log_y = _function(Y, np.log)
        now = self._at(T, Y)
        sums = [np.zeros_like(T), np.zeros_like(T)]
        for number in range(1, rounds + 1):
            if monitor.stopped is not None or self.work > work:
                break
            step = self.step / max(1.0, float((now.B * Y).sum()))
            ahead_t, ahead_y = _moved(T, now.G, step), _density(log_y + step * now.B)
            ahead = self._at(ahead_t, ahead_y)
            next_t, next_log = _moved(T, ahead.G, step), log_y + step * ahead.B
            next_y = _density(next_log)
            apart = max(_apart(T, ahead_t, next_t), _apart(Y, ahead_y, next_y))
            if apart <= REFUSED:
                weight = number * self.step
                sums = [sums[0] + weight * ahead_t, sums[1] + weight * ahead_y]
                total += weight
                T, Y, log_y = next_t, next_y, next_log
                now = self._at(T, Y)
            self.step *= _change(apart)
        if total > 0.0:
            self._look(sums[0] / total, sums[1] / total)
        return self.lowest

    def directions(self) -> np.ndarray:
        """Return w_i of all features at the best T and Y, zero for those that need none."""
        self._columns = self.F
        found = self._at(*self.best)
        out = np.zeros_like(self.F)
        out[:, found.outside] = found.W
        return out

    def _look(self, T: np.ndarray, Y: np.ndarray) -> None:
        self._columns = self.F
        top = top_eigenvalue(self._at(T, Y).B)
        if top < self.lowest:
            self.best, self.lowest = (T, Y), top

    def _at(self, T: np.ndarray, Y: np.ndarray) -> _Point:
        """Compute the best P_i for T and Y on the columns that are not left out."""
        w, Q = np.linalg.eigh(Y)
        w = np.maximum(w, 1e-12 * w[-1])
        root, back = (Q * np.sqrt(w)) @ Q.T, (Q / np.sqrt(w)) @ Q.T
        ell, R = np.linalg.eigh(root @ T @ root)
        ell = np.maximum(ell, 1e-14 * ell[-1])
        turned = R.T @ root
        g = turned @ self._columns
        outside = np.flatnonzero((1.0 / ell) @ (g * g) > 1.0)
        g = g[:, outside]
        n = len(T)
        self.work += n * (n * (0.1 * self._columns.shape[1] + 2.0 * n) + 40.0 * outside.size)
        self.work += 0.25 * n * n * outside.size
        kappa = roots(g * g, ell)
        q = g / (kappa + ell[:, None])
        q /= np.linalg.norm(q, axis=0)
        W, V = back @ (R @ q) * np.sqrt(kappa), turned.T @ q
        return _Point(self.s * T + W @ W.T, self.s * Y - V @ V.T, W, outside)


@dataclass(frozen=True)
class _Point:
    """Gradients and directions at one T and Y."""

    B: np.ndarray  # s T + sum P_i, the gradient in Y
    G: np.ndarray  # the gradient in T
    W: np.ndarray  # (n, m): P_i = w_i w_i'
    outside: np.ndarray  # (m,) positions among the columns that were not left out


def roots(squares: np.ndarray, ell: np.ndarray) -> np.ndarray:
    """Solve sum_k squares_k / (kappa + ell_k) = 1 for kappa > 0 in each column that has a root.

    Newton's method for the reciprocal, which is concave and hardly curved. It rises to the root
    from a Rayleigh quotient of gg' - diag(ell), whose largest eigenvalue kappa is.
    """
    length = squares.sum(axis=0)
    kappa = np.maximum(length - (ell @ squares) / length, 0.0)
    for _ in range(NEWTON):
        shares = squares / (kappa + ell[:, None])
        total = shares.sum(axis=0)
        slope = (shares / (kappa + ell[:, None])).sum(axis=0)
        change = (total - 1.0) * total / slope
        kappa = np.maximum(kappa + change, 0.0)
        if (np.abs(change) <= 1e-9 * kappa).all():
            break
    return np.maximum(kappa, margins.sum_of(1) * length)


def _change(apart: float) -> float:
    """Return the factor from this step length to the next."""
    if apart > REFUSED:
        return MUCH_SHORTER
    return SHORTER if apart > LONG else (LONGER if apart < SHORT else 1.0)


def _apart(old: np.ndarray, ahead: np.ndarray, new: np.ndarray) -> float:
    """Return the distance between the ends of both halves of a step, relative to the first."""
    length = float(np.linalg.norm(ahead - old))
    return float(np.linalg.norm(new - ahead)) / max(length, 1e-300)


def _reach(T: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Return f'T^-1 f of every column, approximately."""
    w, Q = np.linalg.eigh(T)
    h = Q.T @ F
    return np.asarray((1.0 / np.maximum(w, FLOOR * w[-1])) @ (h * h))


def _function(Y: np.ndarray, function: np.ufunc) -> np.ndarray:
    """Apply a function to the eigenvalues of a positive definite matrix."""
    w, Q = np.linalg.eigh(Y)
    return np.asarray((Q * function(np.maximum(w, 1e-14 * w[-1]))) @ Q.T)


def _density(log: np.ndarray) -> np.ndarray:
    """Return exp(log), divided by its trace."""
    w, Q = np.linalg.eigh(log)
    e = np.exp(w - w[-1])
    return np.asarray((Q * (e / e.sum())) @ Q.T)


def _moved(T: np.ndarray, slope: np.ndarray, step: float) -> np.ndarray:
    """Return T^(1/2) exp(-step T^(1/2) slope T^(1/2)) T^(1/2), the exponent limited to 1."""
    root = _function(T, np.sqrt)
    w, Q = np.linalg.eigh(root @ slope @ root)
    return np.asarray(root @ (Q * np.exp(np.clip(-step * w, -1.0, 1.0))) @ Q.T @ root)
