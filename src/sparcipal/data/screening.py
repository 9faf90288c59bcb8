"""Screening by variance: the covariance of the features that vary most, the variances of all.

The engine that sums the rows (this package, dask, Spark, a database) makes a `Screened`; the search
then sees the kept features only, and bounds/dropped.py bounds what the others could add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..numerics import margins
from ..numerics.margins import power_of_two
from ..problem.covariance import (
    Doubt,
    MatrixCovariance,
    covariance_of,
    proved_psd_shift,
)
from .consistent import check_consistent
from .moments import WORD, Moments, check_moments
from .products import ROWS, Gram
from .same_rows import check_same_rows


@dataclass(frozen=True, eq=False)
class Screened:
    """The covariance of some features and the variances of all: `sparse_pca(covariance=...)`.

    The matrix and the variances must come from one table: then the covariance of all features is
    positive semidefinite, and a bound on the kept features extends to all of them.

    Parameters
    ----------
    matrix : array of shape (m, m)
        The covariance of the kept features.
    kept : array of m increasing integers
        Which of the p features they are; `Moments.screen(m)` chooses those that vary most.
    variances : array of shape (p,)
        The variances of all features, as `Moments.variances()` gives them.
    n_samples : int, optional
    mean, scale : arrays of shape (p,), optional
        Of all features; with both, samples can be transformed later.

    Examples
    --------
    Moments and products may be summed anywhere, in any order:

    >>> import numpy as np
    >>> from sparcipal import Gram, Moments, Screened, sparse_pca
    >>> X = np.random.default_rng(0).poisson([9, 1, 7, 2, 8], (200, 5))
    >>> moments = Moments(5).add(X[:120]).merge(Moments(5).add(X[120:]))
    >>> kept = moments.screen(4)
    >>> gram = moments.gram(kept).add(X)
    >>> screened = Screened.of(moments, gram)
    >>> result = sparse_pca(covariance=screened, n_nonzero_coefs=2)
    >>> result.n_features, result.certificate.screening["dropped"]
    (5, 1)
    """

    matrix: np.ndarray
    kept: np.ndarray
    variances: np.ndarray
    n_samples: int | None = None
    mean: np.ndarray | None = None
    scale: np.ndarray | None = None
    # These bound how far entries and variances summed over rows are from exact arithmetic.
    error_unit: float = 0.0
    error_weights: np.ndarray | None = field(default=None, repr=False)
    errors: np.ndarray | None = field(default=None, repr=False)
    constant: np.ndarray | None = field(default=None, repr=False)
    # These say how the table was treated before the sums.
    center: bool = True
    scaled: bool = False
    weighted: bool = False

    def __post_init__(self) -> None:
        matrix, kept = np.asarray(self.matrix), np.asarray(self.kept)
        variances = np.asarray(self.variances, dtype=np.float64)
        if kept.ndim != 1 or kept.dtype.kind not in "iu" or (np.diff(kept) <= 0).any():
            raise ValueError("kept must hold increasing integers, each kept feature once")
        if matrix.shape != (kept.size, kept.size) or kept.size == 0:
            raise ValueError(
                f"matrix has shape {matrix.shape}, but {kept.size} features are kept; pass their "
                "covariance"
            )
        if variances.ndim != 1 or kept[0] < 0 or kept[-1] >= variances.size:
            raise ValueError(
                f"kept names feature {int(kept[-1])}, but there are {variances.size} variances; "
                "pass the variances of all features"
            )
        if not np.isfinite(variances).all() or (variances < 0).any():
            raise ValueError("variances must be finite and not negative")
        lowest = int(np.argmin(np.diagonal(matrix)))
        if matrix[lowest, lowest] < 0:
            raise ValueError(
                f"feature {int(kept[lowest])} has the variance {matrix[lowest, lowest]:.3g} on the "
                "diagonal of matrix; set its row and column to zero if that is rounding"
            )
        off = np.abs(np.diagonal(matrix) - variances[kept])
        if (off > 1e-6 * variances[kept] + 1e-9 * variances.max()).any():
            worst = int(kept[np.argmax(off)])
            raise ValueError(
                f"feature {worst} has another variance on the diagonal of matrix than in "
                "variances; both must come from the same table, centred or not"
            )

    @property
    def n_features(self) -> int:
        return int(np.asarray(self.variances).size)

    @staticmethod
    def of(moments: Moments, gram: Gram, center: bool = True, scale: bool = False) -> Screened:
        """Make it from sums over all rows: moments of all columns, products of the kept ones."""
        check_moments(moments, center, scale)
        check_consistent(moments, gram)
        return screened_of(moments, gram, center, scale)


def screened_of(
    moments: Moments, gram: Gram, center: bool, scale: bool, *, consume: bool = False
) -> Screened:
    """Do what `Screened.of` does; with `consume`, the matrix overwrites the sums in `gram`."""
    check_moments(moments, center, scale)
    check_same_rows(moments, gram)
    sums = (
        _exact_sums(moments, gram, center, consume)
        if gram.exact
        else _rounded_sums(gram, center, consume)
    )
    matrix, error_unit, weights = sums
    kept = gram.columns
    variances, errors = moments.variances(center), moments.errors(center)
    constant = moments.constant if center else (moments.low == 0) & (moments.high == 0)
    still = constant[kept]
    matrix[still], matrix[:, still], weights[still] = 0.0, 0.0, 0.0
    if not gram.exact:
        # Products are summed about the means, but moments of sparse columns about zero; where a
        # mean is large, only the products are within the errors stated here.
        variances[kept] = np.maximum(np.diagonal(matrix), 0.0)
        errors[kept] = error_unit * weights
    spread = np.ones(moments.n_features)
    if scale:
        # a variance that rounding has made zero is replaced by its error
        spread = np.sqrt(np.where(variances > 0, variances, errors))
        spread = np.where(spread > 0, spread, 1.0)
        ratio = np.where(still, 0.0, weights / np.maximum(variances[kept], 1e-300))
        for row, own in zip(matrix, spread[kept]):  # so that no second matrix is held
            row /= own * spread[kept]
        # the entry and the deviations that divide it both have this error
        weights, error_unit = ratio**2, 2 * error_unit
        errors = np.where(constant, 0.0, margins.few())
        variances = np.where(constant, 0.0, 1.0)
    matrix[np.diag_indices(kept.size)] = variances[kept]
    mean = moments.means() if center else np.zeros(moments.n_features)
    return Screened(
        matrix, kept, variances, moments.n_samples, mean, spread, error_unit, weights, errors,
        constant, center, scale, moments.weighted,
    )  # fmt: skip


def _exact_sums(
    moments: Moments, gram: Gram, center: bool, consume: bool
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return covariance, error unit and error weights from integer sums.

    The sums are moved, still exactly, to the integers next to the means: what is subtracted in
    floating point afterwards is small.
    """
    n, second, sums = gram.n_samples, gram.second, gram.sums
    if center:
        shift = np.rint(moments.means()[gram.columns])
        largest = int(np.abs(shift).max(initial=0.0))
        reach = max(int(np.diagonal(second).max(initial=0)), n * largest * largest)
        kind: Any = np.int64 if 4 * reach < WORD else object
        c, sums = shift.astype(np.int64).astype(kind), sums.astype(kind)
        moved = sums - n * c
        mean = np.asarray(moved / n, dtype=np.float64)
    in_place = consume and second.dtype == np.int64 and second.flags.writeable
    matrix = second.view(np.float64) if in_place else np.empty(second.shape)
    weights = np.empty(second.shape[0])
    # some rows at a time, so that a large matrix is never copied
    for start in range(0, second.shape[0], ROWS):
        rows = slice(start, start + ROWS)
        part = second[rows]
        if center:
            part = part.astype(kind) - np.multiply.outer(c[rows], moved)
            part -= np.multiply.outer(sums[rows], c)
        matrix[rows] = np.asarray(part / n, dtype=np.float64)
        weights[rows] = np.diagonal(matrix[rows], start)
        if center:
            matrix[rows] -= np.outer(mean[rows], mean)
    return matrix, margins.integers(), weights


