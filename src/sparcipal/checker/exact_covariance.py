"""The covariance of the user's data without rounding.

Numbers of a computer are integers times powers of two, so that sums of products are integers.
They are found by products of matrices in float64 whose entries are so small that nothing is
rounded: a column is an integer of a few digits to the base 2^bits, times its own power of two.
Only quotients and square roots are balls. Sparse data stay sparse, and no block of the covariance
is formed that is not asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..problem.result import Result
from . import dropped as screened
from .arithmetic import Numbers
from .budget import Budget, Refused, require
from .constraints import excluded_features
from .covariance import CheckedCovariance
from .exact import Ball, arb, power_of_two
from .tables import Source

BLOCK = 256  # rows of the covariance that are formed at a time
ENTRY = 700  # bytes of an entry that is formed, and of what a factorisation makes of it
NEVER = 10**6  # an exponent of zero


class ExactCovariance(CheckedCovariance):
    """Enclosures of the entries, in the units of the proofs; nothing else is unknown, unless a
    matrix was given with errors."""

    ar = Ball()

    def __init__(self, p: int, unit: float, given: bool, budget: Budget | None) -> None:
        self.unit, self.given, self.shifts = unit, given, {}
        self._budget = budget or Budget().counting(self.ar.nanoseconds)
        self.error_unit, self.weights = 0.0, np.zeros(p)

    @property
    def n(self) -> int | None:
        return None

    def part(self, kept: np.ndarray) -> ExactCovariance:
        """Return the same on some features."""
        raise Refused("this covariance has no parts")

    def charge(self, budget: Budget, n: int, m: int) -> None:
        budget.work(20.0 * n * m, f"{n} x {m} covariances")
        budget.memory(float(ENTRY) * n * m, f"{n} x {m} covariances")

    def rounding(self, s: int) -> Numbers:
        if self.error_unit == 0.0:
            return 0.0
        return self.ar.number(self.error_unit) * self.ar.top(self.ar.array(self.weights), s).sum()

    def gram(self) -> np.ndarray | None:
        rows = self.factor()
        return None if rows is None else self.ar.matmul(rows, rows.T)

    def factor(self) -> np.ndarray | None:
        return None

    def times(self, Q: np.ndarray) -> np.ndarray:
        every, product = np.arange(self.p), []
        for rows in _blocks(every):
            self.charge(self._budget, rows.size, self.p)
            self._budget.work(float(rows.size) * Q.size, "the covariance times a sketch")
            product.append(self.ar.matmul(self.submatrix(rows, every), Q))
        return np.vstack(product)


class GivenCovariance(ExactCovariance):
    """A matrix that was given instead of data, symmetrised."""

    def __init__(
        self,
        matrix: np.ndarray,
        unit: float,
        error_unit: float,
        weights: np.ndarray,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(len(matrix), unit, True, budget)
        self.matrix = matrix  # of balls, in the units of the proofs
        self.diagonal = np.diagonal(matrix).copy()
        self.error_unit, self.weights = error_unit, weights
        zero = np.array([all(entry == 0 for entry in row) for row in matrix], dtype=bool)
        self.inert = zero & (error_unit * weights == 0)

    @classmethod
    def of(
        cls,
        matrix: Any,
        unit: float,
        error_unit: float = 0.0,
        weights: Any = None,
        budget: Budget | None = None,
    ) -> GivenCovariance:
        if budget is not None:
            budget.work(20.0 * np.size(matrix), "the covariance that was given")
            budget.memory(float(ENTRY) * np.size(matrix), "the covariance that was given")
        whole = cls.ar.array(np.asarray(matrix, dtype=np.float64)) / unit
        weights = np.zeros(len(whole)) if weights is None else weights / unit
        return cls((whole + whole.T) / 2, unit, float(error_unit), weights, budget)

    def submatrix(self, rows: Any, cols: Any = None) -> np.ndarray:
        return self.matrix[np.ix_(rows, rows if cols is None else cols)].copy()

    def part(self, kept: np.ndarray) -> ExactCovariance:
        error, weights = self.error_unit, self.weights[kept]
        return GivenCovariance(self.submatrix(kept), self.unit, error, weights, self._budget)


class DataCovariance(ExactCovariance):
    """From the rows of a table.

    With integers z_ij = x_ij / 2^e_j and weights w_i, sums S_j and P_jk of w z_j and w z_j z_k:
    A_jk = N_jk 2^(e_j + e_k) / W^2, N = W P - S S', W the sum of the weights. Without centring,
    N = W P. Standardised, A_jk = N_jk / sqrt(N_jj N_kk).
    """

    def __init__(
        self,
        X: Any,
        center: bool,
        scale: bool,
        sample_weight: Any = None,
        unit: float = 1.0,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(X.shape[1], unit, False, budget)
        self._center, self._scale = center, scale
        weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight)
        weights = weights.astype(np.float64)
        X = X if weights.all() else (X.tocsr() if sp.issparse(X) else X)[weights > 0]
        self._table = sp.csc_array(X) if sp.issparse(X) else X
        self._weights = weights[weights > 0]
        n = self._weights.size
        self._shares = np.ldexp(self._weights, -int(_lowest(self._weights).min()))  # integers
        self._weight_bits = 1 if float(self._shares.max()) == 1.0 else _width(n) // 3
        self._bits = (_width(n) - self._weight_bits) // 2
        self._total = sum(int(w) for w in self._shares)
        self._exponents = _exponents(self._table)
        self._charge_moments()
        blocks = _blocks(np.arange(X.shape[1]))
        self._sums = np.concatenate([self._column_sums(part) for part in blocks])
        norms = np.concatenate([self._column_norms(part) for part in blocks])
        norms = self._total * norms - (self._sums * self._sums if center else 0)
        self.inert = np.array([norm == 0 for norm in norms], dtype=bool)
        self._left, self._right = self._factors(norms)
        self.diagonal = self._left * self.ar.array(norms) * self._right
        if scale:
            self.diagonal = self.ar.array(np.where(self.inert, 0.0, 1.0))

    @property
    def n(self) -> int | None:
        return int(self._weights.size)

    def _charge_moments(self) -> None:
        """Count what sums over all columns cost: a number is as many digits as its column needs."""
        n, p = self._table.shape
        stored = self._table.nnz if sp.issparse(self._table) else n * p
        top = np.frexp(_largest(self._table))[1] - self._exponents
        self._count = int(top.max(initial=1)) // self._bits + 1
        shares = int(np.frexp(self._shares.max())[1])
        self._weight_count = (shares - 1) // self._weight_bits + 1
        D, W = self._count, self._weight_count
        self._budget.work(stored * (5.0 + 3 * D + 0.05 * W * D * D), "the variances")
        width = min(BLOCK, p)
        self._budget.memory(n * width * (80.0 + 16 * D * W), f"columns of {D} digits")

    def charge(self, budget: Budget, n: int, m: int) -> None:
        """Count products of digits, which round nothing in float64; their sums are integers of
        Python."""
        what, rows = f"{n} x {m} covariances of {self._count} digits", self._table.shape[0]
        D, W = self._count, self._weight_count
        budget.work(n * m * (75.0 + 20 * D + 0.01 * rows * D * D * W), what)
        budget.memory(n * m * (ENTRY + 30.0 * D) + 8.0 * rows * (W * n + m) * D, what)

    def _factors(self, norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return left and right with A_jk = left_j N_jk right_k."""
        if self._scale:
            ones = np.where(self.inert, 1, norms)
            roots = 1 / self.ar.sqrt(self.ar.array(ones))
            return roots / self.unit, roots
        powers = self.ar.array([power_of_two(int(e)) for e in self._exponents])
        return powers / (arb(self._total) ** 2 * self.unit), powers

    def submatrix(self, rows: Any, cols: Any = None) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.intp)
        cols = rows if cols is None else np.asarray(cols, dtype=np.intp)
        if rows.size * cols.size == 0:
            return np.empty((rows.size, cols.size), dtype=object)
        N = self._total * self._products(rows, cols)
        if self._center:
            N = N - np.multiply.outer(self._sums[rows], self._sums[cols])
        out = self.ar.array(N) * np.multiply.outer(self._left[rows], self._right[cols])
        same = np.equal.outer(rows, cols)  # standardised: one, not a quotient
        out[same] = self.diagonal[rows[np.nonzero(same)[0]]]
        return out

    def part(self, kept: np.ndarray) -> ExactCovariance:
        table = self._table[:, kept]
        given = (self._center, self._scale, self._weights, self.unit, self._budget)
        return DataCovariance(table, *given)

    def factor(self) -> np.ndarray | None:
        if sp.issparse(self._table):
            return None
        rows = self._rows()
        if self._center:
            rows = rows - self.ar.matmul(self._roots()[:, None], self._column_means()[None, :])
        return rows

    def by_samples(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return XX', XW and W = [V, m] for the rows X and the mean m of A = X'X - mm'."""
        rows, mean = self._rows(), self._column_means()
        W = np.hstack([V, mean[:, None]])
        return self.ar.matmul(rows, rows.T), self.ar.matmul(rows, W), W

    def _roots(self) -> np.ndarray:
        return self.ar.sqrt(self.ar.array(self._shares) / self._total)

    def _scales(self) -> np.ndarray:
        """Return what a column is multiplied by, in the units of the proofs."""
        powers = self.ar.array([power_of_two(int(e)) for e in self._exponents])
        return (
            self._right * self._total / powers
            if self._scale
            else 1 / self.ar.sqrt(self.ar.array(np.full(self.p, self.unit)))
        )

    def _rows(self) -> np.ndarray:
        """Return the rows times the roots of their shares."""
        table = self._table.toarray() if sp.issparse(self._table) else self._table
        return self.ar.array(table) * self._roots()[:, None] * self._scales()

    def _column_means(self) -> np.ndarray:
        if not self._center:
            return self.ar.zeros(self.p)
        powers = self.ar.array([power_of_two(int(e)) for e in self._exponents])
        return self.ar.array(self._sums) * powers / self._total * self._scales()

    # --- sums of integers ---

    def _digits(self, features: np.ndarray) -> list[tuple[int, Any]]:
        """Return the columns as integers: (shift, digits) with columns = sum of 2^shift digits."""
        table, exponents = self._table[:, features], self._exponents[features]
        if not sp.issparse(table):
            return [
                (shift, part)
                for base, half in _halves(table)
                for shift, part in _split(half, exponents - base, self._bits)
            ]
        column = np.repeat(exponents, np.diff(table.indptr))
        out = []
        for base, half in _halves(table.data):
            for shift, part in _split(half, column - base, self._bits):
                shape = (part, table.indices, table.indptr)
                out.append((shift, sp.csc_array(shape, shape=table.shape)))
        return out

    def _weighted(self, digits: Any) -> list[tuple[int, Any]]:
        """Return the digits times the digits of the weights."""
        parts = _split(self._shares, np.zeros(1, dtype=int), self._weight_bits)
        if len(parts) == 1 and self._weight_bits == 1:
            return [(0, digits)]
        times = [(shift, part[:, None]) for shift, part in parts]
        if sp.issparse(digits):
            return [(shift, sp.csc_array(digits.multiply(part))) for shift, part in times]
        return [(shift, digits * part) for shift, part in times]

    def _summed(self, terms: Any) -> np.ndarray:
        """Add up 2^shift terms, each of which is a whole number below 2^53, as integers."""
        groups: dict[int, Any] = {}
        for shift, term in terms:
            term = term.toarray() if sp.issparse(term) else np.asarray(term)
            groups[shift] = groups.get(shift, 0) + term.astype(np.int64)
        out: Any = 0
        for shift, whole in groups.items():
            out = out + (whole.astype(object) << shift)
        return out

    def _products(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        right = self._digits(cols)
        left = [
            (shift + more, part)
            for shift, digits in self._digits(rows)
            for more, part in self._weighted(digits)
        ]
        return self._summed((a + b, x.T @ y) for a, x in left for b, y in right)

    def _column_sums(self, features: np.ndarray) -> np.ndarray:
        return self._summed(
            (shift + more, np.asarray(part.sum(axis=0)).ravel())
            for shift, digits in self._digits(features)
            for more, part in self._weighted(digits)
        )

    def _column_norms(self, features: np.ndarray) -> np.ndarray:
        digits = self._digits(features)
        return self._summed(
            (a + more + b, _column_products(part, y))
            for a, x in digits
            for more, part in self._weighted(x)
            for b, y in digits
        )


def _blocks(features: np.ndarray) -> list[np.ndarray]:
    return [features[start : start + BLOCK] for start in range(0, features.size, BLOCK)]


def _largest(table: Any) -> np.ndarray:
    """Return the largest magnitude of each column."""
    high, low = table.max(axis=0), table.min(axis=0)
    if sp.issparse(table):
        high, low = high.toarray().ravel(), low.toarray().ravel()
    return np.maximum(high.astype(np.float64), -low.astype(np.float64))


def _column_products(x: Any, y: Any) -> np.ndarray:
    product = x.multiply(y) if sp.issparse(x) else x * y
    return np.asarray(product.sum(axis=0)).ravel()


def _width(n: int) -> int:
    """Return of how many bits in all n products may be, so that float64 adds them exactly."""
    return 53 - int(np.ceil(np.log2(max(n, 1))))


def _halves(table: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Return the numbers as float64, long integers in two halves: table = sum of 2^base half."""
    if table.dtype.kind not in "iu" or table.dtype.itemsize < 8:
        return [(0, table.astype(np.float64))]
    low = table & table.dtype.type(2**32 - 1)
    return [(0, low.astype(np.float64)), (32, (table >> 32).astype(np.float64))]


def _lowest(x: np.ndarray) -> np.ndarray:
    """Return the exponent of the lowest bit of each number; far away for zero."""
    mantissa, exponent = np.frexp(x)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, NEVER, exponent - 53 + trailing)


def _exponents(table: Any) -> np.ndarray:
    """For each column the largest e for which all its entries are multiples of 2^e; 0 for zeros."""
    p = table.shape[1]
    out = np.full(p, NEVER)
    if sp.issparse(table):
        column = np.repeat(np.arange(p), np.diff(table.indptr))
        for base, half in _halves(table.data):
            np.minimum.at(out, column, _lowest(half) + base)
    else:
        for part in _blocks(np.arange(p)):
            for base, half in _halves(table[:, part]):
                lowest = (_lowest(half) + base).min(axis=0, initial=NEVER)
                out[part] = np.minimum(out[part], lowest)
    return np.where(out >= NEVER // 2, 0, out)


def _split(x: np.ndarray, exponents: np.ndarray, bits: int) -> list[tuple[int, np.ndarray]]:
    """Return x / 2^exponents as digits below 2^bits in size: (shift, digits), nothing rounded."""
    exponents = np.broadcast_to(exponents, x.shape)
    top = int((np.frexp(x)[1] - exponents)[x != 0].max(initial=1))
    out: list[tuple[int, np.ndarray]] = []
    for shift in range((max(top, 1) - 1) // bits * bits, -1, -bits):
        part = np.trunc(np.ldexp(x, -exponents - shift))
        x = x - np.ldexp(part, exponents + shift)
        if part.any() or (shift == 0 and not out):
            out.append((shift, part))
    return out


# --- a result ---


def exactly(
    result: Result, source: Source | None, covariance: Any, sample_weight: Any, budget: Budget
) -> Any:
    """Return the covariance that a result speaks of; what it costs is charged to the budget."""
    settings, unit, ar = result.settings, result.certificate.unit, ExactCovariance.ar
    kept = screened.kept_of(result) if result.certificate.screening else None
    whole: Any = None
    if source is not None:
        X, center, scale = source.whole(), settings["center"], settings["scale"]
        whole = DataCovariance(X, center, scale, sample_weight, unit, budget)
        if kept is None:
            return whole
        inner: Any = whole.part(kept)
        variances, inert = whole.diagonal, whole.inert
    else:
        given = covariance
        if kept is None:
            return GivenCovariance.of(given, unit, budget=budget)
        weights = screened.error_weights(given)
        inner = GivenCovariance.of(given.matrix, unit, given.error_unit, weights, budget)
        variances = ar.array(np.asarray(given.variances, dtype=np.float64)) / unit
        if given.errors is not None:
            errors = np.asarray(given.errors, dtype=np.float64)
            variances = variances + ar.array(errors) / unit
            inner.inert = inner.inert & (errors[kept] == 0)
        inert = np.array([variance == 0 for variance in variances], dtype=bool)
    none = np.zeros(variances.size)
    known = screened.Variances(variances, variances, none, inert)
    cov = screened.ScreenedCovariance(inner, kept, known, whole)
    return cov.without(excluded_features(result))


def check_exact_value(result: Result, cov: CheckedCovariance, budget: Budget) -> None:
    """Check that the loadings, at unit length, explain the value less its rounding at least."""
    ar, certificate = ExactCovariance.ar, result.certificate
    features = np.unique(np.concatenate(result.supports))
    cov.known()[0].charge(budget, features.size, features.size)
    W = ar.zeros(features.size, len(result.supports))
    for j, (support, weights) in enumerate(zip(result.supports, result.weights)):
        w = ar.array(weights)
        W[np.searchsorted(features, support), j] = w / ar.sqrt((w * w).sum())
    rest = ar.matmul(W.T, ar.matmul(cov.submatrix(features), W))
    total = ar.number(0.0)
    for j in range(len(rest)):
        pivot = rest[j, j]
        if result.settings["objective"] == "adjusted":
            # What is explained beyond the components before is not negative, so that the first
            # pivot that may be zero can end the sum.
            if not pivot > 0:
                break
            rest = rest - np.multiply.outer(rest[:, j], rest[j] / pivot)
        total = total + pivot
    least = ar.number(certificate.value) - ar.number(certificate.rounding)
    require(
        ar.at_most(least, total * cov.unit),
        "the components explain less than the value less its rounding",
    )
