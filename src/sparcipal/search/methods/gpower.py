"""GPower, the generalised power method (Journée, Nesterov, Richtárik & Sepulchre 2010).

With a_i the columns of the data, single unit:

    l1:  max over |z| = 1 of  sum_i (|a_i'z| - g)_+^2        l0:  sum_i ((a_i'z)^2 - g)_+

and the step `z <- sum_i w_i a_i` normalised, w the thresholded scores. Scores depend on z only
through the covariance: a_i'z = (Aw)_i / sqrt(w'Aw), so the data are not needed. `block=True`
moves all components at once, z on the Stiefel manifold, the step followed by a polar decomposition.

|a_i'z| <= |a_i|: a feature whose standard deviation is at most g never survives, and single-unit
runs leave it out from the start.
"""

from __future__ import annotations

import numpy as np

from ...numerics.eigen import leading_eigenpairs
from ...numerics.largest import magnitudes
from ...problem.covariance import Covariance
from ...problem.problem import Component, Options, Problem
from ..deflation import Single, deflate
from ..method import Found, Method
from ..penalty import check_penalty, reach, unfinished
from .threshold import truncate

_TOL = 1e-8
FEW = 500  # a matrix is formed for up to so many features


def shrink(
    scores: np.ndarray, gamma: np.ndarray | float, norm: str, nonnegative: bool
) -> np.ndarray:
    """Return the thresholded scores w; gamma is compared with |score| in both norms."""
    size = magnitudes(scores, nonnegative)
    if norm == "l1":
        return np.sign(scores) * np.maximum(size - gamma, 0.0)
    return np.where(size > gamma, scores, 0.0)


def single_unit(
    cov: Covariance, gamma: float, norm: str, nonnegative: bool, start: np.ndarray, max_iter: int
) -> tuple[np.ndarray, int]:
    """Return weights at threshold gamma (l0: root of the paper's gamma), and the steps taken."""
    w = start
    last = -np.inf
    for n_iter in range(1, max_iter + 1):
        Aw = cov.matvec(w)
        value = float(w @ Aw)
        if value <= 0:
            return np.zeros_like(w), n_iter
        scores = Aw / np.sqrt(value)
        w = shrink(scores, gamma, norm, nonnegative)
        kept = np.abs(scores[w != 0])
        objective = float(np.sum((kept - gamma) ** 2 if norm == "l1" else kept**2 - gamma**2))
        if not kept.size or objective <= last * (1 + _TOL):
            return w, n_iter
        last = objective
    return w, max_iter


class _Survivors:
    """This holds the covariance of the features that can survive a threshold, dense if few."""

    def __init__(self, cov: Covariance) -> None:
        self.whole = cov
        self.spread = np.sqrt(np.maximum(cov.diagonal, 0.0))
        self.gamma = 0.0
        self.keep, self.part = np.arange(cov.n_features), cov

    def at(self, gamma: float) -> tuple[np.ndarray, Covariance]:
        keep = np.flatnonzero(self.spread > gamma)
        # The covariance of a smaller threshold is reused unless it is far too large.
        if gamma < self.gamma or self.keep.size > 3 * keep.size:
            self.gamma, self.keep, self.part = 0.0, np.arange(self.spread.size), self.whole
            if 0 < 3 * keep.size <= self.spread.size:
                self.gamma, self.keep, self.part = gamma, keep, self.whole.restrict(keep)
                if keep.size <= min(FEW, self.whole.n_samples or FEW):
                    self.part = self.part.materialise()
        return self.keep, self.part


def solve(
    problem: Problem,
    rng: np.random.Generator,
    *,
    norm: str = "l1",
    penalty: float | None = None,
    max_iter: int = 500,
) -> Single:
    cov, s, nonnegative = problem.covariance, problem.s_max, problem.nonnegative
    p = cov.n_features
    top = float(np.sqrt(max(float(cov.diagonal.max()), 0.0)))
    if top == 0:
        return Single(Component(np.zeros(1, dtype=np.intp), np.ones(1)))
    survivors = _Survivors(cov)
    steps: list[int] = []

    def at(fraction: float) -> np.ndarray:
        gamma = top * (fraction if norm == "l1" else np.sqrt(fraction))
        keep, part = survivors.at(gamma)
        start = np.zeros(keep.size)
        start[int(np.argmax(part.diagonal))] = 1.0
        w, n_iter = single_unit(part, gamma, norm, nonnegative, start, max_iter)
        steps.append(n_iter)
        x = np.zeros(p)
        x[keep] = w
        return x

    x, note = reach(at, s, nonnegative, f"gpower-{norm}", penalty=penalty)
    note = "; ".join(filter(None, (note, unfinished(f"gpower-{norm}", steps, max_iter))))
    return Single(Component.from_vector(x), sum(steps), note)


