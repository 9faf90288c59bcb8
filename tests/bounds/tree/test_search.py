"""Branch and bound: known optima, enumeration, and everything that can stop or mislead it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from sparcipal.bounds.pairsplit import split_matrix
from sparcipal.bounds.tree import search as exact
from sparcipal.bounds.tree.core import prove_large
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import Search, prove
from sparcipal.bounds.tree.twins import find_twins
from sparcipal.problem.covariance import covariance_of_data
from sparcipal.problem.monitor import Monitor
from tests.support.places import data_file
from tests.support.proof_cases import one_case, one_large_case, optimum
from tests.support.replay import replay

PITPROPS = {
    2: 1.954,
    3: 2.4753313532,
    4: 2.9374789467,
    5: 3.4061549468,
    6: 3.7709595523,
    7: 3.9961896449,
    8: 4.0686073272,
    9: 4.1386469071,
    10: 4.1726376616,
    11: 4.2082759543,
    12: 4.2182451865,
}


def pitprops():
    return np.loadtxt(data_file("pitprops.csv"), delimiter=",")


def correlations(name):
    matrix = np.load(data_file("benchmark_correlations.npz"))[name]
    return (matrix + matrix.T) / 2


def test_a_node_looks_for_incumbents_only_where_it_is_not_settled_without(monkeypatch):
    A = np.cov(np.random.default_rng(3).standard_normal((40, 14)).T)
    best = prove(A, 4)
    looked, optimised = [], []
    round_, optimise = Search.round, Search._optimise
    monkeypatch.setattr(Search, "round", lambda *a: looked.append(1) or round_(*a))
    monkeypatch.setattr(
        Search, "_optimise", lambda *a, **k: optimised.append(optimise(*a, **k)) or optimised[-1]
    )
    again = prove(A, 4, TreeQuestion(incumbent=(best.support, best.value)))
    assert again.status == "optimal"
    assert any(optimised)  # some nodes are settled by an optimised certificate
    assert len(looked) == optimised.count(False)


@pytest.mark.parametrize("s", sorted(PITPROPS))
def test_tree_proves_known_optima_of_pitprops(s):
    proof = prove(pitprops(), s)
    assert proof.status == "optimal"
    assert proof.value == pytest.approx(PITPROPS[s], abs=2e-10)
    assert proof.value <= proof.bound <= proof.value * (1 + 1e-6)


@pytest.mark.parametrize(("s", "value"), [(9, PITPROPS[9]), (10, 4.1441106786), (13, 4.1441106786)])
def test_tree_proves_nonnegative_optima_of_pitprops(s, value):
    proof = prove(pitprops(), s, TreeQuestion(nonnegative=True))
    assert proof.status == "optimal"
    assert proof.value == pytest.approx(value, abs=2e-10)


@pytest.mark.parametrize(
    ("name", "s", "value"),
    [
        ("wine", 10, 4.5942934260),
        ("miniboone", 10, 9.999994781),
        ("communities", 5, 4.86054814),
        ("communities", 20, 14.32695168),
        ("arrhythmia", 5, 4.233203516),
    ],
)
def test_tree_proves_optima_of_correlation_matrices(name, s, value):
    proof = prove(correlations(name), s)
    assert proof.status == "optimal"
    assert proof.value == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("block", range(10))
def test_tree_agrees_with_enumeration(block):
    for seed in range(20 * block, 20 * block + 20):
        assert one_case(seed) == [], f"seed {seed}"


@pytest.mark.parametrize("block", range(4))
def test_core_and_extension_agree_with_enumeration(block):
    for seed in range(8 * block, 8 * block + 8):
        assert one_large_case(seed) == [], f"seed {seed}"


def noise(p=40, seed=0):
    """Pure noise is what needs branching."""
    X = np.random.default_rng(seed).standard_normal((2 * p, p))
    return X.T @ X / (2 * p)


def test_every_node_limit_gives_a_valid_bound():
    A, s = noise(), 8
    complete = prove(A, s)
    assert complete.status == "optimal"
    assert complete.nodes > 1
    for limit in range(1, complete.nodes):
        proof = prove(A, s, TreeQuestion(max_nodes=limit, incumbent=([0], 0.0)))
        assert proof.bound >= complete.value
        assert proof.nodes <= max(limit, 1)


def test_stops_when_the_caller_says_so():
    monitor = Monitor(callback=lambda progress: progress.stage == "root")
    proof = prove(noise(), 8, TreeQuestion(monitor=monitor))
    assert proof.status == "user"
    assert proof.bound >= prove(noise(), 8).value


def test_time_limit_is_reported():
    proof = prove(noise(), 8, TreeQuestion(monitor=Monitor(time_limit=0.0)))
    assert proof.status == "time"
    assert proof.bound > proof.value


def test_tree_gives_the_same_proof_twice():
    one, two = prove(noise(), 8), prove(noise(), 8)
    assert (one.value, one.bound, one.nodes, one.n_eigen) == (
        two.value,
        two.bound,
        two.nodes,
        two.n_eigen,
    )


def test_twins_shorten_the_tree():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 10))
    X = np.hstack([X, X, -X])
    A = X.T @ X / 40
    proof = prove(A, 4)
    assert proof.status == "optimal"
    assert proof.nodes < 100


def test_correlated_features_are_not_twins():
    A = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.4], [0.5, 0.4, 1.0]])
    assert not find_twins(A, 2, False).any
    exact = np.array([[1.0, -0.5, 0.5], [-0.5, 0.25, -0.25], [0.5, -0.25, 1.0]])
    assert find_twins(exact, 2, False).any
    assert not find_twins(exact, 2, True).any


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1.0, 1e12, 1e200])
def test_tree_proves_the_optimum_at_any_scale(scale):
    A = noise(8) * scale
    proof = prove(A, 3)
    assert proof.value == pytest.approx(optimum(A / scale, 3, False, np.zeros(8)) * scale)
    assert proof.status == "optimal"


@pytest.mark.parametrize("p", [1, 2, 5])
def test_tree_proves_zero_for_a_matrix_of_zeros(p):
    proof = prove(np.zeros((p, p)), 1)
    assert (proof.value, proof.bound, proof.status) == (0.0, 0.0, "optimal")


def test_rejects_what_makes_no_sense():
    A = np.eye(3)
    with pytest.raises(ValueError, match="between 1 and the number of features 3, got 4"):
        prove(A, 4)
    with pytest.raises(ValueError, match="3 finite numbers"):
        prove(A, 1, TreeQuestion(prices=np.array([1.0, np.inf, 0.0])))
    with pytest.raises(ValueError, match="effort must be"):
        prove(A, 1, TreeQuestion(effort="hard"))
    with pytest.raises(ValueError, match="between 1 and 2 features"):
        prove(A, 2, TreeQuestion(incumbent=(np.arange(3), 1.0)))
    with pytest.raises(ValueError, match="between 1 and 2 features"):
        prove(A, 2, TreeQuestion(incumbent=(np.arange(0), 1.0)))


@pytest.mark.parametrize(("s", "value"), [(5, 6.564053), (20, 17.832113)])
def test_tree_proves_the_optimum_of_colon_at_full_dimension(s, value):
    X = np.load(data_file("alon.npz"))["X"].astype(float)
    cov = covariance_of_data(np.log(np.maximum(X, 1)))[0]
    proof = prove_large(cov, s)
    assert proof.status == "optimal"
    assert proof.value * cov.unit * 62 / 61 == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("scale", [1 / 64, 48.0])
@pytest.mark.parametrize("priced", [False, True])
def test_tree_with_pads_holds_for_supports_with_features_outside(scale, priced):
    """Supports may hold features that the matrix does not know, each charged a pad to a row."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        p, s = 6, int(rng.integers(2, 5))
        A = noise(p, seed) * scale
        pads = rng.random(p).astype(np.float32) * 0.4 * scale
        prices = rng.random(p) * 0.3 * scale * priced
        options = {"prices": prices if priced else None, "max_nodes": 10}
        proof = prove(A, s, TreeQuestion(pads=pads.astype(float), **options))
        best = max(
            np.linalg.eigvalsh(A[np.ix_(S, S)] + np.diag((s - size) * pads[list(S)].astype(float)))[
                -1
            ]
            - prices[list(S)].sum()
            for size in range(1, s + 1)
            for S in combinations(range(p), size)
        )
        assert proof.bound >= best * (1 - 1e-12)
        assert proof.bound <= 4 * best + 4 * scale
        assert replay(proof.log, A) <= proof.bound


