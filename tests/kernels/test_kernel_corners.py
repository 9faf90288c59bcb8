"""Compiled loops that end early, run out of room or are given nothing: against plain NumPy.

Coverage of kernels is measured with the compiler off; these are small enough for that.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sparcipal.bounds.lowrank import sphere as cones
from sparcipal.bounds.lowrank.sphere import sphere_search
from sparcipal.kernels import dspca, exchange, nspca, parse, sphere, stream
from sparcipal.search.methods import nspca as nspca_search

pytestmark = pytest.mark.kernels


def covariance(n: int, seed: int = 0) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((3 * n, n))
    return X.T @ X / (3 * n)


def best_of_rank_two(V: np.ndarray, s: int) -> float:
    """Every support: the largest eigenvalue of V V' on it."""
    supports = itertools.combinations(range(len(V)), s)
    return max(float(np.linalg.norm(V[list(S)], 2)) ** 2 for S in supports)


# --- cones ---


@pytest.mark.parametrize("limit", [3, 9, 2000])
def test_cones_stop_at_their_limit_with_a_bound(limit):
    V = np.random.default_rng(1).standard_normal((7, 3))
    best = best_of_rank_two(V, 3)
    found = sphere_search(V, 3, max_cones=limit, starts=2, eps=1e-3)
    assert found.value <= best * (1 + 1e-12)
    assert found.bound >= best * (1 - 1e-12)
    assert (found.bound <= best * (1 + 2e-3)) == (limit == 2000)


def directions(p: int, r: int, seed: int) -> np.ndarray:
    """Rows of one length: every direction is about as good, so that much has to be split."""
    V = np.random.default_rng(seed).standard_normal((p, r))
    return V / np.linalg.norm(V, axis=1, keepdims=True)


def test_cones_in_rounds_and_with_more_room(monkeypatch):
    """Rounds end between two splits, and tables that are full are doubled: the tree is the same."""
    V = directions(10, 5, 1)
    whole = sphere_search(V, 2, starts=2, eps=1e-3)
    assert whole.tree.size > 500, "more points than there is room for at first"
    monkeypatch.setattr(cones, "ROUND", 300)
    rounds = sphere_search(V, 2, starts=2, eps=1e-3)
    assert rounds.bound == whole.bound
    assert rounds.value == whole.value
    np.testing.assert_array_equal(rounds.tree, whole.tree)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_midpoint_may_be_better_than_every_start(seed):
    """From the axes alone ascents miss the best rows; splitting cones comes across them."""
    V = directions(12, 3, seed)
    found = sphere_search(V, 2, starts=0, eps=1e-4)
    assert found.value == pytest.approx(best_of_rank_two(V, 2), rel=1e-4)


def test_ascent_from_a_point_that_sees_nothing():
    rows, sizes = np.array([[0.0, 1.0]]), np.ones(1)
    c, spare = np.array([1.0, 0.0]), np.zeros(2)
    best = sphere.ascend(
        rows, sizes, np.zeros(1), 1, False, c, np.empty(0), np.empty(1), np.empty(1, int), spare
    )
    assert best == 0.0


# --- ascents ---


def test_power_iterations_that_are_cut_short():
    """At the limit the value is still that of a vector on the support: a lower bound."""
    A = covariance(6)
    members = np.array([0, 2, 3, 5])
    block = A[np.ix_(members, members)]
    x = np.full(4, 0.5)
    found = exchange.leading(A, members, False, 2, x, np.empty(4))
    assert found <= x @ block @ x <= np.linalg.eigvalsh(block)[-1] * (1 + 1e-12)
    assert np.linalg.norm(x) == pytest.approx(1.0)


def test_entries_of_nothing():
    assert nspca.best_entry(1.0, 0.0, 0.0) == 0.0
    assert nspca.best_entry(1.0, -1.0, -1.0) == 0.0
    assert nspca.best_entry(1.0, 1.0, 0.0) == pytest.approx(1.0)


def test_sweeps_end_where_nothing_moves():
    A = covariance(5)
    start = np.abs(np.random.default_rng(3).standard_normal((5, 2)))
    U, sweeps = nspca_search.ascend(A, start, 2.0, 0.05, 5000)
    assert sweeps < 5000
    again, more = nspca_search.ascend(A, U, 2.0, 0.05, 5000)
    assert more <= 2
    np.testing.assert_allclose(again, U, atol=1e-5)


@pytest.mark.parametrize("passes", [1, 3])
def test_a_box_left_before_it_is_solved(passes):
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


def test_columns_that_are_not_among_their_neighbours():
    """A list that names a column which does not name it back is left alone."""
    neighbours = np.array([[1, 2, 0], [2, 0, 0], [0, 0, 0]], dtype=np.int32)
    degrees = np.array([2, 1, 1])
    dspca.detach(0, neighbours, degrees)
    assert degrees.tolist() == [2, 1, 0]
    assert neighbours[1, 0] == 2


def test_sweeps_that_drop_a_lot_drop_less():
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


# --- sums and text ---


@pytest.mark.parametrize(("indices", "where"), [([0, 1, 3], 2), ([0, -1, 1], 1), ([2, 1, 0], -1)])
def test_indices_outside_the_table(indices, where):
    table = np.zeros((3, 5))
    found = stream.add_entries(np.array(indices), np.ones(3), table, 1.0)
    assert found == where
    assert table[:, 0].sum() == (3.0 if where < 0 else float(where))


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("1 2 3\n", 6),
        (" 1\t2 3 \r\n", 9),
        ("\n", -1),
        ("1 2\n", -2),
        ("1 2 3 4\n", -2),
        ("a\n", -2),
    ],
)
def test_lines_of_three_numbers(line, end):
    text = np.frombuffer(line.encode() + bytes(32), dtype=np.uint8)
    numbers = np.zeros(3, dtype=np.int64)
    assert parse.any_line(text, 0, numbers) == end
    assert end < 0 or numbers.tolist() == [1, 2, 3]
