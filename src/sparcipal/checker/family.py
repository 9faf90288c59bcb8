"""What the checker knows of a bound beside its mathematics, and the list of all bounds."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .arithmetic import LEAST, Arithmetic, Numbers
from .budget import Budget, Missing, Refused, require
from .covariance import CheckedCovariance, Question
from .gate import parse
from .records import Part

# The name of a bound in certificates -> the file of this package that rechecks it.
FAMILIES = {
    **dict.fromkeys(("trace", "eigenvalues", "gershgorin", "frobenius", "clip"), "cheap"),
    "enumeration": "enumeration",
    "parts": "parts",
    "adjusted": "adjusted",
    "orthogonal": "orthogonal",
    "common": "common",
    "neighbour": "neighbour",
    "tree": "tree",
    "kyfan": "kyfan",
    "configuration": "configuration",
    "labels": "labels",
    "lowrank": "lowrank",
    "ellipsoid": "ellipsoid",
    **dict.fromkeys(("dspca-dual", "greedy-dual"), "duals"),
}


class Case(NamedTuple):
    """What a bound is rechecked for: a covariance, a question about it, the numbers to compute
    with and what the replay may cost. Rechecks unpack it: `cov, question, ar, budget = case`."""

    cov: CheckedCovariance
    question: Question
    ar: Arithmetic
    budget: Budget

    def alone(self, s: int, anchors: tuple[int, ...] = ()) -> Case:
        """Return the same for one component of s nonzeros and these anchors."""
        return self._replace(question=self.question.alone(s, anchors))

    def entries(self, rows: np.ndarray, cols: np.ndarray | None = None) -> np.ndarray:
        """Return entries of the covariance, charged before they are formed."""
        self.cov.charge(self.budget, rows.size, rows.size if cols is None else cols.size)
        return self.cov.submatrix(rows, cols)


# --- the part of a bound that is for the rounding of the covariance ---


class Rounding(NamedTuple):
    """What a margin is for: a record, what it answers, and `of(s)`, by how much s nonzeros can
    differ. The formulas are those of docs/methods/rounding.rst, "The covariance"."""

    record: Any
    question: Question
    cov: CheckedCovariance
    of: Callable[[int], float]


def all_nonzeros(by: Rounding) -> float:
    """Count it once for all components if they share no feature; otherwise for each."""
    return all_features_used(by) if by.question.disjoint else each_alone(by)


def all_features_used(by: Rounding) -> float:
    return by.of(by.question.n_nonzero)


def each_alone(by: Rounding) -> float:
    return by.question.k * by.of(by.question.s_max)


def one_by_one(by: Rounding) -> float:
    return sum(by.of(s) for s in by.question.cardinalities)


def every_feature(by: Rounding) -> float:
    return by.question.k * by.of(by.cov.p)


def rows_too(by: Rounding) -> float:
    """Count the entries of k rows, s of each, beside all nonzeros."""
    question, roots = by.question, np.sort(np.sqrt(by.cov.weights))[::-1]
    # of(1) is for the largest weight; a row has s entries
    share = float(roots[: question.s_max].sum() / roots[0]) if roots[0] > 0 else 0.0
    return question.k * share * by.of(1) + by.of(question.n_nonzero)


# --- families ---

ALL_KINDS = ("disjoint", "adjusted", "orthogonal", "common")


@dataclass(frozen=True)
class Family:
    """A bound: its name, the schema of its proof, and the function that redoes it.

    `recheck(record, case)` returns what the record proves, infinity if that is nothing; records
    that are no proof at all raise Refused.
    """

    name: str
    record: type
    recheck: Callable[[Any, Case], Numbers]
    totals: bool = False  # holds for a number of nonzeros shared among all components
    kinds: tuple[str, ...] = ("disjoint",)  # of several components, for which it holds
    nested: bool = False  # made of bounds of others, and itself none of those
    margin: Callable[[Rounding], float] = all_nonzeros

    @property
    def needs_data(self) -> bool:
        """Whether the proof holds more than the name of the bound."""
        fields = dataclasses.fields(self.record)
        return any(not field.metadata["optional"] for field in fields)

    def read(self, data: dict[str, Any], p: int) -> Any:
        """Return the record that the data of a bound on p features are, through the gate."""
        if self.needs_data and not data:
            raise Missing(f"the proof of the bound {self.name!r} was not saved with the result")
        return parse(self.record, data, {"p": p, "n": p}, self.name)


def family_of(name: Any) -> Family:
    """Return the family of a bound, from the file that the list names."""
    if not (isinstance(name, str) and name in FAMILIES):
        raise Refused(f"there is no bound called {name!a}")
    module = importlib.import_module(f".{FAMILIES[name]}", __package__)
    return next(family for family in module.FAMILIES if family.name == name)


def families() -> list[Family]:
    return [family_of(name) for name in FAMILIES]


def margin_of_part(part: Part, by: Rounding) -> float:
    """Return the margin of a part of another bound; for one component it depends on no record."""
    return family_of(part.name).margin(by._replace(record=None, question=by.question.alone(part.s)))


def redone_part(part: Part, case: Case, anchors: tuple[int, ...] = ()) -> Numbers:
    """Return what a part of another bound proves for one component: no more than it states."""
    family = family_of(part.name)
    alone = not family.nested and "disjoint" in family.kinds
    require(alone, f"a part is made of parts, or of several components: {part.name!a}")
    proved = redone(part.name, part.data, case.alone(part.s, anchors))
    require(case.ar.upper(proved) <= part.value, "a part's bound is too small")
    return proved


def redone(name: str, data: dict[str, Any], case: Case) -> Numbers:
    """Return what the data of a bound prove, after they have passed the gate.

    In floating point that is not less than LEAST, unless nothing varies: underflow may have hidden
    what there is below.
    """
    family, question = family_of(name), case.question
    require(
        question.total is None or family.totals,
        f"the bound {name!r} is not one for a total number of nonzeros",
    )
    require(
        question.k == 1 or bool(question.kinds & set(family.kinds)),
        f"the bound {name!r} does not hold for overlapping supports of this kind",
    )
    proved = family.recheck(family.read(data, case.cov.p), case)
    if case.ar.exact or case.cov.inert.all():
        return case.ar.number(proved)
    return case.ar.maximum(proved, LEAST)
