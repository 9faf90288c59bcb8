"""The spannogram: sparse PCA solved exactly on a rank-r approximation of the covariance.

Papailiopoulos, Dimakis & Korokythakis (2013) for signed components, Asteris, Papailiopoulos &
Dimakis (2014) for nonnegative ones. Their enumerations, in spannogram_reference.py, take p^r
steps; the search over cones in sphere.py finds the same optimum and proves it. Supports found
there are scored on the full matrix.

The bound for the full matrix: A <= t I + V V' (sketch.py), so no s-sparse x explains more than t
+ OPT(V V'). Where p allows, the same is done for the matrix with its small entries traded for a
diagonal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...bounds.lowrank.sphere import MAX_RANK, SphereResult, check_eps, check_rank, sphere_search
from ...problem.base import Component, Found, Method, Options
from ...problem.components import nonnegative_leading
from ...problem.covariance import DENSE_LIMIT, EPS, Covariance, MatrixCovariance, top_sum
from ...problem.problem import Problem
from ...problem.result import Bound
from ...problem.sketch import (
    NEGLIGIBLE,
    Sketch,
    Spectrum,
    lowered,
    majorant,
    prove_dense,
    rank_note,
    spectrum,
)
from ...problem.sketch import sketch as make_sketch
from .. import spannogram_reference as reference
from ..deflation import Single, deflate
from .tpower import ascend

DEFAULT_RANK = 4
DEFAULT_CONES = 2_000_000
# Rows up to which all pairs of curves are looked at when r = 2.
SWEEP = 300
# Of the supports seen in that sweep, so many are scored on the full matrix.
SCORED = 1000
# Random nets larger than this are refused: the cones are faster and prove more.
NET_LIMIT = 1_000_000
# Supports from which truncated power steps on the full matrix begin.
STARTS = 24
ALGORITHMS = ("cones", "net")
# The checker, with other roundings, must be able to prove a little less than we claim.
SAFETY = 4.0


def run(
    problem: Problem,
    options: Options,
    *,
    eps: float = 1e-6,
    algorithm: str = "cones",
    sketch: str = "eigen",
    clip: bool = True,
    max_cones: int = DEFAULT_CONES,
    deflation: str = "auto",
) -> Found:
    """Find components on the rank-r approximation, r = `options.rank`.

    Parameters
    ----------
    eps : float
        Relative accuracy on the approximation, in (0, 1).
    algorithm : "cones" or "net"
        The certified search, or Algorithm 3 of Asteris et al. (2014): random points, and a
        promise that holds with probability 1 - 1/p.
    sketch : "eigen", "randomized" or "gaussian"
        How the approximation is made.
    clip : bool
        Also bound the matrix whose small entries are traded for a diagonal (p up to 3000).
    max_cones : int
        Stop there, with a bound that holds all the same.
    """
    check_eps(eps)
    if options.rank is not None:
        check_rank(options.rank)
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm must be 'cones' or 'net', got {algorithm!r}")
    told: list[dict[str, Any]] = []

    def one(
        cov: Covariance, s: int, nonnegative: bool, options: Options, rng: np.random.Generator
    ) -> Single:
        answer, info = _Component(cov, s, nonnegative, options, eps, max_cones).solve(
            algorithm, sketch, clip, rng, proving=problem.k == 1
        )
        told.append(info)
        return answer

    found = deflate(problem, options, one, deflation=deflation)
    return Found(
        found.components, found.n_iter, found.note, found.bounds, {**found.info, **told[0]}
    )


@dataclass(frozen=True)
class _Component:
    """One component of one covariance."""

    cov: Covariance
    s: int
    nonnegative: bool
    options: Options
    eps: float
    max_cones: int

    def solve(
        self, algorithm: str, kind: str, clip: bool, rng: np.random.Generator, proving: bool
    ) -> tuple[Single, dict[str, Any]]:
        """The component; what deflation leaves of a problem needs no `proving`."""
        asked = self.options.rank or min(DEFAULT_RANK, self.cov.n_features)
        pairs = spectrum(self.cov, min(asked + 1, self.cov.n_features), self.options.seed)
        rank, note = self._rank(pairs, asked)
        flat = pairs.flat_from() if kind == "eigen" else None
        exact = flat is not None and flat <= rank
        if exact:
            rank = int(flat or rank)
            note = _exact_note(pairs, rank, asked if self.options.rank is not None else 0)
        shifted = majorant(self.cov, pairs, rank) if proving else lowered(pairs, rank)
        V = shifted.V if exact else self._approximation(pairs, rank, kind)
        info: dict[str, Any] = {
            "rank": rank,
            "sketch": kind,
            "algorithm": algorithm,
            "leading_eigenvalue": float(pairs.values[0]) * self.cov.unit,
        }
        if algorithm == "net":
            candidates, low = self._net(V, rng, info)
        else:
            candidates, low, more = self._cones(V, info)
            note = "; ".join(part for part in (note, more) if part)
        bounds, extra = self._bounds(shifted, clip, exact)
        component = self._best_on_full_matrix([*candidates, *extra])
        info["guarantees"] = guarantees(pairs, rank, self.cov, self.s, self.nonnegative)
        if algorithm == "cones" and kind == "eigen" and not exact and proving:
            # What the papers' own analysis gives after the run.
            info["rank_bound"] = (low.bound + shifted.tail) * self.cov.unit
        return Single(component, info.get("cones", 0), note, bounds), info

    def _rank(self, pairs: Spectrum, asked: int) -> tuple[int, str]:
        rank = min(asked, pairs.rank)
        return rank, rank_note(asked, rank) if self.options.rank is not None else ""

    def _approximation(self, pairs: Spectrum, rank: int, kind: str) -> np.ndarray:
        if kind != "eigen":
            return make_sketch(self.cov, rank, kind=kind, seed=self.options.seed).V
        return pairs.vectors[:, :rank] * np.sqrt(np.maximum(pairs.values[:rank], 0.0))

    def _search(self, V: np.ndarray, eps: float) -> SphereResult:
        return sphere_search(
            V,
            self.s,
            nonnegative=self.nonnegative,
            eps=eps,
            max_cones=self.max_cones,
            others=STARTS,
            seed=self.options.seed,
            monitor=self.options.monitor,
        )

    def _cones(
        self, V: np.ndarray, info: dict[str, Any]
    ) -> tuple[list[np.ndarray], SphereResult, str]:
        found = self._search(V, self.eps)
        self.options.monitor.update("spannogram", nodes=found.cones)
        info.update(
            rank_value=found.value * self.cov.unit,
            rank_optimum_at_most=found.bound * self.cov.unit,
            oracle_calls=found.oracle_calls,
            cones=found.cones,
        )
        candidates = [found.support, *found.others]
        # What a smaller rank finds is sometimes better on the full matrix, and costs a tenth.
        for rank in range(1, V.shape[1]):
            less = self._search(np.ascontiguousarray(V[:, :rank]), 1e-3)
            candidates += [less.support, *less.others]
        if V.shape[1] == 2:
            candidates += self._swept(V, found.value)
        note = "" if found.finished else self._unfinished(V.shape[1], found)
        return candidates, found, note

    def _unfinished(self, rank: int, found: SphereResult) -> str:
        return (
            f"rank {rank} not finished after {found.cones:,} cones: its optimum is proved to "
            f"{100 * found.gap:.2g} %; use rank={max(1, rank - 1)}, which takes about a tenth, or "
            "raise max_cones"
        )

    def _swept(self, V: np.ndarray, value: float) -> list[np.ndarray]:
        """r = 2 directly: the supports between all crossings of the curves that can matter."""
        rows = reference.eliminate_rows(V, self.s, value, nonnegative=self.nonnegative)
        if rows.size > SWEEP:
            return []
        supports = set(reference.candidate_supports(V[rows], self.s, self.nonnegative))
        chosen = [rows[list(support)] for support in sorted(supports) if support]
        scored = [float(np.linalg.norm(V[part], 2)) for part in chosen]
        return [chosen[i] for i in np.argsort(-np.array(scored), kind="stable")[:SCORED]]

    def _net(
        self, V: np.ndarray, rng: np.random.Generator, info: dict[str, Any]
    ) -> tuple[list[np.ndarray], Any]:
        samples = reference.net_size(V.shape[0], V.shape[1], self.eps)
        if samples > NET_LIMIT:
            raise ValueError(
                f"algorithm='net' with eps={self.eps} needs {samples:,} random points, the limit "
                f"is {NET_LIMIT:,}; pass a larger eps (0.1 is the paper's), or algorithm='cones'"
            )
        net = reference.random_net(V, self.s, self.eps, rng, nonnegative=self.nonnegative)
        info.update(
            rank_value=net.value * self.cov.unit,
            samples=net.samples,
            probability=net.probability,
            rank_optimum_probably_at_most=net.value / (1.0 - self.eps) * self.cov.unit,
        )
        return [net.support], net

    def _best_on_full_matrix(self, supports: list[np.ndarray]) -> Component:
        """Weights and value of each support on A itself, then truncated power steps from the best
        ones.
        """
        p = self.cov.n_features
        scored: dict[tuple[int, ...], tuple[float, np.ndarray]] = {}
        for support in supports:
            key = tuple(support.tolist())
            if key and key not in scored:
                scored[key] = self._weights(support)
        if not scored:
            return Component(np.array([int(np.argmax(self.cov.diagonal))]), np.ones(1))
        best = sorted(scored.items(), key=lambda item: (-item[1][0], item[0]))[:STARTS]
        starts = np.zeros((p, len(best)))
        for column, (key, (_, weights)) in enumerate(best):
            starts[list(key), column] = weights
        X, values, _ = ascend(self.cov, starts, self.s, self.nonnegative, max_iter=100)
        x = X[:, int(np.argmax(values))] if values.max() > best[0][1][0] else starts[:, 0]
        return Component.from_vector(x)

    def _weights(self, support: np.ndarray) -> tuple[float, np.ndarray]:
        A = self.cov.submatrix(support)
        x = nonnegative_leading(A) if self.nonnegative else np.linalg.eigh(A)[1][:, -1]
        return float(x @ A @ x), x

    # --- upper bounds for the full matrix ---

    def _bounds(
        self, shifted: Sketch, clip: bool, exact: bool
    ) -> tuple[tuple[Bound, ...], list[np.ndarray]]:
        """The low-rank bound, the better of plain and clipped, and the supports met on the way."""
        if not math.isfinite(shifted.tail):
            found = self._search(shifted.V, 1e-3)
            return (), [found.support, *found.others]
        plain = self._search(shifted.V, self._fine(shifted, exact))
        supports = [plain.support, *plain.others]
        bound = self._bound(shifted, plain, None)
        # Nothing is left to gain where A is the sketch itself.
        worth = not exact and shifted.tail > 1e-9 * plain.value
        if clip and worth and self.s > 1 and self.cov.n_features <= DENSE_LIMIT:
            other = self._clipped(shifted.rank)
            if other is not None and other[0].value < bound.value:
                return (other[0],), [*supports, *other[1]]
        return (bound,), supports

    def _fine(self, sketch: Sketch, exact: bool) -> float:
        """Half the tolerance, as rounding comes on top; a thousandth of a tail that is lost."""
        wanted = min(self.eps, 0.5 * self.options.tol) if self.options.tol > 0 else self.eps
        leading = float((sketch.V**2).sum(axis=0).max(initial=0.0))
        useful = 1e-3 * sketch.tail / max(sketch.tail + leading, 1e-300)
        return wanted if exact else max(wanted, min(useful, 1e-4))

    def _bound(self, sketch: Sketch, found: SphereResult, rho: float | None) -> Bound:
        diagonal = top_sum(np.abs(self.cov.diagonal), self.s)
        margin = SAFETY * (self.cov.rounding(self.s) + self.s * EPS * diagonal)
        total = sketch.tail + found.bound + margin
        data: dict[str, Any] = {
            "V": sketch.V,
            "proof": sketch.proof,
            "shift": sketch.shift,
            "s": self.s,
            "nonnegative": self.nonnegative,
            "level": found.level,
            "tree": found.tree,
        }
        if rho is not None:
            data["clip"] = rho
        return Bound("lowrank", total * (1 + 16 * self.cov.n_features * EPS), data)

    def _clipped(self, rank: int) -> tuple[Bound, list[np.ndarray]] | None:
        """The same bound for A - U + Diag(d), U the entries up to rho: the best of a few rho."""
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
            V, tail = _lowered(B, min(rank, 4), self.options.seed)
            trials.append((tail + self._search(V, 1e-2).value, float(rho)))
        rho = min(trials)[1]
        B = clipped(A, rho, self.s, self.nonnegative)
        V, tail = _lowered(B, rank, self.options.seed)
        sketch = prove_dense(self.cov, B, Sketch(V, np.inf, 0.0, "none", "eigen"), tail)
        if not math.isfinite(sketch.tail):
            return None
        found = self._search(V, self._fine(sketch, False))
        return self._bound(sketch, found, rho), [found.support, *found.others]


def low_rank_bound(
    problem: Problem,
    options: Options,
    *,
    rank: int = 6,
    clip: bool = True,
    max_cones: int = 200_000,
) -> Bound | None:
    """The bound alone, for any number of components: k times that of the largest cardinality."""
    cov, s = problem.covariance, problem.s_max
    pairs = spectrum(cov, min(rank + 1, cov.n_features), options.seed)
    rank = min(rank, pairs.rank)
    flat = pairs.flat_from()
    shifted = majorant(cov, pairs, rank if flat is None else min(flat, rank))
    alone = _Component(cov, s, problem.nonnegative, options, 1e-4, max_cones)
    bounds, _ = alone._bounds(shifted, clip, flat is not None and flat <= rank)
    if not bounds:
        return None
    total = problem.k * bounds[0].value * (1 + 8 * problem.k * EPS)
    return Bound("lowrank", total, bounds[0].data)


def _exact_note(pairs: Spectrum, rank: int, asked: int) -> str:
    sigma = float(pairs.values[rank]) > NEGLIGIBLE * float(pairs.values[0])
    what = f"sigma I + a matrix of rank {rank}" if sigma else f"a matrix of rank {rank}"
    less = f"rank={asked} reduced to {rank}: " if asked > rank else ""
    return f"{less}the covariance is {what}, solved exactly"


def clipped(A: np.ndarray, rho: float, s: int, nonnegative: bool) -> np.ndarray:
    """A - U + Diag(d): entries up to rho are moved to the diagonal, where s nonzeros can use them
    at most.

    2 u x_i x_j <= |u| (x_i^2 + x_j^2), and a row meets at most s - 1 others; for x >= 0 a
    negative entry costs nothing.
    """
    U = np.minimum(A, rho) if nonnegative else np.clip(A, -rho, rho)
    np.fill_diagonal(U, 0.0)
    charged = np.maximum(U, 0.0) if nonnegative else np.abs(U)
    p = A.shape[0]
    split = p - min(s - 1, p - 1)
    d = np.partition(charged, split, axis=1)[:, split:].sum(axis=1) if split < p else np.zeros(p)
    B = A - U
    B[np.diag_indices(p)] += d * (1 + (s + 8) * EPS)
    return B


def _lowered(B: np.ndarray, rank: int, seed: int) -> tuple[np.ndarray, float]:
    """V and t for the majorant t I + V V' of a given matrix."""
    pairs = spectrum(MatrixCovariance(B), min(rank + 1, B.shape[0]), seed)
    rank = min(rank, pairs.values.size)
    after = float(pairs.values[rank]) if rank < pairs.values.size else float(pairs.values[-1])
    V = pairs.vectors[:, :rank] * np.sqrt(np.maximum(pairs.values[:rank] - after, 0.0))
    return np.ascontiguousarray(V), after


