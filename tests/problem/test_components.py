"""The best weights on given supports."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca


@pytest.mark.parametrize("seed", range(4))
def test_scores_without_variance_correlate_with_nothing(seed):
    X = np.random.default_rng(seed).normal(size=(10, 3))
    X[:, 1] = X[:, 0]
    result = sparse_pca(
        X, n_components=3, n_nonzero_coefs=3, supports="common", scale=True, certify=False
    )
    assert result.variances[2] < 1e-12  # the matrix has rank two: the third score is rounding
    assert result.largest_correlation < 1e-12
