"""Results of screened tables: the covariance of the kept features, the variances of all, and what
a dropped feature could add.

The mathematics is in docs/methods/dropped.rst; the code is not shared with the solver.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..problem.result import Bound, Result
from . import kyfan
from .adjusted import LoweredCovariance
from .arithmetic import EPS, Arithmetic, Numbers
from .budget import Budget, Refused, require
from .cheap import psd_shift
from .constraints import numbered, own_proof, spoken_of
from .containers import check_names
from .covariance import LEAST_DEVIATION, Checked, CheckedCovariance, Precision, Question
from .family import Case, Rounding, all_nonzeros, family_of, redone
from .gate import parse
from .records import Adjusted, Dropped, DroppedPart, LoweredMatrix, Parts, Screening
from .strips import EveryCovariance, Reading
from .sums import Sums, summed
from .tables import source_of
from .weights import weights_of

UNION = ("eigenvalues", "trace")  # bounds on all features together, however they are shared
NOTHING = "nothing dropped"  # the rule where no dropped feature varies
ONE_PASS = 1e-6  # the part of a variance that a computation by one reading of all columns may lose


class Prepared(NamedTuple):
    """How rows become a covariance, by the settings of a result."""

    center: bool
    scale: bool
    sample_weight: Any
    unit: float


class Variances(NamedTuple):
    """The variances of all features, in the proofs' units."""

    computed: np.ndarray
    upper: np.ndarray  # rounded up
    loose: np.ndarray  # how far off those of another computation may be
    inert: np.ndarray  # which features are constant


class ScreenedCovariance(CheckedCovariance):
    """All features have a variance; entries are known between kept features only."""

    def __init__(
        self,
        inner: CheckedCovariance,
        kept: np.ndarray,
        variances: Variances,
        every: Reading | CheckedCovariance | None = None,
    ) -> None:
        self.every = every  # where rows of all features come from
        self.inner, self.kept, self.diagonal = inner, kept, variances.computed
        self.unit, self.error_unit = inner.unit, inner.error_unit
        self.weights = np.zeros(self.diagonal.size)
        self.weights[kept] = inner.weights
        self.upper, self.loose, self.inert = variances.upper, variances.loose, variances.inert
        self.given, self.shifts = inner.given, {}
        self.counted = np.ones(self.diagonal.size, dtype=bool)  # features that may be used
        self.dropped = self.counted.copy()  # and are not kept
        self.dropped[kept] = False

    def without(self, excluded: np.ndarray) -> ScreenedCovariance:
        """Leave out features that no component may use: one that is not kept adds nothing."""
        self.dropped[excluded] = False
        self.counted[np.setdiff1d(excluded, self.kept)] = False
        return self

    def submatrix(self, rows: Any, cols: Any = None) -> np.ndarray:
        cols = rows if cols is None else cols
        return self.inner.submatrix(self._places(rows), self._places(cols))

    def known(self) -> tuple[CheckedCovariance, np.ndarray]:
        return self.inner, self.kept

    def in_range(self) -> bool:
        return self.inner.in_range()

    def allowance(self, s: int) -> float:
        return self.inner.allowance(s)

    def apart(self, features: np.ndarray) -> float:
        return self.inner.apart(self._places(features))

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
        own, loose = self.upper - self.diagonal, np.minimum(self.loose, ONE_PASS * self.diagonal)
        return float((own + loose).sum())

    @property
    def others(self) -> np.ndarray:
        """Variances of the dropped features, rounded up."""
        return self.upper[self.dropped]

    def every_row(
        self, features: np.ndarray, budget: Budget
    ) -> tuple[CheckedCovariance, np.ndarray]:
        """Return the covariance of all features that may be used, of which only some rows can be
        asked for, and where it has these ones."""
        if self.every is None:
            raise Refused("screened: rows of all features need the data")
        if isinstance(self.every, CheckedCovariance):
            if self.counted.all():
                return self.every, features
            allowed = np.flatnonzero(self.counted)
            return self.every.part(allowed), np.searchsorted(allowed, features)
        upper, inert = np.where(self.counted, self.upper, 0.0), self.inert | ~self.counted
        every = EveryCovariance(self.inner, self.kept, upper, inert, self.every, budget)
        return every, features


def kept_of(result: Result) -> np.ndarray:
    """Return which features a certificate says were kept."""
    first = result.certificate.bounds[0].data.get("screened")
    return parse(Dropped, first, {"P": result.n_features}, "screened").kept


