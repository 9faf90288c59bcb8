"""The checker's own covariance: entries, errors, and data it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from sparcipal.checker import covariance as checked

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
    for table in (X[0], X * np.nan, np.full((20, 5), "a")):
        with pytest.raises(ValueError, match="two-dimensional table of finite numbers"):
            verify(result, table)
    with pytest.raises(ValueError, match="square matrix of finite numbers"):
        checked.covariance_of(np.ones((2, 3)), 1.0)
