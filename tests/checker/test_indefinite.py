"""Given matrices that are not quite, or not at all, positive semidefinite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.cheap import eigenvalues
from sparcipal.checker.covariance import Question, covariance_of
from sparcipal.checker.family import Case
from sparcipal.checker.records import Eigenvalues, Problem, Twins
from sparcipal.checker.tree import Prover
from sparcipal.problem.result import Status
from tests.support.brute import best_value

ARITHMETICS = ["float"]
try:
    import flint  # noqa: F401

    ARITHMETICS.append("exact")
except ImportError:
    pass


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_matrix_that_the_solver_refuses_is_refused(arithmetic, dtype):
    good = np.diag([5.0, 1.0, 0.0])
    lacking = float(np.sqrt(np.finfo(dtype).eps)) * float(np.linalg.norm(good))
    result = sparse_pca(covariance=good, n_nonzero_coefs=1)
    assert verify(result, covariance=good, arithmetic=arithmetic)
    wrong = np.diag([5.0, 1.0, -1.5 * lacking]).astype(dtype)
    with pytest.raises(ValueError, match="positive semidefinite"):
        sparse_pca(covariance=wrong, n_nonzero_coefs=1)
    forged = replace(result, total_variance=float(np.trace(wrong)))
    verdict = verify(forged, covariance=wrong, arithmetic=arithmetic)
    assert verdict.verdict == "refused"
    assert "positive semidefinite" in verdict.reason


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("lacking", [1e-9, 1e-10, 1e-12])
@pytest.mark.parametrize("supports", ["disjoint", "free"])
def test_zero_is_more_than_a_negative_variance(lacking, supports, arithmetic):
    A = np.diag([5.0, -lacking, 0.0])
    asked = {"n_components": 2, "n_nonzero_coefs": 1, "supports": supports}
    result = sparse_pca(covariance=A, **asked, method_options={"effort": 0})
    assert result.value >= 5.0
    assert result.bound >= 5.0
    assert verify(result, covariance=A, arithmetic=arithmetic)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_zeros_are_not_left_out_beside_a_negative_variance(arithmetic):
    A = np.diag([5.0, -1e-9, 0.0])
    result = sparse_pca(covariance=A, n_components=2, n_nonzero_coefs=1)
    bounds = tuple(
        replace(b, data={**b.data, "kept": np.array([0, 1])}) for b in result.certificate.bounds
    )
    forged = replace(result, certificate=replace(result.certificate, bounds=bounds))
    verdict = verify(forged, covariance=A, arithmetic=arithmetic)
    assert verdict.verdict == "refused"
    assert "negative variance" in verdict.reason


def test_eigenvalues_of_overlapping_supports_count_what_is_lacking():
    A = np.array([[1.0, 2.0], [2.0, 1.0]])  # one vector explains 3, the trace is 2
    cov = covariance_of(A, 1.0)
    free = Question((2, 2), False, False, 0.0)
    assert eigenvalues(Eigenvalues(), Case(cov, free, Float(), Budget())) >= 3.0


def test_twins_of_a_negative_variance_prove_nothing():
    A = -np.array([[4.0, 2.0], [2.0, 1.0]])
    twins = Twins(features=np.array([1]), leaders=np.array([0]), factors=np.array([0.5]))
    problem = Problem(s=1, nonnegative=False, bound=-3.0, unit=1.0, twins=twins)
    with pytest.raises(Refused, match="negative variance"):
        Prover(problem, A, Float())


def test_a_value_above_its_rounding_is_refused_where_variances_vanish():
    """Two features without variance, whose covariance is left by rounding: a length just above one
    makes the value too large, and no margin of zero hides that."""
    A = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1e-9], [0.0, 1e-9, 0.0]])
    result = sparse_pca(covariance=A, n_nonzero_coefs=2)
    long = np.full(2, np.sqrt(0.5)) * (1 + 8 * 2.0**-52)
    value = float(long @ A[1:, 1:] @ long)
    assert value > 1e-9
    claim = replace(result.certificate, value=value, rounding=2e-290, status=Status.GAP)
    forged = replace(
        result,
        supports=(np.array([1, 2]),),
        weights=(long,),
        variances=np.array([value]),
        certificate=claim,
    )
    verdict = verify(forged, covariance=A)
    assert verdict.verdict == "refused"
    assert "rounding margin" in verdict.reason


@pytest.mark.parametrize("digits", [None, 9])
def test_verify_accepts_results_of_slightly_indefinite_matrices(digits):
    for seed in range(4):
        X = np.random.default_rng(seed).standard_normal((5, 8))
        C = np.cov(X.T).astype(np.float32) if digits is None else np.round(np.corrcoef(X.T), digits)
        for k in (1, 2):
            result = sparse_pca(covariance=C, n_components=k, n_nonzero_coefs=3)
            verdict = verify(result, covariance=C)
            assert verdict, verdict.reason
            assert result.bound >= best_value(np.asarray(C, dtype=float), (3,) * k)
