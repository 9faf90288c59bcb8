"""The checker's own covariance, from the user's data, with plain NumPy and SciPy.

How far an entry may be from the exact one is `error_unit * sqrt(weights_i * weights_j)`, the
formulas of docs/methods/rounding.rst ("The covariance"); the solver uses the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .arithmetic import Arithmetic
from .budget import Budget, Refused
from .numbers import doubles, plain
from .sparse import MOSTLY_MEAN, sparse_rows
from .tables import matrix_of
from .weights import shares

EPS = float(np.finfo(np.float64).eps)
TINY = 1e-290  # what underflow can hide
LEAST_DEVIATION = 1e-140  # deviations from a mean below this are lost in squares
UNEVEN = 1e-8  # where the least weight is below this part of the largest, means are more exact
DENORMAL = 2.0**-1068  # what numbers lose that are too small to be normal
SMALL = 2**23  # entries of a sparse table that is centred as a dense one
LOOSE = 1e-9  # the part of variances by which computations differ at most, beyond their own errors
NONE = np.empty(0, dtype=np.intp)  # no features


@dataclass(frozen=True)
class Question:
    """What the certificate claims to answer; `value` is in the proofs' units.

    Of overlapping supports, `shared` says whether they are free, orthogonal or in a common set.
    """

    cardinalities: tuple[int, ...]
    nonnegative: bool
    disjoint: bool
    value: float
    total: int | None = None
    # the anchors of each component, which take a place whatever their loadings are
    include: tuple[tuple[int, ...], ...] = ()
    shared: str = "free"
    adjusted: bool = False

    @property
    def forced(self) -> np.ndarray:
        """The anchors of one component."""
        return np.array(self.include[0] if self.include else (), dtype=np.intp)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of components that these are, by which bounds say what they hold for.

        Components are orthonormal if they are disjoint, orthogonal or the principal components of
        a common set; the latter are uncorrelated, so that they count as adjusted."""
        if self.disjoint:
            kinds: tuple[str, ...] = ("disjoint", "orthogonal")
        else:
            kinds = {
                "free": ("adjusted",),
                "orthogonal": ("orthogonal",),
                "common": ("common", "orthogonal", "adjusted"),
            }[self.shared]
        return frozenset(kinds) | ({"adjusted"} if self.adjusted else frozenset())

    @property
    def n_nonzero(self) -> int:
        """Features that all components use together, at most."""
        if not self.disjoint and self.shared == "common":
            return self.s_max
        return sum(self.cardinalities) if self.total is None else self.total

    @property
    def k(self) -> int:
        return len(self.cardinalities)

    @property
    def s_max(self) -> int:
        return max(self.cardinalities)

    def alone(self, s: int, anchors: tuple[int, ...] = ()) -> Question:
        """Return the same for one component of s nonzeros and these anchors."""
        return replace(
            self, cardinalities=(s,), disjoint=True, value=0.0, total=None, include=(anchors,)
        )


@dataclass(frozen=True)
class Precision:
    """The unit of entries, and what rounding may do to them: A_ij is off by at most
    error_unit sqrt(w_i w_j)."""

    unit: float
    error_unit: float
    weights: np.ndarray | None = None  # w (p,); second moments, or variances, when None
    allowed: np.ndarray | None = None  # error of a variance that an honest computation may count
    largest: float = 1.0  # no variance can be larger, in the user's units


