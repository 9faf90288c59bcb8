"""Nonnegative components: whether a support may be full."""

from __future__ import annotations

import numpy as np

from .arithmetic import Arithmetic, Numbers


def no_positive_eigenvector(block: np.ndarray, t: Numbers, ar: Arithmetic) -> bool:
    """Whether it is proved that no x > 0 is an eigenvector with an eigenvalue above t.

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
