"""Enumeration of all supports, as a bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sparcipal import Status, sparse_pca, verify
from sparcipal.bounds import enumeration as exhaustive
from sparcipal.checker import enumeration as checked
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance_of
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.problem import Options, Problem
from tests.support import oracle
from tests.support.margins import matrices
from tests.support.replay import FLOAT, recheck


@pytest.mark.parametrize("nonnegative", [False, True])
def test_enumeration_holds_in_fractions(nonnegative):
    for A, rng in matrices(25, p=5):
        sizes = ((2,), (3,), (2, 2), (1, 3), (1, 2, 2), (1, 1, 1))[int(rng.integers(6))]
        A = A * rng.choice([-1.0, 1.0], 5)[:, None]
        A = A * np.sign(np.diagonal(A))[None, :] if not (np.diagonal(A) > 0).all() else A
        cov = covariance_of(A)
        problem = Problem(cov, sizes, nonnegative)
        _, bound, _ = exhaustive.exhaust(problem, Options(), 10**6)
        exact = oracle.exact_matrix(A / cov.unit)
        best = oracle.Oracle(exact, nonnegative).optimum(sizes, None)
        question = Question(sizes, nonnegative, True, 0.0)
        again = recheck("enumeration", {}, checked_covariance_of(A, cov.unit), question)
        assert best <= Fraction(again) <= Fraction(bound.value)
        assert bound.value <= float(best) * (1 + 1e-11)
        if len(sizes) == 1 and not nonnegative:
            assert (
                oracle.worst_support(oracle.Oracle(exact, False), sizes[0], Fraction(again)) is None
            )


def test_quotients_of_vectors_of_both_signs_are_rounded_down():
    """A vector of both signs that is no eigenvector: what it lacks is added."""
    A = np.array([[2.0, -0.5], [-0.5, 2.0]])
    blocks, vector = A[None], np.array([[0.8, -0.6]])
    exact = Fraction(2) + Fraction(48, 100)
    for quotient in (
        exhaustive._quotients(blocks, vector),
        checked._rayleigh(blocks, vector, FLOAT),
    ):
        assert float(exact) * (1 - 1e-13) <= quotient[0]
        assert Fraction(float(quotient[0])) <= exact


def test_enumeration_ends_when_time_or_packings_run_out():
    many = np.random.default_rng(0).standard_normal((200, 30))
    result = sparse_pca(many, n_components=5, n_nonzero_coefs=5, time_limit=0.2)
    assert result.status is Status.TIME_LIMIT
    assert verify(result, many)
    noise = many[:, :16]
    few = {"max_packings": 10}
    stopped = sparse_pca(
        noise,
        n_components=4,
        n_nonzero_coefs=4,
        method="enumerate",
        method_options=few,
        certify=False,
    )
    assert "may not be optimal" in stopped.note
    assert stopped.certificate.proved_by != "enumeration"


def test_components_of_one_kind_are_packed_without_many_looks():
    """What is left of a packing is worth no more than the support that was taken last."""
    A = np.eye(12)
    for i, strength in enumerate(np.linspace(0.9, 0.3, 6)):
        A[2 * i, 2 * i + 1] = A[2 * i + 1, 2 * i] = strength
    problem = Problem(covariance_of(A), (2,) * 6)
    components, bound, looked = exhaustive.exhaust(problem, Options(), 10**6)
    assert [c.support.tolist() for c in components] == [[i, i + 1] for i in range(0, 12, 2)]
    assert bound is not None
    assert looked < 20
