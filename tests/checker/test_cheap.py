"""Cheap bounds, redone: formulas and margins."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import Screened
from sparcipal.checker import cheap as bounds
from sparcipal.checker import dropped as screened
from sparcipal.checker import kyfan
from sparcipal.checker.covariance import Question, covariance_of, covariance_of_data
from tests.support.margins import LESS, E, charges, from_data, matrices, one


@pytest.mark.usefixtures("coarse")
def test_ky_fan_keeps_its_margins(factored):
    for A, _ in matrices(4):
        for k in (1, 2, 3):
            for M in (A, A - 2 * np.eye(6)):
                w, Q = np.linalg.eigh(M)
                nu, lifted = w[6 - k], np.maximum(w - w[6 - k], 0.0)
                claims = [bounds.ky_fan(M, k)]
                claims.append(kyfan._ky_fan(M, w[6 - k :], Q[:, 6 - k :], np.zeros(0), k))
                size = np.abs(np.diagonal(M)).sum() + lifted.sum() + 7 * abs(nu)
                size = min(size, np.abs(lifted.sum() - np.trace(M)) + lifted.sum() + 7 * abs(nu))
                for claim, H in zip(claims, factored[-2:]):
                    level = H[0, 0] + M[0, 0] - ((Q * lifted) @ Q.T)[0, 0]
                    delta = 2 * (6 + k + 4) * E * size
                    assert level > nu
                    due = k * (level + delta) + lifted.sum() * (1 + 6 * E)
                    assert claim >= due - 1e-9 * abs(due)


@pytest.mark.usefixtures("coarse")
def test_psd_shift_keeps_its_margin(factored):
    A = np.diag([1.0, 0.5, 0.25])
    shift = bounds.psd_shift(covariance_of(A, 1.0))
    tested = factored[-1][0, 0] - 1.0
    assert tested > 0
    assert shift - tested >= 2 * 5 * E * 2.75 * LESS
    assert bounds.psd_shift(from_data()) == 0.0


@pytest.mark.usefixtures("coarse")
def test_proved_tops_and_rayleigh_keep_their_margins():
    for A, _ in matrices(4):
        blocks = np.array([A[:3, :3], A[2:5, 2:5]])
        tops = np.linalg.eigvalsh(blocks)[:, -1]
        room = 2 * 7 * E * (np.trace(blocks, axis1=1, axis2=2) + 4 * tops)
        assert (bounds._proved_tops(blocks, tops) >= (tops + 3 * room) * LESS).all()
        vectors = np.array([[0.6, 0.0, 0.8], [1.0, 2.0, -2.0]])
        plain = np.array([v @ b @ v / (v @ v) for v, b in zip(vectors, blocks)])
        due = 4 * 7 * E * np.linalg.norm(blocks, axis=(1, 2))
        assert (bounds._rayleigh(blocks, vectors) <= plain - due * LESS).all()


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("nonnegative", [False, True])
def test_cheap_bounds_keep_their_margins(nonnegative, monkeypatch):
    cov = from_data()
    A, d = cov.dense(), cov.diagonal
    for sizes in ((3,), (2, 2)):
        question, s, k, m = one(*sizes, nonnegative=nonnegative), max(sizes), len(sizes), sum(sizes)
        top = np.sort(d)[::-1][:m].sum()
        assert bounds.trace({}, cov, question) >= top * (1 + m * E) * LESS
        rows = np.sort(d + charges(A, s, nonnegative).sum(axis=1))[::-1][:k].sum()
        assert bounds.gershgorin({}, cov, question) >= rows * (1 + (s + k + 4) * E) * LESS
        c = 0.5
        rho = np.sort((d - c) ** 2 + (charges(A, s, nonnegative) ** 2).sum(axis=1))[::-1][:m].sum()
        plain = k * c + np.sqrt(k * rho)
        found = bounds.frobenius({"c": c}, cov, question)
        assert found >= plain * (1 + (m + s + 16) * E) * LESS
        monkeypatch.setattr(bounds, "ky_fan", lambda M, k: float(np.trace(M)))
        moved = np.clip(A - np.diag(d), 0.0 if nonnegative else -0.1, 0.1)
        paid = charges(moved, s, nonnegative).sum() * (1 + (s + 8) * E)
        assert bounds.clip({"rho": 0.1}, cov, question) >= (d.sum() + paid) * LESS
        monkeypatch.undo()
        monkeypatch.setattr(bounds, "EPS", E)


@pytest.mark.usefixtures("coarse")
def test_eigenvalues_from_samples_keep_their_margin(monkeypatch):
    X = np.random.default_rng(1).standard_normal((5, 30))
    cov = covariance_of_data(X, True, False, None, 1.0)[0]
    monkeypatch.setattr(bounds, "FACTOR_LIMIT", 10)
    monkeypatch.setattr(bounds, "ky_fan", lambda M, k: float(np.linalg.eigvalsh(M)[-k:].sum()))
    cov.error_unit = 0.0
    plain = np.linalg.eigvalsh(cov.dense())[-2:].sum()
    due = 2 * 32 * E * np.trace(cov.gram())
    assert bounds.eigenvalues({}, cov, one(2, 2)) >= (plain + due) * LESS


@pytest.mark.usefixtures("coarse")
def test_enumeration_keeps_its_margins(monkeypatch):
    cov = from_data(5)
    monkeypatch.setattr(bounds, "_proved_tops", lambda blocks, guess: guess)
    for question in (one(2), one(2, 1)):
        best = bounds.enumeration({}, cov, question)
        monkeypatch.setattr(bounds, "EPS", 0.0)
        plain = bounds.enumeration({}, cov, question)
        monkeypatch.setattr(bounds, "EPS", E)
        assert best >= plain * (1 + 2 * question.k * E) * LESS
    # supports that are passed over cost what they have more, at every step down to one
    signs = one(3, nonnegative=True)
    lost = 1.0
    monkeypatch.setattr(bounds, "_scored", lambda *given: (np.array([2.0]), [(0,)], lost))
    assert bounds.enumeration({}, cov, signs) >= (2.0 + 2 * lost) * (1 + 2 * E) * LESS


def test_scored_counts_supports_that_are_passed_over(monkeypatch):
    A = np.array([[2.0, -0.5, 0.3], [-0.5, 2.0, 0.2], [0.3, 0.2, 1.0]])
    mixed = []

    def quotients(blocks, vectors):
        both = (vectors.min(axis=1) < -1e-7) & (vectors.max(axis=1) > 1e-7)
        mixed.extend(both)
        return bounds._proved_tops(blocks, np.linalg.eigvalsh(blocks)[:, -1]) - 0.25 * both

    monkeypatch.setattr(bounds, "_rayleigh", quotients)
    _, supports, lost = bounds._scored(A, [1, 2], True)
    assert any(mixed)
    assert lost == pytest.approx(0.25)
    assert (0, 1) not in supports


@pytest.mark.parametrize("nonnegative", [False, True])
def test_bounds_hold_for_given_matrices_that_are_not_psd(nonnegative):
    """Entries may be larger than variances allow; what is missing is in every rule."""
    A = np.array([[1.0, 1.05, 0.0], [1.05, 1.0, 0.0], [0.0, 0.0, 0.5]])
    question = Question((2,), nonnegative, True, 0.0)
    cov = covariance_of(A, 1.0)
    assert bounds.gershgorin({}, cov, question) >= 2.05
    assert bounds.trace({}, cov, question) >= 2.05
    given = Screened(A[:2, :2], np.array([0, 1]), np.diagonal(A).copy())
    own = screened.of_given(given, np.array([0, 1]), 1.0)
    found = screened.touching({"rule": "variances"}, 9.0, own, Question((3,), False, True, 0.0))
    assert found >= 2.0 + 2 * 0.05 + 0.5


@pytest.mark.parametrize("nonnegative", [False, True])
def test_gershgorin_is_tight_for_rank_one(nonnegative):
    """Of rank one: every entry is as large as variances allow."""
    for row in ([2.0, 1.5, 1.0, 0.5], [1.0, 1.0, 1.0, 1.0]):
        X = np.outer([1.0, -1.0, 2.0, -2.0], row)
        cov = covariance_of_data(X, True, False, None, 1.0)[0]
        for s in (1, 2, 3, 4):
            plain = cov.dense()[0, :s].sum()
            found = bounds.gershgorin({}, cov, Question((s,), nonnegative, True, 0.0))
            assert plain * (1 - 1e-14) <= found <= plain * (1 + 1e-11)


def test_psd_shift_is_what_is_missing_to_a_psd_matrix():
    A = np.diag([1.0, 1e-3, 0.5])
    A[1, 1] = -1e-9
    own = covariance_of(A, 1.0)
    shift = bounds.psd_shift(own)
    assert 1e-9 <= shift <= 4e-9
    assert bounds.psd_shift(covariance_of(np.diag([1.0, -1e6]), 1.0)) >= 1e6
    assert bounds.psd_shift(covariance_of(np.eye(3), 1.0)) <= 1e-13
