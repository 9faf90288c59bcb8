"""Bound "adjusted" (docs/methods/adjusted.rst) once more: one component in another matrix H, and
the eigenvalues of H^-1 A."""

from __future__ import annotations

import numpy as np

from .arithmetic import Arithmetic, Numbers
from .budget import Budget, require
from .cheap import dense, psd_shift, same_spectrum
from .covariance import CheckedCovariance
from .family import Case, Family, every_feature, redone_part
from .margins import term
from .records import Adjusted, EigenvalueSum, RidgeMatrix, StoredMatrix


def recheck(record: Adjusted, case: Case) -> Numbers:
    """The sum of tau_j times the j-th eigenvalue of H^-1 A, both sorted downwards."""
    cov, question, ar, budget = case
    sizes = [part.s for part in record.parts]
    require(sizes == sorted(set(question.cardinalities)), "there is not one part per cardinality")
    if isinstance(record.matrix, RidgeMatrix):
        return _ridge(record, record.matrix, case)
    H = _stored(record.matrix, cov.p, ar, budget)
    taus = _taus(record, case._replace(cov=given(H, ar)))
    levels = {level.count: level for level in record.levels}
    k = min(question.k, cov.p)
    total = ar.number(0.0)
    for j in range(1, k + 1):
        step = ar.number(taus[j - 1]) - ar.number(taus[j] if j < k else 0.0)
        if taus[j - 1] > (taus[j] if j < k else 0.0):
            require(j in levels, f"the sum of {j} eigenvalues is missing")
            total = total + step * _sum(levels[j], H, case)
    return total * (1 + (2 * k + 4) * ar.eps)


def _taus(record: Adjusted, case: Case) -> list[float]:
    """What one component explains in H at most, for every component, the largest first.

    Anchors are left out: a component that need not have them explains no less.
    """
    known: dict[int, float] = {}
    for part in record.parts:
        redone_part(part, case)
        require(part.value > 0.0, "a part's bound is not positive")
        known[part.s] = part.value
    return sorted((known[s] for s in case.question.cardinalities), reverse=True)


def _stored(record: StoredMatrix, p: int, ar: Arithmetic, budget: Budget) -> np.ndarray:
    budget.work(p**3, "a matrix in place of the covariance")
    H = np.zeros((p, p))
    H[np.triu_indices(p, 1)] = record.h
    H = H + H.T
    H[np.diag_indices(p)] = record.diagonal
    exact = ar.array(H)
    require(ar.psd(exact), "the matrix in place of the covariance is not positive definite")
    return exact


def given(matrix: np.ndarray, ar: Arithmetic) -> CheckedCovariance:
    """A matrix of the proof in place of the covariance, exact."""
    if ar.exact:
        from .exact_covariance import GivenCovariance

        return GivenCovariance(matrix, 1.0, 0.0, np.zeros(len(matrix)))
    p = len(matrix)
    return CheckedCovariance(matrix, None, 1.0, 0.0, np.zeros(p, dtype=bool), weights=np.zeros(p))


def _sum(level: EigenvalueSum, H: np.ndarray, case: Case) -> Numbers:
    """count nu + tr P'HP, if nu H + HPP'H - A is positive semidefinite."""
    cov, _, ar, budget = case
    n, count = len(H), level.count
    columns = level.vectors.shape[1]
    budget.work(n**3 + 2 * n * n * columns, "eigenvalues of two matrices")
    A, P, nu = dense(case), ar.array(level.vectors), ar.number(level.nu)
    W, size = ar.matmul(H, P), ar.matmul(abs(H), abs(P))
    M = nu * H + ar.matmul(W, W.T) - A
    sizes = nu * np.trace(H) + abs(np.diagonal(A)).sum() + (size * size).sum()
    blur = term("pencil", n, columns) * ar.eps * sizes
    blur = blur + cov.rounding(n) + psd_shift(case)
    require(ar.psd(0.5 * (M + M.T), blur), "a sum of eigenvalues is not proved")
    trace = (P * W).sum() + term("pencil", n, columns) * ar.eps * (abs(P) * size).sum()
    return (count * nu + trace) * (1 + 4 * ar.eps)


def _ridge(record: Adjusted, matrix: RidgeMatrix, case: Case) -> Numbers:
    cov, question, ar, budget = case
    k = min(question.k, cov.p)
    M, error = same_spectrum(case, matrix.of != "features")
    if M is None:
        return float("inf")
    lacking = psd_shift(case)
    shift = cov.rounding(cov.p) + lacking + error
    budget.work(k * len(M) ** 3, "eigenvalues one by one")
    tops = eigenvalues_one_by_one(M, k, ar)
    taus = _taus(record, case)
    c, total = ar.number(matrix.ridge), ar.number(0.0)
    for tau, top in zip(taus, tops):
        nu = ar.maximum(top, 0.0) + shift
        total = total + (ar.number(tau) + lacking + c) * (nu / (nu + c))
    return total * (1 + (4 * k + 8) * ar.eps)


def eigenvalues_one_by_one(M: np.ndarray, k: int, ar: Arithmetic) -> list[Numbers]:
    """Upper bounds of the k largest eigenvalues, the largest first; infinity if not proved.

    The j-th is at most nu if M - ZZ' <= nu I for some Z of j - 1 columns.
    """
    guess = ar.floats(M)
    n = len(guess)
    w, Q = np.linalg.eigh(0.5 * (guess + guess.T))
    w, Q = w[::-1], Q[:, ::-1]
    # The margin of the factorisation is relative to the trace of nu I - M.
    size = float(np.abs(np.diagonal(guess)).sum()) + (n + 1) * abs(float(w[0])) + 1e-300
    step = term("ky_fan", n, k) * ar.step * size
    out: list[Numbers] = []
    for j in range(min(k, n)):
        root = ar.array(Q[:, :j] * np.sqrt(np.maximum(w[:j] - w[j], 0.0)))
        rest = M - ar.matmul(root, root.T) if j else M
        blur = (j + 4) * ar.eps * (abs(np.diagonal(M)).sum() + (root * root).sum())
        for factor in (2, 16, 128, 1024):
            nu = float(w[j]) + factor * step
            if ar.below(rest, nu - blur):
                out.append(ar.number(nu))
                break
        else:
            out.append(float("inf"))
    return out


FAMILIES = (
    Family("adjusted", Adjusted, recheck, kinds=("adjusted",), nested=True, margin=every_feature),
)
