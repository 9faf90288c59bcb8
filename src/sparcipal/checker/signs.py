"""Nonnegative components: whether a support may be full, and what no vector on one exceeds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .arithmetic import Arithmetic, Numbers
from .budget import Budget

STEPS = 20  # of a power iteration, for a guess
TINY = 1e-6  # loadings that count as none, for a guess


def none_above(
    block: np.ndarray, x: np.ndarray, t: Numbers, ar: Arithmetic, budget: Budget
) -> bool:
    """Return whether it is proved that no unit y >= 0 has y'By above t (docs/methods/listing.rst).

    On each part of the support by a block with larger entries, or because the best y is on a
    smaller part. The vector x says where to look, and decides nothing.
    """
    whole = tuple(range(block.shape[0]))
    todo, seen = [whole], {whole}
    while todo:
        part = todo.pop()
        own = np.array(part)
        budget.work(1e5 + 20.0 * own.size**3, "the parts of a support")
        inner = block[np.ix_(own, own)]
        if any(ar.below(inner + ar.array(more), t) for more in _raises(ar.floats(inner), x[own])):
            continue
        if own.size == 1 or not no_positive_eigenvector(inner, t, ar):
            return False
        smaller = {part[:i] + part[i + 1 :] for i in range(own.size)} - seen
        seen |= smaller
        todo += sorted(smaller)
    return True


def _raises(near: np.ndarray, x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield matrices without a negative entry, some of which lower the largest eigenvalue."""
    yield np.zeros_like(near)
    yield _beside(near, x)
    yield np.maximum(-near, 0.0)
    top = np.linalg.eigh(near)[1][:, -1]
    y = np.maximum(top if top.sum() > 0 else -top, 0.0)
    for _ in range(STEPS):
        image = np.maximum(near @ y, 0.0)
        y = image / max(float(np.linalg.norm(image)), 1e-300)
    yield _beside(near, np.where(y > 1e-3, y, 0.0))


def _beside(near: np.ndarray, x: np.ndarray) -> np.ndarray:
    used = x > TINY
    more = np.maximum(-near, 0.0)
    more[np.ix_(used, used)] = 0.0
    if used.any():
        y = x[used]
        short = np.maximum(-(near[np.ix_(~used, used)] @ y), 0.0) / float(y @ y)
        across = np.outer(short, y)
        more[np.ix_(~used, used)], more[np.ix_(used, ~used)] = across, across.T
    return more


def no_positive_eigenvector(block: np.ndarray, t: Numbers, ar: Arithmetic) -> bool:
    """Return whether it is proved that no x > 0 is an eigenvector with an eigenvalue above t.

    Computed eigenvectors are off by an angle of residual / gap (Davis and Kahan 1970).
    """
    n = block.shape[0]
    w, q = np.linalg.eigh(ar.floats(block))
    size = float(np.abs(w).max())
    above = int(np.count_nonzero(w > float(ar.floats(t))))
    if above == 0:
        return ar.below(block, t)
    if above == n:
        return False
    next_value = float(w[n - above - 1])
    low = next_value + 1e-10 * size
    values, vectors = ar.array(w[n - above :]), ar.array(q[:, n - above :])
    vectors = vectors / ar.sqrt((vectors * vectors).sum(axis=0))
    # at most `above` eigenvalues exceed `low`
    rest = block - ar.matmul(vectors * (values - next_value), vectors.T)
    if not (ar.at_most(low, t) and ar.below(rest, low - 8 * n * ar.eps * size)):
        return False
    apart = ar.matmul(block, vectors) - vectors * values
    residual = ar.sqrt((apart * apart).sum(axis=0)) + 8 * n * ar.eps * size
    for g in range(above):
        gap = values[g] - low
        for h in (h for h in range(above) if h != g):
            gap = ar.minimum(gap, abs(values[h] - values[g]) - residual[h] - residual[g])
        if not ar.at_most(1e-300, gap):
            return False
        angle = 2 * residual[g] / gap + 8 * n * ar.eps
        guess = ar.floats(vectors[:, g])
        signs = vectors[int(guess.argmax()), g], -vectors[int(guess.argmin()), g]
        if not all(ar.at_most(angle, sign) for sign in signs):
            return False
    return True
