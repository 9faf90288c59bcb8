"""Bound "parts": one bound per component, whatever they share; docs/methods/parts.rst."""

from __future__ import annotations

from .arithmetic import Numbers
from .budget import require
from .covariance import CheckedCovariance, Question
from .family import Case, Family, Rounding, family_of, redone
from .records import Parts


def recheck(record: Parts, case: Case) -> Numbers:
    """The sum of what the parts prove: no component explains more than the best one alone."""
    question, ar = case.question, case.ar
    sizes = sorted(part.s for part in record.parts)
    require(sizes == sorted(question.cardinalities), "there is not one bound per component")
    known: dict[tuple[int, str, float], Numbers] = {}
    for part in record.parts:
        key = part.s, part.name, part.value
        if key not in known:
            require(part.name != "parts", "a part is made of parts")
            known[key] = redone(part.name, part.data, case.alone(part.s))
            require(ar.upper(known[key]) <= part.value, "a part's bound is too small")
    total = sum(known[part.s, part.name, part.value] for part in record.parts)
    return total * (1 + len(record.parts) * ar.eps)


def margin(record: Parts, question: Question, cov: CheckedCovariance, rounding: Rounding) -> float:
    """The sum of those of the parts, each of which is for one component."""
    return sum(
        family_of(part.name).margin(part, question.alone(part.s), cov, rounding)
        for part in record.parts
    )


FAMILIES = (Family("parts", Parts, recheck, overlapping=True, margin=margin),)
