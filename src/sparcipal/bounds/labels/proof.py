"""Bound "labels"; statement and proof: docs/methods/labels.rst.

The tree of cases. A case asks whether one of the components of a group contains a feature; if so,
that component becomes a group of its own. In a leaf every group has a certificate, all at the same
prices, and the values of the components sum to no more than all prices and the bounds of the
groups. Groups that share a certificate are bounded together. The largest sum of a leaf is the
bound: no case is left out, whatever features are asked for and whatever certificates are used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...numerics import margins
from ...numerics.margins import SAFETY
from .groups import Evaluated, Group, evaluated, record
from .pricing import Priced, tree_record
from .rows import Rows


@dataclass(frozen=True)
class Label:
    """`count` components that contain `forced` and avoid `banned`: positions in the field."""

    count: int
    forced: frozenset[int] = frozenset()
    banned: frozenset[int] = frozenset()


State = tuple[Label, ...]


def without(state: State, g: int, feature: int) -> State:
    """Return the groups of the case that no component of group g contains the feature."""
    label = replace(state[g], banned=state[g].banned | {feature})
    return (*state[:g], label, *state[g + 1 :])


def including(state: State, g: int, feature: int) -> State:
    """Return the groups of the case that a component of group g contains the feature."""

    def avoiding(label: Label) -> Label:
        return replace(label, banned=label.banned | {feature})

    label = state[g]
    own = [Label(1, label.forced | {feature}, label.banned)]
    if label.count > 1:
        own.append(Label(label.count - 1, frozenset(), label.banned | {feature}))
    return (*map(avoiding, state[:g]), *own, *map(avoiding, state[g + 1 :]))


class Proof:
    """Prices, certificates and cases, as they are stored; bounds are proved as they are added."""

    def __init__(self, rows: Rows, k: int) -> None:
        self.rows, self.k = rows, k
        self._prices: list[np.ndarray] = []
        self._groups: list[tuple[Group, int, Evaluated] | tuple[Priced, int, None]] = []
        self._nodes: list[dict[str, Any]] = []
        self._proved: dict[tuple[int, int], float] = {}
        self.bound = -np.inf  # over the leaves so far

    def add_prices(self, price: np.ndarray) -> int:
        """Store prices on the field, which are of single precision, and return their place."""
        self._prices.append(price)
        return len(self._prices) - 1

    def price(self, place: int) -> np.ndarray:
        return self._prices[place]

    def add_group(self, group: Group, prices: int) -> int:
        """Store a certificate and return its place."""
        self._groups.append((group, prices, evaluated(group, self.rows, self._prices[prices])))
        return len(self._groups) - 1

    def add_tree(self, priced: Priced, prices: int) -> int:
        """Store a branch and bound and return its place."""
        self._groups.append((priced, prices, None))
        return len(self._groups) - 1

    def room(self) -> int:
        """Return the place of a new node, which is filled later."""
        self._nodes.append({})
        return len(self._nodes) - 1

    def case(self, place: int, feature: int, group: int) -> tuple[int, int]:
        """Ask for a feature in a group; return the places of the sides out and in."""
        out, into = self.room(), self.room()
        self._nodes[place] = {
            "feature": int(self.rows.field[feature]), "group": group, "out": out, "in": into,
        }  # fmt: skip
        return out, into

    def leaf(self, place: int, state: State, groups: list[int]) -> float:
        """End a case with a certificate for each of its groups; return what that proves."""
        total = self.total(state, groups)
        self._nodes[place] = {"groups": list(groups)}
        self.bound = max(self.bound, total)
        return total

    def total(self, state: State, groups: list[int]) -> float:
        """Return the sum of a leaf, rounded up; minus infinity if no support is large enough."""
        if any(len(label.forced) > self.rows.q + 1 for label in state):
            return -np.inf
        together: dict[int, int] = {}
        for label, place in zip(state, groups):
            together[place] = together.get(place, 0) + label.count
        price = self._prices[self._groups[groups[0]][1]]
        unused = frozenset.intersection(*(label.banned for label in state))
        used = np.ones(price.size, dtype=bool)
        used[list(unused)] = False
        parts = [self._bound(place, count) for place, count in together.items()]
        paid = float(price[used].sum())
        size = paid + sum(abs(part) for part in parts)
        return paid + sum(parts) + SAFETY * margins.priced(price.size + len(parts)) * size

    def _bound(self, place: int, count: int) -> float:
        if (place, count) not in self._proved:
            group, _, found = self._groups[place]
            if isinstance(group, Priced):
                self._proved[place, count] = count * group.bound
            else:
                assert found is not None
                self._proved[place, count] = found.proved(count)
        return self._proved[place, count]

    def data(self) -> dict[str, Any]:
        """Return the tree with the certificates and prices that its leaves name."""
        field, prices, groups = self.rows.field, list[dict[str, Any]](), list[dict[str, Any]]()
        named = sorted({place for node in self._nodes for place in node.get("groups", ())})
        at = sorted({self._groups[place][1] for place in named})
        for price in (self._prices[place] for place in at):
            some = np.flatnonzero(price)
            prices.append(
                {"features": field[some].astype(np.int32), "price": price[some].astype(np.float32)}
            )
        for group, place, _ in (self._groups[place] for place in named):
            stored = tree_record if isinstance(group, Priced) else record
            groups.append(stored(group, at.index(place), field))
        order = {place: number for number, place in enumerate(named)}
        nodes = [
            {"groups": [order[place] for place in node["groups"]]} if "groups" in node else node
            for node in self._nodes
        ]
        return {"prices": prices, "groups": groups, "nodes": nodes}
