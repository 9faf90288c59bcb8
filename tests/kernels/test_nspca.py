"""Sweeps of NSPCA: entries at zero, and an end where nothing moves."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.kernels import nspca
from sparcipal.search.methods import nspca as nspca_search

pytestmark = pytest.mark.kernels


def covariance(n: int, seed: int = 0) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((3 * n, n))
    return X.T @ X / (3 * n)


def test_best_entry_is_zero_where_no_positive_entry_helps():
    assert nspca.best_entry(1.0, 0.0, 0.0) == 0.0
    assert nspca.best_entry(1.0, -1.0, -1.0) == 0.0
    assert nspca.best_entry(1.0, 1.0, 0.0) == pytest.approx(1.0)


def test_ascend_ends_at_a_fixed_point():
    A = covariance(5)
    start = np.abs(np.random.default_rng(3).standard_normal((5, 2)))
    U, sweeps = nspca_search.ascend(A, start, 2.0, 0.05, 5000)
    assert sweeps < 5000
    again, more = nspca_search.ascend(A, U, 2.0, 0.05, 5000)
    assert more <= 2
    np.testing.assert_allclose(again, U, atol=1e-5)