class CheckedCovariance:
    """Entries of the covariance in the proofs' units, and how far rounding may have moved them.

    `left` holds n x p rows that are weighted already, and the outer product of `mean` with itself
    is subtracted from `left' left`; or it is the p x p matrix itself, when `mean` is None. A matrix
    that was `given` need not be positive semidefinite: see cheap.psd_shift.
    """

    _mean: np.ndarray | None = None

    def __init__(
        self,
        left: Any,
        mean: np.ndarray | None,
        inert: np.ndarray,
        precision: Precision,
        *,
        diagonal: np.ndarray | None = None,
        given: bool | None = None,
    ) -> None:
        self.given = mean is None if given is None else given
        self.shifts: dict[bool, float] = {}  # by which it is positive semidefinite, once known
        self._left = left
        self._mean = mean
        self.inert = inert  # features that are constant, or rows that are zero
        self.unit, self.error_unit = precision.unit, precision.error_unit
        self.allowed, self.largest = precision.allowed, precision.largest
        weights = precision.weights
        if mean is None:
            own = np.diagonal(left).copy()
            self.diagonal = own if diagonal is None else diagonal
            self.weights = np.abs(own) if weights is None else weights
            return
        squares = left.multiply(left) if sp.issparse(left) else left * left
        second = np.asarray(squares.sum(axis=0)).ravel()
        own = np.where(inert, 0.0, np.maximum(second - mean * mean, 0.0))
        self.diagonal = own if diagonal is None else diagonal
        self.weights = second if weights is None else weights

    @property
    def p(self) -> int:
        return int(self.diagonal.size)

    def known(self) -> tuple[CheckedCovariance, np.ndarray]:
        """Return the features whose covariances are known, and which they are: all of them."""
        return self, np.arange(self.p)

    @property
    def doubt(self) -> float:
        """By how much the variances of features that were dropped may be off, in all."""
        return 0.0

    def submatrix(self, rows: Any, cols: Any = None) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.intp)
        same = cols is None
        cols = rows if same else np.asarray(cols, dtype=np.intp)
        if self._mean is None:
            return self._left[np.ix_(rows, cols)].copy()
        a = self._left[:, rows]
        b = a if same else self._left[:, cols]
        product = a.T @ b
        if sp.issparse(product):
            product = product.toarray()
        return product - np.outer(self._mean[rows], self._mean[cols])

    def charge(self, budget: Budget, n: int, m: int) -> None:
        """Count what n x m entries cost, before they are formed."""
        budget.work(n * m * (20 + 0.5 * (self.n or 0)), f"{n} x {m} covariances")
        budget.memory(40 * n * m, f"{n} x {m} covariances")

    def dense(self) -> np.ndarray:
        return self.submatrix(np.arange(self.p))

    def gram(self) -> np.ndarray | None:
        """Return the n x n matrix with the same nonzero eigenvalues, for dense data."""
        if self._mean is None or sp.issparse(self._left) or self._mean.any():
            return None
        return self._left @ self._left.T

    def factor(self) -> np.ndarray | None:
        """Return F (n x p) with A = F'F, for dense data."""
        if self._mean is None or sp.issparse(self._left) or self._mean.any():
            return None
        return np.asarray(self._left)

    @property
    def n(self) -> int | None:
        """The number of rows, when they are at hand."""
        return None if self._mean is None else int(self._left.shape[0])

    def times(self, Q: np.ndarray) -> np.ndarray:
        """Return the covariance times p x r."""
        if self._mean is None:
            return np.asarray(self._left @ Q)
        product = self._left.T @ (self._left @ Q)
        return np.asarray(product) - np.outer(self._mean, self._mean @ Q)

    def by_samples(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return XX', XW and W = [V, m] for the rows X and the mean m of A = X'X - mm'."""
        X: Any = self._left
        W = np.column_stack([V, np.asarray(self._mean)])
        gram = X @ X.T
        gram = gram.toarray() if sp.issparse(gram) else np.array(gram)
        return gram, np.asarray(X @ W), W

    def restrict(self, kept: np.ndarray, excluded: np.ndarray = NONE) -> CheckedCovariance:
        """Return the same on some features, when the others are excluded or constant; Refused when
        they are not."""
        others = np.ones(self.p, dtype=bool)
        others[kept] = others[excluded] = False
        if np.unique(kept).size != kept.size or not self.inert[others].all():
            raise Refused("a feature that varies was left out")
        if self.given and others.any() and not (self.diagonal[kept] >= 0).all():
            raise Refused("features of variance zero were left out beside a negative variance")
        return self.part(kept)

    def part(self, kept: np.ndarray) -> CheckedCovariance:
        square, allowed = self._mean is None, self.allowed
        allowed = None if allowed is None else allowed[kept]
        return CheckedCovariance(
            self._left[np.ix_(kept, kept)] if square else self._left[:, kept],
            None if self._mean is None else self._mean[kept],
            self.inert[kept],
            Precision(self.unit, self.error_unit, self.weights[kept], allowed, self.largest),
            diagonal=self.diagonal[kept],
            given=self.given,
        )

    def in_range(self) -> bool:
        """Return whether in these units no sum overflows and underflow hides next to nothing."""
        small = self.unit <= 8 * self.largest or (self.largest == 0 and self.unit == 1.0)
        return bool(small and np.abs(self.diagonal).max() <= 2.0**40)

    def rounding(self, s: int) -> float:
        """Return at most this much of a unit s-sparse quadratic form is rounding."""
        largest = np.sort(self.weights)[::-1][:s]
        return self.error_unit * float(largest.sum()) + TINY

    def entry_errors(self, ar: Arithmetic) -> np.ndarray:
        """Return e of every feature: an entry A_ij is off by sqrt(e_i e_j) at most."""
        return ar.array(self.weights) * ar.number(self.error_unit)

    def allowance(self, s: int) -> float:
        """Return the most that an honest computation from the same rows counts as rounding."""
        if self.allowed is None:
            return self.rounding(s)
        return max(float(np.sort(self.allowed)[::-1][:s].sum()), self.rounding(s))

    def apart(self, features: np.ndarray) -> float:
        """Return by how much two honest values of a unit vector on these features may differ."""
        own = 2 * self.error_unit * float(self.weights[features].sum()) + TINY
        if self.allowed is None:
            return own
        variances = float(np.abs(self.diagonal[features]).sum())
        return own + min(2 * float(self.allowed[features].sum()), LOOSE * variances)


def given_matrix(matrix: Any) -> np.ndarray:
    """Return the numbers of a covariance that was given: real, finite, symmetric up to rounding."""
    plain("covariance", matrix)
    A = np.asarray(matrix)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0 or A.dtype == object:
        raise ValueError("covariance must be a square matrix of finite numbers")
    single = A.dtype == np.float32
    A = doubles("covariance", A).astype(np.float64)
    slack = float(np.sqrt(np.finfo(np.float32 if single else np.float64).eps))
    if float(np.abs(A / 2 - A.T / 2).max()) > slack * float(np.abs(A).max()):
        raise ValueError("covariance must be symmetric; pass (A + A.T) / 2 if that is rounding")
    return A


def covariance_of(matrix: Any, unit: float) -> CheckedCovariance:
    A = given_matrix(matrix) / unit
    if not np.isfinite(A).all():
        raise OverflowError("the unit does not fit the covariance")
    A = (A + A.T) / 2
    largest = float(np.abs(A).max(initial=0.0)) * unit
    precision = Precision(unit, 0.0, largest=largest)
    return CheckedCovariance(A, None, np.logical_not(A.any(axis=0)), precision)


class Checked(NamedTuple):
    """The covariance, means and scales of a table of n rows, and how far off the latter may be."""

    covariance: CheckedCovariance
    mean: np.ndarray
    spread: np.ndarray
    n: int
    mean_error: np.ndarray
    spread_error: np.ndarray


def covariance_of_data(
    X: Any, center: bool, scale: bool, sample_weight: Any, unit: float
) -> Checked:
    """Return the covariance, the column means and the column scales, as the settings say."""
    X = matrix_of(X)
    if sp.issparse(X) and X.shape[0] * X.shape[1] <= SMALL:
        X = X.toarray()  # centred first, it loses less: as little as if it had come dense
    rows = X.shape[0]
    share = np.full(rows, 1.0 / rows) if sample_weight is None else shares(sample_weight, rows)
    if not share.all():
        X, share = (X.tocsr() if sp.issparse(X) else X)[share > 0], share[share > 0]
        X = X.tocsc() if sp.issparse(X) else X
    n, p = X.shape
    low, high = _ranges(X)
    inert = low == high if center else (low == 0) & (high == 0)
    # Powers of two keep squares in range whatever the units: one per column when each is scaled.
    exponents = np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]
    if not scale:
        varying = exponents if inert.all() else exponents[~inert]
        exponents = np.full(p, int(varying.max()))
    if sp.issparse(X):
        Z, inner_mean, mean, variance = sparse_rows(X, share, exponents, center, inert, _dense)
        error, more = (4 * n + 40) * EPS, (8 * n + 40) * EPS
    else:
        Z, mean, variance = _dense(X, share, exponents, center, inert)
        inner_mean, error, more = np.zeros(p), (3 * n + 40) * EPS, (3 * n + 40) * EPS
    root = np.sqrt(share)
    Z = sp.csc_array(Z.multiply(root[:, None])) if sp.issparse(Z) else Z * root[:, None]
    second = variance + inner_mean * inner_mean
    constant = inert | (variance == 0)
    spread = np.where(constant, 1.0, np.sqrt(variance))
    # A mean and a deviation are sums of n terms: of the feature's own size, not of another's.
    sums = (2 * n + 40) * EPS
    mean_error = sums * np.ldexp(np.abs(mean) + np.sqrt(second), exponents) + DENORMAL
    whole_mean = np.ldexp(mean, exponents)
    # The same rows may have been handed over sparse, where an error is relative to second moments.
    moments = np.minimum(variance + mean * mean, 2 * MOSTLY_MEAN * variance)
    if not scale:
        # unit = (a power of two)^2 when it comes from data: exact, or covered by the error term
        ratio = float(np.ldexp(1.0, int(exponents[0]))) / np.sqrt(unit)
        largest = float(np.maximum(np.abs(low), np.abs(high)).max()) ** 2
        allowed = (8 * n + 40) * EPS * moments * ratio**2
        precision = Precision(unit, error, allowed=allowed, largest=largest)
        plain = CheckedCovariance(Z * ratio, inner_mean * ratio, inert, precision)
        return Checked(plain, whole_mean, np.ones(p), rows, mean_error, np.zeros(p))
    inverse = np.where(constant, 0.0, 1.0 / spread)
    Z = sp.csc_array(Z.multiply(inverse[None, :])) if sp.issparse(Z) else Z * inverse
    # An entry, and the deviations it is divided by, are off by so much of the second moments.
    relative = np.where(constant, 0.0, second / np.where(constant, 1.0, variance))
    at_most = moments / np.where(constant, 1.0, variance)
    weights, allowed = relative * relative, (8 * n + 40) * EPS * at_most**2
    scaled = CheckedCovariance(
        Z, inner_mean * inverse, inert, Precision(1.0, more, weights, allowed)
    )
    whole_spread = np.where(constant, 1.0, np.ldexp(spread, exponents))
    spread_error = sums * whole_spread * np.maximum(relative, 1.0) + DENORMAL
    return Checked(scaled, whole_mean, whole_spread, rows, mean_error, spread_error)


def _dense(
    X: np.ndarray, share: np.ndarray, exponents: np.ndarray, center: bool, inert: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the table in its inner units, centred; its means and variances."""
    Z = np.ldexp(np.asarray(X, dtype=np.float64), -exponents)
    mean = np.zeros(X.shape[1])
    if center:
        mean[inert] = Z[0, inert]
        Z, rest = Z - mean, np.zeros(X.shape[1])
        # A column that varies only in rows of little weight has a small variance about its mean.
        for _ in range(2 if share.min() >= UNEVEN * share.max() else 10):
            shift = share @ Z
            Z = Z - shift
            rest = rest + shift
        mean = mean + np.where(inert, 0.0, rest)
        Z[:, inert] = 0.0
    return Z, mean, share @ Z**2


def _ranges(X: Any) -> tuple[np.ndarray, np.ndarray]:
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray(), high.toarray()
    return tuple(np.asarray(side, dtype=np.float64).ravel() for side in (low, high))  # type: ignore[return-value]
