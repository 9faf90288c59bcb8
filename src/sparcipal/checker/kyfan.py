"""The joint bound for components with disjoint supports, or without prices for orthogonal ones
(docs/methods/kyfan.rst), once more.

A certificate holds U and R (upper triangles), prices and one pad for a core of features; all
else, also what the features outside the core are charged, is recomputed from the data here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arithmetic import LEAST, Arithmetic, Numbers
from .budget import require
from .cheap import psd_shift
from .family import Case, Family, Rounding, all_nonzeros
from .pairsplit import mirrored, pair_charges
from .records import KyFan

CHUNK = 400  # rows of the covariance held at a time


def recheck(record: KyFan, case: Case) -> Numbers:
    cov, question, ar, _ = case
    total, price = spectrum(record, case)
    # Prices are paid by the features that are used: no more than there are nonzeros.
    paid = ar.top(price, question.n_nonzero).sum() * (1 + price.size * ar.eps)
    return total + paid + all_nonzeros(Rounding(record, question, cov, cov.rounding))


def spectrum(
    record: KyFan, case: Case, floor: float = 0.0, empty: bool = False
) -> tuple[Numbers, np.ndarray]:
    """Return the bound without its prices, and the prices of the core.

    With a `floor`, at most the pad, every feature costs so much more: s times as much comes off M,
    and outside the core it comes off the variance and off every charge.
    With `empty`, components may have no feature here; each of them explains 0. Orthogonal ones
    that overlap may have a part of their length on features that were left out.
    """
    cov, question, ar, budget = case
    core, n, s, k = record.features, record.features.size, question.s_max, question.k
    apart = k == 1 or question.disjoint
    require(apart or not record.price.any(), "prices hold for disjoint supports only")
    require(0.0 <= floor <= record.pad, "a price that the pads do not cover")
    covered = n == cov.p or s == 1 or record.pad > 0
    require(covered, "features outside the core need a positive pad")
    budget.work(n**3, "the eigenvalues of a joint bound")
    u, r = mirrored(record.u, n), mirrored(record.r, n, -1.0)
    u, price = ar.array(u), ar.array(record.price)
    V = pair_charges(u, r, question.nonnegative, ar)
    best = row_largest(V - price, s - 1, record.pad, ar)  # (n, s - 1), the largest first
    charge = ar.top_sum(best, s - 1) + 8 * s * ar.eps * float(record.price.max())
    M = case.entries(core) - u
    M[np.diag_indices(n)] += charge - price - s * ar.number(floor)
    theta = best[:, -1] if s > 1 else ar.array(np.ones(n))
    guess = ar.floats(M)
    level = float(np.linalg.eigvalsh(guess)[n - k]) if n >= k else -np.inf
    price = price + floor
    rows = Rows(core, theta, price, s, question.nonnegative, floor)
    outside = outside_rows(rows, level, case)
    rivals = np.append(outside, ar.zeros(k if empty or not apart else 0))
    # the sum on the diagonal of M is rounded once more
    return ar.ky_fan(M, k, rivals) + 4 * k * s * ar.eps * floor, price


def row_largest(gain: np.ndarray, count: int, pad: float, ar: Arithmetic) -> np.ndarray:
    """Return per row the `count` largest of the off-diagonal gains and `count` copies of the
    pad."""
    gain = ar.maximum(gain, pad)
    gain[np.diag_indices(len(gain))] = ar.number(pad)
    best = ar.top(gain, count)
    more = np.full((len(gain), count - best.shape[1]), ar.number(pad))
    return np.hstack([best, more])


class Rows(NamedTuple):
    """What the features outside a core are charged for: see `outside_rows`."""

    core: np.ndarray
    theta: np.ndarray  # what a row of the core pays for a feature outside
    price: np.ndarray
    s: int
    nonnegative: bool
    floor: float = 0.0  # a price of every feature, counted in `price` already


def outside_rows(of: Rows, level: float, case: Case) -> np.ndarray:
    """Return m_j = A_jj + the s - 1 largest of {A_ja^2 / theta_a - price_a} and {|A_jl|} for every
    j outside the core, A_jj and |A_jl| less the floor, or `level` where variances show that it is
    not more."""
    cov, _, ar, budget = case
    core, theta, price, s, nonnegative, floor = of
    rest = np.setdiff1d(np.arange(cov.p), core)
    out = np.full(rest.size, ar.number(level))
    budget.work(40 * rest.size * (core.size + s), "features outside a core")
    padded = s == 1 or rest.size == 0 or ar.at_most(LEAST, theta)
    require(padded, "pads so small that charges may underflow")
    rounding = 8 * s * ar.eps * ar.maximum(ar.top(price, 1)[0], floor)
    # Cauchy-Schwarz: |A_ja|^2 <= A_jj A_aa in a positive semidefinite matrix.
    variance = cov.diagonal + cov.entry_errors(ar) + psd_shift(case)
    deviation = ar.sqrt(ar.maximum(variance[rest], 0.0))
    reach = ar.top(deviation, s - 1)
    for start in range(0, rest.size, CHUNK):
        rows = np.arange(start, min(start + CHUNK, rest.size))
        if s > 1:
            far = np.multiply.outer(variance[rest[rows]], variance[core] / theta) - price
            near = np.multiply.outer(deviation[rows], reach) - floor
            charges = ar.maximum(np.hstack([far, near]), 0.0)
            at_most = cov.diagonal[rest[rows]] - floor + ar.top_sum(charges, s - 1) + rounding
            rows = rows[~np.asarray(at_most <= level, dtype=bool)]
        if rows.size == 0:
            continue
        features = rest[rows]
        cross = ar.size(case.entries(features, core), nonnegative)
        among = ar.size(case.entries(features, rest), nonnegative) - floor
        among[np.arange(rows.size), rows] = ar.number(0.0)
        charges = ar.maximum(np.hstack([cross * cross / theta - price, among]), 0.0)
        out[rows] = cov.diagonal[features] - floor + ar.top_sum(charges, s - 1) + rounding
    return out


FAMILIES = (Family("kyfan", KyFan, recheck, totals=True, kinds=("disjoint", "orthogonal")),)
