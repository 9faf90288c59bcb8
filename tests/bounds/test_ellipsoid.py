"""The ellipsoid bound: it holds for every support, and covers every feature."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.bounds.ellipsoid import Cover, Saddle, covering, ellipsoid_bound, roots
from sparcipal.problem.components import refit
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.monitor import Monitor
from sparcipal.problem.problem import Component, Options, Problem
from tests.support import cover_cases


def random_table(rng):
    """A few samples: repeated, zero and proportional columns, wild scales, rank one."""
    n = int(rng.integers(2, 7))
    p = int(rng.integers(max(3, n + 1), 10))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-rng.choice([0, 1, 6]), 0, size=p)
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0]
    if rng.random() < 0.3:
        X[:, 1] = 0.0
    if rng.random() < 0.1:
        X = np.outer(X[:, 0], rng.standard_normal(p))
    return X * 10.0 ** float(rng.choice([-9, 0, 9]))


def largest(A, s):
    """The best support of at most s features and its value, by enumeration."""
    supports = combinations(range(len(A)), min(s, len(A)))
    best = max(supports, key=lambda S: np.linalg.eigvalsh(A[np.ix_(S, S)])[-1])
    return np.array(best), float(np.linalg.eigvalsh(A[np.ix_(best, best)])[-1])


def bounded(X, s, *, center=True, scale=False):
    """The covariance, the optimum by enumeration, and the bound."""
    cov = covariance_of_data(X, center=center, scale=scale)[0]
    support, best = largest(cov.dense(), s)
    problem = Problem(cov, (s,))
    first = refit(problem, (Component(support, np.ones(support.size)),))
    return cov, best, ellipsoid_bound(problem, first, Options(), "fast")


def covers(F, T, W, features, slack=1e-9):
    """Whether f_i f_i' <= T + w_i w_i' for every feature, by eigenvalues."""
    for i in range(F.shape[1]):
        w = W[features == i].astype(np.float64)
        gap = T + w.T @ w - np.outer(F[:, i], F[:, i])
        if np.linalg.eigvalsh(gap)[0] < -slack * max(1.0, float(F[:, i] @ F[:, i])):
            return False
    return True


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_holds_for_every_support(seed):
    rng = np.random.default_rng(seed)
    made = 0
    for _ in range(20):
        X = random_table(rng)
        s = int(rng.integers(1, X.shape[1] + 1))
        options = {"center": bool(rng.random() < 0.7), "scale": bool(rng.random() < 0.2)}
        _, best, bound = bounded(X, s, **options)
        if bound is not None:
            made += 1
            assert bound.value >= best
    assert made > 8


def test_any_ellipsoid_and_any_directions_give_a_bound():
    rng = np.random.default_rng(1)
    for _ in range(300):
        n, p, s = int(rng.integers(1, 6)), int(rng.integers(2, 9)), int(rng.integers(1, 4))
        F = rng.standard_normal((n, p)) * rng.choice([1e-3, 1.0, 3.0], size=p)
        root = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-2, 1)
        cover = covering(F, root @ root.T, rng.standard_normal((n, p)) * rng.choice([0.0, 1.0], p))
        assert cover.bound(s) >= largest(F.T @ F, s)[1]
        assert covers(F, cover.stretch * cover.T, np.sqrt(cover.stretch) * cover.W, cover.features)


def test_the_search_improves_on_its_start_and_finds_a_planted_component():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 400))
    X[:, :10] += 3 * rng.standard_normal((30, 1))
    cov = covariance_of_data(X)[0]
    problem = Problem(cov, (10,))
    first = refit(problem, (Component(np.arange(10), np.ones(10)),))
    value = float(np.linalg.eigvalsh(cov.submatrix(np.arange(10)))[-1])
    fast = ellipsoid_bound(problem, first, Options(), "fast")
    full = ellipsoid_bound(problem, first, Options(), "full")
    assert value <= full.value <= fast.value <= 1.25 * value
    direction = cov.factor()[:, :10] @ first[0].weights
    saddle = Saddle(cov.factor() / np.sqrt(value), 10, direction)
    start = saddle.lowest
    assert saddle.improve(40, Monitor(), np.inf) < start


def test_roots_are_positive_and_solve_their_equation():
    rng = np.random.default_rng(3)
    for _ in range(100):
        n = int(rng.integers(1, 30))
        ell = 10.0 ** rng.uniform(-12, 0, size=n)
        squares = 10.0 ** rng.uniform(-8, 1, size=(n, 50))
        squares = squares[:, (squares / ell[:, None]).sum(axis=0) > 1.0001]
        kappa = roots(squares, ell)
        assert (kappa > 0).all()
        assert np.allclose((squares / (kappa + ell[:, None])).sum(axis=0), 1, rtol=1e-6)


def test_a_vector_that_is_not_normalised_covers_nothing():
    """P = kappa h h' with h = C^-1 R q needs |q| = 1; a longer or shorter one is no bound."""
    rng = np.random.default_rng(4)
    missed = 0
    for _ in range(50):
        F = rng.standard_normal((4, 9))
        saddle = Saddle(F, 2, F[:, 0])
        T, Y = saddle.best
        point = saddle._at(T, Y)
        whole = np.zeros((9, 4))
        whole[point.outside] = point.W.T
        assert covers(F, T, whole, np.arange(9), slack=1e-6)
        w, Q = np.linalg.eigh(Y)
        ell, R = np.linalg.eigh((Q * np.sqrt(w)) @ Q.T @ T @ (Q * np.sqrt(w)) @ Q.T)
        g = R.T @ ((Q * np.sqrt(w)) @ Q.T) @ F[:, point.outside]
        kappa = roots(g * g, ell)
        q = g / (kappa + ell[:, None])  # as it comes
        whole[point.outside] = ((Q / np.sqrt(w)) @ Q.T @ R @ q * np.sqrt(kappa)).T
        missed += not covers(F, T, whole, np.arange(9), slack=1e-6)
    assert missed > 10


