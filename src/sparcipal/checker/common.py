"""Bound "common" (docs/methods/common.rst) once more: every set, or a matrix that is moved off the
covariance."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .arithmetic import Numbers
from .budget import choices
from .cheap import dense
from .family import Case, Family, each_alone
from .margins import term
from .records import Common


def recheck(record: Common, case: Case) -> Numbers:
    """The s largest diagonal entries of Z + the k largest eigenvalues of A - Z, or every set."""
    cov, question, ar, budget = case
    k, s = min(question.k, question.s_max, cov.p), question.s_max
    if record.L is None:
        return _every_set(case, k, min(s, cov.p))
    A, L = dense(case), ar.array(record.L)
    m = record.L.shape[1]
    budget.work(2 * cov.p**2 * m, "a matrix that is moved off the covariance")
    Z = ar.matmul(L, L.T)
    diagonal = np.diagonal(Z) * (1 + (m + 4) * ar.eps)
    paid = ar.top(diagonal, s).sum() * (1 + s * ar.eps)
    error = (k + 1) * term("moved", m) * ar.eps * (ar.top(abs(np.diagonal(A)), s).sum() + paid)
    return paid + ar.ky_fan(A - Z, k) + error + k * cov.rounding(s)


def _every_set(case: Case, k: int, s: int) -> Numbers:
    """The sum of the k largest eigenvalues of every set of s features."""
    cov, _, ar, budget = case
    budget.work(choices(cov.p, s) * (2e5 + 100.0 * s**3), "all sets of features")
    A = dense(case)
    sets = combinations(range(cov.p), s)
    values = [ar.upper(ar.ky_fan(A[np.ix_(chosen, chosen)], k)) for chosen in sets]
    return ar.number(max(values)) + k * cov.rounding(s)


FAMILIES = (Family("common", Common, recheck, kinds=("common",), margin=each_alone),)
