"""Dual bounds of the greedy method and of DSPCA."""

from __future__ import annotations

import numpy as np

from sparcipal.bounds.duals import greedy_dual
from sparcipal.problem.covariance import covariance_of_data
from sparcipal.problem.problem import Component


def test_greedy_dual_is_none_without_variance():
    """There is no direction to test where x'Ax is zero."""
    cov = covariance_of_data(np.array([[1.0, 5.0], [-1.0, 5.0]]))[0]
    assert greedy_dual(cov, Component(np.array([1]), np.ones(1)), 1) is None
    bound = greedy_dual(cov, Component(np.array([0]), np.ones(1)), 1)
    assert bound is None or bound.value * cov.unit >= 1.0
