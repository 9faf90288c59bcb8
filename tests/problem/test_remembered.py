"""A covariance that keeps what it has formed: the same entries, each formed once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import sparcipal.problem.remembered as remembered
from sparcipal.problem.covariance import covariance_of_data
from sparcipal.problem.remembered import RememberedCovariance, remembering


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(remembered, "LEAST", 3)
    monkeypatch.setattr(remembered, "MOST", 8)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_entries_are_those_of_the_covariance_whatever_was_asked_before(kind):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, (30, 20)).astype(float)
    plain = covariance_of_data(kind(X))[0]
    kept = remembering(plain)
    assert isinstance(kept, RememberedCovariance)
    for _ in range(40):
        part = np.sort(rng.choice(20, int(rng.integers(1, 16)), replace=False))
        rows = rng.choice(part.size, int(rng.integers(1, part.size + 1)), replace=False)
        some, cols = kept.restrict(part), rng.choice(part.size, 1)
        whole = plain.submatrix(np.arange(20))[np.ix_(part, part)]
        np.testing.assert_allclose(some.submatrix(rows), whole[np.ix_(rows, rows)], atol=1e-15)
        np.testing.assert_allclose(
            some.submatrix(rows, cols), whole[np.ix_(rows, cols)], atol=1e-15
        )
        np.testing.assert_array_equal(some.diagonal, plain.diagonal[part])
    assert kept.block.features.size <= 8


def test_what_was_formed_is_not_formed_again(monkeypatch):
    kept = remembering(covariance_of_data(np.random.default_rng(0).standard_normal((9, 20)))[0])
    kept.submatrix(np.arange(6))
    monkeypatch.setattr(kept.block, "whole", None)
    monkeypatch.setattr(kept, "inner", None)
    kept.submatrix(np.arange(1, 5))
    kept.submatrix(np.arange(5), np.array([5]))


def test_a_matrix_that_is_formed_stays_as_it_is():
    matrix = covariance_of_data(np.random.default_rng(0).standard_normal((9, 4)))[0].materialise()
    assert remembering(matrix) is matrix
