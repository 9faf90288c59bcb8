"""Bound "orthogonal"; statement and proof: docs/methods/orthogonal.rst.

For Z = LL', beta >= 0, gamma >= 0 with beta + gamma >= diag Z, orthogonal components of at most s_j
features explain at most sum beta + sum_j max over |S| <= s_j of lambda_max((A - Z)_S) + gamma(S).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...numerics import margins
from ...numerics.margins import SAFETY, top_sum
from ...problem.monitor import Aside
from ...problem.problem import Component, Options, Problem
from ...problem.result import Bound
from ..tree.question import TreeQuestion
from ..tree.search import prove as prove_tree
from .optimise import Moved, Optimiser

NAME = "orthogonal"
# Z begins as this part of what the leading eigenvectors have above the others, and so much of its
# diagonal is paid once.
PART, PAID = 0.6, 0.7
EXTRA = 0.1  # the size of one more column


@dataclass(frozen=True)
class Effort:
    """The length of a search for Z, in counts."""

    smoothing: tuple[float, ...]  # relative to the value of a component
    steps: int
    rounds: int  # of the pool, each with a branch and bound
    pooled: int  # up to so many features
    work: float  # units of one branch and bound
    tol: float


EFFORTS = {
    "fast": Effort((0.03, 0.01, 3e-3, 1e-3, 3e-4), 60, 6, 150, 1e9, 1e-4),
    "full": Effort((0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4), 300, 40, 400, 2e10, 1e-5),
}
POOL_SMOOTHING = (1e-3, 3e-4)
ALL_SMOOTHING = (0.01, 3e-3, 1e-3, 3e-4, 1e-4)  # where the pool is complete


def orthogonal_bound(
    problem: Problem,
    components: tuple[Component, ...],
    value: float,
    options: Options,
    effort: str,
) -> Bound:
    """Bound what orthogonal components of these sizes explain."""
    a = problem.covariance.dense()
    n, k = len(a), min(problem.k, len(a))
    w, q = np.linalg.eigh(0.5 * (a + a.T))
    above = np.maximum(w[n - k :] - (w[n - k - 1] if k < n else 0.0), 0.0)
    L = q[:, n - k :] * np.sqrt(PART * above)
    if k < n:
        L = np.column_stack([L, EXTRA * np.sqrt(max(float(w[-1]), 0.0)) * q[:, n - k - 1]])
    supports = [c.support for c in components]
    found = _best(problem, L, supports, value, options, effort)
    margin = SAFETY * sum(problem.covariance.rounding(s) for s in problem.cardinalities)
    return Bound(NAME, found.value, found.data, margin)


@dataclass(frozen=True)
class Proved:
    """A bound with its data, and the best support met for each size."""

    value: float
    data: dict[str, Any]
    supports: tuple[np.ndarray, ...]


def _best(
    problem: Problem,
    L: np.ndarray,
    supports: Sequence[np.ndarray],
    value: float,
    options: Options,
    effort: str,
) -> Proved:
    """Optimise Z from the start LL' and return the best bound that was proved on the way.

    `supports` and `value`, of the best components known, set scales and begin the pool.
    """
    a = problem.covariance.dense()
    a = 0.5 * (a + a.T)
    plan, unit, monitor = EFFORTS[effort], max(value, 1e-280) / problem.k, options.monitor
    optimiser = Optimiser(a, problem.k, problem.s_max, L, PAID)
    for mu in plan.smoothing:
        optimiser.run(mu * unit, plan.steps, monitor)
    best = _proved(problem, a, optimiser.moved(), options, plan)
    target = value * (1 + options.tol)
    complete = optimiser.everything()
    if len(a) > plan.pooled and not complete:
        return best
    optimiser.add([*supports, *best.supports])
    if not len(optimiser.pool):
        return best
    for _ in range(1 if complete else plan.rounds):
        if best.value <= target or monitor.stopped is not None:
            break
        for mu in ALL_SMOOTHING if complete else POOL_SMOOTHING:
            optimiser.run_pool(mu * unit, plan.steps, monitor)
        found = _proved(problem, a, optimiser.moved(), options, plan)
        best = min(best, found, key=lambda one: one.value)
        if not optimiser.add(found.supports):
            break
    return best


def _proved(
    problem: Problem, a: np.ndarray, moved: Moved, options: Options, plan: Effort
) -> Proved:
    """Prove what Z, rounded to single precision, is worth: a branch and bound with rewards."""
    cov, n = problem.covariance, len(a)
    L = moved.L.astype(np.float32).astype(np.float64)
    Z = L @ L.T
    diagonal = np.diagonal(Z) * (1 + SAFETY * margins.moved(L.shape[1])) + margins.TINY
    beta = np.maximum(moved.beta, 0.0).astype(np.float32).astype(np.float64)
    gamma = np.maximum(diagonal - beta, 0.0) * (1 + margins.claim())
    rest = a - Z
    # a multiple of the identity adds the same to every support
    shift = max(0.0, -float(np.linalg.eigvalsh(rest)[0])) + 1e-3 * float(np.abs(a).max())
    rest[np.diag_indices(n)] += shift
    parts, taus, met = [], {}, []
    for s in sorted(set(problem.cardinalities)):
        question = TreeQuestion(
            prices=-gamma,
            tol=max(plan.tol, 0.1 * options.tol),
            max_nodes=options.max_nodes,
            monitor=Aside(options.monitor),
            effort=plan.work,
            n_jobs=options.n_jobs,
        )
        proof = prove_tree(rest, s, question)
        sizes = top_sum(np.abs(np.diagonal(a)), s) + top_sum(diagonal, s) + shift
        error = margins.moved(L.shape[1]) * sizes + cov.rounding(s)
        full = proof.bound - shift + SAFETY * error
        # a component may lie partly on constant features
        taus[s] = max(full, top_sum(gamma, s - 1) * (1 + SAFETY * margins.charges(s)))
        parts.append({"s": s, "log": proof.log})
        met.append(proof.support)
    paid = float(beta.sum()) * (1 + SAFETY * margins.sum_of(n))
    total = paid + sum(taus[s] for s in problem.cardinalities)
    total += SAFETY * margins.sum_of(2 * problem.k + 4) * (paid + sum(map(abs, taus.values())))
    data = {"L": L.astype(np.float32), "beta": beta.astype(np.float32), "shift": shift}
    return Proved(total, {**data, "parts": parts}, tuple(met))
