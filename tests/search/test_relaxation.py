"""The DSPCA relaxation: its finish."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.search import finish


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