def test_features_of_small_variance_are_covered_in_every_direction():
    """T is small where the large features are not: small ones that lie there must be seen."""
    F = np.zeros((3, 40))
    F[0, :4] = 1.0
    F[1, 4:] = 1e-2
    T = np.diag([0.5, 1e-9, 1e-9])
    cover = covering(F, T, np.zeros_like(F))
    assert set(range(4, 40)) <= set(cover.features)
    assert cover.bound(20) >= 4.0
    assert covers(F, cover.stretch * cover.T, np.sqrt(cover.stretch) * cover.W, cover.features)


def test_there_is_none_without_rows_or_with_many_samples():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((5, 8))
    first = (Component(np.arange(2), np.full(2, 0.5**0.5)),)
    given = covariance_of(np.cov(X.T, bias=True))
    assert ellipsoid_bound(Problem(given, (2,)), first, Options(), "fast") is None
    tall = covariance_of_data(rng.standard_normal((9, 8)))[0]
    assert ellipsoid_bound(Problem(tall, (2,)), first, Options(), "fast") is None
    zero = covariance_of_data(np.ones((5, 8)))[0]
    assert ellipsoid_bound(Problem(zero, (2,)), first, Options(), "fast") is None
    many = covariance_of_data(rng.standard_normal((401, 402)))[0]
    assert ellipsoid_bound(Problem(many, (2,)), first, Options(), "fast") is None


def test_a_formed_matrix_remembers_the_rows_it_was_formed_from():
    cov = covariance_of_data(np.random.default_rng(6).standard_normal((5, 8)))[0]
    kept = np.array([0, 3, 7])
    for made in (cov, cov.materialise(), cov.materialise().restrict(kept), cov.restrict(kept)):
        assert np.allclose(made.factor().T @ made.factor(), made.dense())


def test_several_components_are_bounded_one_by_one():
    rng = np.random.default_rng(7)
    for _ in range(20):
        X = rng.standard_normal((4, 8)) * rng.choice([0.3, 1.0, 2.0], size=8)
        cov = covariance_of_data(X)[0]
        A = cov.dense()
        first = (Component(np.arange(2), np.ones(2)), Component(np.arange(2, 5), np.ones(3)))
        problem = Problem(cov, (2, 3))
        bound = ellipsoid_bound(problem, refit(problem, first), Options(), "fast")
        assert bound.value >= largest(A, 2)[1] + largest(A, 3)[1]


def test_an_ellipsoid_is_in_a_certificate_where_it_is_the_best_bound():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((8, 150)) * rng.uniform(0.5, 1.5, size=150)
    result = sparse_pca(X, n_nonzero_coefs=30, max_nodes=1)
    names = [bound.name for bound in result.certificate.bounds]
    assert names[0] == "ellipsoid"
    assert names.count("ellipsoid") == 1
    assert result.certificate.gap < 0.1
    assert verify(result, X).verdict == "proved"


def test_a_cover_says_what_it_proves():
    cover = Cover(np.eye(2), np.array([0]), np.array([[2.0, 0.0]], dtype=np.float32), stretch=1.5)
    assert cover.bound(3) == pytest.approx(1.5 * (3 + 4))


def test_no_cover_that_the_checker_accepts_is_false():
    pytest.importorskip("flint")
    for seed in range(100):
        assert cover_cases.one_ellipsoid_case(seed) == [], f"seed {seed}"


def test_the_judge_of_covers_notices_one_that_is_too_small(monkeypatch):
    pytest.importorskip("flint")
    found = cover_cases.redone
    monkeypatch.setattr(cover_cases, "redone", lambda *of: found(*of) * 0.3)
    assert any(cover_cases.one_ellipsoid_case(seed) for seed in range(60))


def test_steps_end_where_the_bound_cannot_become_useful(monkeypatch):
    cov = covariance_of_data(np.random.default_rng(0).standard_normal((20, 60)))[0]
    problem = Problem(cov, (5,))
    first = refit(problem, (Component(np.arange(5), np.ones(5)),))
    made = []
    improve = Saddle.improve
    monkeypatch.setattr(Saddle, "improve", lambda *args: made.append(1) or improve(*args))
    counts = []
    for below in (np.inf, 1e-3):
        made.clear()
        assert ellipsoid_bound(problem, first, Options(), "fast", below) is not None
        counts.append(len(made))
    assert counts[1] < counts[0]
