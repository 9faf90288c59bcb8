"""What came in, as a covariance (of a table, or given, or screened), or as rows still to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import settings as validate
from ..problem.covariance import Covariance, covariance_of, covariance_of_data
from ..problem.monitor import Monitor
from .passes import Stream, source_of
from .screening import Screened, Survivors, survivors
from .table import Table, checked_names


@dataclass(frozen=True)
class Data:
    """What came in, as a covariance, with what the result must remember of it."""

    covariance: Covariance
    feature_names: tuple[str, ...] | None
    n_samples: int | None = None
    mean: np.ndarray | None = None
    scale: np.ndarray | None = None
    center: bool = False
    scaled: bool = False
    weighted: bool = False
    survivors: Survivors | None = None  # when some features were dropped by their variance

    @property
    def n_features(self) -> int:
        dropped = self.survivors
        return self.covariance.n_features if dropped is None else dropped.n_features

    @property
    def total_variance(self) -> float:
        if self.survivors is not None:
            return self.survivors.total
        return float(self.covariance.diagonal.sum())


def data_of(
    X: Any,
    covariance: Any,
    center: Any,
    scale: Any,
    sample_weight: Any,
    feature_names: Any,
    memory_limit: int,
    monitor: Monitor,
) -> Data | Stream:
    if (X is None) == (covariance is None):
        raise ValueError("pass exactly one of X (data) and covariance (a matrix)")
    center, scale = validate.flag("center", center), validate.flag("scale", scale)
    if covariance is None:
        source = source_of(X, feature_names, memory_limit, monitor)
        if isinstance(source, Table):
            return _from_table(source, center, scale, sample_weight)
        if sample_weight is not None:
            n = np.size(sample_weight) if source.n_samples is None else source.n_samples
            source.weighted(validate.given_weights(sample_weight, n))
        return Stream(source, center, scale, memory_limit)
    for name, value in (("sample_weight", sample_weight is not None), ("scale", scale)):
        if value:
            raise ValueError(f"{name} needs the data; pass X instead of covariance")
    if isinstance(covariance, Screened):
        names = None if feature_names is None else checked_names(feature_names)
        return from_screened(covariance, names)
    given = _checked(covariance_of(covariance))
    columns = getattr(covariance, "columns", None)
    names = None if columns is None else tuple(str(name) for name in columns)
    if names is not None and names != tuple(str(name) for name in covariance.index):
        raise ValueError("covariance has other names in its rows than in its columns; reorder one")
    if feature_names is not None:
        names = checked_names(feature_names)
    if names is not None and len(names) != given.n_features:
        raise ValueError(
            f"feature_names has {len(names)} names for n_features={given.n_features} features"
        )
    return Data(given, names)


def _from_table(table: Table, center: bool, scale: bool, sample_weight: Any) -> Data:
    n, _ = table.shape
    if center and n == 1:
        raise ValueError(
            "X has 1 sample, n_samples=1: centring leaves nothing of it; pass at least 2 samples, "
            "or center=False"
        )
    weights = validate.sample_weights(sample_weight, n)
    covariance, mean, spread = covariance_of_data(
        table.X, center=center, scale=scale, sample_weight=weights
    )
    weighted = sample_weight is not None
    return Data(_checked(covariance), table.feature_names, n, mean, spread, center, scale, weighted)


def from_screened(screened: Screened, names: tuple[str, ...] | None) -> Data:
    kept = survivors(screened)
    if names is not None and len(names) != kept.n_features:
        raise ValueError(
            f"feature_names has {len(names)} names for n_features={kept.n_features} features"
        )
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
