"""A proof on a core of the features that holds for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.tree import core
from sparcipal.bounds.tree.core import prove_large
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.problem.covariance import covariance_of


def covariance(p: int, seed: int = 0, n: int = 20) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((n, p))
    return X.T @ X / n


def test_prove_large_refuses_sizes_and_incumbents_that_do_not_fit():
    cov = covariance_of(covariance(6))
    for s in (0, 7):
        with pytest.raises(ValueError, match=f"between 1 and the number of features 6, got {s}"):
            prove_large(cov, s)
    for support in ([], [0, 1, 2]):
        with pytest.raises(ValueError, match="incumbent must have between 1 and 2 features"):
            prove_large(cov, 2, TreeQuestion(incumbent=(np.array(support, dtype=int), 1.0)))


def _rounds(monkeypatch) -> list[tuple[int, float, float]]:
    """Core, level and pads of every round from now on."""
    seen, own = [], core._Extension._round

    def told(self, features, split, level, gain):
        seen.append((features.size, level, self.pad))
        return own(self, features, split, level, gain)

    monkeypatch.setattr(core._Extension, "_round", told)
    return seen


def test_no_round_repeats_another_where_the_core_stays_above_the_level(monkeypatch):
    X = np.random.default_rng(1).standard_t(1.5, (20, 70))
    rounds = _rounds(monkeypatch)
    found = prove_large(covariance_of(np.cov(X.T)), 8, TreeQuestion(effort="fast"), first_core=25)
    assert found.status == "optimal"
    assert len(rounds) == len(set(rounds))
    assert min(pad for _, _, pad in rounds) < core.PAD


def test_a_level_is_lowered_within_the_largest_core_and_told_where_that_does_not_reach(monkeypatch):
    monkeypatch.setattr(core, "MOST_CORE", 40)
    rounds = _rounds(monkeypatch)
    cov = covariance_of(covariance(150))
    first = prove_large(cov, 6, TreeQuestion(effort="fast"), first_core=12)
    full = prove_large(cov, 6, TreeQuestion(), first_core=12)
    assert max(size for size, _, _ in rounds) <= 40
    assert full.status == "nodes"
    assert full.value < full.bound < 0.9 * first.bound