def _rounded_sums(gram: Gram, center: bool, consume: bool) -> tuple[np.ndarray, float, np.ndarray]:
    """Return the same from sums in double precision about `gram.shift`."""
    depth = max(gram.depth, margins.height(gram.n_samples))
    shift = np.zeros(gram.columns.size) if gram.shift is None else gram.shift
    exponent = gram.exponent
    in_place = consume and gram.second.flags.writeable
    matrix = np.divide(gram.second, gram.weight, out=gram.second if in_place else None)
    mean, moved = gram.sums / gram.weight, np.ldexp(shift, exponent)
    weights, back = np.diagonal(matrix).copy(), -2 * exponent
    for start in range(0, mean.size, ROWS):
        rows = slice(start, start + ROWS)
        part = matrix[rows]
        if center:
            part -= np.outer(mean[rows], mean)
        else:
            part += np.outer(moved[rows], mean)
            part += np.outer(mean[rows], moved)
            part += np.outer(moved[rows], moved)
        np.ldexp(part, back, out=part)
    if not center:
        weights = 2 * (weights + moved * moved)
    return matrix, margins.summed(depth), np.ldexp(weights, back)


@dataclass(frozen=True)
class Survivors:
    """A screened table as the stages see it, in inside units."""

    covariance: MatrixCovariance  # of the kept features
    kept: np.ndarray
    others: np.ndarray  # (p,) variances of dropped features, rounded up, and zeros
    total: float  # the variances of all features

    @property
    def dropped(self) -> np.ndarray:
        """The variances of the dropped features that vary."""
        return self.others[self.others > 0]

    @property
    def n_dropped(self) -> int:
        return int(np.count_nonzero(self.others))

    @property
    def n_features(self) -> int:
        return int(self.others.size)

    def without(self, features: Sequence[int]) -> Survivors:
        """Return the same where no component may use these features, which then add nothing."""
        others = self.others.copy()
        others[list(features)] = 0.0
        return replace(self, others=others)

    def measured_in(self, unit: float) -> Survivors:
        """Return the same in another unit, a power of two."""
        ratio = self.covariance.unit / unit
        covariance = self.covariance.measured_in(unit)
        return replace(
            self, covariance=covariance, others=self.others * ratio, total=self.total * ratio
        )


