"""The arithmetic of a replay: what it proves is true, with its margins in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.margins import LESS, E, matrices
from tests.support.replay import FLOAT


@pytest.mark.usefixtures("coarse")
def test_ky_fan_keeps_its_margins(factored):
    for A, _ in matrices(4):
        for k in (1, 2, 3):
            for M in (A, A - 2 * np.eye(6)):
                w, Q = np.linalg.eigh(M)
                nu, lifted = w[6 - k], np.maximum(w - w[6 - k], 0.0)
                claim = FLOAT.ky_fan(M, k)
                size = np.abs(np.diagonal(M)).sum() + lifted.sum() + 7 * abs(nu)
                level = factored[-1][0, 0] + M[0, 0] - ((Q * lifted) @ Q.T)[0, 0]
                spread = 6 * nu + lifted.sum() - np.trace(M)
                delta = 2 * 8 * E * spread + 2 * (k + 4) * E * size
                assert level > nu
                due = k * (level + delta) + lifted.sum() * (1 + 6 * E)
                assert claim >= due - 1e-9 * abs(due)


@pytest.mark.usefixtures("coarse")
def test_ky_fan_adds_rows_outside_with_their_rounding(factored):
    A = np.diag([3.0, 2.0, 1.0])
    rows = np.array([2.0**20, 2.0**19, 0.0, 0.0])
    claim = FLOAT.ky_fan(A, 3, rows)
    assert claim >= (rows.sum() - 6.0) * (1 + 4 * E) + 9.0


@pytest.mark.usefixtures("coarse")
def test_ky_fan_with_rows_outside_keeps_its_margins(factored):
    A, _ = next(iter(matrices(1)))
    w = np.linalg.eigvalsh(A)
    rows = np.array([w[-1] + 3.0, w[-1] + 2.0, w[-2], 0.0])
    alone = FLOAT.ky_fan(A, 3)
    claim = FLOAT.ky_fan(A, 3, rows)
    assert claim >= (rows[:2].sum() + w[-1]) * LESS + 4 * E * (5.0)
    assert alone >= w[-3:].sum() + 3 * 2 * 13 * E * w[-1]
    bare = FLOAT.ky_fan(A, 1)
    level = factored[-1][0, 0] + A[0, 0]
    least = 2 * 8 * E * (6 * w[-1] - np.trace(A)) + 2 * 5 * E * (np.trace(A) + 7 * w[-1])
    assert bare - level >= least * LESS


@pytest.mark.usefixtures("coarse")
def test_below_factors_less_than_the_matrix_by_its_margin(factored):
    for A, _ in matrices(6):
        for t in (3.0, 8.0):
            FLOAT.below(A, t)
            shifted = t * np.eye(6) - A
            due = 2 * 8 * E * (np.trace(shifted) + t)
            assert (np.diagonal(shifted - factored[-1]) >= due * LESS).all()


@pytest.mark.usefixtures("coarse")
def test_top_sums_are_rounded_up():
    values = np.array([[0.5, -1.0, 0.25, 0.125], [-2.0, -1.0, 4.0, -8.0]])
    for q, plain, size in (
        (1, [0.5, 4.0], [0.5, 4.0]),
        (2, [0.75, 3.0], [0.75, 5.0]),
        (9, [-0.125, -7.0], [1.875, 15.0]),
    ):
        due = np.array(plain) + (q + 8) * E * np.array(size)
        assert FLOAT.top_sum(values, q) == pytest.approx(due, rel=1e-12)
    assert FLOAT.top_sum(values, 0).tolist() == [0.0, 0.0]
    assert FLOAT.top(values, 2).tolist() == [[0.5, 0.25], [4.0, -1.0]]


def test_matrices_that_are_no_numbers_prove_nothing():
    for wrong in (np.nan, np.inf):
        M = np.diag([1.0, wrong])
        with np.errstate(all="ignore"):
            assert not FLOAT.psd(M)
            assert FLOAT.ky_fan(M, 1) == np.inf
    assert not FLOAT.psd(np.diag([1.0, 0.0]))
    assert FLOAT.psd(np.diag([1.0, 1e-3]))


def test_ky_fan_is_right_for_equal_eigenvalues_and_for_no_matrix():
    """LAPACK's driver for a part of the spectrum finds nothing in this one."""
    M = np.full((8, 8), 1.1159680298078456e-05)
    np.fill_diagonal(M, 0.00013418366711870355)
    largest = 0.00013418366711870355 + 7 * 1.1159680298078456e-05
    equal = 0.00013418366711870355 - 1.1159680298078456e-05
    assert FLOAT.ky_fan(M, 2) == pytest.approx(largest + equal, rel=1e-12)
    assert FLOAT.ky_fan(np.zeros((0, 0)), 1, np.array([2.0, 1.0])) == pytest.approx(2.0)


def test_ky_fan_of_next_to_nothing_is_proved():
    """Zeros, and denormal entries whose margin underflows."""
    for M in (np.zeros((2, 2)), np.array([[0.0, 3e-311], [3e-311, 0.0]])):
        assert 0.0 <= FLOAT.ky_fan(M, 1) < 1e-100
        assert FLOAT.ky_fan(M, 1, np.array([2.0])) == pytest.approx(2.0)
