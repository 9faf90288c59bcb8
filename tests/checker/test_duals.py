"""Dual bounds of the greedy method and of DSPCA, redone, with their margins."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.checker import duals
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import (
    CheckedCovariance,
    Question,
    covariance_of,
    covariance_of_data,
)
from sparcipal.checker.family import Case
from tests.support.margins import LESS, E, from_data, one
from tests.support.replay import FLOAT, recheck


def case_of(cov: CheckedCovariance) -> Case:
    return Case(cov, one(2), FLOAT, Budget())


def test_greedy_scores_know_their_error():
    X = np.random.default_rng(8).standard_normal((30, 5)) * [2.0, 1.5, 1.0, 0.5, 0.2]
    own = covariance_of_data(X, True, False, None, 1.0)[0]
    support, x = np.array([0, 2]), np.array([0.8, 0.6])
    A, d = own.dense(), np.sqrt(own.diagonal)
    value = x @ A[np.ix_(support, support)] @ x
    for unit in (0.0, 1e-6):
        own.error_unit = unit
        g, lost, *_ = duals._scores(support, x, 0.0, case_of(own))
        assert np.allclose(g, A[:, support] @ x / np.sqrt(value), rtol=1e-12)
        root = np.sqrt(unit * own.weights)
        due = root * (x @ root[support]) + 80 * 2.0**-52 * (x @ d[support]) * d
        assert np.allclose(lost, due / np.sqrt(value), rtol=1e-9, atol=0)


@pytest.mark.usefixtures("coarse")
def test_dspca_dual_keeps_its_margins(monkeypatch):
    cov = from_data(4)
    data = {"penalty": 0.1, "core": np.arange(4), "moved": np.zeros(6)}
    monkeypatch.setattr(Float, "ky_fan", lambda ar, M, k, others=(): 2.0)
    wide = np.abs(cov.diagonal - 0.1).max() + 4 * 0.1
    for question, k in ((one(2), 1), (one(2, 1), 2)):
        n = sum(question.cardinalities)
        due = (2.0 + 0.1 * n) * (1 + 4 * E) + k * E * wide
        assert recheck("dspca-dual", data, cov, question) >= due * LESS
    free = Question((2, 1), False, False, 0.0)
    assert recheck("dspca-dual", data, cov, free) >= (4.0 + 0.3) * (1 + 4 * E) * LESS + 2 * E * wide
    cov.error_unit = 1e-3
    assert recheck("dspca-dual", data, cov, one(2, 1)) >= 2.3 + cov.rounding(3)
    assert recheck("dspca-dual", data, cov, free) >= 4.3 + 2 * cov.rounding(2)
    # variances outside the core may reach the penalty, not rise above it
    part = {"penalty": float(cov.diagonal[3]), "core": np.arange(3), "moved": np.zeros(3)}
    assert recheck("dspca-dual", part, cov, one(2)) == np.inf
    cov.error_unit = 0.0
    assert recheck("dspca-dual", {**part, "penalty": part["penalty"] + 1e-9}, cov, one(2)) < np.inf
    given = covariance_of(np.diag([1.0, 1.0, 1.0, 0.5]), 1.0)
    assert recheck("dspca-dual", {**part, "penalty": 0.5 + E}, given, one(2)) == np.inf


ONE = Question((2,), False, True, 0.0)


def test_dspca_dual_is_of_its_matrix(monkeypatch):
    seen = []
    top = lambda ar, M, k, others: seen.append((M, others)) or 1.0  # noqa: E731
    monkeypatch.setattr(Float, "ky_fan", top)
    A = np.eye(3) + 0.5
    moved = np.array([-0.3, 0.1, 0.2])
    data = {"penalty": 0.3, "core": np.arange(3), "moved": moved}
    recheck("dspca-dual", data, covariance_of(A, 1.0), ONE)
    U = np.array([[0.0, -0.3, 0.1], [-0.3, 0.0, 0.2], [0.1, 0.2, 0.0]])
    assert np.allclose(seen[0][0], A + U - 0.3 * np.eye(3))
    assert seen[0][1].tolist() == [0.0]
    monkeypatch.undo()
    for wrong in (
        {"penalty": 0.29},
        {"core": np.array([0, 1, 1])},
        {"penalty": np.nan},
        {"core": np.array([0, 1, 3])},
    ):
        assert recheck("dspca-dual", {**data, **wrong}, covariance_of(A, 1.0), ONE) == np.inf
    high = {**data, "moved": np.array([0.4, 0.1, 0.2])}
    assert recheck("dspca-dual", high, covariance_of(A, 1.0), ONE) == np.inf
    positive = Question((2,), True, True, 0.0)
    assert recheck("dspca-dual", high, covariance_of(A, 1.0), positive) < np.inf


def greedy_gram(A: np.ndarray, g: np.ndarray, variance: np.ndarray, rho: float) -> np.ndarray:
    """The matrix as the docstrings of both sides describe it, in a few lines."""
    strong = g**2 > rho
    away = np.abs(g**2 - rho)
    length = np.maximum(variance - g**2, 1e-300)
    weak = rho * np.maximum(variance - rho, 0.0) / (away * length)
    weight = np.where(strong, 1.0 / away, weak)
    factor = np.where(strong, g, 1.0)
    inner = (A - np.outer(g, g)) * np.outer(factor, factor)
    both = np.outer(strong * (g**2 - rho), strong * (g**2 - rho))
    return np.sqrt(np.outer(weight, weight)) * (inner + both)


def greedy_problem(seed: int, p: int = 5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, p)) * np.geomspace(2, 0.7, p) + rng.standard_normal((20, 1))
    cov = covariance_of_data(X, True, False, None, 1.0)[0]
    support = np.array([0, 1])
    x = np.array([0.8, 0.6])
    Ax = cov.dense()[:, support] @ x
    g = Ax / np.sqrt(x @ Ax[support])
    return cov, support, x, g, rng


def rho_between(g: np.ndarray) -> float:
    """Some features are strong and some weak, none of them nearly both."""
    squares = np.sort(g**2)
    place = int(np.argmax(np.diff(squares)))
    return float(squares[place : place + 2].mean())


def test_greedy_gram_equals_its_formula():
    for seed in range(8):
        cov, _, _, g, _ = greedy_problem(seed)
        zero = np.zeros(5)
        for rho in (rho_between(g), 0.01 * float((g**2).min()), 0.3):
            scores = duals._Scores(g, zero, cov.diagonal, zero)
            G, margin = duals._gram(cov.dense(), scores, rho, 0.0, FLOAT)
            plain = greedy_gram(cov.dense(), g, cov.diagonal, rho)
            assert np.allclose(G, plain, rtol=1e-9, atol=1e-12)
            assert 0 < margin <= 1e-9 * np.abs(plain).sum()
            G, _ = duals._gram(cov.dense(), scores, rho, 0.125, FLOAT)
            plain = greedy_gram(cov.dense() + 0.125 * np.eye(5), g, cov.diagonal, rho)
            assert np.allclose(G, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("which", ["scores", "entries", "both"])
def test_greedy_gram_margin_covers_errors_of_scores_and_entries(which):
    """All signs of all errors, at random: no eigenvalue rises by more than the margin."""
    for seed in range(8):
        cov, _, _, g, rng = greedy_problem(seed)
        rho = rho_between(g)
        dg = np.full(5, 1e-6 if which != "entries" else 0.0) * rng.random(5)
        root = np.full(5, 1e-3 if which != "scores" else 0.0) * rng.random(5)
        variance = cov.diagonal + root**2
        scores = duals._Scores(g, dg, variance, root)
        G, margin = duals._gram(cov.dense(), scores, rho, 0.0, FLOAT)
        top, worst = float(np.linalg.eigvalsh(G)[-1]), -np.inf
        for _ in range(60):
            sign = np.triu(rng.choice([-1.0, 1.0], (5, 5)))
            A = cov.dense() + np.outer(root, root) * (sign + np.triu(sign, 1).T)
            moved = greedy_gram(A, g + dg * rng.choice([-1.0, 1.0], 5), np.diagonal(A), rho)
            worst = max(worst, float(np.linalg.eigvalsh(moved)[-1]) - top)
        assert worst <= margin
        assert worst > 0 or which == "entries"


def test_greedy_gram_margin_covers_rounding(monkeypatch):
    unit = 2.0**-20
    monkeypatch.setattr(Float, "eps", unit)
    for seed in range(4):
        cov, _, _, g, _ = greedy_problem(seed)
        rho, zero = rho_between(g), np.zeros(5)
        strong = g**2 > rho
        scores = duals._Scores(g, zero, cov.diagonal, zero)
        _, margin = duals._gram(cov.dense(), scores, rho, 0.0, FLOAT)
        factor = np.where(strong, np.abs(g), 1.0)
        away = np.abs(g**2 - rho)
        weak = rho * np.maximum(cov.diagonal - rho, 0.0) / (away * (cov.diagonal - g**2))
        scale = np.sqrt(np.where(strong, 1.0 / away, weak))
        size = np.abs(cov.dense()) + np.outer(np.abs(g), np.abs(g)) + rho
        size = size + g[:, None] ** 2 + g[None, :] ** 2
        size = size * np.outer(factor, factor)
        size += np.outer(strong * (g**2 + rho), strong * (g**2 + rho))
        plain = np.abs(greedy_gram(cov.dense(), g, cov.diagonal, rho))
        blur = np.where(strong, 0.0, 16 * unit * cov.diagonal / (cov.diagonal - g**2))
        doubt = 16 * unit + blur
        due = np.outer(scale, scale) * 16 * unit * size + plain * np.add.outer(doubt, doubt)
        assert margin >= 2 * np.linalg.norm(due) * (1 - 1e-9)


def test_greedy_scores_of_a_raised_matrix_know_their_error():
    cov, support, x, _, _ = greedy_problem(1)
    for shift in (0.0, 0.25):
        A = cov.dense() + shift * np.eye(5)
        g, lost, *_ = duals._scores(support, x, shift, case_of(cov))
        value = x @ A[np.ix_(support, support)] @ x
        assert np.allclose(g, A[:, support] @ x / np.sqrt(value), rtol=1e-12)
        deviation = np.sqrt(cov.diagonal)
        root = np.sqrt(cov.error_unit * cov.weights)
        due = root * (x @ root[support])
        due += 4 * 20 * 2.0**-52 * ((x @ deviation[support]) * deviation + shift)
        assert np.allclose(lost, due / np.sqrt(value), rtol=1e-9, atol=0)
    with pytest.raises(Refused, match="explains nothing"):
        duals._scores(support, x, 0.0, case_of(covariance_of(-np.eye(5), 1.0)))


def test_greedy_dual_is_infinite_when_a_feature_left_out_may_matter():
    """Neither variance nor score of a feature outside the core may exceed rho."""
    A = np.diag([4.0, 3.0, 1.0, 1.0])
    A[0, 2] = A[2, 0] = 1.9  # of little variance, and a large score
    cov = covariance_of(A, 1.0)
    data = {"support": np.array([0]), "weights": np.array([1.0])}
    g = A[:, 0] / 2.0

    def bound(rho, core):
        return recheck(
            "greedy-dual", {**data, "rho": rho, "core": np.array(core, dtype=np.intp)}, cov, ONE
        )

    assert g[2] ** 2 == pytest.approx(0.9025)
    assert bound(1.1, [0, 1]) < np.inf
    assert bound(1.1, [0]) == np.inf  # a variance
    assert bound(0.95, [0, 1]) == np.inf  # both are a little above
    high = np.diag([4.0, 3.0, 0.85, 0.1])
    high[0, 2] = high[2, 0] = 1.8
    cov = covariance_of(high, 1.0)
    assert bound(0.83, [0, 1, 2]) < np.inf
    assert bound(0.83, [0, 1]) == np.inf
    for core in ([], [0, 0, 1, 2], [0, 1, 2, 4], [-1, 0, 1, 2]):
        assert bound(0.83, core) == np.inf
    for rho in (0.0, -1.0, np.nan, np.inf):
        assert bound(rho, [0, 1, 2]) == np.inf
    for weights in ([0.4], [2.1], [np.nan], [1.0, 0.0]):
        given = {**data, "weights": np.array(weights), "rho": 0.83, "core": np.arange(3)}
        assert recheck("greedy-dual", given, cov, ONE) == np.inf


def test_greedy_dual_rounds_variances_up(monkeypatch):
    unit, seen = 2.0**-20, []
    cov, support, x, _, _ = greedy_problem(3)
    cov.error_unit = 1e-3
    data = {"support": support, "weights": x, "rho": 0.5, "core": np.arange(5)}
    monkeypatch.setattr(Float, "eps", unit)
    monkeypatch.setattr(duals, "psd_shift", lambda *given: 0.125)
    monkeypatch.setattr(duals, "_gram", lambda *given: seen.append(given) or (np.eye(5), 0.0))
    recheck("greedy-dual", data, cov, ONE)
    due = cov.diagonal + 0.125 + 1e-3 * cov.weights + 8 * unit * cov.diagonal
    assert (seen[0][1].variance >= due * (1 - 1e-12)).all()


def test_greedy_dual_total_keeps_its_margins(monkeypatch):
    unit = 2.0**-20
    cov, support, x, _, _ = greedy_problem(2)
    data = {"support": support, "weights": x, "rho": 0.5, "core": np.arange(5)}
    monkeypatch.setattr(Float, "eps", unit)
    monkeypatch.setattr(Float, "ky_fan", lambda ar, G, k: 2.0)
    monkeypatch.setattr(duals, "_gram", lambda *given: (np.eye(5), 0.25))
    cov.error_unit = 1e-3
    plain = (2.0 + 0.5 * 2 * (1 + 4 * unit)) * (1 + 8 * unit) + 0.25 + cov.rounding(2)
    assert recheck("greedy-dual", data, cov, ONE) >= plain * (1 - 1e-9)
    monkeypatch.undo()
    monkeypatch.setattr(duals, "_gram", lambda *given: (-np.eye(5), 0.25))
    assert recheck("greedy-dual", data, cov, ONE) >= 1.25
