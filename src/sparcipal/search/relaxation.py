"""The DSPCA relaxation and its solution by block coordinate ascent (Zhang & El Ghaoui 2011).

    phi(l) = max tr(AZ) - l |Z|_1  over Z psd, tr Z = 1      (d'Aspremont et al. 2007)
           = min lambda_max(A + U)  over |U_ij| <= l

Nonnegative components add Z_ij >= 0, which leaves U_ij >= -l as the only condition on U.

Where |A_ij| <= l (nonnegative: A_ij <= l), U_ij = -A_ij takes the entry out of A + U, so the
features fall apart into blocks that are solved by themselves, and phi is the largest block's. In
a block, ascent on `tr(AX) - l|X|_1 - (tr X)^2/2 + beta log det X`, column by column, with beta
falling to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse.csgraph import connected_components

from ..linalg import largest_eigenpairs, largest_eigenvalues

# Sweeps between two looks at the duality gap.
SWEEPS = 3
# Passes of the box QP per column: accuracy comes from the sweeps, not from here.
PASSES = 5
# beta falls by this factor once the gap is within a few times what beta itself accounts for.
SHRINK = 0.3
PATIENCE = 3.0


@dataclass(frozen=True)
class Relaxation:
    """A feasible pair: `value <= phi <= bound` up to rounding."""

    penalty: float
    Z: np.ndarray  # (n, n) psd, trace 1
    value: float  # tr(AZ) - l |Z|_1
    dual: np.ndarray  # (n, n) the matrix A + U
    bound: float  # its largest eigenvalue, as computed
    n_iter: int
    converged: bool

    @property
    def gap(self) -> float:
        """Relative to the value; what is left between the two solutions."""
        return (self.bound - self.value) / self.value if self.value > 0 else np.inf

    def direction(self) -> np.ndarray:
        """The leading eigenvector of Z, mostly positive."""
        x = largest_eigenpairs(self.Z, 1)[1][:, 0]
        return x if x.sum() >= 0 else -x


def soft_threshold(A: np.ndarray, penalty: float, nonnegative: bool) -> np.ndarray:
    """A + U for U = -clip(A, -l, l), and -l on the diagonal: the cheapest dual point."""
    if nonnegative:
        M = np.maximum(A - penalty, 0.0)
    else:
        M = np.sign(A) * np.maximum(np.abs(A) - penalty, 0.0)
    M[np.diag_indices_from(M)] = np.diagonal(A) - penalty
    return M


def ascend(
    A: np.ndarray,
    penalty: float,
    *,
    nonnegative: bool = False,
    tol: float = 1e-3,
    max_sweeps: int = 120,
) -> Relaxation:
    """Solve the relaxation to a relative duality gap of `tol`, or as far as `max_sweeps` go.

    Raises ValueError when the penalty is at least the largest variance: then nothing is worth
    taking.
    """
    n = A.shape[0]
    largest = float(np.diagonal(A).max())
    if not 0 <= penalty < largest:
        raise ValueError(
            f"penalty={penalty:.6g} must lie in [0, {largest:.6g}): at the largest variance and "
            "above no feature is worth its price"
        )
    dual = soft_threshold(A, penalty, nonnegative)
    top = int(np.argmax(np.diagonal(A)))
    best = _Block(np.array([top]), np.ones((1, 1)), largest - penalty, 0, True)
    bound, total, converged = -np.inf, 0, True
    for features, potential in _blocks(dual):
        if potential <= best.value * (1 + tol / 2) or features.size == 1:
            bound = max(bound, potential)
            continue
        block = A[np.ix_(features, features)]
        solved, M, reached = _ascend_block(block, penalty, nonnegative, potential, tol, max_sweeps)
        if reached < potential:
            dual[np.ix_(features, features)] = M
        bound = max(bound, min(reached, potential))
        total += solved.n_iter
        converged &= solved.converged
        if solved.value > best.value:
            best = _Block(features, solved.Z, solved.value, solved.n_iter, solved.converged)
    Z = np.zeros((n, n))
    Z[np.ix_(best.features, best.features)] = best.Z
    return Relaxation(penalty, Z, best.value, dual, bound, total, converged)


@dataclass(frozen=True)
class _Block:
    features: np.ndarray
    Z: np.ndarray
    value: float
    n_iter: int
    converged: bool


def _blocks(soft: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Connected features of the thresholded matrix, and its largest eigenvalue on each."""
    graph = soft != 0
    np.fill_diagonal(graph, False)
    count, label = connected_components(graph, directed=False)
    order = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[order], np.arange(count + 1))
    found = []
    for start, stop in pairwise(starts):
        features = order[start:stop]
        part = soft[np.ix_(features, features)]
        m = features.size
        potential = part[0, 0] if m == 1 else _largest_eigenvalue(part)
        found.append((features, float(potential)))
    return sorted(found, key=lambda pair: -pair[1])


def _largest_eigenvalue(M: np.ndarray) -> float:
    return float(largest_eigenvalues(M, 1)[0])


def _ascend_block(
    A: np.ndarray,
    penalty: float,
    nonnegative: bool,
    potential: float,
    tol: float,
    max_sweeps: int,
) -> tuple[_Block, np.ndarray, float]:
    """The ascent proper: the primal solution, the dual matrix and its largest eigenvalue.

    `potential` bounds the value from above and sets the scale of X and of beta (in units of A^2).
    """
    from ..kernels.dspca import sweep

    A = np.ascontiguousarray(A)
    n = A.shape[0]
    value = float(np.diagonal(A).max()) - penalty
    Z = np.zeros((n, n))
    top = int(np.argmax(np.diagonal(A)))
    Z[top, top] = 1.0
    X = np.eye(n) * (potential / n)
    U = A.copy()
    lists = np.zeros((n, n), dtype=np.int32), np.zeros(n, dtype=np.int64)
    work = np.empty(n), np.empty(n), np.empty(n)
    beta, spare = 0.5 * potential**2 / n, 0.3
    dual, bound = A, np.inf
    done = 0
    while done < max_sweeps:
        safe = X.copy(), lists[0].copy(), lists[1].copy()
        for _ in range(SWEEPS):
            sweep(A, X, U, penalty, nonnegative, beta, spare * beta, *lists, *work, PASSES)
        done += SWEEPS
        if not _positive_definite(X):
            # Too much was dropped from the columns: go back and drop less.
            X, lists = safe[0], (safe[1], safe[2])
            spare *= 0.1
            continue
        M = (U + U.T) / 2
        M[np.diag_indices(n)] = np.diagonal(A) - penalty
        reached = _largest_eigenvalue(M)
        if reached < bound:
            dual, bound = M, reached
        trace = float(np.trace(X))
        primal = float(np.sum(A * X) - penalty * np.abs(X).sum()) / trace
        if primal > value:
            Z, value = X / trace, primal
        if bound - value <= tol * value:
            break
        if reached - primal <= PATIENCE * n * beta / trace:
            beta = max(SHRINK * beta, 0.3 * tol * value**2 / n)
    converged = bound - value <= tol * value
    return _Block(np.arange(n), Z, value, done, converged), dual, bound


def _positive_definite(X: np.ndarray) -> bool:
    if not np.isfinite(X).all():
        return False
    try:
        np.linalg.cholesky(X)
    except np.linalg.LinAlgError:
        return False
    return True
