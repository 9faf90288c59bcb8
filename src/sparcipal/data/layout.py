"""The columns of frames that come in blocks: what each is for is decided once, for all blocks.

Of some columns the first rows cannot tell what they are: those that begin without an entry may have
some further down, and whole numbers that all differ may come again. More rows tell, so that neither
the sizes of the blocks nor a limit decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .columns import DIFFER, EMPTY, NUMBER, Column, difference
from .frames import Part, all_names, is_frame, kinds_beside
from .notes import listed


class Layout:
    """The columns that every block has, as the first one has them.

    It is neither a dataclass nor a tuple, because dask would search its fields for each block.

    Parameters
    ----------
    count : int
    names : tuple of str, optional
        Of the features.
    aside : mapping of str to str, optional
        What the other columns of a frame hold; None where nothing is known of other columns.
    """

    def __init__(
        self,
        count: int,
        names: tuple[str, ...] | None = None,
        aside: Mapping[str, str] | None = None,
    ) -> None:
        self.count, self.names, self.aside = count, names, aside

    @staticmethod
    def of(
        block: Any, count: int, names: tuple[str, ...] | None, known: Mapping[str, Column]
    ) -> Layout:
        """Return the layout of the first block, of which these are the features."""
        if names is None or not is_frame(block):
            return Layout(count, names)
        return Layout(count, names, kinds_beside(block, names, known))

    def check(self, block: Any) -> None:
        """Refuse a frame with other columns, or with numbers in one that was set aside."""
        assert self.names is not None
        own = all_names(block)
        beside = own if self.aside is None else [name for name in own if name in self.aside]
        found = difference(own, [*self.names, *beside])
        if found:
            raise ValueError(
                f"it {found}, compared with the first one; all blocks must have the same columns"
            )
        words = {n: kind for n, kind in (self.aside or {}).items() if kind != NUMBER}
        now = kinds_beside(block, self.names, {}) if words else {}
        # text and dates stay aside whatever they are; what was empty, or is numbers now, would not
        other = [
            f"{n!r} ({kind} before, {now[n]} now)"
            for n, kind in words.items()
            if n in now and now[n] != kind and (kind == EMPTY or now[n] == NUMBER)
        ]
        if other:
            raise ValueError(
                f"it has columns that hold something else than the first blocks: {listed(other)}; "
                "all blocks must hold the same in a column: convert it, or leave it out"
            )


class Look:
    """What blocks of rows, from the first one on, tell of the columns that were undecided."""

    def __init__(self) -> None:
        self.decided: dict[str, Column] = {}  # what is known already
        self._empty: dict[str, Column] | None = None  # None until there is a first block
        self._numbers: dict[str, _Numbers] = {}

    @property
    def open(self) -> list[str]:
        """The columns that are undecided."""
        return [*(self._empty or ()), *self._numbers]

    def add(self, part: Part) -> None:
        if self._empty is None:
            self._empty = {n: c for n, c in part.columns.items() if c.kind == EMPTY}
            self._numbers = {name: _Numbers() for name in part.whole}
        filled = {n: c for n, c in part.columns.items() if n in self._empty and c.kind != EMPTY}
        for name, column in filled.items():
            self.decided[name] = replace(column, whole=False)  # with gaps, no numbers are whole
            del self._empty[name]
        for name, numbers in [*self._numbers.items()]:
            if name not in part.whole or not numbers.add(part.whole[name]):
                del self._numbers[name]
            elif numbers.count >= DIFFER:
                self.decided[name] = numbers.identifier(name)
                del self._numbers[name]

    def known(self) -> dict[str, Column]:
        """Return what is known of them once no more rows are looked at."""
        found = {**self.decided, **(self._empty or {})}
        found |= {n: s.identifier(n) for n, s in self._numbers.items() if s.differ()}
        return found


class _Numbers:
    """Whole numbers that all differ, as far as was looked: when they have doubled, so that all
    looks together cost as much as the last one."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self.count = self._looked = 0

    def add(self, part: np.ndarray) -> bool:
        """Take more of them; return whether all differ."""
        self._parts.append(np.array(part[: DIFFER - self.count]))  # the block may be filled again
        self.count += self._parts[-1].size
        return self.differ() if self.count >= min(2 * self._looked, DIFFER) else True

    def differ(self) -> bool:
        entries = np.sort(np.concatenate(self._parts))
        self._looked = self.count
        return bool((entries[1:] != entries[:-1]).all())

    def identifier(self, name: str) -> Column:
        return Column(name, NUMBER, self.count, self.count, whole=True)


def known_columns(
    first: Part, blocks: Callable[[Sequence[str]], Iterable[Part]]
) -> dict[str, Column]:
    """Return what many rows tell of the columns that the first block leaves undecided; `blocks`
    reads the blocks from the first one on, and is called only where there are such columns."""
    look = Look()
    look.add(first)
    if not look.open:
        return look.known()
    names, decided, look = look.open, look.decided, Look()
    for part in blocks(names):
        look.add(part)
        if not look.open:
            break
    return decided | look.known()
