"""Solve the DSPCA relaxation by block coordinate ascent (Zhang & El Ghaoui 2011).

    phi(l) = max tr(AZ) - l |Z|_1  over Z psd, tr Z = 1      (d'Aspremont et al. 2007)
           = min lambda_max(A + U)  over |U_ij| <= l

Nonnegative components add Z_ij >= 0, which leaves U_ij >= -l as the only condition on U.

Where |A_ij| <= l (nonnegative: A_ij <= l), U_ij = -A_ij makes the entry of A + U zero, so the
features separate into blocks that are solved one by one, and phi is the largest over the blocks.
A block is solved by ascent on `tr(AX) - l|X|_1 - (tr X)^2/2 + beta log det X`, column by column,
with beta falling to zero; finish.py improves both solutions at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from ..numerics.eigen import is_definite, largest_eigenpairs, largest_eigenvalues
from ..numerics.margins import power_of_two
from ..problem.monitor import Monitor
from .finish import box, is_ripe, leading, objective, purified, pushed_down

# The duality gap is computed every so many sweeps.
SWEEPS = 3
# The box QP of a column takes so many passes; the sweeps make the solution accurate.
PASSES = 5
# beta falls by this factor whenever the gap is computed.
SHRINK = 0.3
# Once beta accounts for no more than this fraction of the value, both solutions are finished by
# other means, the dual one in so many steps.
CLOSE = 0.05
STEPS = 15
# The square of a smaller variance may underflow.
TINY = 2.0**-400


@dataclass(frozen=True)
class Relaxation:
    """A relaxation is solved by a feasible pair: `value <= phi <= bound` up to rounding."""

    penalty: float
    Z: np.ndarray  # (n, n) psd, trace 1
    value: float  # tr(AZ) - l |Z|_1
    dual: np.ndarray  # (n, n) the matrix A + U
    bound: float  # its largest eigenvalue, as computed
    n_iter: int
    converged: bool
    looks: int = 0  # reads of entries of X by the box QPs of the ascent

    @property
    def gap(self) -> float:
        """Return the duality gap relative to the value."""
        return (self.bound - self.value) / self.value if self.value > 0 else np.inf

    def direction(self) -> np.ndarray:
        """Return the leading eigenvector of Z, with the sign that makes its sum nonnegative."""
        x = largest_eigenpairs(self.Z, 1)[1][:, 0]
        return x if x.sum() >= 0 else -x


@dataclass(frozen=True)
class Start:
    """A start is a solution at another penalty; `dual` may lie outside the box of this one."""

    Z: np.ndarray
    dual: np.ndarray

    def on(self, features: np.ndarray) -> Start:
        block = np.ix_(features, features)
        return Start(self.Z[block], self.dual[block])


def soft_threshold(A: np.ndarray, penalty: float, nonnegative: bool) -> np.ndarray:
    """Return A + U for U = -clip(A, -l, l), with -l on the diagonal: the cheapest dual point."""
    if nonnegative:
        M = np.maximum(A - penalty, 0.0)
    else:
        M = np.sign(A) * np.maximum(np.abs(A) - penalty, 0.0)
    M[np.diag_indices_from(M)] = np.diagonal(A) - penalty
    return M


@dataclass(frozen=True)
class Sweeps:
    """How many sweeps a block may take, and what may stop them; `plain` ones run the ascent of the
    paper alone, without the steps of finish.py before and after it."""

    most: int = 60
    plain: bool = False
    monitor: Monitor = field(default_factory=Monitor)

    @property
    def stopped(self) -> bool:
        return self.monitor.stopped is not None


def ascend(
    A: np.ndarray,
    penalty: float,
    *,
    nonnegative: bool = False,
    tol: float = 1e-3,
    starts: Sequence[Start] = (),
    sweeps: Sweeps = Sweeps(),
) -> Relaxation:
    """Solve the relaxation to a relative duality gap of `tol`, or as far as the sweeps go.

    `starts` are solutions at other penalties.

    Raises ValueError when the penalty is at least the largest variance, because then phi is not
    positive.
    """
    n = A.shape[0]
    largest = float(np.diagonal(A).max())
    if not 0 <= penalty < largest:
        raise ValueError(
            f"penalty={penalty:.6g} must lie in [0, {largest:.6g}): at the largest variance and "
            "above no feature is worth its price"
        )
    if largest < TINY:
        how = {"nonnegative": nonnegative, "tol": tol, "sweeps": sweeps}
        return _enlarged(A, penalty, starts, how)
    dual = soft_threshold(A, penalty, nonnegative)
    top = int(np.argmax(np.diagonal(A)))
    best = _Block(np.array([top]), np.ones((1, 1)), largest - penalty)
    bound, total, looks, converged = -np.inf, 0, 0, True
    for features, potential in _blocks(dual):
        if potential <= best.value * (1 + tol / 2) or features.size == 1:
            bound = max(bound, potential)
            continue
        block = A[np.ix_(features, features)]
        near = [start.on(features) for start in starts]
        pair = _Pair(block, penalty, nonnegative, potential, tol)
        pair.take(near)
        if not sweeps.plain and not pair.closed:
            pair.guess()
        done, seen = _ascend_block(pair, potential, sweeps)
        dual[np.ix_(features, features)] = pair.dual
        bound = max(bound, pair.bound)
        total, looks = total + done, looks + seen
        converged &= pair.closed
        if pair.value > best.value:
            best = _Block(features, pair.Z, pair.value)
    Z = np.zeros((n, n))
    Z[np.ix_(best.features, best.features)] = best.Z
    return Relaxation(penalty, Z, best.value, dual, bound, total, converged, looks)


def _enlarged(
    A: np.ndarray, penalty: float, starts: Sequence[Start], how: dict[str, Any]
) -> Relaxation:
    """Solve in larger units, where squares of variances do not underflow, and scale back."""
    up = 1.0 / max(power_of_two(float(np.diagonal(A).max())), 2.0**-1000)
    larger = [Start(start.Z, start.dual * up) for start in starts]
    found = ascend(A * up, penalty * up, starts=larger, **how)
    return replace(
        found,
        penalty=penalty,
        value=found.value / up,
        dual=found.dual / up,
        bound=found.bound / up,
    )


@dataclass(frozen=True)
class _Block:
    features: np.ndarray
    Z: np.ndarray
    value: float


def _blocks(soft: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Return the connected blocks of the thresholded matrix, and its top eigenvalue on each."""
    graph = soft != 0
    np.fill_diagonal(graph, False)
    count, label = connected_components(graph, directed=False)
    order = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[order], np.arange(count + 1))
    found = []
    for start, stop in pairwise(starts):
        features = order[start:stop]
        part = soft[np.ix_(features, features)]
        m = features.size
        potential = part[0, 0] if m == 1 else largest_eigenvalues(part, 1)[0]
        found.append((features, float(potential)))
    return sorted(found, key=lambda pair: -pair[1])


