"""The features that are searched: all, or those that vary most when rows are read in passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..problem.covariance import Covariance, covariance_of, covariance_of_data
from ..problem.monitor import Monitor
from .inputs import Input
from .missing import Gaps, Pairwise, pairwise
from .passes import Stream
from .rows import Rows
from .screening import Screened, Survivors, survivors
from .table import Table


class Searched:
    """Holds the covariance of the features that are searched; `more` reads further features.

    Parameters
    ----------
    given : Input
    center, scale : bool
    memory_limit : int
    monitor : Monitor
    """

    def __init__(
        self, given: Input, center: bool, scale: bool, memory_limit: int, monitor: Monitor
    ) -> None:
        self._given, self._monitor = given, monitor
        self._stream: Stream | None = None
        self._data: Data | None = None
        self._needed = self._count = 0
        source, names = given.source, given.feature_names
        if isinstance(source, Rows):
            self._stream = Stream(source, center, scale, memory_limit)
        elif given.gaps is not None and given.gaps.rule == "pairwise":
            self._use(_from_pairs(given, center, scale))
        elif isinstance(source, Table):
            self._use(_from_table(given, center, scale))
        elif scale:
            raise ValueError("scale needs the data; pass X instead of covariance")
        elif isinstance(source, Screened):
            self._use(_from_screened(source, names))
        else:
            self._use(Data(_checked(source), names))

    @property
    def data(self) -> Data:
        assert self._data is not None, "rows are read by `begin`"
        return self._data

    def begin(self, needed: int) -> None:
        """Read the rows, if data come in rows, for an answer of `needed` nonzeros."""
        self._needed = needed
        if self._stream is not None:
            self._stream.count(self._monitor)
            self._read(self._stream, self._stream.first(needed))

    def more(self, enough: float) -> bool:
        """Keep more features, so that few of variance above `enough` are left; False if it cannot.

        Raises KeyboardInterrupt or TimeoutError when the pass is stopped.
        """
        stream = self._stream
        if stream is None or self._count >= stream.most(self._needed):
            return False
        if self._monitor.stopped is not None:
            return False
        unit = self.data.covariance.unit
        self._read(stream, stream.more(self._count, self._needed, enough * unit))
        return True

    def _read(self, stream: Stream, count: int) -> None:
        screened = stream.screened(count, self._monitor)
        self._use(_from_screened(screened, self._given.feature_names, consume=True))
        self._count = count

    def _use(self, data: Data) -> None:
        self._data = data
        self._monitor.measure_in(data.covariance.unit)


@dataclass(frozen=True)
class Data:
    """A covariance, and the facts about its source that a result records."""

    covariance: Covariance
    feature_names: tuple[str, ...] | None
    n_samples: int | None = None
    mean: np.ndarray | None = None
    scale: np.ndarray | None = None
    center: bool = False
    scaled: bool = False
    weighted: bool = False
    survivors: Survivors | None = None  # when some features were dropped by their variance
    gaps: Gaps | None = None  # what was done about missing entries
    repaired: Pairwise | None = None  # the covariance, when it was made of pairs

    @cached_property
    def formed(self) -> Covariance:
        """Return the covariance, its matrix formed where that pays."""
        return self.covariance.materialise()

    @property
    def n_features(self) -> int:
        dropped = self.survivors
        return self.covariance.n_features if dropped is None else dropped.n_features

    @property
    def total_variance(self) -> float:
        if self.survivors is not None:
            return self.survivors.total
        return float(self.covariance.diagonal.sum())


def _from_table(given: Input, center: bool, scale: bool) -> Data:
    table, weights = given.source, given.sample_weight
    assert isinstance(table, Table)
    n, _ = table.shape
    if center and n == 1:
        raise ValueError(
            "X has 1 sample, n_samples=1: centring leaves nothing of it; pass at least 2 samples, "
            "or center=False"
        )
    covariance, mean, spread = covariance_of_data(
        table.X, center=center, scale=scale, sample_weight=weights
    )
    weighted = weights is not None
    return Data(
        _checked(covariance),
        given.feature_names,
        n,
        mean,
        spread,
        center,
        scale,
        weighted,
        gaps=given.gaps,
    )


def _from_pairs(given: Input, center: bool, scale: bool) -> Data:
    """Use the covariances of what is there; from here on they are a given matrix."""
    table, weights = given.source, given.sample_weight
    assert isinstance(table, Table)
    found = pairwise(table.X, weights, center, scale, given.feature_names)
    return Data(
        _checked(covariance_of(found.matrix)),
        given.feature_names,
        table.shape[0],
        found.mean,
        found.scale,
        center,
        scale,
        weights is not None,
        gaps=given.gaps,
        repaired=found,
    )


def _from_screened(
    screened: Screened, names: tuple[str, ...] | None, *, consume: bool = False
) -> Data:
    """Use the covariance of the kept features; `consume` overwrites `screened.matrix`."""
    kept = survivors(screened, consume=consume)
    known = screened.n_samples is not None and screened.mean is not None
    return Data(
        _checked(kept.covariance),
        names,
        screened.n_samples,
        screened.mean,
        np.ones(kept.n_features) if known and screened.scale is None else screened.scale,
        screened.center,
        screened.scaled,
        screened.weighted,
        kept,
    )


def _checked(covariance: Covariance) -> Covariance:
    if covariance.inert.all():
        raise ValueError(
            "every feature is constant, so that there is no variance to explain; check X (and "
            "center)"
        )
    return covariance
