"""Bounds by prices and packing: never below the optimum, rechecked, and sharp."""

from __future__ import annotations

import contextlib
import itertools
from fractions import Fraction

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.bounds import joint, strategy
from sparcipal.bounds.configuration import bound as configuration
from sparcipal.bounds.configuration import packing
from sparcipal.bounds.configuration.prices import Pool, converted
from sparcipal.bounds.enumeration import Kind
from sparcipal.bounds.kyfan import bound as kyfan
from sparcipal.bounds.kyfan.question import JointQuestion
from sparcipal.bounds.pairsplit import Part, Split, best_start, split_matrix
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.checker.enumeration import proved_tops
from sparcipal.problem.components import refit, variances
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.monitor import Monitor
from sparcipal.problem.problem import Component, Options, Problem
from sparcipal.search.joint import joint_search
from tests.support import oracle
from tests.support.brute import best_value
from tests.support.margins import matrices
from tests.support.places import data_file
from tests.support.replay import FLOAT, packing_of, recheck

SIZES = [(2, 2), (1, 1, 1), (3, 2), (2,), (3, 3), (1, 2)]


def random_covariance(rng: np.random.Generator, p: int) -> np.ndarray:
    X = rng.standard_normal((int(rng.integers(2, 12)), p))
    kind = rng.integers(5)
    if kind == 1:
        X[:, 0] = X[:, -1]
    elif kind == 2:
        X[:, 0] = -X[:, 1]
        X[:, 2] = 0.0
    elif kind == 3:
        X = rng.integers(-1, 2, X.shape).astype(float)
    return X.T @ X / X.shape[0] + 1e-6 * np.eye(p)


def both_bounds(
    A: np.ndarray, sizes: tuple[int, ...], nonnegative: bool, value: float
) -> tuple[float, float]:
    cov = covariance_of(A)
    supports = joint_search(cov.dense(), sizes, nonnegative=nonnegative, effort=0)
    asked = JointQuestion(cov, sizes, supports, value / cov.unit, nonnegative)
    first = kyfan.kyfan_bound(asked)
    priced = configuration.configuration_bound(asked, first)
    if priced is None or priced.bound is None:  # the Ky Fan bound cannot be improved
        return first.value * cov.unit, first.value * cov.unit
    bound = priced.bound
    question = Question(sizes, nonnegative, True, value / cov.unit)
    own = recheck("configuration", bound.data, checked_covariance(A, cov.unit), question)
    return bound.value * cov.unit, own * cov.unit


