"""Supports that grow out of smaller ones."""

from __future__ import annotations

import numpy as np

from sparcipal.problem.covariance import covariance_of
from sparcipal.search.warm import grow


def test_growing_adds_features_and_value():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 12))
    A = X.T @ X / 40
    cov = covariance_of(A)
    support = grow(cov, np.array([3]), 5, False)
    assert support.size == 5
    assert (np.diff(support) > 0).all()
    block = A[np.ix_(support, support)]
    assert np.linalg.eigvalsh(block)[-1] > A.diagonal().max()
