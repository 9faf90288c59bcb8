"""The configuration bound (docs/methods/configuration.rst) once more: prices, and a replayed proof
of the best support at them."""

from __future__ import annotations

import numpy as np

from .arithmetic import Numbers
from .budget import require
from .family import Case, Family, one_by_one
from .kyfan import Rows, outside_rows
from .margins import term
from .packing import largest_packing
from .records import Configuration, Problem
from .tree import replay


def recheck(record: Configuration, case: Case) -> Numbers:
    """Return sum beta + sum_j max_S (value(S) - beta(S)): a feature serves one component at most.

    A proof that speaks only of supports with some features serves components with these anchors.
    Where the components can use all the features they are allowed, only full supports need to
    count: prices may be rewards, and the largest of as many as are used are paid.
    """
    cov, question, ar, budget = case
    require(question.k == 1 or question.disjoint, "this bound holds for disjoint supports only")
    core = np.arange(cov.p) if record.features is None else record.features
    a, price = case.entries(core), ar.array(record.price)
    require(question.include == () or len(question.include) == question.k, "anchors are missing")
    used = sum(question.cardinalities)
    full = core.size == cov.p >= used and ar.at_most(-np.diagonal(a), 0.0)
    require(full or bool((record.price >= 0.0).all()), "rewards need features for all components")
    paid = price[np.argsort(record.price)[-used:] if full else ...].sum()
    proved: dict[tuple[int, frozenset[int]], Numbers] = {}
    for part in record.parts:
        problem = part.log[0]
        assert isinstance(problem, Problem)
        charged = np.zeros(core.size) if problem.prices is None else problem.prices
        require(np.array_equal(charged, record.price), "a proof speaks of other prices")
        require(problem.s >= part.s, "a proof speaks of fewer features")
        mixed = problem.nonnegative and not question.nonnegative
        require(not mixed, "a proof speaks of nonnegative components only")
        forced = core[:0] if problem.forced is None else core[problem.forced]
        inside = replay(part.log, a, ar, budget, anchored=True)
        if core.size < cov.p:
            inside = ar.maximum(inside, _outside(problem, core, price, inside, case))
        # An empty component costs and brings nothing; with anchors it pays for them at least.
        found = inside if forced.size else ar.maximum(inside, 0.0)
        proved[part.s, frozenset(forced.tolist())] = found
    if record.packing is not None:
        s = question.s_max
        free = s, frozenset[int]()
        equal = set(question.cardinalities) == {s} and free in proved and not question.nonnegative
        require(equal, "supports are packed for equal cardinalities and signed components only")
        require(core.size == cov.p, "supports are packed only where no feature is left out")
        best = largest_packing(record.packing, a, price, paid, proved[free], case)
        best = ar.maximum(best, record.packing.target) * (1 + 4 * ar.eps)
        return best + cov.rounding(sum(question.cardinalities))
    total, size = paid, abs(price).sum()
    for s, anchors in zip(question.cardinalities, question.include or ((),) * question.k):
        allowed = [
            bound for (most, own), bound in proved.items() if most >= s and own.issubset(anchors)
        ]
        require(len(allowed) > 0, "a cardinality has no proof")
        least = min(allowed, key=float)
        total, size = total + least + cov.rounding(s), size + abs(least) + cov.rounding(s)
    return total + term("priced", core.size) * ar.eps * size


def _outside(
    problem: Problem, core: np.ndarray, price: np.ndarray, level: Numbers, case: Case
) -> Numbers:
    """Return at least m_j of the features outside, which cost nothing."""
    padded = problem.pads is not None and bool((problem.pads > 0.0).all())
    require(padded, "features outside the core need positive pads")
    ar = case.ar
    rows = Rows(core, ar.array(problem.pads), price, problem.s, problem.nonnegative)
    return ar.top(outside_rows(rows, level, case), 1)[0]


FAMILIES = (Family("configuration", Configuration, recheck, margin=one_by_one),)
