"""The covariance of every kind of input is the same matrix, and its stated error holds."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import sparse_pca, verify
from sparcipal.numerics.margins import top_sum
from sparcipal.problem.covariance import PartCovariance, covariance_of, covariance_of_data

LAZY = {"method_options": {"effort": 0}}  # of the search: the covariance is on trial


def data(rng=0, n=40, p=12) -> np.ndarray:
    return np.random.default_rng(rng).poisson(0.6, (n, p)).astype(float)


def reference(X, center=True, scale=False, weights=None) -> np.ndarray:
    w = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    mean = w @ X if center else 0.0
    Y = X - mean
    if center:
        Y[:, np.ptp(X, axis=0) == 0] = 0.0
    A = Y.T @ (Y * w[:, None])
    if scale:
        d = np.sqrt(np.where(A.diagonal() > 0, A.diagonal(), 1))
        A = A / np.outer(d, d)
    return A


FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "csr_matrix": sp.csr_matrix,
    "int64 indices": lambda X: _wide(sp.csr_array(X)),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


def _wide(X: sp.csr_array) -> sp.csr_array:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("center", "scale"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_form_gives_the_same_matrix(form, center, scale, weighted):
    X = data()
    X[:, 3] = 2.0
    X[:, 5] = 0.0
    X[:, 7] += 100.0
    weights = np.linspace(0.1, 3, len(X)) if weighted else None
    made = FORMS[form](X)
    plain = np.asarray(made.toarray() if sp.issparse(made) else made, dtype=float)
    cov, mean, _ = covariance_of_data(made, center=center, scale=scale, sample_weight=weights)
    expected = reference(plain, center, scale, weights)
    size = np.sqrt(np.outer(cov.error_weights, cov.error_weights)) * cov.unit
    every = np.arange(12)
    Y = np.random.default_rng(1).standard_normal((12, 3))
    tolerance = 1e-9 * max(1.0, float(np.abs(expected).max()))
    assert np.abs(cov.dense() * cov.unit - expected).max() <= tolerance
    assert np.abs(cov.diagonal * cov.unit - expected.diagonal()).max() <= tolerance
    assert np.abs(cov.matmat(Y) * cov.unit - expected @ Y).max() <= 10 * tolerance
    assert np.abs(cov.matvec(Y[:, 0]) * cov.unit - expected @ Y[:, 0]).max() <= 10 * tolerance
    assert np.allclose(cov.submatrix(every[2:6], every[1:4]), cov.dense()[2:6, 1:4])
    assert np.allclose(cov.columns(every[[4, 1]]), cov.dense()[:, [4, 1]])
    part = cov.restrict(every[::2])
    assert np.allclose(part.dense(), cov.dense()[::2, ::2])
    assert np.allclose(cov.materialise().dense(), cov.dense())
    assert (np.abs(cov.dense() * cov.unit - expected) <= 1e-6 * size + tolerance).all()
    assert np.allclose(mean, reference_mean(plain, center, weights))
    assert set(np.flatnonzero(cov.inert)) == ({3, 5} if center else {5})


def reference_mean(X, center, weights):
    return np.average(X, axis=0, weights=weights) if center else np.zeros(X.shape[1])


def test_projection_is_implicit_and_right():
    cov, _, _ = covariance_of_data(sp.csr_array(data()))
    Q = np.linalg.qr(np.random.default_rng(2).standard_normal((12, 3)))[0]
    left = cov.project(Q)
    P = np.eye(12) - Q @ Q.T
    expected = P @ cov.dense() @ P
    assert np.allclose(left.dense(), expected)
    assert np.allclose(left.diagonal, expected.diagonal())
    assert np.allclose(left.matmat(np.eye(12)), expected)
    assert np.allclose(left.restrict(np.arange(5)).dense(), expected[:5, :5])


def test_a_part_that_is_not_copied_is_the_same_matrix():
    rng = np.random.default_rng(3)
    whole = covariance_of(np.cov(rng.standard_normal((40, 12)), rowvar=False))
    keep = np.array([0, 2, 3, 7, 11])
    part, copied = PartCovariance(whole, keep), whole.restrict(keep)
    Y = rng.standard_normal((5, 3))
    np.testing.assert_allclose(part.matmat(Y), copied.matmat(Y), rtol=1e-13)
    rows, cols = np.array([1, 4]), np.array([0, 2, 3])
    np.testing.assert_array_equal(part.submatrix(rows, cols), copied.submatrix(rows, cols))
    np.testing.assert_array_equal(part.dense(), copied.dense())
    np.testing.assert_array_equal(part.diagonal, copied.diagonal)
    again = part.restrict(np.array([1, 3]))
    np.testing.assert_array_equal(again.dense(), whole.submatrix(keep[[1, 3]]))
    assert part.rounding(2) == copied.rounding(2)


def test_covariance_and_the_matrix_of_its_samples_have_the_same_eigenvalues():
    cov, _, _ = covariance_of_data(data(n=6))
    eigenvalues = np.linalg.eigvalsh(cov.dense())[-5:]
    assert np.allclose(np.linalg.eigvalsh(cov.factor() @ cov.factor().T)[-5:], eigenvalues)


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e5, 1e9])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_stated_error_holds_in_exact_arithmetic(offset, layout):
    """Entry by entry against rational numbers."""
    X = np.random.default_rng(4).integers(-9, 10, (11, 4)) + offset
    X[0, 0] = 0.0
    exact = exact_covariance(X)
    cov, _, _ = covariance_of_data(X if layout == "dense" else sp.csr_array(X))
    stated = cov.error_unit * np.sqrt(np.outer(cov.error_weights, cov.error_weights)) * cov.unit
    computed = cov.dense() * cov.unit
    for i in range(4):
        for j in range(4):
            error = abs(Fraction(float(computed[i, j])) - exact[i][j])
            assert error <= Fraction(float(stated[i, j])) + Fraction(1, 10**300)


def exact_covariance(X) -> list[list[Fraction]]:
    n, p = X.shape
    columns = [[Fraction(float(x)) for x in X[:, j]] for j in range(p)]
    means = [sum(c) / n for c in columns]
    return [
        [
            sum((a - means[i]) * (b - means[j]) for a, b in zip(columns[i], columns[j])) / n
            for j in range(p)
        ]
        for i in range(p)
    ]


def test_rounding_covers_the_quadratic_form():
    cov, _, _ = covariance_of_data(sp.csr_array(data()))
    weights = np.sort(cov.error_weights)[::-1]
    assert cov.rounding(3) >= cov.error_unit * weights[:3].sum()
    assert cov.rounding(2) <= cov.rounding(5)
    assert top_sum(np.array([1.0, 5.0, 2.0]), 2) == 7.0
    assert top_sum(np.array([1.0]), 0) == 0.0


def test_a_read_only_memory_map_is_left_alone(tmp_path):
    X = data()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    result = sparse_pca(mapped, n_components=2, n_nonzero_coefs=3)
    assert np.array_equal(
        result.components, sparse_pca(X, n_components=2, n_nonzero_coefs=3).components
    )
    assert np.array_equal(np.load(tmp_path / "X.npy"), X)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array])
def test_the_input_is_not_changed(make):
    X = make(data())
    before = X.copy()
    sparse_pca(X, n_components=2, n_nonzero_coefs=3, scale=True)
    assert (abs(X - before)).max() == 0


def test_covariance_of_sparse_data_equals_that_of_dense():
    X = data(n=80, p=30)
    for options in ({}, {"scale": True}, {"center": False}, {"nonnegative": True}):
        asked = {"n_components": 3, "n_nonzero_coefs": 4, "certify": False, **LAZY, **options}
        dense, sparse = (sparse_pca(Y, **asked) for Y in (X, sp.csr_array(X)))
        assert [list(s) for s in dense.supports] == [list(s) for s in sparse.supports]
        assert np.allclose(dense.components, sparse.components, atol=1e-9)
        assert dense.value == pytest.approx(sparse.value, rel=1e-12)


def test_given_matrix_shift_is_proved():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 3))
    singular = x @ x.T
    assert 0 < covariance_of(singular).psd_shift < 1e-12
    slightly_negative = singular - 1e-12 * np.eye(8)
    cov = covariance_of(slightly_negative)
    lowest = np.linalg.eigvalsh(slightly_negative)[0] / cov.unit
    assert cov.psd_shift >= -lowest


def correlated_columns() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.standard_normal(20)
    return a, a + 0.1 * rng.standard_normal(20)


@pytest.mark.parametrize("units", [(1, 1e-170), (1e100, 1e-100), (1e12, 1e-150), (1e-310, 1e-310)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_covariance_of_scaled_columns_verifies_in_any_units(units, make):
    a, b = correlated_columns()
    X = make(np.c_[a * units[0], b * units[1]])
    result = sparse_pca(X, n_nonzero_coefs=2, scale=True)
    # The smallest unit has few digits left: its own rounding is in the data.
    if units[0] != 1e-310:
        optimum = 1 + abs(np.corrcoef(a, b)[0, 1])
        assert result.value == pytest.approx(optimum, rel=1e-9)
    assert result.bound > 1.99
    verdict = verify(result, X)
    assert verdict, verdict.reason


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scale", [False, True])
def test_covariance_ignores_samples_of_weight_zero(make, scale):
    X = np.array([[0.1, 1.0, 3.0], [0.1, 2.0, 1.0], [0.1, 7.0, 2.0], [5.0, 3.0, 9.0]])
    weights = np.array([0.3, 0.6, 0.123, 0.0])
    result = sparse_pca(make(X), sample_weight=weights, n_nonzero_coefs=2, scale=scale)
    without = sparse_pca(make(X[:3]), sample_weight=weights[:3], n_nonzero_coefs=2, scale=scale)
    assert result.value == pytest.approx(without.value, rel=1e-12)
    verdict = verify(result, make(X), sample_weight=weights)
    assert verdict, verdict.reason


def test_covariance_holds_when_weights_are_huge():
    X = np.array([[0.0, 1.0], [2.0, 5.0], [1.0, 1.0]])
    huge = sparse_pca(X, sample_weight=np.array([1e308, 1e308, 1e308]), n_nonzero_coefs=1)
    assert huge.value == pytest.approx(sparse_pca(X, n_nonzero_coefs=1).value)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("offset", [1e6, 1e12, 1e15])
def test_covariance_of_scaled_columns_verifies_after_a_large_offset(make, offset):
    a, b = correlated_columns()
    X = np.round(np.c_[a, b] * 8) + offset
    result = sparse_pca(make(X), n_nonzero_coefs=2, scale=True)
    verdict = verify(result, make(X))
    assert verdict, verdict.reason
    assert result.value == pytest.approx(1 + abs(np.corrcoef((X - offset).T)[0, 1]), rel=1e-9)


def test_covariance_is_refused_when_floating_point_cannot_hold_it():
    with pytest.raises(ValueError, match=r"2\*\*53"):
        sparse_pca(2**60 + np.arange(20).reshape(10, 2))
    for size in (1e-310, 1e305):
        with pytest.raises(ValueError, match="end of floating point"):
            sparse_pca(covariance=np.array([[2.0, 1], [1, 2]]) * size)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"covariance": np.ones((2, 3))}, ValueError, ["square", "(2, 3)"]),
        ({"covariance": np.array([[1.0, 0.5], [0.2, 1.0]])}, ValueError, ["symmetric", "0.3"]),
        (
            {"covariance": np.array([[1.0, 2.0], [2.0, 1.0]])},
            ValueError,
            ["semidefinite", "-1", "-33 %"],
        ),
        ({"covariance": np.full((2, 2), np.nan)}, ValueError, ["NaN"]),
        ({"covariance": np.zeros((3, 3))}, ValueError, ["no variance"]),
        ({"covariance": np.array([["a"]])}, ValueError, ["real numbers"]),
        ({"covariance": np.eye(3), "scale": True}, ValueError, ["scale", "pass X"]),
        ({"covariance": np.eye(3), "sample_weight": np.ones(3)}, ValueError, ["sample_weight"]),
    ],
)
def test_covariance_is_refused_when_it_is_none(arguments, error, words):
    with pytest.raises(error) as caught:
        sparse_pca(**arguments)
    for word in words:
        assert word in str(caught.value)


def test_columns_of_a_dense_table_are_formed_without_a_copy_of_it(monkeypatch):
    monkeypatch.setattr("sparcipal.problem.covariance.COPIED", 4000)
    X = np.random.default_rng(0).standard_normal((400, 300))
    cov, A = covariance_of_data(X)[0], reference(X)
    some = np.array([7, 3])
    tracemalloc.start()
    columns = cov.columns(some) * cov.unit
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * X.nbytes
    np.testing.assert_allclose(columns, A[:, some], atol=1e-13)
    np.testing.assert_array_equal(cov.submatrix(some, np.arange(300)) * cov.unit, columns.T)
    np.testing.assert_allclose(cov.dense() * cov.unit, A, atol=1e-13)


def test_a_large_block_of_a_dense_covariance_copies_some_columns_at_a_time(monkeypatch):
    cov = covariance_of_data(np.random.default_rng(0).standard_normal((500, 60)))[0]
    some = np.arange(1, 59)
    whole = cov.submatrix(some)
    monkeypatch.setattr("sparcipal.problem.covariance.COPIED", 500 * 7)
    tracemalloc.start()
    in_pieces = cov.submatrix(some)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < cov.factor().nbytes / 2
    np.testing.assert_allclose(in_pieces, whole, atol=1e-14)
    np.testing.assert_array_equal(in_pieces, in_pieces.T)
    restricted = cov.restrict(some)
    np.testing.assert_allclose(restricted.dense(), whole, atol=1e-14)


def test_rows_of_a_dense_covariance_copy_no_column_where_all_are_asked_for():
    cov = covariance_of_data(np.random.default_rng(0).standard_normal((500, 60)))[0]
    few, every = np.array([3, 7]), np.arange(60)
    tracemalloc.start()
    rows = cov.submatrix(few, every)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < cov.factor().nbytes / 4
    np.testing.assert_allclose(rows, cov.dense()[few], atol=1e-14)
    np.testing.assert_array_equal(cov.submatrix(every, few), rows.T)


def test_rows_of_a_sparse_covariance_turn_the_table_once_and_copy_few_columns(monkeypatch):
    """What comes out has the bits of a product with the columns asked for."""
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 40), density=0.2, rng=rng, format="csc")
    covariance, _, _ = covariance_of_data(X)
    few, most = np.array([7, 3]), rng.permutation(40)[:30]
    one_by_one = np.hstack([covariance.submatrix(few, most[[j]]) for j in range(30)])
    taken, turned = [], []
    take, turn = sp.csc_array.__getitem__, sp.csc_array.tocsr
    monkeypatch.setattr(
        sp.csc_array, "__getitem__", lambda X, at: taken.append(len(at[1])) or take(X, at)
    )
    monkeypatch.setattr(sp.csc_array, "tocsr", lambda X, copy=False: turned.append(1) or turn(X))
    for _ in range(3):
        np.testing.assert_array_equal(covariance.submatrix(few, most), one_by_one)
        np.testing.assert_array_equal(covariance.submatrix(most, few), one_by_one.T)
    assert max(taken) == 2
    assert len(turned) == 1
