"""Dual bounds of the methods greedy and dspca (docs/methods/duals.rst), once more.

`dspca-dual`: OPT <= (positive eigenvalues of A_KK + U - penalty I) + penalty * nonzeros, where K
holds every feature whose variance exceeds the penalty and U stays within it.

`greedy-dual`, from x, rho and the covariance alone: with g = Ax / sqrt(x'Ax), every feature with
A_ii > rho or g_i^2 > rho contributes a vector. The Gram matrix of these vectors is written out
entry by entry; its largest eigenvalue plus rho s is the bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arithmetic import LEAST, Arithmetic, Numbers
from .budget import require
from .cheap import psd_shift
from .family import ALL_KINDS, Case, Family
from .margins import term
from .records import DspcaDual, GreedyDual


def dspca(record: DspcaDual, case: Case) -> Numbers:
    cov, question, ar, budget = case
    penalty, core, moved = record.penalty, record.core, record.moved
    require(bool((moved >= -penalty).all()), "an entry was moved further than the penalty")
    if not question.nonnegative:
        require(bool((moved <= penalty).all()), "an entry was moved further than the penalty")
    m, k, sizes = core.size, question.k, question.cardinalities
    budget.work(m**3, "the eigenvalues of a dual bound")
    others = np.delete(np.arange(cov.p), core)
    if others.size:
        reach = cov.diagonal[others] + psd_shift(case) + cov.rounding(1)
        require(ar.at_most(reach, penalty), "a feature that varies more than the penalty is left")
    M = case.entries(core)
    upper = np.triu_indices(m, 1)
    M[upper] += moved
    M.T[upper] += moved
    M[np.diag_indices(m)] -= penalty
    if question.disjoint:
        total, margin = ar.ky_fan(M, k, np.zeros(k)), cov.rounding(sum(sizes))
    else:
        top = ar.maximum(ar.ky_fan(M, 1), 0.0)
        total, margin = k * top, k * cov.rounding(max(sizes))
    margin += k * ar.eps * (abs(np.diagonal(M)).max() + m * penalty)
    return (total + ar.number(penalty) * sum(sizes)) * (1 + term("dual_claim") * ar.eps) + margin


class _Scores(NamedTuple):
    """The scores g, what rounding may have done to each, and what it may have done to variances
    and entries of the covariance."""

    g: np.ndarray
    dg: np.ndarray
    variance: np.ndarray  # rounded up
    root: np.ndarray  # an entry A_ij is off by root_i root_j

    def of(self, core: np.ndarray) -> _Scores:
        return _Scores(*(array[core] for array in self))


def greedy(record: GreedyDual, case: Case) -> Numbers:
    cov, question, ar, budget = case
    require(question.k == 1, "this bound holds for one component only")
    rho, core, m = ar.number(record.rho), record.core, record.core.size
    require(record.rho >= LEAST, "a level so small that squares may underflow")
    # squares of much smaller or larger ones lose digits
    require(0.5 < float(np.linalg.norm(record.weights)) < 2.0, "x is no unit vector")
    budget.work(m**3, "a dual bound")
    lacking = psd_shift(case)
    shift = lacking if record.shift is None else ar.number(record.shift)
    require(bool(lacking <= shift), "the shift does not make the matrix positive semidefinite")
    scores = _scores(record.support, record.weights, shift, case)
    others = scores.of(np.delete(np.arange(cov.p), core))
    weak = ar.at_most(others.variance, rho)
    weak = weak and ar.at_most((abs(others.g) + others.dg) ** 2, rho)
    require(weak, "a feature that the level does not dismiss is left out")
    G, margin = _gram(case.entries(core), scores.of(core), rho, shift, ar)
    s = question.cardinalities[0]
    total = ar.maximum(ar.ky_fan(G, 1), 0.0) + rho * s * (1 + term("dual_claim") * ar.eps)
    return total * (1 + term("claim") * ar.eps) + margin + cov.rounding(s)


def _scores(support: np.ndarray, weights: np.ndarray, shift: Numbers, case: Case) -> _Scores:
    cov, ar = case.cov, case.ar
    x = ar.array(weights)
    Ax = ar.matmul(case.entries(np.arange(cov.p), support), x)
    Ax[support] += shift * x
    value = (x * Ax[support]).sum()
    require(bool(value > 0), "x explains nothing")
    root = ar.sqrt(cov.entry_errors(ar))
    deviation = ar.sqrt(ar.maximum(cov.diagonal, 0.0))
    size = (abs(x) * deviation[support]).sum() * deviation + shift
    lost = root * (abs(x) * root[support]).sum() + 4 * (x.size + 18) * ar.eps * size
    variance = cov.diagonal + shift + root**2 + 8 * ar.eps * abs(cov.diagonal)
    norm = ar.sqrt(value)
    return _Scores(Ax / norm, lost / norm, variance, root)


def _gram(
    A: np.ndarray, scores: _Scores, rho: Numbers, shift: Numbers, ar: Arithmetic
) -> tuple[np.ndarray, Numbers]:
    """Return the Gram matrix, and at most the norm of its error."""
    g, dg, variance, root = scores
    A = A + shift * ar.eye(g.size)
    square = g * g
    # Where a ball does not say on which side of rho it lies, the quotients below are no numbers.
    strong = np.asarray(square > rho, dtype=bool)
    distance = abs(square - rho)
    length = ar.maximum(variance - square, 1e-300)
    weak_weight = rho * ar.maximum(variance - rho, 0.0) / (distance * length)
    weight = np.where(strong, 1.0 / distance, weak_weight)
    left = np.where(strong, g, ar.number(1.0))
    excess = np.where(strong, square - rho, ar.number(0.0))
    factor = np.multiply.outer(left, left)
    rows = (A - np.multiply.outer(g, g)) * factor  # v_i'v_j
    rows = rows + np.multiply.outer(excess, excess)
    scale = ar.sqrt(np.multiply.outer(weight, weight))
    if ar.exact and ar.at_most(root, 0.0):
        return scale * rows, 0.0
    blur = root**2 + 8 * ar.eps * variance
    doubt = 2 * abs(g) * dg / distance + term("greedy_entry") * ar.eps
    doubt += np.where(strong, 0.0, (2 * blur + 2 * abs(g) * dg) / length)
    both = np.add.outer(square, square)
    size = (abs(A) + abs(np.multiply.outer(g, g)) + rho + both) * abs(factor)
    reach = np.where(strong, square + rho, 0.0)
    size += np.multiply.outer(reach, reach)
    off = np.multiply.outer(root, root) + np.multiply.outer(abs(g), dg)
    off = (off + np.multiply.outer(dg, abs(g))) * abs(factor)
    off += 2 * np.add.outer(abs(g) * dg, abs(g) * dg) * (size + 1.0)
    error = scale * (
        off + term("greedy_entry") * ar.eps * size + abs(rows) * np.add.outer(doubt, doubt)
    )
    return scale * rows, 2 * ar.sqrt((error * error).sum())


FAMILIES = (
    Family("dspca-dual", DspcaDual, dspca, kinds=ALL_KINDS),
    Family("greedy-dual", GreedyDual, greedy),
)
