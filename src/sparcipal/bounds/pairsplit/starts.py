"""The pair split; statement and proof: docs/methods/pairsplit.rst.

The first certificates are cheap: they clip the matrix or split its leading eigenvector.

Two families cover most data: U = clip(A, -rho, rho) with an even split (correlation matrices),
and U = f l1 u u' with V_ij = f l1 u_j^2 (a few dominant variables). For x >= 0 the negative
entries of A may be moved into U for nothing, so U = min(clip(A), rho) there.
"""

from __future__ import annotations

import itertools

import numpy as np

from ...numerics.eigen import largest_eigenpairs
from .certificate import R_LIMIT, Part, Split, split_matrix, top_eigenvalue

FRACTIONS = (0.05, 0.12, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0)
RANK_ONE = (0.3, 0.6, 0.8, 0.9, 1.0)


def clipped(part: Part, rho: float) -> Split:
    """Return U = clip(A, -rho, rho), split evenly; U = min(A, rho) when x >= 0."""
    u = np.minimum(part.a, rho) if part.nonnegative else np.clip(part.a, -rho, rho)
    np.fill_diagonal(u, 0.0)
    return Split(part.features, u, np.zeros_like(u), {"clip": rho})


def rank_one(part: Part, value: float, vector: np.ndarray, fraction: float) -> Split:
    """Return U = v v', v = sqrt(f l) u in single precision, and V_ij = v_j^2 where v is not
    tiny."""
    v = (np.sqrt(max(fraction * value, 0.0)) * vector).astype(np.float32)
    # ratios of tiny entries are noise and would make the smoothed charges explode
    floor = float(np.sqrt(0.1 * max(float(np.diagonal(part.a).max()), 1e-300)))
    origin = {"features": part.features.astype(np.int32), "rank_one": v, "floor": floor}
    v64 = v.astype(np.float64)
    u = np.outer(v64, v64)
    np.fill_diagonal(u, 0.0)
    logs = np.log(np.maximum(np.abs(v64), floor))
    r = np.clip(logs[None, :] - logs[:, None], -R_LIMIT, R_LIMIT)
    return Split(part.features, u, r, origin)


def best_start(part: Part) -> tuple[Split, int]:
    """Return the best of both families, and the number of eigenvalue problems this took."""
    off = part.a - np.diag(np.diagonal(part.a))
    largest = float(np.abs(off).max(initial=0.0))
    w, q = largest_eigenpairs(part.a, 1)
    candidates = itertools.chain(
        (clipped(part, f * largest) for f in FRACTIONS),
        (rank_one(part, float(w[0]), q[:, 0], f) for f in RANK_ONE),
    )
    # one at a time: each holds matrices
    _, best = min(((_guess(split_matrix(part, c).matrix), c) for c in candidates), key=_first)
    return best, len(FRACTIONS) + len(RANK_ONE) + 1


def _first(pair: tuple[float, Split]) -> float:
    return pair[0]


def _guess(matrix: np.ndarray) -> float:
    """Estimate lambda_max well enough to compare two starts."""
    n = matrix.shape[0]
    if n < 300:
        return top_eigenvalue(matrix)
    from scipy.sparse.linalg import ArpackError, eigsh  # here: small problems do without

    try:
        start = np.ones(n)
        w = eigsh(matrix, 1, which="LA", tol=1e-3, v0=start, return_eigenvectors=False)
        return float(w[0])
    except ArpackError:
        return top_eigenvalue(matrix)
