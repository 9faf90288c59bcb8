"""Features outside a core: the number m_j of each, from row blocks of the covariance, never p x p.

    m_j = A_jj + the s-1 largest of {A_ja^2 / theta_a - beta_a} and {|A_jl|}

for a in the core, which pays theta_a and has the price beta_a, and l outside (docs/methods/tree.rst
and docs/methods/kyfan.rst). In three steps, each for the features that the one before could not
clear: entries by variances (|A_jl|^2 <= A_jj A_ll), exact entries to the core, exact entries to
all. `violators` works with prices; `Outside` without them, and counts its work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..numerics import margins
from ..problem.covariance import Covariance, MatrixCovariance

BLOCK = 512  # rows of the covariance looked at together, with prices
ROWS = 1000  # and without


class Charged(Protocol):
    """What the rows of a core pay for a feature outside, and their prices."""

    @property
    def theta(self) -> np.ndarray: ...

    @property
    def price(self) -> np.ndarray: ...


def violators(
    cov: Covariance,
    core: np.ndarray,
    split: Charged,
    s: int,
    nonnegative: bool,
    level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Features outside the core whose m_j may exceed `level`, and their m_j rounded up.

    Most features are dismissed by their variance alone (|A_ja|^2 <= A_jj A_aa), most others by
    their covariances with the core; only the rest needs whole rows.
    """
    outside = np.setdiff1d(np.arange(cov.n_features), core)
    if outside.size == 0:
        return outside, np.zeros(0)
    variance = cov.diagonal + cov.error_unit * cov.error_weights + cov.psd_shift
    outside = outside[np.argsort(-variance[outside], kind="stable")]
    rows = _Rows(split, s, variance[core], variance[outside])
    kept = outside[: rows.needed(variance[outside], level)]
    found, levels = [], []
    for start in range(0, kept.size, BLOCK):
        block = kept[start : start + BLOCK]
        charges = rows.core_charges(_charged(cov.submatrix(block, core), nonnegative))
        total = cov.diagonal[block] + rows.with_reach(charges, variance[block])
        high = total > level
        if high.any():
            found.append(block[high])
            levels.append(_exact(cov, block[high], outside, rows, charges[high], nonnegative))
    if not found:
        return outside[:0], np.zeros(0)
    features, values = np.concatenate(found), np.concatenate(levels)
    return features[values > level], values[values > level]


def _exact(
    cov: Covariance,
    block: np.ndarray,
    outside: np.ndarray,
    rows: _Rows,
    charges: np.ndarray,
    nonnegative: bool,
) -> np.ndarray:
    """m_j with the covariances among the outside features themselves."""
    out = np.empty(block.size)
    for start in range(0, block.size, BLOCK):
        part = block[start : start + BLOCK]
        among = _charged(cov.submatrix(part, outside), nonnegative)
        among[outside[None, :] == part[:, None]] = 0.0
        both = np.hstack([charges[start : start + BLOCK], _largest(among, rows.q)])
        out[start : start + BLOCK] = cov.diagonal[part] + rows.rounded(_largest(both, rows.q))
    return out


