"""Alternatives to an answer: what else is nearly as good, and what a feature is worth.

Like a Result these are frozen, printable, and the same after a JSON round trip.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from .reading import (
    Kind,
    anything,
    entries,
    features,
    integer,
    many,
    maybe,
    number,
    numbers,
    open_record,
    places,
    word,
)
from .result import Result, result_from
from .saving import (
    LIMIT,
    document_of,
    holds_alternatives,
    read_text,
    text_of,
    write_atomically,
)

ZERO = 1e-7  # loadings of a unit vector that are zero up to rounding
BEST = 1e-9  # the part by which a proof may leave a value below its bound


@dataclass(frozen=True)
class Listed:
    """A support that explains more than the level.

    Attributes
    ----------
    support, weights : ndarray
        Features and the best loadings on them, which may be zero; of nonnegative loadings the best
        that were found.
    value, bound : float
        What the loadings explain, and what no loadings on this support exceed: the same up to
        rounding, unless loadings are nonnegative and no closer bound was proved.
    count : int
        How many supports it stands for: features that can be exchanged give others of equal value.
    """

    support: np.ndarray
    weights: np.ndarray
    value: float
    bound: float
    count: int = 1


@dataclass(frozen=True)
class Cost:
    """What is possible without a feature, or with it.

    Attributes
    ----------
    feature : int
    value, bound : float
        The best answer without the feature (with it) explains at least `value` and at most `bound`.
    fit : Result or None
        The answer and its proof; None where the list of supports says it.
    """

    feature: int
    value: float
    bound: float
    fit: Result | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Nearby:
    """The supports near one component, the others as they are.

    Attributes
    ----------
    component : int
    value : float
        What the component explains.
    rounding : float
        By how much rounding may have raised this value, and those of the listed supports.
    asked, level : float
        Supports above `asked`, the value less its rounding less what `within` leaves, were asked
        for; every support above `level` is on the list.
    supports : tuple of Listed
        The largest value first.
    groups : tuple of ndarray
        Features whose rows of the covariance are the same up to sign: in any support they can be
        exchanged, and the list has one support of all that differ in that only.
    drops : tuple of Cost
        For each feature of the component, the best answer without it.
    forces : tuple of Cost
        For the outsiders that promise most, the best answer with each.
    outsiders, leaving : ndarray
        For each other feature, the member in whose place it does best.
    with_value, with_bound : ndarray
        What the best answer with each outsider explains, at least and at most.
    proof : dict
        The log of the branch and bound, its touch certificate, the features it speaks of, and what
        features that were not kept could add.
    """

    component: int
    value: float
    rounding: float
    asked: float
    level: float
    supports: tuple[Listed, ...]
    groups: tuple[np.ndarray, ...]
    drops: tuple[Cost, ...]
    forces: tuple[Cost, ...]
    outsiders: np.ndarray
    leaving: np.ndarray
    with_value: np.ndarray
    with_bound: np.ndarray
    proof: dict[str, Any] = field(repr=False)

    @property
    def sure(self) -> float:
        """What the component explains at least, whatever rounding did."""
        return self.value - self.rounding

    @property
    def complete(self) -> bool:
        """Whether no support above `asked` is missing from the list."""
        return self.level <= self.asked

    @property
    def count(self) -> int:
        """How many supports the list stands for."""
        return sum(entry.count for entry in self.supports)

    @property
    def ties(self) -> tuple[Listed, ...]:
        """The listed supports that explain as much as the best one, up to rounding; it is first."""
        most = max((entry.value for entry in self.supports), default=0.0)
        return tuple(entry for entry in self.supports if entry.value >= most - 2 * self.rounding)

    @property
    def unique(self) -> bool | None:
        """Whether no other features explain as much as the best ones, up to rounding; None where
        that is not known. Features with a weight of zero count for nothing here: where these alone
        differ, `spare` names them."""
        if not self.supports or self.filled:
            return None
        if self._tied:
            return False if self._proved else None
        first, *others = self.supports
        if first.count > 1 or len(self.ties) > 1:
            return None  # the same features wherever a support explains as much
        sure = first.value - self.rounding
        if self.everything:  # supports inside the one that is listed are on no list
            lost = {cost.feature for cost in self.drops if cost.bound < sure}
            return True if lost >= self.loaded() else None
        alone = all(entry.bound < sure for entry in others)
        return True if alone and self.level < sure else None

    @property
    def spare(self) -> list[int]:
        """The features that supports of the best component hold at a weight of zero and that can be
        exchanged for each other, or left out; none where other features explain as much."""
        ties = self.ties
        alone = len(ties) < 2 and not any(entry.count > 1 for entry in ties)
        if alone or self._tied or self.unique or not self._proved:
            return []
        held = {feature for entry in ties for feature in self.reached(entry)}
        return sorted(held - loaded(ties[0]))

    @property
    def _proved(self) -> bool:
        """Whether no support explains more than the best listed one, up to rounding: bounds prove
        it, not the search for weights."""
        most = max((entry.value for entry in self.supports), default=-np.inf)
        limit = max([self.level, *(entry.bound for entry in self.supports)])
        return bool(limit <= most + BEST * abs(most) + 4 * self.rounding)

    @property
    def _tied(self) -> bool:
        """Whether other features explain as much as those of the first support."""
        kinds = {self._kind(entry) for entry in self.ties}
        return len(kinds) > 1 or self._exchangeable(self.loaded())

    def _kind(self, entry: Listed) -> frozenset[tuple[int, int]]:
        """Return the features that a support has loadings on, those of a group by their number."""
        own = loaded(entry)
        counts = [(int(g[0]), len(own & set(g.tolist()))) for g in self.groups]
        grouped = {int(f) for g in self.groups for f in g}
        alone = [(feature, 1) for feature in own - grouped]
        return frozenset([*alone, *(pair for pair in counts if pair[1])])

    def _exchangeable(self, own: set[int]) -> bool:
        """Return whether some of these features have equals that are not among them."""
        return any(own & set(g.tolist()) and not own >= set(g.tolist()) for g in self.groups)

    @property
    def surpassed(self) -> bool:
        """Whether a listed support explains more than the component, beyond rounding."""
        return any(entry.value > self.value * (1 + 1e-9) for entry in self.supports)

    @property
    def everything(self) -> bool:
        """Whether the component may use all features that there are for it: then one support is
        listed, and only the costs say which answers do without some of its features."""
        widest = max((entry.support.size for entry in self.supports), default=0)
        return bool(self.proof["kept"].size <= widest)

    @property
    def filled(self) -> bool:
        """Whether required features fill every place of the component: no outsider has room."""
        return self.outsiders.size == 0 and not self.everything

    @property
    def known(self) -> bool:
        """Whether the level is below what the best listed support explains, so that the list says
        something of all supports; otherwise others may explain as much as any of it."""
        most = max((entry.value for entry in self.supports), default=self.value)
        return self.level < max(most, self.value) - self.rounding

    def loaded(self) -> set[int]:
        """Return the features of the best support whose loadings are not zero, up to rounding."""
        return loaded(self.supports[0])

    def always(self) -> list[int]:
        """Return the features that every answer above the level uses; none while nothing is
        known."""
        if not self.known:
            return []
        if self.everything:
            return sorted(cost.feature for cost in self.drops if cost.bound <= self.level)
        return self.shared()[0]

    def indispensable(self) -> list[int]:
        """Return the features without which no answer is above `asked`, as their costs prove
        whether the list is complete or not."""
        return sorted(cost.feature for cost in self.drops if cost.bound <= self.asked)

    def sometimes(self) -> list[int]:
        """Return the features that some answers above the level use and some do not; none while
        nothing is known."""
        if not self.known:
            return []
        if self.everything:
            return sorted(cost.feature for cost in self.drops if cost.value > self.level)
        return self.shared()[1]

    def shared(self) -> tuple[list[int], list[int]]:
        """Return the features of all listed supports, and those of some."""
        kept = [set(self.needed(entry)) for entry in self.supports]
        every = set.intersection(*kept) if kept else set()
        used = {feature for entry in self.supports for feature in self.reached(entry)}
        return sorted(every), sorted(used - every)

    def needed(self, entry: Listed) -> list[int]:
        """Return the features that a listed support has whatever is exchanged."""
        own = set(entry.support.tolist())
        for group in self.groups:
            if own & set(group.tolist()) != set(group.tolist()):
                own -= set(group.tolist())
        return sorted(own)

    def reached(self, entry: Listed) -> list[int]:
        """Return the features that a listed support has after some exchange."""
        return reached(entry, self.groups)


def loaded(entry: Listed) -> set[int]:
    """Return the features of a support whose loadings are not zero, up to rounding."""
    return set(entry.support[np.abs(entry.weights) > ZERO].tolist())


def reached(entry: Listed, groups: tuple[np.ndarray, ...]) -> list[int]:
    """Return the features that a support has after some exchange within the groups."""
    own = set(entry.support.tolist())
    for group in groups:
        if own & set(group.tolist()):
            own |= set(group.tolist())
    return sorted(own)


class Unreadable(ValueError):
    """A file of alternatives that another version has saved, or that is damaged."""


@dataclass(frozen=True)
class Alternatives:
    """What else is nearly as good as an answer, with proofs that `verify` rechecks.

    Attributes
    ----------
    result : Result
        The answer.
    within : float
        The share of a component's variance by which others may fall short of it.
    components : tuple of Nearby
        For each component, the supports near it beside the others; empty where components overlap,
        count only beyond each other or share their nonzeros.
    drops : tuple of Cost
        For several components: the best answer without a feature in any of them.
    status : str
        "complete", or what ended it: "more" (the list is full), "nodes", "time_limit",
        "interrupted", "memory", "dropped" (features of a table read in passes that were not kept
        may do as well).
    """

    result: Result
    within: float
    components: tuple[Nearby, ...]
    drops: tuple[Cost, ...]
    status: str

    @property
    def complete(self) -> bool:
        return self.status == "complete"

    def __str__(self) -> str:
        from ..report.answers import alternatives_text

        return alternatives_text(self)

    def _repr_html_(self) -> str:
        from ..report.cards import alternatives_card

        return alternatives_card(self)

    def records(self) -> list[dict[str, Any]]:
        """Return one dict per listed support, for a data frame; components count from 1."""
        return [
            {
                "component": near.component + 1,
                "rank": rank,
                "features": [self.result.feature_name(int(j)) for j in entry.support],
                "value": entry.value,
                "bound": entry.bound,
                "count": entry.count,
            }
            for near in self.components
            for rank, entry in enumerate(near.supports, start=1)
        ]

    def to_json(self) -> str:
        return text_of(self)

    @staticmethod
    def from_json(text: str) -> Alternatives:
        """Invert `to_json`; ValueError when the document holds no alternatives."""
        kind: type[ValueError] = ValueError
        try:
            parts = document_of(text)
            kind = Unreadable if holds_alternatives(parts) else ValueError
            if kind is Unreadable and (absent := _absent(parts["components"])):
                raise Unreadable(
                    f"another version of sparcipal saved these alternatives, without {absent!r}; "
                    "make them again, with alternatives(result, X) or `sparcipal alternatives`"
                )
            return _alternatives(parts)
        except Unreadable:
            raise
        except RecursionError as error:
            raise ValueError("no alternatives: nested too deeply") from error
        except ValueError as error:
            raise kind(f"no alternatives of sparcipal: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        write_atomically(Path(path), self.to_json())

    @staticmethod
    def load(path: str | os.PathLike[str], *, limit: int = LIMIT) -> Alternatives:
        return Alternatives.from_json(read_text(Path(path), limit))


def _alternatives(parts: dict[str, Any]) -> Alternatives:
    told = entries(parts, "Alternatives", _ALTERNATIVES)
    for name in ("components", "drops"):
        told[name] = tuple(told[name])
    found = Alternatives(**told)
    k, p = len(found.result.supports), found.result.n_features
    if len(found.components) not in (0, k):
        raise ValueError("there is not one list for each component")
    for j, near in enumerate(found.components):
        _check_list(near, j, p)
    if any(cost.feature >= p for cost in found.drops):
        raise ValueError(f"a cost names no feature of 0..{p - 1}")
    return found


def _check_list(near: Nearby, j: int, p: int) -> None:
    """Raise ValueError unless the parts of a list fit one another, so that it can be printed."""
    if near.component != j:
        raise ValueError("the lists are not in the order of the components")
    if any(entry.support.size != entry.weights.size for entry in near.supports):
        raise ValueError("a listed support does not have one loading per feature")
    others = (near.leaving, near.with_value, near.with_bound)
    if any(other.size != near.outsiders.size for other in others):
        raise ValueError("the outsiders do not have two numbers each")
    named = [
        *(entry.support for entry in near.supports),
        *near.groups,
        near.outsiders,
        near.leaving,
        np.array([cost.feature for cost in (*near.drops, *near.forces)], dtype=object),
    ]
    if any(np.max(array, initial=0) >= p for array in named):
        raise ValueError(f"a list names features that are none of 0..{p - 1}")
    if not {cost.feature for cost in near.forces} <= set(near.outsiders.tolist()):
        raise ValueError("a cost of an outsider that is none")


def _absent(components: Any) -> str | None:
    """Return the first entry that a list does not have."""
    names = [f.name for f in fields(Nearby)]
    known = components if isinstance(components, list) else []
    lists = [near for near in known if isinstance(near, dict) and near]
    return next((name for near in lists for name in names if name not in near), None)


def _record_of(kind: type, kinds: dict[str, Kind], absent: tuple[str, ...] = ()) -> Kind:
    """Return the kind of records that become a dataclass; its lists become tuples."""

    def read(raw: Any, where: str) -> Any:
        told = entries(raw, where, kinds, absent)
        return kind(**{n: tuple(x) if isinstance(x, list) else x for n, x in told.items()})

    return read


def _answer(raw: Any, where: str) -> Result:
    try:
        return result_from(raw)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


_COST = _record_of(
    Cost, {"feature": integer(0), "value": number(), "bound": number(), "fit": maybe(_answer)}
)
_LISTED = _record_of(
    Listed,
    {
        "support": features(least=1),
        "weights": numbers,
        "value": number(),
        "bound": number(),
        "count": integer(1),
    },
)
_NEARBY: dict[str, Kind] = {
    "component": integer(0),
    "value": number(),
    "rounding": number(0.0),
    "asked": number(),
    "level": number(),
    "supports": many(_LISTED),
    "groups": many(features(least=2)),
    "drops": many(_COST),
    "forces": many(_COST),
    "outsiders": features(),
    "leaving": places,
    "with_value": numbers,
    "with_bound": numbers,
    "proof": open_record({"kept": features(least=1)}, anything, needed=("kept",)),
}
_ALTERNATIVES: dict[str, Kind] = {
    "result": _answer,
    "within": number(0.0, 1.0),
    "components": many(_record_of(Nearby, _NEARBY)),
    "drops": many(_COST),
    "status": word("complete", "more", "nodes", "time_limit", "interrupted", "memory", "dropped"),
}
