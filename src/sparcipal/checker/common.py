"""Bound "common" (docs/methods/common.rst) once more: every set, or branch and bound on
inequalities for sets of features.

How nodes follow one another is checked by the walk through the steps of a tree; what is claimed of
a node is a sum of coefficients, after one Cholesky factorisation for each inequality.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from .arithmetic import Arithmetic, Numbers
from .budget import choices, require
from .cheap import dense, psd_shift
from .family import Case, Family, Rounding
from .margins import term
from .records import Common, CommonProblem, Cut
from .tree import Claim, State, bits, claims_of, members


def recheck(record: Common, case: Case) -> Numbers:
    """Return the bound of the log, or of every set."""
    cov, question, ar, budget = case
    k, s = min(question.k, question.s_max, cov.p), question.s_max
    if record.log is None:
        return _every_set(case, k, min(s, cov.p))
    problem = record.log[0]
    assert isinstance(problem, CommonProblem)
    core = np.arange(cov.p) if record.core is None else record.core
    lacking = psd_shift(case) if record.core is not None else 0.0
    outside = (np.delete(cov.diagonal, core) + lacking) * (1 + 4 * ar.eps)
    cuts = [step for step in record.log if isinstance(step, Cut)]
    held = sum(ar.bytes * cut.features.size + core.size / 8 + 500.0 for cut in cuts)
    budget.memory(held, "the inequalities of a log")
    prover = SetProver(case.entries(core), ar.array(outside), k, s, ar.number(problem.bound), ar)
    for claim in claims_of(record.log, prover, budget):
        prover.check(claim)
    prover.check_outside()
    times = k if record.core is None else k + 1
    return ar.number(problem.bound) + times * cov.rounding(s) + k * lacking


def rounded(by: Rounding) -> float:
    """Count the error of s nonzeros for each component, and once for features outside the core."""
    return (by.question.k + (by.record.core is not None)) * by.of(by.question.s_max)


class Inequality(NamedTuple):
    """The value of a set is at most the base and the sum of its coefficients."""

    base: Numbers
    features: np.ndarray  # that it speaks of, increasing
    coef: np.ndarray  # of these
    known: int  # the features as bits

    def of(self, features: np.ndarray) -> np.ndarray:
        """Return the coefficients of some of the features that it speaks of."""
        return self.coef[np.searchsorted(self.features, features)]


class SetProver:
    """The covariance of a core, what features outside are worth, and the checks of a log."""

    certificates: tuple[type, ...] = (Cut,)
    ends = ("closed", "leaf", "branch")
    forced, nonnegative, priced = 0, False, False

    def __init__(
        self, a: np.ndarray, outside: np.ndarray, k: int, s: int, t: Numbers, ar: Arithmetic
    ) -> None:
        self.a, self.k, self.s, self.t, self.ar = 0.5 * (a + a.T), k, s, t, ar
        self.p, self.padded = len(a), outside.size > 0
        self.outside = ar.top(outside, s) if self.padded else outside
        self._known: dict[int, Inequality] = {}
        self._charged: set[int] = set()

    def check_branch(self, into: np.ndarray, out: np.ndarray) -> None:
        require(into.size == 1 and np.array_equal(into, out), "the two sides differ")

    def count(self, state: State) -> float:
        """Return the sets that are looked at in a leaf."""
        free = (state.alive & ~state.forced).bit_count()
        return choices(free, min(self.s - state.forced.bit_count(), free))

    def cost(self, claim: Claim) -> float:
        """Return about how many nanoseconds a claim takes."""
        n, s = claim.state.alive.bit_count(), self.s
        if claim.what == "leaf":
            return self.count(claim.state) * (2e5 + 100.0 * s**3)
        tests = 1 if claim.fixed is None else claim.fixed.out.size + claim.fixed.into.size
        total = tests * (2e4 + 100.0 * (n + s))
        if id(claim.split) not in self._charged:
            self._charged.add(id(claim.split))
            m, r = claim.split.L.shape
            total += 20.0 * m**3 + 2.0 * m * m * r + 1e6
        return total

    def check(self, claim: Claim) -> None:
        state = claim.state
        if claim.what == "leaf":
            self._check_leaf(state)
            return
        cut = self._inequality(claim.split)
        free = state.alive & ~state.forced
        if claim.fixed is None:
            self._check(cut, state.forced, free, "the bound of a node is too large")
            return
        for j in claim.fixed.out:
            with_it = state.forced | 1 << int(j)
            self._check(cut, with_it, free & ~with_it, "a feature was put out wrongly")
        for j in claim.fixed.into:
            others = free & ~(1 << int(j))
            self._check(cut, state.forced, others, "a feature was wrongly put in")

    def check_outside(self) -> None:
        """Check the sets that have no feature in the core, and so belong to no node with one
        alive."""
        total = self.outside.sum() * (1 + self.s * self.ar.eps)
        require(self.ar.at_most(total, self.t), "features outside the core are worth more")

    def _check(self, cut: Inequality, forced: int, free: int, reason: str) -> None:
        """Check that no set of all of `forced`, some of `free` and some features outside is worth
        more."""
        require((forced | free) & ~cut.known == 0, "an inequality speaks of fewer features")
        own, ar = members(forced, self.p), self.ar
        if own.size > self.s:
            return
        others = np.append(cut.of(members(free, self.p)), self.outside)
        total = cut.base + cut.of(own).sum() + ar.top(others, self.s - own.size).sum()
        require(ar.at_most(total * (1 + (self.s + 4) * ar.eps), self.t), reason)

    def _inequality(self, cut: Cut) -> Inequality:
        if id(cut) not in self._known:
            self._known[id(cut)] = self._proved(cut)
        return self._known[id(cut)]

    def _proved(self, cut: Cut) -> Inequality:
        """Prove A <= nu I + LL' + BB' on the features of a cut."""
        ar, k, L = self.ar, self.k, self.ar.array(cut.L)
        m, r = cut.L.shape
        A = self.a[np.ix_(cut.features, cut.features)]
        Z = ar.matmul(L, L.T)
        M = A - Z
        guess = ar.floats(M)
        require(bool(np.isfinite(guess).all()), "numbers that are not finite")
        w, Q = np.linalg.eigh(guess)
        w, Q = w[max(m - k, 0) :], Q[:, max(m - k, 0) :]
        nu = max(float(w[0]), 0.0) if k <= m else 0.0
        B = ar.array(Q * np.sqrt(np.maximum(w - nu, 0.0)))
        rest = ar.matmul(B, B.T) - M
        above = (B * B).sum(axis=1)
        size = float(np.abs(np.diagonal(guess)).sum() + ar.floats(above).sum()) + (m + 1) * nu
        delta = term("ky_fan", m, k) * ar.step * (size + 1e-300)
        for factor in (3, 24, 150, 1100):
            t = nu + factor * delta
            if ar.psd(rest + t * ar.eye(m), 2 * (k + 4) * ar.eps * size):
                break
        else:
            require(False, "an inequality is not proved")
        moved = np.diagonal(Z) * (1 + (r + 4) * ar.eps)
        slack = (k + 1) * term("moved", r) * ar.eps * (abs(np.diagonal(A)) + moved)
        coef = moved + above * (1 + (k + 4) * ar.eps) + slack
        return Inequality(ar.number(k) * t, cut.features, coef, bits(cut.features))

    def _check_leaf(self, state: State) -> None:
        """Check every largest set: one inside it is worth no more, and eigenvalues below zero count
        nothing."""
        base = members(state.forced, self.p).tolist()
        free = members(state.alive & ~state.forced, self.p).tolist()
        for chosen in combinations(free, min(self.s - len(base), len(free))):
            block = self.a[np.ix_([*base, *chosen], [*base, *chosen])]
            if self.ar.at_most(abs(block), 0.0):
                continue
            value = self.ar.ky_fan(block, self.k, np.zeros(self.k))
            require(self.ar.at_most(value, self.t), "a set of a leaf has a larger value")


def _every_set(case: Case, k: int, s: int) -> Numbers:
    """Return the sum of the k largest eigenvalues of every set of s features."""
    cov, _, ar, budget = case
    budget.work(choices(cov.p, s) * (2e5 + 100.0 * s**3), "all sets of features")
    A = dense(case)
    sets = combinations(range(cov.p), s)
    values = [ar.upper(ar.ky_fan(A[np.ix_(chosen, chosen)], k)) for chosen in sets]
    return ar.number(max(values)) + k * cov.rounding(s)


FAMILIES = (Family("common", Common, recheck, kinds=("common",), margin=rounded),)
