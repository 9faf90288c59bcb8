"""SPCABiPart: its matchings, its net, its guarantee, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.problem import Options, Problem
from sparcipal.problem.sketch import sketch
from sparcipal.search.assign import assign, dual_bound
from sparcipal.search.methods import bipartite
from sparcipal.search.promises import _overshoot
from tests.support.brute import best_value


def low_rank(rng: np.random.Generator, p: int, r: int) -> np.ndarray:
    V = rng.standard_normal((p, r)) * rng.uniform(0.2, 1.5, (p, 1))
    return V @ V.T


def total(A: np.ndarray, found: object) -> float:
    return sum(c.weights @ A[np.ix_(c.support, c.support)] @ c.weights for c in found.components)


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("eps", [0.3, 0.9])
def test_net_covers_the_sphere(rank: int, eps: float) -> None:
    net = bipartite.sphere_net(rank, eps, nonnegative=True)
    assert net.shape[0] == bipartite.net_size(rank, (1,), eps, True)
    points = np.random.default_rng(0).standard_normal((400, rank))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    nearest = np.sqrt(np.maximum(2.0 - 2.0 * (points @ net.T).max(axis=1), 0.0))
    assert nearest.max() <= eps / 2
    half = bipartite.sphere_net(rank, eps, nonnegative=False)
    assert half.shape[0] == bipartite.net_size(rank, (1,), eps, False)
    either = np.abs(points @ half.T).max(axis=1)
    assert np.sqrt(np.maximum(2.0 - 2.0 * either, 0.0)).max() <= eps / 2


@pytest.mark.parametrize("nonnegative", [False, True])
def test_bipartite_keeps_the_promise_of_theorem_1(nonnegative: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(6):
        A = low_rank(rng, 7, 2)
        sizes = [(2, 2), (3, 1), (2,)][rng.integers(3)]
        problem = Problem(covariance_of(A), sizes, nonnegative)
        inside = problem.covariance.dense()
        found = bipartite.run(problem, Options(rank=2), points="net", eps=0.4)
        best = best_value(inside, sizes, nonnegative)
        assert found.info["samples"] == found.info["net_size"]
        assert best * (1 - 0.4) <= total(inside, found) <= best * (1 + 1e-9)
        assert found.info["rank_optimum_at_most"] >= best * problem.covariance.unit * (1 - 1e-9)


def test_bipartite_keeps_the_promise_of_theorem_2() -> None:
    rng = np.random.default_rng(2)
    for _ in range(4):
        X = rng.standard_normal((20, 8)) * np.array([3, 2, 2, 1, 1, 1, 0.5, 0.5])
        problem = Problem(covariance_of_data(X)[0], (2, 2))
        found = bipartite.run(problem, Options(rank=2), points="net", eps=0.5)
        best = best_value(problem.covariance.dense(), (2, 2))
        assert found.info["optimum_at_most"] >= best * problem.covariance.unit
        promise = found.info["guarantees"]["Asteris et al. 2015, Theorem 2"]
        assert total(problem.covariance.dense(), found) >= promise * best


def test_matcher_scans_only_what_can_matter() -> None:
    rng = np.random.default_rng(3)
    V = rng.standard_normal((5000, 3)) * (rng.pareto(1.5, 5000) + 0.01)[:, None]
    matcher = bipartite.Matcher(V, (6, 4, 5), False)
    C = rng.standard_normal((20, 3, 3))
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    weights = matcher.weights(C)
    assert weights.shape[2] < 5000
    for point, weight in zip(C, weights):
        owner = assign(weight, matcher.need)
        rows = np.flatnonzero(owner >= 0)
        whole = np.ascontiguousarray(np.square(V @ point).T)
        expected = assign(whole, matcher.need)
        best = np.flatnonzero(expected >= 0)
        matching = weight[owner[rows], rows].sum()
        assert matching == pytest.approx(whole[expected[best], best].sum(), rel=1e-12)
        assert dual_bound(weight, matcher.need) >= matching * (1 - 1e-12)


@pytest.mark.parametrize("sketch", ["eigen", "randomized", "gaussian"])
def test_bipartite_answers_on_every_sketch(sketch: str) -> None:
    X = np.random.default_rng(4).standard_normal((40, 30)) * np.linspace(3, 0.1, 30)
    problem = Problem(covariance_of_data(X)[0], (3, 2))
    options = Options(rank=3)
    found = bipartite.run(problem, options, sketch=sketch, max_samples=200)
    assert [c.support.size for c in found.components] == [3, 2]
    assert 0.0 < found.info["probability"] <= 1.0
    again = bipartite.run(problem, Options(rank=3, n_jobs=3), sketch=sketch, max_samples=200)
    for a, b in zip(found.components, again.components):
        assert np.array_equal(a.support, b.support)


def test_more_samples_are_never_worse_on_the_sketch() -> None:
    problem = Problem(covariance_of(low_rank(np.random.default_rng(5), 60, 3)), (4, 4, 4))
    few = bipartite.run(problem, Options(rank=3), max_samples=64)
    many = bipartite.run(problem, Options(rank=3), max_samples=640)
    assert many.info["rank_value"] >= few.info["rank_value"]


def test_rank_is_reduced_with_a_note() -> None:
    problem = Problem(covariance_of(low_rank(np.random.default_rng(6), 12, 2)), (2, 2))
    found = bipartite.run(problem, Options(rank=5), max_samples=50)
    assert found.info["rank"] == 2
    assert "rank" in found.note


def test_bipartite_refuses_bad_input() -> None:
    problem = Problem(covariance_of(low_rank(np.random.default_rng(7), 40, 10)), (3, 3, 3))
    with pytest.raises(ValueError, match=r"points='net'.*10\^"):
        bipartite.run(problem, Options(rank=10), points="net", eps=0.01)
    with pytest.raises(ValueError, match="points"):
        bipartite.run(problem, Options(), points="grid")
    with pytest.raises(ValueError, match="eps"):
        bipartite.run(problem, Options(), eps=1.5)
    with pytest.raises(ValueError, match="max_samples"):
        bipartite.run(problem, Options(), max_samples=0)
    free = Problem(problem.covariance, (3, 3), supports="free", objective="adjusted")
    with pytest.raises(ValueError, match="disjoint"):
        bipartite.run(free, Options())


def test_bipartite_answers_with_more_places_than_features_and_for_zero_data() -> None:
    rng = np.random.default_rng(8)
    short = bipartite.run(Problem(covariance_of(low_rank(rng, 4, 2)), (3, 3)), Options(rank=2))
    used = np.concatenate([c.support for c in short.components])
    assert np.unique(used).size == used.size
    A = np.diag([1.0, 0, 0, 0, 0])
    found = bipartite.run(Problem(covariance_of(A), (2, 2)), Options(rank=2), max_samples=10)
    assert all(c.support.size for c in found.components)


rng = np.random.default_rng(0)


X = rng.standard_normal((30, 8))


A = X.T @ X / 30


def test_overshoot_is_what_a_sketch_adds():
    """lambda_max(V V' - A): nothing for eigenvectors, something for random projections."""
    cov = covariance_of(A)
    assert _overshoot(cov, sketch(cov, 2)) == 0.0
    for kind in ("gaussian", "randomized"):
        low = sketch(cov, 2, kind=kind, seed=3)
        exact = max(0.0, float(np.linalg.eigvalsh(low.V @ low.V.T - cov.dense())[-1]))
        assert _overshoot(cov, low) == pytest.approx(exact, abs=1e-12)
    wide = covariance_of_data(rng.standard_normal((4, 600)))[0]
    assert _overshoot(wide, sketch(wide, 2, kind="gaussian")) == np.inf


def test_pool_forgets_the_worst_entries():
    pool = bipartite.Pool()
    for i in range(5 * bipartite.KEPT):
        pool.keep(float(i), [np.array([i])])
    values = sorted(value for value, _ in pool.entries.values())
    assert values[-1] == pool.value == 5 * bipartite.KEPT - 1
    assert len(values) <= 4 * bipartite.KEPT
    assert values[0] > 0


@pytest.mark.parametrize("kind", ["eigen", "frequent"])
def test_the_error_term_of_theorem_2_is_enclosed(kind):
    rng = np.random.default_rng(11)
    X = rng.standard_normal((30, 9)) * np.geomspace(3, 0.5, 9)
    cov = covariance_of_data(X)[0]
    A = np.cov(X.T, bias=True)
    found = bipartite.run(
        Problem(cov, (3, 3)),
        Options(rank=2),
        points="net",
        eps=0.5,
        sketch=kind,
        error_term=True,
    )
    low = sketch(cov, 2, kind=kind)
    largest = best_value(A - low.V @ low.V.T * cov.unit, (3,))
    term = found.info["error_term"]
    assert term["at_least"] <= largest * (1 + 1e-9)
    assert largest <= term["at_most"] < found.info["tail"]
    optimum = best_value(A, (3, 3))
    assert optimum <= found.info["optimum_at_most"]
    (promise,) = found.info["guarantees"].values()
    value = sum(c.weights @ A[np.ix_(c.support, c.support)] @ c.weights for c in found.components)
    assert value >= promise * optimum


def test_the_error_term_is_refused_where_the_sketch_may_exceed_the_matrix():
    X = np.random.default_rng(0).standard_normal((20, 8))
    with pytest.raises(ValueError, match="leave it out"):
        sparse_pca(
            X,
            n_components=2,
            n_nonzero_coefs=2,
            method="bipartite",
            method_options={"error_term": True, "sketch": "gaussian"},
        )
