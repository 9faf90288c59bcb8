"""Bounds for adjusted, orthogonal and common components: what they need to hold."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from sparcipal import Result, sparse_pca, verify
from sparcipal.bounds.adjusted.optimise import Around
from sparcipal.bounds.kyfan import JointQuestion, kyfan_bound
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.problem import Component, Problem
from sparcipal.problem.result import Status


def ky_fan(M: np.ndarray, k: int) -> float:
    return float(np.sort(np.linalg.eigvals(M).real)[-k:].sum())


def test_sums_of_eigenvalues_need_a_semidefinite_correction():
    """With an indefinite Z, k nu + tr Z is no bound of the k largest eigenvalues."""
    M, nu, Z = np.diag([0.0, 0.0, 3.0]), 1.0, np.diag([-1.0, -1.0, 2.0])
    assert np.linalg.eigvalsh(nu * np.eye(3) + Z - M)[0] >= 0
    assert 1 * nu + np.trace(Z) < ky_fan(M, 1)


def test_prices_do_not_hold_for_features_that_are_used_twice():
    """Two orthogonal components on the same two features pay once what prices count twice."""
    A, price = np.array([[1.0, 0.5], [0.5, 1.0]]), np.full(2, 0.5)
    worth = max(
        np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] - price[list(S)].sum()
        for size in (1, 2)
        for S in combinations(range(2), size)
    )
    # the second eigenvector is worth 0.5 - 1 at these prices
    assert price.sum() + worth + max(0.5 - price.sum(), 0.0) < np.trace(A)
    result = sparse_pca(covariance=A, n_components=2, n_nonzero_coefs=2, supports="orthogonal")
    assert result.value == pytest.approx(2.0)


@pytest.mark.parametrize("s", [1, 2])
def test_a_common_set_has_no_more_components_than_features(s):
    A = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.1
    asked = {"n_components": 3, "n_nonzero_coefs": s, "supports": "common"}
    with pytest.warns(UserWarning, match=f"{s} of n_components=3"):
        result = sparse_pca(covariance=A, **asked)
    assert len(result.supports) == s
    assert f"{s} of n_components=3" in str(result)
    sets = combinations(range(4), s)
    best = max(np.trace(A[np.ix_(T, T)]) for T in sets)
    assert result.value == pytest.approx(best)
    assert result.bound >= best
    assert verify(result, covariance=A)
    assert verify(Result.from_json(result.to_json()), covariance=A)


@pytest.mark.parametrize("seed", range(3))
def test_no_common_set_exceeds_the_bound(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3 if seed == 1 else 30, 8)) @ rng.standard_normal((8, 8))
    A = np.cov(X.T, bias=True)
    result = sparse_pca(covariance=A, n_components=2, n_nonzero_coefs=3, supports="common")
    best = max(np.linalg.eigvalsh(A[np.ix_(T, T)])[-2:].sum() for T in combinations(range(8), 3))
    assert result.value == pytest.approx(best, rel=1e-9)
    assert result.status.value == "optimal"
    assert verify(result, covariance=A).verdict == "proved"


def test_components_of_one_factor_are_told_apart_by_adjusted_variance():
    X = scale(load_breast_cancer().data)
    asked = {"n_components": 3, "n_nonzero_coefs": 5}
    plain = sparse_pca(X, certify=False, **asked)
    assert plain.largest_correlation > 0.8
    assert "objective='adjusted'" in str(plain)
    other = sparse_pca(X, objective="adjusted", **asked)
    assert other.value > 10.83
    assert other.gap < 0.055
    assert other.largest_correlation < 0.6
    assert other.adjusted_variance == pytest.approx(other.value)
    assert np.unique(np.concatenate(other.supports)).size == 15
    assert verify(other, X).verdict == "proved"


@pytest.mark.parametrize("seed", range(4))
def test_without_prices_the_bound_holds_for_orthogonal_components_that_overlap(seed):
    """Prices are for supports that share nothing; a split without them serves all."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 7)) @ (np.eye(7) + 0.5 * rng.standard_normal((7, 7)))
    own = covariance_of_data(X)[0]
    supports, value = [np.arange(3), np.arange(3, 6)], 0.5 * float(own.diagonal.sum())
    question = JointQuestion(own, (3, 3), supports, value, overlapping=True)
    bound = kyfan_bound(question, effort="short")
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=3, supports="orthogonal")
    unit = result.certificate.unit
    assert bound.value >= result.value / unit * (1 - 1e-12)
    replaced = replace(bound, value=bound.value * unit, margin=bound.margin * unit)
    told = replace(result.certificate, bounds=(replaced,), bound=replaced.value)
    status = Status.GAP if told.bound > told.value * (1 + told.tol) else Status.OPTIMAL
    honest = replace(result, certificate=replace(told, status=status))
    assert verify(honest, X)
    priced = replace(replaced, data={**bound.data, "price": np.full(7, 1e-3, np.float32)})
    forged = replace(honest, certificate=replace(honest.certificate, bounds=(priced,)))
    assert "prices" in verify(forged, X).reason


def test_points_of_one_support_grow_by_one_point_in_a_round():
    """They doubled, so that a proof of six features did not end."""
    F, axes, every = np.random.default_rng(0).standard_normal((6, 4)), np.eye(4), np.arange(4)
    problem = Problem(covariance_of(F.T @ F), (4, 4), supports="free")
    around = Around(problem, [Component(every, axes[0]), Component(every, axes[1])])
    assert around.grown(around.fitted())
    assert len(around.points) == 3
