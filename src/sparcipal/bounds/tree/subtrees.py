"""Bound "tree"; statement and proof: docs/methods/tree.rst.

A long branch and bound runs in rounds of subtrees, on threads or on the workers of a cluster.

In a round the most promising open nodes are handed out, one to a task; a task searches the tree
below its node, best first, for a fixed amount of work, and returns what it found, the part of the
proof it wrote, and the nodes that it leaves open. The incumbent is exchanged between rounds only,
and what tasks return is taken over in the order in which they were handed out: the answer, down to
the log, does not depend on how many of them run at once, where, or which is ready first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..pairsplit import Part, Split
from .frontier import Node
from .log import ProofLog

if TYPE_CHECKING:
    from .search import Search

SUBTREES = 16  # number of tasks in a round
WORK = 4e8  # work of a task, in the units of question.py


@dataclass(frozen=True)
class Seed:
    """The part of a node that is sent to a task, which recomputes the rest."""

    features: np.ndarray
    forced: np.ndarray
    split: Split
    guess: float

    @staticmethod
    def of(node: Node) -> Seed:
        part, split = node.part, node.split
        # a message makes arrays contiguous, so that they must be so on threads as well
        u, r = np.ascontiguousarray(split.u), np.ascontiguousarray(split.r)
        return Seed(
            part.features, part.forced, Split(split.features, u, r, split.origin), node.guess
        )

    def part(self, search: Search) -> Part:
        features = np.array(self.features)
        return Part(
            features,
            search.a[np.ix_(features, features)],
            np.array(self.forced),
            search.price[features],
            search.s,
            search.nonnegative,
            search.pad[features],
        )


@dataclass(frozen=True)
class Task:
    """A node, the incumbent, and the budget of the search below the node."""

    seed: Seed
    value: float
    support: np.ndarray
    nodes: int  # counted so far
    more: int  # limit of nodes to look at
    work: float


@dataclass(frozen=True)
class Leaf:
    """A node that a task has left open."""

    seed: Seed
    position: int  # index of its record in the log of the task
    certificate: int | None  # the position of its certificate there, once that has been used


@dataclass(frozen=True)
class Grown:
    """The result of the search below a node."""

    value: float
    support: np.ndarray
    log: ProofLog
    open: list[Leaf]
    stuck: list[Leaf]
    shrunk: dict[bytes, int]
    nodes: int
    n_eigen: int
    work: float


def grow(shared: Search, task: Task) -> Grown:
    """Search below a node until its work is spent or nothing is open."""
    tree = shared.below(task)
    tree.search()
    return Grown(
        tree.value,
        tree.support,
        tree.log,
        [_leaf(node, tree.log) for node in tree.open],
        [_leaf(node, tree.log) for node in tree.stuck],
        tree.shrunk,
        tree.nodes - task.nodes,
        tree.n_eigen,
        tree.work,
    )


def _leaf(node: Node, log: ProofLog) -> Leaf:
    return Leaf(Seed.of(node), node.position, log.known(node.split))


def grow_round(search: Search, submit: Callable[..., Iterator[Any]]) -> None:
    """Send open nodes to tasks and add their results to the search, in order."""
    left = search.max_nodes - search.nodes
    count = min(SUBTREES, len(search.open), left)
    nodes = [search.open.pop() for _ in range(count)]
    work = min(WORK, (search.max_work - search.work) / count)
    # tasks start counting at different numbers, as each tenth node is searched for incumbents
    tasks = [
        Task(
            Seed.of(node), search.value, search.support, search.nodes + number, left // count, work
        )
        for number, node in enumerate(nodes)
    ]
    answers = submit(grow, tasks)
    for number, node in enumerate(nodes):
        if search.monitor.stopped is not None:  # the remaining nodes stay open with their bounds
            for rest in nodes[number:]:
                search.open.push(rest, rest.guess)
            return
        search.take_over(node, next(answers))
