"""Bound "tree"; statement and proof: docs/methods/tree.rst.

This module chooses the feature to branch on when components of equal worth compete.

At good prices the best supports of several components tie, and the relaxed solution is a mixture of
them: the most fractional feature says little. A feature that belongs to one of them alone and
matters there splits the mixture. So both children of a candidate are estimated from the leading
eigenvectors Q of M: the charges drop by D as in fixing.py, and lambda_max(Q'(M - Diag D)Q) is about
what is left of the bound.
"""

from __future__ import annotations

import numpy as np

from ...numerics.eigen import largest_eigenpairs
from ..pairsplit.certificate import Part, Split, split_matrix
from .fixing import drops_in, drops_out

CANDIDATES = 24
RANK = 24  # leading eigenvectors in which children are estimated


def best_feature(part: Part, split: Split, z: np.ndarray) -> int:
    """Return the free feature (position) whose children have the lowest estimated bounds.

    `z` (n,) is the relaxed indicator of the support.
    """
    score = np.minimum(z, 1.0 - z)
    score[part.forced] = -np.inf
    order = np.argsort(-score, kind="stable")
    tried = order[: min(CANDIDATES, int(np.count_nonzero(score > 0.0)))]
    if tried.size < 2:
        return int(order[0])
    evaluated = split_matrix(part, split)
    w, q = largest_eigenpairs(evaluated.matrix, RANK)
    gone = np.zeros((tried.size, part.n))
    gone[np.arange(tried.size), tried] = abs(float(w[-1]))  # nearly removes the row
    into = _tops(w, q, drops_in(part, evaluated, tried))
    out = _tops(w, q, drops_out(part, evaluated, tried) + gone)
    least = 1e-3 * abs(float(w[-1]))
    gain = np.maximum(w[-1] - into, least) * np.maximum(w[-1] - out, least)
    return int(tried[int(np.argmax(gain))])


def _tops(w: np.ndarray, q: np.ndarray, drops: np.ndarray) -> np.ndarray:
    """Return lambda_max(Q'(M - Diag D)Q) for every row D of `drops`."""
    m = w.size
    first, second = np.tril_indices(m)
    packed = drops @ (q[:, first] * q[:, second])
    small = np.zeros((drops.shape[0], m, m))
    small[:, first, second] = -packed
    small[:, np.arange(m), np.arange(m)] += w
    tops: np.ndarray = np.linalg.eigvalsh(small)[:, -1]
    return tops


def most_fractional(part: Part, z: np.ndarray) -> int:
    """Return the free feature (position) of which the relaxed indicator `z` says least."""
    score = np.minimum(z, 1.0 - z)
    score[part.forced] = -np.inf
    j = int(np.argmax(score))
    if score[j] < 1e-6:
        j = int(np.argmax(np.where(part.forced, -np.inf, z)))
    return j
