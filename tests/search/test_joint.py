"""The joint search: known optima, exchange kernels against twins, determinism, containment."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.kernels.exchange import leading, promising
from sparcipal.problem import components as of_components
from sparcipal.problem.components import refit_one, removals, replacements, variances
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.monitor import Monitor
from sparcipal.problem.problem import Component, Options, Problem
from sparcipal.search.exchange import Exchange
from sparcipal.search.joint import joint_search
from sparcipal.search.methods import auto, threshold, tpower
from tests.support.brute import best_value
from tests.support.places import data_file


def value(A: np.ndarray, supports: list[np.ndarray]) -> float:
    return sum(float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]) for S in supports)


def random_covariance(rng: np.random.Generator, p: int) -> np.ndarray:
    X = rng.standard_normal((int(rng.integers(2, 2 * p)), p)) * rng.uniform(0.3, 2.0, p)
    kind = rng.integers(4)
    if kind == 1:
        X[:, 0] = X[:, -1]
    elif kind == 2:
        X[:, 0] = 0.0
        X[:, 1] = -X[:, 2]
    elif kind == 3:
        X = rng.integers(-1, 2, X.shape).astype(float)
    return X.T @ X / X.shape[0]


# the kernels and their plain twins --------------------------------------------------------------


@pytest.mark.kernels
def test_leading_is_the_top_eigenvalue() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        A = random_covariance(rng, 8)
        members = np.sort(rng.permutation(8)[:5])
        x = rng.standard_normal(5)
        x /= np.linalg.norm(x)
        found = leading(A, members, False, 20_000, x, np.empty(5))
        block = A[np.ix_(members, members)]
        assert found == pytest.approx(np.linalg.eigvalsh(block)[-1], rel=1e-6, abs=1e-12)
        assert x @ block @ x == pytest.approx(found, rel=1e-6, abs=1e-12)


@pytest.mark.kernels
def test_nonnegative_leading_stays_nonnegative() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        A = random_covariance(rng, 7)
        x = np.full(4, 0.5)
        found = leading(A, np.arange(4), True, 500, x, np.empty(4))
        assert (x >= 0.0).all()
        assert found <= best_value(A[:4, :4], (4,), True) * (1 + 1e-9) + 1e-12


def predict_twin(
    A: np.ndarray, vectors: np.ndarray, values: np.ndarray, members: np.ndarray, nonnegative: bool
) -> np.ndarray:
    out = np.empty((members.size, A.shape[0]))
    for t in range(members.size):
        for b in range(A.shape[0]):
            z = vectors[t] @ A[members, b]
            z = max(z, 0.0) if nonnegative else z
            out[t, b] = np.linalg.eigvalsh([[values[t], z], [z, A[b, b]]])[-1]
    return out


@pytest.mark.parametrize("nonnegative", [False, True])
def test_exchange_predictions_match_eigenvalues(nonnegative: bool) -> None:
    rng = np.random.default_rng(2)
    A = random_covariance(rng, 12)
    members = np.array([1, 4, 7, 9])
    weights = np.abs(rng.standard_normal(4))
    weights /= np.linalg.norm(weights)
    vectors, values = removals(A[np.ix_(members, members)], weights, nonnegative)
    assert (np.diagonal(vectors) == 0.0).all()
    estimate = replacements(A, members, weights, nonnegative)
    twin = predict_twin(A, vectors, values, members, nonnegative)
    np.testing.assert_allclose(estimate, twin, rtol=1e-12)
    assert_never_promises_more(estimate, A, members)


def assert_never_promises_more(estimate: np.ndarray, A: np.ndarray, members: np.ndarray) -> None:
    for t in range(members.size):
        for b in set(range(A.shape[0])) - set(members.tolist()):
            S = np.append(np.delete(members, t), b)
            assert estimate[t, b] <= np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] * (1 + 1e-12)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_predictions_for_large_supports_are_lower_bounds_too(
    nonnegative: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_components, "MANY", 2)
    rng = np.random.default_rng(5)
    for _ in range(10):
        A, members = random_covariance(rng, 12), np.sort(rng.permutation(12)[:5])
        weights = np.abs(rng.standard_normal(5))
        weights /= np.linalg.norm(weights)
        estimate = replacements(A, members, weights, nonnegative)
        assert_never_promises_more(estimate, A, members)
        for t in range(5):  # the value without member t, and a feature that adds nothing to it
            rest = np.where(np.arange(5) == t, 0.0, weights)
            rest /= np.linalg.norm(rest)
            assert (estimate[t] >= rest @ A[np.ix_(members, members)] @ rest * (1 - 1e-12)).all()


@pytest.mark.kernels
def test_promising_swaps_equal_their_twin() -> None:
    rng = np.random.default_rng(3)
    estimate, value_ = rng.random((5, 9)), rng.random(2)
    flat, component = np.array([0, 3, 5, 7, 8]), np.array([0, 0, 1, 1, 1])
    owner, place = np.full(9, -1), np.zeros(9, dtype=np.int64)
    owner[flat], place[flat] = component, np.arange(5)
    gain, out, into = np.empty(6), np.empty(6, np.int64), np.empty(6, np.int64)
    promising(estimate, flat, component, value_, owner, place, gain, out, into)
    every = []
    for t, a in enumerate(flat):
        for b in range(9):
            if owner[b] < 0:
                every.append((estimate[t, b] - value_[component[t]], a, b))
            elif component[t] < owner[b]:
                both = estimate[t, b] + estimate[place[b], a] - value_.sum()
                every.append((both, a, b))
    best = sorted(every, reverse=True)[:6]
    np.testing.assert_allclose(gain, [g for g, _, _ in best])
    assert list(zip(out, into)) == [(a, b) for _, a, b in best]


class StopsAfter(Monitor):
    """Says stop once it has been asked so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    @property
    def stopped(self) -> str | None:
        self.looks -= 1
        return "user" if self.looks < 0 else None


