"""One component after the other: what deflation takes out, and what it must leave."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.problem import Component, Options, Problem
from sparcipal.search.deflation import DEFLATIONS, Single, deflate
from sparcipal.search.methods import threshold, tpower


def a_covariance(p: int = 12, n: int = 30, seed: int = 0):
    return covariance_of_data(np.random.default_rng(seed).standard_normal((n, p)))[0]


def recorder(seen: list):
    def one(problem, rng):
        seen.append(problem.covariance.dense().copy())
        return threshold.one(problem, rng)

    return one


def the_x(found, j: int, p: int) -> np.ndarray:
    return found.components[j].vector(p)


@pytest.mark.parametrize("kind", ["projection", "hotelling", "schur"])
def test_second_matrix_is_the_textbook_one(kind):
    cov = a_covariance()
    seen: list[np.ndarray] = []
    found = deflate(
        Problem(cov, (4, 4), supports="free", objective="adjusted"),
        Options(),
        recorder(seen),
        deflation=kind,
    )
    A, x = cov.dense(), the_x(found, 0, 12)
    P = np.eye(12) - np.outer(x, x)
    expected = {
        "projection": P @ A @ P,
        "hotelling": A - (x @ A @ x) * np.outer(x, x),
        "schur": A - np.outer(A @ x, A @ x) / (x @ A @ x),
    }[kind]
    np.testing.assert_allclose(seen[1], expected, atol=1e-14)


@pytest.mark.parametrize("kind", ["projection", "schur"])
def test_what_is_left_stays_psd_and_forgets_the_directions(kind):
    cov = a_covariance(seed=3)
    seen: list[np.ndarray] = []
    found = deflate(
        Problem(cov, (4, 4, 4), supports="free", objective="adjusted"),
        Options(),
        recorder(seen),
        deflation=kind,
    )
    assert np.linalg.eigvalsh(seen[2])[0] > -1e-12
    for j in range(2):
        np.testing.assert_allclose(seen[2] @ the_x(found, j, 12), 0, atol=1e-12)


def test_hotelling_can_lose_positive_semidefiniteness():
    """Why the other two exist (Mackey 2009): x is not an eigenvector of A."""
    A = np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    seen: list[np.ndarray] = []
    problem = Problem(covariance_of(A), (2, 2), supports="free", objective="adjusted")
    deflate(problem, Options(), recorder(seen), deflation="hotelling")
    assert np.linalg.eigvalsh(seen[1])[0] < -0.05


def test_removing_keeps_supports_disjoint_and_a_feature_for_everybody():
    cov = a_covariance(p=5)
    found = tpower.run(Problem(cov, (3, 3, 3)), Options())
    features = np.concatenate([c.support for c in found.components])
    assert len(set(features)) == features.size
    assert len(found.components) == 3


def test_the_example_on_which_deflation_is_suboptimal():
    e, d = 0.3, 0.4
    A = np.array([[1, 0, 0, e], [0, d, 0, 0], [0, 0, d, 0], [e, 0, 0, 1]])
    cov = covariance_of(A)
    found = tpower.run(Problem(cov, (2, 2)), Options())
    value = sum(np.linalg.eigvalsh(A[np.ix_(c.support, c.support)])[-1] for c in found.components)
    assert value == pytest.approx(1 + e + d)


def test_notes_bounds_and_iterations_are_collected():
    def one(problem, rng):
        return Single(Component(np.array([0]), np.ones(1)), 3, "fell short")

    found = deflate(Problem(a_covariance(), (1, 1, 1, 1)), Options(), one)
    assert found.n_iter == 12
    assert found.note.startswith("component 1: fell short; component 2: fell short; and 2 more")
    assert [int(c.support[0]) for c in found.components] == [0, 1, 2, 3]


def test_overlap_is_refused_when_supports_must_be_disjoint():
    with pytest.raises(ValueError, match=r"deflation=.schur.*supports=.free"):
        tpower.run(Problem(a_covariance(), (2, 2)), Options(), deflation="schur")
    with pytest.raises(ValueError, match="deflation must be"):
        tpower.run(Problem(a_covariance(), (2, 2)), Options(), deflation="magic")
    assert set(DEFLATIONS) == {"remove", "projection", "hotelling", "schur"}


def test_a_repeated_direction_does_not_break_the_projection():
    def same(problem, rng):
        return Component(np.array([0, 1]), np.array([0.6, 0.8]))

    problem = Problem(a_covariance(), (2, 2, 2), supports="free", objective="adjusted")
    assert len(deflate(problem, Options(), same).components) == 3
