"""The share of the variance of rows that components explain by regression on their scores.

Each feature is predicted by its regression on the scores of all components. With Z the rows,
centred and scaled as the model says, and T their scores, coefficients B leave

    |Z - TB|^2 = tr(Z'Z) - 2 tr(B'T'Z) + tr(B'T'TB)

unexplained. B is that of the fit, (T'T)^+ T'Z of its rows, or that of the rows at hand. What two
components have in common counts once, whether supports overlap or scores correlate.

Where entries are missing, `transform` says what T is. A gap that the fit would fill is filled in Z.
One that it would predict counts neither in |Z|^2 nor in |Z - TB|^2: TB stands for it in Z, with the
B of the fit, and its square is subtracted from the sum of squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import pinvh

from ..problem.problem import Component
from ..problem.result import Result
from .facts import Data
from .inputs import Input
from .moments import Moments
from .rows import A, Rows
from .scores import Scorer
from .table import Table

ROWS = 1 << 14  # rows of a table that are scored together
OF_MOMENTS = 10  # numbers that moments, and the making of them, hold of each feature
ROUNDING = 1e-15  # relative distance of means that are equal
DEPENDENT = 1e-12  # scores, and directions among them, that vary less are rounding


class Explained:
    """Sums over rows from which the share follows; blocks are added and merged like moments.

    Parameters
    ----------
    result : Result
        Its components, mean and scale are used.

    Attributes
    ----------
    n_samples : int
        Rows seen, those without a score left out.
    without_score : int
        Rows seen in which no feature has an entry that components use; nothing is counted of them.
    """

    def __init__(self, result: Result) -> None:
        self._result = result
        self._scorer = Scorer(result)  # refuses results of a covariance
        k = self._scorer.n_components
        self._moments = Moments(result.n_features)
        self._weight = 0.0
        self._sum = np.zeros(k)  # of the scores
        self._gram = np.zeros((k, k))  # T'T
        self._cross = np.zeros((k, result.n_features))  # T'(X - mean), not scaled
        self._absent = 0.0  # squares of what stands in Z for entries that are missing
        self.without_score = 0

    def copy_empty(self) -> Explained:
        return Explained(self._result)

    def add(self, block: Any, weights: np.ndarray | None = None) -> Self:
        if self._scorer.takes_gaps and not sp.issparse(block) and np.isnan(block).any():
            block, scores, weights = self._filled(np.asarray(block, dtype=np.float64), weights)
        else:
            scores = self._scorer(block)
        weighted = scores if weights is None else scores * weights[:, None]
        self._moments.add(block, weights)
        self._weight += float(block.shape[0] if weights is None else weights.sum())
        self._sum += weighted.sum(axis=0)
        self._gram += scores.T @ weighted
        mean = np.asarray(self._result.mean)
        if sp.issparse(block):
            self._cross += (block.T @ weighted).T - np.outer(weighted.sum(axis=0), mean)
        else:
            self._cross += weighted.T @ (np.asarray(block, dtype=np.float64) - mean)
        return self

    def _filled(
        self, rows: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return rows without gaps, their scores and weights; rows without a score are left out."""
        gaps, fill, result = np.isnan(rows), self._scorer.fill, self._result
        if fill is not None:
            rows = np.where(gaps, fill, rows)
            return rows, self._scorer(rows), weights
        scores = self._scorer.quietly(rows)
        scored = ~np.isnan(scores).any(axis=1)
        self.without_score += int((~scored).sum())
        rows, gaps, scores = rows[scored], gaps[scored], scores[scored]
        weights = None if weights is None else weights[scored]
        guess = scores @ _coefficients(result)
        squares = np.where(gaps, guess, 0.0) ** 2
        self._absent += float((squares if weights is None else weights[:, None] * squares).sum())
        return np.where(gaps, result.mean + guess * result.scale, rows), scores, weights

    def merge(self, other: Explained) -> Self:
        self._moments.merge(other._moments)
        self._weight += other._weight
        self._sum += other._sum
        self._gram += other._gram
        self._cross += other._cross
        self._absent += other._absent
        self.without_score += other.without_score
        return self

    @property
    def n_samples(self) -> int:
        return self._moments.n_samples

    @property
    def correlations(self) -> np.ndarray:
        """Correlations between the scores; 0 where a score is constant."""
        mean = self._sum / self._weight
        cov = self._gram / self._weight - np.outer(mean, mean)
        spread = np.sqrt(np.maximum(np.diag(cov), 0.0))
        scale = np.where(spread > 0.0, spread, 1.0)
        found = np.clip(cov / np.outer(scale, scale), -1.0, 1.0)
        np.fill_diagonal(found, 1.0)
        return found

    @property
    def score(self) -> float:
        """The share by the regression of the fit: at most 1, and negative where it predicts these
        rows worse than the means do; nan for rows that are these means, or weightless."""
        return self._share(_coefficients(self._result))

    @property
    def share(self) -> float:
        """The share by the regression of these rows, between 0 and 1; nan for rows that do not vary
        or have no weight.

        Any score would explain such rows entirely, by their distance from the mean of the fit.
        """
        if not (self._weight > 0.0 and self._moments.variances().any()):
            return float("nan")
        return max(0.0, self._share(None))

    def share_by(self, fit: Explained) -> float:
        """The share by the regression of other rows, of all features."""
        return self._share(fit.coefficients)

    @property
    def coefficients(self) -> np.ndarray:
        """The regression of these rows on their scores, (components, features)."""
        length, gram, cross = self._of_unit_length()
        unit = 1.0 / np.where(length > 0.0, length, 1.0)
        return np.asarray(unit[:, None] * (pinvh(gram, rtol=DEPENDENT) @ cross))

    def _of_unit_length(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the lengths of scores, and their products with each other and with the features,
        for scores of unit length: a small one is not taken for rounding of a large one."""
        assert self._result.scale is not None
        length = np.sqrt(np.diag(self._gram))
        unit = 1.0 / np.where(length > 0.0, length, 1.0)
        cross = unit[:, None] * self._cross / self._result.scale
        return length, unit[:, None] * self._gram * unit, cross

    def _share(self, coefficients: np.ndarray | None) -> float:
        result = self._result
        assert result.mean is not None
        assert result.scale is not None
        if not self._weight > 0.0:
            return float("nan")
        off = self._moments.means() - result.mean
        off[np.abs(off) <= ROUNDING * np.abs(result.mean)] = 0.0
        total = float(((self._moments.variances() + off**2) / result.scale**2).sum())
        total -= self._absent / self._weight
        if total <= 0.0:
            return float("nan")
        length, gram, cross = self._of_unit_length()
        if coefficients is None:
            found = float((pinvh(gram) * (cross @ cross.T)).sum())
        else:
            B = length[:, None] * coefficients
            found = float((B * (2.0 * cross - gram @ B)).sum())
        return min(1.0, (found - self._absent) / (self._weight * total))


def explained(
    result: Result, source: Table | Rows, sample_weight: np.ndarray | None = None
) -> Explained:
    """Sum over the rows of a checked table, or of rows that are read in one pass."""
    return _summed(Explained(result), source, sample_weight)


def shares_of_others(
    results: Sequence[Result], fitted: Input, others: Input, memory_limit: int
) -> list[float]:
    """Return the share of `others` that each result explains, by its regression on the rows that
    it was fitted to.

    Results of rows that are read in passes know the regression of the features that each has kept.
    That of all features is summed over the rows here, so that the shares mean one thing; as many
    results share a pass as fit the memory limit.
    """
    own = not any("features" in result.info["regression"] for result in results)
    most = max((len(result.supports) for result in results), default=1)
    fitting = memory_limit // (8 * (most + OF_MOMENTS) * fitted.n_features)
    together = max(1, fitting) if isinstance(others.source, Rows) else 1
    shares: list[float] = []
    for start in range(0, len(results), together):
        some = results[start : start + together]
        judges = _several(some, others)
        if own:
            shares += [judge.score for judge in judges]
        else:
            fits = _several(some, fitted)
            shares += [judge.share_by(fit) for fit, judge in zip(fits, judges, strict=True)]
    return shares


def _several(results: Sequence[Result], part: Input) -> list[Explained]:
    assert isinstance(part.source, Table | Rows)
    sums = _Several([Explained(result) for result in results])
    return _summed(sums, part.source, part.sample_weight).parts


class _Several:
    """Sums for several results over the same rows."""

    def __init__(self, parts: list[Explained]) -> None:
        self.parts = parts

    def copy_empty(self) -> _Several:
        return _Several([part.copy_empty() for part in self.parts])

    def add(self, block: Any, weights: np.ndarray | None = None) -> Self:
        for part in self.parts:
            part.add(block, weights)
        return self

    def merge(self, other: _Several) -> Self:
        for part, more in zip(self.parts, other.parts, strict=True):
            part.merge(more)
        return self


def _summed(sums: A, source: Table | Rows, sample_weight: np.ndarray | None) -> A:
    if isinstance(source, Rows):
        return source.accumulate(sums)
    X = source.X.tocsr() if sp.issparse(source.X) else source.X
    for start in range(0, X.shape[0], ROWS):
        rows = slice(start, start + ROWS)
        sums.add(X[rows], None if sample_weight is None else sample_weight[rows])
    return sums


def predicting(data: Data, components: tuple[Component, ...]) -> dict[str, Any]:
    """Return how the scores predict the features that were searched, as a result keeps it:
    coefficients of the regression by their covariance. Others are predicted by their means."""
    if data.mean is None:
        return {}
    covariance = data.covariance
    images = np.array([covariance.image(c.support, c.weights) for c in components])
    products = np.array([images[:, c.support] @ c.weights for c in components])
    deviations = np.sqrt(np.maximum(covariance.diagonal, 0.0))
    reach = np.array([deviations[c.support] @ np.abs(c.weights) for c in components])
    variances = np.diagonal(products)
    varies = variances > DEPENDENT * reach**2
    unit = np.where(varies, 1.0 / np.sqrt(np.where(varies, variances, 1.0)), 0.0)
    # one after the other: the product of two units may overflow
    inverse = pinvh(unit[:, None] * products * unit, rtol=DEPENDENT)
    told = {"coefficients": unit[:, None] * (inverse @ (unit[:, None] * images))}
    kept = data.survivors
    if kept is not None and kept.kept.size < kept.n_features:
        told["features"] = kept.kept
    return {"regression": told}


def _coefficients(result: Result) -> np.ndarray:
    """Return the coefficients of all features. A file may say anything, so that what is no
    regression of these components is an error."""
    told = result.info.get("regression")
    if told is None:
        raise ValueError(
            "the result was saved by a version that kept no regression on the scores, so that new "
            "rows have no score; fit again"
        )
    told = told if isinstance(told, dict) else {}
    found, features = told.get("coefficients"), told.get("features")
    every = np.arange(result.n_features)
    places = every if features is None else features
    known = isinstance(places, np.ndarray) and np.isin(places, every).all()
    shape = (len(result.supports), len(places) if known else 0)
    if not (isinstance(found, np.ndarray) and found.shape == shape and np.isfinite(found).all()):
        raise ValueError("the result is damaged: its regression on the scores cannot be used")
    whole = np.zeros((shape[0], every.size))
    whole[:, places] = found
    return whole
