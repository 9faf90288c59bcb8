"""Supports on which no positive vector can be a solution."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.tree.positive import no_interior_solution, nonnegative_bound
from sparcipal.checker.budget import Budget
from sparcipal.checker.signs import none_above
from sparcipal.problem.nonnegative import nonnegative_leading
from tests.support.brute import best_value
from tests.support.replay import FLOAT


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


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_of_a_support_is_its_nonnegative_optimum(seed):
    """With a wrong vector it is larger, and never less; the checker proves the same and no less."""
    rng = np.random.default_rng(seed)
    m = 2 + seed % 7
    X = rng.standard_normal((m + 2 if seed % 2 else m // 2 + 1, m))
    X[:, -1] = -X[:, 0] if seed % 3 == 0 else X[:, -1]
    A = X.T @ X / m if seed % 4 else X.T @ X - 0.1 * np.eye(m)
    scale, best = float(np.abs(A).max()), best_value(A, (m,), True)
    x = nonnegative_leading(A)
    bound = nonnegative_bound(A, x, scale)
    assert best <= bound <= best + 1e-8 * scale
    assert none_above(A, x, bound, FLOAT, Budget())
    for vector in (x, np.eye(m)[-1], np.full(m, m**-0.5)):
        assert not none_above(A, vector, best - 1e-9 * scale, FLOAT, Budget())
        assert nonnegative_bound(A, vector, scale) >= best