def of_sums(given: Any, result: Result) -> Any:
    """Return the Screened of sums over rows, as a result's settings say; anything else as it is."""
    if not callable(getattr(given, "screened", None)):
        return given
    check_names(result.feature_names, given.feature_names)
    return given.screened(result.settings["center"], result.settings["scale"])


def of_given(screened: Any, kept: np.ndarray, unit: float) -> ScreenedCovariance:
    """Make it from a matrix and variances that came from elsewhere."""
    if not np.array_equal(np.asarray(screened.kept), kept):
        raise Refused("other features were kept")
    A = np.asarray(screened.matrix, dtype=np.float64) / unit
    variances = np.asarray(screened.variances, dtype=np.float64) / unit
    if A.shape != (kept.size, kept.size) or not np.isfinite(A).all():
        raise Refused("the matrix is not that of the kept features")
    A = (A + A.T) / 2
    _check_errors(screened)
    largest, error = float(np.abs(A).max()) * unit, float(screened.error_unit)
    weights = error_weights(screened) / unit
    errors = np.zeros(variances.size) if screened.errors is None else np.asarray(screened.errors)
    # what may vary by its error is not left out
    inert = np.logical_not(A.any(axis=0)) & (error * weights == 0) & (errors[kept] == 0)
    precision = Precision(unit, error, weights, largest=largest)
    inner = CheckedCovariance(A, None, inert, precision)
    upper = variances * (1 + 2 * EPS) + errors / unit
    known = Variances(variances, upper, np.zeros(variances.size), upper == 0)
    return ScreenedCovariance(inner, kept, known)


def error_weights(screened: Any) -> np.ndarray:
    """Return what errors of the matrix are relative to; its variances, unless it says otherwise."""
    own = screened.error_weights
    weights = np.abs(np.diagonal(screened.matrix)) if own is None else np.asarray(own)
    return weights.astype(np.float64)


def _check_errors(screened: Any) -> None:
    """Refuse errors that would make a bound smaller."""
    for name in ("error_unit", "error_weights", "errors"):
        given = getattr(screened, name)
        numbers = np.zeros(1) if given is None else np.asarray(given, dtype=np.float64)
        if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
            raise ValueError(f"{name} of the Screened must be finite and not negative")


def of_data(
    X: Any,
    kept: np.ndarray,
    prepared: Prepared,
    about: np.ndarray,
    n: int,
) -> Checked:
    """Return the covariance of the kept columns, with means and scales of all.

    `about` are numbers near the means and `n` is about the number of rows: they say where sums
    begin, and nothing is believed of them.
    """
    source, (center, scale, sample_weight, unit) = source_of(X), prepared
    shares = None if sample_weight is None else weights_of(sample_weight)
    total = summed(source, kept, shares, about, n)
    variances, errors, mean = total.columns(center)
    matrix, second = total.matrix(center)
    constant = total.constant(center)
    still = constant[kept]
    matrix[still], matrix[:, still], second[still] = 0.0, 0.0, 0.0
    variances, errors = np.where(constant, 0.0, variances), np.where(constant, 0.0, errors)
    far = total.high - total.low if center else np.maximum(abs(total.high), abs(total.low))
    moving = np.asarray(far, dtype=float)[~constant]
    require(bool((moving > LEAST_DEVIATION).all()), "deviations that squares lose")
    loose, error = total.loose(center), total.error
    allowed, largest = loose[kept], 1.0
    spread, blur = np.ones(variances.size), np.zeros(variances.size)
    if scale:
        varying = variances > 0
        spread = np.where(varying, np.sqrt(variances), 1.0)
        blur = np.minimum(loose / spread, np.sqrt(loose))
        blur = np.minimum(blur, 4 * errors / spread + ONE_PASS * spread)
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
    inner = CheckedCovariance(
        matrix / unit, None, still,
        Precision(unit, error, second / unit, allowed / unit, largest), given=False,
    )  # fmt: skip
    upper = (variances * (1 + 2 * EPS) + errors) / unit
    divisor = spread if scale else np.full(spread.size, np.sqrt(unit))
    near = about if center else np.zeros(about.size)
    every = Reading(
        source, shares, center, scale, near, divisor, total.n, total.weight, mean
    )  # fmt: skip
    known = Variances(variances / unit, upper, loose / unit, constant)
    out = ScreenedCovariance(inner, kept, known, every)
    sums = (2 * total.n + 40) * EPS
    mean_error = sums * (np.abs(mean) + np.maximum(total.high, 0) - np.minimum(total.low, 0))
    mean = mean if center else np.zeros(mean.size)
    return Checked(out, mean, spread, total.n, mean_error, sums * spread + blur)


