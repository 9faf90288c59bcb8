"""The supports that the log of a tree lists: is a support one of them, or a part of one?"""

from __future__ import annotations

import numpy as np

from .budget import Budget


class Listing:
    """Listed supports as bits, among features that have leaders and are multiples of them."""

    def __init__(
        self, listed: tuple[np.ndarray, ...], leaders: np.ndarray, factors: np.ndarray, s: int
    ) -> None:
        self._leaders, self._same, self._s = leaders, np.abs(factors) == 1.0, s
        self._listed = list(dict.fromkeys(_bits(support) for support in listed))
        self._every = frozenset(self._listed)
        self._holders: dict[int, int] = {}  # which listed supports a feature is in, as bits

    def charge(self, supports: float, budget: Budget) -> None:
        """Count what looking for so many supports costs."""
        count, p = len(self._listed), self._leaders.size
        budget.memory(count * p / 4.0, "the supports of a list")
        each = self._s * (5e3 + 2.0 * p + count / 16)
        budget.work(count * p * (100.0 + p / 64) + supports * each, "the supports of a list")

    def holds(self, support: list[int]) -> bool:
        """Return whether the support is listed, or a part of one that is, up to exchanges of
        equals."""
        first = self._first_of_its_kind(support)
        whole = _bits(first)
        if whole in self._every:
            return True
        holders = (1 << len(self._listed)) - 1 if len(first) < self._s else 0
        for j in first:
            holders &= self._holders_of(j) if holders else 0
        return holders != 0

    def _holders_of(self, feature: int) -> int:
        if feature not in self._holders:
            held = np.array([listed >> feature & 1 for listed in self._listed], dtype=np.uint8)
            packed = np.packbits(held, bitorder="little").tobytes()
            self._holders[feature] = int.from_bytes(packed, "little")
        return self._holders[feature]

    def _first_of_its_kind(self, support: list[int]) -> list[int]:
        """Return the support with the first features of each group of equal ones."""
        out: list[int] = []
        for leader, count in zip(*np.unique(self._leaders[support], return_counts=True)):
            group = np.flatnonzero((self._leaders == leader) & self._same)
            own = [j for j in support if self._leaders[j] == leader and not self._same[j]]
            out += [*own, *group[: count - len(own)].tolist()]
        return out


def _bits(features: np.ndarray | list[int]) -> int:
    return sum(1 << int(j) for j in features)
