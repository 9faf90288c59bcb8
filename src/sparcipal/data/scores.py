"""Scores of samples on components: (X - mean) / scale @ components', from the used columns only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .notes import listed, tell

if TYPE_CHECKING:
    from ..problem.problem import Component
    from ..problem.result import Result
    from .facts import Data

RULES_WITH_SCORES = "missing='mean', missing='rows' or missing='pairwise'"
BLOCK = 1 << 22  # entries of the used columns of a dense array that are worked on together


class Scorer:
    """The part of a result that scoring needs; it is small, so that it can be sent to workers.

    Attributes
    ----------
    n_features : int
    used : ndarray
        The columns that some component uses, increasing.
    """

    def __init__(self, result: Result) -> None:
        if result.mean is None or result.scale is None:
            raise ValueError(
                "the result came from a covariance matrix: there are no samples to score"
            )
        self.n_features = result.n_features
        self.n_components = len(result.supports)
        self.used = np.unique(np.concatenate(result.supports))
        # (features, components), divided by the scale so that the data need not be
        self.loadings = (result.components[:, self.used] / result.scale[self.used]).T
        self.mean = result.mean[self.used]
        self.scale = result.scale[self.used]
        self._gaps = _rule(result, self.used)
        self._names = [result.feature_name(int(i)) for i in self.used]

    @property
    def takes_gaps(self) -> bool:
        """Whether entries may be missing, as they were in the fit."""
        return self._gaps is not None

    @property
    def fill(self) -> np.ndarray | None:
        """What stands for a missing entry of each feature; None where entries are predicted."""
        return self._gaps.fill if isinstance(self._gaps, _Filled) else None

    def __call__(self, X: Any) -> np.ndarray:
        """Score the rows of X (array, memory map or sparse); only the columns `used` are read."""
        return _with_a_word(self.quietly(X))

    def quietly(self, X: Any) -> np.ndarray:
        """Score the rows of X without a warning for those that have no entry to score."""
        self.check_width(X.shape[1])
        if sp.issparse(X):
            return self.of_columns(X[:, self.used])
        step = max(1, BLOCK // self.used.size)
        scores = np.empty((X.shape[0], self.n_components))
        for start in range(0, X.shape[0], step):
            scores[start : start + step] = self.of_columns(X[start : start + step, self.used])
        return scores

    def check_width(self, width: int) -> None:
        if width != self.n_features:
            raise ValueError(
                f"X has {width} features, but the components were found on {self.n_features}"
            )

    def of_columns(self, columns: Any) -> np.ndarray:
        """Score rows given by their used columns; the scores of a row depend on no other row."""
        if sp.issparse(columns):
            stored: Any = sp.csr_array(columns).astype(np.float64)
            self._check_finite(stored.data, stored.indices)
            return np.asarray(stored @ self.loadings) - self.mean @ self.loadings
        dense = np.asarray(columns, dtype=np.float64)
        if self._gaps is not None and np.isnan(dense).any():
            dense = self._gaps(dense, self.mean, self.scale)
            known = dense[~np.isnan(dense).all(axis=1)]
        else:
            known = dense
        self._check_finite(known, np.arange(self.used.size))
        # The summation order of a matrix product may depend on the number of rows.
        return np.einsum("ij,jk->ik", dense - self.mean, self.loadings)

    def _check_finite(self, entries: np.ndarray, columns: np.ndarray) -> None:
        """Raise ValueError where `entries`, whose last axis has these columns, are not finite."""
        wrong = ~np.isfinite(entries)
        if not wrong.any():
            return
        places = np.unique(np.broadcast_to(columns, entries.shape)[wrong])
        names = listed([repr(self._names[j]) for j in places.tolist()])
        raise ValueError(
            f"X contains {int(wrong.sum())} NaN or infinities in columns that components use "
            f"({names}); fill them, or fit with {RULES_WITH_SCORES}, which score rows with gaps too"
        )


class _Filled:
    """Missing entries are what they were in the fit: the mean or median of their column."""

    def __init__(self, fill: np.ndarray, used: np.ndarray) -> None:
        self.fill, self._used = fill, fill[used]

    def __call__(self, rows: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(rows), self._used, rows)


class _Predicted:
    """Missing entries are predicted linearly, as well as can be, from those of the row that are
    there: by the covariance of the features that components use. A row without any stays nan."""

    def __init__(self, covariance: np.ndarray) -> None:
        self._covariance = covariance

    def __call__(self, rows: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
        absent = np.isnan(rows)
        out = rows.copy()
        away = np.where(absent, 0.0, (rows - mean) / scale)
        for pattern in np.unique(absent[absent.any(axis=1)], axis=0):
            gone, there = np.flatnonzero(pattern), np.flatnonzero(~pattern)
            if not there.size:
                continue
            C = self._covariance
            weights = C[np.ix_(gone, there)] @ np.linalg.pinv(C[np.ix_(there, there)], 1e-10, True)
            for i in np.flatnonzero((absent == pattern).all(axis=1)):
                out[i, gone] = mean[gone] + scale[gone] * (weights @ away[i, there])
        return out


def _rule(result: Result, used: np.ndarray) -> _Filled | _Predicted | None:
    """Return how missing entries are scored; None for a fit without any. A file may say anything,
    so that what is no array of the right shape is an error."""
    told = result.info.get("missing")
    if not isinstance(told, dict):
        return None
    fill, covariance = told.get("fill"), told.get("covariance")
    if isinstance(fill, np.ndarray) and fill.shape == (result.n_features,):
        return _Filled(fill.astype(np.float64), used)
    u = used.size
    square = isinstance(covariance, np.ndarray) and covariance.shape == (u, u)
    if covariance is not None and square and np.isfinite(covariance).all():
        return _Predicted(covariance.astype(np.float64))
    raise ValueError("the result is damaged: what it says of missing entries cannot be used")


def filling(data: Data, components: tuple[Component, ...]) -> dict[str, Any]:
    """Return what scoring rows with gaps needs, as a result keeps it."""
    gaps = data.gaps
    if gaps is None:
        return {}
    told: dict[str, Any] = {"rule": gaps.rule, "entries": gaps.entries, "rows": gaps.rows}
    if gaps.fill is not None:
        return {"missing": {**told, "fill": gaps.fill}}
    used = np.unique(np.concatenate([c.support for c in components]))
    covariance = data.covariance.submatrix(used) * data.covariance.unit
    return {"missing": {**told, "covariance": covariance}}


def scores(result: Result, X: Any) -> np.ndarray:
    """Return one row per sample of X (array, memory map or sparse), one column per component."""
    return Scorer(result)(X)


def scores_of_blocks(scorer: Scorer, blocks: Iterator[Any]) -> np.ndarray:
    """Score samples that come in blocks of rows; one block at a time is held."""
    parts = [np.empty((0, scorer.n_components)), *map(scorer.quietly, blocks)]
    return _with_a_word(np.concatenate(parts))


def _with_a_word(scores: np.ndarray) -> np.ndarray:
    """Return the scores; a warning names the rows that have none, in which nothing was entered."""
    gone = np.flatnonzero(np.isnan(scores).any(axis=1))
    if gone.size:
        rows = listed([str(i) for i in gone.tolist()])
        what = "without an entry in any column that components use"
        tell((f"scores are nan in {gone.size} row(s) {what}: {rows} (counted from 0)",))
    return scores


def strongest_samples(values: np.ndarray, component: int, count: int) -> np.ndarray:
    """Return the samples with the largest scores on a component, the largest first."""
    return np.argsort(-values[:, component], kind="stable")[:count]
