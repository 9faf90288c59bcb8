"""The checker's own covariance: entries, errors, and data it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Result, sparse_pca, verify
from sparcipal.checker import covariance as checked
from sparcipal.checker.covariance import covariance_of_data
from tests.support import oracle

X = np.random.default_rng(0).standard_normal((20, 5))


@pytest.fixture(scope="module")
def result() -> Result:
    return sparse_pca(X, n_nonzero_coefs=2)


@pytest.mark.parametrize(
    ("weights", "message"),
    [(-np.ones(20), "not negative"), (np.zeros(20), "zero for every sample")],
)
def test_verify_refuses_weights_that_are_negative_or_all_zero(weights, message):
    result = sparse_pca(X, n_nonzero_coefs=2, sample_weight=np.arange(20.0), certify=False)
    with pytest.raises(ValueError, match=message):
        verify(result, X, sample_weight=weights)


def test_verify_refuses_tables_that_are_not_finite_matrices(result):
    assert "100 missing entries" in verify(result, X * np.nan).reason
    assert "100 missing entries" in verify(result, np.full((20, 5), None)).reason
    for table in (X[0], X * np.inf, np.full((20, 5), "a")):
        with pytest.raises(ValueError, match="two-dimensional table of finite numbers"):
            verify(result, table)
    with pytest.raises(ValueError, match="square matrix of finite numbers"):
        checked.covariance_of(np.ones((2, 3)), 1.0)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("center", [True, False])
def test_covariance_is_in_the_unit_given_with_its_rounding(layout, center, monkeypatch):
    """Entries in any unit, and the s largest weights in the margin."""
    import scipy.sparse as sp

    monkeypatch.setattr("sparcipal.checker.covariance.SMALL", 0)
    X = np.random.default_rng(3).standard_normal((15, 4)) * [0.1, 3.0, 1.0, 2.0] + 0.5
    X[:3, 2] = 0.0
    data = X if layout == "dense" else sp.csc_array(X)
    plain = X.T @ X / 15 - np.outer(X.mean(axis=0), X.mean(axis=0)) * center
    for unit in (2.0**-8, 1.0, 2.0**5):
        cov, mean, *_ = covariance_of_data(data, center, False, None, unit)
        assert np.allclose(cov.dense() * unit, plain, rtol=1e-12, atol=1e-14)
        assert np.allclose(cov.diagonal * unit, np.diagonal(plain), rtol=1e-12)
        assert np.allclose(mean, X.mean(axis=0) * center, rtol=1e-12)
        weights = np.sort(cov.weights)[::-1]
        assert (cov.weights * unit >= np.diagonal(plain) * (1 - 1e-12)).all()
        assert cov.error_unit == ((3 if layout == "dense" else 4) * 15 + 40) * 2.0**-52
        for s in (1, 2, 4):
            assert cov.rounding(s) == pytest.approx(cov.error_unit * weights[:s].sum(), rel=1e-12)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("scale", [False, True])
def test_covariance_of_columns_far_from_zero_is_close_in_fractions(layout, scale):
    import scipy.sparse as sp

    X = np.random.default_rng(4).standard_normal((25, 3)) * [1.0, 2.0, 0.5] + 3e12
    data = X if layout == "dense" else sp.csr_array(X)
    cov = covariance_of_data(data, True, scale, None, 1.0)[0]
    exact = oracle.exact_covariance(X, center=True, scale=scale, weights=None)
    A, root = cov.dense(), np.sqrt(cov.error_unit * cov.weights)
    for i in range(3):
        for j in range(3):
            assert abs(Fraction(A[i, j]) - exact[i][j]) <= Fraction(root[i] * root[j])
    assert root.max() < 1e-6


def test_covariance_refuses_weights_that_make_no_sense():
    X = np.ones((4, 2))
    for weights in ([1.0, 1.0], [1.0, 1.0, -1.0, 1.0], [1.0, np.nan, 1.0, 1.0], np.zeros(4)):
        with pytest.raises(ValueError, match="sample_weight"):
            covariance_of_data(X, True, False, weights, 1.0)


@pytest.mark.parametrize("center", [True, False])
def test_covariance_of_standardised_sparse_columns_is_that_of_dense_ones(center):
    X = np.random.default_rng(4).poisson(1.0, (30, 4)) * [1.0, 2.0, 5.0, 0.5]
    dense = covariance_of_data(X, center, True, None, 1.0)
    sparse = covariance_of_data(sp.csr_array(X), center, True, None, 1.0)
    assert np.allclose(dense[0].dense(), sparse[0].dense(), rtol=1e-12, atol=1e-14)
    assert np.allclose(dense[2], sparse[2], rtol=1e-12)
    if center:
        assert np.allclose(sparse[0].dense(), np.corrcoef(X.T), atol=1e-12)
    weights = np.array([1.0, 2.0, 0.0, 3.0] * 7 + [1.0, 0.0])
    plain = np.cov(X.T, aweights=weights, ddof=0)
    for data in (X, sp.csr_array(X)):
        assert np.allclose(covariance_of_data(data, True, False, weights, 1.0)[0].dense(), plain)
