"""The DSPCA relaxation: its finish."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca
from sparcipal.search import finish
from sparcipal.search.relaxation import ascend


@pytest.mark.parametrize("nonnegative", [False, True])
def test_purified_is_no_worse_than_a_mixture_of_two_directions(nonnegative):
    """A mixture of two directions is no worse than the better one of the plane."""
    matrix = np.array([[2.0, 1.9, 0.0], [1.9, 2.0, 0.0], [0.0, 0.0, 3.5]])
    penalty = 0.1
    Z = np.zeros((3, 3))
    Z[:2, :2] = 0.25
    Z[2, 2] = 0.5
    start = finish.objective(matrix, penalty, Z)
    found, value = finish.purified(matrix, penalty, nonnegative, Z, start)
    assert value >= start
    assert value == pytest.approx(finish.objective(matrix, penalty, found))
    assert np.trace(found) == pytest.approx(1.0)
    assert value == pytest.approx(3.9 - 2 * penalty, rel=1e-3)


def test_relaxation_holds_for_variances_whose_squares_underflow():
    A = np.array([[2.0, 1.0, 0.1], [1.0, 1.5, 0.3], [0.1, 0.3, 1.0]])
    small = 2.0**-900
    plain, found = ascend(A, 0.25), ascend(A * small, 0.25 * small)
    assert found.value == pytest.approx(plain.value * small, rel=1e-3, abs=0.0)
    assert found.bound == pytest.approx(plain.bound * small, rel=1e-3, abs=0.0)
    assert found.value <= found.bound


def test_dspca_finds_tiny_features_beside_a_large_constant_column():
    X = np.random.default_rng(3).standard_normal((8, 3)) * 1e-130
    X[:, 0] = 7.25
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=1, method="dspca")
    assert sorted(int(s[0]) for s in result.supports) == [1, 2]
