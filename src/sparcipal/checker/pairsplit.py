"""Pair-split certificates (docs/methods/pairsplit.rst), evaluated from their records.

For a unit x with support in S, forced <= S <= alive, |S| <= s,

    x'Ax - price(S) <= x'Mx,   M = A - U + Diag(d),

where V_ij V_ji >= U_ij^2 and d_i is the largest sum of V_ij - price_j over what S may contain
besides i, minus price_i. Sums are rounded up, and V so that the product holds after rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arithmetic import Arithmetic, Numbers
from .budget import Refused, require
from .margins import term
from .records import ClipSplit, PairSplit, RankOneSplit

Split = ClipSplit | RankOneSplit | PairSplit
CUT = 25.0  # of the logarithms of a rank-one split
TINY = 1e-120  # where squares of U would underflow, both sides pay |U|


@dataclass(frozen=True)
class Supports:
    """The supports S with forced <= S <= index and |S| <= s, and what they are charged."""

    index: np.ndarray  # (n,) increasing
    forced: np.ndarray  # (n,) truth values
    s: int
    nonnegative: bool
    price: np.ndarray  # (n,) of the features
    pad: np.ndarray  # (n,) what a row may be charged for each feature outside; zero for nothing


@dataclass(frozen=True)
class Charged:
    """M and, for the fixing tests, the charges behind its diagonal."""

    matrix: np.ndarray  # (n, n)
    gain: np.ndarray  # (n, n) W_ij = V_ij - price_j
    rows: np.ndarray  # (n,) whether a row may choose a free feature at all
    level: np.ndarray  # (n,) the smallest of the free charges that a row counts
    next_level: np.ndarray  # (n,) the largest that it does not count


def charged(split: Split, block: np.ndarray, of: Supports, ar: Arithmetic) -> Charged:
    """Return M of a certificate on some supports; `block` is A on their features."""
    u, r = certificate(split, block, of, ar)
    both = np.logical_and.outer(of.forced, of.forced)
    u[both] = ar.minimum(u[both], 0.0) if of.nonnegative else 0.0
    gain = pair_charges(u, r, of.nonnegative, ar) - of.price
    d, level, next_level = row_sums(gain, of, ar)
    matrix = block - u
    diagonal = np.diag_indices(of.index.size)
    matrix[diagonal] = np.diagonal(block) + d
    return Charged(matrix, gain, _choices(of) > 0, level, next_level)


def certificate(
    split: Split, block: np.ndarray, of: Supports, ar: Arithmetic
) -> tuple[np.ndarray, np.ndarray]:
    """Return U, and R in floating point: V is made from any R so that the proof holds."""
    if isinstance(split, ClipSplit):
        rho = ar.number(split.clip)
        u = ar.minimum(block, rho)
        u = u if of.nonnegative else ar.maximum(u, -rho)
        u[np.diag_indices(of.index.size)] = 0.0
        return u, np.zeros(block.shape)
    places = np.searchsorted(split.features, of.index)
    places = np.minimum(places, split.features.size - 1)
    known = np.array_equal(split.features[places], of.index)
    require(known, "a certificate lacks features of its node")
    if isinstance(split, RankOneSplit):
        v = ar.array(split.rank_one[places])
        u = v[:, None] * v[None, :]
        u[np.diag_indices(of.index.size)] = 0.0
        logs = np.log(np.maximum(np.abs(ar.floats(v)), split.floor))
        return u, np.clip(logs[None, :] - logs[:, None], -CUT, CUT)
    n, grid = split.features.size, np.ix_(places, places)
    return ar.array(mirrored(split.u, n)[grid]), mirrored(split.r, n, -1.0)[grid]


def mirrored(packed: np.ndarray, n: int, sign: float = 1.0) -> np.ndarray:
    """Return the matrix with these entries above its diagonal, and `sign` times them below."""
    full = np.zeros((n, n))
    full[np.triu_indices(n, 1)] = packed
    return full + sign * full.T


def pair_charges(u: np.ndarray, r: np.ndarray, nonnegative: bool, ar: Arithmetic) -> np.ndarray:
    """Return |U_ij| exp(R_ij), raised so that V_ij V_ji >= U_ij^2 survives the rounding of exp."""
    size = ar.size(u, nonnegative)
    r = np.where(ar.floats(size) > TINY, r, 0.0)
    v = size * ar.exp(ar.array(r)) * (1 + 6 * ar.eps)
    if not ar.finite(v):
        raise Refused("the charges of a certificate are not finite")
    return v


def row_sums(
    gain: np.ndarray, of: Supports, ar: Arithmetic
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return d, rounded up, and the q-th and the next largest free charges of each row.

    Row i counts the charges of all forced features and of the q free ones that cost most, or its
    pad for features outside.
    """
    n, forced = of.index.size, of.forced
    d, level, next_level = ar.zeros(n), ar.zeros(n), ar.zeros(n)
    own = gain.copy()
    own[np.diag_indices(n)] = np.where(forced, 0.0, of.pad)
    for rows in (np.flatnonzero(forced), np.flatnonzero(~forced)):
        if rows.size == 0:
            continue
        q = int(_choices(of)[rows[0]])
        paid = own[np.ix_(rows, np.flatnonzero(forced))]
        pads = np.repeat(of.pad[rows][:, None], max(q, 0) + 1, axis=1)
        free = ar.maximum(own[np.ix_(rows, np.flatnonzero(~forced))], of.pad[rows][:, None])
        top = ar.top(np.hstack([free, pads]), max(q, 0) + 1)  # the largest first
        total = paid.sum(axis=1) + top[:, : max(q, 0)].sum(axis=1) - of.price[rows]
        size = abs(paid).sum(axis=1) + abs(top[:, : max(q, 0)]).sum(axis=1)
        size = size + abs(of.price[rows])
        d[rows] = total + term("charges", of.s) * ar.eps * size
        if q > 0:
            level[rows], next_level[rows] = top[:, q - 1], top[:, q]
    return d, level, next_level


def _choices(of: Supports) -> np.ndarray:
    """Return how many free features each row may choose besides itself."""
    return of.s - np.count_nonzero(of.forced) - np.where(of.forced, 0, 1)


def largest(values: np.ndarray, ar: Arithmetic) -> Numbers:
    """Return the largest of some numbers, zero if there is none."""
    return ar.top(np.append(values.ravel(), ar.zeros(1)), 1)[0]
