"""Enumeration as a method."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca

rng = np.random.default_rng(0)


X = rng.standard_normal((30, 8))


def test_enumerate_refuses_overlapping_supports():
    with pytest.raises(ValueError, match="needs supports='disjoint'"):
        sparse_pca(X, n_components=2, n_nonzero_coefs=2, supports="free", method="enumerate")


def test_enumerate_refuses_too_many_supports():
    with pytest.raises(ValueError, match=r"supports; the limit is 1,000,000"):
        sparse_pca(covariance=np.eye(60), n_nonzero_coefs=10, method="enumerate")