# --- what a tree may not do ---


def a_search(A, s, nonnegative=False, prices=None, tol=1e-6):
    return Search(np.asarray(A), s, TreeQuestion(nonnegative=nonnegative, prices=prices, tol=tol))


@pytest.mark.parametrize("size", [0.3, 0.65, 0.9, 1.7])
def test_nothing_is_settled_above_the_claim(size):
    """An incumbent a little too poor to be within the tolerance: the bound knows the optimum."""
    for ratio in np.linspace(0.76, 0.98, 12):
        A = size * np.diag(np.append(np.full(9, ratio), 1.0))
        proof = prove(A, 2, TreeQuestion(incumbent=(np.array([0]), 0.0), tol=0.1))
        assert proof.bound >= size
        assert proof.value >= proof.bound - 0.1 * size


def test_open_nodes_leave_room_for_the_replay():
    for scale in (1 / 48, 1.0, 48.0):
        search = a_search(noise(14) * scale + 3 * scale, 5, tol=1e-3)
        search.start(None)
        root = search._root(None)
        top = np.linalg.eigvalsh(split_matrix(root.part, root.split).matrix)[-1]
        assert top > search.claim
        root.guess = float(top)
        search.open.push(root, root.guess)
        proof = search.finish("nodes")
        room = (proof.bound / search.unit - top) / (1e-3 * search.scale_of_value)
        assert 0.029 < room < 0.031
        assert search.scale_of_value > 2.0


