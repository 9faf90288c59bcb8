"""Bound "tree"; statement and proof: docs/methods/tree.rst, and of whole supports listing.rst.

This module tests whether a strictly positive x on one support can be a solution, and what no x >= 0
on a support exceeds.

A maximiser of x'Bx over unit x >= 0 that is positive everywhere is an eigenvector of B. If every
eigenvector of B with an eigenvalue above t has entries of both signs, some x_i is zero and the
support may shrink. Computed eigenvectors are compared with their distance to the exact ones: with
residual rho and distance gap to the other eigenvalues the angle is at most rho / gap (Davis and
Kahan 1970).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...numerics import margins
from ..pairsplit.certificate import prove_below, proven_bound

PARTS = 300  # of a support, that are looked at before a looser bound has to do
CLOSE = 1e-10  # the part of the largest variance by which the optimum may lie below its bound
STEPS = 20  # of a power iteration, for a guess
TINY = 1e-6  # loadings that count as none, for a guess


def nonnegative_bound(block: np.ndarray, x: np.ndarray, scale: float) -> float:
    """Return a number that y'By is at most for all unit y >= 0; near x'Bx where x >= 0 is the best
    one.

    Entries that are added to the block raise y'By, and some of them its largest eigenvalue little.
    """
    near = float(x @ block @ x) + CLOSE * scale
    if _none_above(block, x, near):
        return near + CLOSE * scale  # so that other roundings of the same proof go through
    raised = [block + more for more in _raises(block, x)]
    tops = [float(np.linalg.eigvalsh(matrix)[-1]) for matrix in raised]
    best = int(np.argmin(tops))
    return proven_bound(raised[best], tops[best] + CLOSE * scale, scale)


def _none_above(block: np.ndarray, x: np.ndarray, t: float) -> bool:
    """Return whether y'By <= t is proved for all unit y >= 0: on each part by a raised block, or
    because its best y is on a smaller part."""
    whole = tuple(range(x.size))
    todo, seen = [whole], {whole}
    while todo:
        part = todo.pop()
        own = np.array(part)
        inner = block[np.ix_(own, own)]
        if any(prove_below(inner + more, t) for more in _raises(inner, x[own])):
            continue
        if own.size == 1 or len(seen) > PARTS or not no_interior_solution(inner, t):
            return False
        smaller = {part[:i] + part[i + 1 :] for i in range(own.size)} - seen
        seen |= smaller
        todo += sorted(smaller)
    return True


def _raises(block: np.ndarray, x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield nonnegative matrices that lower the largest eigenvalue when added to the block."""
    yield np.zeros_like(block)
    yield _raise_beside(block, x)
    yield np.maximum(-block, 0.0)
    y = np.linalg.eigh(block)[1][:, -1]
    y = np.maximum(y if y.sum() > 0 else -y, 0.0)
    for _ in range(STEPS):
        image = np.maximum(block @ y, 0.0)
        y = image / max(float(np.linalg.norm(image)), 1e-300)
    yield _raise_beside(block, np.where(y > 1e-3, y, 0.0))


def _raise_beside(block: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Make the rows outside the support of x orthogonal to x, and have nothing negative there."""
    used = x > TINY
    more = np.maximum(-block, 0.0)
    more[np.ix_(used, used)] = 0.0
    if used.any():
        y = x[used]
        short = np.maximum(-(block[np.ix_(~used, used)] @ y), 0.0) / float(y @ y)
        across = np.outer(short, y)
        more[np.ix_(~used, used)], more[np.ix_(used, ~used)] = across, across.T
    return more


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
