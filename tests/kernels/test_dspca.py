"""The block coordinate ascent of DSPCA when it is cut short, and its lists of neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.kernels import dspca

pytestmark = pytest.mark.kernels


def covariance(n: int, seed: int = 0) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((3 * n, n))
    return X.T @ X / (3 * n)


@pytest.mark.parametrize("passes", [1, 3])
def test_box_qp_is_consistent_when_it_stops_before_the_optimum(passes):
    """Few passes: u stays in its box, g is Y u of the u left behind, the value no lower than 0."""
    n, j = 6, 2
    X = covariance(n, 4)
    low, high = np.full(n, -0.3), np.full(n, 0.5)
    u, g = np.full(n, 0.4), np.empty(n)
    neighbours = np.array([[k for k in range(n) if k != i] for i in range(n)], dtype=np.int32)
    degrees = np.full(n, n - 1)
    value, looks = dspca.box_qp(X, j, low, high, u, g, neighbours, degrees, passes, 1e-30)
    rest = np.delete(np.arange(n), j)
    assert ((u >= low) & (u <= high))[rest].all()
    np.testing.assert_allclose(g[rest], X[np.ix_(rest, rest)] @ u[rest], atol=1e-12)
    assert value == pytest.approx(u[rest] @ X[np.ix_(rest, rest)] @ u[rest])
    assert looks >= n * (n - 1)


def test_detach_leaves_lists_alone_that_do_not_name_the_column():
    """A list that names a column which does not name it back is left alone."""
    neighbours = np.array([[1, 2, 0], [2, 0, 0], [0, 0, 0]], dtype=np.int32)
    degrees = np.array([2, 1, 1])
    dspca.detach(0, neighbours, degrees)
    assert degrees.tolist() == [2, 1, 0]
    assert neighbours[1, 0] == 2


def test_sweep_keeps_its_lists_of_neighbours_true():
    """A coarse sweep keeps the lists true: entries off the diagonal are those listed."""
    n = 7
    A = covariance(n, 5)
    X, U = np.eye(n) * 0.3, A.copy()
    neighbours, degrees = np.zeros((n, n), dtype=np.int32), np.zeros(n, dtype=np.int64)
    work = np.empty(n), np.empty(n), np.empty(n)
    for spare in (0.5, 0.05, 1e-3, 1e-8):
        dspca.sweep(A, X, U, 0.1, False, 0.05, spare, neighbours, degrees, *work, 3)
        listed = np.zeros((n, n), dtype=bool)
        for i, degree in enumerate(degrees):
            listed[i, neighbours[i, :degree]] = True
        np.testing.assert_array_equal(listed, (X != 0) & ~np.eye(n, dtype=bool))
        np.testing.assert_array_equal(X, X.T)
