"""Rows of the covariance of all features, some at a time, each by a pass over the table.

The whole matrix of a screened table does not fit, but some of its rows do. A bound that asks for
every row of a feature that matters (docs/methods/dropped.rst, the rule "rows") gets them here: a
pass sums the products of a strip of columns with all columns, about shifts near their means:
exactly for integers that are not too large, so that it makes no difference how rows are cut, and
which of them are sparse.
"""

from __future__ import annotations

import numpy as np

from ..numerics import margins
from ..numerics.margins import SAFETY
from ..problem.monitor import Monitor
from .moments import Moments
from .products import Strip
from .rows import Rows, Watch
from .same_rows import check_same_columns
from .screening import Screened, upper_variances

MOST_ROWS = 512  # of a strip
PARTS = 4  # of the memory limit, of which a strip takes one
READ, PRODUCT = 1.0, 0.1  # nanoseconds to read an entry, and to add a product
EXACT = 2.0**51  # no sum of squares of integers exceeds this, with a reserve, where all are exact
LOST = 1e-3  # relative errors of deviations above this are not carried through a quotient


def rows_at_once(n_features: int, room: int) -> int:
    """Return how many rows of the covariance are read by one pass."""
    return max(1, min(MOST_ROWS, room // (8 * n_features)))


def rows_work(shape: tuple[int, int], rows: int, room: int) -> float:
    """Return about how many nanoseconds it takes to read so many rows of the covariance of a dense
    table."""
    passes = -(-rows // rows_at_once(shape[1], room))
    return float(shape[0]) * shape[1] * (READ * passes + PRODUCT * rows)


class EveryRow:
    """The covariance of all features as `bounds.outside.violators` asks for it, in passes.

    Entries and variances are rounded up, in inside units, so that they have no errors left.

    Parameters
    ----------
    rows : Rows
    moments : Moments
        Of all columns.
    screened : Screened
        What is known of the kept features, with the variances of all.
    unit : float
        Of the inside units.
    memory_limit : int
        Bytes, of which a strip takes a quarter.
    monitor : Monitor
    """

    error_unit = psd_shift = 0.0

    def __init__(
        self,
        rows: Rows,
        moments: Moments,
        screened: Screened,
        unit: float,
        memory_limit: int,
        monitor: Monitor,
    ) -> None:
        self._rows, self._monitor, self._unit = rows, monitor, unit
        self._room = memory_limit // PARTS
        self._center, self._scale = screened.center, screened.scaled
        p = moments.n_features
        self._moments = moments
        self._shift = moments.means() if self._center else np.zeros(p)
        deviation = screened.scale if self._scale else np.full(p, np.sqrt(unit))
        assert deviation is not None
        self._exact = _exact(moments, self._center)
        if self._exact:
            self._shift, self._factor = np.rint(self._shift), np.ones(p)
        else:
            self._factor = 2.0 ** -np.floor(np.log2(deviation))  # no product overflows
        self._divisor = deviation * self._factor  # between one and two, if not exact
        self._still = np.zeros(p, bool) if screened.constant is None else screened.constant
        self.diagonal = upper_variances(screened) / unit
        self.error_weights = np.zeros(p)
        self._held = np.empty(0, dtype=np.intp)  # the features of the last strip
        self._strip = np.empty((0, p))

    @property
    def n_features(self) -> int:
        return int(self.diagonal.size)

    @property
    def block_rows(self) -> int:
        """How many rows are read by one pass."""
        return rows_at_once(self.n_features, self._room)

    def without(self, features: np.ndarray) -> EveryRow:
        """Leave out features that no component may use: their entries are zero."""
        self._still = self._still.copy()
        self._still[features], self.diagonal[features] = True, 0.0
        return self

    def work(self, rows: int) -> float:
        """Return about how many nanoseconds it takes to read so many rows of a dense table."""
        return rows_work((self._rows.n_samples or 0, self.n_features), rows, self._room)

    def submatrix(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return covariances, rounded up in size; rows of the last strip are not read again."""
        if not np.isin(rows, self._held).all():
            self._read(rows)
        order = np.argsort(self._held)
        where = order[np.searchsorted(self._held, rows, sorter=order)]
        return np.asarray(self._strip[np.ix_(where, columns)])

    def _read(self, features: np.ndarray) -> None:
        self._strip = np.empty((0, self.n_features))  # the old one is freed first
        what = f"of {features.size} of {self.n_features} features with all"
        watch = Watch(self._monitor, "rows", what)
        sums = self._rows.accumulate(Strip(features, self._shift, self._factor, self._exact), watch)
        check_same_columns(self._moments, sums, self._rows.feature_names)
        self._held, self._strip = features, self._rounded_up(sums)

    def _rounded_up(self, sums: Strip) -> np.ndarray:
        """Turn the sums into covariances whose sizes are not less than the exact ones."""
        own, divisor = sums.columns, self._divisor
        mean, mass = sums.sums / sums.weight / divisor, sums.mass / sums.weight / divisor**2
        matrix = sums.cross
        size = np.sqrt(mass)
        error = SAFETY * margins.summed(sums.n_samples)
        if self._scale:
            # the entry and the deviations that divide it both have this error
            error, size = 2 * error, np.maximum(mass, 1.0)
        size[self._still] = 0.0
        for row, feature in enumerate(own):  # row by row, so that no second strip is held
            matrix[row] /= divisor[feature] * sums.weight * divisor
            if self._center:
                matrix[row] -= mean[feature] * mean
            off = error * size[feature] * size
            # Cauchy-Schwarz: no covariance exceeds the product of the deviations
            most = np.sqrt(self.diagonal[feature] * self.diagonal) * (1 + margins.claim())
            top = np.minimum(np.abs(matrix[row]) + off, most)
            if self._scale:  # where rounding may have eaten a deviation, no more is known
                top = np.where(error * np.maximum(size[feature], size) > LOST, most, top)
            top[self._still] = 0.0
            matrix[row] = np.where(matrix[row] >= -off, top, -top)
        matrix[self._still[own]] = 0.0
        return matrix


def _exact(moments: Moments, center: bool) -> bool:
    """Return whether sums of products about the integers next to the means are exact in double
    precision, in any order: none exceeds a sum of squares about them."""
    largest = max(abs(moments.low).max(initial=0.0), abs(moments.high).max(initial=0.0))
    if not moments.exact or largest >= EXACT:
        return False
    # an integer next to a computed mean is less than one away from the exact one
    return bool(moments.n_samples * (moments.variances(center).max(initial=0.0) + 1) < EXACT)
