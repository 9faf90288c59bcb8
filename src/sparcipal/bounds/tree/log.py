"""Bound "tree"; statement and proof: docs/methods/tree.rst.

The proof is a list of steps that the checker replays.

- `problem` (first): s, nonnegative, prices, the bound that is claimed, twins, the unit: u of every
  certificate is to be multiplied by it, forced features, and pads: what row i pays for a feature
  outside.
- `split`: a certificate. `features`, and `u`, `r` as packed upper triangles in single precision; or
  `clip` (U = clip(A, -rho, rho), R = 0; min(A, rho) for x >= 0); or `rank_one` (U = vv').
- `node`: `parent` (position of a node in the list, -1 for the root), `side` and `moved` say how its
  supports differ from the parent's: "in" (moved features are forced), "out" (moved features are
  excluded: the branching feature and its twins), "shrink" (one feature of a full support is
  excluded). `passes` are rounds of fixing, each with the position of its `split` and the features
  that it puts `out` or `in`. `end` says how it was settled: "closed" by the bound of `split`,
  "empty" by contradiction, "leaf" by looking at all its supports, "alike" by sums over pairs of the
  free features `alike` and by looking at what they leave, "branch" by its two children,
  "shrink" by its children (x >= 0 only), "same" by another `node` with the same supports.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np


class Certificate(Protocol):
    """What settles nodes; a log stores where it came from."""

    @property
    def origin(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Proof:
    """The result of a branch and bound.

    Attributes
    ----------
    value, support
        The best support found, increasing, and lambda_max of its block less its prices (for
        nonnegative weights, the value of the nonnegative vector found there).
    bound
        No admissible support has a larger value than this; rounding is included.
    status
        "optimal" when the bound is within the tolerance; otherwise what ended the search: "nodes"
        (any counted budget), "time", "user", "memory", or "enough" (a better support was met).
    nodes, n_eigen, work
        Nodes looked at, eigendecompositions, and about how many nanoseconds of one core it took.
    eliminated
        Features that the root proved to be in no better solution.
    log
        The proof as data; empty when it was not kept.
    touch
        When the log speaks of a core only: the certificate for supports that leave the core.
    listed
        Supports above the level of a listing; the bound is that of all others.
    again
        What the proof for a neighbouring s may begin with (its `start`); not part of the proof.
    """

    value: float
    support: np.ndarray
    bound: float
    status: str
    nodes: int
    n_eigen: int
    eliminated: int
    log: list[dict]
    touch: dict[str, Any] | None = None
    again: Any = field(default=None, compare=False, repr=False)
    work: float = 0.0
    listed: tuple[np.ndarray, ...] = ()

    def data(self) -> dict[str, Any]:
        """Return everything needed to replay the proof."""
        if self.touch is None:
            return {"log": self.log}
        return {"log": self.log, "touch": self.touch}


class ProofLog:
    """Collects steps; `keep=False` counts but stores nothing."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.size = self._unkept = 0
        self._steps: list[dict[str, Any]] = [{}]
        self._positions: dict[int, int] = {}
        self._origins: list[dict[str, Any]] = []  # kept alive, so that ids stay unique

    def node(self, parent: int, side: str, moved: Any) -> tuple[int, dict[str, Any]]:
        """Append a node; return its position and its record, which the caller completes."""
        record: dict[str, Any] = {
            "step": "node",
            "parent": parent,
            "side": side,
            "moved": np.asarray(moved, dtype=np.int32),
            "passes": [],
            "end": "",
        }
        if not self.keep:
            self._unkept += 1  # positions identify nodes even if the log is not kept
            return self._unkept, record
        self._steps.append(record)
        self.size += 300
        return len(self._steps) - 1, record

    def split(self, split: Certificate) -> int:
        """Return the position of a certificate, which is stored at its first use."""
        if not self.keep:
            return -1
        key = id(split.origin)
        if key not in self._positions:
            self._steps.append({"step": "split", **split.origin})
            self._positions[key] = len(self._steps) - 1
            self._origins.append(split.origin)
            self.size += sum(a.nbytes for a in split.origin.values() if isinstance(a, np.ndarray))
        return self._positions[key]

    def inherit(self, split: Certificate) -> None:
        """Let position 0 stand for the certificate of the root of this subtree."""
        self._positions[id(split.origin)] = 0
        self._origins.append(split.origin)

    def known(self, split: Certificate) -> int | None:
        """Return the position of a certificate, or None before its first use."""
        return self._positions.get(id(split.origin))

    def record(self, position: int) -> dict[str, Any]:
        return self._steps[position]

    def graft(self, position: int, split: Certificate, other: ProofLog) -> list[int]:
        """Append the log of the subtree below the node at `position`, whose certificate is `split`.

        Returns the new position of each old one; old position 0 was that certificate and 1 the
        node itself.
        """
        if not self.keep:
            return []
        own, added = other._steps[1], other._steps[2:]
        used = any(0 in _certificates(step) for step in other._steps[1:])
        place = [self.split(split) if used else -1, position]
        place += range(len(self._steps), len(self._steps) + len(added))
        for step in other._steps[1:]:
            _move(step, place)
        mine = self._steps[position]
        passes = [*mine["passes"], *own["passes"]]
        mine.update(own, parent=mine["parent"], side=mine["side"], moved=mine["moved"])
        mine["passes"] = passes
        self._steps += added
        self.size += other.size
        return place

    def adopt(self, split: Certificate, position: int) -> None:
        """Record that a certificate is in the log already, at `position`."""
        self._positions[id(split.origin)] = position
        self._origins.append(split.origin)

    def fixed(
        self,
        record: dict[str, Any],
        split: Certificate,
        features: np.ndarray,
        out: np.ndarray,
        into: np.ndarray,
    ) -> None:
        record["passes"].append(
            {
                "split": self.split(split),
                "out": features[out].astype(np.int32),
                "in": features[into].astype(np.int32),
            }
        )

    def close(self, record: dict[str, Any], split: Certificate) -> None:
        record["end"], record["split"] = "closed", self.split(split)

    def steps(self, header: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the finished list, which is empty when nothing was kept."""
        if not self.keep:
            return []
        return [header, *self._steps[1:]]


def _certificates(step: dict[str, Any]) -> set[int]:
    """Return the positions of the certificates that a step refers to."""
    if step["step"] != "node":
        return set()
    return {step.get("split", -1), *(fixed["split"] for fixed in step["passes"])}


def _move(step: dict[str, Any], place: list[int]) -> None:
    """Replace each position p that a step refers to by place[p]."""
    if step["step"] != "node":
        return
    if step["parent"] >= 0:
        step["parent"] = place[step["parent"]]
    for fixed in step["passes"]:
        fixed["split"] = place[fixed["split"]]
    for name in ("split", "node"):
        if name in step:
            step[name] = place[step[name]]
