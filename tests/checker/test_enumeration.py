"""Enumerated supports, redone: proofs of many small matrices, packings, margins."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.checker import enumeration
from sparcipal.checker.arithmetic import Float
from tests.support.margins import LESS, E, from_data, matrices, one
from tests.support.replay import FLOAT, recheck


@pytest.mark.usefixtures("coarse")
def test_proved_tops_and_rayleigh_keep_their_margins():
    for A, _ in matrices(4):
        blocks = np.array([A[:3, :3], A[2:5, 2:5]])
        tops = np.linalg.eigvalsh(blocks)[:, -1]
        room = 2 * 7 * E * (np.trace(blocks, axis1=1, axis2=2) + 4 * tops)
        assert (enumeration.proved_tops(blocks, tops, FLOAT) >= (tops + 3 * room) * LESS).all()
        vectors = np.array([[0.6, 0.0, 0.8], [1.0, 2.0, -2.0]])
        plain = np.array([v @ b @ v / (v @ v) for v, b in zip(vectors, blocks)])
        due = 4 * 7 * E * np.linalg.norm(blocks, axis=(1, 2))
        assert (enumeration._rayleigh(blocks, vectors, FLOAT) <= plain - due * LESS).all()


@pytest.mark.usefixtures("coarse")
def test_enumeration_keeps_its_margins(monkeypatch):
    cov = from_data(5)
    monkeypatch.setattr(enumeration, "proved_tops", lambda blocks, guess, ar: guess)
    for question in (one(2), one(2, 1)):
        best = recheck("enumeration", {}, cov, question)
        monkeypatch.setattr(Float, "eps", 0.0)
        plain = recheck("enumeration", {}, cov, question)
        monkeypatch.setattr(Float, "eps", E)
        assert best >= plain * (1 + 2 * question.k * E) * LESS
    # supports that are passed over cost what they have more, at every step down to one
    signs = one(3, nonnegative=True)
    lost = 1.0
    monkeypatch.setattr(enumeration, "_scored", lambda *given: ([2.0], [(0,)], lost))
    assert recheck("enumeration", {}, cov, signs) >= (2.0 + 2 * lost) * (1 + 2 * E) * LESS


def test_scored_counts_supports_that_are_passed_over(monkeypatch):
    A = np.array([[2.0, -0.5, 0.3], [-0.5, 2.0, 0.2], [0.3, 0.2, 1.0]])
    mixed = []

    def quotients(blocks, vectors, ar):
        both = (vectors.min(axis=1) < -1e-7) & (vectors.max(axis=1) > 1e-7)
        mixed.extend(both)
        return enumeration.proved_tops(blocks, np.linalg.eigvalsh(blocks)[:, -1], ar) - 0.25 * both

    monkeypatch.setattr(enumeration, "_rayleigh", quotients)
    _, supports, lost = enumeration._scored(A, [1, 2], True, FLOAT)
    assert any(mixed)
    assert lost == pytest.approx(0.25)
    assert (0, 1) not in supports
