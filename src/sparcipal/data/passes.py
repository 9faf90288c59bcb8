"""Reads tables that do not fit memory: one pass for moments, one for products of kept columns."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ..problem import parameters
from ..problem.monitor import Monitor
from .moments import Moments
from .products import Gram
from .rows import Rows, Watch
from .same_rows import check_same_rows
from .screening import Screened, screened_of

MEMORY_LIMIT = 1 << 30
FIRST = 1000  # features kept at first
SQUARES = 5  # matrices of the size of the covariance that the stages hold at once


def memory_bytes(memory_limit: Any) -> int:
    """Check `memory_limit` and return it in bytes."""
    return int(parameters.number("memory_limit", memory_limit, 1.0, 2.0**62))


def watch_moments(rows: Rows, monitor: Monitor) -> Watch:
    """Return the watch of the first pass."""
    return Watch(monitor, "moments", f"of {rows.n_features} features")


class Stream:
    """A table read in passes, and how many of its features may be kept."""

    def __init__(self, rows: Rows, center: bool, scale: bool, memory_limit: int) -> None:
        self.rows, self.center, self.scale = rows, center, scale
        self.memory_limit = memory_limit
        self.moments = Moments(rows.n_features)

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    def count(self, monitor: Monitor) -> None:
        """Run the first pass unless the moments are known."""
        known = self.rows.moments is not None
        self.moments = self.rows.count(None if known else watch_moments(self.rows, monitor))
        _check(self.moments, self.center, self.scale)

    def order(self) -> np.ndarray:
        """Return the features by decreasing variance, constant ones last."""
        # Standardised features are ordered by their original variances, for want of a better order.
        variances = self.moments.variances(self.center)
        if self.center:
            variances = np.where(self.moments.constant, -1.0, variances)
        return np.argsort(-variances, kind="stable")

    def most(self, needed: int) -> int:
        """Return how many features fit the memory limit."""
        allowed = int(np.sqrt(self.memory_limit / (8 * SQUARES)))
        return min(max(allowed, 2 * needed, 2), self._varying(needed))

    def first(self, needed: int) -> int:
        """Return how many features to keep at first."""
        most = self.most(needed)
        return most if self.scale else min(most, max(FIRST, 4 * needed))

    def more(self, count: int, needed: int, enough: float) -> int:
        """Return twice `count`, or up to four times if more variances exceed `enough`."""
        wanted = int(np.count_nonzero(self.moments.variances(self.center) > enough))
        return min(self.most(needed), max(2 * count, min(wanted, 4 * count)))

    def _varying(self, needed: int) -> int:
        moments = self.moments
        constant = moments.constant if self.center else (moments.low == 0) & (moments.high == 0)
        varying = self.n_features - int(np.count_nonzero(constant))
        return min(max(varying, needed), self.n_features)

    def screened(self, count: int, monitor: Monitor) -> Screened:
        """Return the covariance of the `count` features that vary most, by a pass or the cache."""
        kept = np.sort(self.order()[:count])
        what = f"of {kept.size} of {self.n_features} features"
        watch = Watch(monitor, "products", what)
        gram = self._known(kept)
        if gram is None:
            gram = self.rows.accumulate(self.moments.gram(kept), watch)
            check_same_rows(self.moments, gram, self.rows.feature_names)
            self._remember(gram)
        return screened_of(self.moments, gram, self.center, self.scale, consume=True)

    def _known(self, kept: np.ndarray) -> Gram | None:
        """Load the products from the cache, if an earlier run stored them."""
        entry = self.rows.cache_entry
        if entry is None or self.rows.sample_weight is not None:
            return None
        arrays = entry.load(_name(kept))
        return None if arrays is None else Gram.from_arrays(arrays)

    def _remember(self, gram: Gram) -> None:
        entry = self.rows.cache_entry
        if entry is not None and self.rows.sample_weight is None and gram.exact:
            arrays = gram.arrays()
            if arrays is not None:
                entry.store(_name(gram.columns), arrays)


def _name(kept: np.ndarray) -> str:
    return f"products-{hashlib.sha256(kept.astype('<i8').tobytes()).hexdigest()[:24]}"


def _check(moments: Moments, center: bool, scale: bool) -> None:
    n = moments.n_samples
    if n == 0:
        raise ValueError("X has no rows; pass at least one sample")
    if center and n == 1:
        raise ValueError(
            "X has 1 sample, n_samples=1: centring leaves nothing of it; pass at least 2 samples, "
            "or center=False"
        )
    size = np.maximum(np.abs(moments.low), np.abs(moments.high))
    if size.max() > 1e150:
        raise ValueError(
            f"X has an entry of size {size.max():.3g}, whose square overflows; divide X by a "
            "constant so that entries stay below 1e150"
        )
    small = size[~moments.constant] if scale else size.max(keepdims=True)
    if small.size and 0 < small.min() < 1e-140:
        raise ValueError(
            f"X has no entry larger than {small.min():.3g}{' in a column' if scale else ''}, so "
            "that variances underflow; multiply X by a constant so that entries reach at least "
            "1e-140"
        )