def run(
    problem: Problem,
    options: Options,
    *,
    norm: str = "l1",
    block: bool = False,
    penalty: float | None = None,
    max_iter: int = 500,
    deflation: str = "auto",
) -> Found:
    if norm not in ("l0", "l1"):
        raise ValueError(f"norm must be 'l0' or 'l1', got {norm!r}")
    check_penalty(penalty)
    if not block:
        return deflate(
            problem,
            options,
            solve,
            deflation=deflation,
            norm=norm,
            penalty=penalty,
            max_iter=max_iter,
        )
    if problem.disjoint and problem.k > 1:
        raise ValueError(
            "block=True finds all components at once and lets supports overlap; "
            "use supports='free', or block=False"
        )
    return _run_block(problem, options, norm, penalty, max_iter)


def block_units(
    cov: Covariance,
    gammas: np.ndarray,
    norm: str,
    nonnegative: bool,
    start: np.ndarray,
    max_iter: int,
) -> tuple[np.ndarray, int]:
    """Iterate on all components at once; scores are the columns of A W (W'AW)^(-1/2)."""
    W = start
    last = -np.inf
    for n_iter in range(1, max_iter + 1):
        AW = cov.matmat(W)
        scores = AW @ _inverse_root(W.T @ AW)
        W = shrink(scores, gammas, norm, nonnegative)
        kept = np.where(W != 0, np.abs(scores), 0.0)
        terms = (kept - gammas) ** 2 if norm == "l1" else kept**2 - gammas**2
        objective = float(np.sum(terms[W != 0]))
        if objective <= last * (1 + _TOL):
            return W, n_iter
        last = objective
    return W, max_iter


def _inverse_root(M: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    floor = 1e-14 * max(float(values[-1]), 1e-300)
    roots = np.where(values > floor, 1.0 / np.sqrt(np.maximum(values, floor)), 0.0)
    return (vectors * roots) @ vectors.T


def _run_block(
    problem: Problem, options: Options, norm: str, penalty: float | None, max_iter: int
) -> Found:
    """Bisect the penalty of every component; each solve advances all bisections."""
    cov, k = problem.covariance, problem.k
    wanted = np.array(problem.cardinalities)
    top = np.sqrt(max(float(cov.diagonal.max()), 0.0))
    start = leading_eigenpairs(cov, k, np.random.default_rng(options.seed))[1]
    low, high = np.zeros(k), np.ones(k)
    fractions = np.full(k, 0.5 if penalty is None else penalty)
    best = np.zeros((cov.n_features, k))
    distance = np.full(k, np.inf)
    steps: list[int] = []
    for _ in range(1 if penalty is not None else 40):
        gammas = top * (fractions if norm == "l1" else np.sqrt(fractions))
        W, n_iter = block_units(cov, gammas, norm, problem.nonnegative, start, max_iter)
        steps.append(n_iter)
        counts = np.count_nonzero(W, axis=0)
        # Prefer too many nonzeros, which can be cut to size, to too few, which cannot be filled.
        off = np.where(counts >= wanted, counts - wanted, 1e6 + wanted - counts)
        closer = off < distance
        best[:, closer], distance[closer] = W[:, closer], off[closer]
        if np.array_equal(counts, wanted):
            best = W
            break
        low = np.where(counts > wanted, fractions, low)
        high = np.where(counts < wanted, fractions, high)
        fractions = np.where(counts == wanted, fractions, (low + high) / 2)
    late = unfinished(f"gpower-{norm} block", steps, max_iter)
    return _cut_block(problem, best, norm, sum(steps), late)


def _cut_block(problem: Problem, W: np.ndarray, norm: str, n_iter: int, late: str) -> Found:
    counts = np.count_nonzero(W, axis=0)
    components = [
        Component.from_vector(truncate(W[:, [j]], s, problem.nonnegative)[:, 0])
        for j, s in enumerate(problem.cardinalities)
    ]
    note = ""
    if not np.array_equal(counts, problem.cardinalities):
        note = (
            f"gpower-{norm} block reaches {counts.tolist()} nonzeros for the "
            f"{list(problem.cardinalities)} asked; richer components are cut to the largest entries"
        )
    note = "; ".join(filter(None, (note, late)))
    return Found(tuple(components), n_iter, note, info={"block": True})


METHOD = Method("gpower", "Journée et al. 2010", run)