def survivors(screened: Screened, *, consume: bool = False) -> Survivors:
    """Return the covariance of the kept features and the variances of the others.

    With `consume`, the matrix of `screened` was summed here: it is overwritten instead of copied,
    and known to be positive semidefinite up to its errors. Of any other that is proved.
    """
    kept = np.asarray(screened.kept, dtype=np.intp)
    variances = np.asarray(screened.variances, dtype=np.float64)
    inert = None if screened.constant is None else screened.constant[kept]
    if inert is None and (screened.error_weights is not None or screened.errors is not None):
        inert = _without_errors(screened, kept)
    known: dict[str, Any] = {"n_samples": screened.n_samples, "inert": inert}
    if screened.error_weights is None:
        covariance = covariance_of(screened.matrix, **known)
    else:
        unit = power_of_two(float(np.abs(np.diagonal(screened.matrix)).max(initial=0.0)))
        place = screened.matrix if consume else None
        matrix = np.divide(screened.matrix, unit, out=place)
        shift = 0.0
        if not consume:
            slack = margins.indefinite()
            off = screened.error_unit * float(np.sum(screened.error_weights)) / unit
            slack += off / max(float(np.linalg.norm(matrix)), 1e-300)
            shift = proved_psd_shift(matrix, slack, unit)
        doubt = Doubt(screened.error_unit, screened.error_weights / unit, shift)
        covariance = MatrixCovariance(matrix, unit, doubt, **known)
    others = upper_variances(screened) / covariance.unit
    others[kept] = 0.0
    return Survivors(covariance, kept, others, float(variances.sum()) / covariance.unit)


def _without_errors(screened: Screened, kept: np.ndarray) -> np.ndarray:
    """Return the kept features that do not vary, not even by their errors."""
    inert = np.logical_not(screened.matrix.any(axis=0))
    if screened.error_weights is not None:
        inert &= screened.error_unit * screened.error_weights == 0
    return inert if screened.errors is None else inert & (screened.errors[kept] == 0)


def upper_variances(screened: Screened) -> np.ndarray:
    """Return the variances of all features, rounded up."""
    errors = 0.0 if screened.errors is None else screened.errors
    variances = np.asarray(screened.variances, dtype=np.float64)
    return np.asarray(variances * (1 + margins.few()) + 4 * errors)