@pytest.mark.parametrize("nonnegative", [False, True])
def test_configuration_bound_is_never_below_the_optimum(
    nonnegative: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = kyfan.Effort(10, (0.1, 0.01), 8, (0.01,), 4, 1, 0.05)
    monkeypatch.setitem(kyfan.EFFORTS, "fast", quick)
    rng = np.random.default_rng(int(nonnegative))
    sharp = 0
    for _ in range(4 if nonnegative else 12):
        sizes = SIZES[rng.integers(len(SIZES))]
        A = random_covariance(rng, 7)
        best = best_value(A, sizes, nonnegative)
        claimed, own = both_bounds(A, sizes, nonnegative, best)
        assert best * (1 - 1e-12) <= own <= claimed * (1 + 1e-12)
        sharp += claimed <= best * (1 + 1e-5)
    assert sharp >= 2


def test_full_components_leave_no_gap_where_smaller_supports_would() -> None:
    # two groups of four alike and a loner: with prices at least zero, supports that spare the
    # loner's price are worth too much, and no prices prove the optimum
    rng = np.random.default_rng(4)
    sharp = 0
    for _ in range(4):
        factors = rng.standard_normal((40, 2))
        X = factors[:, [0, 0, 0, 1, 1, 1, 0, 1]] + 0.7 * rng.standard_normal((40, 8))
        A = np.corrcoef(X.T)
        best = best_value(A, (4, 4), False)
        claimed, own = both_bounds(A, (4, 4), False, best)
        assert best * (1 - 1e-12) <= own <= claimed * (1 + 1e-12)
        sharp += claimed <= best * (1 + 1e-5)
    assert sharp == 4


def test_configuration_bound_covers_features_outside_the_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Small cores, few nodes, values that are too low: a bound for all features all the same."""
    rng = np.random.default_rng(8)
    outside = 0
    for _ in range(18):
        p = int(rng.integers(5, 9))
        sizes = SIZES[rng.integers(len(SIZES))]
        spread = 10.0 ** rng.uniform(-1.5, 0.0, p)
        A = random_covariance(rng, p) * np.outer(spread, spread)
        effort = kyfan.Effort(sum(sizes), (0.1, 0.01), 8, (0.01,), 4, 0, rng.choice([0.05, 0.5]))
        monkeypatch.setitem(kyfan.EFFORTS, "fast", effort)
        best, cov = best_value(A, sizes), covariance_of(A)
        value = best / cov.unit * rng.choice([1.0, 0.8])
        asked = JointQuestion(cov, sizes, joint_search(cov.dense(), sizes, effort=0), value)
        first = kyfan.kyfan_bound(asked)
        work = float(rng.choice([1e6, 1e8]))
        priced = configuration.configuration_bound(asked, first, work=work)
        if priced is None or priced.bound is None:
            continue
        bound = priced.bound
        outside += "features" in bound.data
        checked = checked_covariance(A, cov.unit)
        own = (
            recheck("configuration", bound.data, checked, Question(sizes, False, True, value))
            * cov.unit
        )
        assert best * (1 - 1e-12) <= own <= bound.value * cov.unit * (1 + 1e-12)
        if "features" in bound.data:
            first_part = bound.data["parts"][0]
            header = {**first_part["log"][0], "pads": np.zeros(bound.data["features"].size)}
            parts = [{**first_part, "log": [header, *first_part["log"][1:]]}]
            parts += bound.data["parts"][1:]
            with contextlib.suppress(ValueError):  # refused, or not proved
                forged = {**bound.data, "parts": parts}
                assert (
                    recheck("configuration", forged, checked, Question(sizes, False, True, value))
                    == np.inf
                )
    assert outside >= 3


def test_converted_prices_lose_nothing() -> None:
    A = random_covariance(np.random.default_rng(9), 9)
    cov = covariance_of(A)
    a = cov.dense()
    supports = joint_search(a, (2, 2, 2))
    value = sum(float(np.linalg.eigvalsh(a[np.ix_(S, S)])[-1]) for S in supports)
    bound = kyfan.kyfan_bound(JointQuestion(cov, (2, 2, 2), supports, value))
    data = bound.data
    split = kyfan.KyFanSplit(data["features"], data["u"], data["r"], data["price"], data["pad"])
    pair, price, level = converted(a, split, 2, 3, False)
    part = Part(np.arange(9), a, np.zeros(9, dtype=bool), price, 2, False, np.zeros(9))
    top = np.linalg.eigvalsh(split_matrix(part, pair).matrix)[-1]
    assert top == pytest.approx(level, rel=1e-5)
    assert price.sum() + 3 * top == pytest.approx(bound.value, rel=1e-5)


def test_a_wrong_value_does_not_make_a_wrong_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target below the optimum: the enumeration meets better packings and must not hide them."""
    monkeypatch.setitem(kyfan.EFFORTS, "fast", kyfan.Effort(10, (0.1,), 8, (0.1,), 4, 0, 0.05))
    rng = np.random.default_rng(3)
    for _ in range(5):
        A = random_covariance(rng, 7)
        best = best_value(A, (2, 2))
        claimed, own = both_bounds(A, (2, 2), False, 0.8 * best)
        assert best * (1 - 1e-12) <= own <= claimed * (1 + 1e-12)


def test_a_better_packing_becomes_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A poor answer goes in; where the enumeration meets the best packing, that comes out."""
    monkeypatch.setattr(joint, "EXHAUSTIBLE", {"fast": 0, "full": 0})
    rng = np.random.default_rng(6)
    improved = 0
    for _ in range(12):
        A = random_covariance(rng, 7) + 2.0 * np.eye(7)
        cov = covariance_of(A)
        problem = Problem(cov, (2, 2))
        best = best_value(A, (2, 2)) / cov.unit
        pairs = rng.permutation(7)[:4].reshape(2, 2)
        poor = refit(problem, tuple(Component(np.sort(S), np.ones(2)) for S in pairs))
        proved = strategy.prove(problem, poor, (), Options(), "full")
        value = float(variances(problem, proved.components).sum())
        assert value <= best * (1 + 1e-12)
        for bound in proved.bounds:
            assert bound.value >= best * (1 - 1e-12)
            if bound.name == "configuration":
                question = Question((2, 2), False, True, value)
                own = recheck(
                    "configuration", bound.data, checked_covariance(A, cov.unit), question
                )
                assert best * (1 - 1e-12) <= own <= bound.value
        before = float(variances(problem, poor).sum())
        improved += before < best * (1 - 1e-9) and value >= best * (1 - 1e-9)
    assert improved >= 3


def test_packing_finds_the_best_packing() -> None:
    rng = np.random.default_rng(4)
    for _ in range(10):
        A = random_covariance(rng, 7)
        A = A / np.abs(A).max()
        best = best_value(A, (2, 2))
        price = np.zeros(7)
        alone = best_value(A, (2,))
        target = 0.95 * best
        found = best_packing(A, price, alone, target)
        if target - alone > 0.0:
            assert found is not None
            assert found.value == pytest.approx(best)
        own = configuration_target(A, price, alone, target, found)
        assert own == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_packing_with_prices_and_rewards_finds_the_best_packing(k: int) -> None:
    """Features that nothing uses are missed: what they cost is taken from what others may miss."""
    rng, packed = np.random.default_rng(9), 0
    for _ in range(25):
        A = random_covariance(rng, 7)
        A = A / np.abs(A).max()
        best = best_value(A, (2,) * k)
        price = 0.15 * rng.standard_normal(7) + 0.1
        pairs = [list(S) for S in itertools.combinations(range(7), 2)]
        alone = max(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] - price[S].sum() for S in pairs)
        paid, target = float(np.sort(price)[-2 * k :].sum()), 0.98 * best
        question = packing.PackingQuestion(
            A, 2, k, price, paid, alone * (1 + 1e-12), target, start_of(A, price), 1e9
        )
        found = packing.best_packing(question, Monitor())
        if found is not None:
            packed += 1
            assert found.value == pytest.approx(best)
            used = np.concatenate(found.supports)
            assert len(set(used.tolist())) == used.size
    assert packed >= 5


def start_of(A: np.ndarray, price: np.ndarray):
    return best_start(Part(np.arange(7), A, np.zeros(7, bool), price, 2, False, np.zeros(7)))[0]


def best_packing(A: np.ndarray, price: np.ndarray, alone: float, target: float, work: float = 1e9):
    question = packing.PackingQuestion(
        A, 2, 2, price, float(price.sum()), alone, target, start_of(A, price), work
    )
    return packing.best_packing(question, Monitor())


def configuration_target(
    A: np.ndarray, price: np.ndarray, alone: float, target: float, found: packing.Packed
) -> float:
    origin = found.split.origin
    data = {"target": target, "u": origin["u"], "r": origin["r"]}
    return packing_of(A, (2, 2), price, alone, data)


def test_configuration_proofs_are_refused_when_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kyfan.EFFORTS, "fast", kyfan.Effort(10, (0.1,), 4, (0.1,), 4, 0, 0.05))
    A = random_covariance(np.random.default_rng(5), 7)
    cov = covariance_of(A)
    value = best_value(A, (2, 2)) / cov.unit
    supports = joint_search(cov.dense(), (2, 2))
    asked = JointQuestion(cov, (2, 2), supports, value)
    bound = configuration.configuration_bound(asked, kyfan.kyfan_bound(asked)).bound
    checked, question = checked_covariance(A, cov.unit), Question((2, 2), False, True, value)
    for change in ({"price": -bound.data["price"] - 1}, {"price": bound.data["price"] * 0.5 + 1}):
        assert recheck("configuration", {**bound.data, **change}, checked, question) == np.inf
    low = {**bound.data, "packing": {"target": 0.5 * value, **_triangles(7)}}
    assert recheck("configuration", low, checked, question) >= value * (1 - 1e-9)


def _triangles(n: int) -> dict[str, np.ndarray]:
    return {"u": np.zeros(n * (n - 1) // 2), "r": np.zeros(n * (n - 1) // 2)}


def test_too_large_a_core_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "MOST_CORE", 5)
    cov = covariance_of(np.eye(7))
    question = JointQuestion(cov, (2, 2), [np.array([0, 1]), np.array([2, 3])], 2.0)
    first = kyfan.kyfan_bound(question)
    assert configuration.configuration_bound(question, first) is None


@pytest.mark.parametrize(("name", "k", "s"), [("communities", 3, 5), ("communities", 5, 5)])
def test_configuration_bound_proves_joint_optima_of_communities(name: str, k: int, s: int) -> None:
    with np.load(data_file("benchmark_correlations.npz")) as matrices:
        A = matrices[name]
    cov = covariance_of(A)
    supports = joint_search(cov.dense(), (s,) * k, effort=3)
    value = sum(float(np.linalg.eigvalsh(cov.submatrix(S))[-1]) for S in supports)
    claimed, own = both_bounds(A, (s,) * k, False, value * cov.unit)
    assert value * cov.unit <= own <= claimed <= value * cov.unit * (1 + 1e-6)


def test_packing_closes_a_gap_of_the_linear_program_by_default() -> None:
    """A node costs as much as its features: those that no support needs have to go first."""
    with np.load(data_file("benchmark_correlations.npz")) as matrices:
        A = matrices["arrhythmia"]
    part = np.sort(np.random.default_rng(4).permutation(A.shape[0])[:200])
    A = A[np.ix_(part, part)]
    result = sparse_pca(covariance=A, n_components=5, n_nonzero_coefs=5)
    assert result.status.value == "optimal"
    (bound,) = (b for b in result.certificate.bounds if b.name == "configuration")
    assert "packing" in bound.data
    assert verify(result, covariance=A).verdict == "proved"


@pytest.mark.parametrize("sizes", [(2, 2), (1, 3), (3, 1, 2), (2, 1, 2)])
def test_known_supports_are_packed_in_the_order_of_the_cardinalities(sizes) -> None:
    """With every support in the pool the best packing is the optimum."""
    for seed in range(4):
        A = plain_covariance(7, seed)
        pool = Pool(A, [Kind(s) for s in sizes], False, 1.0)
        pool.add(np.array([0]))
        assert pool.best_disjoint() is None  # one support is not enough
        for size in range(1, max(sizes) + 1):
            for support in itertools.combinations(range(7), size):
                pool.add(np.array(support))
        value, supports = pool.best_disjoint()
        assert value == pytest.approx(best_value(A, sizes), rel=1e-9)
        assert all(support.size <= s for support, s in zip(supports, sizes))
        assert np.unique(np.concatenate(supports)).size == sum(len(S) for S in supports)
        own = sum(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] for S in supports)
        assert own == pytest.approx(value)


def plain_covariance(p: int, seed: int = 0, n: int = 20) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((n, p))
    return X.T @ X / n


def priced(A: np.ndarray, sizes: tuple[int, ...], **limits):
    cov = covariance_of(A)
    supports = joint_search(cov.dense(), sizes, effort=0)
    value = best_value(A, sizes) / cov.unit
    question = JointQuestion(cov, sizes, supports, value)
    first = kyfan.kyfan_bound(question)
    return cov, first, configuration.configuration_bound(question, first, **limits)


def check_priced(A: np.ndarray, sizes: tuple[int, ...], cov, found) -> None:
    question = Question(sizes, False, True, best_value(A, sizes) / cov.unit)
    own = recheck("configuration", found.bound.data, checked_covariance(A, cov.unit), question)
    assert question.value * (1 - 1e-12) <= own <= found.bound.value * (1 + 1e-12)


@pytest.mark.parametrize("limit", ["ROUNDS", "MOVES"])
def test_configuration_bound_holds_when_prices_run_out_of_moves(limit, monkeypatch):
    """Out of moves there are no prices, or worse ones: never a wrong bound."""
    monkeypatch.setattr(configuration, limit, 1)
    sizes = (2, 2)
    for seed in range(4):
        A = plain_covariance(7, seed, n=5)
        cov, first, found = priced(A, sizes)
        assert first.value >= best_value(A, sizes) / cov.unit * (1 - 1e-12)
        if found is not None and found.bound is not None:
            check_priced(A, sizes, cov, found)


def test_configuration_answers_without_a_bound_when_no_pad_is_enough(monkeypatch):
    """Where no pad is enough, prices on the core prove nothing."""
    monkeypatch.setattr(configuration, "PADS", (1e-6,))
    monkeypatch.setitem(kyfan.EFFORTS, "fast", kyfan.Effort(4, (0.1,), 8, (0.1,), 4, 0, 0.05))
    A = plain_covariance(9, 1)
    cov, first, found = priced(A, (2, 2))
    assert len(first.data["features"]) < 9
    assert found.bound is None
    assert found.supports == ()
    assert first.value >= best_value(A, (2, 2)) / cov.unit * (1 - 1e-12)


def groups_of_equal_worth(seed: int) -> np.ndarray:
    """Two groups of four and five features: mixtures of supports explain more than any packing."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(16, 24))
    A = np.corrcoef(rng.standard_normal((int(rng.integers(5, 20)), n)).T)
    A[:4, :4] += 0.8
    A[4:9, 4:9] += 0.7
    return A


def asked_about(A: np.ndarray, sizes: tuple[int, ...]) -> JointQuestion:
    cov = covariance_of(A)
    supports = joint_search(cov.dense(), sizes, effort=3)
    value = sum(float(np.linalg.eigvalsh(cov.submatrix(S))[-1]) for S in supports)
    return JointQuestion(cov, sizes, supports, value)


def test_a_proved_gap_of_the_linear_program_is_packed_not_proved_again(monkeypatch):
    monkeypatch.setattr(configuration, "MIXTURES", 1)
    proofs, prove = [], configuration.prove

    def counted(a, s, question):
        proofs.append(prove(a, s, question))
        return proofs[-1]

    monkeypatch.setattr(configuration, "prove", counted)
    question = asked_about(groups_of_equal_worth(10), (3,) * 4)
    bound = configuration.configuration_bound(question, kyfan.kyfan_bound(question)).bound
    assert [proof.status for proof in proofs] == ["optimal"]
    assert "packing" in bound.data
    assert bound.value <= question.value * (1 + 1e-6)


def test_a_longer_bound_begins_with_the_supports_that_a_shorter_one_met(monkeypatch):
    A = plain_covariance(20, 2)
    sizes = (4,) * 5  # all features are used, which takes many moves of prices
    moves, central = [], Pool.central

    def counted(pool, center, level):
        moves.append(set(pool.columns))
        return central(pool, center, level)

    monkeypatch.setattr(Pool, "central", counted)
    question = asked_about(A, sizes)
    first = kyfan.kyfan_bound(question)
    shorter = configuration.configuration_bound(question, first, work=2e9)
    met, before = set(shorter.again.columns), len(moves)
    moves.clear()
    longer = configuration.configuration_bound(question, first, again=shorter.again)
    assert met <= moves[0]
    assert len(moves) < before
    asked = Question(sizes, False, True, question.value)
    own = recheck(
        "configuration", longer.bound.data, checked_covariance(A, question.cov.unit), asked
    )
    assert question.value <= own <= longer.bound.value * (1 + 1e-12)


@pytest.mark.parametrize("limit", ["work", "MOST_SUPPORTS", "packings"])
def test_best_packing_is_none_beyond_each_limit(limit, monkeypatch):
    A = plain_covariance(7, 3)
    best, alone = best_value(A, (2, 2)), best_value(A, (2,)) * (1 + 1e-9)
    arguments = (A, np.zeros(7), alone, 0.97 * best)
    found = best_packing(*arguments)
    assert found is not None
    assert best <= found.value <= best * (1 + 1e-9)
    if limit == "work":
        assert best_packing(*arguments, work=1e6) is None  # the split alone takes more
        monkeypatch.setattr(packing, "STEPS", 1)
        assert best_packing(*arguments, work=1e6) is None
    elif limit == "packings":
        monkeypatch.setattr(packing, "PARTIAL", 1e10)
        assert best_packing(*arguments) is None
    else:
        monkeypatch.setattr(packing, limit, 1)
        assert best_packing(*arguments) is None


def test_where_one_place_is_left_all_supports_are_evaluated_at_once(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 14))
    A, s, tau = X.T @ X / 30, 4, 1.7
    nodes, node = [], packing._Enumeration._node
    monkeypatch.setattr(
        packing._Enumeration, "_node", lambda own, a, b: (nodes.append(len(a)), node(own, a, b))[1]
    )
    start = Split.rounded(np.arange(14), np.triu_indices(14, 1), np.zeros(91), np.zeros(91))
    question = packing.PackingQuestion(A, s, 2, np.zeros(14), 0.0, 2.0, 3.7, start, 1e10)
    found = packing._Enumeration(question, tau, Monitor()).run()
    supports = (set(S) for m in range(1, s + 1) for S in itertools.combinations(range(14), m))
    above = [S for S in supports if np.linalg.eigvalsh(A[np.ix_(list(S), list(S))])[-1] > tau]
    assert sorted(map(sorted, above)) == sorted(map(np.ndarray.tolist, found))
    assert 0 < nodes.count(s - 1) <= nodes.count(s - 2)


def test_proved_values_of_packed_supports_hold_by_exact_elimination():
    for A, _ in matrices(20, p=4):
        exact, top = oracle.exact_matrix(A), float(np.linalg.eigvalsh(A)[-1])
        own = proved_tops(A[None], np.array([top]), FLOAT)[0]
        for proved in (packing._proved_value(A), own):
            assert oracle.proves_below(exact, range(4), Fraction(proved))
            assert proved <= top * (1 + 1e-12)


def test_supports_are_filled_while_unused_features_are_left() -> None:
    kinds = [Kind(1), Kind(1), Kind(2)]
    given = [np.array([0, 2]), np.array([1]), np.array([3])]  # in another order than the sizes
    assert [s.tolist() for s in configuration._filled(given, kinds, 4)] == [[0, 2], [1], [3]]
    assert [s.tolist() for s in configuration._filled(given, kinds, 5)] == [[0, 2], [1], [3, 4]]
