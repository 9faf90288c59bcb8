"""Results of screened tables: the covariance of the kept features, the variances of all, and what
a dropped feature could add, all computed once more in passes over the rows.

The mathematics is in the docstring of proofs/beyond.py; the code is not shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from . import kyfan
from .cheap import psd_shift
from .covariance import EPS, CheckedCovariance, Question, matrix_of

EXACT = 2**53  # integers below are exact in double precision
WORD = 2**62
ENTRIES = 1 << 22  # of a block, kept or stored


class ScreenedCovariance(CheckedCovariance):
    """All features have a variance; entries are known between kept features only."""

    def __init__(self, inner: CheckedCovariance, kept: np.ndarray, variances: np.ndarray) -> None:
        self.inner, self.kept, self.diagonal = inner, kept, variances
        self.unit, self.error_unit = inner.unit, inner.error_unit
        self.weights = np.zeros(variances.size)
        self.weights[kept] = inner.weights
        self.upper = variances  # rounded up; the caller knows better
        self.loose = np.zeros(variances.size)  # errors of sums about any row
        self.blur = np.zeros(variances.size)  # what such errors make of the scales
        self.inert = variances == 0
        self._mean = inner._mean

    def submatrix(self, rows: Any, cols: Any = None) -> np.ndarray:
        cols = rows if cols is None else cols
        return self.inner.submatrix(self._places(rows), self._places(cols))

    def in_range(self) -> bool:
        return self.inner.in_range()

    def _places(self, features: Any) -> np.ndarray:
        features = np.asarray(features, dtype=np.intp)
        where = np.searchsorted(self.kept, features)
        if not np.array_equal(self.kept[np.minimum(where, self.kept.size - 1)], features):
            raise KeyError("a component uses a feature that was not kept")
        return where

    @property
    def doubt(self) -> float:
        return float(np.delete(self.upper - self.diagonal + self.loose, self.kept).sum())

    @property
    def others(self) -> np.ndarray:
        """Variances of the dropped features, the largest first, rounded up."""
        return np.sort(np.delete(self.upper, self.kept))[::-1]


class _KeptCovariance(CheckedCovariance):
    """A matrix that came from data: positive semidefinite up to rounding."""

    from_given = False

    @property
    def given(self) -> bool:
        return self.from_given

    def restrict(self, kept: np.ndarray) -> CheckedCovariance:
        plain = super().restrict(kept)
        part = _KeptCovariance(plain._left, None, self.unit, self.error_unit, plain.inert)
        part.diagonal, part.weights = plain.diagonal, plain.weights
        part.from_given = self.from_given
        return part


def of_given(screened: Any, kept: np.ndarray, unit: float) -> ScreenedCovariance:
    """From a matrix and variances that somebody else computed."""
    if not np.array_equal(np.asarray(screened.kept), kept):
        raise KeyError("other features were kept")
    A = np.asarray(screened.matrix, dtype=np.float64) / unit
    variances = np.asarray(screened.variances, dtype=np.float64) / unit
    if A.shape != (kept.size, kept.size) or not np.isfinite(A).all():
        raise KeyError("the matrix is not that of the kept features")
    A = (A + A.T) / 2
    inner = _KeptCovariance(
        A, None, unit, float(screened.error_unit), np.logical_not(A.any(axis=0))
    )
    if screened.error_weights is None:
        inner.from_given = True
    else:
        inner.weights = np.asarray(screened.error_weights, dtype=np.float64) / unit
    inner.largest = float(np.abs(A).max()) * unit
    out = ScreenedCovariance(inner, kept, variances)
    errors = 0.0 if screened.errors is None else np.asarray(screened.errors) / unit
    out.upper = variances * (1 + 2 * EPS) + errors
    return out


# --- sums over the rows ---


@dataclass
class Sums:
    """Over all rows: weights, and about `shift` the sums, squares and products of kept columns."""

    n: int
    weight: float
    shift: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    products: np.ndarray
    low: np.ndarray
    high: np.ndarray
    depth: int
    exact: bool
    sparse: bool = False
    wide: bool = False  # sums of squares may not fit a word
    slip: Any = 0.0  # what the weights of rows without an entry may be off by, in squares / EPS


def of_data(
    X: Any, kept: np.ndarray, center: bool, scale: bool, sample_weight: Any, unit: float
) -> tuple[ScreenedCovariance, np.ndarray, np.ndarray, int]:
    """The covariance, the means and scales of all columns, and the number of rows."""
    total = _summed(X, kept, sample_weight)
    variances, errors, mean = _columns(total, center)
    matrix, error, weights = _matrix(total, kept, center)
    constant = total.low == total.high if center else (total.low == 0) & (total.high == 0)
    if total.exact and center:  # the range cannot tell integers beyond 2^53 apart
        constant = constant & (variances == 0)
    still = constant[kept]
    matrix[still], matrix[:, still], weights[still] = 0.0, 0.0, 0.0
    variances, errors = np.where(constant, 0.0, variances), np.where(constant, 0.0, errors)
    loose = _loose(total, constant)
    spread, blur = np.ones(variances.size), np.zeros(variances.size)
    if scale:
        spread = np.where(variances > 0, np.sqrt(variances), 1.0)
        blur = np.minimum(loose / spread, np.sqrt(loose))
        matrix = matrix / np.outer(spread[kept], spread[kept])
        weights = np.where(still, 0.0, weights / np.maximum(variances[kept], 1e-300)) ** 2
        # one, whatever rounding has left of a variance
        error, errors = 2 * error, np.where(constant, 0.0, 4 * EPS)
        variances = np.where(constant, 0.0, 1.0)
        loose = errors
    matrix[np.diag_indices(kept.size)] = variances[kept]
    inner = _KeptCovariance(matrix / unit, None, unit, error, still)
    inner.weights = weights / unit
    out = ScreenedCovariance(inner, kept, variances / unit)
    out.upper = (variances * (1 + 2 * EPS) + errors) / unit
    out.inert, out.loose, out.blur = constant, loose / unit, blur
    if not scale:
        inner.largest = max(float(np.abs(side).max()) for side in (total.low, total.high)) ** 2
    return out, mean if center else np.zeros(mean.size), spread, total.n


def _loose(total: Sums, constant: np.ndarray) -> np.ndarray:
    """How far off the solver's variances may honestly be: he may have summed about the first row,
    or about zero, and moved sums from one to the other."""
    if total.exact:
        return np.zeros(constant.size)
    low, high = (np.minimum(total.low, 0.0), np.maximum(total.high, 0.0))
    reach = high - low if total.sparse else total.high - total.low
    loose = (24 * max(total.depth, total.n) + 400) * EPS * reach**2
    return np.where(constant, 0.0, loose)


def _summed(X: Any, kept: np.ndarray, sample_weight: Any) -> Sums:
    share = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    first = _first_pass(X, share)
    p = first.low.size
    if kept[-1] >= p:
        raise KeyError("the kept features are not features of the data")
    if first.exact:
        first.products = np.zeros((kept.size, kept.size), dtype=np.int64)
        for block, _ in _blocks(X, share):
            _exact_products(first, block, kept)
        return first
    about = first.shift + np.asarray(first.sums / first.weight, dtype=np.float64)
    # Kept columns as the solver sums them; the others where sums lose least, whatever he did.
    has_zero = (first.low[kept] <= 0) & (first.high[kept] >= 0)
    about[kept] = np.where(has_zero, 0.0, about[kept])
    first.shift, first.slip = about, 0.0
    first.sums, first.squares = np.zeros(p), np.zeros(p)
    first.products, first.depth = np.zeros((kept.size, kept.size)), 8
    for block, weights in _blocks(X, share):
        _rounded_products(first, block, weights, kept)
    return first


def _first_pass(X: Any, share: np.ndarray | None) -> Sums:
    """Ranges and sums, about the first row; exact sums and squares where all are integers."""
    total: Sums | None = None
    for block, weights in _blocks(X, share):
        if total is None:
            p = block.shape[1]
            none = np.zeros(p, dtype=np.int64)
            total = Sums(
                0, 0.0, np.zeros(p), none, none, np.zeros((0, 0)), np.full(p, np.inf),
                np.full(p, -np.inf), 0, share is None,
            )  # fmt: skip
            if share is not None or block.dtype.kind == "f":
                row = block[[0]].toarray() if sp.issparse(block) else block[:1]
                total.shift = row[0].astype(np.float64)
        if block.shape[1] != total.low.size:
            raise ValueError("blocks of rows have different numbers of columns")
        total.n += block.shape[0]
        total.sparse = total.sparse or sp.issparse(block)
        total.weight += block.shape[0] if weights is None else float(weights.sum())
        sides = block.min(axis=0), block.max(axis=0)
        low, high = (s.toarray().ravel() if sp.issparse(s) else s for s in sides)
        total.low, total.high = np.minimum(total.low, low), np.maximum(total.high, high)
        largest = max(float(np.abs(total.low).max()), float(np.abs(total.high).max()))
        total.exact = total.exact and block.dtype.kind in "iub"
        total.wide = total.n * largest * largest >= WORD
        if total.exact:
            sums, squares = _integer_sums(block, total.wide)
            total.sums, total.squares = total.sums + sums, total.squares + squares
            continue
        table = block.astype(np.float64)
        if sp.issparse(table):
            sums = _sparse_sums(total, table, weights)[0]
        else:
            table = table - total.shift
            sums = (table if weights is None else table * weights[:, None]).sum(axis=0)
        total.sums = total.sums + sums
    if total is None:
        raise ValueError("X has no rows")
    return total


def _integer_sums(block: Any, wide: bool) -> tuple[np.ndarray, np.ndarray]:
    """Sums and sums of squares of the columns, in Python's integers if words are too short."""
    kind: Any = object if wide else np.int64
    if not sp.issparse(block):
        table = block.astype(kind)
        return table.sum(axis=0), (table * table).sum(axis=0)
    entries = block.data.astype(kind)
    sums, squares = np.zeros((2, block.shape[1]), dtype=kind)
    np.add.at(sums, block.indices, entries)
    np.add.at(squares, block.indices, entries * entries)
    return sums, squares


