"""Bound "adjusted"; statement and proof: docs/methods/adjusted.rst.

For H = A - AYY'A and tau_s at least the optimum of one component of s features in H, adjusted
variances sum to at most sum_j tau_(j) theta_(j), where theta are the eigenvalues of (I - Y'AY)^-1,
and ones. tau_s is proved by the branch and bound for one component, on H instead of A.

Of low rank, H = A + cI is better: its eigenvalues are those of A, and tau_s is that of A plus c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...numerics import margins
from ...numerics.eigen import factorises, largest_eigenpairs
from ...numerics.margins import SAFETY
from ...problem.covariance import Covariance
from ...problem.monitor import Aside
from ...problem.problem import Component, Options, Problem
from ...problem.result import Bound
from ..cheap import same_spectrum
from ..tree.core import affordable, prove_large
from ..tree.log import Proof
from ..tree.question import TreeQuestion
from ..tree.search import prove as prove_tree
from .lowered import Lowered
from .optimise import Around, best_on

NAME = "adjusted"
ROUNDS = {"fast": 20, "full": 60}  # rounds in which components may join
PROOFS = {"fast": 2, "full": 4}  # proofs; each begins with what the last one found
# Units of work (about a nanosecond) of a branch and bound on all features; a core has its own.
TREE_WORK = {"fast": 3e9, "full": 3e10}
CORE_EFFORT: dict[str, str | float] = {"fast": "fast", "full": 3e10}
TREE_TOL = {"fast": 1e-4, "full": 1e-6}
WHOLE = 400  # features up to which the branch and bound works on all of them


def adjusted_bound(
    problem: Problem,
    components: Sequence[Component],
    known: float,
    options: Options,
    effort: str,
) -> Bound | None:
    """Bound the adjusted variance of components of this kind; None if nothing is proved.

    `components` are good ones, and `known` is a bound that is known already.
    """
    p = problem.covariance.n_features
    if p > WHOLE and not affordable(problem.s_max, effort):
        return None
    around = Around(problem, components)
    best: Bound | None = None
    for _ in range(PROOFS[effort]):
        lowered = around.fitted()
        for _ in range(ROUNDS[effort]):
            if options.monitor.stopped is not None or not around.grown(lowered):
                break
            lowered = around.fitted()
        if lowered.heights is None or lowered.heights.size == 0:
            break
        goal = known if best is None else min(known, best.value)
        found, met = _proved(problem, lowered, around.best(lowered), goal, options, effort)
        if best is None or found.value < best.value:
            best = found
        if options.monitor.stopped is not None or not around.join(lowered, met):
            break
    return best


def _proved(
    problem: Problem,
    lowered: Lowered,
    incumbent: Component,
    known: float,
    options: Options,
    effort: str,
) -> tuple[Bound, list[Component]]:
    """Prove what H is worth; also return the components of most features that this met."""
    assert lowered.heights is not None
    k = min(problem.k, lowered.n_features)
    heights = np.append(lowered.heights, np.ones(k))[:k]
    matrix = lowered.materialise()
    parts, tau_of, met = [], {}, []
    for s in sorted(set(problem.cardinalities)):
        most = s == problem.s_max
        question = TreeQuestion(
            nonnegative=problem.nonnegative,
            incumbent=(incumbent.support, 0.0) if most else None,
            tol=max(TREE_TOL[effort], 0.1 * options.tol),
            max_nodes=options.max_nodes,
            monitor=Aside(options.monitor),
            effort=TREE_WORK[effort],
            known=known / float(heights.sum()) if most else np.inf,
            n_jobs=options.n_jobs,
        )
        proof = _one(matrix, s, question, effort)
        tau_of[s] = (proof.bound + SAFETY * matrix.rounding(s)) * (1 + SAFETY * margins.claim())
        parts.append({"s": s, "name": "tree", "value": tau_of[s], "data": proof.data()})
        met += [best_on(matrix, proof.support, problem.nonnegative)] if most else []
    taus = np.sort([tau_of[s] for s in problem.cardinalities])[::-1][:k]
    total = float(taus @ heights) * (1 + SAFETY * margins.sum_of(2 * k + 4))
    lowering = {
        "features": lowered.features.astype(np.int32),
        "y": lowered.y,
        "shift": lowered.shift,
    }
    return Bound(NAME, total, {"parts": parts, "matrix": lowering}, _margin(problem)), met


def _one(matrix: Covariance, s: int, question: TreeQuestion, effort: str) -> Proof:
    """Branch and bound for one component, on all features or on a core."""
    if matrix.n_features <= WHOLE:
        return prove_tree(matrix.dense(), s, question)
    return prove_large(matrix, s, replace(question, effort=CORE_EFFORT[effort]))


def _margin(problem: Problem) -> float:
    """Return about what the rounding of the covariance adds to the bound."""
    cov = problem.covariance
    return SAFETY * problem.k * cov.rounding(cov.n_features)


# --- H = A + cI ---


def ridge_bound(problem: Problem, parts: dict[int, Bound]) -> Bound | None:
    """Return the bound with H = A + cI at the best c, from a bound for one component of each size;
    None if both the p x p and the n x n matrix are too large."""
    cov, k = problem.covariance, min(problem.k, problem.covariance.n_features)
    found = same_spectrum(cov)
    if found is None:
        return None
    matrix, kind, error = found
    tops = proved_eigenvalues(matrix, k)
    if tops is None:
        return None
    shift = SAFETY * (cov.rounding(cov.n_features) + cov.psd_shift + error)
    tops = np.maximum(tops, 0.0) + shift
    # fewer samples than components: beyond their number eigenvalues are zero
    taus = np.sort([parts[s].value for s in problem.cardinalities])[::-1][: tops.size]
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
    data = {"parts": told, "matrix": {"ridge": c, "of": kind}}
    return Bound(NAME, value, data, _margin(problem))


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
