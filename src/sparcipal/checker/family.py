"""What the checker knows of a bound beside its mathematics, and the list of all bounds."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .arithmetic import Arithmetic, Numbers
from .budget import Budget, Missing, Refused, require
from .covariance import CheckedCovariance, Question
from .gate import parse

# The name of a bound in certificates -> the file of this package that rechecks it.
FAMILIES = {
    "trace": "cheap",
    "eigenvalues": "cheap",
    "gershgorin": "cheap",
    "frobenius": "cheap",
    "clip": "cheap",
    "enumeration": "enumeration",
    "parts": "parts",
    "tree": "tree",
    "kyfan": "kyfan",
    "configuration": "configuration",
    "lowrank": "lowrank",
    "ellipsoid": "ellipsoid",
    "dspca-dual": "duals",
    "greedy-dual": "duals",
}


@dataclass(frozen=True)
class Family:
    """A bound: its name, the schema of its proof, and the function that redoes it.

    `recheck(record, cov, question, ar, budget)` returns what the record proves, infinity if that is
    nothing; records that are no proof at all raise Refused.
    """

    name: str
    record: type
    recheck: Callable[..., Numbers]
    totals: bool = False  # holds for a number of nonzeros shared among all components
    overlapping: bool = False  # holds for several components with overlapping supports

    @property
    def needs_data(self) -> bool:
        """Whether the proof holds more than the name of the bound."""
        fields = dataclasses.fields(self.record)
        return any(not field.metadata["optional"] for field in fields)


def family_of(name: Any) -> Family:
    """The family of a bound, from the file that the list names."""
    if not (isinstance(name, str) and name in FAMILIES):
        raise Refused(f"there is no bound called {name!a}")
    module = importlib.import_module(f".{FAMILIES[name]}", __package__)
    return next(family for family in module.FAMILIES if family.name == name)


def families() -> list[Family]:
    return [family_of(name) for name in FAMILIES]


def redone(
    name: str,
    data: dict[str, Any],
    cov: CheckedCovariance,
    question: Question,
    ar: Arithmetic,
    budget: Budget,
) -> Numbers:
    """What the data of a bound prove about `cov`, after they have passed the gate."""
    family = family_of(name)
    require(
        question.total is None or family.totals,
        f"the bound {name!r} is not one for a total number of nonzeros",
    )
    require(
        question.k == 1 or question.disjoint or family.overlapping,
        f"the bound {name!r} does not hold for overlapping supports",
    )
    if family.needs_data and not data:
        raise Missing(f"the proof of the bound {name!r} was not saved with the result")
    record: Any = parse(family.record, data, {"p": cov.p, "n": cov.p}, name)
    return family.recheck(record, cov, question, ar, budget)
