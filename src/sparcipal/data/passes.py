"""Reads tables that do not fit memory: one pass for moments, one for products of kept columns.

Where variances do not say which columns to keep, one more pass looks for those that covary."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..problem import parameters
from ..problem.constraints import Constraints
from ..problem.monitor import Monitor
from ..problem.problem import Component
from .covarying import Covarying, signs_within, taken_in_turn
from .moments import Moments, check_moments
from .products import Gram
from .rows import Rows, Watch
from .same_rows import check_same_rows
from .screening import Screened, screened_of
from .strips import PARTS, EveryRow, rows_work

MEMORY_LIMIT = 1 << 30
FIRST = 1000  # features kept at first
# Several components, whose default proof leaves a small gap, do not miss features that vary less
# than this share of what the largest variances are on average, one for each nonzero.
LITTLE = 0.05
FLAT = 0.5  # share of the largest variances above which so many say nothing
CLOSE = 1.5  # times as many must fit: for a few more, search and proof are not repeated
SQUARES = 5  # matrices of the size of the covariance that the stages hold at once
BESIDE = (SQUARES - 1) / SQUARES  # of the memory limit, what is left beside the covariance


def memory_bytes(memory_limit: Any) -> int:
    """Check `memory_limit`, a number of bytes or a size as "2GB", and return it in bytes."""
    if isinstance(memory_limit, str):
        memory_limit = parameters.size("memory_limit", memory_limit)
    return int(parameters.number("memory_limit", memory_limit, 1.0, 2.0**62))


def watch_moments(rows: Rows, monitor: Monitor) -> Watch:
    """Return the watch of the first pass."""
    return Watch(monitor, "moments", f"of {rows.n_features} features")


class Stream:
    """A table read in passes, and how many of its features may be kept."""

    def __init__(self, rows: Rows, center: bool, scale: bool, memory_limit: int) -> None:
        self.rows, self.center, self.scale = rows, center, scale
        self.memory_limit = min(memory_limit, rows.room)
        self.moments = Moments(rows.n_features)
        self._always = self._never = np.empty(0, dtype=np.intp)
        self._orders: list[np.ndarray] = []  # besides that by variance, once a pass has made them

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    @property
    def looked(self) -> bool:
        return bool(self._orders)

    def ask(self, asked: Constraints) -> None:
        """Keep the features that must be used, and none that may not be."""
        anchors = [feature for own in asked.include for feature in own]
        self._always = np.unique(np.array(anchors, dtype=np.intp))
        self._never = np.unique(np.array(asked.exclude, dtype=np.intp))

    def count(self, monitor: Monitor) -> None:
        """Run the first pass unless the moments are known."""
        known = self.rows.moments is not None
        self.moments = self.rows.count(None if known else watch_moments(self.rows, monitor))
        check_moments(self.moments, self.center, self.scale)

    def look(
        self,
        monitor: Monitor,
        components: Sequence[Component] = (),
        values: Sequence[float] = (),
        nonnegative: bool = False,
    ) -> None:
        """Make a pass that finds features which covary with others, or with known components."""
        n_signs = signs_within(self.memory_limit, self.n_features)
        empty = Covarying(self.moments, self.center, self.scale, components, n_signs)
        found = self._covarying(empty, monitor)
        figures = [found.strength(), *([found.gains(values, nonnegative)] if components else [])]
        self._orders = [np.argsort(-figure, kind="stable") for figure in figures]

    def beside(
        self,
        monitor: Monitor,
        components: Sequence[Component],
        values: Sequence[float],
        losses: Sequence[float],
        nonnegative: bool,
    ) -> np.ndarray:
        """Make a pass that finds the features which would add more to a component than its least
        useful one, which is what it would lose; the best first."""
        empty = Covarying(self.moments, self.center, self.scale, components, 0)
        gain = self._covarying(empty, monitor).gains(values, nonnegative, losses)
        gain[self._never] = -1.0
        best = np.argsort(-gain, kind="stable")
        return best[: int(np.count_nonzero(gain > 0.0))]

    def _covarying(self, empty: Covarying, monitor: Monitor) -> Covarying:
        """Sum over the rows, unless the cache has the sums."""
        entry = None if self.rows.sample_weight is not None else self.rows.cache_entry
        arrays = None if entry is None else entry.load(empty.name)
        if arrays is not None:
            return empty.restored(arrays)
        watch = Watch(monitor, "covariation", f"of {self.n_features} features")
        found = self.rows.accumulate(empty, watch)
        if entry is not None:
            entry.store(found.name, found.arrays())
        return found

    def order(self) -> np.ndarray:
        """Return the features by decreasing variance, constant ones last. Standardised ones are in
        the order of what they covary with, once a pass has found it."""
        if self.scale and self._orders:
            return self._orders[0]
        variances = self._spread()
        if self.center:
            variances = np.where(self.moments.constant, -1.0, variances)
        return np.argsort(-variances, kind="stable")

    def _spread(self) -> np.ndarray:
        """Return the variances that count: those of standardised features are one, and those of
        features that may not be used zero."""
        variances = self.moments.variances(self.center)
        variances = np.sign(variances) if self.scale else variances.copy()
        variances[self._never] = 0.0
        return variances

    def most(self, needed: int) -> int:
        """Return how many features fit the memory limit."""
        allowed = int(np.sqrt(self.memory_limit / (8 * SQUARES)))
        return min(max(allowed, 2 * needed, 2), self._varying(needed))

    def first(self, needed: int, rough: bool = False) -> int:
        """Return how many features to keep at first; fewer where a small gap is good enough."""
        most, first = self.most(needed), max(FIRST, 4 * needed)
        if (self.scale and not rough) or self._varying(needed) <= first:
            return most
        if rough and not self.alike(needed, first):
            variances = np.sort(self._spread())[::-1]
            enough = LITTLE * float(variances[:needed].mean())
            first = min(first, max(int(np.count_nonzero(variances > enough)), 4 * needed))
        return min(most, first)

    def alike(self, needed: int, count: int) -> bool:
        """Return whether variances hardly say which features to keep: those of standardised ones,
        or where more than `count` vary half as much as the largest do on average."""
        if self.scale or count >= self.n_features:
            return self.scale
        variances = np.sort(self._spread())[::-1]
        return bool(variances[count] > FLAT * variances[:needed].mean())

    def full(self, count: int, needed: int) -> bool:
        """Return whether no more features fit, or few."""
        most = self.most(needed)
        return count >= most or (most < CLOSE * count and most < self._varying(needed))

    def more(self, count: int, needed: int, enough: float) -> int:
        """Return twice `count`, or as many as have variances above `enough`: fewer would be
        another round, and each is a search."""
        wanted = int(np.count_nonzero(self._spread() > enough))
        return min(self.most(needed), max(2 * count, wanted))

    def _varying(self, needed: int) -> int:
        moments = self.moments
        constant = moments.constant if self.center else (moments.low == 0) & (moments.high == 0)
        constant = constant.copy()
        constant[self._never] = True
        varying = self.n_features - int(np.count_nonzero(constant))
        return min(max(varying, needed), self.n_features)

    def chosen(self, count: int, always: np.ndarray | None = None) -> np.ndarray:
        """Return the features to keep: those that vary most and, after `look`, covary most; of
        standardised ones those that covary most.

        `always` are features that are kept in any case.
        """
        first = self._always if always is None else np.union1d(self._always, always)
        # what variance a column had before it was standardised says nothing
        orders = self._orders if self.scale and self._orders else [self.order(), *self._orders]
        allowed = (order[~np.isin(order, self._never)] for order in orders)
        return taken_in_turn(count, *(np.concatenate([first, order]) for order in allowed))

    def screened(self, kept: np.ndarray, monitor: Monitor) -> Screened:
        """Return the covariance of the features to keep, by a pass or the cache."""
        what = f"of {kept.size} of {self.n_features} features"
        watch = Watch(monitor, "products", what)
        gram = self._known(kept)
        if gram is None:
            gram = self.rows.accumulate(self.moments.gram(kept), watch)
            check_same_rows(self.moments, gram, self.rows.feature_names)
            self._remember(gram)
        return screened_of(self.moments, gram, self.center, self.scale, consume=True)

    def all_rows_work(self) -> float:
        """Return about how many nanoseconds it takes to read all rows of the covariance."""
        shape = (self.moments.n_samples, self.n_features)
        return rows_work(shape, self.n_features, self.memory_limit // PARTS)

    def every_row(self, screened: Screened, unit: float, monitor: Monitor) -> EveryRow:
        """Return rows of the covariance of all features, read in passes when they are asked for."""
        known = (self.rows, self.moments, screened)
        every = EveryRow(*known, unit, self.memory_limit, monitor)
        return every.without(self._never)

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
            entry.store(_name(gram.columns), gram.arrays())


def _name(kept: np.ndarray) -> str:
    return f"products-{hashlib.sha256(kept.astype('<i8').tobytes()).hexdigest()[:24]}"
