"""Bounds "greedy-dual" and "dspca-dual"; statement and proof: docs/methods/duals.rst.

"greedy-dual" (d'Aspremont, Bach & El Ghaoui 2008). Write A = F'F with columns a_i, take any unit z,
any rho > 0, and g_i = a_i'z. With B_i = a_i a_i' - rho I, matrices Y_i >= 0 (psd) with Y_i >= B_i
give, for every s,

    OPT(s) <= lambda_max(sum of Y_i) + rho s,

because x'Ax = max over z of sum over S of (a_i'z)^2 <= rho s + sum of (z'B_i z)_+. The paper's
choice:

    g_i^2 > rho:   Y_i = B_i zz' B_i / (g_i^2 - rho)
    otherwise:     Y_i = c_i v_i v_i',  v_i = a_i - g_i z,  c_i = rho (A_ii - rho)_+ / ((rho -
    g_i^2) |v_i|^2)

For z = Fx/|Fx| every product of these vectors is an expression in A and g = Ax / sqrt(x'Ax), so
that x, rho and A are all a checker needs; features with A_ii <= rho drop out.

"dspca-dual" (d'Aspremont et al. 2007, Zhang & El Ghaoui 2011). For any symmetric U with
|U_ij| <= l (nonnegative components: U_ij >= -l) on a set K that contains every feature with
A_ii > l, and every s,

    OPT(s) <= max(0, lambda_max(A_KK + U)) + l s.

Let x be optimal with support S, |S| <= s, and z = Fx/|Fx| for a factor A = F'F with columns a_i.
Then x'Ax <= sum over S of (a_i'z)^2 <= l s + sum over T of ((a_i'z)^2 - l), T = {i in S:
(a_i'z)^2 > l}, and T lies in K because (a_i'z)^2 <= A_ii. That sum is at most lambda_max(A_TT) -
l|T|, and y'A_TT y - l|T| <= y'(A + U)y for unit y on T, since y'Uy >= -l |y|_1^2 >= -l|T|. So
the elimination costs this bound nothing. It does change the relaxation: phi(l) of K can be
smaller than phi(l) of all features, and is no bound on it (A = [[100, 5], [5, .5]], l = 1).
Disjoint components: the T_j are disjoint, their y_j orthonormal, and the k largest eigenvalues
of A_KK + U (positive ones) plus l (s_1 + .. + s_k) bound the sum.
"""

from __future__ import annotations

import numpy as np

from ..numerics import margins
from ..numerics.margins import SAFETY
from ..problem.covariance import Covariance
from ..problem.problem import Component, Problem
from ..problem.result import Bound
from .cheap import proved_eigenvalue_sum

# The largest matrix that the greedy test factors.
TEST_LIMIT = 1500


def _greedy_matrix(
    A: np.ndarray, g: np.ndarray, rho: float, errors: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, float]:
    """Return a matrix with the nonzero eigenvalues of the sum of Y_i, and their rounding error.

    `errors` bound the rounding of A (as roots r, |dA_ij| <= r_i r_j), of g, and of the
    diagonal.
    """
    roots, dg, da = errors
    strong = g * g > rho
    variance = np.diagonal(A) + da
    gap = np.abs(g * g - rho)
    left = np.maximum(variance - g * g, 1e-300)
    weak_c = rho * np.maximum(variance - rho, 0.0) / (gap * left)
    c = np.where(strong, 1.0 / gap, weak_c)
    relative = 2 * np.abs(g) * dg / gap + margins.greedy_entry()
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
    blur = blur + margins.greedy_entry() * size
    error = scale * (blur + np.abs(G) * np.add.outer(relative, relative))
    return scale * G, 2 * float(np.linalg.norm(error))


def greedy_dual(cov: Covariance, component: Component, s: int) -> Bound | None:
    """Return the test's bound at the best rho of a short search; None when the matrix is too
    large."""
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
    # If the support has the largest g_i^2, any rho between low and high is consistent; otherwise
    # they are swapped and the same range is searched.
    low, high = min(low, high), max(low, high)
    best: Bound | None = None
    for fraction in np.linspace(0.05, 0.95, 13):
        rho = low + fraction * (high - low)
        bound = _greedy_at(cov, component, g, float(np.float32(rho)), s)
        if bound is not None and (best is None or bound.value < best.value):
            best = bound
    return best


