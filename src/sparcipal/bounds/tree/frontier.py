"""Bound "tree"; statement and proof: docs/methods/tree.rst.

The open nodes of a branch and bound are taken the most promising first, in bounded memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from ..pairsplit import Part, Split

MAX_OPEN = 20_000  # nodes kept in order; beyond them the search goes depth first

T = TypeVar("T")


@dataclass
class Node:
    """A set of supports that may hold a better one."""

    part: Part
    split: Split
    record: dict
    position: int  # index of the record in the log
    guess: float = np.inf  # estimate of the largest eigenvalue of its matrix
    z: np.ndarray | None = None


class Frontier(Generic[T]):
    """A heap and, once that is full, a stack, whose nodes are taken first.

    The stack only ever holds the siblings along one path down the tree.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._stack: list[T] = []
        self._pushed = 0

    def push(self, node: T, guess: float) -> None:
        """Add an open node; `guess` is an estimate of its bound."""
        if len(self._heap) >= MAX_OPEN:
            self._stack.append(node)
            return
        # ties are broken by age, never by comparing nodes
        self._pushed += 1
        heapq.heappush(self._heap, (-guess, self._pushed, node))

    def pop(self) -> T:
        return self._stack.pop() if self._stack else heapq.heappop(self._heap)[2]

    def __len__(self) -> int:
        return len(self._heap) + len(self._stack)

    def __iter__(self) -> Iterator[T]:
        yield from (entry[2] for entry in self._heap)
        yield from self._stack
