"""Results of screened tables: the covariance of the kept features, the variances of all, and what
a dropped feature could add.

The mathematics is in docs/methods/dropped.rst; the code is not shared with the solver.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import kyfan
from .budget import Refused
from .cheap import psd_shift
from .covariance import EPS, Checked, CheckedCovariance
from .family import Case
from .records import Dropped, DroppedPart, Screening
from .sums import Sums, summed
from .tables import source_of


class KeptCovariance(CheckedCovariance):
    """A matrix of products over rows: positive semidefinite up to rounding.

    `allowed` holds, per feature, how much error of its variance an honest computation may count.
    """

    def __init__(
        self,
        matrix: np.ndarray,
        unit: float,
        error_unit: float,
        inert: np.ndarray,
        *,
        weights: np.ndarray,
        allowed: np.ndarray | None,
        largest: float = 1.0,
    ) -> None:
        super().__init__(
            matrix,
            None,
            unit,
            error_unit,
            inert,
            weights=weights,
            allowed=allowed,
            largest=largest,
        )

    @property
    def given(self) -> bool:
        return False

    def _part(self, kept: np.ndarray) -> CheckedCovariance:
        return KeptCovariance(
            self._left[np.ix_(kept, kept)],
            self.unit,
            self.error_unit,
            self.inert[kept],
            weights=self.weights[kept],
            allowed=None if self.allowed is None else self.allowed[kept],
            largest=self.largest,
        )


class ScreenedCovariance(CheckedCovariance):
    """All features have a variance; entries are known between kept features only."""

    def __init__(
        self,
        inner: CheckedCovariance,
        kept: np.ndarray,
        variances: np.ndarray,
        upper: np.ndarray,
        inert: np.ndarray,
        loose: np.ndarray,
    ) -> None:
        self.inner, self.kept, self.diagonal = inner, kept, variances
        self.unit, self.error_unit = inner.unit, inner.error_unit
        self.weights = np.zeros(variances.size)
        self.weights[kept] = inner.weights
        self.upper = upper  # the variances, rounded up
        self.loose = loose  # how far off the variances of another computation may be
        self.inert = inert
        self._mean = inner._mean

    def submatrix(self, rows: Any, cols: Any = None) -> np.ndarray:
        cols = rows if cols is None else cols
        return self.inner.submatrix(self._places(rows), self._places(cols))

    def in_range(self) -> bool:
        return self.inner.in_range()

    def allowance(self, s: int) -> float:
        return self.inner.allowance(s)

    def _places(self, features: Any) -> np.ndarray:
        features = np.asarray(features, dtype=np.intp)
        where = np.searchsorted(self.kept, features)
        if not np.array_equal(self.kept[np.minimum(where, self.kept.size - 1)], features):
            raise Refused("a component uses a feature that was not kept")
        return where

    @property
    def doubts(self) -> np.ndarray:
        """By how much the variances of another computation may differ, per feature."""
        return self.upper - self.diagonal + self.loose

    @property
    def doubt(self) -> float:
        return float(self.doubts.sum())

    @property
    def others(self) -> np.ndarray:
        """Variances of the dropped features, the largest first, rounded up."""
        return np.sort(np.delete(self.upper, self.kept))[::-1]


def of_given(screened: Any, kept: np.ndarray, unit: float) -> ScreenedCovariance:
    """From a matrix and variances that came from elsewhere."""
    if not np.array_equal(np.asarray(screened.kept), kept):
        raise Refused("other features were kept")
    A = np.asarray(screened.matrix, dtype=np.float64) / unit
    variances = np.asarray(screened.variances, dtype=np.float64) / unit
    if A.shape != (kept.size, kept.size) or not np.isfinite(A).all():
        raise Refused("the matrix is not that of the kept features")
    A = (A + A.T) / 2
    inert, largest = np.logical_not(A.any(axis=0)), float(np.abs(A).max()) * unit
    error = float(screened.error_unit)
    if screened.error_weights is None:
        inner = CheckedCovariance(A, None, unit, error, inert, largest=largest)
    else:
        weights = np.asarray(screened.error_weights, dtype=np.float64) / unit
        inner = KeptCovariance(
            A, unit, error, inert, weights=weights, allowed=error * weights, largest=largest
        )
    errors = 0.0 if screened.errors is None else np.asarray(screened.errors) / unit
    upper = variances * (1 + 2 * EPS) + errors
    return ScreenedCovariance(
        inner, kept, variances, upper, variances == 0, np.zeros(variances.size)
    )


def of_data(
    X: Any,
    kept: np.ndarray,
    center: bool,
    scale: bool,
    sample_weight: Any,
    unit: float,
    about: np.ndarray | None = None,
    n: int = 0,
) -> Checked:
    """The covariance of the kept columns, with means and scales of all.

    `about` are numbers near the means and `n` is about the number of rows, if these are known: they
    say where sums begin, and nothing is believed of them.
    """
    weights = None if sample_weight is None else _weights(sample_weight)
    total = summed(source_of(X), kept, weights, about, n)
    variances, errors, mean = total.columns(center)
    matrix, second = total.matrix(center)
    constant = total.constant(center)
    still = constant[kept]
    matrix[still], matrix[:, still], second[still] = 0.0, 0.0, 0.0
    variances, errors = np.where(constant, 0.0, variances), np.where(constant, 0.0, errors)
    loose, error = total.loose(center), total.error
    allowed, largest = loose[kept], 1.0
    spread, blur = np.ones(variances.size), np.zeros(variances.size)
    if scale:
        varying = variances > 0
        spread = np.where(varying, np.sqrt(variances), 1.0)
        blur = np.minimum(loose / spread, np.sqrt(loose))
        matrix = matrix / np.outer(spread[kept], spread[kept])
        ratio = np.where(still, 0.0, second / np.maximum(variances[kept], 1e-300))
        second, error = ratio * ratio, 2 * error
        allowed = _squared(allowed / np.maximum(variances[kept], 1e-300), total)
        # one, whatever rounding has left of a variance
        errors = loose = np.where(constant, 0.0, 4 * EPS)
        variances = np.where(constant, 0.0, 1.0)
    else:
        largest = max(float(np.abs(side).max()) for side in (total.low, total.high)) ** 2
    matrix[np.diag_indices(kept.size)] = variances[kept]
    inner = KeptCovariance(
        matrix / unit, unit, error, still,
        weights=second / unit, allowed=allowed / unit, largest=largest,
    )  # fmt: skip
    upper = (variances * (1 + 2 * EPS) + errors) / unit
    out = ScreenedCovariance(inner, kept, variances / unit, upper, constant, loose / unit)
    sums = (2 * total.n + 40) * EPS
    mean_error = sums * (np.abs(mean) + np.maximum(total.high, 0) - np.minimum(total.low, 0))
    mean = mean if center else np.zeros(mean.size)
    return Checked(out, mean, spread, total.n, mean_error, sums * spread + blur)


def _weights(sample_weight: Any) -> np.ndarray:
    """The weights of the rows. Whether there is one for each is known after a pass over them."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be one finite number per row, none of them negative")
    if not weights.any():
        raise ValueError("sample_weight is zero for every sample")
    return weights