def guarantees(
    pairs: Spectrum, rank: int, cov: Covariance, s: int, nonnegative: bool
) -> dict[str, float]:
    """What the papers promise in advance: fractions of the optimum that the rank-r answer reaches.

    Signed (2013, Theorem 1): 1 - min((p/s) l_(r+1)/l_1, l_(r+1)/max_i A_ii).
    Nonnegative (2014, Theorem 1): max(s/(2p), 1/(1 + 2 (p/s) l_(r+1)/l_1)).
    """
    p, first = cov.n_features, float(pairs.values[0])
    after = max(float(pairs.values[rank]), 0.0) if rank < pairs.values.size else 0.0
    if first <= 0.0 or not cov.diagonal.max() > 0.0:
        return {}  # nothing is left to explain, and nothing to promise
    if after <= NEGLIGIBLE * first:
        after = 0.0
    if nonnegative:
        promise = max(s / (2 * p), 1.0 / (1.0 + 2 * (p / s) * after / first))
        return {"Asteris et al. 2014, Theorem 1": promise}
    loss = min(p / s * after / first, after / float(cov.diagonal.max()))
    return {"Papailiopoulos et al. 2013, Theorem 1": max(0.0, 1.0 - loss)}


METHOD = Method("spannogram", "Papailiopoulos et al. 2013; Asteris et al. 2014", run)
__all__ = ["MAX_RANK", "METHOD", "clipped", "guarantees", "low_rank_bound", "run"]
