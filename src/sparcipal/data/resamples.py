"""The same table with some of its rows, or with other weights: for folds and resamples."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .inputs import Input
from .moments import Moments
from .rows import MatrixRows, Rows
from .table import Table, stacked


def row_count(given: Input, needed_by: str) -> int:
    """Return the number of rows; rows of unknown number are counted, a covariance is refused."""
    source = given.source
    if isinstance(source, Table):
        return source.shape[0]
    if not isinstance(source, Rows):
        raise ValueError(f"{needed_by} needs the rows of the data; pass X instead of covariance")
    if source.n_samples is None:
        source.count()
    assert source.n_samples is not None
    return source.n_samples


def varying_features(given: Input, center: bool) -> np.ndarray:
    """Return the features that are not constant or, of data that are not centred, not zero."""
    source = given.source
    assert isinstance(source, Table | Rows)
    rows = source if isinstance(source, Rows) else MatrixRows(source)
    moments = rows.accumulate(Moments(given.n_features))
    return np.flatnonzero(~moments.constant if center else moments.variances(False) > 0.0)


def reweighted(given: Input, weights: np.ndarray) -> Input:
    """Return the same data, the weight of every row multiplied by one more.

    Rows of a table whose factor is zero are left out if all others are one; rows that are read in
    passes keep their place and get the weight.
    """
    source = given.source
    old = source.sample_weight if isinstance(source, Rows) else given.sample_weight
    if old is not None and not (weights * old).any():
        raise ValueError("all of its rows have sample_weight 0; give weights to more rows")
    if isinstance(source, Rows):
        rows = copy.copy(source).weighted(weights if old is None else weights * old)
        return replace(given, source=rows)
    assert isinstance(source, Table)
    if not np.isin(weights, (0.0, 1.0)).all():
        return replace(given, sample_weight=weights if old is None else weights * old)
    kept = np.flatnonzero(weights)
    table = stacked([_rows(source.X, kept)], source.feature_names)
    return Input(table, given.feature_names, None if old is None else old[kept])


def shuffled(given: Input, rng: np.random.Generator) -> Input:
    """Return a table of noise with the same columns: the entries of each are in a random order."""
    source = given.source
    assert isinstance(source, Table)
    if not sp.issparse(source.X):
        X: Any = rng.permuted(np.asarray(source.X), axis=0)
    else:
        by_column = source.X.tocsc(copy=True)
        n = by_column.shape[0]
        for start, stop in zip(by_column.indptr[:-1], by_column.indptr[1:]):
            by_column.indices[start:stop] = rng.choice(n, stop - start, replace=False)
        by_column.has_sorted_indices = False
        X = sp.csr_array(by_column)
        X.sort_indices()
    return replace(given, source=stacked([X], source.feature_names))


def _rows(X: Any, kept: np.ndarray) -> Any:
    return X.tocsr()[kept] if sp.issparse(X) else np.asarray(X[kept])
