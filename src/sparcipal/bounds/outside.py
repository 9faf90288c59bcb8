"""Features outside a core: the number m_j of each, from row blocks of the covariance, never p x p.

    m_j = A_jj + the s-1 largest of {A_ja^2 / theta_a - beta_a} and {|A_jl|}

for a in the core, which pays theta_a and has the price beta_a, and l outside
(docs/methods/kyfan.rst). Where every feature has a further price, `floor`, A_jj and all of these
are less by that. It is bounded in three steps, each for the features that the step before
could not clear: with entries bounded by variances (|A_jl|^2 <= A_jj A_ll), with exact entries to
the core, and with exact entries to all.

Several components need this one number: the k largest numbers and eigenvalues are added up, so
each must hold whatever the other supports are. One component alone is bounded more sharply by
touch.py, which looks at supports by how many features they have outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..numerics import margins
from ..numerics.largest import magnitudes, positive_tops

BLOCK = 512  # rows of the covariance read at once,
FEWEST, ENTRIES = 16, 1 << 18  # but no more of whole rows than these


class Charged(Protocol):
    """A core whose rows pay `theta` for a feature outside and have prices."""

    @property
    def theta(self) -> np.ndarray: ...

    @property
    def price(self) -> np.ndarray: ...


class Entries(Protocol):
    """A covariance of which some entries are asked for: all of a Covariance that is needed here."""

    @property
    def n_features(self) -> int: ...

    @property
    def diagonal(self) -> np.ndarray: ...

    @property
    def error_unit(self) -> float: ...

    @property
    def error_weights(self) -> np.ndarray: ...

    @property
    def psd_shift(self) -> float: ...

    def submatrix(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class Outside:
    """The features outside a core, for supports of s features."""

    cov: Entries
    core: np.ndarray
    split: Charged
    s: int
    nonnegative: bool
    floor: float = 0.0

    def violators(self, level: float, block_rows: int = BLOCK) -> tuple[np.ndarray, np.ndarray]:
        """Return the features outside the core whose m_j may exceed `level`, and m_j rounded up.

        Most features are dismissed by their variance alone (|A_ja|^2 <= A_jj A_aa), most others by
        their covariances with the core; only the rest needs whole rows.
        """
        cov, (outside, variance) = self.cov, self._by_variance()
        if outside.size == 0:
            return outside, np.zeros(0)
        rows = self._rows(variance, outside)
        kept = outside[: rows.needed(variance[outside], level)]
        found, levels = [], []
        for start in range(0, kept.size, block_rows):
            block = kept[start : start + block_rows]
            cross = magnitudes(cov.submatrix(block, self.core), self.nonnegative)
            charges = rows.core_charges(cross)
            total = cov.diagonal[block] - self.floor + rows.with_reach(charges, variance[block])
            high = total > level
            if high.any():
                found.append(block[high])
                levels.append(self._exact(block[high], outside, rows, charges[high]))
        if not found:
            return outside[:0], np.zeros(0)
        features, values = np.concatenate(found), np.concatenate(levels)
        return features[values > level], values[values > level]

    def rows_asked(self, level: float) -> int:
        """Return how many features outside the core are not dismissed by their variance alone."""
        outside, variance = self._by_variance()
        return self._rows(variance, outside).needed(variance[outside], level)

    def _by_variance(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the features outside the core by decreasing variance, and all variances rounded
        up."""
        cov = self.cov
        outside = np.setdiff1d(np.arange(cov.n_features), self.core)
        variance = cov.diagonal + cov.error_unit * cov.error_weights + cov.psd_shift
        return outside[np.argsort(-variance[outside], kind="stable")], variance

    def _rows(self, variance: np.ndarray, outside: np.ndarray) -> _Rows:
        return _Rows(self.split, self.s, variance[self.core], variance[outside], self.floor)

    def _exact(
        self, block: np.ndarray, outside: np.ndarray, rows: _Rows, charges: np.ndarray
    ) -> np.ndarray:
        """Return m_j with exact covariances among the outside features too."""
        out = np.empty(block.size)
        step = min(BLOCK, max(FEWEST, ENTRIES // outside.size))
        for start in range(0, block.size, step):
            part = block[start : start + step]
            among = magnitudes(self.cov.submatrix(part, outside), self.nonnegative) - self.floor
            among[outside[None, :] == part[:, None]] = 0.0
            both = np.hstack([charges[start : start + step], positive_tops(among, rows.q)])
            out[start : start + step] = (
                self.cov.diagonal[part] - self.floor + rows.rounded(positive_tops(both, rows.q))
            )
        return out


class _Rows:
    """The s-1 largest charges of features outside the core."""

    def __init__(
        self, split: Charged, s: int, core: np.ndarray, outside: np.ndarray, floor: float
    ) -> None:
        self.theta, self.price, self.floor = split.theta, split.price + floor, floor
        self.q = s - 1
        self.core = core  # variances, rounded up
        self.reach = np.sqrt(np.maximum(outside[: self.q], 0.0))  # the largest deviations outside

    def core_charges(self, cross: np.ndarray) -> np.ndarray:
        return positive_tops(np.square(cross) / self.theta - self.price, self.q)

    def with_reach(self, charges: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return row sums in which variances bound the charges of the outside features."""
        among = np.sqrt(np.maximum(variance, 0.0))[:, None] * self.reach[None, :] - self.floor
        return self.rounded(positive_tops(np.hstack([charges, among]), self.q))

    def needed(self, variance: np.ndarray, level: float) -> int:
        """Count the features, by decreasing variance, that their variance does not dismiss."""
        low, high = 0, variance.size
        while low < high:
            middle = (low + high) // 2
            v = variance[middle : middle + 1]
            charges = positive_tops((v * self.core / self.theta - self.price)[None], self.q)
            if v[0] - self.floor + self.with_reach(charges, v)[0] > level:
                low = middle + 1
            else:
                high = middle
        return low

    def rounded(self, charges: np.ndarray) -> np.ndarray:
        """Return the row sums, rounded up; the price may cancel most digits of a charge."""
        total = charges.sum(axis=1)
        largest = float(self.price.max(initial=self.floor))
        return total + margins.priced_outside(self.q + 1) * (total + 2 * self.q * largest)
