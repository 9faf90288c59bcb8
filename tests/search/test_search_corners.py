"""Search methods on questions that leave them little to do, and options that they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca
from sparcipal.bounds.duals import greedy_dual
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.monitor import Monitor
from sparcipal.problem.problem import Component, Options, Problem
from sparcipal.problem.sketch import sketch, spectrum
from sparcipal.search import finish
from sparcipal.search.methods import auto, bipartite, spannogram
from sparcipal.search.methods.em import soft_truncate
from sparcipal.search.promises import _overshoot

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 8))
A = X.T @ X / 30


# --- options ---


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("em", {"thresholding": "medium"}, "thresholding must be 'hard' or 'soft', got 'medium'"),
        ("enumerate", {"max_packings": 0}, r"\['max_packings'\]=0 must be at least 1"),
        ("spannogram", {"algorithm": "magic"}, "algorithm must be 'cones' or 'net', got 'magic'"),
        ("spannogram", {"max_cones": 0}, r"\['max_cones'\]=0 must be at least 1"),
        ("spannogram", {"algorithm": "net", "eps": 1e-9}, "random points, the limit is"),
        ("auto", {"effort": -1}, r"\['effort'\]=-1 must be at least 0"),
    ],
)
def test_options_that_are_refused(method, settings, message):
    with pytest.raises(ValueError, match=message):
        sparse_pca(X, n_nonzero_coefs=3, method=method, method_options=settings)


def test_nonnegative_methods_refuse():
    wide = np.random.default_rng(1).standard_normal((4, 3001))
    with pytest.raises(ValueError, match="full matrix of up to 3000 features, got 3001"):
        sparse_pca(wide, n_nonzero_coefs=2, method="nspca", nonnegative=True)
    with pytest.raises(ValueError, match=r"coupling=0\.0 must be positive"):
        sparse_pca(
            X, n_nonzero_coefs=2, method="nspca", nonnegative=True, method_options={"coupling": 0.0}
        )


def test_enumeration_is_for_supports_that_do_not_overlap():
    with pytest.raises(ValueError, match="needs supports='disjoint'"):
        sparse_pca(X, n_components=2, n_nonzero_coefs=2, supports="free", method="enumerate")


# --- nothing left to explain ---


OVERLAPPING = ("auto", "threshold", "tpower", "em", "gpower", "greedy", "dspca", "spannogram")


@pytest.mark.parametrize("method", OVERLAPPING)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_more_components_than_directions(method, nonnegative):
    """Rank one, several components: the first explains all, and the others are still components."""
    x = np.array([0.6, 2.0, 1.1, 0.9, 1.7, 0.7])
    result = sparse_pca(
        covariance=np.outer(x, x),
        n_components=2,
        n_nonzero_coefs=3,
        method=method,
        nonnegative=nonnegative,
        supports="free",
        certify=False,
        rank=2 if method == "spannogram" else None,
    )
    assert result.variances[0] == pytest.approx(2.0**2 + 1.7**2 + 1.1**2)
    assert abs(result.variances[1]) < 1e-9
    assert min(s.size for s in result.supports) >= 1


def test_a_diagonal_covariance_has_nothing_to_clip():
    matrix = np.diag([3.0, 2.0, 1.0, 0.5])
    result = sparse_pca(covariance=matrix, n_nonzero_coefs=2, method="spannogram", rank=2)
    assert result.value == pytest.approx(3.0)
    assert result.bound >= 3.0


def test_promises_about_nothing():
    cov = covariance_of(np.diag([2.0, 1.0]))
    pairs = spectrum(cov, 2)
    assert spannogram.guarantees(pairs, 1, cov, 1, False)
    nothing = covariance_of(np.zeros((2, 2)))
    assert spannogram.guarantees(spectrum(nothing, 2), 1, nothing, 1, False) == {}


def test_what_a_sketch_adds():
    """lambda_max(V V' - A): nothing for eigenvectors, something for random projections."""
    cov = covariance_of(A)
    assert _overshoot(cov, sketch(cov, 2)) == 0.0
    for kind in ("gaussian", "randomized"):
        low = sketch(cov, 2, kind=kind, seed=3)
        exact = max(0.0, float(np.linalg.eigvalsh(low.V @ low.V.T - cov.dense())[-1]))
        assert _overshoot(cov, low) == pytest.approx(exact, abs=1e-12)
    wide = covariance_of_data(rng.standard_normal((4, 600)))[0]
    assert _overshoot(wide, sketch(wide, 2, kind="gaussian")) == np.inf


# --- small pieces ---


def test_soft_thresholds_that_keep_everything():
    Y = np.array([[3.0], [-1.0], [2.0]])
    np.testing.assert_allclose(soft_truncate(Y, 3, False), Y / np.linalg.norm(Y))
    cut = soft_truncate(Y, 2, False)
    np.testing.assert_allclose(cut[:, 0] / np.linalg.norm(cut), [2 / 5**0.5, 0.0, 1 / 5**0.5])


def test_a_component_without_features_gets_one():
    cov = covariance_of(np.diag([3.0, 2.0, 1.0]))
    made = auto._without_empty([np.array([0, 2]), np.array([], dtype=int)], cov)
    assert [part.tolist() for part in made] == [[0], [2]]


@pytest.mark.parametrize("nonnegative", [False, True])
def test_features_outside_the_working_set_come_in(nonnegative, monkeypatch):
    """A working set of few features is widened until no exchange promises a gain."""
    monkeypatch.setattr(auto, "ALL_FEATURES", 20)
    monkeypatch.setattr(auto, "WORKING_SET", 12)
    table = np.random.default_rng(4).standard_normal((30, 30))
    table[:, 20:24] += 1.2 * np.random.default_rng(5).standard_normal((30, 1))
    whole = {"n_components": 2, "n_nonzero_coefs": 3, "nonnegative": nonnegative, "certify": False}
    whole["method_options"] = {"effort": 1}
    narrow = sparse_pca(table, **whole)
    monkeypatch.undo()
    assert narrow.value >= 0.97 * sparse_pca(table, **whole).value


def test_a_total_of_nonzeros_in_a_working_set(monkeypatch):
    monkeypatch.setattr(auto, "ALL_FEATURES", 20)
    monkeypatch.setattr(auto, "WORKING_SET", 10)
    table = np.random.default_rng(6).standard_normal((30, 26))
    few = sparse_pca(table, n_components=2, n_nonzero_coefs={"total": 5}, certify=False)
    assert sum(s.size for s in few.supports) <= 5
    monkeypatch.undo()
    full = sparse_pca(table, n_components=2, n_nonzero_coefs={"total": 5}, certify=False)
    assert few.value >= 0.9 * full.value


def test_orthogonal_components_on_one_support():
    """Two features have room for two orthogonal components, not for a third one."""
    matrix = np.diag([5.0, 4.0, 0.1, 0.05])
    result = sparse_pca(
        covariance=matrix,
        n_components=3,
        n_nonzero_coefs=2,
        supports="free",
        method="auto",
        method_options={"orthogonal": True},
        certify=False,
    )
    W = result.components
    np.testing.assert_allclose(W @ W.T, np.eye(3), atol=1e-9)
    assert result.value == pytest.approx(9.1)


def test_a_search_that_is_stopped_returns_what_it_has():
    stopped = Monitor(callback=lambda progress: True)
    stopped.update("search")
    options = Options(monitor=stopped)
    problem = Problem(covariance_of(A), (3, 3), disjoint=False)
    found = auto.run(problem, options, orthogonal=True)
    assert len(found.components) == 2


def test_a_feature_without_variance_gives_no_dual():
    """There is no direction to test where x'Ax is zero."""
    cov = covariance_of_data(np.array([[1.0, 5.0], [-1.0, 5.0]]))[0]
    assert greedy_dual(cov, Component(np.array([1]), np.ones(1)), 1) is None
    bound = greedy_dual(cov, Component(np.array([0]), np.ones(1)), 1)
    assert bound is None or bound.value * cov.unit >= 1.0


@pytest.mark.parametrize("nonnegative", [False, True])
def test_relaxations_of_rank_two_are_purified(nonnegative):
    """A mixture of two directions is no worse than the better one of the plane."""
    matrix = np.array([[2.0, 1.9, 0.0], [1.9, 2.0, 0.0], [0.0, 0.0, 3.5]])
    penalty = 0.1
    Z = np.zeros((3, 3))
    Z[:2, :2] = 0.25
    Z[2, 2] = 0.5
    start = finish.objective(matrix, penalty, Z)
    found, value = finish.purified(matrix, penalty, nonnegative, Z, start)
    assert value >= start
    assert value == pytest.approx(finish.objective(matrix, penalty, found))
    assert np.trace(found) == pytest.approx(1.0)
    assert value == pytest.approx(3.9 - 2 * penalty, rel=1e-3)


def test_pools_forget_the_worst():
    pool = bipartite.Pool(None)
    for i in range(5 * bipartite.KEPT):
        pool.keep(float(i), [np.array([i])])
    values = sorted(value for value, _ in pool.entries.values())
    assert values[-1] == pool.value == 5 * bipartite.KEPT - 1
    assert len(values) <= 4 * bipartite.KEPT
    assert values[0] > 0


def test_deflated_variances_that_are_rounding():
    """Everything is explained after one component: the next relaxation has nothing to solve."""
    x = np.array([0.6, 0.8, 0.0])
    result = sparse_pca(
        covariance=np.outer(x, x) * 5,
        n_components=2,
        n_nonzero_coefs=2,
        method="dspca",
        supports="free",
        certify=False,
    )
    assert result.variances[0] == pytest.approx(5.0)
    assert abs(result.variances[1]) < 1e-9
