"""A path of cardinalities gives what separate calls give, each with its certificate."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import data_file
from sparcipal import sparse_pca, verify
from sparcipal.path import grow, sparse_path
from test_exact import PITPROPS


def test_pitprops_path():
    A = np.loadtxt(data_file("pitprops.csv"), delimiter=",")
    path = sparse_path(covariance=A, n_nonzero_coefs=range(2, 13))
    assert path.n_nonzero_coefs.tolist() == list(range(2, 13))
    np.testing.assert_allclose(path.values, [PITPROPS[s] for s in range(2, 13)], atol=2e-10)
    assert (path.gaps <= 1e-6).all()
    assert (path.bounds >= path.values).all()
    assert all(verify(result, covariance=A) for result in path)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_path_equals_separate_calls(nonnegative):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 25)) @ rng.standard_normal((25, 25))
    X[:, 4] = 1.0
    path = sparse_path(X, n_nonzero_coefs=[9, 2, 5], nonnegative=nonnegative)
    assert [r.settings["n_nonzero_coefs"] for r in path] == [[2], [5], [9]]
    for result in path:
        size = result.settings["n_nonzero_coefs"][0]
        alone = sparse_pca(X, n_nonzero_coefs=size, nonnegative=nonnegative)
        assert result.value == pytest.approx(alone.value, rel=2e-6)
        assert verify(result, X)


def test_growing_adds_features_and_value():
    rng = np.random.default_rng(1)
    from sparcipal.covariance import covariance_of

    X = rng.standard_normal((40, 12))
    A = X.T @ X / 40
    cov = covariance_of(A)
    support = grow(cov, np.array([3]), 5, False)
    assert support.size == 5
    assert (np.diff(support) > 0).all()
    block = A[np.ix_(support, support)]
    assert np.linalg.eigvalsh(block)[-1] > A.diagonal().max()


def test_sizes_are_checked():
    with pytest.raises(ValueError, match=r"has 5, more than n_features=3; pass numbers between"):
        sparse_path(covariance=np.eye(3), n_nonzero_coefs=[2, 4, 5])
    with pytest.raises(ValueError, match="n_nonzero_coefs"):
        sparse_path(covariance=np.eye(3), n_nonzero_coefs=[0])
    with pytest.raises(ValueError, match="n_nonzero_coefs is empty"):
        sparse_path(covariance=np.eye(3), n_nonzero_coefs=[])


@pytest.mark.parametrize(("p", "last"), [(3, 3), (40, 30)])
def test_sizes_by_default(p, last):
    path = sparse_path(covariance=np.diag(np.arange(1.0, p + 1)))
    assert path.n_nonzero_coefs.tolist() == list(range(1, last + 1))
    np.testing.assert_allclose(path.values, p)


def test_constant_features_join_when_nothing_else_is_left():
    X = np.zeros((20, 6))
    X[:, [1, 4]] = np.random.default_rng(3).standard_normal((20, 2))
    path = sparse_path(X)
    assert (path.gaps <= 1e-6).all()
    assert all(verify(result, X) for result in path)
    assert path.values[1:] == pytest.approx(path.values[1])


def test_a_path_beyond_the_dense_proof():
    """The core and its certificate are handed from one cardinality to the next."""
    X = np.random.default_rng(4).standard_normal((40, 450)) * np.geomspace(4.0, 0.01, 450)
    path = sparse_path(X, n_nonzero_coefs=[2, 3, 4])
    assert (path.gaps <= 1e-6).all()
    for result in path:
        alone = sparse_pca(X, n_nonzero_coefs=result.settings["n_nonzero_coefs"][0])
        assert result.value == pytest.approx(alone.value, rel=2e-6)
        assert verify(result, X)


def test_an_interrupted_path_is_complete_and_valid():
    rng = np.random.default_rng(5)
    A = np.cov(rng.standard_normal((60, 20)), rowvar=False)
    calls = iter(range(10**6))
    path = sparse_path(
        covariance=A, n_nonzero_coefs=range(2, 7), callback=lambda progress: next(calls) == 12
    )
    assert len(path) == 5
    for result in path:
        alone = sparse_pca(covariance=A, n_nonzero_coefs=result.settings["n_nonzero_coefs"][0])
        assert result.value <= alone.bound * (1 + 1e-12)
        assert result.bound >= alone.value * (1 - 1e-12)
        assert verify(result, covariance=A)
