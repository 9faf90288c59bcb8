"""A long branch and bound in rounds of subtrees: the same proof on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.tree import search as exact
from sparcipal.bounds.tree import subtrees
from sparcipal.bounds.tree.log import ProofLog
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import prove
from sparcipal.problem.monitor import Monitor
from tests.support.proof_cases import one_case, optimum
from tests.support.replay import replay


@pytest.fixture(autouse=True)
def rounds(monkeypatch):
    """Small rounds from the first node on; nodes leave more to their children than they would."""
    monkeypatch.setattr(exact, "ALONE", 0.0)
    monkeypatch.setattr(exact, "ROOT_SMOOTHING", ())
    monkeypatch.setattr(exact, "NODE_STEPS", 30)
    monkeypatch.setattr(subtrees, "SUBTREES", 4)
    monkeypatch.setattr(subtrees, "WORK", 2e7)


def noise(p, n):
    """Pure noise is what needs branching."""
    X = np.random.default_rng(0).standard_normal((n, p))
    return X.T @ X / n


A, S = noise(40, 400), 8


@pytest.fixture(scope="module")
def complete():
    """The proof that all others are compared with, without rounds."""
    return exact.prove(A, S)


def same(one, two):
    """Down to the log, bit by bit."""
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and np.array_equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[name], two[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two


def same_proof(one, two):
    fields = ("value", "support", "bound", "status", "nodes", "n_eigen", "work", "log")
    return all(same(getattr(one, name), getattr(two, name)) for name in fields)


@pytest.mark.parametrize("block", range(4))
def test_subtrees_agree_with_enumeration(block, monkeypatch):
    monkeypatch.setattr(subtrees, "SUBTREES", 2)
    monkeypatch.setattr(subtrees, "WORK", 1.0)
    for seed in range(10 * block, 10 * block + 10):
        assert one_case(seed) == [], f"seed {seed}"


@pytest.mark.parametrize(
    ("A", "s", "question"),
    [
        (noise(30, 600), 6, {}),
        (noise(30, 600), 6, {"nonnegative": True}),
        (noise(30, 600), 6, {"prices": np.full(30, 0.01)}),
    ],
)
def test_threads_do_not_change_the_proof(A, s, question):
    alone = exact.prove(A, s, TreeQuestion(**question))
    assert alone.nodes > 5
    assert alone.status == "optimal"
    assert same_proof(exact.prove(A, s, TreeQuestion(n_jobs=3, **question)), alone)
    assert replay(alone.log, A) <= alone.bound


def test_rounds_find_what_one_tree_finds(complete):
    rounds = exact.prove(A, S)
    assert np.array_equal(rounds.support, complete.support)
    assert rounds.bound == pytest.approx(complete.bound, rel=1e-12)


@pytest.mark.parametrize("limit", [{"max_nodes": 8}, {"effort": 6e7}])
def test_budgets_do_not_depend_on_threads(limit, complete):
    alone = exact.prove(A, S, TreeQuestion(**limit))
    assert alone.status == "nodes"
    assert alone.nodes <= limit.get("max_nodes", np.inf)
    assert same_proof(exact.prove(A, S, TreeQuestion(n_jobs=3, **limit)), alone)
    assert replay(alone.log, A) <= alone.bound
    assert alone.bound >= complete.value


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_stop_leaves_a_valid_bound(n_jobs, complete):
    monitor = Monitor(callback=lambda progress: (progress.nodes or 0) > 6)
    proof = exact.prove(A, S, TreeQuestion(monitor=monitor, n_jobs=n_jobs))
    assert proof.status == "user"
    assert replay(proof.log, A) <= proof.bound
    assert proof.bound >= complete.value


def test_subtrees_prove_the_same_without_a_log():
    B = noise(30, 600)
    kept, bare = exact.prove(B, 6), exact.prove(B, 6, TreeQuestion(keep_log=False, n_jobs=2))
    assert bare.log == []
    assert (bare.value, bare.bound, bare.nodes) == (kept.value, kept.bound, kept.nodes)


@pytest.mark.parametrize("alone", [0.0, np.inf])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_log_that_is_not_kept_changes_nothing(alone, nonnegative, monkeypatch):
    """Nor which features the root eliminated, nor which supports were looked at before."""
    monkeypatch.setattr(exact, "ALONE", alone)
    monkeypatch.setattr(subtrees, "WORK", 1.0)
    if nonnegative:
        B = noise(8, 40) - 0.35 * (1 - np.eye(8))
        B += max(0.0, 1e-9 - float(np.linalg.eigvalsh(B)[0])) * np.eye(8)
    else:
        B = noise(16, 32) + 0.4 * np.diag(np.arange(16) % 3 == 0)
    question = {"nonnegative": nonnegative, "incumbent": (np.array([0]), 0.0)}
    kept = exact.prove(B, 6 if nonnegative else 4, TreeQuestion(**question))
    bare = exact.prove(B, 6 if nonnegative else 4, TreeQuestion(keep_log=False, **question))
    for name in ("value", "bound", "status", "nodes", "n_eigen", "eliminated"):
        assert getattr(bare, name) == getattr(kept, name), name


def test_nodes_of_a_log_that_is_not_kept_are_told_apart():
    log = ProofLog(False)
    root, _ = log.node(-1, "root", [])
    positions = {root, log.node(root, "in", [0])[0], log.node(root, "out", [0])[0]}
    assert len(positions) == 3
    assert min(positions) == root == 1


@pytest.mark.parametrize("seed", range(3))
def test_supports_that_shrink_in_several_subtrees_are_looked_at_once(seed, monkeypatch):
    """Supports shrink to the same ones in several subtrees; each is looked at once."""
    monkeypatch.setattr(exact, "ALONE", 0.0)
    monkeypatch.setattr(exact, "ROOT_SMOOTHING", ())
    monkeypatch.setattr(exact, "NODE_STEPS", 30)
    monkeypatch.setattr(subtrees, "SUBTREES", 3)
    monkeypatch.setattr(subtrees, "WORK", 1.0)
    X = np.random.default_rng(seed).standard_normal((40, 8))
    A = X.T @ X / 40
    A = A - 0.35 * (1 - np.eye(8))
    A += max(0.0, 1e-9 - float(np.linalg.eigvalsh(A)[0])) * np.eye(8)
    proof = prove(A, 6, TreeQuestion(nonnegative=True))
    assert proof.status == "optimal"
    assert proof.value == pytest.approx(optimum(A, 6, True, np.zeros(8)), rel=1e-7)
    assert replay(proof.log, A) <= proof.bound
