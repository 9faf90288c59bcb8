"""Greedy selection and its optimality test (d'Aspremont, Bach & El Ghaoui 2008, "FullPath").

One feature at a time, always the one that adds most: a component for every cardinality on the way.

The test. Write A = F'F with columns a_i, take any unit z, any rho > 0, and g_i = a_i'z. With
B_i = a_i a_i' - rho I, matrices Y_i >= 0 (psd) with Y_i >= B_i give, for every s,

    OPT(s) <= lambda_max(sum of Y_i) + rho s,

because x'Ax = max over z of sum over S of (a_i'z)^2 <= rho s + sum of (z'B_i z)_+. The paper's
choice:

    g_i^2 > rho:   Y_i = B_i zz' B_i / (g_i^2 - rho)
    otherwise:     Y_i = c_i v_i v_i',  v_i = a_i - g_i z,  c_i = rho (A_ii - rho)_+ / ((rho -
    g_i^2) |v_i|^2)

For z = Fx/|Fx| every product of these vectors is an expression in A and g = Ax / sqrt(x'Ax), so
that x, rho and A are all a checker needs; features with A_ii <= rho drop out. If the bound meets
the greedy value, the greedy component is optimal.
"""

from __future__ import annotations

import numpy as np

from ...bounds.cheap import SAFETY, proved_eigenvalue_sum
from ...problem.base import Component, Found, Method, Options
from ...problem.components import nonnegative_leading
from ...problem.covariance import EPS, Covariance
from ...problem.problem import Problem
from ...problem.result import Bound
from ..deflation import Single, deflate

# The test factors a matrix of this order at most.
TEST_LIMIT = 1500


def path(
    cov: Covariance, s: int, nonnegative: bool, *, exact: bool = True
) -> list[tuple[Component, float]]:
    """A component and its value for every cardinality 1..s.

    `exact` scores a candidate by the largest eigenvalue that it leads to; otherwise by (Ax)_i^2,
    the paper's approximate version.
    """
    p = cov.n_features
    columns = np.empty((p, min(s, p)), order="F")
    chosen = [int(np.argmax(cov.diagonal))]
    x, value = np.ones(1), float(cov.diagonal[chosen[0]])
    steps = [(_component(chosen, x), value)]
    while len(chosen) < min(s, p):
        columns[:, len(chosen) - 1] = cov.columns(np.array(chosen[-1:]))[:, 0]
        link = columns[:, : len(chosen)]
        scores = _scores(cov, chosen, link, x, value, nonnegative, exact)
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


def _scores(
    cov: Covariance,
    chosen: list[int],
    link: np.ndarray,
    x: np.ndarray,
    value: float,
    nonnegative: bool,
    exact: bool,
) -> np.ndarray:
    """What each feature promises: by its link to x, or by the exact eigenvalue."""
    pull = link @ x
    if not exact and not nonnegative:
        return pull * pull
    if nonnegative:
        pull = np.maximum(pull, 0.0)
    # The best mixture of x and the newcomer: a lower bound on the eigenvalue.
    half = (value - cov.diagonal) / 2
    low = (value + cov.diagonal) / 2 + np.hypot(half, pull)
    if nonnegative or not exact:
        return low
    return _secular(cov.diagonal, link, cov.submatrix(np.array(chosen)), low)


