"""Bound "parts"; statement and proof: docs/methods/parts.rst.

No component explains more than the best one of its size alone, so one bound per component adds up
to a bound for all, whether or not their supports overlap.
"""

from __future__ import annotations

from ..numerics import margins
from ..problem.result import Bound


def sum_of_parts(parts: list[Bound], cardinalities: tuple[int, ...]) -> Bound:
    """Return the sum of one bound per component, each proved for that component alone."""
    data = [
        {"name": part.name, "value": part.value, "s": s, "data": part.data}
        for part, s in zip(parts, cardinalities)
    ]
    value = sum(part.value for part in parts) * (1 + margins.SAFETY * margins.sum_of(len(parts)))
    return Bound("parts", value, {"parts": data}, sum(part.margin for part in parts))