def test_exchanges_end_with_their_work_and_a_search_for_several_keeps_an_account() -> None:
    A = random_covariance(np.random.default_rng(6), 60)
    owner, none = np.where(np.arange(60) < 12, 0, -1), np.full(60, -1)
    ends = [
        Exchange(A, np.array([12]), False, owner, none).run(Monitor(), most)
        for most in (-1.0, 0.0, np.inf)
    ]
    assert ends[0][2] == 0.0 < ends[1][2] < ends[2][2]
    assert ends[0][1] < ends[1][1] < ends[2][1]


def test_exchanges_end_as_soon_as_the_monitor_says_so() -> None:
    rng = np.random.default_rng(6)
    A = random_covariance(rng, 60)
    owner = np.where(np.arange(60) < 12, 0, -1)
    none = np.full(60, -1)

    def run(monitor: Monitor) -> tuple[np.ndarray, float]:
        return Exchange(A, np.array([12]), False, owner, none).run(monitor)[:2]

    ends = [run(StopsAfter(looks)) for looks in (0, 1, 3)]
    assert (ends[0][0] == owner).all()
    for looks, (found, reached) in zip((0, 1, 3), ends):
        changed = np.count_nonzero(found != owner)
        assert changed <= 2 * looks  # one swap for each look
        support = np.flatnonzero(found == 0)
        assert reached <= value(A, [support]) * (1 + 1e-9)
    assert ends[0][1] < ends[1][1] < ends[2][1] <= run(Monitor())[1]


# answers ----------------------------------------------------------------------------------------


def test_joint_search_finds_the_optimum_where_deflation_fails() -> None:
    e, d = 0.1, 0.5
    A = np.array([[1, 0, 0, e], [0, d, 0, 0], [0, 0, d, 0], [e, 0, 0, 1]])
    supports = joint_search(A, (2, 2))
    assert value(A, supports) == pytest.approx(2.0)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_joint_search_solves_small_problems(nonnegative: bool) -> None:
    rng = np.random.default_rng(4)
    missed = 0
    for _ in range(15):
        p = int(rng.integers(4, 9))
        sizes = [(1, 1), (2, 2), (3, 1), (2,), (p,), (1, 2, 1)][rng.integers(6)]
        A = random_covariance(rng, p)
        supports = joint_search(A, sizes, nonnegative=nonnegative)
        assert [S.size for S in supports] == list(sizes)
        assert np.unique(np.concatenate(supports)).size == sum(sizes)
        cov = covariance_of(A)
        even = [Component(S, np.full(S.size, S.size**-0.5)) for S in supports]
        found = [refit_one(cov, c, nonnegative) for c in even]
        total = sum(c.weights @ A[np.ix_(c.support, c.support)] @ c.weights for c in found)
        best = best_value(A, sizes, nonnegative)
        assert total <= best * (1 + 1e-9) + 1e-12
        missed += total < best * (1 - 1e-7)
    assert missed <= 1


