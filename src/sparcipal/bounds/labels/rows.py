"""Bound "labels"; statement and proof: docs/methods/labels.rst.

Features outside the core of a group: the number m_b of each, where features outside have prices.

    m_b = A_bb - beta_b + the s-1 largest positive of {A_ba^2 / (theta_a + beta_b) - beta_a} and
          {|A_bl| - beta_l}

for a in the core, which pays theta_a, and l outside; features that the group may not use are left
out. Only features of the field have prices. Those beyond it are dismissed by their variances if
they can be, and rows of the covariance are read once for all groups.
"""

from __future__ import annotations

import numpy as np

from ...numerics import margins
from ...numerics.largest import magnitudes, positive_tops
from ...problem.covariance import Covariance

BLOCK = 512  # rows of the covariance read at once


class Rows:
    """Rows of the covariance against the field, the features that may have a price."""

    def __init__(self, cov: Covariance, field: np.ndarray, s: int, nonnegative: bool) -> None:
        self.cov, self.field, self.q, self.nonnegative = cov, field, s - 1, nonnegative
        a = cov.submatrix(field)
        self.a = np.ascontiguousarray(0.5 * (a + a.T))
        self.size = magnitudes(self.a, self.nonnegative)
        variance = cov.diagonal + cov.error_unit * cov.error_weights + cov.psd_shift
        rest = np.setdiff1d(np.arange(cov.n_features), field)
        self.rest = rest[np.argsort(-variance[rest], kind="stable")]
        self.variance, self.beyond = variance[field], variance[self.rest]
        self.reach = np.sqrt(np.maximum(self.beyond[: self.q], 0.0))
        self._blocks: list[np.ndarray] = []
        self._among: dict[int, np.ndarray] = {}

    def heights(
        self,
        core: np.ndarray,
        theta: np.ndarray,
        price: np.ndarray,
        banned: np.ndarray,
        level: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the features outside the core whose m_b exceeds `level`, and m_b rounded up.

        `core` are positions in the field, `price` and `banned` have an entry for each feature of
        it; features beyond the field are numbered on from its size.
        """
        outside = ~banned
        outside[core] = False
        others = np.flatnonzero(outside)
        charge = _Charge(self, core, theta, price, others)
        found = [self._above(charge, others, self.size[others], self.a.diagonal()[others], level)]
        count, h = self._needed(charge, level), self.field.size
        for start in range(0, count, BLOCK):
            rows = np.arange(start, min(start + BLOCK, count))
            block = self._block(start // BLOCK)[: rows.size]
            variance = self.cov.diagonal[self.rest[rows]]
            found.append(self._above(charge, h + rows, block, variance, level))
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])

    def _above(
        self,
        charge: _Charge,
        features: np.ndarray,
        block: np.ndarray,
        variance: np.ndarray,
        level: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return those of the features, with rows `block` against the field, that exceed level."""
        if features.size == 0:
            return features, np.zeros(0)
        h = self.field.size
        near = charge.rows(features, block)
        inside = features < h
        own = np.where(inside, self.variance[np.where(inside, features, 0)], 0.0)
        own[~inside] = self.beyond[features[~inside] - h]
        far = np.sqrt(np.maximum(own, 0.0))[:, None] * self.reach[None, :]
        price = charge.price_of(features)
        total = charge.total(variance, price, np.hstack([near, far]))
        high = np.flatnonzero(total > level)
        if self.rest.size and high.size:
            exact = np.stack([self._among_rest(int(b)) for b in features[high]])
            total[high] = charge.total(variance[high], price[high], np.hstack([near[high], exact]))
        high = high[total[high] > level]
        return features[high], total[high]

    def _among_rest(self, b: int) -> np.ndarray:
        """Return the s - 1 largest charges of feature b for features beyond the field."""
        if b not in self._among:
            h = self.field.size
            feature = self.field[b] if b < h else self.rest[b - h]
            row = magnitudes(
                self.cov.submatrix(np.array([feature]), self.rest)[0], self.nonnegative
            )
            if b >= h:
                row[b - h] = 0.0
            top = np.zeros(self.q)
            found = positive_tops(row[None, :], self.q)[0]
            top[: found.size] = found
            self._among[b] = top
        return self._among[b]

    def _block(self, index: int) -> np.ndarray:
        """Return the charges of the rows of one block of features beyond the field."""
        while len(self._blocks) <= index:
            start = len(self._blocks) * BLOCK
            rows = self.rest[start : start + BLOCK]
            block = self.cov.submatrix(rows, self.field)
            self._blocks.append(magnitudes(block, self.nonnegative))
        return self._blocks[index]

    def _needed(self, charge: _Charge, level: float) -> int:
        """Count the features beyond the field that their variance does not dismiss."""
        low, high = 0, self.rest.size
        while low < high:
            middle = (low + high) // 2
            v = self.beyond[middle : middle + 1]
            root = np.sqrt(np.maximum(v, 0.0))
            row = (root * np.sqrt(np.maximum(self.variance, 0.0)))[None, :]
            near = charge.rows(np.array([self.field.size + middle]), row)
            both = np.hstack([near, (root * self.reach)[None, :]])
            if charge.total(v, np.zeros(1), both)[0] > level:
                low = middle + 1
            else:
                high = middle
        return low


class _Charge:
    """What the features outside one core are charged."""

    def __init__(
        self,
        rows: Rows,
        core: np.ndarray,
        theta: np.ndarray,
        price: np.ndarray,
        others: np.ndarray,
    ) -> None:
        self.q, self.core, self.theta, self.price, self.others = (
            rows.q, core, theta, price, others,
        )  # fmt: skip

    def price_of(self, features: np.ndarray) -> np.ndarray:
        h = self.price.size
        return np.where(features < h, self.price[np.minimum(features, h - 1)], 0.0)

    def rows(self, features: np.ndarray, block: np.ndarray) -> np.ndarray:
        """Return the s - 1 largest charges of each feature for features of the field."""
        if self.q == 0:
            return np.zeros((features.size, 0))
        price, own = self.price, self.price_of(features)
        inner = np.square(block[:, self.core]) / (self.theta + own[:, None]) - price[self.core]
        outer = block[:, self.others] - price[self.others]
        outer[features[:, None] == self.others[None, :]] = 0.0
        return positive_tops(np.hstack([inner, outer]), self.q)

    def total(self, variance: np.ndarray, price: np.ndarray, charges: np.ndarray) -> np.ndarray:
        """Return m_b, rounded up; prices may cancel most digits of a charge."""
        charges = positive_tops(charges, self.q).sum(axis=1)
        size = np.abs(variance) + charges + 2 * (self.q + 1) * float(self.price.max(initial=0.0))
        return variance - price + charges + margins.priced_outside(self.q + 1) * size
