"""Bound "tree"; statement and proof: docs/methods/tree.rst.

Features are fixed in or out of every solution better than t without one eigenproblem for each.

Let M belong to a pair-split certificate and M <= l I + BB' with a few columns B (its leading
eigenvectors). Supposing that j is in the support, row i has one choice less: its charge drops by
D_i = max(0, theta_i - W_ij), theta_i the q_i-th largest free W_ij; D_j = 0. Supposing that j is
out, row j disappears and the charge of row i drops by D_i = max(0, W_ij - theta'_i), theta'_i the
next largest. In both cases no support of that kind has a value above t if BB' <= (t - l) I +
Diag(D), that is, if I - B' Diag(1 / (t - l + D)) B is positive semidefinite: a matrix of the size
of B's rank for every feature. A row that may choose no free feature (q_i = 0) has nothing to
lose: D_i = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...numerics import margins
from ...numerics.eigen import largest_eigenpairs
from ..pairsplit.certificate import Part, SplitMatrix, prove_below

# Columns of B in addition to the eigenvalues above t, and the largest number of columns.
EXTRA, MOST = 6, 40


@dataclass(frozen=True)
class Fixing:
    """The features that one pass of tests fixed at the threshold t."""

    top: float  # largest eigenvalue of M, as LAPACK computes it
    closed: bool  # lambda_max(M) <= t is proved, so the node is settled
    out: np.ndarray  # (n,) bool: in no solution above t
    into: np.ndarray  # (n,) bool: in every solution above t

    @property
    def any(self) -> bool:
        return self.closed or bool(self.out.any() or self.into.any())


def fix(part: Part, split: SplitMatrix, t: float) -> Fixing:
    """Run both tests once for every free feature."""
    n = part.n
    nothing = np.zeros(n, dtype=bool)
    w, q = _leading(split.matrix)
    top = float(w[-1])
    if top <= t and prove_below(split.matrix, t):
        return Fixing(top, True, nothing, nothing)
    above = int(np.count_nonzero(w > t))
    rank = min(above + EXTRA, w.size - 1, MOST)
    if rank < max(above, 1):
        return Fixing(top, False, nothing, nothing)
    factor, low = _majorant(split.matrix, w, q, rank)
    if factor is None or low >= t:
        return Fixing(top, False, nothing, nothing)
    free = np.flatnonzero(~part.forced)
    out, into = nothing.copy(), nothing.copy()
    out[free] = _psd(factor, t - low, drops_in(part, split, free), None)
    into[free] = _psd(factor, t - low, drops_out(part, split, free), free)
    return Fixing(top, False, out, into)


def _leading(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = matrix.shape[0]
    if n <= 150:
        return np.linalg.eigh(matrix)
    return largest_eigenpairs(matrix, MOST + 1)


def _majorant(
    matrix: np.ndarray, w: np.ndarray, q: np.ndarray, rank: int
) -> tuple[np.ndarray | None, float]:
    """Return B and l with M <= l I + BB', proved by Cholesky; B is None if that fails."""
    scale = max(abs(float(w[-1])), abs(float(w[0])))
    next_value = float(w[-rank - 1])
    low = next_value + 1e-10 * scale
    factor = q[:, -rank:] * np.sqrt(np.maximum(w[-rank:] - next_value, 0.0))
    rest = matrix - factor @ factor.T
    slack = margins.majorant(rank) * float((factor * factor).sum())
    if prove_below(rest, low - slack):
        return factor, low
    return None, low


def drops_in(part: Part, split: SplitMatrix, free: np.ndarray) -> np.ndarray:
    """Return D for "j is in", one row per free j, rounded down."""
    gain, level = split.gain[:, free].T, split.level
    drop = level - gain - margins.drop() * (level + np.abs(gain))
    return _admissible(part, drop, free)


def drops_out(part: Part, split: SplitMatrix, free: np.ndarray) -> np.ndarray:
    """Return D for "j is out", one row per free j, rounded down."""
    gain, level = split.gain[:, free].T, split.next_level
    drop = gain - level - margins.drop() * (level + np.abs(gain))
    return _admissible(part, drop, free)


def _admissible(part: Part, drop: np.ndarray, free: np.ndarray) -> np.ndarray:
    np.maximum(drop, 0.0, out=drop)
    drop[np.arange(free.size), free] = 0.0
    choices = part.s - part.n_forced - np.where(part.forced, 0, 1)
    drop[:, choices <= 0] = 0.0
    return drop


def _psd(
    factor: np.ndarray, room: float, drops: np.ndarray, deleted: np.ndarray | None
) -> np.ndarray:
    """Return for each row D of `drops` whether I - B' Diag(1 / (room + D)) B is proved PSD.

    `deleted` names for each row of `drops` the row of B that is left out.
    """
    n, rank = factor.shape
    weights = 1.0 / (room + drops)  # (m, n)
    if deleted is not None:
        weights[np.arange(deleted.size), deleted] = 0.0
    first, second = np.tril_indices(rank)
    products = factor[:, first] * factor[:, second]  # (n, pairs)
    packed = weights @ products
    grams = np.zeros((weights.shape[0], rank, rank))
    grams[:, first, second] = packed
    trace = np.einsum("jaa->j", grams)
    margin = margins.weighted(n) * trace + margins.majorant(rank) * (rank + trace)
    tests = np.eye(rank) * (1.0 - margin)[:, None, None] - grams
    return _cholesky_passes(tests)


def _cholesky_passes(tests: np.ndarray) -> np.ndarray:
    """Return which of many small symmetric matrices (lower triangles) have a Cholesky factor."""
    count, rank, _ = tests.shape
    passes = np.ones(count, dtype=bool)
    for a in range(rank):
        pivot = tests[:, a, a].copy()
        passes &= pivot > 0.0
        column = tests[:, a:, a] / np.sqrt(np.where(pivot > 0.0, pivot, 1.0))[:, None]
        column[~passes] = 0.0
        # only the lower triangle is ever read
        tests[:, a:, a:] -= column[:, :, None] * column[:, None, :]
    return passes
