"""Bound "labels"; statement and proof: docs/methods/labels.rst.

Supports of a group that leave its core. Each of their rows inside pays for at least one feature
outside, at a pad p_a: so it pays for one place less of the others. Where that and the m_b with p_a
for theta stay below a level, only supports inside the core are left for branch and bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...numerics.eigen import largest_eigenvalues
from ...numerics.margins import SAFETY, claim
from ...problem.monitor import Monitor
from ..kyfan.certificate import proved_sum
from ..pairsplit import split_matrix
from .groups import Group, evaluated
from .optimise import LeafOptimiser
from .rows import Rows
from .start import Start, extended, single

LEAST = 0.05  # pads, as a fraction of what the rows of a certificate pay, at least
BISECTIONS = 7
# smoothing and steps; whether features may join the core then
STEPS = ((0.0, 0, False), (3e-4, 40, True), (1e-4, 30, True), (1e-4, 30, True))
MOST_NEW = 100  # features that may join at once
NONE = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class Touch:
    """A certificate for supports that leave the core, with pads chosen for them."""

    group: Group
    pads: np.ndarray
    bound: float


def touching(
    start: Start, group: Group, price: np.ndarray, target: float, monitor: Monitor
) -> Touch | None:
    """Return a certificate that supports which leave the core are worth at most `target`.

    The core may grow for it; None where there is nothing outside, or no certificate is found.
    """
    rows = start.rows
    for mu, steps, grows in STEPS:
        if start.s < 2 or group.core.size + int(group.banned.sum()) == rows.cov.n_features:
            return None
        if steps:
            optimiser = LeafOptimiser(rows, [group], price, NONE, start.value, start.k)
            optimiser.run(mu, steps, -np.inf, monitor)
            group = optimiser.certificates()[0]
        pads = _pads(start, group, price, target)
        if pads is None:
            continue
        found = rows.heights(group.core, pads, price, group.banned, target)[0]
        if found.size == 0:
            matrix = touch_matrix(group, pads, rows, price)
            return Touch(group, pads, float(proved_sum(matrix, np.array([target]), 1)))
        if not grows:
            continue
        if (found >= price.size).any() or found.size > MOST_NEW or monitor.stopped:
            return None
        group = extended(start, group, np.sort(found), price)
    return None


def _pads(start: Start, group: Group, price: np.ndarray, target: float) -> np.ndarray | None:
    """Return the largest pads at which the matrix of a certificate is below the target."""
    theta = np.maximum(evaluated(group, start.rows, price).theta, 1e-9 * start.value)

    def below(fraction: float) -> bool:
        matrix = touch_matrix(group, single(fraction * theta), start.rows, price)
        return bool(largest_eigenvalues(matrix, 1)[-1] <= target - 1e-9 * abs(target))

    if not below(LEAST):
        return None
    low, high = LEAST, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if below(middle) else (low, middle)
    return single(low * theta)


def touch_matrix(group: Group, pads: np.ndarray, rows: Rows, price: np.ndarray) -> np.ndarray:
    """Return M of the supports that have a feature outside, for which each row pays its pad."""
    part = replace(group.part(rows, price), s=rows.q, pad=pads)
    matrix: np.ndarray = split_matrix(part, group.split).matrix
    matrix[np.diag_indices(matrix.shape[0])] += pads * (1 + SAFETY * claim())
    return matrix


def touch_record(touch: Touch) -> dict[str, Any]:
    """Return the data of a certificate for supports that leave the core."""
    group = touch.group
    upper = np.triu_indices(group.core.size, 1)
    return {
        "u": group.split.u[upper].astype(np.float32),
        "r": group.split.r[upper].astype(np.float32),
        "pads": touch.pads.astype(np.float32),
    }
