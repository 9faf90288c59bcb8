"""Bound "touch"; statement and proof: docs/methods/touch.rst.

A support with tau features outside the core H explains at most t if, for pads pi with tau Diag(pi)
<= t I - M^tau, every feature j outside has

    A_jj + the s-tau largest A_ja^2 / pi_a (a in H) + the tau-1 largest |A_jl| (l outside) <= t.

Pads are stored for groups of tau, as shapes and scales: first * scale * Diag(shape) <= t I -
M^first, and at tau they are divided by tau. Every tau from 1 to s must be passed by every feature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arithmetic import LEAST, Arithmetic, Numbers
from .budget import Budget, require
from .cheap import psd_shift
from .family import Case
from .margins import term
from .pairsplit import Supports, charged
from .records import Pad, PadGroup, Problem, Touch

NEAR = 6000  # features whose covariances among each other are formed, at most
ENTRIES = 1 << 20  # of them that are held at a time


def check_touch(record: Touch, problem: Problem, case: Case) -> None:
    """Refuse the record unless no support that leaves the core explains more than its bound.

    Supports have `problem.s` features and hold those that the problem forces, which are in the
    core: tau ends where these fill what is left.
    """
    cov, _, ar, budget = case
    s, nonnegative = problem.s, problem.nonnegative
    forced = np.zeros(record.core.size, dtype=bool)
    if problem.forced is not None:
        forced[problem.forced] = True
    anchors = int(np.count_nonzero(forced))
    most = s - max(anchors, 1)  # features outside, beside some of the core
    expected = 1
    for group in record.groups:
        require(group.first == expected, f"pads begin at {group.first}, not at {expected}")
        fits = group.first <= group.last <= most
        require(fits, f"pads for {group.first} to {group.last} of {s}")
        expected = group.last + 1
    require(expected > most, f"there are no pads for supports with {expected} features outside")
    if anchors == s:
        return
    check_pads(record, s, nonnegative, forced, case)
    outside = np.setdiff1d(np.arange(cov.p), record.core)
    budget.work(100.0 * outside.size * s, "features outside a core")
    near = record.near
    require(bool(np.isin(near, outside).all()), "a feature of the core is named as one outside")
    far = np.setdiff1d(outside, near)
    clear = by_variances(record, s, outside, anchors == 0, case)
    require(bool(np.isin(far, clear).all()), "a feature outside is not cleared by its variance")
    rows = rows_of(record, s, outside, nonnegative, case)
    t = ar.number(record.bound)
    left = ~_at_most(rows.own + rows.others[:, s - 1], t, s, ar) & (anchors == 0)
    for group in record.groups:
        left |= failing(rows, group, t, s, ar, budget)
    require(not left.any(), f"feature {near[left][:1]} outside the core may matter")


def check_pads(record: Touch, s: int, nonnegative: bool, forced: np.ndarray, case: Case) -> None:
    """Prove first * scale * Diag(shape) <= t I - M^first, by one factorisation for each pad."""
    ar, budget, block = case.ar, case.budget, case.entries(record.core)
    n, t = record.core.size, ar.number(record.bound)
    diagonal = np.diag_indices(n)
    block = 0.5 * (block + block.T)
    for group in record.groups:
        budget.work(len(group.pads) * (n**3 + 1e6), "the pads of a core")
        of = Supports(np.arange(n), forced, s - group.first, nonnegative, ar.zeros(n), ar.zeros(n))
        M = charged(record.split, block, of, ar).matrix
        for pad in group.pads:
            small = not ar.at_most(LEAST, _sizes(pad, ar))
            require(not small, "pads so small that charges may underflow")
            matrix = M.copy()
            padded = matrix[diagonal] + group.first * _sizes(pad, ar)
            matrix[diagonal] = padded + 4 * ar.eps * abs(padded)
            require(ar.below(matrix, t), f"pads for {group.first} features outside are too large")


def by_variances(record: Touch, s: int, outside: np.ndarray, alone: bool, case: Case) -> np.ndarray:
    """Return the features outside that their variances clear; `alone` says whether supports may lie
    outside altogether."""
    ar = case.ar
    if outside.size == 0:
        return outside
    v, t = _variances(case), ar.number(record.bound)
    own, root = v[outside], ar.sqrt(v[outside])
    reach = _prefix_sums(root[None, :], s, ar)[0]
    clear = _at_most(own + root * reach[s - 1], t, s, ar) | (not alone)
    for group in record.groups:
        pad = group.pads[0]
        inner = _prefix_sums((v[record.core] / _sizes(pad, ar))[None, :], s, ar)[0]
        for tau in range(group.first, group.last + 1):
            slope = inner[s - tau] * tau / group.first
            clear &= _at_most(own * (1 + slope) + root * reach[tau - 1], t, s, ar)
    return outside[clear]


@dataclass(frozen=True)
class Rows:
    """What is known of features outside the core that are looked at one by one."""

    own: np.ndarray  # (m,) variances
    squares: np.ndarray  # (m, n) of the covariances with the core
    sums: np.ndarray  # (m, s + 1): column q bounds the q largest of these squares
    others: np.ndarray  # (m, s + 1): column q bounds the q largest |A_jl|, l outside


def rows_of(record: Touch, s: int, outside: np.ndarray, nonnegative: bool, case: Case) -> Rows:
    """Return covariances among the features of `near` as they are, with all others by variances."""
    cov, _, ar, _ = case
    near, core = record.near, record.core
    columns = near if cov.given or near.size <= NEAR else near[:0]
    cross = ar.size(case.entries(near, core), nonnegative)
    far = np.setdiff1d(outside, columns)
    root = ar.sqrt(_variances(case)) if far.size else ar.zeros(cov.p)
    reach = ar.top(root[far], s)
    others, step = [ar.zeros(0, s + 1)], max(1, ENTRIES // max(1, columns.size))
    for first in range(0, near.size, step):
        rows = near[first : first + step]
        among = ar.size(case.entries(rows, columns), nonnegative)
        among[rows[:, None] == columns] = 0.0
        among = np.hstack([among, root[rows][:, None] * reach[None, :]])
        others.append(_prefix_sums(among, s, ar))
    squares = cross * cross
    sums = _prefix_sums(squares, s, ar)
    return Rows(cov.diagonal[near], squares, sums, np.vstack(others))


def failing(
    rows: Rows, group: PadGroup, t: Numbers, s: int, ar: Arithmetic, budget: Budget
) -> np.ndarray:
    """Return which rows no pads of a group clear, for some tau of the group."""
    m, n = rows.squares.shape
    taus = np.arange(group.first, group.last + 1)
    open_ = np.ones((m, taus.size), dtype=bool)
    for pad in group.pads:
        left = np.flatnonzero(open_.any(axis=1))
        budget.work(30.0 * left.size * n, "rows outside a core")
        sizes = _sizes(pad, ar)
        if np.unique(pad.shape).size == 1:  # nothing to sort
            sums = rows.sums[left] / sizes[0]
        else:
            sums = _prefix_sums(rows.squares[left] / sizes, s - group.first, ar)
        inner = sums[:, s - taus] * ar.array(taus) / group.first
        value = rows.own[left][:, None] + inner + rows.others[left][:, taus - 1]
        open_[left] &= ~_at_most(value, t, s, ar)
    return np.asarray(open_.any(axis=1))


def _sizes(pad: Pad, ar: Arithmetic) -> np.ndarray:
    """Return scale * shape."""
    return ar.number(pad.scale) * ar.array(pad.shape)


def _variances(case: Case) -> np.ndarray:
    """Return variances v, rounded up so that |A_jl|^2 <= v_j v_l holds for what is computed."""
    cov = case.cov
    out: np.ndarray = case.ar.maximum(cov.diagonal, 0.0) + 4 * cov.entry_errors(case.ar)
    return out + psd_shift(case)


def _prefix_sums(values: np.ndarray, count: int, ar: Arithmetic) -> np.ndarray:
    """Return columns q = 0..count that bound the sum of the q largest of each row."""
    top = ar.top(values, count)
    out = ar.zeros(values.shape[0], count + 1)
    have = top.shape[1]
    out[:, 1 : have + 1] = np.cumsum(top, axis=1)
    out[:, have + 1 :] = out[:, have, None]
    return out


def _at_most(m: np.ndarray, t: Numbers, s: int, ar: Arithmetic) -> np.ndarray:
    """Return where m, a sum of at most s + 1 products, is proved to be at most t."""
    return np.asarray(m + term("outside", s) * ar.eps * abs(m) <= t, dtype=bool)
