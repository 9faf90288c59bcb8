"""Numbers, lists and arrays of a document, as docs/proof_format.rst describes them."""

from __future__ import annotations

import base64
import math
import struct
from fractions import Fraction

EPS = Fraction(1, 2**52)
Matrix = list[list[Fraction]]


class Refused(Exception):
    """The reason why a claim is not proved."""


def need(condition: bool, reason: str) -> None:
    """Refuse unless the condition holds."""
    if not condition:
        raise Refused(reason)


def decode(entry):
    """Arrays become lists, row by row; everything else stays as JSON has it."""
    if isinstance(entry, list):
        return [decode(e) for e in entry]
    if not isinstance(entry, dict):
        return entry
    if "$array" not in entry:
        return {name: decode(e) for name, e in entry.items()}
    kind = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "i1": "b"}[entry["dtype"][1:]]
    raw = base64.b64decode(entry["$array"], validate=True)
    need(len(raw) == struct.calcsize("<" + kind) * math.prod(entry["shape"]), "an array's size")
    values = list(struct.unpack(f"<{len(raw) // struct.calcsize('<' + kind)}{kind}", raw))
    for width in reversed(entry["shape"][1:]):
        values = [values[i : i + width] for i in range(0, len(values), width)]
    return values


def exact(number) -> Fraction:
    """A finite number as a fraction."""
    need(not isinstance(number, bool) and math.isfinite(number), "a number that is none")
    return Fraction(number)


def vector(numbers, size: int, least=None) -> list[Fraction]:
    """So many finite numbers, none below the least."""
    found = [exact(number) for number in numbers]
    need(len(found) == size, "a list of another length")
    need(least is None or all(number >= least for number in found), "a number below its range")
    return found


def places(numbers, size: int, least: int = 1) -> list[int]:
    """Increasing places in 0..size-1."""
    need(all(isinstance(i, int) and 0 <= i < size for i in numbers), "a place out of range")
    need(sorted(set(numbers)) == list(numbers) and len(numbers) >= least, "places not increasing")
    return list(numbers)


def power_of_two(number) -> Fraction:
    """A unit."""
    found = exact(number)
    need(found > 0 and math.frexp(number)[0] == 0.5, "a unit that is no power of two")
    return found
