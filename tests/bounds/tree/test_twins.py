"""Features that are multiples of others."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.tree import search as exact
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import prove
from sparcipal.bounds.tree.twins import find_twins
from tests.support.brute import best_value
from tests.support.proof_cases import optimum
from tests.support.replay import replay


@pytest.mark.parametrize("nonnegative", [False, True])
def test_prove_is_optimal_and_replays_when_features_are_multiples(nonnegative):
    """Multiples of one feature: the optimum is that of brute force, and the replay agrees."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 10))
    for j, factor in ((3, 1.0), (4, 0.5), (7, 0.25), (8, -0.5)):
        X[:, j] = factor * X[:, 0]
    A = X.T @ X / 30
    assert find_twins(A, 4, nonnegative).any
    proof = prove(A, 4, TreeQuestion(nonnegative=nonnegative))
    best = optimum(A, 4, nonnegative, np.zeros(10))
    assert proof.value == pytest.approx(best, rel=1e-9)
    assert best * (1 - 1e-12) <= replay(proof.log, A) <= proof.bound


def test_prove_branches_on_features_together_with_their_copies(monkeypatch):
    """With nothing fixed at the root, features and their copies are branched on together."""
    monkeypatch.setattr(exact, "ROOT_SMOOTHING", ())
    X = np.random.default_rng(6).standard_normal((60, 12))
    X[:, 6:] = X[:, :6] * np.linspace(1.0, 0.5, 6)
    A = X.T @ X / 60
    proof = prove(A, 4)
    assert proof.status == "optimal"
    assert proof.value == pytest.approx(best_value(A, (4,)), rel=1e-9)
    assert replay(proof.log, A) <= proof.bound