def _squared(relative: np.ndarray, total: Sums) -> np.ndarray:
    """What an error of a variance, relative to it, makes of a standardised entry."""
    one = (24 * total.n + 400) * EPS
    return 2 * relative * np.maximum(relative / one, 1.0)


# --- what a dropped feature could add ---


def touching(record: Dropped | DroppedPart, inside: float, case: Case) -> float:
    """No choice with a dropped feature explains more; `inside` bounds the others."""
    cov: Any = case.cov
    n, case = case.question.n_nonzero, case._replace(cov=cov.inner)
    others = cov.others[:n]
    others = others[others > 0]
    if others.size == 0:
        return 0.0
    t = np.arange(1, others.size + 1)
    gains = np.cumsum(others)
    heavy = np.zeros(n)
    largest = np.sort(np.maximum(cov.inner.diagonal, 0.0))[::-1][:n]
    heavy[: largest.size] = largest
    shift = psd_shift(case)
    traces = np.append(0.0, np.cumsum(heavy + shift))[n - t] + cov.inner.rounding(n)
    stay = np.minimum(inside, traces * (1 + n * EPS))
    if record.rule == "prices":
        price, split = record.price, record.split
        if price is None or split is None:
            raise Refused("screened: the certificate of the prices is missing")
        base, prices = kyfan.spectrum(split, case, price, empty=True)
        rest = cov.inner.p - prices.size
        prices = np.sort(np.append(prices, np.full(min(rest, n), price)))[::-1][:n]
        prices = np.append(prices, np.zeros(n - prices.size))
        paid = np.append(0.0, np.cumsum(prices))[n - t] * (1 + n * EPS)
        stay = np.minimum(stay, base + paid + cov.inner.rounding(n))
    return float((stay + gains).max()) * (1 + (n + 4) * EPS)


def by_parts(record: Dropped, own: dict[int, float], case: Case) -> tuple[float, float]:
    """Overlapping supports: (touching, total), one extension per component."""
    reach: dict[int, float] = {}
    for part in record.parts or ():
        reach[part.s] = touching(part, own[part.s], case.alone(part.s))
    highest = {s: max(reach[s], own[s]) for s in own}
    total = sum(highest[s] for s in case.question.cardinalities)
    touch = max(total - highest[s] + reach[s] for s in own)
    rise = 1 + case.question.k * EPS
    return touch * rise, total * rise


def unfounded(claims: Screening, record: Dropped, cov: ScreenedCovariance, sure: float) -> str:
    """What the certificate says of the screening and does not follow; "" if all does.

    `sure` is the value less its rounding, in the user's units.
    """
    touching, inside = record.touching * cov.unit, record.inside * cov.unit
    if claims.kept != cov.kept.size or claims.dropped != np.count_nonzero(cov.others):
        return "the numbers of kept and dropped features are not those of the data"
    # Each variance of another computation is off by its own error, and so the largest is between
    # the largest ones of what all of them are at least and at most.
    variances, doubts = (np.delete(a, cov.kept) * cov.unit for a in (cov.upper, 8 * cov.doubts))
    largest = float(variances.max(initial=0.0))
    low = float((variances - doubts).max(initial=0.0)) - 8 * EPS * largest
    high = float((variances + doubts).max(initial=0.0)) + 8 * EPS * largest
    if not low <= claims.largest_dropped <= high:
        return f"the largest variance of a dropped feature is {largest:.12g}"
    rules = {part.rule for part in record.parts or ()} or {record.rule}
    told = (claims.touching, claims.inside, claims.rule)
    if told != (touching, inside, record.rule) or record.rule not in rules:
        return "the screening is told differently in certificate and proof"
    follows = (touching < sure, touching <= inside)
    if (claims.support_unchanged, claims.bound_holds) != follows:
        return "a claim about the dropped features does not follow"
    return ""
