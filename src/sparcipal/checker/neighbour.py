"""Bound "neighbour": a bound for fewer nonzeros, scaled; docs/methods/neighbour.rst."""

from __future__ import annotations

from .arithmetic import Numbers
from .budget import require
from .covariance import CheckedCovariance, Question
from .family import Case, Family, Rounding, family_of, redone_part
from .margins import term
from .records import Neighbour


def recheck(record: Neighbour, case: Case) -> Numbers:
    """What the part proves for r nonzeros, times s / r."""
    question, ar, part = case.question, case.ar, record.part
    require(question.k == 1, "a neighbour speaks of one component")
    require(not case.cov.given, "a given matrix need not be a covariance")
    s = question.cardinalities[0]
    require(part.s <= s, "a neighbour has more nonzeros")
    return redone_part(part, case) * s / part.s * (1 + term("claim") * ar.eps)


def margin(
    record: Neighbour, question: Question, cov: CheckedCovariance, rounding: Rounding
) -> float:
    """That of the part, scaled as the bound is."""
    part = record.part
    own = family_of(part.name).margin(part, question.alone(part.s), cov, rounding)
    return own * question.s_max / part.s


FAMILIES = (Family("neighbour", Neighbour, recheck, nested=True, margin=margin),)
