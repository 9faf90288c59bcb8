"""Logs written by hand: every step that a replay must refuse, and what it accepts beside it."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.tree.core import prove_large
from sparcipal.bounds.tree.search import prove
from sparcipal.checker.budget import Refused
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.checker.enumeration import proved_tops
from sparcipal.checker.signs import no_positive_eigenvector
from sparcipal.problem.covariance import covariance_of
from tests.support.brute import best_value
from tests.support.replay import FLOAT, charges_of, packing_of, recheck, replay

A = np.array([[1.0, 0.4, 0.1], [0.4, 0.9, -0.3], [0.1, -0.3, 0.8]])
BEST = best_value(A, (2,))
NONE = np.array([], dtype=np.intp)


def header(bound: float = BEST * (1 + 1e-9), **more) -> dict:
    return {
        "step": "problem",
        "s": 2,
        "nonnegative": False,
        "bound": bound,
        "unit": 1.0,
        "twins": {},
        **more,
    }


def node(parent: int = -1, side: str = "root", moved: object = NONE, end: str = "leaf") -> dict:
    moved = np.atleast_1d(np.asarray(moved, dtype=np.intp))
    return {
        "step": "node",
        "parent": parent,
        "side": side,
        "moved": moved,
        "passes": [],
        "end": end,
    }


def branched(into: object, out: object) -> list[dict]:
    return [header(), node(end="branch"), node(1, "in", into), node(1, "out", out)]


def test_every_support_is_looked_at():
    assert replay([header(), node()], A) == BEST * (1 + 1e-9)
    assert replay(branched(0, 0), A) == BEST * (1 + 1e-9)
    with pytest.raises(Refused, match="larger value"):
        replay([header(BEST * (1 - 1e-9)), node()], A)
    with pytest.raises(Refused, match="supports are missing"):
        replay(branched(0, 0)[:-1], A)


def test_both_sides_of_a_branch_speak_of_one_feature():
    with pytest.raises(Refused, match="two sides differ"):
        replay(branched(0, 1), A)
    with pytest.raises(Refused, match="excluded without reason"):
        replay(branched(0, [0, 1]), A)
    with pytest.raises(Refused, match="not one of root"):
        replay([header(), node(end="branch"), node(1, "left", 0)], A)


def test_a_replay_refuses_to_branch_on_a_forced_feature():
    log = [header(), node(end="branch"), node(1, "in", 0, "branch"), node(1, "out", 0)]
    with pytest.raises(Refused, match="branching on a forced feature"):
        replay([*log, node(2, "out", 0)], A)


def test_twins_may_follow_only_when_they_cost_no_less():
    """A feature may go out with another one if it is its multiple, and costs no less."""
    matrix = A.copy()
    matrix[2], matrix[:, 2] = 0.5 * A[0], 0.5 * A[:, 0]
    matrix[2, 2], matrix[0, 2] = 0.25 * A[0, 0], 0.5 * A[0, 0]
    matrix[2, 0] = matrix[0, 2]
    twins = {"features": np.array([2]), "leaders": np.array([0]), "factors": np.array([0.5])}
    bound = best_value(matrix, (2,)) * (1 + 1e-9)
    log = [header(bound, twins=twins), *branched(0, [0, 2])[1:]]
    assert replay(log, matrix) == bound
    with pytest.raises(Refused, match="excluded without reason"):
        replay([header(bound, twins=twins), *branched(2, [0, 2])[1:]], matrix)
    cheaper = header(bound, twins=twins, prices=np.array([0.2, 0.2, 0.1]))
    with pytest.raises(Refused, match="excluded without reason"):
        replay([cheaper, *branched(0, [0, 2])[1:]], matrix)


def test_negative_multiples_are_no_twins_of_nonnegative_components():
    twins = {"features": np.array([1]), "leaders": np.array([0]), "factors": np.array([-1.0])}
    log = [header(5.0, nonnegative=True, twins=twins), node()]
    with pytest.raises(Refused, match="negative twins"):
        replay(log, A)
    chained = {"features": np.array([1, 2]), "leaders": np.array([0, 1]), "factors": np.ones(2)}
    with pytest.raises(Refused, match="not multiples of a leader"):
        replay([header(5.0, twins=chained), node()], A)


def test_a_replay_refuses_bounds_that_are_no_numbers():
    for bound in (np.nan, np.inf, -np.inf):
        with pytest.raises(Refused, match="not finite"):
            replay([header(bound), node()], A)


def test_a_pass_that_fixes_nothing_changes_nothing():
    root = {**node(), "passes": [{"split": 1, "out": NONE, "in": NONE}]}
    assert replay([header(), {"step": "split", "clip": 0.0}, root], A) == BEST * (1 + 1e-9)


def test_replay_gives_zero_for_matrices_of_zeros():
    """Nothing explains nothing; at prices the cheapest feature alone costs its price."""
    zero = np.zeros((3, 3))
    log = prove(zero, 2).log
    assert 0.0 <= replay(log, zero) < 1e-9
    priced = header(-0.1, prices=np.array([0.3, 0.1, 0.2]))
    assert replay([priced], zero) == -0.1
    with pytest.raises(Refused):
        replay([header(-0.2, prices=np.array([0.3, 0.1, 0.2])), node()], zero)


def test_eigenvectors_of_one_sign_are_told_for_certain():
    """True only where every eigenvector above t has both signs, for certain."""
    signed = np.array([[2.0, -1.5], [-1.5, 2.0]])
    assert no_positive_eigenvector(signed, 1.0, FLOAT)
    assert no_positive_eigenvector(signed, 4.0, FLOAT), "no eigenvalue is above t"
    assert not no_positive_eigenvector(np.abs(signed), 1.0, FLOAT), "(1, 1) is above t"
    assert not no_positive_eigenvector(signed, 0.1, FLOAT), "all are above t"
    # an eigenvalue just below t cannot be told from t
    assert not no_positive_eigenvector(np.diag([2.0, 1.0, 1.0]), 1.0, FLOAT)


def test_extensions_of_given_matrices_form_the_rows_outside():
    """No variance bounds an entry of a given matrix: rows outside the core are formed."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 16)) * np.geomspace(3.0, 0.05, 16)
    matrix = X.T @ X / 30
    cov = covariance_of(matrix)
    proof = prove_large(cov, 3, first_core=6)
    assert proof.touch is not None
    checked = checked_covariance(matrix, cov.unit)
    question = Question((3,), False, True, proof.value)
    own = recheck("tree", proof.data(), checked, question)
    assert best_value(matrix, (3,)) / cov.unit <= own <= proof.bound * (1 + 1e-9)
    core = np.arange(proof.touch["core"].size)
    wrong = {"log": proof.log, "touch": {**proof.touch, "core": core + 1}}
    assert recheck("tree", wrong, checked, question) == np.inf


