"""Bound "lowrank"; statement and proof: docs/methods/lowrank.rst.

A <= t I + V V' (problem/sketch.py), so no s-sparse x explains more than t + OPT(V V'), and the
search over cones in sphere.py bounds OPT(V V'). Where p allows, the same is done for the matrix
whose small entries are replaced by charges on the diagonal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...numerics import margins
from ...numerics.largest import magnitudes, row_tops
from ...numerics.margins import SAFETY, top_sum
from ...problem.covariance import DENSE_LIMIT, Covariance, MatrixCovariance
from ...problem.problem import Options, Problem
from ...problem.result import Bound
from ...problem.sketch import Sketch, majorant, prove_dense, spectrum
from .sphere import Effort, SphereResult, sphere_search

# A search keeps this many supports besides the best one, as starts for steps on the full matrix.
STARTS = 24
# Accuracy of eigenvalues and of a search by which clips are compared, and how far above the bound
# that is known the best of them may lie for a proof to be tried.
COARSE, HOPEFUL = 1e-2, 1.02

BLOCK = 64  # rows that are clipped at once


def low_rank_bound(
    problem: Problem,
    options: Options,
    *,
    rank: int = 6,
    max_cones: int = 200_000,
    known: float = np.inf,
) -> Bound | None:
    """Return k times the bound of the largest cardinality, for any number k of components; where
    `known` is a bound, one that is not lower may be left out."""
    cov, s = problem.covariance, problem.s_max
    pairs = spectrum(cov, min(rank + 1, cov.n_features), options.seed)
    rank = min(rank, pairs.rank)
    flat = pairs.flat_from()
    shifted = majorant(cov, pairs, rank if flat is None else min(flat, rank))
    alone = LowRank(cov, s, problem.nonnegative, options, 1e-4, max_cones, known / problem.k)
    bounds, _ = alone.bounds(shifted, True, flat is not None and flat <= rank)
    if not bounds:
        return None
    total = problem.k * bounds[0].value * (1 + margins.copies(problem.k))
    return Bound("lowrank", total, bounds[0].data, problem.k * bounds[0].margin)


def low_rank_work(p: int) -> float:
    """Return about the nanoseconds of one core that the bound takes: eigenvectors and
    factorisations."""
    return 0.09 * float(p) ** 3 + 230.0 * p * p if p <= DENSE_LIMIT else 5e8


def rounding_on(cov: Covariance, s: int) -> float:
    """Bound by how much rounding moves the value of a support, here and on a sketch."""
    diagonal = top_sum(np.abs(cov.diagonal), s)
    return SAFETY * (cov.rounding(s) + margins.sum_of(s) * diagonal)


def proof_data(
    sketch: Sketch, s: int, nonnegative: bool, found: SphereResult, more: dict[str, Any]
) -> dict[str, Any]:
    """Return all that the checker needs to recompute the bound of a search on a sketch."""
    return {
        "V": sketch.V,
        "proof": sketch.proof,
        "shift": sketch.shift,
        "s": s,
        "nonnegative": nonnegative,
        "level": found.level,
        "tree": found.tree,
        **more,
    }


@dataclass(frozen=True)
class LowRank:
    """Searches for and bounds one component of a covariance on low-rank sketches."""

    cov: Covariance
    s: int
    nonnegative: bool
    options: Options
    eps: float
    max_cones: int
    known: float = np.inf

    def search(self, V: np.ndarray, eps: float) -> SphereResult:
        effort = Effort(eps, max_cones=self.max_cones, others=STARTS)
        sign = self.nonnegative
        return sphere_search(V, self.s, nonnegative=sign, effort=effort, options=self.options)

    def bounds(
        self, shifted: Sketch, clip: bool, exact: bool
    ) -> tuple[tuple[Bound, ...], list[np.ndarray]]:
        """Return the better of the plain and the clipped bound, and the supports met."""
        if not math.isfinite(shifted.tail):
            found = self.search(shifted.V, 1e-3)
            return (), [found.support, *found.others]
        plain = self.search(shifted.V, self._fine(shifted, exact))
        supports = [plain.support, *plain.others]
        bound = self._bound(shifted, plain, None)
        # Clipping cannot improve the bound where the sketch equals A.
        worth = not exact and shifted.tail > 1e-9 * plain.value
        if clip and worth and self.s > 1 and self.cov.n_features <= DENSE_LIMIT:
            other = self._clipped(shifted.rank)
            if other is not None and other[0].value < bound.value:
                return (other[0],), [*supports, *other[1]]
        return (bound,), supports

    def _fine(self, sketch: Sketch, exact: bool) -> float:
        """Return the accuracy of the search: half the tolerance, which leaves room for rounding, or
        a thousandth of the tail, which the bound loses in any case."""
        wanted = min(self.eps, 0.5 * self.options.tol) if self.options.tol > 0 else self.eps
        leading = float((sketch.V**2).sum(axis=0).max(initial=0.0))
        useful = 1e-3 * sketch.tail / max(sketch.tail + leading, 1e-300)
        return wanted if exact else max(wanted, min(useful, 1e-4))

    def _bound(self, sketch: Sketch, found: SphereResult, rho: float | None) -> Bound:
        more = {} if rho is None else {"clip": rho}
        total = sketch.tail + found.bound + rounding_on(self.cov, self.s)
        total *= 1 + margins.low_rank(self.cov.n_features)
        data = proof_data(sketch, self.s, self.nonnegative, found, more)
        return Bound("lowrank", total, data, SAFETY * self.cov.rounding(self.s))

    def _clipped(self, rank: int) -> tuple[Bound, list[np.ndarray]] | None:
        """Return the best bound over a few rho for A - U + Diag(d), U the entries up to rho."""
        A = self.cov.dense()
        off = np.abs(A - np.diag(np.diagonal(A)))
        largest = float(off.max(initial=0.0))
        if largest == 0.0:
            return None
        # Each trial costs a few eigenvectors and a coarse search; a small rank finds the same rho.
        count = 8 if A.shape[0] <= 800 else 4
        trials = []
        for rho in np.float32(largest) * np.linspace(0.1, 0.9, count, dtype=np.float32):
            B = clipped(A, float(rho), self.s, self.nonnegative)
            V, tail = _lowered(B, min(rank, 4), self.options.seed, COARSE)
            trials.append((tail + self.search(V, COARSE).value, float(rho)))
        lowest, rho = min(trials)
        if lowest > HOPEFUL * self.known:
            return None
        B = clipped(A, rho, self.s, self.nonnegative)
        V, tail = _lowered(B, rank, self.options.seed)
        sketch = prove_dense(self.cov, B, Sketch(V, np.inf, 0.0, "none", "eigen"), tail)
        if not math.isfinite(sketch.tail):
            return None
        found = self.search(V, self._fine(sketch, False))
        return self._bound(sketch, found, rho), [found.support, *found.others]


def clipped(A: np.ndarray, rho: float, s: int, nonnegative: bool) -> np.ndarray:
    """Return A - U + Diag(d): entries up to rho are replaced by the most that s nonzeros can gain.

    2 u x_i x_j <= |u| (x_i^2 + x_j^2), and a row meets at most s - 1 others; for x >= 0 a
    negative entry costs nothing.
    """
    p = A.shape[0]
    B = A.copy()
    for first in range(0, p, BLOCK):  # large temporaries cost more than the arithmetic
        rows = np.arange(first, min(first + BLOCK, p))
        U = np.minimum(A[rows], rho) if nonnegative else np.clip(A[rows], -rho, rho)
        U[rows - first, rows] = 0.0
        B[rows] -= U
        d = row_tops(magnitudes(U, nonnegative), min(s - 1, p - 1)).sum(axis=1)
        B[rows, rows] += d * (1 + margins.charges(s))
    return B


def _lowered(B: np.ndarray, rank: int, seed: int, tol: float = 0.0) -> tuple[np.ndarray, float]:
    """Return V and t of the majorant t I + V V' of a given matrix, to rounding or to `tol`."""
    pairs = spectrum(MatrixCovariance(B), min(rank + 1, B.shape[0]), seed, tol)
    rank = min(rank, pairs.values.size)
    after = float(pairs.values[rank]) if rank < pairs.values.size else float(pairs.values[-1])
    V = pairs.vectors[:, :rank] * np.sqrt(np.maximum(pairs.values[:rank] - after, 0.0))
    return np.ascontiguousarray(V), after
