"""Rows of the covariance of all features: exact sums of integers, however rows are cut, and sizes
that are rounded up."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import sparse_pca, verify
from sparcipal.data.products import Strip
from sparcipal.data.screening import screened_of
from sparcipal.data.sources import as_rows
from sparcipal.data.strips import EveryRow
from sparcipal.problem.monitor import Monitor
from tests.bounds.test_dropped import noisy

CSR, CSC, CUTS = sp.csr_array, sp.csc_array, [0, 1, 30, 31, 90, 120]


def tables(kind: str) -> np.ndarray:
    """Integers of 120 rows and 9 columns, one of them constant."""
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, (120, 9)) * (rng.random((120, 9)) < 0.4)
    X[:, 4] = 3
    if kind == "offset":  # sums about zero leave the integers of double precision
        X = X + (np.arange(9) - 4) * 2**40
    if kind == "wide":  # these also where few rows are added about zero
        X = X * 2**19 + 2**27
    if kind == "rare":
        X = (X == 7).astype(np.int64)
    return X


def cut(X: np.ndarray, kinds, cuts=CUTS) -> list:
    return [kinds[i % len(kinds)](X[a:b]) for i, (a, b) in enumerate(pairwise(cuts))]


@pytest.mark.parametrize("kind", ["small", "offset", "wide", "rare"])
@pytest.mark.parametrize("tile", [1 << 18, 32])
def test_strips_of_integers_are_exact_in_any_blocks(monkeypatch, kind, tile):
    monkeypatch.setattr("sparcipal.data.products.FEW", tile)
    X, own = tables(kind), np.array([1, 4, 6])
    shift = np.rint(X.mean(axis=0))
    Z = X.astype(object) - shift.astype(np.int64).astype(object)
    empty = Strip(own, shift, np.ones(9), True)
    whole = [np.asarray, CSR, CSC, lambda x: x.astype(float), lambda x: CSR(x.astype(np.int64))]
    for blocks in [cut(X, whole), cut(X, [CSR]), [X], [CSR(X)], cut(X, [CSC, CSR], [0, 70, 120])]:
        strip, other = empty.copy_empty(), empty.copy_empty()
        for i, block in enumerate(blocks):
            (other if i % 3 == 1 else strip).add(block)
        strip.merge(other)
        assert (strip.cross == (Z[:, own].T @ Z).astype(float)).all()
        assert (strip.sums == Z.sum(axis=0).astype(float)).all()
        assert (strip.mass == (Z * Z).sum(axis=0).astype(float)).all()
        assert strip.n_samples == strip.weight == 120


def every_row(blocks: list, center: bool, scale: bool, weights=None) -> EveryRow:
    rows = as_rows(blocks)
    rows = rows if weights is None else rows.weighted(weights)
    moments = rows.count(None)
    gram = rows.accumulate(moments.gram(np.array([0, 3])), None)
    screened = screened_of(moments, gram, center, scale)
    return EveryRow(rows, moments, screened, 1.0 if scale else 4.0, 1 << 20, Monitor())


def exact_squares(X: np.ndarray, center: bool, scale: bool) -> tuple[list, list]:
    """The squares of all covariances, in units of 4 or of the deviations, and their signs."""
    columns = [[Fraction(float(x)) for x in column] for column in X.T]
    n = len(X)
    means = [sum(c) / n * center for c in columns]
    Z = [[x - mean for x in column] for column, mean in zip(columns, means)]
    A = [[sum(x * y for x, y in zip(a, b)) / n for b in Z] for a in Z]
    p = range(len(A))
    units = [(A[j][j] or Fraction(1)) if scale else Fraction(4) for j in p]
    return [[A[i][j] ** 2 / (units[i] * units[j]) for j in p] for i in p], A


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kind", ["small", "offset", "wide", "rare", "huge", "fractions"])
@pytest.mark.parametrize("container", [np.asarray, CSR])
def test_sizes_are_not_below_the_exact_ones(kind, center, scale, container):
    X = tables(kind)
    if kind == "huge":  # integers whose sums of squares are not exact in double precision
        X = X * 2**26 + 5
    if kind == "fractions":
        X = X / 7.0 + np.arange(9)
    every, own = every_row(cut(X, [container]), center, scale), np.array([1, 4, 6, 8])
    found = every.submatrix(own, np.arange(9))
    squares, A = exact_squares(X, center, scale)
    for row, i in zip(found, own):
        for j, entry in enumerate(row):
            if i == j:
                continue  # `diagonal` has the variances
            assert Fraction(float(entry)) ** 2 >= squares[i][j]
            assert entry * A[i][j] >= 0
            near = float(squares[i][i]) * float(squares[j][j])
            assert entry**2 <= float(squares[i][j]) + 1e-6 * near**0.5 + 1e-300


# about zero, sums of squares of the others are rounded
BOTH = [("small", False), ("rare", False)]


@pytest.mark.parametrize(
    ("kind", "center"), [*BOTH, *((kind, True) for kind in ("small", "offset", "wide", "rare"))]
)
@pytest.mark.parametrize("scale", [False, True])
def test_rows_of_integers_have_the_same_bytes_in_any_blocks(kind, center, scale):
    X, own = tables(kind), np.array([0, 2, 5])
    ways = [cut(X, [np.asarray]), [X], [CSR(X)], cut(X, [CSR, np.asarray]), cut(X, [CSC])]
    every = [every_row(blocks, center, scale).submatrix(own, np.arange(9)) for blocks in ways]
    assert len({rows.tobytes() for rows in every}) == 1


def test_a_bound_by_rows_of_integers_has_the_same_bytes_in_any_blocks():
    X = np.rint(20 * np.delete(noisy(1, n=500), 7, axis=1)).astype(int)
    X -= np.rint(X.mean(axis=0)).astype(int) // 2
    sources = [
        cut(X, [np.asarray], [0, 200, 500]),
        cut(X, [CSR], [0, 7, 300, 500]),
        cut(X, [CSR, np.asarray], [0, 130, 260, 500]),
        cut(X, [lambda x: x.astype(float), CSC], [0, 450, 500]),
    ]
    asked = {"n_nonzero_coefs": 3, "scale": True, "memory_limit": 2000}
    first = sparse_pca(sources[0], **asked)
    assert first.certificate.screening["rule"] == "rows"
    assert all(sparse_pca(source, **asked).to_json() == first.to_json() for source in sources[1:])
    for given in (X, CSR(X), sources[2]):
        assert verify(first, given), verify(first, given).reason
    da = pytest.importorskip("dask.array", reason="dask.array is not installed")
    for chunks in ((100, -1), (37, 5)):
        lazy = sparse_pca(da.from_array(X, chunks=chunks), **asked)
        assert lazy.to_json() == first.to_json()
