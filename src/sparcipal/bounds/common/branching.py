"""Bound "common"; statement and proof: docs/methods/common.rst.

Branch and bound on inequalities for sets of features. A node is settled by a cut, or by a look at
all its sets where they are few. Features that share little of the relaxation are put out together:
the best inequality for the sets that meet them is below the target, or half of them are tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from ...numerics import margins
from ...problem.monitor import Monitor
from ..tree.frontier import Frontier
from ..tree.log import ProofLog
from .cut import Cut, State, proved_cut
from .relaxation import Relaxed, Sets, relaxed

LEAF = 300  # sets of a node that are looked at one by one
RARE = 0.1  # features that share less of the relaxation are put out together, if they can
ATTEMPTS = 3  # groups of them, each half of the one before
WORTHWHILE = 12  # features in the first group, at least


@dataclass(frozen=True)
class Question:
    """Which common set of at most s features of a core is best, and how long to look."""

    a: np.ndarray  # (n, n) covariance of the core
    k: int
    s: int
    pads: np.ndarray  # what features outside the core are worth: none, or the s largest
    best: np.ndarray  # the best set known, in the core
    value: float  # what it is worth
    tol: float
    work: float  # about nanoseconds of one core
    max_nodes: int | None
    monitor: Monitor
    leaf: int = LEAF


@dataclass(frozen=True)
class Proof:
    """The bound, its log, and the best set met."""

    bound: float
    log: list[dict[str, Any]]
    best: np.ndarray
    value: float
    nodes: int
    complete: bool


@dataclass
class _Node:
    state: State
    record: dict[str, Any]
    position: int
    cut: Cut
    bound: float
    share: np.ndarray  # of the relaxation


class Search:
    """The open nodes, the best set and the log."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.best, self.value = question.best, question.value
        self.log, self.frontier = ProofLog(keep=True), Frontier[_Node]()
        self.nodes, self.spent = 0, 0.0
        self.stuck: list[_Node] = []  # with nothing left to branch on

    @property
    def settled(self) -> float:
        """The t at which nodes are settled; a little more is claimed."""
        return self.value * (1 + margins.SETTLED * self.question.tol)

    def run(self) -> Proof:
        asked, n = self.question, len(self.question.a)
        state = State(np.ones(n, bool), np.zeros(n, bool), asked.s, asked.pads)
        position, record = self.log.node(-1, "root", [])
        self._look(state, record, position, None)
        while len(self.frontier) and not self._ended():
            node = self.frontier.pop()
            if node.bound <= self.settled:
                self.log.close(node.record, node.cut)
            elif node.state.free.size:
                self._branch(node)
            else:
                self.stuck.append(node)
        left = [*self.frontier, *self.stuck]
        for node in left:
            self.log.close(node.record, node.cut)
        claimed = self.value * (1 + margins.CLAIMED * asked.tol)
        highest = max((node.bound for node in left), default=0.0)
        outside = float(asked.pads.sum())  # of sets that have nothing in the core
        bound = max(claimed, max(highest, outside) * (1 + margins.OPEN * asked.tol))
        log = self.log.steps({"step": "problem", "bound": bound})
        return Proof(bound, log, self.best, self.value, self.nodes, not left)

    def _ended(self) -> bool:
        asked = self.question
        out = asked.max_nodes is not None and self.nodes >= asked.max_nodes
        return out or self.spent >= asked.work or asked.monitor.stopped is not None

    def _branch(self, node: _Node) -> None:
        """Replace a node by two, with and without the feature that is shared most evenly."""
        free = node.state.free
        j = int(free[np.argmin(np.abs(node.share[free] - 0.5))])
        node.record["end"] = "branch"
        for side in ("in", "out"):
            alive, forced = node.state.alive.copy(), node.state.forced.copy()
            (forced if side == "in" else alive)[j] = side == "in"
            position, record = self.log.node(node.position, side, [j])
            self._look(replace(node.state, alive=alive, forced=forced), record, position, node.cut)

    def _look(self, state: State, record: dict[str, Any], position: int, known: Cut | None) -> None:
        """Settle a node, or leave it open with the best cut for it."""
        self.nodes += 1
        if not state.alive.any():
            record["end"] = "empty"
            return
        if self._is_leaf(state):
            self._leaf(state, record)
            return
        if known is not None and state.bound(known) <= self.settled:
            self.log.close(record, known)
            return
        found = self._relaxed(state, None)
        self._improve(state, found.share)
        cut = self._cut(state, found.L)
        cut = known if cut is None or (known and state.bound(known) < state.bound(cut)) else cut
        assert cut is not None
        state = self._without(state, cut, record)
        state = self._thinned(state, found.share, record)
        if self._is_leaf(state):
            self._leaf(state, record)
        elif state.bound(cut) <= self.settled:
            self.log.close(record, cut)
        else:
            bound = state.bound(cut)
            self.frontier.push(_Node(state, record, position, cut, bound, found.share), bound)

    def _is_leaf(self, state: State) -> bool:
        free, room = state.free.size, state.room
        few = free <= room or room <= 0 or comb(free, room) <= self.question.leaf
        return few and (room <= 0 or not state.pads.size)

    def _leaf(self, state: State, record: dict[str, Any]) -> None:
        record["end"] = "leaf" if state.room >= 0 else "empty"
        if state.room < 0:
            return
        forced = np.flatnonzero(state.forced)
        chosen = list(combinations(state.free, min(state.room, state.free.size)))
        sets = np.array([[*forced, *one] for one in chosen], dtype=np.intp)
        self.spent += 2e4 * len(sets)
        if sets.size:
            self._try(np.sort(sets, axis=1))

    def _try(self, sets: np.ndarray) -> None:
        """Keep the best of these sets, all of one size, if it is better than the best known."""
        a, k = self.question.a, self.question.k
        values = np.linalg.eigvalsh(a[sets[:, :, None], sets[:, None, :]])[:, -k:].sum(axis=1)
        i = int(np.argmax(values))
        if values[i] > self.value:
            self.best, self.value = sets[i], float(values[i])

    def _improve(self, state: State, share: np.ndarray) -> None:
        """Round a relaxation to a set."""
        inside = np.where(state.forced, 2.0, np.where(state.alive, share, -1.0))
        order = np.argsort(-inside, kind="stable")
        self._try(np.sort(order[: min(self.question.s, int(state.alive.sum()))])[None])

    def _relaxed(self, state: State, group: np.ndarray | None) -> Relaxed:
        """Return the relaxation on the features that are alive, its shares by those of the core."""
        asked, alive = self.question, np.flatnonzero(state.alive)
        own = asked.a[np.ix_(alive, alive)]
        inside = None if group is None else group[alive]
        sets = Sets(own, asked.k, asked.s, state.forced[alive], asked.pads, inside)
        found = relaxed(sets, self.settled)
        share = np.zeros(len(asked.a))
        share[alive] = found.share
        self.spent += found.iterations * (2.0 * alive.size**3 + 1.5e4 * alive.size)
        return replace(found, share=share)

    def _cut(self, state: State, L: np.ndarray) -> Cut | None:
        alive, asked = np.flatnonzero(state.alive), self.question
        return proved_cut(asked.a[np.ix_(alive, alive)], alive, L, asked.k, len(asked.a))

    def _without(self, state: State, cut: Cut, record: dict[str, Any]) -> State:
        """Fix the features that a cut puts in or out."""
        out, into = state.settled(cut, self.settled)
        if not out.size + into.size or state.bound(cut) <= self.settled:
            return state
        free = np.arange(len(state.alive))
        self.log.fixed(record, cut, free, out, into)
        alive, forced = state.alive.copy(), state.forced.copy()
        alive[out], forced[into] = False, True
        return replace(state, alive=alive, forced=forced)

    def _thinned(self, state: State, share: np.ndarray, record: dict[str, Any]) -> State:
        """Put rarely used features out together."""
        free = state.free
        rare = free[np.argsort(share[free], kind="stable")]
        rare = rare[share[rare] < RARE]
        for _ in range(ATTEMPTS):
            others = free.size + state.pads.size - rare.size
            if rare.size < WORTHWHILE or not 1 < state.room <= others:
                break
            group = np.zeros(len(share), dtype=bool)
            group[rare] = True
            cut = self._cut(state, self._relaxed(state, group).L)
            before = state
            state = state if cut is None else self._without(state, cut, record)
            rare = rare[: rare.size // 2]
            if state is not before:
                break
        return state
