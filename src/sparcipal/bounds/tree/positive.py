"""Bound "tree"; statement and proof: docs/methods/tree.rst.

This module tests whether a strictly positive x on one support can be a solution.

A maximiser of x'Bx over unit x >= 0 that is positive everywhere is an eigenvector of B. If every
eigenvector of B with an eigenvalue above t has entries of both signs, some x_i is zero and the
support may shrink. Computed eigenvectors are compared with their distance to the exact ones: with
residual rho and distance gap to the other eigenvalues the angle is at most rho / gap (Davis and
Kahan 1970).
"""

from __future__ import annotations

import numpy as np

from ...numerics import margins
from ..pairsplit.certificate import prove_below


def no_interior_solution(block: np.ndarray, t: float) -> bool:
    """Return True if provably no x > 0 is an eigenvector of `block` with eigenvalue above t."""
    n = block.shape[0]
    w, q = np.linalg.eigh(block)
    size = float(np.abs(w).max())
    above = int(np.count_nonzero(w > t - 1e-9 * size))
    if above == 0 or above == n:
        return False
    next_value = float(w[n - above - 1])
    low = next_value + 1e-10 * size
    upper, vectors = w[-above:], q[:, -above:]
    # at most `above` exact eigenvalues exceed `low`
    rest = block - (vectors * (upper - next_value)) @ vectors.T
    if low >= t or not prove_below(rest, low - margins.eigenvectors(n) * size):
        return False
    residual = (
        np.linalg.norm(block @ vectors - vectors * upper, axis=0) + margins.eigenvectors(n) * size
    )
    for g in range(above):
        others = np.delete(upper, g)
        distance = np.abs(others - upper[g]) - np.delete(residual, g) - residual[g]
        gap = min(float(distance.min(initial=np.inf)), float(upper[g] - low))
        if gap <= 0.0:
            return False
        angle = 2.0 * float(residual[g]) / gap + margins.eigenvectors(n)
        if not (vectors[:, g].max() > angle and vectors[:, g].min() < -angle):
            return False
    return True