def _secular(
    diagonal: np.ndarray, link: np.ndarray, block: np.ndarray, low: np.ndarray
) -> np.ndarray:
    """The largest eigenvalue of [[block, b], [b', a]] for every row b of `link` and a of
    `diagonal`.

    The root of t - a - sum (q_k'b)^2 / (t - l_k), which is concave and increasing beyond l_1:
    Newton from the left never overshoots.
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


def dual_matrix(
    A: np.ndarray, g: np.ndarray, rho: float, errors: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, float]:
    """A matrix with the nonzero eigenvalues of the sum of Y_i, and how far rounding may move them.

    `errors` bound what rounding did to A (as roots r, |dA_ij| <= r_i r_j), to g, and to the
    diagonal.
    """
    roots, dg, da = errors
    strong = g * g > rho
    variance = np.diagonal(A) + da
    gap = np.abs(g * g - rho)
    left = np.maximum(variance - g * g, 1e-300)
    weak_c = rho * np.maximum(variance - rho, 0.0) / (gap * left)
    c = np.where(strong, 1.0 / gap, weak_c)
    relative = 2 * np.abs(g) * dg / gap + 16 * EPS
    relative = relative + np.where(strong, 0.0, (2 * da + 2 * np.abs(g) * dg) / left)
    inner = A - np.outer(g, g)
    size = np.abs(A) + np.abs(np.outer(g, g))
    blur = np.outer(roots, roots) + np.outer(np.abs(g), dg) + np.outer(dg, np.abs(g))
    factor = np.where(strong, g, 1.0)
    G = inner * np.outer(factor, factor)
    # Two strong features: g_i g_j A_ij - rho (g_i^2 + g_j^2) + rho^2.
    both = np.outer(strong, strong)
    square = g * g
    G += both * np.outer(square - rho, square - rho)
    size = (size + rho + np.add.outer(square, square)) * np.outer(np.abs(factor), np.abs(factor))
    size += both * np.outer(square + rho, square + rho)
    blur = blur * np.outer(np.abs(factor), np.abs(factor))
    blur += np.add.outer(2 * np.abs(g) * dg, 2 * np.abs(g) * dg) * (size + 1.0)
    scale = np.sqrt(np.outer(c, c))
    error = scale * (blur + 16 * EPS * size + np.abs(G) * np.add.outer(relative, relative))
    return scale * G, 2 * float(np.linalg.norm(error))


def dual_bound(cov: Covariance, component: Component, s: int) -> Bound | None:
    """The test's bound at the best rho of a short search; None when the matrix is too large."""
    x = component.weights
    shift = cov.psd_shift
    Ax = cov.columns(component.support) @ x
    Ax[component.support] += shift * x
    value = float(x @ Ax[component.support])
    if value <= 0:
        return None
    g = Ax / np.sqrt(value)
    inside = np.sort(g[component.support] ** 2)
    outside = np.delete(g, component.support)
    low = float((outside**2).max()) if outside.size else 0.0
    high = float(inside[0])
    # Where the order is right any rho between is consistent; where it is not, look around both.
    low, high = min(low, high), max(low, high)
    best: Bound | None = None
    for fraction in np.linspace(0.05, 0.95, 13):
        rho = low + fraction * (high - low)
        bound = _bound_at(cov, component, g, float(np.float32(rho)), s)
        if bound is not None and (best is None or bound.value < best.value):
            best = bound
    return best


def _bound_at(
    cov: Covariance, component: Component, g: np.ndarray, rho: float, s: int
) -> Bound | None:
    slack = SAFETY * (cov.psd_shift + cov.rounding(1))
    # Features that rounding could put on either side of rho belong in, where they are noticed.
    nearly = rho * (1 - 1e-5)
    core = np.flatnonzero((cov.diagonal + slack > nearly) | (g * g > nearly))
    near = np.abs(g[core] ** 2 - rho) <= 1e-6 * rho
    if rho <= 0 or core.size > TEST_LIMIT or near.any():
        return None
    A = cov.submatrix(core)
    A[np.diag_indices(core.size)] += cov.psd_shift
    G, margin = dual_matrix(A, g[core], rho, errors(cov, core, component))
    if not np.isfinite(G).all():
        return None
    total = max(0.0, proved_eigenvalue_sum(G, 1)) + rho * s * (1 + 4 * EPS)
    if SAFETY * margin > 1e-5 * total:
        return None  # rounding would be most of it: other bounds say more
    claim = total * (1 + 8 * EPS) + SAFETY * margin + SAFETY * cov.rounding(s)
    data = {
        "rho": rho,
        "core": core,
        "support": component.support,
        "weights": component.weights,
    }
    return Bound("greedy-dual", claim, data)


def errors(
    cov: Covariance, core: np.ndarray, component: Component
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rounding of A (as roots), of g and of the diagonal, all on the core."""
    roots = np.sqrt(cov.error_unit * np.maximum(cov.error_weights, 0.0))
    x, support = np.abs(component.weights), component.support
    value = float(component.weights @ cov.submatrix(support) @ component.weights)
    spread = np.sqrt(np.maximum(cov.diagonal, 0.0))
    reach = float(x @ spread[support]) * spread[core] + cov.psd_shift
    lost = roots[core] * float(x @ roots[support]) + 4 * (support.size + 16) * EPS * reach
    dg = lost / np.sqrt(value) + 8 * EPS * reach / np.sqrt(value)
    return roots[core], dg, roots[core] ** 2 + 8 * EPS * np.abs(cov.diagonal[core])


def run(
    problem: Problem,
    options: Options,
    *,
    exact: bool = True,
    test: bool = True,
    deflation: str = "auto",
) -> Found:
    """`exact=False` is the paper's approximate path; `test=False` leaves the test out."""
    trail: list[dict[str, float]] = []

    def solve(
        cov: Covariance, s: int, nonnegative: bool, options: Options, rng: np.random.Generator
    ) -> Single:
        steps = path(cov, s, nonnegative, exact=exact)
        component, _ = max(steps, key=lambda step: step[1])
        if not trail:
            trail.extend(
                {"nonzeros": step[0].support.size, "value": step[1] * cov.unit} for step in steps
            )
        bound = dual_bound(cov, component, s) if test and problem.k == 1 else None
        return Single(component, len(steps), bounds=() if bound is None else (bound,))

    found = deflate(problem, options, solve, deflation=deflation)
    info = {**found.info, "path": trail}
    return Found(found.components, found.n_iter, found.note, found.bounds, info)


METHOD = Method("greedy", "d'Aspremont, Bach & El Ghaoui 2008", run)
