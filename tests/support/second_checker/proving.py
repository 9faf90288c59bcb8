"""The list of bounds, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from .question import Ask
from .reading import Matrix, need, places

Proof = Callable[[dict, Ask, Fraction], bool]


@dataclass(frozen=True)
class Bound:
    """A proof that no admissible components explain more than a level."""

    prove: Proof
    kinds: set[str]  # of several components that it holds for
    totals: bool


BOUNDS: dict[str, Bound] = {}
EVERY = "disjoint adjusted orthogonal common"


def bound(name: str, kinds: str = "disjoint", totals: bool = False) -> Callable[[Proof], Proof]:
    """Enter a function into the list of bounds."""

    def entered(prove: Proof) -> Proof:
        BOUNDS[name] = Bound(prove, set(kinds.split()), totals)
        return prove

    return entered


def prove(name: str, data: dict, ask: Ask, level: Fraction) -> None:
    """Prove that no admissible components explain more than the level."""
    need(name in BOUNDS, f"no such bound: {name}")
    found = BOUNDS[name]
    need(ask.k == 1 or bool(found.kinds & ask.kinds), f"{name} is not for these components")
    need(ask.total is None or ask.k == 1 or found.totals, f"{name} does not hold for totals")
    if "kept" in data:
        kept = places(data["kept"], ask.p)
        left = set(range(ask.p)) - set(kept) - ask.exclude
        need(not any(ask.A[i][i] for i in left), "a feature left out")
        ask = replace(ask.among(kept), whole=not left, exclude=frozenset())
    need(level >= 0, f"{name}: a negative bound")
    need(found.prove(data, ask, level), f"{name} is not proved")


def counted(ask: Ask) -> Matrix:
    """The covariance; of nonnegative components negative covariances do not count."""
    if not ask.nonnegative:
        return ask.A
    return [
        [x if i == j else max(x, Fraction(0)) for j, x in enumerate(row)]
        for i, row in enumerate(ask.A)
    ]


def zeros(ask: Ask) -> list[Fraction]:
    """What components on constant features explain."""
    return [] if ask.whole else [Fraction(0)] * ask.k
