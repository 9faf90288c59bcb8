"""From a guess to a support and its value."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.tree.incumbent import Rounder, best_weights


def test_best_weights_take_one_feature_when_all_are_opposed():
    """Off-diagonal entries that are all negative: one feature alone is best."""
    block = np.full((3, 3), -0.4) + np.diag([1.4, 1.5, 1.6])
    value, x = best_weights(block, nonnegative=True)
    assert value == pytest.approx(1.2)
    np.testing.assert_allclose(x, [0.0, 0.0, 1.0])
    zero, _ = best_weights(np.zeros((2, 2)), nonnegative=True)
    assert zero == 0.0
    # a start that the matrix turns away from leaves where it stands
    opposed = np.array([[0.0, -1.0], [-1.0, 0.0]])
    assert best_weights(opposed, nonnegative=True)[0] == 0.0


def test_rounder_finds_a_support_from_a_zero_vector():
    rounder = Rounder(np.diag([2.0, 1.0, 0.5]), 2, np.zeros(3), nonnegative=False)
    assert rounder.from_vector(np.zeros(3)).value == pytest.approx(2.0)
    assert rounder.from_vector(np.array([0.0, 1.0, 0.0])).value == pytest.approx(2.0)
