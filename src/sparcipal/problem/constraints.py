"""Features that must be used and features that may not be, from names or numbers to numbers.

A component with the anchors F may have its nonzeros on any support S that contains F. An anchor
takes its place in S whatever its loading is: where the best loading is zero, it is zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from numbers import Integral
from typing import Any

import numpy as np

from .parameters import Complaints, is_mask, two_readings


@dataclass(frozen=True)
class Constraints:
    """`include` has one tuple of features per component, or is empty; `exclude` holds features."""

    include: tuple[tuple[int, ...], ...] = ()
    exclude: tuple[int, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return what a Result keeps of them; nothing where nothing was asked for."""
        include = {"include": [list(anchors) for anchors in self.include]} if self.include else {}
        return include | ({"exclude": list(self.exclude)} if self.exclude else {})

    def among(self, kept: np.ndarray) -> Constraints:
        """Return the same constraints when only the features `kept` (increasing) are left."""
        place = {int(feature): i for i, feature in enumerate(kept)}
        include = tuple(tuple(place[f] for f in anchors) for anchors in self.include)
        return Constraints(include, tuple(place[f] for f in self.exclude if f in place))


@dataclass(frozen=True)
class Columns:
    """The features that names and numbers refer to."""

    count: int
    names: tuple[str, ...] | None

    def called(self, feature: int) -> str:
        return repr(self.names[feature]) if self.names is not None else str(feature)


def named(features: Iterable[int], names: Sequence[str] | None) -> list[Any]:
    """Return features as a question names them: by name, or by number where they have none or
    share theirs with others."""
    names = names or ()
    alone = {name for name, count in Counter(names).items() if count == 1}
    return [names[f] if f < len(names) and names[f] in alone else f for f in features]


def mask_of(features: Iterable[int], count: int) -> list[bool]:
    """Return features as a mask, which asks for them whatever the others are called."""
    wanted = set(features)
    return [j in wanted for j in range(count)]


def excluded(exclude: Any, columns: Columns) -> tuple[list[int], list[str]]:
    """Return the features of `exclude`, and what is wrong with it."""
    if exclude is None:
        return [], []
    return _features("exclude", exclude, columns)


def constraints_of(
    include: Any, exclude: Any, columns: Columns, sizes: Sequence[int], disjoint: bool
) -> Constraints:
    """Return the constraints as numbers; a ValueError names everything that is wrong with them."""
    with Complaints() as check:
        out, wrong = check(excluded, exclude, columns) or ([], [])
        anchors, more = check(_anchors, include, columns, len(sizes)) or ([], [])
        wrong += more + _contradictions(anchors, out, columns, sizes, disjoint)
        if wrong:
            check.add(ValueError("; ".join(wrong)))
    anchored = tuple(tuple(sorted(own)) for own in anchors)
    return Constraints(anchored if any(anchored) else (), tuple(sorted(out)))


def _contradictions(
    anchors: Sequence[Sequence[int]],
    out: Sequence[int],
    columns: Columns,
    sizes: Sequence[int],
    disjoint: bool,
) -> list[str]:
    """Return what is wrong between the anchors, the features that are out and the cardinalities."""
    wrong = []
    for j, (own, size) in enumerate(zip(anchors, sizes)):
        both = sorted(set(own) & set(out))
        if both:
            wrong.append(f"{_list(both, columns)} in include and in exclude: leave one")
        if len(set(own)) > size:
            whose = f" of component {j + 1}" if len(sizes) > 1 else ""
            wrong.append(
                f"include has {len(set(own))} anchors{whose} for n_nonzero_coefs={size}: name at "
                f"most {size}, or raise n_nonzero_coefs to {len(set(own))}"
            )
    if disjoint:
        shared = Counter(feature for own in anchors for feature in set(own))
        twice = sorted(feature for feature, count in shared.items() if count > 1)
        if twice:
            wrong.append(
                f"{_list(twice, columns)} in include for several disjoint components: leave one"
            )
    return wrong


def asks_for_some(include: Any) -> bool:
    """Return whether there are anchors, whatever they are."""
    if not _is_list(include):
        mask = isinstance(include, bool | np.bool_)
        return bool(include) if mask else include is not None
    return any(asks_for_some(item) for item in include)


