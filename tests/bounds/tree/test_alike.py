"""Nodes of near-duplicates, settled by the squares of their covariances."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.bounds.pairsplit import Part
from sparcipal.bounds.tree import search
from sparcipal.bounds.tree.alike import alike_features, few_alike
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import prove
from tests.support.alike_cases import alike_case
from tests.support.brute import best_value
from tests.support.replay import replay


def part_of(a, s: int, price=None, forced=()) -> Part:
    n = len(a)
    price = np.zeros(n) if price is None else price
    return Part(np.arange(n), a, np.isin(np.arange(n), forced), price, s, False, np.zeros(n))


def near_copies(seed: int, n: int, others: int, apart: float) -> np.ndarray:
    """A correlation matrix: n noisy copies of one factor, and features of their own."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, n + others))
    X[:, :n] = rng.standard_normal((200, 1)) + apart * X[:, :n]
    return np.corrcoef(X.T)


def tied(seed: int, n: int, others: int) -> tuple[np.ndarray, np.ndarray]:
    """Near-copies, and rewards at which many supports of them are worth about the same."""
    a = near_copies(seed, n, others, 0.04)
    return a, 2 * a[:, :n].mean(axis=1) - 4


@pytest.mark.parametrize("seed", range(4))
def test_few_alike_leaves_every_support_that_is_worth_more(seed):
    """Against enumeration: whatever the level, what is left out is worth no more."""
    rng = np.random.default_rng([23, seed])
    complete = short = 0
    for _ in range(150):
        case = alike_case(rng)
        part = part_of(case.a, case.s, case.price, case.forced)
        found = few_alike(part, case.group, case.level, case.costly)
        if found.complete:
            assert not case.missing(found.supports)
            complete += 1
            short += len(found.supports) < len(case.missing([]))
    assert complete > 90


def test_few_alike_leaves_few_where_features_are_alike():
    """Twelve copies of one feature to a part in a thousand: of 924 supports hardly one is left."""
    a = near_copies(0, 12, 3, 0.02)
    part = part_of(a, 6)
    best = max(np.linalg.eigvalsh(a[np.ix_(S, S)])[-1] for S in combinations(range(12), 6))
    found = few_alike(part, np.arange(12), best + 1e-9, costly=False)
    assert found.complete
    assert 1 <= len(found.supports) <= 20


def test_alike_features_are_those_that_few_others_stand_beside():
    a = near_copies(1, 9, 4, 0.05)
    assert alike_features(part_of(a, 4)).tolist() == list(range(9))
    assert alike_features(part_of(a, 4, forced=[2])).tolist() == [0, 1, *range(3, 9)]
    assert alike_features(part_of(near_copies(1, 6, 11, 0.05), 4)) is None
    assert alike_features(part_of(np.eye(5), 2)) is None


@pytest.mark.parametrize("seed", range(6))
def test_prove_settles_near_copies_and_replays(seed):
    """With prices of all kinds the tree is one node, and value <= optimum <= bound."""
    rng = np.random.default_rng(seed)
    a, rewards = tied(seed, 9, 3)
    price = (np.zeros(12), rng.random(12) / 9, rewards)[seed % 3]
    question = TreeQuestion(prices=price, tol=1e-9)
    proof = prove(a, 4, question)
    best = max(
        np.linalg.eigvalsh(a[np.ix_(S, S)])[-1] - price[list(S)].sum()
        for q in range(1, 5)
        for S in combinations(range(12), q)
    )
    assert proof.status == "optimal"
    assert proof.value == pytest.approx(best, rel=1e-9)
    assert best * (1 - 1e-12) <= replay(proof.log, a) <= proof.bound


def test_prove_ends_a_node_of_near_copies_alike_and_gives_up_in_vain(monkeypatch):
    a, price = tied(3, 14, 2)
    ends = [step.get("end") for step in prove(a, 7, TreeQuestion(prices=price)).log]
    assert "alike" in ends
    monkeypatch.setattr(search, "ATTEMPTS", 0)
    ends = [step.get("end") for step in prove(a, 7, TreeQuestion(prices=price)).log]
    assert "alike" not in ends


def test_sparse_pca_proves_components_that_share_near_copies():
    """Two components of twelve features, nine of them copies: proved, and rechecked."""
    a = near_copies(4, 9, 3, 0.05)
    result = sparse_pca(covariance=a, n_components=2, n_nonzero_coefs=4, certify="full")
    assert result.status.value == "optimal"
    assert result.value == pytest.approx(best_value(a, (4, 4)), rel=1e-6)
    assert verify(result, covariance=a)