def _squared(relative: np.ndarray, total: Sums) -> np.ndarray:
    """Return what an error of a variance, relative to it, makes of a standardised entry."""
    one = (24 * total.n + 400) * EPS
    return 2 * relative * np.maximum(relative / one, 1.0)


# --- what a dropped feature could add ---


def touching(record: Dropped | DroppedPart, inside: float, case: Case) -> Numbers:
    """Bound the choices with a dropped feature; `inside` bounds the others."""
    cov = case.cov
    assert isinstance(cov, ScreenedCovariance)
    others = _varying(cov, case.question.n_nonzero, case.ar)
    if record.rule == "rows" and others.size:
        return _by_rows(record, case)
    return reach(record, inside, others, case._replace(cov=cov.inner))


def _varying(cov: ScreenedCovariance, n: int, ar: Arithmetic) -> np.ndarray:
    """Return the n largest variances of dropped features that vary."""
    others = ar.top(cov.others, n)
    return others[~np.asarray(others <= 0, dtype=bool)]


def reach(record: Dropped | DroppedPart, inside: float, others: np.ndarray, case: Case) -> Numbers:
    """Return the same from a matrix of the kept features and what the others count for in it."""
    kept, question, ar, _ = case
    n = question.n_nonzero
    others = ar.top(others, n)
    told = (record.rule == NOTHING) == (others.size == 0)
    require(told, "screened: a rule that is not the one by which dropped features are bounded")
    if others.size == 0:
        return ar.number(0.0)
    t = np.arange(1, others.size + 1)
    heavy = ar.zeros(n)
    largest = ar.top(ar.maximum(kept.diagonal, 0.0), n)
    heavy[: largest.size] = largest
    traces = _sums(heavy + psd_shift(case), ar)[n - t] + kept.rounding(n)
    stay = ar.minimum(inside, traces * (1 + n * ar.eps))
    if record.rule == "prices":
        _check_apart(question)
        price, split = record.price, record.split
        if price is None or split is None:
            raise Refused("screened: the certificate of the prices is missing")
        there = split.features.max(initial=0) < kept.p
        require(bool(there), "screened: a certificate names features that are not there")
        base, prices = kyfan.spectrum(split, case, price, empty=True)
        rest = np.full(min(kept.p - prices.size, n), ar.number(price))
        dearest = ar.top(np.append(prices, rest), n)
        paid = _sums(np.append(dearest, ar.zeros(n - dearest.size)), ar)[n - t] * (1 + n * ar.eps)
        stay = ar.minimum(stay, base + paid + kept.rounding(n))
    return ar.top(stay + np.cumsum(others), 1)[0] * (1 + (n + 4) * ar.eps)


def _by_rows(record: Dropped | DroppedPart, case: Case) -> Numbers:
    """Return the Ky Fan sum over all features; a dropped one has no price, so that n - 1 are
    paid."""
    cov, question, ar, budget = case
    assert isinstance(cov, ScreenedCovariance)
    if question.disjoint or question.shared != "orthogonal":  # orthogonal ones pay no prices
        _check_apart(question)
    if record.split is None:
        raise Refused("screened: the certificate of the rows is missing")
    every, features = cov.every_row(cov.kept[record.split.features], budget)
    split = replace(record.split, features=features)
    n, whole = question.n_nonzero, case._replace(cov=every)
    base, prices = kyfan.spectrum(split, whole)
    paid = ar.top(prices, n - 1).sum() * (1 + n * ar.eps) if n > 1 else 0.0
    rounding = all_nonzeros(Rounding(split, question, cov.inner, cov.inner.rounding))
    return (base + paid + rounding) * (1 + (n + 4) * ar.eps)


def _check_apart(question: Question) -> None:
    """Refuse prices for components that share features: each pays once."""
    require(question.disjoint, "prices and rows are for disjoint components")


def _sums(values: np.ndarray, ar: Arithmetic) -> np.ndarray:
    """Return the sums of the first 0, 1, 2, ... values."""
    return np.append(ar.zeros(1), np.cumsum(values))


class Seen(NamedTuple):
    """The matrix in which each component is bounded alone, what each counts for, the largest first,
    and what dropped features are worth there."""

    case: Case
    heights: np.ndarray
    others: np.ndarray


