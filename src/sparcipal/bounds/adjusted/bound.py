"""Bound "adjusted"; statement and proof: docs/methods/adjusted.rst.

For H positive definite and tau_s at least the optimum of one component of s features in H, adjusted
variances sum to at most sum_j tau_(j) lambda_j(H^-1 A), both sorted downwards. What is proved:

- tau_s by the branch and bound for one component, on H instead of A;
- KF_j(H^-1 A) <= j nu + tr P'HP, if nu H + HPP'H - A is positive semidefinite (Cholesky).

H is stored in single precision. Where that would be too large, H = A + cI needs no storing: its
eigenvalues are those of A, and tau_s is that of A plus c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ...numerics import margins
from ...numerics.eigen import factorises, largest_eigenpairs
from ...numerics.margins import SAFETY
from ...problem.covariance import DENSE_LIMIT, Covariance
from ...problem.problem import Options, Problem
from ...problem.result import Bound
from ..tree.question import TreeQuestion
from ..tree.search import prove as prove_tree
from .optimise import Optimiser, step_work

NAME = "adjusted"
SMOOTHING = {
    "fast": (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4),
    "full": (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5),
}
# Units of work (about a nanosecond) of one optimisation, and the L-BFGS steps of one smoothing.
WORK = {"fast": 4e9, "full": 6e10}
STEPS = {"fast": (25, 150), "full": (60, 500)}
# H begins at A + cI with these multiples c of the best single component.
RIDGES = {"fast": (1.0,), "full": (1.0, 0.1)}
TREE_WORK = {"fast": 1e9, "full": 3e10}
TREE_TOL = {"fast": 1e-4, "full": 1e-6}
SLACKS = (1e-11, 1e-9, 1e-7, 1e-5, 1e-3)  # of nu, relative


def adjusted_bound(problem: Problem, single: float, options: Options, effort: str) -> Bound | None:
    """No components of this kind have a larger adjusted variance; None if nothing is proved.

    `single` is about what the best single component explains; the bound holds whatever it is.
    """
    cov = problem.covariance
    a = cov.dense()
    a = 0.5 * (a + a.T)
    n, s, k = a.shape[0], problem.s_max, min(problem.k, a.shape[0])
    if not single > 0.0:
        return None
    least, most = STEPS[effort]
    best: Bound | None = None
    for ridge in RIDGES[effort]:
        c = ridge * single
        start = (a + (c + cov.psd_shift) * np.eye(n)) / (single + c)
        optimiser = Optimiser(a, k, s, problem.nonnegative, start)
        stages = SMOOTHING[effort]
        steps = int(WORK[effort] / len(RIDGES[effort]) / len(stages) / step_work(n))
        for mu in stages:
            optimiser.run(mu, min(max(steps, least), most), options.monitor)
        found = _proved(problem, a, optimiser, options, effort)
        if found is not None and (best is None or found.value < best.value):
            best = found
    return best


def _proved(
    problem: Problem, a: np.ndarray, optimiser: Optimiser, options: Options, effort: str
) -> Bound | None:
    """Prove what H at the current point is worth."""
    h = _stored(optimiser.matrix())
    if h is None:
        return None
    parts, tau_of = [], {}
    for s in sorted(set(problem.cardinalities)):
        question = TreeQuestion(
            nonnegative=problem.nonnegative,
            tol=max(TREE_TOL[effort], 0.1 * options.tol),
            max_nodes=options.max_nodes,
            monitor=options.monitor,
            effort=TREE_WORK[effort],
            n_jobs=options.n_jobs,
        )
        proof = prove_tree(h, s, question)
        tau = proof.bound * (1 + SAFETY * margins.claim()) + margins.TINY
        parts.append({"s": s, "name": "tree", "value": tau, "data": proof.data()})
        tau_of[s] = tau
    taus = sorted((tau_of[s] for s in problem.cardinalities), reverse=True)
    levels = _levels(problem.covariance, a, h, taus)
    if levels is None:
        return None
    upper = np.triu_indices(len(h), 1)
    data = {
        "parts": parts,
        "matrix": {"diagonal": np.diagonal(h).astype(np.float32), "h": h[upper].astype(np.float32)},
        "levels": [level.data for level in levels],
    }
    total = _total(taus, {level.count: level.sum for level in levels})
    return Bound(NAME, total, data, _margin(problem))


def _margin(problem: Problem) -> float:
    """Return about what the rounding of the covariance adds to the bound."""
    cov = problem.covariance
    return SAFETY * problem.k * cov.rounding(cov.n_features)


def _stored(h: np.ndarray) -> np.ndarray | None:
    """Return H in single precision, raised until it is positive definite; None if that fails."""
    ridge = 0.0
    for _ in range(8):
        rounded = (h + ridge * np.eye(len(h))).astype(np.float32).astype(np.float64)
        margin = 4 * margins.factorisation(len(h)) * float(np.trace(rounded))
        if np.isfinite(rounded).all() and factorises(rounded - margin * np.eye(len(h))):
            return rounded
        ridge = max(10 * ridge, 1e-7 * float(np.diagonal(h).max()))
    return None


@dataclass(frozen=True)
class _Level:
    """The sum of the `count` largest eigenvalues of H^-1 A, proved."""

    count: int
    sum: float
    data: dict[str, Any]


def _levels(
    cov: Covariance, a: np.ndarray, h: np.ndarray, taus: list[float]
) -> list[_Level] | None:
    """Prove the sums that the taus need: where two of them differ, and all of them."""
    n, k = len(a), min(len(taus), len(a))
    counts = [j for j in range(1, k + 1) if j == k or taus[j - 1] > taus[j]]
    values, vectors = eigh(a, h, subset_by_index=[n - k, n - 1])
    out = []
    for count in counts:
        w, q = values[k - count :], vectors[:, k - count :]
        level = _level(cov, a, h, count, w, q)
        if level is None:
            return None
        out.append(level)
    return out


def _level(
    cov: Covariance, a: np.ndarray, h: np.ndarray, count: int, w: np.ndarray, q: np.ndarray
) -> _Level | None:
    n = len(a)
    nu = max(float(w[0]), 0.0)
    P = q * np.sqrt(np.maximum(w - nu, 0.0))
    W, size = h @ P, np.abs(h) @ np.abs(P)
    spread = float((size * size).sum())
    traces = float(np.trace(h)), float(np.abs(np.diagonal(a)).sum())
    shift = SAFETY * (cov.rounding(n) + cov.psd_shift)
    scale = max(nu, float(w[-1]) * 1e-6, 1e-280)
    for slack in SLACKS:
        now = nu + slack * scale
        blur = margins.pencil(n, count) * (now * traces[0] + traces[1] + spread)
        M = now * h + W @ W.T - a
        blur += margins.factorisation(n) * float(np.abs(np.diagonal(M)).sum())
        M[np.diag_indices(n)] -= shift + SAFETY * blur
        if factorises(M):
            rounded = SAFETY * margins.pencil(n, count) * float((np.abs(P) * size).sum())
            trace = float((P * W).sum()) + rounded
            total = (count * now + trace) * (1 + SAFETY * margins.claim())
            return _Level(count, total, {"count": count, "nu": now, "vectors": P})
    return None


def _total(taus: list[float], sums: dict[int, float]) -> float:
    """sum_j tau_j lambda_j, tau decreasing, by sums of the largest eigenvalues."""
    last = max(sums)
    kept = taus[:last]
    steps = [kept[j] - (kept[j + 1] if j + 1 < last else 0.0) for j in range(last)]
    total = sum(step * sums[j + 1] for j, step in enumerate(steps) if step > 0.0)
    return total * (1 + SAFETY * margins.sum_of(2 * last + 4))


# --- H = A + cI: any number of features ---


def ridge_bound(problem: Problem, parts: dict[int, Bound]) -> Bound | None:
    """Return the bound with H = A + cI at the best c, from a bound for one component of each size;
    None if both the p x p and the n x n matrix are too large."""
    cov, k = problem.covariance, min(problem.k, problem.covariance.n_features)
    found = _matrix(cov)
    if found is None:
        return None
    matrix, kind, error = found
    tops = proved_eigenvalues(matrix, k)
    if tops is None:
        return None
    shift = SAFETY * (cov.rounding(cov.n_features) + cov.psd_shift + error)
    tops = np.maximum(tops, 0.0) + shift
    taus = np.sort([parts[s].value for s in problem.cardinalities])[::-1][:k]
    # the single component speaks of A, whose exact optimum the bound covers already
    taus = taus + SAFETY * cov.psd_shift

    def total(c: float) -> float:
        return float(((taus + c) * (tops / (tops + c))).sum())

    grid = float(tops.max(initial=0.0)) * 2.0 ** np.arange(-32, 21, 0.5)
    grid = grid[grid > 0.0]
    if grid.size == 0:
        return None
    c = float(np.float32(grid[int(np.argmin([total(c) for c in grid]))]))
    value = total(c) * (1 + SAFETY * margins.sum_of(4 * k + 8))
    told = [
        {"s": s, "name": parts[s].name, "value": parts[s].value, "data": parts[s].data}
        for s in sorted(set(problem.cardinalities))
    ]
    data = {"parts": told, "matrix": {"ridge": c, "of": kind}, "levels": []}
    return Bound(NAME, value, data, _margin(problem))


def _matrix(cov: Covariance) -> tuple[np.ndarray, str, float] | None:
    """Return a matrix with the eigenvalues of A, which one it is, and what its rounding moves."""
    if cov.n_features <= DENSE_LIMIT:
        return cov.dense(), "features", 0.0
    gram = cov.gram() if (cov.n_samples or DENSE_LIMIT) < DENSE_LIMIT else None
    if gram is None:
        return None
    return gram, "samples", margins.gram(cov.n_features) * float(np.trace(gram))


def proved_eigenvalues(matrix: np.ndarray, k: int) -> np.ndarray | None:
    """Return upper bounds of the k largest eigenvalues, one by one, the largest first.

    lambda_j <= nu if M - Z <= nu I for some Z of rank j - 1.
    """
    n = len(matrix)
    values, vectors = largest_eigenpairs(matrix, min(k, n))
    values, vectors = values[::-1], vectors[:, ::-1]
    size = float(np.abs(np.diagonal(matrix)).sum()) + (n + 1) * abs(float(values[0]))
    out = []
    for j in range(len(values)):
        Q = vectors[:, :j] * np.sqrt(np.maximum(values[:j] - values[j], 0.0))
        rest = Q @ Q.T - matrix
        delta = 2 * margins.ky_fan(n, j + 1) * size
        for factor in (2.0, 64.0, 2.0**14):
            top = float(values[j]) + factor * delta
            B = rest.copy()
            B[np.diag_indices(n)] += top - delta
            if factorises(B):
                out.append(top)
                break
        else:
            return None
    return np.array(out)
