"""Bound "tree"; docs/methods/tree.rst, and for lists docs/methods/listing.rst.

Every support above a level, by the branch and bound that otherwise proves one optimal.

Nodes are settled at a level t below the optimum. A leaf is settled when each of its supports is
proved to be at most t or is on the list; so what the log proves is that every support above t is
contained in one of the list, up to an exchange of features whose rows are the same up to sign.
"""

from __future__ import annotations

from math import comb

import numpy as np

from ...numerics import margins
from ..cheap import proved_margins
from ..pairsplit import Split, prove_below
from .frontier import Node
from .leaf import few_supports
from .log import Proof
from .question import TreeQuestion
from .search import Search
from .twins import Twins, equal_twins

FEW = 3000  # supports of a node that are looked at together
FEWER = 12  # supports that may be listed together beyond the limit of the list


def list_above(A: np.ndarray, s: int, question: TreeQuestion) -> Proof:
    """List all supports of value above `question.level`, and prove that none is missing.

    The bound of the proof is the level that was reached: a little above the one asked for, or more
    where a budget ended.
    """
    return Listing(A, s, question).prove()


class Listing(Search):
    """The state of a branch and bound at a level of its own, and the supports met above it."""

    def __init__(self, A: np.ndarray, s: int, question: TreeQuestion) -> None:
        assert question.level is not None
        super().__init__(A, s, question)
        self.level = question.level / self.unit
        self.attempts = 0  # features that are alike prove what they leave, and list nothing
        self.listed: dict[bytes, np.ndarray] = {}

    def start(self, incumbent: tuple[np.ndarray, float] | None) -> None:
        """Begin the list with the answer's own support, which is on it wherever the list ends."""
        super().start(incumbent)
        self._list(self.support)

    def find_twins(self, a: np.ndarray) -> Twins:
        return equal_twins(a, self.s, self.nonnegative, self.forced)

    @property
    def claim(self) -> float:
        return self.level + margins.CLAIMED * self.tol * self.scale_of_value

    @property
    def threshold(self) -> float:
        return self.level + margins.SETTLED * self.tol * self.scale_of_value

    def run(self, start: Split | None) -> str:
        root = self._root(start)
        if not self._settle(root) and not self._improve_root(root):
            self.open.push(root, root.guess)
        return self.search() or "optimal"

    def _leaf(self, node: Node) -> bool:
        """Look at all supports of a node with few of them; True if each is below or listed."""
        part = node.part
        free = part.n - part.n_forced
        if comb(free, min(part.s - part.n_forced, free)) > FEW:
            return False
        local = np.array(few_supports(part, False, FEW))  # (m, size)
        self.work += 2e3 * local.size
        open_ = local[~self._below(part.a, local)]
        room = self.question.most - len(self.listed)
        if open_.shape[0] > max(room, FEWER):
            return False  # the best ones of them first
        supports = [part.features[row] for row in open_]
        if self.nonnegative and not all(map(self._reaches, supports)):
            return False
        for support in supports:
            self._list(support)
        node.record["end"] = "leaf"
        return True

    def _list(self, support: np.ndarray) -> None:
        """Add a support, unless one is listed that differs only by exchanges of equal features."""
        first = self._first_of_its_kind(support)
        self.listed[first.astype(np.int32).tobytes()] = first

    def _first_of_its_kind(self, support: np.ndarray) -> np.ndarray:
        if not self.twins.any:
            return support
        leaders, counts = np.unique(self.twins.leader_of[support], return_counts=True)
        members = [
            np.flatnonzero(self.twins.leader_of == leader)[:count]
            for leader, count in zip(leaders, counts)
        ]
        return np.sort(np.concatenate(members))

    def _below(self, a: np.ndarray, supports: np.ndarray) -> np.ndarray:
        """Return which supports are proved to lie at or below the threshold."""
        blocks = a[supports[:, :, None], supports[:, None, :]]
        tops = np.linalg.eigvalsh(blocks)[:, -1]
        proved = tops + proved_margins(blocks, tops) <= self.threshold
        for i in np.flatnonzero(~proved & (tops <= self.threshold)):
            proved[i] = prove_below(blocks[i], self.threshold)
        return np.asarray(proved)

    def _reaches(self, support: np.ndarray) -> bool:
        """Return whether a nonnegative vector on the support is above the threshold."""
        return bool(self.rounder.evaluate(support)[0] > self.threshold)

    def _undecided(self, node: Node) -> None:
        """List the one support that is left where neither side can be shown."""
        self._list(node.part.features)
        node.record["end"] = "leaf"

    def _out_of_budget(self) -> str | None:
        if len(self.listed) > self.question.most:
            return "more"
        return super()._out_of_budget()

    def lists(self) -> tuple[np.ndarray, ...]:
        """Return the listed supports that are contained in no other, in a fixed order."""
        found = sorted(self.listed.values(), key=lambda s: (-s.size, s.tolist()))
        kept: list[set[int]] = []
        for support in found:
            own = set(support.tolist())
            if support.size == found[0].size or not any(own <= other for other in kept):
                kept.append(own)
        return tuple(np.array(sorted(own), dtype=np.intp) for own in kept)
