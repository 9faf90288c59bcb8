"""Supports on which no positive vector can be a solution."""

from __future__ import annotations

import numpy as np

from sparcipal.bounds.tree.positive import no_interior_solution


def test_no_interior_solution_is_claimed_for_eigenvectors_that_stand_apart_only():
    """A plane of eigenvectors holds positive ones; which were computed is chance."""
    turned = np.diag([2.0, 2.0, 1.0])
    assert not no_interior_solution(turned, 1.5)
    mixed = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 0.1]])
    assert not no_interior_solution(mixed, 0.5), "(1, 1, 0) is not of both signs"
    apart = np.array([[2.0, -1.0, -0.3], [-1.0, 2.0, -0.2], [-0.3, -0.2, 0.1]])
    assert no_interior_solution(apart, 2.5)


def test_no_interior_solution_is_true_only_where_no_positive_eigenvector_is_above_t():
    """True only where no x > 0 is an eigenvector above t."""
    from sparcipal.bounds.tree import positive

    rule = positive.no_interior_solution
    signed = np.array([[2.0, -1.5], [-1.5, 2.0]])  # leading eigenvector (1, -1)
    assert rule(signed, 1.0)
    assert not rule(-signed + 4 * np.eye(2), 1.0), "(1, 1) leads"
    assert not rule(signed, 9.0), "nothing is above t"
    assert not rule(np.eye(3), 0.5), "all are above t"
    ones = np.ones((3, 3))
    assert not rule(ones, 1.0)
