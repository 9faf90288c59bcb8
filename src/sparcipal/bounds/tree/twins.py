"""Bound "tree"; statement and proof: docs/methods/tree.rst.

Duplicated features: when j is excluded, features that are multiples of j go with it.

If row i of A is c times row j with |c| <= 1, moving the weight of i to j (times c) keeps x'Ax and
does not lengthen x. So a support that contains i but not j is no better than the one with j in
place of i, provided that j costs no more than i (and c > 0 when x >= 0): among supports without j
those with i need not be looked at. This has to hold for the whole row; two correlations of 1 are
not enough. Rows that are multiples up to rounding are replaced by exact multiples, and what that
changes is added to the bound: |x'(A - A~)x| <= s max |A - A~|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...numerics import margins
from ..pairsplit.certificate import Part

CLOSE = 1e-13  # largest relative difference between rows that count as multiples


@dataclass(frozen=True)
class Twins:
    matrix: np.ndarray  # (p, p) with exact multiples
    leader_of: np.ndarray  # (p,) the feature of which this one is a multiple (often itself)
    factor: np.ndarray  # (p,) the multiple, |factor| <= 1
    error: float  # to be added to every bound

    @property
    def any(self) -> bool:
        return bool((self.leader_of != np.arange(self.leader_of.size)).any())

    def record(self) -> dict[str, np.ndarray]:
        """Return the fields that a proof stores."""
        if not self.any:
            return {}
        moved = np.flatnonzero(self.leader_of != np.arange(self.leader_of.size))
        return {
            "features": moved.astype(np.int32),
            "leaders": self.leader_of[moved].astype(np.int32),
            "factors": self.factor[moved],
        }

    def leader(self, part: Part, j: int, price: np.ndarray) -> int:
        """Return the free feature that dominates most of j's free twins (positions in the part)."""
        group = self._free_group(part, j)
        if group.size < 2:
            return j
        features = part.features[group]
        order = np.lexsort((features, price[features], -np.abs(self.factor[features])))
        return int(group[order[0]])

    def dominated(self, part: Part, j: int, price: np.ndarray) -> np.ndarray:
        """Return j and its free twins that may be excluded with it (positions)."""
        group = self._free_group(part, j)
        features, lead = part.features[group], part.features[j]
        smaller = np.abs(self.factor[features]) <= abs(self.factor[lead])
        follow = smaller & (price[features] >= price[lead])
        return np.union1d(group[follow], [j])

    def _free_group(self, part: Part, j: int) -> np.ndarray:
        same = self.leader_of[part.features] == self.leader_of[part.features[j]]
        return np.flatnonzero(same & ~part.forced)


def no_twins(a: np.ndarray) -> Twins:
    """Return the Twins in which every feature is on its own."""
    return Twins(a, np.arange(a.shape[0]), np.ones(a.shape[0]), 0.0)


def equal_twins(a: np.ndarray, s: int, nonnegative: bool, forced: np.ndarray) -> Twins:
    """Group the features that can be exchanged: free ones whose rows are the same up to sign."""
    return find_twins(a, s, nonnegative, apart=forced, equal=True)


def find_twins(
    a: np.ndarray,
    s: int,
    nonnegative: bool,
    *,
    apart: np.ndarray | tuple[int, ...] = (),
    equal: bool = False,
) -> Twins:
    """Group the features whose rows are multiples of one another, up to rounding.

    With `equal`, only rows that are the same up to sign count, and rounding is relative to the
    features themselves instead of the largest one. The features `apart` are in no group.
    """
    p = a.shape[0]
    diagonal = np.diagonal(a)
    scale = float(np.abs(a).max(initial=0.0))
    units = np.sqrt(np.abs(diagonal)) if equal else np.full(p, np.sqrt(scale))
    leader_of, factor = np.arange(p), np.ones(p)
    order = np.argsort(-diagonal, kind="stable")
    taken = np.zeros(p, dtype=bool)
    taken[list(apart)] = True
    suspects = _suspects(a, diagonal)
    for j in order:
        if taken[j] or diagonal[j] <= 0.0 or not suspects[j]:
            continue
        for i in np.flatnonzero(
            np.abs(a[j]) >= (1 - 1e-9) * np.sqrt(np.abs(diagonal * diagonal[j]))
        ):
            if i == j or taken[i] or diagonal[i] <= 0.0 or leader_of[i] != i:
                continue
            c = a[i, j] / diagonal[j]
            c = float(np.sign(c)) if abs(abs(c) - 1.0) <= 1e-12 else float(c)
            wrong_sign = nonnegative and c < 0.0
            other = equal and abs(c) != 1.0
            far = bool((np.abs(a[i] - c * a[j]) > CLOSE * units * units[j]).any())
            if wrong_sign or other or abs(c) > 1.0 or far:
                continue
            leader_of[i], factor[i], taken[i] = j, c, True
        taken[j] = True
    if (leader_of == np.arange(p)).all():
        return Twins(a, leader_of, factor, 0.0)
    exact = a[np.ix_(leader_of, leader_of)] * np.outer(factor, factor)
    error = s * (float(np.abs(exact - a).max()) + margins.multiples() * scale)
    return Twins(exact, leader_of, factor, 4 * error)


def _suspects(a: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Return the features whose correlation with another one is about 1."""
    root = np.sqrt(np.maximum(diagonal, 0.0))
    close = np.abs(a) >= (1 - 1e-9) * np.outer(root, root)
    np.fill_diagonal(close, False)
    return close.any(axis=1)
