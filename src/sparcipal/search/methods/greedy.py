"""Greedy selection and its optimality test (d'Aspremont, Bach & El Ghaoui 2008, "FullPath").

It adds one feature at a time, always the best one, and so gives a component per cardinality.

The test is the bound "greedy-dual" (bounds/duals.py). If it meets the greedy value, the greedy
component is optimal.
"""

from __future__ import annotations

import numpy as np

from ...bounds.duals import greedy_dual
from ...problem.components import newcomer_gain
from ...problem.covariance import Covariance
from ...problem.nonnegative import nonnegative_leading
from ...problem.problem import Component, Options, Problem
from ..deflation import Single, deflate
from ..method import Found, Method


def path(
    cov: Covariance, s: int, nonnegative: bool, *, exact: bool = True
) -> list[tuple[Component, float]]:
    """Return a component and its value for every cardinality 1..s.

    `exact` scores a candidate by the largest eigenvalue that it leads to; otherwise (Ax)_i^2, the
    score of the paper's approximate version, is used.
    """
    p = cov.n_features
    columns = np.empty((p, min(s, p)), order="F")
    chosen = [int(np.argmax(cov.diagonal))]
    x, value = np.ones(1), float(cov.diagonal[chosen[0]])
    steps = [(_component(chosen, x), value)]
    while len(chosen) < min(s, p):
        columns[:, len(chosen) - 1] = cov.columns(np.array(chosen[-1:]))[:, 0]
        link = columns[:, : len(chosen)]
        scores = _promises(cov.diagonal, link @ x, value, nonnegative, exact)
        if exact and not nonnegative:
            scores = _secular(cov.diagonal, link, cov.submatrix(np.array(chosen)), scores)
        scores[chosen] = -np.inf
        chosen.append(int(np.argmax(scores)))
        block = cov.submatrix(np.array(chosen))
        x, value = _weights(block, np.append(x, 0.0), nonnegative)
        steps.append((_component(chosen, x), value))
    return steps


def _component(chosen: list[int], x: np.ndarray) -> Component:
    order = np.argsort(chosen)
    order = order[x[order] != 0]
    return Component(np.array(chosen, dtype=np.intp)[order], x[order])


def _weights(block: np.ndarray, start: np.ndarray, nonnegative: bool) -> tuple[np.ndarray, float]:
    if nonnegative:
        x = nonnegative_leading(block, start)
        return x, float(x @ block @ x)
    values, vectors = np.linalg.eigh(block)
    return vectors[:, -1], float(values[-1])


def _promises(
    diagonal: np.ndarray, pull: np.ndarray, value: float, nonnegative: bool, exact: bool
) -> np.ndarray:
    """Return a lower bound on the eigenvalue with each feature, from its `pull` (Ax)_i.

    The paper's approximate version scores features by the pull alone.
    """
    if not exact and not nonnegative:
        return pull * pull
    # The gain is that of the best mixture of x and the newcomer.
    return value + newcomer_gain(value, diagonal, pull, nonnegative)


def _secular(
    diagonal: np.ndarray, link: np.ndarray, block: np.ndarray, low: np.ndarray
) -> np.ndarray:
    """Return the largest eigenvalue of [[block, b], [b', a]] for all rows b of `link`, a of
    `diagonal`.

    It is the root of t - a - sum (q_k'b)^2 / (t - l_k), which is concave and increasing beyond
    l_1, so that Newton's method from the left never overshoots.
    """
    eigenvalues, Q = np.linalg.eigh(block)
    squares = (link @ Q) ** 2  # (p, t)
    floor = eigenvalues[-1] + 1e-14 * max(abs(eigenvalues[-1]), 1e-300)
    t = np.maximum(low, floor)
    for _ in range(12):
        away = np.maximum(t[:, None] - eigenvalues, 1e-300)
        ratio = squares / away
        value = t - diagonal - ratio.sum(axis=1)
        slope = 1 + (ratio / away).sum(axis=1)
        step = np.minimum(value / slope, 0.0)
        t = t - step
        if np.abs(step).max() <= 1e-12 * np.abs(t).max():
            break
    return t


def run(
    problem: Problem,
    options: Options,
    *,
    exact: bool = True,
    test: bool = True,
    deflation: str = "auto",
) -> Found:
    """Follow the greedy path, approximately without `exact`; `test` adds the optimality test."""
    trail: list[dict[str, float]] = []

    def solve(single: Problem, rng: np.random.Generator) -> Single:
        cov, s = single.covariance, single.s_max
        steps = path(cov, s, single.nonnegative, exact=exact)
        component, _ = max(steps, key=lambda step: step[1])
        if not trail:
            trail.extend(
                {"nonzeros": step[0].support.size, "value": step[1] * cov.unit} for step in steps
            )
        bound = greedy_dual(cov, component, s) if test and problem.k == 1 else None
        return Single(component, len(steps), bounds=() if bound is None else (bound,))

    found = deflate(problem, options, solve, deflation=deflation)
    info = {**found.info, "path": trail}
    return Found(found.components, found.n_iter, found.note, found.bounds, info)


METHOD = Method("greedy", "d'Aspremont, Bach & El Ghaoui 2008", run)
