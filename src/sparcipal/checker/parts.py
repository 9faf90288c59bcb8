"""Bound "parts": one bound per component, whatever they share; docs/methods/parts.rst."""

from __future__ import annotations

from .arithmetic import Numbers
from .budget import require
from .family import ALL_KINDS, Case, Family, Rounding, margin_of_part, redone_part
from .margins import term
from .records import Parts


def recheck(record: Parts, case: Case) -> Numbers:
    """Return the sum of what the parts prove: no component explains more than the best one
    alone."""
    question, ar = case.question, case.ar
    sizes, asked = [part.s for part in record.parts], list(question.cardinalities)
    if not question.include:  # with anchors, components and parts are in one order
        sizes, asked = sorted(sizes), sorted(asked)
    require(sizes == asked, "there is not one bound per component")
    anchors = question.include or ((),) * len(sizes)
    known: dict[tuple[int, str, float, tuple[int, ...]], Numbers] = {}
    total: Numbers = ar.number(0.0)
    for part, own in zip(record.parts, anchors):
        key = part.s, part.name, part.value, own
        if key not in known:
            known[key] = redone_part(part, case, own)
        total = total + known[key]
    return total * (1 + term("sum_of", len(record.parts)) * ar.eps)


def margin(by: Rounding) -> float:
    """Add the margins of the parts, each of which is for one component."""
    return sum(margin_of_part(part, by) for part in by.record.parts)


FAMILIES = (Family("parts", Parts, recheck, kinds=ALL_KINDS, nested=True, margin=margin),)
