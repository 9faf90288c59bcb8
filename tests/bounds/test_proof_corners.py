"""Proofs at their limits: budgets that are spent, questions that are refused, ties and zeros."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.configuration import bound as configuration
from sparcipal.bounds.configuration import packing
from sparcipal.bounds.kyfan import bound as kyfan
from sparcipal.bounds.lowrank.prices import leading_direction
from sparcipal.bounds.lowrank.sphere import sphere_search
from sparcipal.bounds.tree import search as exact
from sparcipal.bounds.tree import subtrees
from sparcipal.bounds.tree.core import prove_large
from sparcipal.bounds.tree.incumbent import Rounder, best_weights
from sparcipal.bounds.tree.positive import no_interior_solution
from sparcipal.bounds.tree.search import prove
from sparcipal.bounds.tree.twins import find_twins
from sparcipal.checker.configuration import recheck
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.checker.tree import replay
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.monitor import Monitor
from sparcipal.search.joint import joint_search
from tests.support.brute import best_value
from tests.support.proof_cases import optimum


def covariance(p: int, seed: int = 0, n: int = 20) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((n, p))
    return X.T @ X / n


# --- questions ---


def test_questions_that_large_proofs_refuse():
    cov = covariance_of(covariance(6))
    for s in (0, 7):
        with pytest.raises(ValueError, match=f"between 1 and the number of features 6, got {s}"):
            prove_large(cov, s)
    for support in ([], [0, 1, 2]):
        with pytest.raises(ValueError, match="incumbent must have between 1 and 2 features"):
            prove_large(cov, 2, incumbent=(np.array(support, dtype=int), 1.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"s": 0}, "s must be at least 1 nonzero, got s=0"),
        ({"prices": np.ones(3)}, "prices must be 4 finite numbers >= 0, one per row of V"),
        ({"prices": -np.ones(4)}, "prices must be 4 finite numbers >= 0"),
        ({"prices": np.full(4, np.inf)}, "prices must be 4 finite numbers >= 0"),
    ],
)
def test_questions_that_cones_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        sphere_search(np.eye(4)[:, :2], **{"s": 2, **arguments})


# --- answers ---


def test_no_rows_have_a_direction_all_the_same():
    assert leading_direction(np.zeros((0, 3))).tolist() == [1.0, 0.0, 0.0]
    np.testing.assert_allclose(np.abs(leading_direction(np.array([[0.0, 2.0]]))), [0.0, 1.0])


def test_nonnegative_weights_where_everything_is_opposed():
    """Off-diagonal entries that are all negative: one feature alone is best."""
    block = np.full((3, 3), -0.4) + np.diag([1.4, 1.5, 1.6])
    value, x = best_weights(block, nonnegative=True)
    assert value == pytest.approx(1.2)
    np.testing.assert_allclose(x, [0.0, 0.0, 1.0])
    zero, _ = best_weights(np.zeros((2, 2)), nonnegative=True)
    assert zero == 0.0
    # a start that the matrix turns away from leaves where it stands
    opposed = np.array([[0.0, -1.0], [-1.0, 0.0]])
    assert best_weights(opposed, nonnegative=True)[0] == 0.0


def test_truncated_power_steps_from_nothing():
    rounder = Rounder(np.diag([2.0, 1.0, 0.5]), 2, np.zeros(3), nonnegative=False)
    assert rounder.from_vector(np.zeros(3)).value == pytest.approx(2.0)
    assert rounder.from_vector(np.array([0.0, 1.0, 0.0])).value == pytest.approx(2.0)


def test_eigenvectors_that_cannot_be_told_apart():
    """A plane of eigenvectors holds positive ones; which were computed is chance."""
    turned = np.diag([2.0, 2.0, 1.0])
    assert not no_interior_solution(turned, 1.5)
    mixed = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 0.1]])
    assert not no_interior_solution(mixed, 0.5), "(1, 1, 0) is not of both signs"
    apart = np.array([[2.0, -1.0, -0.3], [-1.0, 2.0, -0.2], [-0.3, -0.2, 0.1]])
    assert no_interior_solution(apart, 2.5)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_copies_follow_the_largest_of_them(nonnegative):
    """Multiples of one feature: the optimum is that of brute force, and the replay agrees."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 10))
    for j, factor in ((3, 1.0), (4, 0.5), (7, 0.25), (8, -0.5)):
        X[:, j] = factor * X[:, 0]
    A = X.T @ X / 30
    assert find_twins(A, 4, nonnegative).any
    proof = prove(A, 4, nonnegative=nonnegative)
    best = optimum(A, 4, nonnegative, np.zeros(10))
    assert proof.value == pytest.approx(best, rel=1e-9)
    assert best * (1 - 1e-12) <= replay(proof.log, A) <= proof.bound