@pytest.mark.parametrize("case", ["interior", "signs", "prices"])
def test_full_supports_shrink_with_a_reason_only(case):
    """A positive solution, signs that are free, prices: what is left open is bounded."""
    off = 0.5 if case == "interior" else -0.5
    A = np.array([[1.0, off], [off, 1.0]])
    prices = np.array([0.1, 0.1]) if case == "prices" else None
    search = a_search(A, 2, case != "signs", prices)
    search.offer(np.array([0]), 1.0)
    root = search._root(None)
    root.part = root.part.restrict(np.ones(2, dtype=bool), np.ones(2, dtype=bool))
    root.guess = 1.5
    search._shrink(root)
    assert search.stuck == [root]
    if case != "prices":
        assert search.finish("nodes").bound >= 1.5


@pytest.mark.parametrize("prices", [[0.5, 0.25, 1.0], [2.0, 2.0, 3.0]])
def test_a_matrix_of_zeros_leaves_the_cheapest_feature(prices):
    proof = prove(np.zeros((3, 3)), 2, TreeQuestion(prices=np.array(prices)))
    assert proof.value == proof.bound == -min(prices)
    assert proof.support.tolist() == [int(np.argmin(prices))]
    assert proof.eliminated == 2


def test_eliminated_are_the_features_that_the_root_excludes():
    trees = 0
    for seed in range(2):
        A = noise(24, seed) + 0.4 * np.diag(np.arange(24) % 3 == 0)
        proof = prove(A, 5, TreeQuestion(max_nodes=8))
        root = next(step for step in proof.log if step["step"] == "node")
        out = [j for one in root["passes"] for j in one["out"].tolist()]
        assert len(set(out)) == len(out) == proof.eliminated
        assert 1 <= proof.nodes <= 8
        trees += proof.nodes > 1
    assert trees


@pytest.mark.parametrize("stage", ["root", "branch"])
def test_progress_tells_values_in_units_of_the_data(stage, monkeypatch):
    if stage == "branch":
        monkeypatch.setattr(exact, "ROOT_SMOOTHING", ())
    told = []
    monitor = Monitor(callback=lambda progress: told.append(progress))
    proof = prove(noise(24) * 48, 5, TreeQuestion(monitor=monitor))
    values = [progress.value for progress in told if progress.stage == stage]
    assert values
    assert max(values) == pytest.approx(proof.value, rel=1e-9)


def test_enough_is_in_units_of_the_data():
    A = noise(24) * 48
    options = {"incumbent": (np.array([0]), 0.0)}
    best = prove(A, 5).value
    assert prove(A, 5, TreeQuestion(enough=1.01 * A[0, 0], **options)).status == "enough"
    assert prove(A, 5, TreeQuestion(enough=1.01 * best, **options)).status == "optimal"


@pytest.mark.parametrize("guess", ["low", "top"])
def test_a_guess_settles_no_node(guess):
    """Eigenvalues as computed order the nodes; what is dropped is proved, and in the log."""
    A, s = noise(11), 4
    search = a_search(A, s)
    search.start((np.array([0]), 0.0))
    root = search._root(None)
    top = float(np.linalg.eigvalsh(split_matrix(root.part, root.split).matrix)[-1])
    root.guess = top if guess == "top" else 0.0
    search.open.push(root, root.guess)
    if guess == "top":
        search.offer(search.support, top)  # a better incumbent is met while the node waits
    assert search.search() is None
    proof = search.finish("optimal")
    assert proof.bound >= optimum(A, s, False, np.zeros(11))
    assert replay(proof.log, A) <= proof.bound


def test_supports_shrink_by_one_feature_each(monkeypatch):
    apart = np.array([[2.0, -1.0, -0.3], [-1.0, 2.0, -0.2], [-0.3, -0.2, 0.1]])
    search = a_search(apart, 3, nonnegative=True)
    search.start(None)
    root = search._root(None)
    root.part = root.part.restrict(np.ones(3, dtype=bool), np.ones(3, dtype=bool))
    monkeypatch.setattr(search, "_settle", lambda node: False)
    search._shrink(root)
    assert not search.stuck
    left = sorted(node.part.features.tolist() for node in search.open)
    assert left == [[0, 1], [0, 2], [1, 2]]


def test_what_twins_change_is_added():
    search = a_search(noise(6), 2)
    search.start(None)
    search.twins = replace(search.twins, error=0.25)
    assert search.finish("nodes").bound >= (search.claim + 0.25) * search.unit
