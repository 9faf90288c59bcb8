"""Sums over rows: exact for integers whatever the blocks, bounded errors otherwise, kernels."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Gram, Moments, Screened, sparse_pca

INTEGERS = [np.uint8, np.int16, np.int32, np.int64, np.uint64, bool]
FLOATS = [np.float32, np.float64]


def table(dtype, rng, n=50, p=7, offset=0.0):
    X = rng.poisson(1.0, (n, p))
    if np.dtype(dtype).kind in "if":
        X = X * rng.choice([-1, 1], X.shape)
    if np.dtype(dtype).kind == "f":
        X = X * rng.random(X.shape) + offset
    return X.astype(dtype)


def parts(X, weights=None, cuts=(20, 21)):
    edges = [0, *cuts, X.shape[0]]
    for a, b in itertools.pairwise(edges):
        yield X[a:b], None if weights is None else weights[a:b]


def moments_of(X, weights=None, cuts=(20, 21)):
    total = Moments(X.shape[1])
    for block, w in parts(X, weights, cuts):
        total.merge(pickle.loads(pickle.dumps(total.copy_empty().add(block, w))))
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_moments_and_products_match_numpy_however_rows_are_split(dtype, sparse, weighted):
    rng = np.random.default_rng(0)
    X = table(dtype, rng, offset=0.0 if sparse else 100.0)
    w = rng.random(50) if weighted else np.ones(50)
    given = w if weighted else None
    source = sp.csr_array(X) if sparse else X
    Y, share = X.astype(float), w / w.sum()
    found = moments_of(source, given)
    mean = share @ Y
    variance = share @ (Y - mean) ** 2
    assert found.exact == (dtype in INTEGERS and not weighted)
    assert np.allclose(found.means(), mean, rtol=1e-12)
    assert (np.abs(found.variances() - variance) <= found.errors() + 1e-13 * variance).all()
    assert np.allclose(found.variances(center=False), share @ Y**2, rtol=1e-12)
    assert (found.low == Y.min(axis=0)).all()
    assert (found.high == Y.max(axis=0)).all()
    again = Moments.from_arrays(found.arrays())
    assert again.variances().tobytes() == found.variances().tobytes()
    columns = np.array([0, 2, 3, 6])
    for empty in (found.gram(columns), Gram(columns)):
        gram = empty.copy_empty()
        for block, b in parts(source, given):
            gram.merge(empty.copy_empty().add(block, b))
        shift = 0.0 if gram.shift is None else gram.shift
        Z = np.ldexp(Y[:, columns] - shift, 0 if gram.exact else gram.exponent)
        assert np.allclose(gram.second.astype(float), (Z * w[:, None]).T @ Z, rtol=1e-11)
        assert np.allclose(gram.sums.astype(float), w @ Z, rtol=1e-11, atol=1e-11)


def test_moments_of_large_integers_do_not_overflow():
    rng = np.random.default_rng(1)
    X = rng.integers(-(2**53), 2**53, (30, 3))
    moments = Moments(3).add(X[:10]).add(sp.csr_array(X[10:]))
    assert moments.exact
    squares = [sum(int(x) ** 2 for x in X[:, j]) for j in range(3)]
    assert moments.squares.tolist() == squares
    again = Moments.from_arrays(moments.arrays())
    assert again.squares.tolist() == squares
    assert again.sums.tolist() == moments.sums.tolist()
    gram = Gram([0, 2]).add(X[:10]).add(sp.csr_array(X[10:]))
    assert gram.second[0, 1] == sum(int(a) * int(b) for a, b in zip(X[:, 0], X[:, 2]))
    n = len(X)
    exact = [
        Fraction(n * q - sum(int(x) for x in X[:, j]) ** 2, n * n) for j, q in enumerate(squares)
    ]
    error = np.array([abs(float(Fraction(v) - e)) for v, e in zip(moments.variances(), exact)])
    assert (error <= moments.errors()).all()


def test_sums_leave_64_bits_between_blocks():
    block = np.full((2, 2), 2**30)
    total = Moments(2)
    for _ in range(4):
        total.add(block)
    assert total.exact
    assert total.squares.tolist() == [8 * 2**60] * 2
    assert total.variances().tolist() == [0.0, 0.0]
    gram = Gram([0, 1])
    for _ in range(4):
        gram.add(block)
    assert gram.second.tolist() == [[8 * 2**60] * 2] * 2


@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_and_order_do_not_matter_for_integers(sparse):
    rng = np.random.default_rng(2)
    X = rng.poisson(rng.exponential(3, 12), (97, 12)).astype(np.uint16)
    X[3, 4] = 60_000
    source = sp.csr_array(X) if sparse else X
    kept, outcomes = np.array([1, 4, 5, 9]), set()
    for cuts in ((50,), (1, 2, 3), (90, 96), tuple(range(10, 90, 10))):
        pieces = list(parts(source, None, cuts))
        rng.shuffle(pieces)
        moments, gram = Moments(12), Gram(kept)
        for block, _ in pieces:
            moments.merge(Moments(12).add(block))
            gram.merge(gram.copy_empty().add(block))
        screened = Screened.of(moments, gram)
        outcomes.add((screened.matrix.tobytes(), screened.variances.tobytes()))
    assert len(outcomes) == 1


@pytest.mark.parametrize("offset", [0, 10**6, 2**40])
@pytest.mark.parametrize("center", [True, False])
def test_the_covariance_is_as_close_as_it_says(offset, center):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 5, (40, 5)) + offset
    for source in (X, X.astype(float)):
        moments = Moments(5).add(source[:25]).add(source[25:])
        gram = moments.gram(np.arange(5)).add(source[:7]).add(source[7:])
        found = Screened.of(moments, gram, center)
        n = len(X)
        for i in range(5):
            for j in range(5):
                second = sum(int(a) * int(b) for a, b in zip(X[:, i], X[:, j]))
                means = int(X[:, i].sum()) * int(X[:, j].sum())
                exact = Fraction(n * second - center * means, n * n)
                allowed = found.error_unit * np.sqrt(
                    found.error_weights[i] * found.error_weights[j]
                )
                assert abs(float(Fraction(float(found.matrix[i, j])) - exact)) <= allowed


def test_constant_columns_are_told_by_their_entries():
    X = np.column_stack([np.full(9, 0.1), np.arange(9.0)])
    moments = Moments(2).add(X[:4]).add(X[4:])
    assert moments.constant.tolist() == [True, False]
    assert moments.variances()[0] == 0.0
    assert moments.means()[0] == 0.1


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="column 1 holds NaN"):
        Moments(2).add(np.array([[1.0, np.nan]]))
    with pytest.raises(ValueError, match="3 features"):
        Moments(2).merge(Moments(3))
    with pytest.raises(ValueError, match="shape"):
        Moments(2).add(np.ones((4, 3)))
    with pytest.raises(ValueError, match="with and without sample weights"):
        Moments(1).add(np.ones((2, 1))).add(np.ones((2, 1)), np.ones(2))
    with pytest.raises(ValueError, match="increasing"):
        Gram([2, 1])
    with pytest.raises(ValueError, match="different columns"):
        Gram([0]).merge(Gram([1]))
    broken = sp.csr_array(np.eye(3, dtype=np.int32))
    broken.indices[1] = 7
    with pytest.raises(ValueError, match="index 7"):
        Moments(3).add(broken)


@pytest.mark.kernels
def test_stream_kernels_agree_with_numpy():
    from sparcipal.kernels.stream import add_entries, add_pairs, spread_rows

    rng = np.random.default_rng(4)
    X = sp.csr_array(rng.poisson(0.4, (30, 9)).astype(np.uint8))
    for kind in (np.int64, np.float64):
        table = np.zeros((9, 5), dtype=kind)
        table[:, 2] = 1000
        assert add_entries(X.indices, X.data, table, kind(1)) == -1
        D = X.toarray().astype(kind)
        stored = np.where(D > 0, D, 1000)
        twin = [D.sum(axis=0), (D * D).sum(axis=0), stored.min(axis=0), D.max(axis=0)]
        assert (np.array([*twin, (D > 0).sum(axis=0)]) == table.T).all()
        place = np.full(9, -1, dtype=np.int32)
        place[[1, 4, 8]] = [0, 1, 2]
        chosen = D[5:20][:, [1, 4, 8]]
        second, sums = np.zeros((3, 3), dtype=kind), np.zeros(3, dtype=kind)
        column, value = np.empty(9, dtype=np.int32), np.empty(9, dtype=kind)
        add_pairs(X.indptr, X.indices, X.data, place, 5, 20, second, sums, column, value)
        both = second + second.T - np.diag(np.diagonal(second))
        assert (both == chosen.T @ chosen).all()
        assert (sums == chosen.sum(axis=0)).all()
        tile = np.zeros((15, 3), dtype=kind)
        spread_rows(X.indptr, X.indices, X.data, place, 5, 20, tile)
        assert (tile == chosen).all()


def test_moments_of_a_sparse_block_without_entries_are_zero():
    assert Moments(3).add(sp.csr_array((4, 3))).sums.tolist() == [0.0, 0.0, 0.0]


def test_moments_refuse_blocks_that_are_no_rows_of_the_table():
    X = np.random.default_rng(0).standard_normal((20, 5))
    with pytest.raises(ValueError, match="rows of 5 features are expected"):
        Moments(5).add(X[:, :3])
    with pytest.raises(ValueError, match="does not hold numbers"):
        Moments(1).add(np.array([["a"]]))
    repeated = sp.csr_array((np.ones(2), np.zeros(2, int), [0, 2]), shape=(1, 2))
    assert Moments(2).add(repeated).means().tolist() == [2.0, 0.0]
    assert "20 samples x 5 features, rounded" in repr(Moments(5).add(X))
    assert Moments(5).add(X.astype(np.float16)).n_samples == 20


def test_moments_tell_constant_columns_from_others_beyond_2_to_the_53():
    """Beyond 2^53 smallest and largest are rounded; the exact sums decide."""
    big = 2**53
    moments = Moments(2).add(np.array([[big, big], [big, big + 1]]))
    assert moments.constant.tolist() == [True, False]


def test_sliding_windows_cost_their_change_and_are_exact():
    """Rows that leave a window are subtracted: the answer is that of the window alone."""
    rng = np.random.default_rng(3)
    counts = rng.poisson(2.0, (90, 6))
    counts[30:, 4] = 7  # constant once the first rows have left
    columns = np.arange(6)
    moments, gram = Moments(6).add(counts[:60]), Gram(columns).add(counts[:60])
    moments.merge(Moments(6).add(counts[60:])).subtract(Moments(6).add(counts[:30]))
    gram.merge(Gram(columns).add(counts[60:])).subtract(Gram(columns).add(counts[:30]))
    fresh = Moments(6).add(counts[30:])
    assert moments.variances().tolist() == fresh.variances().tolist()
    assert moments.constant.tolist() == fresh.constant.tolist()
    np.testing.assert_array_equal(gram.second, Gram(columns).add(counts[30:]).second)
    found = sparse_pca(covariance=Screened.of(moments, gram), n_nonzero_coefs=2)
    assert found.value == pytest.approx(sparse_pca(counts[30:], n_nonzero_coefs=2).value, rel=1e-12)


def test_rows_that_were_not_added_cannot_be_subtracted():
    counts = np.random.default_rng(4).poisson(2.0, (20, 3))
    with pytest.raises(ValueError, match="not all added"):
        Moments(3).add(counts).subtract(Moments(3).add(5 * counts))
    with pytest.raises(ValueError, match="no part"):
        Moments(3).add(counts[:5]).subtract(Moments(3).add(counts))
    with pytest.raises(ValueError, match="only sums of integers"):
        Moments(3).add(counts / 2).subtract(Moments(3).add(counts[:2] / 2))
    with pytest.raises(ValueError, match="not all added"):
        Gram(np.arange(3)).add(counts).subtract(Gram(np.arange(3)).add(9 * counts))
    empty = Moments(3).add(counts).subtract(Moments(3).add(counts))
    assert empty.n_samples == 0
    assert empty.add(counts).variances().tolist() == Moments(3).add(counts).variances().tolist()
