"""NSPCA, nonnegative sparse PCA by coordinate ascent (Zass & Shashua 2007).

    max over U >= 0 (p x k) of  1/2 tr(U'AU) - alpha/4 |I - U'U|^2 - beta sum(U)

One entry of U moves at a time: its terms are a quartic, -alpha/4 u^4 + c2/2 u^2 + c1 u, maximised
in closed form over u >= 0. Large alpha makes the columns orthonormal, and nonnegative orthogonal
columns have disjoint supports; beta controls how many nonzeros there are in all, not in each
column.
"""

from __future__ import annotations

import numpy as np

from ...numerics.eigen import leading_eigenpairs
from ...problem.covariance import DENSE_LIMIT
from ...problem.problem import Component, Options, Problem
from ..deflation import Single, deflate
from ..method import Found, Method
from ..penalty import check_penalty, reach, unfinished
from .threshold import truncate


def ascend(
    A: np.ndarray, U: np.ndarray, alpha: float, beta: float, max_iter: int, tol: float = 1e-7
) -> tuple[np.ndarray, int]:
    """Sweep over all entries of U until none moves by more than `tol`."""
    from ...kernels import nspca as kernel

    U = np.array(U, dtype=np.float64, order="C")
    AU, gram, rows = A @ U, U.T @ U, (U * U).sum(axis=1)
    sweeps = kernel.ascend(A, U, AU, gram, rows, alpha, beta, max_iter, tol)
    return U, int(sweeps)


def _scales(A: np.ndarray, coupling: float) -> tuple[float, float]:
    """Return alpha, and a beta at which every entry of U is zero."""
    size = float(np.linalg.norm(A))
    reach_of_rows = float(np.linalg.norm(A, axis=1).max())
    return coupling * size, 1.5 * reach_of_rows


def solve(
    problem: Problem,
    rng: np.random.Generator,
    *,
    penalty: float | None = None,
    coupling: float = 5.0,
    restarts: int = 0,
    max_iter: int = 2000,
) -> Single:
    cov, s = problem.covariance, problem.s_max
    A = cov.dense()
    alpha, beta_max = _scales(A, coupling)
    if alpha == 0:
        return Single(Component(np.zeros(1, dtype=np.intp), np.ones(1)))
    u = leading_eigenpairs(cov, 1, rng)[1]
    starts = [np.maximum(u if u.sum() > 0 else -u, 0.0)]
    starts += [np.abs(rng.standard_normal((cov.n_features, 1))) for _ in range(restarts)]
    total: list[int] = []
    best: tuple[float, np.ndarray, str] | None = None
    for start in starts:
        current = start / np.linalg.norm(start)

        def at(fraction: float, current: np.ndarray = current) -> np.ndarray:
            U, sweeps = ascend(A, current, alpha, fraction * beta_max, max_iter)
            total.append(sweeps)
            return U[:, 0]

        x, note = reach(at, s, True, "nspca", penalty=penalty, max_solves=25)
        value = float(x @ A @ x)
        if best is None or value > best[0]:
            best = (value, x, note)
    assert best is not None
    note = "; ".join(filter(None, (best[2], unfinished("nspca", total, max_iter))))
    return Single(Component.from_vector(best[1]), sum(total), note)


def run(
    problem: Problem,
    options: Options,
    *,
    joint: bool = False,
    penalty: float | None = None,
    coupling: float = 5.0,
    restarts: int = 0,
    max_iter: int = 2000,
    deflation: str = "auto",
) -> Found:
    """Find one component after the other, or with `joint=True` all at once as in the paper."""
    if not problem.nonnegative:
        raise ValueError(
            "method='nspca' finds nonnegative components only: pass nonnegative=True, or another "
            "method (threshold, tpower, em, gpower, greedy, spca and dspca do both)"
        )
    p = problem.covariance.n_features
    if p > DENSE_LIMIT:
        raise ValueError(
            f"method='nspca' works on the full matrix of up to {DENSE_LIMIT} features, got {p}; "
            "select features first, or use method='em'"
        )
    if coupling <= 0:
        raise ValueError(f"coupling={coupling} must be positive: it keeps components orthogonal")
    check_penalty(penalty)
    if joint:
        return _run_joint(problem, options, penalty, coupling, max_iter)
    return deflate(
        problem,
        options,
        solve,
        deflation=deflation,
        penalty=penalty,
        coupling=coupling,
        restarts=restarts,
        max_iter=max_iter,
    )


def _run_joint(
    problem: Problem, options: Options, penalty: float | None, coupling: float, max_iter: int
) -> Found:
    """Solve the paper's own problem, with one beta that is fitted to the total cardinality."""
    cov, k = problem.covariance, problem.k
    A = cov.dense()
    alpha, beta_max = _scales(A, coupling)
    rng = np.random.default_rng(options.seed)
    start = np.abs(leading_eigenpairs(cov, k, rng)[1]) + 1e-3 * rng.random((cov.n_features, k))
    wanted = sum(problem.cardinalities)
    low, high = 0.0, 1.0
    fraction = 0.25 if penalty is None else penalty
    best, total = None, list[int]()
    for _ in range(20 if penalty is None else 1):
        U, sweeps = ascend(A, start, alpha, fraction * beta_max, max_iter)
        total.append(sweeps)
        count = np.count_nonzero(U)
        if best is None or count >= wanted:
            best = U
        if count == wanted:
            break
        low, high = (fraction, high) if count > wanted else (low, fraction)
        fraction = (low + high) / 2
    assert best is not None
    return _assign(problem, best, sum(total), unfinished("nspca", total, max_iter))


def _assign(problem: Problem, U: np.ndarray, n_iter: int, late: str) -> Found:
    """Give each feature to the column of its largest entry, then cut each column to size."""
    counts = np.count_nonzero(U, axis=0)
    clash = problem.disjoint and bool((np.count_nonzero(U, axis=1) > 1).any())
    if problem.disjoint:
        U = np.where(U.max(axis=1, keepdims=True) > U, 0.0, U)
    if not U.any(axis=0).all():
        raise ValueError(
            "nspca left a component empty; use a smaller penalty, a smaller coupling, "
            "or joint=False"
        )
    components = tuple(
        Component.from_vector(truncate(U[:, [j]], s, True)[:, 0])
        for j, s in enumerate(problem.cardinalities)
    )
    notes = []
    if not np.array_equal(counts, problem.cardinalities):
        notes.append(
            f"nspca controls the total number of nonzeros only: {counts.tolist()} found, "
            f"cut to {list(problem.cardinalities)}"
        )
    if clash:
        notes.append("overlapping features given to the component with the largest weight")
    if late:
        notes.append(late)
    return Found(components, n_iter, "; ".join(notes), info={"joint": True})


METHOD = Method("nspca", "Zass & Shashua 2007", run)
