"""Bound "orthogonal" (docs/methods/orthogonal.rst) once more: a matrix that is moved off the
covariance, and the best support with what is left and with rewards."""

from __future__ import annotations

import numpy as np

from .arithmetic import Numbers
from .budget import require
from .cheap import dense
from .family import Case, Family, one_by_one
from .margins import term
from .records import Orthogonal, Problem
from .tree import replay


def recheck(record: Orthogonal, case: Case) -> Numbers:
    """Return sum beta + sum_j max_S (lambda_max((A - Z)_S) + gamma(S)), or gamma(S) for |S| <
    s_j."""
    question, ar = case.question, case.ar
    sizes = [part.s for part in record.parts]
    require(sizes == sorted(set(question.cardinalities)), "there is not one part per cardinality")
    tops = _best_supports(record, case)
    paid = ar.array(record.beta).sum() * (1 + len(record.beta) * ar.eps)
    total, size = paid, paid
    for s in question.cardinalities:
        total, size = total + tops[s], size + abs(tops[s])
    return total + (2 * question.k + 4) * ar.eps * size


def _best_supports(moved: Orthogonal, case: Case) -> dict[int, Numbers]:
    """Return what a support of each size is worth at most in A - Z with its rewards.

    Of every feature beta and the reward must sum to the diagonal of Z.
    """
    cov, _, ar, budget = case
    A, L, beta = dense(case), ar.array(moved.L), ar.array(moved.beta)
    p, m = moved.L.shape
    budget.work(2 * p * p * m, "a matrix that is moved off the covariance")
    Z, shift = ar.matmul(L, L.T), ar.number(moved.shift)
    diagonal = np.diagonal(Z) * (1 + (m + 4) * ar.eps)
    rest = A - Z
    rest[np.diag_indices(p)] += shift
    out: dict[int, Numbers] = {}
    for part in moved.parts:
        problem = part.log[0]
        assert isinstance(problem, Problem)
        plain = problem.pads is None and problem.forced is None and not problem.nonnegative
        require(plain, "a tree speaks of other components")
        require(problem.s >= part.s, "a tree speaks of fewer features")
        reward = ar.zeros(p) if problem.prices is None else -ar.array(problem.prices)
        require(ar.at_most(0.0, reward), "a reward is negative")
        enough = ar.at_most(diagonal, (beta + reward) * (1 - 4 * ar.eps))
        require(enough, "rewards and costs do not make up for what was moved")
        proved = replay(part.log, rest, ar, budget)
        sizes = ar.top(abs(np.diagonal(A)), part.s).sum() + ar.top(diagonal, part.s).sum() + shift
        full = proved - shift + term("moved", m) * ar.eps * sizes + cov.rounding(part.s)
        # a component that is partly on features that were left out has fewer here
        out[part.s] = ar.maximum(full, ar.top_sum(reward, part.s - 1))
    return out


FAMILIES = (Family("orthogonal", Orthogonal, recheck, kinds=("orthogonal",), margin=one_by_one),)
