"""Bound "neighbour": a bound for fewer nonzeros, scaled; docs/methods/neighbour.rst."""

from __future__ import annotations

from .arithmetic import Numbers
from .budget import require
from .family import Case, Family, Rounding, margin_of_part, redone_part
from .margins import term
from .records import Neighbour


def recheck(record: Neighbour, case: Case) -> Numbers:
    """Return what the part proves for r nonzeros, times s / r."""
    question, ar, part = case.question, case.ar, record.part
    require(question.k == 1, "a neighbour speaks of one component")
    require(not case.cov.given, "a given matrix need not be a covariance")
    s = question.cardinalities[0]
    require(part.s <= s, "a neighbour has more nonzeros")
    return redone_part(part, case) * s / part.s * (1 + term("claim") * ar.eps)


def margin(by: Rounding) -> float:
    """Return the margin of the part, scaled as the bound is."""
    part = by.record.part
    return margin_of_part(part, by) * by.question.s_max / part.s


FAMILIES = (Family("neighbour", Neighbour, recheck, nested=True, margin=margin),)
