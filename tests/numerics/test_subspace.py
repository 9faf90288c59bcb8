"""Leading eigenpairs from those of a matrix before it: as good as LAPACK's for the optimiser."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.numerics.subspace import LeadingSpace


def smoothed(w, width):
    return w[-1] + width * np.log(np.exp((w - w[-1]) / width).sum())


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("jump", [0.0, 0.003, 1.0, 1e7])
def test_smoothed_largest_eigenvalue_follows_a_matrix_that_changes(scale, jump):
    rng = np.random.default_rng(0)
    n, width = 200, 0.02 * scale
    base = rng.standard_normal((n, n))
    matrix = scale * (base + base.T) / np.sqrt(8 * n)
    space, count = LeadingSpace(), 20
    for _ in range(6):
        w, q = space.pairs(matrix, count, width)
        true = np.linalg.eigvalsh(matrix)
        assert w.shape == (count,)
        assert q.shape == (n, count)
        np.testing.assert_allclose(q.T @ q, np.eye(count), atol=1e-5)
        assert smoothed(w, width) == pytest.approx(smoothed(true[-count:], width), rel=1e-4)
        move = rng.standard_normal((n, n))
        matrix = matrix + jump * scale * (move + move.T) / np.sqrt(8 * n)
        count += 3


def test_leading_pairs_are_right_for_half_of_the_spectrum_and_equal_eigenvalues():
    space = LeadingSpace()
    for _ in range(3):
        w, q = space.pairs(np.eye(160), 12, 1e-3)
        np.testing.assert_allclose(w, 1.0)
    w, q = space.pairs(np.diag(np.arange(160.0)), 80, 1.0)
    np.testing.assert_allclose(w, np.arange(80.0, 160.0), rtol=1e-5)
    assert q.dtype == np.float64
