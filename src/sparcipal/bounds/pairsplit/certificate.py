"""The pair split; statement and proof: docs/methods/pairsplit.rst.

The pair-split bound, evaluated rigorously.

Let U be symmetric with zero diagonal and V >= 0 with V_ij V_ji >= U_ij^2. For a unit x with
support in S, 2 U_ij x_i x_j <= V_ij x_i^2 + V_ji x_j^2 for every pair of S, hence

    x'Ax - beta(S) <= x'(A - U)x + sum_i x_i^2 (-beta_i + sum_{j in S, j != i} (V_ij - beta_j)),

and the inner sum is at most d_i = its largest value over all admissible S that contain i. With F
the features forced into S and |S| <= s it is the sum over F plus the q_i largest positive terms
over the free features, q_i = s - |F| for i in F and s - |F| - 1 otherwise. So

    lambda_max(A_S) - beta(S) <= lambda_max(M),     M = A - U + Diag(d).

For x >= 0 only positive U_ij have to be paid for: V_ij V_ji >= max(U_ij, 0)^2 is enough. Inside F
x F the charge is always paid, so U = 0 is best there (min(U, 0) when x >= 0).

Here V_ij = |U_ij| exp(R_ij), R antisymmetric, and an optimised (U, R) is rounded to single
precision before anything is proved with it, so the stored numbers are exactly those used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import lapack

from ...numerics import margins
from ...numerics.eigen import largest_eigenvalues

# exp(R) must stay far from overflow; splits beyond e^25 : 1 gain nothing
R_LIMIT = 25.0


@dataclass(frozen=True)
class Part:
    """A subproblem: supports S with forced <= S <= features and |S| <= s."""

    features: np.ndarray  # (n,) increasing positions in the whole matrix
    a: np.ndarray  # (n, n) covariance of these features
    forced: np.ndarray  # (n,) bool
    price: np.ndarray  # (n,) negative for a reward
    s: int
    nonnegative: bool
    pad: np.ndarray  # (n,) >= 0: row i may also charge q_i features outside at pad_i each

    @property
    def n(self) -> int:
        return int(self.features.size)

    @property
    def n_forced(self) -> int:
        return int(np.count_nonzero(self.forced))

    def restrict(self, keep: np.ndarray, forced: np.ndarray) -> Part:
        """Return the subproblem on the features of the mask `keep`, `forced` (same length) forced
        in."""
        a = self.a if keep.all() else self.a[np.ix_(keep, keep)]
        return Part(
            self.features[keep],
            a,
            forced[keep],
            self.price[keep],
            self.s,
            self.nonnegative,
            self.pad[keep],
        )


@dataclass(frozen=True)
class Split:
    """(U, R) of a certificate on some features.

    `origin` is what a proof stores of it: the numbers themselves in single precision, or the recipe
    of a start. Restrictions to fewer features share the origin.
    """

    features: np.ndarray  # (n,) increasing
    u: np.ndarray  # (n, n) symmetric, zero diagonal
    r: np.ndarray  # (n, n) antisymmetric
    origin: dict[str, Any] = field(compare=False)

    @staticmethod
    def rounded(features: np.ndarray, upper: tuple, u: np.ndarray, r: np.ndarray) -> Split:
        """Round packed upper triangles to single precision and return their Split."""
        u = u.astype(np.float32)
        r = np.clip(r, -R_LIMIT, R_LIMIT).astype(np.float32)
        n = features.size
        full_u, full_r = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
        full_u[upper] = u
        full_u.T[upper] = u
        full_r[upper] = r
        full_r.T[upper] = -r
        return Split(
            features, full_u, full_r, {"features": features.astype(np.int32), "u": u, "r": r}
        )

    def on(self, features: np.ndarray) -> Split:
        """Return the same certificate restricted to fewer features."""
        if features.size == self.features.size:
            return self
        rows = np.searchsorted(self.features, features)
        block = np.ix_(rows, rows)
        return Split(features, self.u[block], self.r[block], self.origin)

    def merged(self, part: Split) -> Split:
        """Return this certificate with the numbers of `part` on the features of `part`."""
        n = self.features.size
        if part.features.size == n:
            return part
        rows = np.searchsorted(self.features, part.features)
        block, upper = np.ix_(rows, rows), np.triu_indices(n, 1)
        u, r = self.u.copy(), self.r.copy()
        u[block], r[block] = part.u, part.r
        return Split.rounded(self.features, upper, u[upper], r[upper])

    def scaled(self, factor: float) -> Split:
        """Multiply U by `factor`; the recipe of a start becomes numbers of single precision."""
        upper = np.triu_indices(self.features.size, 1)
        u, r = factor * self.u[upper], self.r[upper]
        return Split.rounded(np.arange(self.features.size), upper, u, r)


@dataclass(frozen=True)
class SplitMatrix:
    """M = A - U + Diag(d) of a certificate on a subproblem, and what the fixing tests need."""

    matrix: np.ndarray  # (n, n)
    gain: np.ndarray  # (n, n) W_ij = V_ij - beta_j; the diagonal is meaningless
    level: np.ndarray  # (n,) the q_i-th largest free W_ij, at least pad_i
    next_level: np.ndarray  # (n,) the (q_i + 1)-th largest, at least pad_i


def split_matrix(part: Part, split: Split) -> SplitMatrix:
    """Evaluate a certificate on a subproblem; the charges d are rounded up."""
    u = split.u.astype(np.float64, copy=True)
    both = np.logical_and.outer(part.forced, part.forced)
    u[both] = np.minimum(u[both], 0.0) if part.nonnegative else 0.0
    charge = charges(u, split.r, part.nonnegative)
    gain = charge - part.price
    d, level, next_level = _row_sums(gain, charge, part)
    matrix = part.a - u
    matrix[np.diag_indices(part.n)] += d
    return SplitMatrix(matrix, gain, level, next_level)


def charges(u: np.ndarray, r: np.ndarray, nonnegative: bool) -> np.ndarray:
    """Return V_ij, rounded up on both sides, so that the product stays above U_ij^2."""
    size = np.maximum(u, 0.0) if nonnegative else np.abs(u)
    return size * np.exp(r.astype(np.float64)) * (1 + margins.exponential())


def _row_sums(
    gain: np.ndarray, charge: np.ndarray, part: Part
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the charges d_i, rounded up, and the q_i-th and (q_i + 1)-th largest free gains."""
    n, forced = part.n, part.forced
    free = np.where(forced, -np.inf, gain)
    np.fill_diagonal(free, -np.inf)
    d = gain[:, forced].sum(axis=1)
    d[forced] -= np.diagonal(gain)[forced]
    level, next_level = part.pad.copy(), part.pad.copy()
    q_forced = part.s - part.n_forced
    for rows, q in ((np.flatnonzero(forced), q_forced), (np.flatnonzero(~forced), q_forced - 1)):
        if rows.size == 0 or q <= 0:
            continue
        count = min(q + 1, n)
        top = np.partition(free[rows], n - count, axis=1)[:, n - count :]
        top.sort(axis=1)
        np.maximum(top, part.pad[rows, None], out=top)
        if count > q:
            next_level[rows] = top[:, 0]
            top = top[:, 1:]
        if count >= q:
            level[rows] = top[:, 0]
        d[rows] += top.sum(axis=1) + (q - top.shape[1]) * part.pad[rows]
    # a sum of at most s terms, each V_ij or beta_j, loses at most this much
    terms = np.abs(d) + charge.max(axis=1, initial=0.0) + np.abs(part.price).max(initial=0.0)
    relative = margins.charges(part.s)
    d += relative * part.s * terms if part.price.any() else relative * np.abs(d)
    return d - part.price, level, next_level


def prove_below(matrix: np.ndarray, t: float) -> bool:
    """Return whether a Cholesky factorisation proves lambda_max(matrix) <= t, rounding included."""
    n = matrix.shape[0]
    shifted = -matrix
    diagonal = np.einsum("ii->i", shifted)
    diagonal += t
    if diagonal.min() <= 0.0:
        return False
    spread = float(np.abs(shifted).sum(axis=1).max())
    trace = float(diagonal.sum()) + abs(t)
    diagonal -= margins.factorisation(n) * trace + margins.difference() * spread
    _, info = lapack.dpotrf(shifted.T, lower=0, clean=0, overwrite_a=1)
    return bool(info == 0)


def proven_bound(matrix: np.ndarray, guess: float, scale: float) -> float:
    """Return a number close above `guess` that `prove_below` accepts for the matrix."""
    slack = 1e-12 * scale
    while not prove_below(matrix, guess + slack):
        slack *= 4
    return guess + slack


def top_eigenvalue(matrix: np.ndarray) -> float:
    """Return the largest eigenvalue as LAPACK computes it: a guess, not a bound."""
    return float(largest_eigenvalues(matrix, 1)[0])
