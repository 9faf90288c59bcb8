"""Sums of products of chosen columns: exact for integers, refused when blocks do not fit."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal.data.moments import Moments
from sparcipal.data.products import Gram, Strip
from sparcipal.data.screening import screened_of
from tests.support.brute import sparse_rows


def test_gram_refuses_other_blocks_and_survives_arrays():
    with pytest.raises(ValueError, match="a block has 3 columns, but column 4 is asked for"):
        Gram(np.array([0, 4])).add(np.ones((2, 3)))
    gram = Gram(np.array([0, 2])).add(np.arange(12).reshape(4, 3))
    with pytest.raises(ValueError, match="with and without sample weights"):
        gram.add(np.ones((1, 3)), np.ones(1))
    back = Gram.from_arrays(gram.arrays())
    assert (back.second == gram.second).all()
    assert back.n_samples == 4
    halves = Gram(np.array([0]), np.array([0.25]), 3).add(np.array([[0.5]]), np.array([2.0]))
    back = Gram.from_arrays(halves.arrays())
    assert (back.second, back.weight, back.depth) == (halves.second, 2.0, halves.depth)
    assert not back.exact
    back.merge(halves)  # the same shift and exponent


def large(exponent: int) -> np.ndarray:
    return np.array([[2**exponent, 1, 0], [2**exponent - 1, 0, 3]], dtype=np.int64)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("exponent", [4, 16, 30, 31])
def test_gram_of_integers_is_exact_at_every_size(layout, exponent):
    """Exact, in whatever words the sums need; Python's integers are the judge."""
    table = large(exponent)
    columns = np.arange(3)
    gram = Gram(columns)
    for _ in range(3):
        gram.add(layout(table))
    exact = 3 * (table.astype(object).T @ table.astype(object))
    assert gram.exact
    assert (np.asarray(gram.second, dtype=object) == exact).all()


def test_gram_merges_sums_of_different_word_sizes():
    """One part in Python's integers, the other in words: nothing is lost, in either order."""
    wide, narrow = Gram(np.arange(3)), Gram(np.arange(3))
    for _ in range(3):
        wide.add(large(31))
    narrow.add(large(4))
    exact = 3 * (large(31).astype(object).T @ large(31).astype(object))
    exact = exact + large(4).astype(object).T @ large(4).astype(object)
    assert wide.second.dtype == object
    assert narrow.second.dtype != object
    assert (np.asarray(wide.merge(narrow).second, dtype=object) == exact).all()


def test_gram_of_sparse_fractions_is_that_of_dense_ones():
    """Products of fractions by rows, against the dense sums."""
    wide = sparse_rows((40, 3000), 0.002, 2)
    columns = np.arange(0, 3000, 3)
    gram = Gram(columns).add(wide)
    dense = wide.toarray()[:, columns]
    np.testing.assert_allclose(gram.second * 4.0**-gram.exponent, dense.T @ dense, atol=1e-12)
    assert not gram.exact


def peak_of(work) -> int:
    """The most that NumPy holds at once while `work` runs, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("center", [False, True])
def test_products_and_what_is_made_of_them_take_one_matrix_more_than_the_sums(center):
    X = np.random.default_rng(0).standard_normal((16, 700))
    columns, moments = np.arange(700), Moments(700).add(X)
    gram, matrix = Gram(columns), 8 * 700**2
    gram.add(X[:1])
    assert peak_of(lambda: gram.add(X[1:])) < 1.3 * matrix
    whole = screened_of(moments, gram, center, False)
    assert peak_of(lambda: screened_of(moments, gram, center, False, consume=True)) < 1.3 * matrix
    used = X - X.mean(axis=0) if center else X
    np.testing.assert_allclose(whole.matrix, used.T @ used / 16, atol=1e-12)


def test_strips_are_added_to_in_place():
    X = np.random.default_rng(0).standard_normal((6, 4000))
    strip = Strip(np.arange(100), X.mean(axis=0), np.ones(4000))
    assert peak_of(lambda: strip.add(X[:3]).add(X[3:])) < 0.3 * strip.cross.nbytes
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(strip.cross, centred[:, :100].T @ centred, atol=1e-12)


def test_unsigned_integers_beyond_int64_are_added_with_weights():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2**64 - 1, (60, 5), dtype=np.uint64) * (rng.random((60, 5)) < 0.6)
    weights, chosen = rng.random(60) + 0.1, np.array([0, 2, 3])
    whole = Moments(5).add(X, weights)
    for container in (sp.csr_array, sp.csc_array, np.asarray):
        moments = Moments(5).add(container(X), weights)
        np.testing.assert_allclose(moments.means(), whole.means(), rtol=1e-12)
        assert (moments.low == X.min(axis=0)).all()
        assert (moments.high == X.max(axis=0)).all()
        gram = moments.gram(chosen).add(container(X), weights)
        found = screened_of(moments, gram, True, False).matrix
        expected = np.cov(X[:, chosen].T.astype(float), aweights=weights, ddof=0)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e24)