def _exact_products(total: Sums, block: Any, kept: np.ndarray) -> None:
    """Integer products by floating point, in pieces whose sums stay below 2^53."""
    largest = max(float(np.abs(total.low).max()), float(np.abs(total.high).max()), 1.0)
    step = int((EXACT - 1) // (largest * largest))
    chosen = block[:, kept]
    for start in range(0, block.shape[0], max(step, 1)):
        part = chosen[start : start + max(step, 1)]
        kind: Any = object if total.wide else np.int64
        if step == 0:
            table = (part.toarray() if sp.issparse(part) else part).astype(kind)
            product: Any = table.T @ table
        else:
            table = part.astype(np.float64)
            product = table.T @ table
            product = (product.toarray() if sp.issparse(product) else product).astype(np.int64)
        total.products = total.products + product.astype(kind)


def _rounded_products(
    total: Sums, block: Any, weights: np.ndarray | None, kept: np.ndarray
) -> None:
    table = block.astype(np.float64)
    root = np.ones(block.shape[0]) if weights is None else np.sqrt(weights)
    if sp.issparse(table):
        chosen = table[:, kept].toarray() - total.shift[kept]
        sums, squares = _sparse_sums(total, table, weights)
        sums[kept] = root**2 @ chosen
        squares[kept] = root**2 @ chosen**2
        total.sums, total.squares = total.sums + sums, total.squares + squares
    else:
        table = table - total.shift
        chosen = table[:, kept]
        heavy = table * (root * root)[:, None]
        total.sums = total.sums + heavy.sum(axis=0)
        total.squares = total.squares + (heavy * table).sum(axis=0)
    chosen = chosen * root[:, None]
    total.products += chosen.T @ chosen
    total.depth = max(total.depth, block.shape[0] + 8) + 1


def _sparse_sums(
    total: Sums, table: sp.csr_array, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Sums and squares about the shifts without a zero filled in: rows that hold no entry of a
    column count by their weight."""
    rows, p = table.shape
    column, shift = table.indices, total.shift
    share = np.ones(rows) if weights is None else weights
    heavy = np.repeat(share, np.diff(table.indptr))
    stored = np.bincount(column, heavy, minlength=p)
    missing = np.bincount(column, minlength=p) < rows
    empty = np.where(missing, np.maximum(float(share.sum()) - stored, 0.0), 0.0)
    if weights is not None:
        total.slip = total.slip + np.where(missing, float(share.sum()) * shift**2, 0.0)
    entries = table.data - shift[column]
    sums = np.bincount(column, heavy * entries, minlength=p) - empty * shift
    squares = np.bincount(column, heavy * entries**2, minlength=p) + empty * shift**2
    return sums, squares


def _columns(total: Sums, center: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variances of all columns, how far off they may be, and means."""
    if total.exact:
        n, sums, squares = total.n, total.sums.astype(object), total.squares.astype(object)
        exact = (n * squares - sums * sums) / (n * n) if center else squares / n
        variances = np.asarray(exact, dtype=np.float64)
        return variances, 4 * EPS * variances, np.asarray(sums / n, dtype=np.float64)
    shift = total.shift
    mean = total.sums / total.weight
    mass = total.squares / total.weight
    variances = mass - mean * mean
    mass = mass + total.slip / total.weight
    if not center:
        variances = total.squares / total.weight + 2 * shift * mean + shift**2
        mass = 2 * (mass + shift**2)
    errors = (6 * total.depth + 40) * EPS * mass
    return np.maximum(variances, 0.0), errors, mean + shift


def _matrix(total: Sums, kept: np.ndarray, center: bool) -> tuple[np.ndarray, float, np.ndarray]:
    if total.exact:
        n, sums = total.n, total.sums[kept]
        shift = np.rint(np.asarray(sums / n, dtype=np.float64)).astype(np.int64) * int(center)
        size = float(np.abs(shift).max(initial=0))
        safe = 4 * max(float(np.diagonal(total.products).max()), n * size * size) < WORD
        kind: Any = np.int64 if safe else object
        c, s, products = shift.astype(kind), sums.astype(kind), total.products.astype(kind)
        about = s - n * c
        second = products - np.multiply.outer(c, about) - np.multiply.outer(s, c)
        matrix, mean = (np.asarray(a / n, dtype=np.float64) for a in (second, about))
        weights, error = np.diagonal(matrix).copy(), 12 * EPS
    else:
        matrix, mean = total.products / total.weight, total.sums[kept] / total.weight
        shift = total.shift[kept]
        weights, error = np.diagonal(matrix).copy(), (6 * total.depth + 40) * EPS
        if not center:
            cross = np.outer(shift, mean)
            matrix = matrix + cross + cross.T + np.outer(shift, shift)
            weights = 2 * (weights + shift * shift)
    return (matrix - np.outer(mean, mean) if center else matrix), error, weights


def _blocks(X: Any, share: np.ndarray | None) -> Iterator[tuple[Any, np.ndarray | None]]:
    """Blocks of rows of positive weight: CSR or dense, checked."""
    start = 0
    for block in _pieces(X):
        stop = start + block.shape[0]
        if share is None:
            yield block, None
        else:
            weights = share[start:stop]
            if weights.size != block.shape[0]:
                raise ValueError("there is not one sample weight per row")
            if (weights > 0).any():
                yield block[weights > 0], weights[weights > 0]
        start = stop


def _pieces(X: Any) -> Iterator[Any]:
    blocks = getattr(X, "blocks", None)
    source = blocks if callable(blocks) else X if callable(X) else None
    if source is not None:
        for block in source():
            yield _checked(block)
        return
    part = getattr(X, "X", None)
    X = X if part is None else part
    if not sp.issparse(X) and not isinstance(X, np.ndarray):
        X = matrix_of(X)
    X = X.tocsr() if sp.issparse(X) and X.format != "csr" else X
    width = X.nnz / X.shape[0] if sp.issparse(X) else X.shape[1]
    # few rows in a block and few blocks: sums lose least
    step = max(1, min(int(ENTRIES / max(width, 1)), max(int(np.sqrt(X.shape[0])), 512)))
    for start in range(0, X.shape[0], step):
        yield _checked(X[start : start + step])


def stacked(X: Any) -> Any:
    """All rows at once."""
    pieces = list(_pieces(X))
    some = any(sp.issparse(piece) for piece in pieces)
    return sp.vstack(pieces, format="csc") if some else np.concatenate(pieces)


def _checked(block: Any) -> Any:
    block = matrix_of(block)
    return block.tocsr() if sp.issparse(block) else block


# --- what a dropped feature could add ---


def touching(data: dict[str, Any], inside: float, cov: Any, question: Question) -> float:
    """No choice with a dropped feature explains more; `inside` bounds the others."""
    n = question.n_nonzero
    others = cov.others[:n]
    others = others[others > 0]
    if others.size == 0:
        return 0.0
    t = np.arange(1, others.size + 1)
    gains = np.cumsum(others)
    heavy = np.zeros(n)
    largest = np.sort(np.maximum(cov.inner.diagonal, 0.0))[::-1][:n]
    heavy[: largest.size] = largest
    shift = psd_shift(cov.inner)
    traces = np.append(0.0, np.cumsum(heavy + shift))[n - t] + cov.inner.rounding(n)
    stay = np.minimum(inside, traces * (1 + n * EPS))
    if data["rule"] == "prices":
        price = float(data["price"])
        base, prices = kyfan.spectrum(data["split"], cov.inner, question, price, empty=True)
        rest = cov.inner.p - prices.size
        prices = np.sort(np.append(prices, np.full(min(rest, n), price)))[::-1][:n]
        prices = np.append(prices, np.zeros(n - prices.size))
        paid = np.append(0.0, np.cumsum(prices))[n - t] * (1 + n * EPS)
        stay = np.minimum(stay, base + paid + cov.inner.rounding(n))
    elif data["rule"] not in ("variances", "nothing dropped"):
        raise ValueError(f"there is no rule called {data['rule']!r}")
    return float((stay + gains).max()) * (1 + (n + 4) * EPS)


def by_parts(data: dict[str, Any], own: dict[int, float], cov: Any, question: Question) -> Any:
    """Overlapping supports: (touching, total), one extension per component."""
    reach: dict[int, float] = {}
    for part in data["parts"]:
        s = int(part["s"])
        alone = replace(question, cardinalities=(s,), disjoint=True, value=0.0, total=None)
        reach[s] = touching(part, own[s], cov, alone)
    highest = {s: max(reach[s], own[s]) for s in own}
    total = sum(highest[s] for s in question.cardinalities)
    touch = max(total - highest[s] + reach[s] for s in own)
    rise = 1 + question.k * EPS
    return touch * rise, total * rise


def unfounded(
    claims: dict[str, Any], data: dict[str, Any], cov: ScreenedCovariance, sure: float
) -> str:
    """What the certificate says of the screening and does not follow; "" if all does.

    `sure` is the value less its rounding, in the user's units.
    """
    touching, inside = float(data["touching"]) * cov.unit, float(data["inside"]) * cov.unit
    if claims["kept"] != cov.kept.size or claims["dropped"] != np.count_nonzero(cov.others):
        return "the numbers of kept and dropped features are not those of the data"
    largest = float(cov.others.max(initial=0.0)) * cov.unit
    slack = 1e-9 * largest + 8 * cov.doubt * cov.unit
    if not abs(float(claims["largest_dropped"]) - largest) <= slack:
        return f"the largest variance of a dropped feature is {largest:.12g}"
    rules = {part["rule"] for part in data.get("parts", [])} or {data["rule"]}
    told = (claims["touching"], claims["inside"], claims["rule"])
    if told != (touching, inside, data["rule"]) or data["rule"] not in rules:
        return "the screening is told differently in certificate and proof"
    follows = (touching < sure, touching <= inside)
    if (claims["support_unchanged"], claims["bound_holds"]) != follows:
        return "a claim about the dropped features does not follow"
    return ""