# --- packed supports ---


def packed(matrix: np.ndarray, target: float, budget: float = 1e12) -> float:
    """With no certificate at all (U = 0) every support above tau is enumerated."""
    n = matrix.shape[0]
    zeros = np.zeros(n * (n - 1) // 2)
    alone = best_value(matrix, (2,)) * (1 + 1e-9)
    data = {"target": target, "u": zeros, "r": zeros}
    return packing_of(matrix, (2, 2), np.zeros(n), alone, data, budget)


@pytest.fixture
def matrix() -> np.ndarray:
    X = np.random.default_rng(3).standard_normal((20, 7))
    return X.T @ X / 20


def test_packings_are_found_without_a_certificate(matrix):
    best = best_value(matrix, (2, 2))
    assert packed(matrix, 0.97 * best) == pytest.approx(best, rel=1e-9)
    assert packed(matrix, 0.97 * best) >= best


@pytest.mark.parametrize("budget", [1e3, 1e5, 3e5])
def test_packings_beyond_the_budget_prove_nothing(matrix, budget):
    assert packed(matrix, 0.97 * best_value(matrix, (2, 2)), budget) == np.inf


def test_features_drop_out_in_rounds():
    """After each round fewer are left, until three rounds are over or nothing changes."""
    n = 12
    a = np.diag(np.geomspace(1.0, 0.01, n)) + 0.02
    zeros = np.zeros(n * (n - 1) // 2)
    charges = charges_of(a, 2, np.zeros(n), zeros, zeros)
    for tau in (0.05, 0.3, 0.6, 0.9):
        found = {tuple(S) for S in charges.above(tau)}
        for i in range(n):
            for j in range(i):
                top = np.linalg.eigvalsh(a[np.ix_([j, i], [j, i])])[-1]
                assert (j, i) in found or top <= tau * (1 + 1e-12)


def test_values_that_cannot_be_proved_are_infinite():
    with np.errstate(all="ignore"):
        huge = np.full((1, 2, 2), 1e308)
        assert proved_tops(huge, np.array([1e308]), FLOAT)[0] == np.inf
    assert 2.0 <= proved_tops(np.ones((1, 2, 2)), np.array([2.0]), FLOAT)[0] < 2.0 + 1e-12
