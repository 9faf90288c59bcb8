"""Cheap bounds (docs/methods/cheap.rst), computed once more; the code is not shared."""

from __future__ import annotations

import numpy as np

from .arithmetic import Numbers
from .family import ALL_KINDS, Case, Family, all_features_used, every_feature, rows_too
from .given import proved_shift
from .margins import term
from .records import Clip, Eigenvalues, Frobenius, Nothing

FACTOR_LIMIT = 4000  # order of the largest matrix that is factored
ROWS, BLOCK = 4096, 64  # rows of the covariance that are formed, in all and at a time


def trace(record: Nothing, case: Case) -> Numbers:
    cov, question, ar, _ = case
    m = question.n_nonzero
    shift = psd_shift(case)
    return (
        ar.top(cov.diagonal, m).sum() * (1 + term("sum_of", m) * ar.eps)
        + m * shift
        + cov.rounding(m)
    )


def eigenvalues(record: Eigenvalues, case: Case) -> Numbers:
    """Add the k largest, of that matrix which the solver took: the two round differently."""
    cov, question, ar, _ = case
    k = min(question.k, cov.p)
    # What overlapping supports explain is at most that in A + dI, where it is positive
    # semidefinite: adjusted variances, and components on features that were left out.
    shift = 0.0 if question.disjoint else k * psd_shift(case)
    M, error = same_spectrum(case, record.matrix == "samples")
    if M is None:
        return float("inf")
    return ar.ky_fan(M, k) + k * error + k * cov.rounding(cov.p) + shift


def same_spectrum(case: Case, of_samples: bool) -> tuple[np.ndarray | None, Numbers]:
    """Return the matrix of features, or that of samples, with what rounding did to its eigenvalues;
    no matrix where it is too large."""
    cov, _, ar, budget = case
    n = cov.n
    if of_samples and n is not None and n <= FACTOR_LIMIT:
        budget.work(n**3 + n**2 * cov.p, "the eigenvalues of the matrix of samples")
        budget.memory(ar.bytes * n * (5 * n + cov.p), "the matrix of samples")
        gram = cov.gram()
        if gram is not None:
            return gram, term("gram", cov.p) * ar.eps * np.trace(gram)
    # rows of another kind than the solver's may have no such matrix at hand
    return (dense(case) if cov.p <= FACTOR_LIMIT else None), 0.0


def gershgorin(record: Nothing, case: Case) -> Numbers:
    cov, question, ar, _ = case
    s, k, p = question.s_max, question.k, cov.p
    std = ar.sqrt(ar.maximum(cov.diagonal, 0.0) + psd_shift(case))
    values = cov.diagonal + std * ar.top(std, s - 1).sum()
    # Rows are worth computing only while they could still be among the k largest.
    order = np.argsort(-ar.floats(values))
    for start in range(0, min(p, ROWS), BLOCK):
        block = order[start : start + BLOCK]
        known = np.sort(ar.floats(values[order[:start]]))[::-1]
        if known.size >= k and known[k - 1] >= ar.floats(values[block[0]]):
            break
        rows = ar.size(case.entries(block, np.arange(p)), question.nonnegative)
        rows[np.arange(block.size), block] = ar.number(0.0)
        sums = cov.diagonal[block] + ar.top(rows, s - 1).sum(axis=1)
        values[block] = ar.minimum(sums, values[block])
    total = ar.top(ar.maximum(values, 0.0), k).sum() * (1 + term("row_sums", s, k) * ar.eps)
    roots = ar.top(ar.sqrt(ar.array(cov.weights)), s)
    row_error = ar.number(cov.error_unit) * roots[0] * roots.sum()
    return total + k * row_error + cov.rounding(question.n_nonzero)


def clip(record: Clip, case: Case) -> Numbers:
    cov, question, ar, _ = case
    if cov.p > FACTOR_LIMIT:
        return float("inf")
    A, off = _off_diagonal(case)
    moved = ar.minimum(ar.maximum(off, -record.rho), record.rho)
    charge = ar.top_sum(abs(moved), question.s_max - 1)
    M = off - moved
    M[np.diag_indices(cov.p)] = np.diagonal(A) + charge
    return ar.ky_fan(M, question.k) + cov.rounding(question.n_nonzero)


def frobenius(record: Frobenius, case: Case) -> Numbers:
    cov, question, ar, _ = case
    if cov.p > FACTOR_LIMIT:
        return float("inf")
    m, k, s = question.n_nonzero, question.k, question.s_max
    A, off = _off_diagonal(case)
    c = ar.number(record.c)
    squares = (np.diagonal(A) - c) ** 2 + ar.top(off * off, s - 1).sum(axis=1)
    total = k * c + ar.sqrt(k * ar.top(squares, m).sum())
    return total * (1 + term("frobenius", m, s) * ar.eps) + cov.rounding(m)


def dense(case: Case) -> np.ndarray:
    """Return the whole matrix, whose eigenvalues are going to be asked for."""
    p = case.cov.p
    case.budget.work(p**3, f"the eigenvalues of a matrix of {p} features")
    return case.entries(np.arange(p))


def psd_shift(case: Case) -> Numbers:
    """Return a shift for which A + shift I is positive semidefinite: none for a covariance of data,
    for a given matrix what its smallest eigenvalue lacks; infinity if that is not proved."""
    cov, ar = case.cov, case.ar
    if not cov.given:
        return ar.number(0.0)
    if ar.exact not in cov.shifts:
        cov.shifts[ar.exact] = proved_shift(dense(case), case.ar)
    return ar.number(cov.shifts[ar.exact])


def _off_diagonal(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix, and what lies off its diagonal; for nonnegative components what helps."""
    cov, question, ar, _ = case
    A = dense(case)
    off = ar.maximum(A, 0.0) if question.nonnegative else A.copy()
    off[np.diag_indices(cov.p)] = ar.number(0.0)
    return A, off


FAMILIES = (
    Family("trace", Nothing, trace, totals=True, kinds=ALL_KINDS, margin=all_features_used),
    Family(
        "eigenvalues", Eigenvalues, eigenvalues, totals=True, kinds=ALL_KINDS, margin=every_feature
    ),
    Family("gershgorin", Nothing, gershgorin, totals=True, margin=rows_too),
    Family("frobenius", Frobenius, frobenius, totals=True),
    Family("clip", Clip, clip, totals=True),
)