def test_joint_search_answers_for_degenerate_matrices() -> None:
    for A in (np.zeros((6, 6)), np.ones((6, 6)), np.eye(6), np.diag([1.0, 0, 0, 0, 0, 0])):
        supports = joint_search(A, (2, 3))
        assert [S.size for S in supports] == [2, 3]
        assert np.unique(np.concatenate(supports)).size == 5


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_joint_search_is_as_good_at_any_scale(scale: float) -> None:
    A = random_covariance(np.random.default_rng(5), 20)
    scaled = joint_search(A * scale, (3, 3))
    assert value(A, scaled) == pytest.approx(value(A, joint_search(A, (3, 3))), rel=1e-9)


def test_same_answer_for_every_n_jobs() -> None:
    A = random_covariance(np.random.default_rng(6), 40)
    one = joint_search(A, (4, 4, 3), options=Options(n_jobs=1, seed=3))
    three = joint_search(A, (4, 4, 3), options=Options(n_jobs=3, seed=3))
    assert all(map(np.array_equal, one, three))


def test_joint_search_is_never_below_its_starts() -> None:
    rng = np.random.default_rng(7)
    A = random_covariance(rng, 30)
    for _ in range(10):
        start = np.split(rng.permutation(30)[:8], [4])
        found = joint_search(A, (4, 4), effort=0, starts=[start])
        assert value(A, found) >= value(A, start) * (1 - 1e-12)


def test_auto_is_never_below_the_simple_methods() -> None:
    rng = np.random.default_rng(8)
    for k in (1, 1, 1, 2, 3):
        problem = Problem(covariance_of(random_covariance(rng, 40)), (5,) * k)
        totals = []
        for method in (auto.METHOD, threshold.METHOD, tpower.METHOD):
            found = method.run(problem, Options())
            totals.append(value(problem.covariance.dense(), [c.support for c in found.components]))
        assert totals[0] >= max(totals[1:]) * (1 - 1e-12)


def test_overlapping_supports_gain_by_exchanges() -> None:
    rng = np.random.default_rng(11)
    gained = 0
    for _ in range(3):
        cov = covariance_of(random_covariance(rng, 18))
        problem = Problem(cov, (4, 4, 3), supports="free", objective="adjusted")
        ours = auto.METHOD.run(problem, Options(), effort=0)
        sizes = sorted(c.support.size for c in ours.components)
        assert all(size <= s for size, s in zip(sizes, (3, 4, 4)))
        total = variances(problem, ours.components).sum()
        others = [
            variances(problem, method.run(problem, Options()).components).sum()
            for method in (threshold.METHOD, tpower.METHOD)
        ]
        assert total >= max(others) * (1 - 1e-9)
        gained += total > max(others) * (1 + 1e-6)
    assert gained >= 2


def test_auto_answers_with_more_places_than_features() -> None:
    A = random_covariance(np.random.default_rng(9), 4)
    found = auto.METHOD.run(Problem(covariance_of(A), (3, 3)), Options())
    assert np.concatenate([c.support for c in found.components]).size <= 4
    assert all(c.support.size >= 1 for c in found.components)


def test_features_outside_the_working_set_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three groups, the last of small variance but of strong correlation."""
    rng = np.random.default_rng(10)
    X = 0.3 * rng.standard_normal((300, 120))
    for group in range(3):
        X[:, 40 * group : 40 * group + 4] += (2.0 - 0.5 * group) * rng.standard_normal((300, 1))
    A = X.T @ X / 300
    monkeypatch.setattr(auto, "ALL_FEATURES", 10)
    monkeypatch.setattr(auto, "WORKING_SET", 12)
    few = auto.METHOD.run(Problem(covariance_of(A), (4, 4, 4)), Options())
    whole = joint_search(A, (4, 4, 4))
    reached = value(A, [c.support for c in few.components])
    assert reached == pytest.approx(value(A, whole), rel=1e-9)


JOINT_OPTIMA = [
    ("wine", 4, 3, 8.1155280849),
    ("wine", 5, 2, 8.0479900000),
    ("communities", 3, 5, 14.236743),
    ("communities", 5, 10, 39.088118),
    ("arrhythmia", 3, 10, 20.341136),
]


@pytest.mark.parametrize(("name", "k", "s", "best"), JOINT_OPTIMA)
def test_joint_search_finds_known_joint_optima(name: str, k: int, s: int, best: float) -> None:
    with np.load(data_file("benchmark_correlations.npz")) as matrices:
        A = matrices[name]
    assert value(A, joint_search(A, (s,) * k, effort=3)) == pytest.approx(best, rel=1e-7)
