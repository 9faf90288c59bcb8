"""Bound "parts": one bound per component, whatever they share; docs/methods/parts.rst."""

from __future__ import annotations

from dataclasses import replace

from .arithmetic import Arithmetic, Numbers
from .budget import Budget, require
from .covariance import CheckedCovariance, Question
from .family import Family, redone
from .records import Part, Parts


def recheck(
    record: Parts, cov: CheckedCovariance, question: Question, ar: Arithmetic, budget: Budget
) -> Numbers:
    """The sum of what the parts prove: no component explains more than the best one alone."""
    sizes = sorted(part.s for part in record.parts)
    require(sizes == sorted(question.cardinalities), "there is not one bound per component")
    known: dict[tuple[int, str, float], Numbers] = {}
    for part in record.parts:
        key = part.s, part.name, part.value
        if key not in known:
            known[key] = _alone(part, cov, question, ar, budget)
            require(ar.upper(known[key]) <= part.value, "a part's bound is too small")
    total = sum(known[part.s, part.name, part.value] for part in record.parts)
    return total * (1 + len(record.parts) * ar.eps)


def _alone(
    part: Part, cov: CheckedCovariance, question: Question, ar: Arithmetic, budget: Budget
) -> Numbers:
    """What a part proves for one component of its size."""
    require(part.name != "parts", "a part is made of parts")
    single = replace(question, cardinalities=(part.s,), disjoint=True, value=0.0, total=None)
    return redone(part.name, part.data, cov, single, ar, budget)


FAMILIES = (Family("parts", Parts, recheck, overlapping=True),)