class _Rows:
    """The s-1 largest charges of features outside the core."""

    def __init__(self, split: Charged, s: int, core: np.ndarray, outside: np.ndarray) -> None:
        self.split = split
        self.q = s - 1
        self.core = core  # variances, rounded up
        self.reach = np.sqrt(np.maximum(outside[: self.q], 0.0))  # the largest deviations outside

    def core_charges(self, cross: np.ndarray) -> np.ndarray:
        return _largest(np.square(cross) / self.split.theta - self.split.price, self.q)

    def with_reach(self, charges: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Charges of the core, and of the outside features by what they can reach at most."""
        among = np.sqrt(np.maximum(variance, 0.0))[:, None] * self.reach[None, :]
        return self.rounded(_largest(np.hstack([charges, among]), self.q))

    def needed(self, variance: np.ndarray, level: float) -> int:
        """How many of the features, by decreasing variance, their variance does not dismiss."""
        low, high = 0, variance.size
        while low < high:
            middle = (low + high) // 2
            v = variance[middle : middle + 1]
            charges = _largest((v * self.core / self.split.theta - self.split.price)[None], self.q)
            if v[0] + self.with_reach(charges, v)[0] > level:
                low = middle + 1
            else:
                high = middle
        return low

    def rounded(self, charges: np.ndarray) -> np.ndarray:
        """Row sums, rounded up; a charge is a difference in which the price may cancel."""
        total = charges.sum(axis=1)
        largest = float(self.split.price.max(initial=0.0))
        return total + margins.priced_outside(self.q + 1) * (total + 2 * self.q * largest)


@dataclass(frozen=True)
class Highest:
    """The largest m_j, the features above the threshold, worst first, and the work it took."""

    bound: float
    violators: np.ndarray
    work: float


class Outside:
    """m_j without prices, as exactly as needed to compare them with a threshold t."""

    def __init__(self, cov: Covariance, s: int, nonnegative: bool) -> None:
        self.cov, self.s, self.nonnegative = cov, s, nonnegative
        # Cauchy-Schwarz needs a matrix that is exactly positive semidefinite up to known rounding
        self.trusted = not (isinstance(cov, MatrixCovariance) and cov.n_samples is None)
        excess = 4 * cov.error_unit * cov.error_weights + cov.psd_shift
        self.variance = np.maximum(cov.diagonal, 0.0) + excess

    def largest(self, core: np.ndarray, pad: np.ndarray, t: float) -> Highest:
        """The largest m_j, or an upper bound of it that is at most t; and those above t."""
        rest = np.setdiff1d(np.arange(self.cov.n_features), core)
        if rest.size == 0:
            return Highest(-np.inf, rest, 0.0)
        work, bounds = 0.0, np.full(rest.size, np.inf)
        if self.trusted:
            bounds = self._by_variance(rest, core, pad)
        for exact_rows in (False, True):
            open_ = np.flatnonzero(bounds > t)
            if exact_rows or self.trusted:
                for rows in np.array_split(open_, max(1, open_.size // ROWS)):
                    bounds[rows] = self._by_entries(rest, rows, core, pad, exact_rows)
            width = rest.size if exact_rows else core.size
            work += float(open_.size) * width * (20.0 + (self.cov.n_samples or 0) / 4)
        bounds *= 1 + margins.outside(self.s)
        over = np.flatnonzero(bounds > t)
        over = over[np.argsort(-bounds[over], kind="stable")]
        return Highest(float(bounds.max()), rest[over], work)

    def _by_variance(self, rest: np.ndarray, core: np.ndarray, pad: np.ndarray) -> np.ndarray:
        """A_ja^2 <= A_jj A_aa and |A_jl| <= sqrt(A_jj A_ll): one sorted list serves all rows."""
        q, v = self.s - 1, self.variance
        ratio = _largest(v[core] / pad, q)  # times A_jj
        root = _largest(np.sqrt(v[rest]), q)  # times sqrt(A_jj)
        out = np.empty(rest.size)
        for rows in np.array_split(np.arange(rest.size), max(1, rest.size // ROWS)):
            own = v[rest[rows]][:, None]
            terms = np.hstack([own * ratio, np.sqrt(own) * root])
            out[rows] = self.cov.diagonal[rest[rows]] + _largest(terms, q).sum(axis=1)
        return out

    def _by_entries(
        self,
        rest: np.ndarray,
        rows: np.ndarray,
        core: np.ndarray,
        pad: np.ndarray,
        exact_rows: bool,
    ) -> np.ndarray:
        """Exact entries to the core; to the other features exact or by Cauchy-Schwarz."""
        if rows.size == 0:
            return np.empty(0)
        q, features = self.s - 1, rest[rows]
        cross = _charged(self.cov.submatrix(features, core), self.nonnegative)
        terms = _largest(cross * cross / pad, q)
        if exact_rows:
            others = _charged(self.cov.submatrix(features, rest), self.nonnegative)
            others[np.arange(rows.size), rows] = 0.0
            terms = np.hstack([terms, _largest(others, q)])
        else:
            root = _largest(np.sqrt(self.variance[rest]), q)
            terms = np.hstack([terms, np.sqrt(self.variance[features])[:, None] * root])
        return self.cov.diagonal[features] + _largest(terms, q).sum(axis=1)


def _charged(cross: np.ndarray, nonnegative: bool) -> np.ndarray:
    return np.maximum(cross, 0.0) if nonnegative else np.abs(cross)


def _largest(rows: np.ndarray, count: int) -> np.ndarray:
    """The `count` largest entries along the last axis, unordered, negative ones counted as zero."""
    n = rows.shape[-1]
    if count == 0:
        return rows[..., :0]
    if n > count:
        rows = np.partition(rows, n - count, axis=-1)[..., n - count :]
    return np.maximum(rows, 0.0)
