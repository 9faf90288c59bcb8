"""Bound "common"; statement and proof: docs/methods/common.rst.

The k principal components of a set T of at most s features explain the sum of the k largest
eigenvalues of A_T. Few sets are looked at one by one. Otherwise, for any Z = LL', no set is worth
more than the s largest diagonal entries of Z and the k largest eigenvalues of A - Z together. L is
optimised by L-BFGS, both sums smoothed by Fermi-Dirac weights.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations, islice
from math import comb

import numpy as np

from ..numerics import margins
from ..numerics.lbfgs import minimise
from ..numerics.margins import SAFETY, top_sum
from ..problem.components import principal
from ..problem.problem import Component, Options, Problem
from ..problem.result import Bound
from .cheap import proved_eigenvalue_sum
from .kyfan.optimise import fermi_dirac

NAME = "common"
SETS = {"fast": 20_000, "full": 300_000}  # that are looked at one by one
BATCH = 8192
PART = 0.9  # Z begins as this part of A
SMOOTHING = {
    "fast": (0.1, 0.03, 0.01, 3e-3, 1e-3),
    "full": (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4),
}
STEPS = {"fast": 80, "full": 600}
COOLER = 0.3  # temperature of the sum of diagonal entries


def common_bound(
    problem: Problem,
    components: tuple[Component, ...],
    value: float,
    options: Options,
    effort: str,
) -> tuple[Bound, tuple[Component, ...]]:
    """No common set of s features is worth more; also return the best components known."""
    cov, k, s = problem.covariance, problem.k, problem.s_max
    margin = SAFETY * k * cov.rounding(s)
    a = cov.dense()
    a = 0.5 * (a + a.T)
    if comb(len(a), s) <= SETS[effort]:
        top, best = _every_set(a, k, s)
        return Bound(NAME, top + margin, {}, margin), principal(problem, best)
    L = _optimised(a, k, s, value, options, effort).astype(np.float32).astype(np.float64)
    Z = L @ L.T
    n, m = L.shape
    diagonal = np.diagonal(Z) * (1 + SAFETY * margins.moved(m))
    sizes = top_sum(np.abs(np.diagonal(a)), s) + top_sum(diagonal, s)
    total = top_sum(diagonal, s) + proved_eigenvalue_sum(a - Z, min(k, n))
    total += SAFETY * (k + 1) * margins.moved(m) * sizes
    return Bound(NAME, total + margin, {"L": L.astype(np.float32)}, margin), components


def _optimised(
    a: np.ndarray, k: int, s: int, value: float, options: Options, effort: str
) -> np.ndarray:
    """Return L for which the smoothed bound is small."""
    n = len(a)
    w, q = np.linalg.eigh(a)
    start = q * np.sqrt(PART * np.maximum(w, 1e-9 * max(float(w[-1]), 1e-280)))

    def evaluate(y: np.ndarray, mu: float) -> tuple[float, np.ndarray]:
        L = y.reshape(n, n)
        w, q = np.linalg.eigh(a - L @ L.T)
        weight, _, top = fermi_dirac(w, min(k, n), mu)
        diagonal = np.einsum("ij,ij->i", L, L)
        order = np.argsort(diagonal, kind="stable")
        chosen, _, paid = fermi_dirac(diagonal[order], min(s, n), COOLER * mu)
        slopes = np.empty(n)
        slopes[order] = chosen
        gradient = 2.0 * (slopes[:, None] * L - (q * weight) @ (q.T @ L))
        return top + paid, gradient.ravel()

    y = start.ravel().copy()
    for smoothing in SMOOTHING[effort]:
        mu = smoothing * max(value, 1e-280) / s
        y = minimise(partial(evaluate, mu=mu), y, STEPS[effort], partial(_slow, mu, options))
    return y.reshape(n, n)


def _slow(mu: float, options: Options, history: list[float]) -> bool:
    slow = len(history) > 15 and history[-16] - history[-1] < 0.01 * mu
    return slow or options.monitor.stopped is not None


def _every_set(a: np.ndarray, k: int, s: int) -> tuple[float, np.ndarray]:
    """Return a bound on the sum of the k largest eigenvalues of every set, and the best set.

    nu I + Z - A_T is positive semidefinite, with Z from the eigenvectors: see proved_sum.
    """
    highest, best, most = -np.inf, np.arange(s), -np.inf
    sets = combinations(range(len(a)), s)
    while batch := list(islice(sets, BATCH)):
        index = np.array(batch, dtype=np.intp)
        blocks = a[index[:, :, None], index[:, None, :]]
        w, q = np.linalg.eigh(blocks)
        totals = w[:, s - k :].sum(axis=1)
        i = int(np.argmax(totals))
        if totals[i] > most:
            most, best = float(totals[i]), index[i]
        highest = max(highest, float((totals + _margins(blocks, w, q, k)).max()))
    return highest, best


def _margins(blocks: np.ndarray, w: np.ndarray, q: np.ndarray, k: int) -> np.ndarray:
    """Return what must be added to the computed sums so that Cholesky proves them."""
    s = blocks.shape[-1]
    nu = w[:, s - k]
    root = q[:, :, s - k :] * np.sqrt(np.maximum(w[:, s - k :] - nu[:, None], 0.0))[:, None, :]
    rest = root @ root.swapaxes(1, 2) - blocks
    trace = (root * root).sum(axis=(1, 2))
    size = np.abs(np.einsum("...ii->...i", blocks)).sum(axis=1) + trace + (s + 1) * np.abs(nu)
    delta = margins.ky_fan(s, k) * (size + 1e-280)
    for factor in (4.0, 64.0, 2.0**14):
        shifted = rest.copy()
        np.einsum("...ii->...i", shifted)[...] += (nu + factor * delta)[:, None]
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            continue
        proved = k * (nu + (factor + 4) * delta) + trace * (1 + margins.sum_of(s * k))
        return np.asarray(proved - w[:, s - k :].sum(axis=1) + margins.sum_of(k) * size)
    return np.full(len(blocks), np.inf)
