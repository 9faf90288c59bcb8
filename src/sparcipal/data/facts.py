"""The covariance that is searched, of a table, of pairs of entries or of sums over rows, and the
facts about its source that a result records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..numerics import margins
from ..numerics.margins import TINY
from ..problem.covariance import (
    MOSTLY_MEAN,
    Covariance,
    Doubt,
    MatrixCovariance,
    covariance_of,
    covariance_of_data,
)
from .inputs import Input
from .missing import Gaps, Pairwise, pairwise
from .screening import Screened, Survivors, survivors
from .table import Table


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
    constant: np.ndarray | None = None  # (p,) the features that do not vary, where that is known

    @cached_property
    def formed(self) -> Covariance:
        """Return the covariance, its matrix formed where that pays."""
        return self.covariance.materialise()

    def part(self, places: np.ndarray) -> Data:
        """Return the same of some of the kept features, for what is told of an answer: no bound may
        rest on it, since those left out are not counted as dropped."""
        assert self.survivors is not None
        kept = self.survivors
        covariance = kept.covariance.restrict(places)
        part = replace(kept, covariance=covariance, kept=kept.kept[places])
        return replace(self, covariance=covariance, survivors=part)

    def in_memory(self) -> Data:
        """Return the same data for an answer that came from a table in memory.

        Where rows were read in passes, errors become those of products of whole columns, sparse or
        dense. These may be larger than those of sums over blocks, but the answer was computed with
        them, and the checker allows for them.
        """
        if self.survivors is None:
            return self
        if self.n_samples is None or self.mean is None or self.scale is None:
            return replace(self, survivors=None)
        own, spread = self.survivors.covariance, self.scale if self.scaled else 1.0
        variances = np.maximum(own.diagonal, TINY)
        moments = 1 + np.square(self.mean / spread) / own.unit / variances
        moments = np.minimum(moments, 2 * MOSTLY_MEAN)
        weights = own.diagonal * (moments**2 if self.scaled else moments)
        error = max(margins.scaled_sparse_products(self.n_samples), own.error_unit)
        doubt = Doubt(error, np.maximum(weights, own.error_weights))
        covariance = MatrixCovariance(
            own.matrix, own.unit, doubt, n_samples=own.n_samples, inert=own.inert
        )
        return replace(self, covariance=covariance, survivors=None)

    @property
    def n_features(self) -> int:
        dropped = self.survivors
        return self.covariance.n_features if dropped is None else dropped.n_features

    @property
    def total_variance(self) -> float:
        if self.survivors is not None:
            return self.survivors.total
        return float(self.covariance.diagonal.sum())


def data_of_table(given: Input, center: bool, scale: bool) -> Data:
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
        varying(covariance),
        given.feature_names,
        n,
        mean,
        spread,
        center,
        scale,
        weighted,
        gaps=given.gaps,
        constant=covariance.inert,
    )


def data_of_pairs(given: Input, center: bool, scale: bool) -> Data:
    """Use the covariances of what is there; from here on they are a given matrix."""
    table, weights = given.source, given.sample_weight
    assert isinstance(table, Table)
    found = pairwise(table.X, weights, center, scale, given.feature_names)
    return Data(
        varying(covariance_of(found.matrix)),
        given.feature_names,
        table.shape[0],
        found.mean,
        found.scale,
        center,
        scale,
        weights is not None,
        gaps=given.gaps,
        repaired=found,
        constant=np.logical_not(found.matrix.any(axis=0)),
    )


def data_of_screened(
    screened: Screened, names: tuple[str, ...] | None, *, consume: bool = False
) -> Data:
    """Use the covariance of the kept features; `consume` overwrites `screened.matrix`."""
    kept = survivors(screened, consume=consume)
    known = screened.n_samples is not None and screened.mean is not None
    return Data(
        varying(kept.covariance),
        names,
        screened.n_samples,
        screened.mean,
        np.ones(kept.n_features) if known and screened.scale is None else screened.scale,
        screened.center,
        screened.scaled,
        screened.weighted,
        kept,
        constant=screened.constant if known else None,
    )


def varying(covariance: Covariance) -> Covariance:
    if covariance.inert.all():
        raise ValueError(
            "every feature is constant, so that there is no variance to explain; check X (and "
            "center)"
        )
    return covariance
