"""Bound "common"; statement and proof: docs/methods/common.rst.

The k principal components of a set T of at most s features explain the sum of the k largest
eigenvalues of A_T. Few sets are looked at one by one, otherwise branch and bound decides. It works
on the features that vary most, and every other one is worth its variance.
"""

from __future__ import annotations

from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np

from ...numerics import margins
from ...numerics.margins import SAFETY
from ...problem.components import principal
from ...problem.problem import Component, Options, Problem
from ...problem.result import Bound
from ..proved import Proved
from .branching import Question, Search
from .relaxation import Sets, relaxed

NAME = "common"
SETS = {"fast": 20_000, "full": 300_000}  # up to so many sets are looked at one by one
BATCH = 8192
# Features of a core: all if there are no more than CORE; otherwise FIRST where the relaxation takes
# less than UNUSED of those outside, and CORE where it takes more.
FIRST, UNUSED = 100, 0.05
CORE = {"fast": 400, "full": 800}
WORK = {"fast": 3e9, "full": 6e10}  # about nanoseconds of one core


def common_bound(
    problem: Problem, proved: Proved, options: Options, effort: str
) -> tuple[Bound, tuple[Component, ...], int]:
    """Bound what a common set of s features is worth; also return the best components known and how
    many nodes it took."""
    cov, k, s, p = problem.covariance, problem.k, problem.s_max, problem.covariance.n_features
    margin = SAFETY * k * cov.rounding(s)
    if comb(p, s) <= SETS[effort]:
        a = cov.dense()
        top, best = _every_set(0.5 * (a + a.T), k, s)
        return Bound(NAME, top + margin, {}, margin), principal(problem, best), 0
    known = np.unique(np.concatenate([c.support for c in proved.components]))
    core, a, pads = _core(problem, known, effort)
    if pads.size:
        margin += SAFETY * cov.rounding(s)
    question = Question(
        a=a,
        k=k,
        s=s,
        pads=pads,
        best=np.searchsorted(core, known),
        value=proved.value(problem),
        # a claim has room for the rounding of a set's eigenvalues, whose sum is at most s of them
        tol=max(options.tol, 16 * (2 * s + 1) * margins.ky_fan(s, k)),
        work=WORK[effort],
        max_nodes=options.max_nodes,
        monitor=options.monitor,
    )
    proof = Search(question).run()
    data: dict[str, Any] = {"log": proof.log}
    bound = proof.bound + margin
    if pads.size:
        data["core"] = core.astype(np.int32)
        bound += SAFETY * k * cov.psd_shift
    return Bound(NAME, bound, data, margin), principal(problem, core[proof.best]), proof.nodes


def _core(
    problem: Problem, known: np.ndarray, effort: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the features of the core, their covariance, and what the s largest others are worth.

    The core has those that vary most and those of the best set known: FIRST of them, or CORE where
    the relaxation takes too many others.
    """
    cov, s = problem.covariance, problem.s_max
    order = np.argsort(-cov.diagonal, kind="stable")
    most = max(CORE[effort], 2 * s)
    for size in (most,) if cov.n_features <= most else (max(FIRST, 2 * s), most):
        core, pads = np.union1d(order[:size], known), np.zeros(0)
        if core.size < cov.n_features:
            others = np.sort(np.delete(cov.diagonal, core))[::-1][:s]
            pads = np.zeros(s)
            pads[: others.size] = (others + SAFETY * cov.psd_shift) * (1 + SAFETY * margins.claim())
        a = cov.submatrix(core)
        a = 0.5 * (a + a.T)
        if size == most:
            break
        sets = Sets(a, problem.k, s, np.zeros(core.size, dtype=bool), pads)
        if s - float(relaxed(sets, 0.0).share.sum()) < UNUSED:
            break
    return core, a, pads


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