class _Pair:
    """A pair holds the best primal and the best dual solution of a block so far."""

    def __init__(
        self, A: np.ndarray, penalty: float, nonnegative: bool, potential: float, tol: float
    ) -> None:
        self.A, self.penalty, self.nonnegative = np.ascontiguousarray(A), penalty, nonnegative
        self.tol, self.limits = tol, box(A, penalty, nonnegative)
        top = int(np.argmax(np.diagonal(A)))
        self.Z, self.value = np.zeros_like(self.A), float(A[top, top]) - penalty
        self.Z[top, top] = 1.0
        self.dual, self.bound = soft_threshold(A, penalty, nonnegative), potential

    @property
    def closed(self) -> bool:
        return self.bound - self.value <= self.tol * self.value

    def offer(self, Z: np.ndarray, M: np.ndarray) -> None:
        """Keep a psd matrix Z of any trace and a matrix M within the box if they are better."""
        value = objective(self.A, self.penalty, Z) / float(np.trace(Z))
        if value > self.value:
            self.Z, self.value = Z / np.trace(Z), value
        reached = float(largest_eigenvalues(M, 1)[0])
        if reached < self.bound:
            self.dual, self.bound = M, reached

    def guess(self) -> None:
        """Try the leading direction of the dual matrix: it often closes the gap without a sweep."""
        x = leading(self.A, self.penalty, self.nonnegative, self.dual)
        Z = np.outer(x, x)
        value = objective(self.A, self.penalty, Z)
        if value > self.value:
            self.Z, self.value = Z, value
            if self.bound - value <= CLOSE * value:
                self.finish()

    def finish(self) -> None:
        self.Z, self.value = purified(self.A, self.penalty, self.nonnegative, self.Z, self.value)
        self.dual, self.bound = pushed_down(
            self.limits, self.dual, self.bound, self.value, self.tol, STEPS
        )

    def take(self, starts: Sequence[Start]) -> None:
        """Offer solutions at other penalties and, if there are two, mixtures of them."""
        near = [s for s in starts if np.trace(s.Z) > 0.5]
        for part in (0.0, 0.25, 0.5, 0.75, 1.0) if len(near) == 2 else (1.0,) if near else ():
            Z = part * near[0].Z + (1 - part) * near[-1].Z
            M = part * near[0].dual + (1 - part) * near[-1].dual
            self.offer(Z, np.clip(M, *self.limits))
        if near:
            self.finish()


def _ascend_block(pair: _Pair, potential: float, sweeps: Sweeps) -> tuple[int, int]:
    """Ascend until the pair is closed; return the number of sweeps and of reads of X.

    `potential` bounds the value from above and sets the scale of X and of beta (in units of A^2).
    """
    from ..kernels.dspca import sweep

    A, penalty = pair.A, pair.penalty
    n = A.shape[0]
    X, U = np.eye(n) * (potential / n), A.copy()
    lists = np.zeros((n, n), dtype=np.int32), np.zeros(n, dtype=np.int64)
    work = np.empty(n), np.empty(n), np.empty(n)
    beta, spare, done, looks = 0.5 * potential**2 / n, 0.3, 0, 0
    while not pair.closed and done < sweeps.most and not sweeps.stopped:
        safe = X.copy(), lists[0].copy(), lists[1].copy()
        for turn in range(SWEEPS):
            if turn and sweeps.stopped:
                break
            looks += sweep(
                A, X, U, penalty, pair.nonnegative, beta, spare * beta, *lists, *work, PASSES
            )
            done += 1
        if not (np.isfinite(X).all() and is_definite(X)):
            # Too many entries were dropped from the columns: restore X and drop fewer.
            X, lists = safe[0], (safe[1], safe[2])
            spare *= 0.1
            continue
        M = (U + U.T) / 2
        M[np.diag_indices(n)] = np.diagonal(A) - penalty
        pair.offer(X, M)
        close = n * beta <= CLOSE * pair.value * np.trace(X)
        if close and not (sweeps.plain or pair.closed or sweeps.stopped) and is_ripe(pair.Z):
            pair.finish()
        beta = max(SHRINK * beta, 0.3 * pair.tol * pair.value**2 / n)
    return done, looks