def test_copies_that_branching_meets(monkeypatch):
    """With nothing fixed at the root, features and their copies are branched on together."""
    monkeypatch.setattr(exact, "ROOT_SMOOTHING", ())
    X = np.random.default_rng(6).standard_normal((60, 12))
    X[:, 6:] = X[:, :6] * np.linspace(1.0, 0.5, 6)
    A = X.T @ X / 60
    proof = prove(A, 4)
    assert proof.status == "optimal"
    assert proof.value == pytest.approx(best_value(A, (4,)), rel=1e-9)
    assert replay(proof.log, A) <= proof.bound


@pytest.mark.parametrize("seed", range(3))
def test_nonnegative_supports_that_shrink_in_rounds(seed, monkeypatch):
    """Supports shrink to the same ones in several subtrees; each is looked at once."""
    monkeypatch.setattr(exact, "ALONE", 0.0)
    monkeypatch.setattr(exact, "ROOT_SMOOTHING", ())
    monkeypatch.setattr(subtrees, "SUBTREES", 3)
    monkeypatch.setattr(subtrees, "WORK", 1.0)
    X = np.random.default_rng(seed).standard_normal((40, 8))
    A = X.T @ X / 40
    A = A - 0.35 * (1 - np.eye(8))
    A += max(0.0, 1e-9 - float(np.linalg.eigvalsh(A)[0])) * np.eye(8)
    proof = prove(A, 6, nonnegative=True)
    assert proof.status == "optimal"
    assert proof.value == pytest.approx(optimum(A, 6, True, np.zeros(8)), rel=1e-7)
    assert replay(proof.log, A) <= proof.bound


# --- several components ---


def priced(A: np.ndarray, sizes: tuple[int, ...], **limits):
    cov = covariance_of(A)
    supports = joint_search(cov.dense(), sizes, effort=0)
    value = best_value(A, sizes) / cov.unit
    question = {"supports": supports, "value": value}
    first = kyfan.kyfan_bound(cov, sizes, **question)
    return (
        cov,
        first,
        configuration.configuration_bound(cov, sizes, start=first, **question, **limits),
    )


def check_priced(A: np.ndarray, sizes: tuple[int, ...], cov, found) -> None:
    question = Question(sizes, False, True, best_value(A, sizes) / cov.unit)
    own = recheck(found.bound.data, checked_covariance(A, cov.unit), question)
    assert question.value * (1 - 1e-12) <= own <= found.bound.value * (1 + 1e-12)


@pytest.mark.parametrize("limit", ["ROUNDS", "MOVES"])
def test_prices_that_may_not_move(limit, monkeypatch):
    """Out of moves there are no prices, or worse ones: never a wrong bound."""
    monkeypatch.setattr(configuration, limit, 1)
    sizes = (2, 2)
    for seed in range(4):
        A = covariance(7, seed, n=5)
        cov, first, found = priced(A, sizes)
        assert first.value >= best_value(A, sizes) / cov.unit * (1 - 1e-12)
        if found is not None:
            check_priced(A, sizes, cov, found)


def test_features_outside_that_no_pad_keeps_below(monkeypatch):
    """Where no pad is enough, prices on the core prove nothing."""
    monkeypatch.setattr(configuration, "PADS", (1e-6,))
    monkeypatch.setitem(kyfan.EFFORTS, "fast", kyfan.Effort(4, (0.1,), 8, (0.1,), 4, 0, 0.05))
    A = covariance(9, 1)
    cov, first, found = priced(A, (2, 2))
    assert len(first.data["features"]) < 9
    assert found is None
    assert first.value >= best_value(A, (2, 2)) / cov.unit * (1 - 1e-12)


def test_more_components_than_the_core_has_features(monkeypatch):
    """A zero covariance outside: components without a feature explain nothing."""
    monkeypatch.setitem(kyfan.EFFORTS, "fast", kyfan.Effort(1, (0.1,), 6, (0.1,), 4, 0, 0.5))
    A = np.diag([3.0, 2.0, 1.0, 0.5])
    cov = covariance_of(A)
    bound = kyfan.kyfan_bound(
        cov, (1, 1, 1), supports=[np.array([0]), np.array([1]), np.array([2])], value=6 / cov.unit
    )
    assert 6.0 * (1 - 1e-12) <= bound.value * cov.unit < 6.1


@pytest.mark.parametrize("limit", ["MOST_NODES", "MOST_SUPPORTS", "MOST_PACKINGS"])
def test_packing_beyond_a_limit_is_none(limit, monkeypatch):
    A = covariance(7, 3)
    best, alone = best_value(A, (2, 2)), best_value(A, (2,)) * (1 + 1e-9)
    arguments = (A, 2, 2, np.zeros(7), alone, 0.97 * best, Monitor())
    found = packing.best_packing(*arguments)
    assert found is not None
    assert best <= found.value <= best * (1 + 1e-9)
    monkeypatch.setattr(packing, limit, 1)
    assert packing.best_packing(*arguments) is None
