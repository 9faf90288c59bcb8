"""Power iterations of the exchange search against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.kernels import exchange

pytestmark = pytest.mark.kernels


def covariance(n: int, seed: int = 0) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((3 * n, n))
    return X.T @ X / (3 * n)


def test_leading_is_a_lower_bound_when_iterations_run_out():
    """At the limit the value is still that of a vector on the support: a lower bound."""
    A = covariance(6)
    members = np.array([0, 2, 3, 5])
    block = A[np.ix_(members, members)]
    x = np.full(4, 0.5)
    found = exchange.leading(A, members, False, 2, x, np.empty(4))
    assert found <= x @ block @ x <= np.linalg.eigvalsh(block)[-1] * (1 + 1e-12)
    assert np.linalg.norm(x) == pytest.approx(1.0)
