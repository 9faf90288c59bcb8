"""The same table with some of its rows, or with other weights: for folds and resamples."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .inputs import Input
from .missing import for_new_samples, without_gaps
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
    part = Input(table, given.feature_names, None if old is None else old[kept])
    if given.unfilled is None:
        return part
    return replace(part, gaps=given.gaps, unfilled=table)


def unfilled(given: Input) -> Input:
    """Return the table in memory with the gaps that were filled in it; `filled` fills parts."""
    held = isinstance(given.source, Table)
    return replace(given, source=given.unfilled) if held and given.unfilled is not None else given


def filled(part: Input) -> Input:
    """Return a part of an unfilled table, its gaps filled by what is there in this part.

    A column without an entry in it has what it was filled with in the whole.
    """
    gaps, source = part.gaps, part.source
    if part.unfilled is None or gaps is None or gaps.fill is None:
        return part
    assert isinstance(source, Table)
    empty = np.isnan(source.X).all(axis=0)
    whole = Table(np.where(empty, gaps.fill, source.X), part.feature_names)._check_but_for_gaps()
    table, weights, own = without_gaps(whole, gaps.rule, part.sample_weight)
    own = own or for_new_samples(table, gaps.rule, weights)
    return Input(table, part.feature_names, weights, gaps=own)


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
