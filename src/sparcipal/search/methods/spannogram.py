"""The spannogram solves sparse PCA exactly on a rank-r approximation of the covariance.

It is due to Papailiopoulos, Dimakis & Korokythakis (2013) for signed components and to Asteris,
Papailiopoulos & Dimakis (2014) for nonnegative ones. Their enumerations take p^r steps; the search
over cones in bounds/lowrank/sphere.py finds the same optimum and proves it. Supports found there
are scored on the full matrix.

The bound for the full matrix is "lowrank" (bounds/lowrank/bound.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...bounds.lowrank.bound import STARTS, LowRank
from ...bounds.lowrank.sphere import SphereResult, check_eps, check_rank
from ...problem.covariance import Covariance
from ...problem.nonnegative import nonnegative_leading
from ...problem.problem import Component, Options, Problem
from ...problem.sketch import NEGLIGIBLE, Spectrum, lowered, majorant, rank_note, spectrum
from ...problem.sketch import sketch as make_sketch
from ..deflation import Single, deflate
from ..method import Found, Method
from ..spannogram_enumeration import eliminate_rows, net_size, planar_supports, random_net
from .tpower import ascend

DEFAULT_RANK = 4
DEFAULT_CONES = 2_000_000
# Up to so many rows, all pairs of curves are examined when r = 2.
SWEEP = 300
COMPUTED = 1e-6  # a generous relative error of a computed eigenvalue
# So many supports of that sweep are scored on the full matrix.
SCORED = 1000
# Random nets larger than this are refused: the cones are faster and prove more.
NET_LIMIT = 1_000_000
ALGORITHMS = ("cones", "net")
# The largest rank that `accuracy` chooses: beyond it the search no longer ends within seconds.
PROMPT = 7
# Up to so many cones, how many rows an optimal support can use is found out as well.
ELIMINATION = 20_000


def run(
    problem: Problem,
    options: Options,
    *,
    eps: float = 1e-6,
    algorithm: str = "cones",
    sketch: str = "eigen",
    accuracy: float | None = None,
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
    sketch : "eigen", "randomized", "gaussian" or "frequent"
        How the approximation is made; frequent directions see every row of the data once.
    accuracy : float
        The rank is the smallest for which the answer is promised to be within this fraction of
        the optimum (Papailiopoulos et al. 2013, Corollaries 1 and 2), in place of `rank`.
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
    if accuracy is not None:
        options = _with_rank_for(accuracy, problem, options, algorithm, sketch)
    told: list[dict[str, Any]] = []

    def one(single: Problem, rng: np.random.Generator) -> Single:
        answer, info = _Component(
            single.covariance, single.s_max, single.nonnegative, options, eps, max_cones
        ).solve(algorithm, sketch, clip, rng, proving=problem.k == 1)
        told.append(info)
        return answer

    found = deflate(problem, options, one, deflation=deflation)
    return Found(
        found.components, found.n_iter, found.note, found.bounds, {**found.info, **told[0]}
    )


@dataclass(frozen=True)
class _Component(LowRank):
    """This finds one component of one covariance and scores it on the full matrix."""

    def solve(
        self, algorithm: str, kind: str, clip: bool, rng: np.random.Generator, proving: bool
    ) -> tuple[Single, dict[str, Any]]:
        """Return the component and a record; problems left by deflation need no `proving`."""
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
        bounds, extra = self.bounds(shifted, clip, exact)
        component = self._best_on_full_matrix([*candidates, *extra])
        literal = algorithm == "cones" and kind == "eigen"
        if literal and proving and low.finished:
            # the theorems hold for one component, for eigenvectors and for a finished search
            reached = component.weights @ self.cov.submatrix(component.support) @ component.weights
            promised = guarantees(
                pairs, rank, self.cov, self.s, self.nonnegative, value=float(reached)
            )
            info["guarantees"] = {name: (1 - self.eps) * part for name, part in promised.items()}
        if literal and not exact and proving:
            # This is the bound of the papers' own analysis after the run.
            info["rank_bound"] = (low.bound + shifted.tail) * self.cov.unit
        return Single(component, info.get("cones", 0), note, bounds), info

    def _rank(self, pairs: Spectrum, asked: int) -> tuple[int, str]:
        rank = min(asked, pairs.rank)
        return rank, rank_note(asked, rank) if self.options.rank is not None else ""

    def _approximation(self, pairs: Spectrum, rank: int, kind: str) -> np.ndarray:
        if kind != "eigen":
            return make_sketch(self.cov, rank, kind=kind, seed=self.options.seed).V
        return pairs.vectors[:, :rank] * np.sqrt(np.maximum(pairs.values[:rank], 0.0))

    def _cones(
        self, V: np.ndarray, info: dict[str, Any]
    ) -> tuple[list[np.ndarray], SphereResult, str]:
        found = self.search(V, self.eps)
        self.options.monitor.update("spannogram", nodes=found.cones)
        info.update(
            rank_value=found.value * self.cov.unit,
            rank_optimum_at_most=found.bound * self.cov.unit,
            oracle_calls=found.oracle_calls,
            cones=found.cones,
        )
        candidates = [found.support, *found.others]
        # Smaller ranks cost a tenth, and their supports are sometimes better on the full matrix.
        for rank in range(1, V.shape[1]):
            less = self.search(np.ascontiguousarray(V[:, :rank]), 1e-3)
            candidates += [less.support, *less.others]
        if V.shape[1] == 2:
            candidates += self._swept(V, found.value)
        note = "" if found.finished else self._unfinished(V.shape[1], found)
        if found.finished and found.cones <= ELIMINATION:
            left = eliminate_rows(V, self.s, found.value, self.nonnegative).size
            info["rows_left"] = left
            said = f"{left:,} of {V.shape[0]:,} rows left by elimination"
            note = "; ".join(part for part in (note, said) if part)
        return candidates, found, note

    def _unfinished(self, rank: int, found: SphereResult) -> str:
        return (
            f"rank {rank} not finished after {found.cones:,} cones: its optimum is proved to "
            f"{100 * found.gap:.2g} %; use rank={max(1, rank - 1)}, which takes about a tenth, or "
            "raise max_cones"
        )

    def _swept(self, V: np.ndarray, value: float) -> list[np.ndarray]:
        """Return, for r = 2, the supports between all crossings of the relevant curves."""
        rows = eliminate_rows(V, self.s, value, self.nonnegative)
        if rows.size > SWEEP:
            return []
        supports = set(planar_supports(V[rows], self.s, self.nonnegative))
        chosen = [rows[list(support)] for support in sorted(supports) if support]
        scored = [float(np.linalg.norm(V[part], 2)) for part in chosen]
        return [chosen[i] for i in np.argsort(-np.array(scored), kind="stable")[:SCORED]]

    def _net(
        self, V: np.ndarray, rng: np.random.Generator, info: dict[str, Any]
    ) -> tuple[list[np.ndarray], Any]:
        samples = net_size(V.shape[0], V.shape[1], self.eps)
        if samples > NET_LIMIT:
            raise ValueError(
                f"algorithm='net' with eps={self.eps} needs {samples:,} random points, the limit "
                f"is {NET_LIMIT:,}; pass a larger eps (0.1 is the paper's), or algorithm='cones'"
            )
        net = random_net(V, self.s, self.eps, rng, nonnegative=self.nonnegative)
        info.update(
            rank_value=net.value * self.cov.unit,
            samples=net.samples,
            probability=net.probability,
            rank_optimum_probably_at_most=net.value / (1.0 - self.eps) * self.cov.unit,
        )
        return [net.support], net

    def _best_on_full_matrix(self, supports: list[np.ndarray]) -> Component:
        """Score each support on A itself and take truncated power steps from the best ones."""
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


def _exact_note(pairs: Spectrum, rank: int, asked: int) -> str:
    sigma = float(pairs.values[rank]) > NEGLIGIBLE * float(pairs.values[0])
    what = f"sigma I + a matrix of rank {rank}" if sigma else f"a matrix of rank {rank}"
    less = f"rank={asked} reduced to {rank}: " if asked > rank else ""
    return f"{less}the covariance is {what}, solved exactly"


def _with_rank_for(
    accuracy: float, problem: Problem, options: Options, algorithm: str, sketch: str
) -> Options:
    """Return the options with the smallest rank that promises 1 - accuracy of the optimum."""
    if not 0.0 < accuracy < 1.0:
        raise ValueError(f"accuracy must lie between 0 and 1, got accuracy={accuracy}")
    if options.rank is not None:
        raise ValueError(f"pass rank={options.rank} or accuracy={accuracy}, not both")
    if problem.k > 1 or algorithm != "cones" or sketch != "eigen":
        raise ValueError(
            "accuracy is promised for one component, algorithm='cones' and sketch='eigen'; "
            "pass rank instead"
        )
    cov, s = problem.covariance, problem.s_max
    pairs = spectrum(cov, min(PROMPT + 1, cov.n_features), options.seed)
    # a few power steps give a value that the optimum is not below
    start = np.zeros((cov.n_features, 1))
    lead = pairs.vectors[:, 0]
    lead = np.maximum(lead * np.sign(lead.sum() or 1.0), 0.0) if problem.nonnegative else lead
    kept = np.argsort(-np.abs(lead), kind="stable")[:s]
    start[kept, 0] = lead[kept] / (float(np.linalg.norm(lead[kept])) or 1.0)
    value = float(ascend(cov, start, s, problem.nonnegative)[1][0])
    promised = 0.0
    for rank in range(1, min(PROMPT, pairs.values.size) + 1):
        found = guarantees(pairs, rank, cov, s, problem.nonnegative, value=value)
        promised = max(found.values(), default=1.0)
        if promised >= 1.0 - accuracy:
            return replace(options, rank=rank)
    raise ValueError(
        f"accuracy={accuracy} would need a rank beyond {PROMPT}, the limit; rank={PROMPT} "
        f"promises {1.0 - promised:.3g}: pass that accuracy, or method='auto', whose certificate "
        "states what was reached"
    )


def guarantees(
    pairs: Spectrum, rank: int, cov: Covariance, s: int, nonnegative: bool, value: float = 0.0
) -> dict[str, float]:
    """Return the fractions of the optimum that the papers promise of the rank-r answer.

    Signed (2013, Theorem 1): 1 - min((p/s) l_(r+1)/l_1, l_(r+1)/OPT); any `value` that is reached
    stands for OPT, and the largest variance does without one.
    Nonnegative (2014, Theorem 1): max(s/(2p), 1/(1 + 2 (p/s) l_(r+1)/l_1)).
    """
    p, first = cov.n_features, float(pairs.values[0])
    after = max(float(pairs.values[rank]), 0.0) if rank < pairs.values.size else 0.0
    if first <= 0.0 or not cov.diagonal.max() > 0.0:
        return {}  # without variance there is no fraction to promise
    # the computed eigenvalue may be a little too small
    after = 0.0 if after <= NEGLIGIBLE * first else after * (1 + COMPUTED)
    if nonnegative:
        promise = max(s / (2 * p), 1.0 / (1.0 + 2 * (p / s) * after / first))
        return {"Asteris et al. 2014, Theorem 1": promise}
    known = max(float(cov.diagonal.max()), value)
    loss = min(p / s * after / first, after / known)
    return {"Papailiopoulos et al. 2013, Theorem 1": max(0.0, 1.0 - loss)}


METHOD = Method("spannogram", "Papailiopoulos et al. 2013; Asteris et al. 2014", run)
