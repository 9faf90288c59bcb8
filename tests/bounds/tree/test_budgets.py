"""Everything that can end a branch and bound early leaves a bound that holds and replays."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.bounds.tree import frontier, incumbent
from sparcipal.bounds.tree import search as exact
from sparcipal.bounds.tree.frontier import Frontier
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import prove
from sparcipal.problem.monitor import Monitor
from tests.support.proof_cases import optimum
from tests.support.replay import replay

P, S = 30, 7
PRICED = 14


def noise(p=P, seed=0):
    """Pure noise is what needs branching."""
    X = np.random.default_rng(seed).standard_normal((2 * p, p))
    return X.T @ X / (2 * p)


@pytest.fixture(scope="module")
def complete():
    found = prove(noise(), S)
    assert found.status == "optimal"
    assert found.nodes > 3
    return found


def holds(proof, complete, A=None):
    """The bound is valid, and the log proves it."""
    assert proof.value <= complete.value * (1 + 1e-12)
    assert proof.bound >= complete.value
    assert replay(proof.log, noise() if A is None else A) <= proof.bound


# --- open nodes ---


def test_the_most_promising_node_comes_first():
    nodes = Frontier()
    for guess in (2.0, 5.0, 3.0, 5.0):
        nodes.push((guess, len(nodes)), guess)
    assert [nodes.pop() for _ in range(4)] == [(5.0, 1), (5.0, 3), (3.0, 2), (2.0, 0)]


def test_beyond_the_limit_the_newest_node_comes_first(monkeypatch):
    monkeypatch.setattr(frontier, "MAX_OPEN", 2)
    nodes = Frontier()
    for name, guess in (("a", 1.0), ("b", 2.0), ("c", 9.0), ("d", 0.5)):
        nodes.push(name, guess)
    assert sorted(nodes) == ["a", "b", "c", "d"]
    assert [nodes.pop() for _ in range(len(nodes))] == ["d", "c", "b", "a"]


@pytest.mark.parametrize("most", [0, 1, 3, 10])
def test_depth_first_proves_the_same(monkeypatch, complete, most):
    monkeypatch.setattr(frontier, "MAX_OPEN", most)
    proof = prove(noise(), S, TreeQuestion(incumbent=([0], 0.0)))
    assert proof.status == "optimal"
    assert proof.value == pytest.approx(complete.value, rel=1e-12)
    holds(proof, complete)


@pytest.mark.parametrize("limit", [2, 3])
def test_depth_first_search_proves_a_bound_when_stopped_early(monkeypatch, complete, limit):
    monkeypatch.setattr(frontier, "MAX_OPEN", 1)
    proof = prove(noise(), S, TreeQuestion(max_nodes=limit))
    assert proof.status == "nodes"
    holds(proof, complete)


# --- the size of the log ---


@pytest.mark.parametrize("limit", [0, 2_000, 5_000])
def test_tree_ends_with_a_valid_bound_when_its_log_grows_too_large(monkeypatch, complete, limit):
    monkeypatch.setattr(exact, "LOG_LIMIT", limit)
    proof = prove(noise(), S)
    assert proof.status == "memory"
    assert proof.bound > proof.value
    assert proof.nodes < complete.nodes
    holds(proof, complete)


def test_a_log_that_is_not_kept_takes_no_memory(monkeypatch, complete):
    monkeypatch.setattr(exact, "LOG_LIMIT", 0)
    proof = prove(noise(), S, TreeQuestion(keep_log=False))
    assert (proof.status, proof.log) == ("optimal", [])
    assert proof.value == complete.value


# --- interruption ---


def stopping_after(count):
    calls = iter(range(10**9))
    return Monitor(callback=lambda progress: next(calls) >= count)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_tree_proves_a_bound_when_interrupted_anywhere(nonnegative):
    A, s = noise(20, seed=3), 5
    calls = []
    whole = prove(
        A, s, TreeQuestion(nonnegative=nonnegative, monitor=Monitor(callback=calls.append))
    )
    assert whole.status == "optimal"
    rng = np.random.default_rng(int(nonnegative))
    for count in rng.integers(0, len(calls) + 1, 15):
        start = rng.choice(20, size=s, replace=False)
        proof = prove(
            A,
            s,
            TreeQuestion(
                nonnegative=nonnegative,
                monitor=stopping_after(count),
                incumbent=(start, 0.0) if count % 2 else None,
            ),
        )
        assert proof.status in ("optimal", "user")
        holds(proof, whole, A)


def test_interrupted_calls_give_certificates_that_verify():
    A = noise(20, seed=3)
    best = sparse_pca(covariance=A, n_nonzero_coefs=5, certify="full")
    assert best.status.value == "optimal"
    for count in range(8):
        calls = iter(range(10**9))
        result = sparse_pca(
            covariance=A,
            n_nonzero_coefs=5,
            certify="full",
            callback=lambda progress, calls=calls, count=count: next(calls) >= count,
        )
        assert result.status.value in ("optimal", "interrupted")
        assert result.value <= best.bound
        assert result.bound >= best.value
        assert verify(result, covariance=A)


# --- prices ---


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("level", [0.0, 0.02, 0.2, 5.0])
def test_tree_with_prices_agrees_with_enumeration(level, nonnegative):
    A = noise(PRICED, seed=5)
    price = level * np.random.default_rng(6).random(PRICED)
    proof = prove(A, 4, TreeQuestion(prices=price, nonnegative=nonnegative))
    best = optimum(A, 4, nonnegative, price)
    assert proof.status == "optimal"
    assert proof.value == pytest.approx(best, abs=1e-9)
    assert proof.bound >= best - 1e-12
    assert replay(proof.log, A) <= proof.bound


def test_high_prices_leave_one_feature():
    A = noise(PRICED, seed=5)
    price = np.full(PRICED, 10.0)
    proof = prove(A, 4, TreeQuestion(prices=price))
    assert proof.support.tolist() == [int(np.argmax(np.diagonal(A)))]
    assert proof.value == pytest.approx(np.diagonal(A).max() - 10.0)


def test_prices_are_part_of_the_log():
    A = noise(PRICED, seed=5)
    price = np.random.default_rng(6).random(PRICED) * 0.2
    log = prove(A, 4, TreeQuestion(prices=price)).log
    np.testing.assert_allclose(log[0]["prices"], price, rtol=1e-15)


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_tree_with_prices_has_a_valid_bound_at_a_node_limit(limit):
    A = noise(P, seed=7)
    price = 0.1 * np.random.default_rng(8).random(P)
    whole = prove(A, 6, TreeQuestion(prices=price))
    proof = prove(A, 6, TreeQuestion(prices=price, max_nodes=limit))
    assert whole.status == "optimal"
    holds(proof, whole, A)


# --- the work of exchanges, and certificates handed on ---


def test_exchanges_end_with_their_budget(monkeypatch):
    A = noise(60, seed=9)
    rounder = incumbent.Rounder(A, 20, np.zeros(60), False)
    free = rounder.exchange(np.arange(20))
    spent = rounder.spent()
    monkeypatch.setattr(incumbent, "EXCHANGE_WORK", 0.2 * spent)
    bounded = incumbent.Rounder(A, 20, np.zeros(60), False)
    found = bounded.exchange(np.arange(20))
    assert bounded.spent() < 0.3 * spent
    assert np.linalg.eigvalsh(A[:20, :20])[-1] <= found.value <= free.value
    assert bounded.spent() == 0.0


@pytest.mark.parametrize("nonnegative", [False, True])
def test_any_start_gives_a_proof(nonnegative):
    A = noise(20, seed=3)
    other = prove(noise(20, seed=4), 8).again
    for s in (1, 3, 5):
        alone = prove(A, s, TreeQuestion(nonnegative=nonnegative))
        proof = prove(A, s, TreeQuestion(nonnegative=nonnegative, start=other))
        assert proof.status == "optimal"
        assert proof.value == pytest.approx(alone.value, rel=1e-12)
        assert replay(proof.log, A) <= proof.bound
    shorter = prove(noise(12), 3).again
    assert prove(A, 3, TreeQuestion(start=shorter)).status == "optimal"