def seen(record: Parts | Adjusted, case: Case, among: CheckedCovariance) -> Seen:
    """Return the covariance itself, or the matrix of adjusted variances on the features it speaks
    of: a dropped feature has no larger variance there than in the covariance and its shift."""
    cov, question, ar, _ = case
    assert isinstance(cov, ScreenedCovariance)
    others, ones = _varying(cov, question.s_max, ar), ar.array(np.ones(question.k))
    if isinstance(record, Parts):
        return Seen(case._replace(cov=cov.inner), ones, others)
    matrix = record.matrix
    if not isinstance(matrix, LoweredMatrix):
        raise Refused("screened: eigenvalues of all features are not known")
    H = LoweredCovariance(matrix, case._replace(cov=among))
    heights = ar.top(np.append(H.heights, ones), question.k)
    return Seen(case._replace(cov=H), heights, others + ar.number(matrix.shift))


def by_parts(record: Dropped, own: dict[int, float], by: Seen) -> tuple[Numbers, Numbers]:
    """Return (touching, total) by one extension per component, each as often as it counts."""
    ar, sizes = by.case.ar, by.case.question.cardinalities
    beyond = {
        part.s: reach(part, own[part.s], by.others, by.case.alone(part.s))
        for part in record.parts or ()
    }
    highest = [ar.maximum(beyond[s], own[s]) for s in sizes]

    def weighted(bounds: list[Numbers]) -> Numbers:
        total = (ar.top(np.array(bounds), len(bounds)) * by.heights).sum()
        return total * (1 + (2 * len(bounds) + 4) * ar.eps)

    touch = [weighted([beyond[s], *highest[:j], *highest[j + 1 :]]) for j, s in enumerate(sizes)]
    return ar.top(np.array(touch), 1)[0], weighted(highest)


# --- bounds ---


def recheck(bound: Bound, case: Case, excluded: np.ndarray) -> Numbers:
    """Return the bound on the kept features, and what choices with a dropped one explain at
    most."""
    cov, question, ar, _ = case
    assert isinstance(cov, ScreenedCovariance)
    told, own_data = own_proof(bound, cov)
    dropped = told.screened
    if dropped is None or not np.array_equal(dropped.kept, cov.kept):
        raise Refused(f"the bound {bound.name!r} speaks of other kept features")
    left_out = np.flatnonzero(np.isin(cov.kept, excluded))
    among, asked = spoken_of(told, cov.inner, numbered(question, cov.kept), left_out)
    inside = redone(bound.name, own_data, case._replace(cov=among, question=asked))
    if dropped.parts is None:
        # components that overlap: without dropped features they are no longer of their kind
        whole = question.disjoint or question.shared == "common" or bound.name in UNION
        touch = touching(dropped, dropped.inside if whole else np.inf, case)
        total = ar.maximum(inside, touch)
    else:
        record = family_of(bound.name).read(own_data, among.p)
        require(isinstance(record, Parts | Adjusted), "parts of a bound that has none")
        own: dict[int, float] = {}
        for part in record.parts:
            own[part.s] = max(part.value, own.get(part.s, 0.0))
        extended = sorted(part.s for part in dropped.parts)
        require(extended == sorted(own), "screened: there is not one part per cardinality")
        touch, total = by_parts(dropped, own, seen(record, case, among))
        total = ar.maximum(total, dropped.inside)
    require(ar.upper(inside) <= dropped.inside, "the kept features' bound is too small")
    require(ar.upper(touch) <= dropped.touching, "a dropped feature may add more")
    return total


def check_screening(result: Result, bound: Bound, cov: CheckedCovariance) -> None:
    """Check that what the certificate says of the dropped features follows from data and proof."""
    assert isinstance(cov, ScreenedCovariance)
    dropped = own_proof(bound, cov)[0].screened
    assert dropped is not None
    sure = result.value - result.certificate.rounding
    claims = parse(Screening, result.certificate.screening, {}, "screening")
    wrong = unfounded(claims, dropped, cov, sure)
    require(not wrong, wrong)


def unfounded(claims: Screening, record: Dropped, cov: ScreenedCovariance, sure: float) -> str:
    """Return what the certificate says of the screening and does not follow; "" if all does.

    `sure` is the value less its rounding, in the user's units.
    """
    touching, inside = record.touching * cov.unit, record.inside * cov.unit
    if claims.kept != cov.kept.size or claims.dropped != np.count_nonzero(cov.others):
        return "the numbers of kept and dropped features are not those of the data"
    # Each variance of another computation is off by its own error, and so the largest is between
    # the largest ones of what all of them are at least and at most.
    variances, doubts = (a[cov.dropped] * cov.unit for a in (cov.upper, 8 * cov.doubts))
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
