"""Cheap bounds, redone: formulas and margins."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import Screened
from sparcipal.checker import cheap as bounds
from sparcipal.checker import dropped as screened
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget
from sparcipal.checker.cheap import psd_shift
from sparcipal.checker.covariance import Question, covariance_of, covariance_of_data
from sparcipal.checker.family import Case
from sparcipal.checker.records import DroppedPart
from tests.support.margins import LESS, E, charges, from_data, one
from tests.support.replay import FLOAT, recheck


@pytest.mark.usefixtures("coarse")
def test_psd_shift_keeps_its_margin(factored):
    A = np.diag([1.0, 0.5, 0.25])
    shift = psd_shift(Case(covariance_of(A, 1.0), None, FLOAT, Budget()))
    tested = factored[-1][0, 0] - 1.0
    assert tested > 0
    assert shift - tested >= 2 * 5 * E * 1.75 * LESS
    assert psd_shift(Case(from_data(), None, FLOAT, Budget())) == 0.0


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("nonnegative", [False, True])
def test_cheap_bounds_keep_their_margins(nonnegative, monkeypatch):
    cov = from_data()
    A, d = cov.dense(), cov.diagonal
    for sizes in ((3,), (2, 2)):
        question, s, k, m = one(*sizes, nonnegative=nonnegative), max(sizes), len(sizes), sum(sizes)
        top = np.sort(d)[::-1][:m].sum()
        assert recheck("trace", {}, cov, question) >= top * (1 + m * E) * LESS
        rows = np.sort(d + charges(A, s, nonnegative).sum(axis=1))[::-1][:k].sum()
        assert recheck("gershgorin", {}, cov, question) >= rows * (1 + (s + k + 4) * E) * LESS
        c = 0.5
        rho = np.sort((d - c) ** 2 + (charges(A, s, nonnegative) ** 2).sum(axis=1))[::-1][:m].sum()
        plain = k * c + np.sqrt(k * rho)
        found = recheck("frobenius", {"c": c}, cov, question)
        assert found >= plain * (1 + (m + s + 16) * E) * LESS
        monkeypatch.setattr(Float, "ky_fan", lambda ar, M, k: float(np.trace(M)))
        moved = np.clip(A - np.diag(d), 0.0 if nonnegative else -0.1, 0.1)
        paid = charges(moved, s, nonnegative).sum() * (1 + (s + 7) * E)
        assert recheck("clip", {"rho": 0.1}, cov, question) >= (d.sum() + paid) * LESS
        monkeypatch.undo()
        monkeypatch.setattr(Float, "eps", E)


@pytest.mark.usefixtures("coarse")
def test_eigenvalues_from_samples_keep_their_margin(monkeypatch):
    X = np.random.default_rng(1).standard_normal((5, 30))
    cov = covariance_of_data(X, True, False, None, 1.0)[0]
    monkeypatch.setattr(bounds, "FACTOR_LIMIT", 10)
    top = lambda ar, M, k: float(np.linalg.eigvalsh(M)[-k:].sum())  # noqa: E731
    monkeypatch.setattr(Float, "ky_fan", top)
    cov.error_unit = 0.0
    plain = np.linalg.eigvalsh(cov.dense())[-2:].sum()
    due = 2 * 32 * E * np.trace(cov.gram())
    assert recheck("eigenvalues", {}, cov, one(2, 2)) >= (plain + due) * LESS


@pytest.mark.parametrize("nonnegative", [False, True])
def test_bounds_hold_for_given_matrices_that_are_not_psd(nonnegative):
    """Entries may be larger than variances allow; what is missing is in every rule."""
    A = np.array([[1.0, 1.05, 0.0], [1.05, 1.0, 0.0], [0.0, 0.0, 0.5]])
    question = Question((2,), nonnegative, True, 0.0)
    cov = covariance_of(A, 1.0)
    assert recheck("gershgorin", {}, cov, question) >= 2.05
    assert recheck("trace", {}, cov, question) >= 2.05
    given = Screened(A[:2, :2], np.array([0, 1]), np.diagonal(A).copy())
    own = screened.of_given(given, np.array([0, 1]), 1.0)
    rule = DroppedPart(s=3, inside=9.0, rule="variances")
    found = screened.touching(rule, 9.0, Case(own, question.alone(3), FLOAT, Budget()))
    assert found >= 2.0 + 2 * 0.05 + 0.5


@pytest.mark.parametrize("nonnegative", [False, True])
def test_gershgorin_is_tight_for_rank_one(nonnegative):
    """Of rank one: every entry is as large as variances allow."""
    for row in ([2.0, 1.5, 1.0, 0.5], [1.0, 1.0, 1.0, 1.0]):
        X = np.outer([1.0, -1.0, 2.0, -2.0], row)
        cov = covariance_of_data(X, True, False, None, 1.0)[0]
        for s in (1, 2, 3, 4):
            plain = cov.dense()[0, :s].sum()
            found = recheck("gershgorin", {}, cov, Question((s,), nonnegative, True, 0.0))
            assert plain * (1 - 1e-14) <= found <= plain * (1 + 1e-11)


def test_psd_shift_is_what_is_missing_to_a_psd_matrix():
    A = np.diag([1.0, 1e-3, 0.5])
    A[1, 1] = -1e-9
    own = covariance_of(A, 1.0)
    shift = psd_shift(Case(own, None, FLOAT, Budget()))
    assert 1e-9 <= shift <= 4e-9
    assert psd_shift(Case(covariance_of(np.diag([1.0, -1e6]), 1.0), None, FLOAT, Budget())) >= 1e6
    assert psd_shift(Case(covariance_of(np.eye(3), 1.0), None, FLOAT, Budget())) <= 1e-13
