"""Bound "kyfan"; statement and proof: docs/methods/kyfan.rst.

The Ky Fan pair-split bound for several components, evaluated rigorously.

Let U be symmetric with zero diagonal, V >= 0 with V_ab V_ba >= U_ab^2, and beta >= 0. For unit
vectors x_j with disjoint supports S_j of at most s features, 2 U_ab x_a x_b <= V_ab x_a^2 +
V_ba x_b^2 gives

    x_j'A x_j <= x_j'(A - U)x_j + sum_a x_ja^2 D_ja + beta(S_j),
    D_ja = -beta_a + sum_{b in S_j, b != a} (V_ab - beta_b).

The sum in D is at most that of the s-1 largest positive terms of its row; the x_j are orthonormal
and every feature is in at most one support, so by Ky Fan (1949), with d_a that bound of D_ja,

    sum_j x_j'A x_j <= sum of the k largest eigenvalues of M + sum beta,    M = A - U + Diag(d).

No more than m features are used, m the sum of the cardinalities or a total that is asked for: the m
largest beta are enough. So a floor under all prices costs m times the floor, and makes rows pay for
features beyond the total: it helps where m is less than k s.

Features outside a core H. Every row a of H may choose s-1 further times at a price pad_a, so that
theta_a = max(pad_a, the (s-1)-th largest V_ab - beta_b) can be paid for any feature outside. With
U_ja = A_ja, V_aj = theta_a, V_ja = A_ja^2 / theta_a for j outside, and U = A, V = |A| among the
outside features, M is block diagonal: M_HH as before and, for j outside, the number

    m_j = A_jj + the s-1 largest of {A_ja^2 / theta_a - beta_a} and {|A_jl|},

only positive terms counted. For nonnegative components only positive entries are charged.

The stored numbers are rounded to single precision before anything is proved with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ...numerics import margins
from ...numerics.eigen import largest_eigenpairs
from ...numerics.largest import magnitudes, row_tops
from ..pairsplit.certificate import R_LIMIT


@dataclass(frozen=True)
class KyFanSplit:
    """(U, R, beta) on a core of features, V_ab = |U_ab| exp(R_ab) with R antisymmetric."""

    features: np.ndarray  # (n,) increasing
    u: np.ndarray  # (n (n-1) / 2,) float32, upper triangle row by row
    r: np.ndarray  # (n (n-1) / 2,) float32
    price: np.ndarray  # (n,) float32, nonnegative
    pad: float  # what a row may pay for a feature outside the core; 0 if there is none

    @staticmethod
    def rounded(
        features: np.ndarray, u: np.ndarray, r: np.ndarray, price: np.ndarray, pad: float
    ) -> KyFanSplit:
        r = np.clip(r, -R_LIMIT, R_LIMIT).astype(np.float32)
        price = np.maximum(price, 0.0).astype(np.float32)
        return KyFanSplit(features, u.astype(np.float32), r, price, float(np.float32(pad)))

    @staticmethod
    def of(data: Mapping[str, Any]) -> KyFanSplit:
        """Return the split of a bound's data, on the features that the problem knows."""
        features = np.asarray(data["features"], dtype=np.intp)
        if "kept" in data:
            features = np.asarray(data["kept"], dtype=np.intp)[features]
        return KyFanSplit(features, data["u"], data["r"], data["price"], float(data["pad"]))

    def data(self) -> dict[str, Any]:
        return {
            "features": self.features.astype(np.int32),
            "u": self.u,
            "r": self.r,
            "price": self.price,
            "pad": self.pad,
        }

    def among(self, alive: np.ndarray) -> KyFanSplit:
        """Return the split for the features `alive` (increasing) alone, by their places there."""
        stay = np.flatnonzero(np.isin(self.features, alive))
        n = self.features.size
        rows, columns = np.triu_indices(stay.size, 1)
        first, second = stay[rows], stay[columns]
        pairs = first * (2 * n - first - 1) // 2 + second - first - 1
        features = np.searchsorted(alive, self.features[stay])
        return KyFanSplit(features, self.u[pairs], self.r[pairs], self.price[stay], self.pad)

    def full(self) -> tuple[np.ndarray, np.ndarray]:
        """Return U and R as square matrices of double precision."""
        n = self.features.size
        upper = np.triu_indices(n, 1)
        u, r = np.zeros((n, n)), np.zeros((n, n))
        u[upper] = self.u
        r[upper] = self.r
        return u + u.T, r - r.T


@dataclass(frozen=True)
class KyFanMatrix:
    """M on the core, and what its rows pay for features outside."""

    matrix: np.ndarray  # (n, n)
    theta: np.ndarray  # (n,) at least the split's pad
    price: np.ndarray  # (n,)


def kyfan_matrix(a: np.ndarray, split: KyFanSplit, s: int, nonnegative: bool) -> KyFanMatrix:
    """Evaluate a split on the core's covariance a (n, n); the charges are rounded up."""
    n = a.shape[0]
    u, r = split.full()
    price = split.price.astype(np.float64)
    size = magnitudes(u, nonnegative)
    # rounded up on both sides, so that the product stays above U^2
    gain = size * np.exp(r) * (1 + margins.exponential()) - price[None, :]
    np.fill_diagonal(gain, -np.inf)
    count = min(s - 1, n - 1)
    top = np.maximum(row_tops(gain, count), split.pad)
    charge = top.sum(axis=1) + (s - 1 - count) * split.pad
    charge += margins.charges(s) * (charge + 2 * s * float(price.max(initial=0.0)))
    theta = top.min(axis=1) if count == s - 1 and count else np.full(n, split.pad)
    matrix = a - u
    matrix[np.diag_indices(n)] += charge - price
    return KyFanMatrix(matrix, theta, price)


def proved_sum(matrix: np.ndarray, outside: np.ndarray, k: int) -> float:
    """Bound the sum of the k largest of the eigenvalues of `matrix` and the numbers `outside`.

    If nu I + Z - M and Z are PSD, the sum is at most k nu + tr Z. On the core Z = (M - nu I)_+
    comes from approximate eigenpairs, and a Cholesky factorisation proves what they are good for;
    outside it is diagonal.
    """
    w, q = largest_eigenpairs(matrix, k)
    return _proved_at(matrix, w, q, outside, k)


def _proved_at(
    matrix: np.ndarray, w: np.ndarray, q: np.ndarray, outside: np.ndarray, k: int
) -> float:
    n = matrix.shape[0]
    every = np.concatenate([w, outside])
    nu = float(np.partition(every, every.size - k)[every.size - k])
    root = q * np.sqrt(np.maximum(w - nu, 0.0))
    rest = root @ root.T - matrix
    trace = float((root * root).sum())
    size = float(np.abs(np.diagonal(matrix)).sum()) + (n + 1) * abs(nu) + trace
    spread = float(np.abs(matrix).sum(axis=1).max(initial=0.0))
    delta = margins.ky_fan(n, k) * size + margins.difference() * spread
    above = float(np.maximum(outside - nu, 0.0).sum())
    slack = max(2 * delta, margins.TINY)
    while True:
        shifted = rest.copy()
        shifted[np.diag_indices(n)] += nu + slack
        try:
            scipy.linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            slack *= 8
            if not np.isfinite(slack):
                raise ArithmeticError("the bound's matrix is not finite") from None
            continue
        # delta counts more than once, because the checker's own margins must fit under this bound.
        total = k * (nu + slack + 6 * delta) + trace * (1 + margins.sum_of(n + k + 4))
        return total + above * (1 + margins.sum_of(outside.size))
