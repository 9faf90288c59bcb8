"""Bound "adjusted" (docs/methods/adjusted.rst) once more: one component in another matrix H, and
what every component counts for."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import LEAST, Arithmetic, Numbers
from .budget import Budget, require
from .cheap import psd_shift, same_spectrum
from .covariance import CheckedCovariance
from .family import Case, Family, every_feature, redone_part
from .margins import term
from .records import Adjusted, LoweredMatrix, RidgeMatrix

MOST_ERROR = 0.1  # relative to variances, up to which products of errors are covered
UP = 1 + 2.0**-40  # error terms are computed in float64


def recheck(record: Adjusted, case: Case) -> Numbers:
    """Return the sum of tau_j theta_j, both sorted downwards."""
    cov, question, ar, _ = case
    sizes = [part.s for part in record.parts]
    require(sizes == sorted(set(question.cardinalities)), "there is not one part per cardinality")
    if isinstance(record.matrix, RidgeMatrix):
        return _ridge(record, record.matrix, case)
    H = LoweredCovariance(record.matrix, case)
    trees = all(part.name == "tree" for part in record.parts)
    require(trees, "a part in another matrix is not proved by branch and bound")
    taus = _taus(record, case._replace(cov=H))
    k = min(question.k, cov.p)
    heights = np.append(ar.top(H.heights, k), ar.array(np.ones(k)))[:k]
    total = sum((ar.number(tau) * theta for tau, theta in zip(taus, heights)), ar.number(0.0))
    return total * (1 + (2 * k + 4) * ar.eps)


def _taus(record: Adjusted, case: Case) -> list[float]:
    """Return what one component explains in H at most, for every component, the largest first.

    Anchors are left out: a component that need not have them explains no less.
    """
    known: dict[int, float] = {}
    for part in record.parts:
        redone_part(part, case)
        require(part.value > 0.0, "a part's bound is not positive")
        known[part.s] = part.value
    return sorted((known[s] for s in case.question.cardinalities), reverse=True)


class LoweredCovariance(CheckedCovariance):
    """H = B - VV', V = BY, B = A + shift I, which is positive semidefinite.

    `heights` are at least the eigenvalues of (I - Y'BY)^-1. Entries of V and H are off by so much
    as docs/methods/rounding.rst says.
    """

    def __init__(self, record: LoweredMatrix, case: Case) -> None:
        self.inner, _, self._ar, budget = case
        ar, rows, every = self._ar, record.features, np.arange(self.inner.p)
        self.unit, self.given, self.shifts = self.inner.unit, False, {}
        self.inert = self.inner.inert
        require(ar.at_most(psd_shift(case), ar.number(record.shift)), "the shift is too small")
        self._shift, Y = ar.number(record.shift), ar.array(record.y)
        m, r = Y.shape
        budget.work(2.0 * self.inner.p * m * r, "the matrix in place of the covariance")
        self._v = ar.matmul(case.entries(every, rows), Y)
        self._v[rows] = self._v[rows] + self._shift * Y
        self.diagonal = self.inner.diagonal + self._shift - (self._v * self._v).sum(axis=1)
        own = np.abs(ar.floats(self.inner.diagonal)) + record.shift
        self.weights = np.maximum(self.inner.weights, own * UP)
        reach = float(np.linalg.norm(np.sqrt(self.weights[rows]) @ np.abs(record.y))) * UP
        rounded = term("lowered", m, r) * ar.eps
        error = (self.inner.error_unit + rounded) * reach * UP
        most = max(error, self.inner.error_unit)
        require(most <= MOST_ERROR, "the matrix in place of the covariance is mostly rounding")
        self.error_unit = (self.inner.error_unit + 3 * error + rounded) * UP
        products = abs(ar.matmul(Y.T, self._v[rows])).sum(axis=1) + r * reach * (error + rounded)
        require(ar.at_most(products, 1 - 2.0**-40), "Y'BY is not below one")
        self.heights = (1 + term("claim") * ar.eps) / (1 - products)

    @property
    def n(self) -> int | None:
        return None

    def charge(self, budget: Budget, n: int, m: int) -> None:
        self.inner.charge(budget, n, m)
        budget.work(2.0 * n * m * self._v.shape[1], f"{n} x {m} entries of another matrix")

    def submatrix(self, rows: Any, cols: Any = None) -> np.ndarray:
        cols = rows if cols is None else cols
        product = self._ar.matmul(self._v[rows], self._v[cols].T)
        same = self._ar.array(np.equal.outer(rows, cols).astype(float))
        found: np.ndarray = self.inner.submatrix(rows, cols) - product + self._shift * same
        return found

    def rounding(self, s: int) -> float:
        return super().rounding(s) if self.error_unit else 0.0


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
        nu = ar.maximum(ar.maximum(top, 0.0) + shift, LEAST)
        total = total + (ar.number(tau) + lacking + c) * (nu / (nu + c))
    return total * (1 + (4 * k + 8) * ar.eps)


def eigenvalues_one_by_one(M: np.ndarray, k: int, ar: Arithmetic) -> list[Numbers]:
    """Return upper bounds of the k largest eigenvalues, the largest first; infinity if not proved.

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
