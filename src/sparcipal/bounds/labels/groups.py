"""Bound "labels"; statement and proof: docs/methods/labels.rst.

A group stands for r components whose supports contain F and avoid B. With a pair split (U, V) on a
core C, pads p and prices beta, W_ab = V_ab - beta_b, row a of M = A - U + Diag(d) pays

    d_a = -beta_a + sum_{b in F} W_ab + the q_a largest of {W_ab : b in C, not in F} and q_a copies
          of p_a,

q_a = s - |F| for a in F and s - |F| - 1 otherwise; theta_a is the last of the q_a (p_a if there is
none), which is what the row can pay for any feature outside the core. The values less the prices of
the r components sum to no more than the r largest of the eigenvalues of M, of the numbers m_b of
rows.py and, if F is empty, of zeros for components that are empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...numerics.eigen import largest_eigenvalues
from ..kyfan.certificate import proved_sum
from ..pairsplit import Part, Split, split_matrix
from .rows import Rows


@dataclass(frozen=True)
class Group:
    """A certificate for `count` components; features are positions in the field."""

    count: int
    forced: np.ndarray  # increasing
    banned: np.ndarray  # (h,) bool
    split: Split  # on the core, which holds all of `forced` and nothing banned
    pad: np.ndarray  # (n,) of single precision, positive if there are features outside

    @property
    def core(self) -> np.ndarray:
        return self.split.features

    def part(self, rows: Rows, price: np.ndarray) -> Part:
        core = self.core
        a = rows.a[np.ix_(core, core)]
        forced = np.isin(core, self.forced)
        return Part(core, a, forced, price[core], rows.q + 1, rows.nonnegative, self.pad)

    def without(self, feature: int) -> Group:
        """Return the same certificate for components that avoid one more feature."""
        banned = self.banned.copy()
        banned[feature] = True
        keep = self.core != feature
        return replace(
            self, banned=banned, split=self.split.on(self.core[keep]), pad=self.pad[keep]
        )

    def forcing(self, feature: int) -> Group:
        """Return the same certificate for components that contain one more feature."""
        return replace(self, forced=np.union1d(self.forced, [feature]))


@dataclass(frozen=True)
class Evaluated:
    """What a group's certificate amounts to at given prices."""

    matrix: np.ndarray
    theta: np.ndarray
    level: float  # the last eigenvalue that counts
    violators: np.ndarray  # features outside with m_b above the level
    heights: np.ndarray  # their m_b
    total: float  # the sum of the largest, as LAPACK computes it
    free: bool

    def proved(self, count: int) -> float:
        """Return a proved bound on the sum of the `count` largest."""
        zeros = np.zeros(count if self.free else 0)
        rivals = np.concatenate([self.heights, zeros])
        return float(proved_sum(self.matrix, rivals, count))


def evaluated(group: Group, rows: Rows, price: np.ndarray, near: float = 1.0) -> Evaluated:
    """Evaluate a group at prices on the field; violators are those above `near` times its level."""
    part = group.part(rows, price)
    found = split_matrix(part, group.split)
    w = largest_eigenvalues(found.matrix, group.count)
    level = float(w[0]) if w.size == group.count else -np.inf
    low = min(level, near * level)
    features, heights = rows.heights(group.core, found.level, price, group.banned, low)
    counted = heights > level
    zeros = np.zeros(group.count if group.forced.size == 0 else 0)
    every = np.sort(np.concatenate([w, heights[counted], zeros]))
    total = float(every[-group.count :].sum())
    free = group.forced.size == 0
    return Evaluated(found.matrix, found.level, level, features, heights, total, free)


def record(group: Group, prices: int, field: np.ndarray) -> dict[str, Any]:
    """Return the data of a group's certificate at the prices of that number."""
    core, n = group.core, group.core.size
    upper = np.triu_indices(n, 1)
    return {
        "prices": prices,
        "count": group.count,
        "forced": field[group.forced].astype(np.int32),
        "banned": np.sort(field[group.banned]).astype(np.int32),
        "core": field[core].astype(np.int32),
        "u": group.split.u[upper].astype(np.float32),
        "r": group.split.r[upper].astype(np.float32),
        "pads": group.pad.astype(np.float32),
    }