def _anchors(include: Any, columns: Columns, k: int) -> tuple[list[list[int]], list[str]]:
    """Return one list of features per component, and what is wrong with them."""
    if include is None:
        return [[] for _ in range(k)], []
    if not _is_list(include):
        ways = [include] if k == 1 else [[include], *([] for _ in range(k - 1))]
        raise TypeError(f"include must be a list of features, got {include!r}; write {ways!r}")
    items = list(include)
    nested = [(item is None and k > 1) or _is_list(item) for item in items]
    if not any(nested) and k == 1:
        items = [items]
    elif not all(nested):
        raise TypeError(
            f"include must be one list of features per component for n_components={k}, got "
            f"{include!r}; write for instance [['a', 'b'], []]"
        )
    found, wrong = [], []
    if len(items) > k:
        wrong.append(
            f"include has {len(items)} lists for n_components={k}: leave out some, or ask for more "
            "components"
        )
    for j, item in enumerate(items):
        name = f"include[{j}]" if k > 1 else "include"
        own, more = _features(name, [] if item is None else item, columns)
        found.append(own)
        wrong += more
    return (found + [[] for _ in range(k - len(items))])[:k], wrong


def _features(name: str, items: Any, columns: Columns) -> tuple[list[int], list[str]]:
    """Return the features that names, patterns of names or numbers stand for, and what is wrong
    with them."""
    if not _is_list(items):
        raise TypeError(f"{name} must be a list of features, got {items!r}; write [{items!r}]")
    values = list(items)
    if is_mask(values):
        if len(values) != columns.count:
            return [], [f"{name} is a mask of {len(values)} entries for {columns.count} features"]
        return np.flatnonzero(values).tolist(), []
    place = {} if columns.names is None else {n: j for j, n in enumerate(columns.names)}
    several = [n for n, count in Counter(columns.names or ()).items() if count > 1 and n in values]
    found: list[int] = []
    met: dict[int, None] = {}  # patterns may meet the same features
    unknown: list[Any] = []
    wrong: list[str] = []
    for value in values:
        if isinstance(value, Integral) and not isinstance(value, bool | np.bool_):
            number = int(value)
            wrong += two_readings(name, number, columns.names, place)
            (found if 0 <= number < columns.count else unknown).append(number)
        elif isinstance(value, str) and value in place:
            found.append(place[value])
        elif isinstance(value, str) and (several_met := matched(value, columns.names)):
            met |= dict.fromkeys(several_met)
        else:
            unknown.append(value)
    if unknown:
        others = [n for n in place if n not in values]
        near = [n for v in unknown for n in get_close_matches(str(v), others, n=1)]
        known = f"numbers lie in 0..{columns.count - 1}"
        known += ", and the data have no names" if columns.names is None else ""
        known = f"did you mean {', '.join(map(repr, near))}?" if near else known
        wrong.append(f"{name} has unknown features {', '.join(map(repr, unknown))} ({known})")
    if several:
        names = ", ".join(map(repr, several))
        wrong.append(f"{name} names {names}, and several features are called so; pass numbers")
    twice = sorted(feature for feature, count in Counter(found).items() if count > 1)
    if twice:
        wrong.append(f"{name} repeats {_list(twice, columns)}")
    return [*found, *(feature for feature in met if feature not in found)], wrong


def matched(pattern: str, names: Sequence[str] | None) -> list[int]:
    """Return the features that a pattern as `gene*` stands for; none for anything else."""
    if not set(pattern) & set("*?["):
        return []
    return [j for j, name in enumerate(names or ()) if fnmatchcase(name, pattern)]


def _is_list(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | dict)


def _list(features: Iterable[int], columns: Columns) -> str:
    return ", ".join(map(columns.called, features))


def check_anchors(asked: Constraints, kept: np.ndarray, columns: Columns) -> None:
    """Refuse anchors that are not among the features that are searched."""
    anchors = {feature for own in asked.include for feature in own}
    lost = sorted(anchors - set(kept.tolist()))
    if lost:
        raise ValueError(
            f"include: {', '.join(map(columns.called, lost))} varies too little to be among the "
            f"{kept.size} features that are kept; raise memory_limit, or keep more features"
        )


def check_left(asked: Constraints, constant: np.ndarray) -> None:
    """Refuse to exclude every feature that varies."""
    if np.delete(constant, asked.exclude).all():
        raise ValueError(
            f"exclude: every feature that is left without these {len(asked.exclude)} is constant, "
            "so that there is no variance to explain; exclude fewer"
        )
