"""The configuration bound (docs/methods/configuration.rst) once more: prices, and a replayed proof
of the best support at them."""

from __future__ import annotations

import numpy as np

from .arithmetic import Numbers
from .budget import require
from .family import Case, Family, one_by_one
from .kyfan import Rows, outside_rows
from .packing import largest_packing
from .records import Configuration, Problem
from .tree import replay


def recheck(record: Configuration, case: Case) -> Numbers:
    """sum beta + sum_j max_S (value(S) - beta(S)): every feature serves at most one component."""
    cov, question, ar, budget = case
    require(question.k == 1 or question.disjoint, "this bound holds for disjoint supports only")
    core = np.arange(cov.p) if record.features is None else record.features
    a, price = case.entries(core), ar.array(record.price)
    proved: dict[int, Numbers] = {}
    for part in record.parts:
        problem = part.log[0]
        assert isinstance(problem, Problem)
        charged = np.zeros(core.size) if problem.prices is None else problem.prices
        require(np.array_equal(charged, record.price), "a proof speaks of other prices")
        require(problem.s >= part.s, "a proof speaks of fewer features")
        mixed = problem.nonnegative and not question.nonnegative
        require(not mixed, "a proof speaks of nonnegative components only")
        inside = replay(part.log, a, ar, budget)
        if core.size < cov.p:
            inside = ar.maximum(inside, _outside(problem, core, price, inside, case))
        # An empty component costs and brings nothing.
        proved[part.s] = ar.maximum(inside, 0.0)
    if record.packing is not None:
        s = question.s_max
        equal = set(question.cardinalities) == {s} and s in proved and not question.nonnegative
        require(equal, "supports are packed for equal cardinalities and signed components only")
        require(core.size == cov.p, "supports are packed only where no feature is left out")
        best = largest_packing(record.packing, a, price, proved[s], case)
        best = ar.maximum(best, record.packing.target) * (1 + 4 * ar.eps)
        return best + cov.rounding(sum(question.cardinalities))
    total = price.sum()
    for s in question.cardinalities:
        allowed = [size for size in proved if size >= s]
        require(len(allowed) > 0, "a cardinality has no proof")
        total = total + min((proved[size] for size in allowed), key=float) + cov.rounding(s)
    return total * (1 + (core.size + 4) * ar.eps)


def _outside(
    problem: Problem, core: np.ndarray, price: np.ndarray, level: Numbers, case: Case
) -> Numbers:
    """At least m_j of the features outside, which cost nothing."""
    padded = problem.pads is not None and bool((problem.pads > 0.0).all())
    require(padded, "features outside the core need positive pads")
    ar = case.ar
    rows = Rows(core, ar.array(problem.pads), price, problem.s, problem.nonnegative)
    return ar.top(outside_rows(rows, level, case), 1)[0]


FAMILIES = (Family("configuration", Configuration, recheck, margin=one_by_one),)