def _greedy_at(
    cov: Covariance, component: Component, g: np.ndarray, rho: float, s: int
) -> Bound | None:
    slack = SAFETY * (cov.psd_shift + cov.rounding(1))
    # The core includes features that rounding could put on either side of rho, to be tested below.
    nearly = rho * (1 - 1e-5)
    core = np.flatnonzero((cov.diagonal + slack > nearly) | (g * g > nearly))
    near = np.abs(g[core] ** 2 - rho) <= 1e-6 * rho
    if rho <= 0 or core.size > TEST_LIMIT or near.any():
        return None
    A = cov.submatrix(core)
    A[np.diag_indices(core.size)] += cov.psd_shift
    G, margin = _greedy_matrix(A, g[core], rho, _errors(cov, core, component))
    if not np.isfinite(G).all():
        return None
    total = max(0.0, proved_eigenvalue_sum(G, 1)) + rho * s * (1 + SAFETY * margins.dual_claim())
    if SAFETY * margin > 1e-5 * total:
        return None  # rounding would dominate this bound
    claim = total * (1 + SAFETY * margins.claim()) + SAFETY * margin + SAFETY * cov.rounding(s)
    data = {
        "rho": rho,
        "core": core,
        "shift": cov.psd_shift,
        "support": component.support,
        "weights": component.weights,
    }
    return Bound("greedy-dual", claim, data, SAFETY * cov.rounding(s))


def _errors(
    cov: Covariance, core: np.ndarray, component: Component
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bound the rounding of A (as roots), of g and of the diagonal, all on the core."""
    roots = np.sqrt(cov.error_unit * np.maximum(cov.error_weights, 0.0))
    x, support = np.abs(component.weights), component.support
    value = float(component.weights @ cov.submatrix(support) @ component.weights)
    spread = np.sqrt(np.maximum(cov.diagonal, 0.0))
    reach = float(x @ spread[support]) * spread[core] + cov.psd_shift
    product = margins.greedy_product(support.size) * reach
    lost = roots[core] * float(x @ roots[support]) + product
    dg = lost / np.sqrt(value) + margins.claim() * reach / np.sqrt(value)
    da = roots[core] ** 2 + margins.claim() * np.abs(cov.diagonal[core])
    return roots[core], dg, da


def dspca_dual(problem: Problem, core: np.ndarray, dual: np.ndarray, penalty: float) -> Bound:
    """Bound the whole problem by a dual solution A_KK + U, where K is the `core`."""
    cov = problem.covariance
    m = core.size
    A = cov.submatrix(core)
    moved = (dual - A)[np.triu_indices(m, 1)].astype(np.float32)
    limit = np.float32(penalty)
    moved = np.maximum(moved, -limit) if problem.nonnegative else np.clip(moved, -limit, limit)
    M = A.copy()
    rows, cols = np.triu_indices(m, 1)
    M[rows, cols] += moved
    M[cols, rows] = M[rows, cols]
    M[np.diag_indices(m)] -= penalty
    value, margin = _dspca_claim(problem, M, penalty)
    data = {"penalty": penalty, "core": core, "moved": moved}
    return Bound("dspca-dual", value, data, margin)


def _dspca_claim(problem: Problem, M: np.ndarray, penalty: float) -> tuple[float, float]:
    """Return the bound, and the part of it that is there for the rounding of the covariance."""
    k, m, cards = problem.k, M.shape[0], problem.cardinalities
    price = penalty * sum(cards) * (1 + SAFETY * margins.dual_claim())
    if problem.disjoint:
        # Zero rows stand for components that stay empty: only positive eigenvalues count.
        padded = np.zeros((m + k, m + k))
        padded[:m, :m] = M
        total = proved_eigenvalue_sum(padded, k)
        rounding = problem.covariance.rounding(sum(cards))
    else:
        total = k * max(0.0, proved_eigenvalue_sum(M, 1))
        rounding = k * problem.covariance.rounding(problem.s_max)
    # Adding U rounds each entry of the matrix once more.
    margin = rounding + margins.sum_of(k) * (float(np.abs(np.diagonal(M)).max()) + m * penalty)
    claim = (total + price) * (1 + SAFETY * margins.dual_claim()) + SAFETY * margin
    return claim, SAFETY * rounding
