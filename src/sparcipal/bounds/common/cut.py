"""Bound "common"; statement and proof: docs/methods/common.rst.

A cut: an inequality for the value of a set, value(T) <= base + sum of coefficients over T.

If A <= nu I + Z + BB' on the features of the cut, with nu >= 0 and Z = LL', base = k nu and the
coefficients are the diagonal of Z + BB'. L is stored in single precision; nu and B come from the
leading eigenvectors of A - Z, and a Cholesky factorisation proves them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...numerics import margins
from ...numerics.eigen import factorises, largest_eigenpairs
from ...numerics.margins import SAFETY


@dataclass(frozen=True)
class Cut:
    """An inequality that holds for the sets of some features."""

    features: np.ndarray  # (m,) increasing
    base: float
    coef: np.ndarray  # (n,) by the features of the core; infinite where the cut says nothing
    origin: dict[str, Any] = field(compare=False)  # what a proof stores of it


@dataclass(frozen=True)
class State:
    """The sets T with forced <= T <= alive and at most s features; the others of T, outside the
    core, are worth `pads` at most, the largest first."""

    alive: np.ndarray  # (n,) bool
    forced: np.ndarray  # (n,) bool
    s: int
    pads: np.ndarray

    @property
    def room(self) -> int:
        return self.s - int(np.count_nonzero(self.forced))

    @property
    def free(self) -> np.ndarray:
        """The features that may be in or out."""
        return np.flatnonzero(self.alive & ~self.forced)

    def bound(self, cut: Cut) -> float:
        """Return a bound on what a set is worth."""
        worth = -np.sort(-np.append(cut.coef[self.free], self.pads))[: self.room]
        return self._rounded_up(cut.base + float(cut.coef[self.forced].sum() + worth.sum()))

    def settled(self, cut: Cut, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return which free features are in no set, and which are in every set, worth more than
        t."""
        free, room = self.free, self.room
        own = cut.coef[free]
        order = -np.sort(-np.append(own, self.pads))
        before = cut.base + float(cut.coef[self.forced].sum())
        # the best with it, and the best without it: one more of those that follow takes its place
        last = order[room - 1] if room <= order.size else 0.0
        full = before + float(order[:room].sum())
        with_it = np.where(own >= last, full, full - last + own)
        follows = order[room] if room < order.size else 0.0
        without = np.where(own >= last, full - own + follows, full)
        out = self._rounded_up(with_it) <= t
        return free[out], free[(self._rounded_up(without) <= t) & ~out]

    def _rounded_up(self, total: Any) -> Any:
        return total * (1 + SAFETY * margins.sum_of(self.s + 4))


def proved_cut(a: np.ndarray, features: np.ndarray, L: np.ndarray, k: int, n: int) -> Cut | None:
    """Return the cut of LL' on the features, of which `a` is the covariance, in a core of n; None
    if it cannot be proved."""
    stored = L.astype(np.float32)
    if not np.isfinite(stored).all():
        return None
    L = stored.astype(np.float64)
    m, r = L.shape
    Z = L @ L.T
    M = a - Z
    w, q = largest_eigenpairs(M, min(k, m))
    nu = max(float(w[0]), 0.0) if k <= m else 0.0
    B = q * np.sqrt(np.maximum(w - nu, 0.0))
    rest = B @ B.T - M
    size = float(np.abs(np.diagonal(M)).sum()) + float((B * B).sum()) + (m + 1) * nu
    delta = margins.ky_fan(m, k) * (size + margins.TINY)
    for factor in (4.0, 64.0, 2.0**14):
        shifted = rest.copy()
        shifted[np.diag_indices(m)] += nu + factor * delta
        if factorises(shifted):
            break
    else:
        return None
    moved = np.diagonal(Z) * (1 + SAFETY * margins.moved(r))
    slack = SAFETY * (k + 1) * margins.moved(r) * (np.abs(np.diagonal(a)) + moved)
    coef = np.full(n, np.inf)
    coef[features] = moved + np.square(B).sum(axis=1) * (1 + SAFETY * margins.sum_of(k + 4)) + slack
    origin = {"features": features.astype(np.int32), "L": stored}
    return Cut(features, k * (nu + (factor + 4) * delta), coef, origin)
