"""The joint bound is never below the optimum, its recheck agrees, and it is tight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparcipal.bounds.kyfan import bound as kyfan
from sparcipal.bounds.kyfan import optimise
from sparcipal.bounds.kyfan.certificate import KyFanSplit, kyfan_matrix, proved_sum
from sparcipal.bounds.kyfan.optimise import KyFanOptimiser, fermi_dirac
from sparcipal.bounds.kyfan.question import JointQuestion, Sizes
from sparcipal.bounds.outside import Outside
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.numerics.lbfgs import minimise
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.monitor import Monitor
from sparcipal.search.joint import joint_search
from tests.support.brute import best_value
from tests.support.places import data_file
from tests.support.replay import recheck


def adversarial(rng: np.random.Generator) -> tuple[np.ndarray, tuple[int, ...]]:
    p = int(rng.integers(2, 8))
    sizes = [1] * int(rng.integers(1, min(p, 3) + 1))
    while sum(sizes) < p and rng.random() < 0.8:
        sizes[rng.integers(len(sizes))] += 1
    X = rng.standard_normal((int(rng.integers(1, 10)), p))
    kind = rng.integers(7)
    if kind == 1:
        X[:, 0] = X[:, -1]
    elif kind == 2:
        X[:, 0] = -X[:, -1]
        X[:, rng.integers(p)] = 0.0
    elif kind == 3:
        X = rng.integers(-1, 2, X.shape).astype(float)
    elif kind == 4:
        X = np.outer(X[:, 0], rng.standard_normal(p))
    elif kind == 5:
        X = X * 10.0 ** rng.integers(-3, 4, p)
    elif kind == 6:
        X = np.abs(X)
    return X.T @ X / X.shape[0] * 10.0 ** rng.choice([-12, -3, 0, 5, 12]), tuple(sizes)


def small_effort(rng: np.random.Generator, p: int) -> kyfan.Effort:
    """Few steps on a core that may leave features out: validity must not depend on convergence."""
    core = int(rng.integers(1, p + 1))
    pad = float(rng.choice([1e-3, 0.05, 1.0]))
    return kyfan.Effort(core, (0.1, 0.01), 6, (0.01,), 4, int(rng.integers(0, 3)), pad)


@pytest.mark.parametrize("seed", range(4))
def test_kyfan_bound_is_never_below_the_optimum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        A, sizes = adversarial(rng)
        if not A.any():
            continue
        nonnegative = bool(rng.integers(2))
        cov = covariance_of(A)
        inside = cov.dense()
        best = best_value(inside, sizes, nonnegative)
        monkeypatch.setitem(kyfan.EFFORTS, "test", small_effort(rng, A.shape[0]))
        asked = JointQuestion(
            cov,
            sizes,
            supports=joint_search(inside, sizes, nonnegative=nonnegative, effort=0),
            value=best * rng.choice([1.0, 0.3]),
            nonnegative=nonnegative,
        )
        bound = kyfan.kyfan_bound(asked, effort="test")
        assert bound.value >= best * (1 - 1e-13)
        question = Question(sizes, nonnegative, True, best)
        own = recheck("kyfan", bound.data, checked_covariance(A, cov.unit), question)
        assert best * (1 - 1e-13) <= own <= bound.value * (1 + 1e-12)
        assert bound.value <= own * (1 + 1e-6)


def test_kyfan_matrix_bounds_the_optimum_with_any_split() -> None:
    """Random U, R and prices, random cores: nothing needs to be optimal for the bound to hold."""
    rng = np.random.default_rng(9)
    for _ in range(150):
        A, sizes = adversarial(rng)
        A = A / max(np.abs(A).max(), 1e-300)
        p, s, k = A.shape[0], max(sizes), len(sizes)
        core = np.sort(rng.permutation(p)[: rng.integers(1, p + 1)])
        pairs = core.size * (core.size - 1) // 2
        price = np.maximum(rng.standard_normal(core.size), 0.0) * rng.choice([0.0, 0.1, 1.0])
        split = KyFanSplit.rounded(
            core, rng.standard_normal(pairs) * rng.choice([0.1, 1.0]),
            rng.standard_normal(pairs) * 2, price, float(rng.choice([0.01, 0.3])),
        )  # fmt: skip
        nonnegative = bool(rng.integers(2))
        question = Question(sizes, nonnegative, True, 0.0)
        best = best_value(A, sizes, nonnegative)
        own = recheck("kyfan", split.data(), checked_covariance(A, 1.0), question)
        assert own >= best * (1 - 1e-13)
        cov = covariance_of(A)
        evaluated = kyfan_matrix(A[np.ix_(core, core)], split, s, nonnegative)
        _, heights = Outside(cov, core, evaluated, s, nonnegative).violators(-np.inf)
        total = proved_sum(evaluated.matrix, heights / 1.0, k) + evaluated.price.sum()
        assert total * cov.unit >= best * (1 - 1e-13) or cov.unit != 1.0


def test_kyfan_proofs_are_refused_when_changed() -> None:
    A = np.cov(np.random.default_rng(0).standard_normal((30, 8)).T)
    cov = covariance_of(A)
    supports = joint_search(cov.dense(), (2, 2))
    data = kyfan.kyfan_bound(JointQuestion(cov, (2, 2), supports, 1.0)).data
    checked, question = checked_covariance(A, cov.unit), Question((2, 2), False, True, 1.0)
    bad = [
        {"price": -data["price"] - 1},
        {"price": data["price"][1:]},
        {"u": data["u"][1:]},
        {"u": data["u"] * np.nan},
        {"r": data["r"] + 1e6},
        {"features": data["features"][::-1] * 0},
        {"features": data["features"] + 1},
        {"pad": -1.0},
    ]
    for change in bad:
        assert recheck("kyfan", {**data, **change}, checked, question) == np.inf
    assert recheck("kyfan", data, checked, Question((2, 2), False, False, 1.0)) == np.inf


def test_extension_equals_the_whole_matrix() -> None:
    """The m_j by stages against their definition, for data of which no p x p matrix is formed."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((25, 60)) * rng.uniform(0.1, 2.0, 60)
    cov = covariance_of_data(X)[0]
    A = cov.dense()
    core = np.sort(np.argsort(-cov.diagonal)[:15])
    price = rng.uniform(0.0, 0.05, 15)
    split = KyFanSplit.rounded(
        core, 0.1 * rng.standard_normal(105), rng.standard_normal(105), price, 0.02
    )
    evaluated = kyfan_matrix(A[np.ix_(core, core)], split, 4, False)
    rest = np.setdiff1d(np.arange(60), core)
    expected = {}
    for j in rest:
        charges = list(A[j, core] ** 2 / evaluated.theta - evaluated.price)
        charges += [abs(A[j, other]) for other in rest if other != j]
        expected[j] = A[j, j] + sum(sorted(np.maximum(charges, 0.0))[-3:])
    between = float(np.mean(sorted(expected.values())[20:22]))
    for level in (-np.inf, between, 1e9):
        features, heights = Outside(cov, core, evaluated, 4, False).violators(level)
        assert set(features) == {j for j in rest if expected[j] > level}
        np.testing.assert_allclose(heights, [expected[j] for j in features], rtol=1e-11)


@pytest.mark.parametrize("floor", [None, 0.04])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_kyfan_gradient_matches_differences(nonnegative: bool, floor: float | None) -> None:
    rng = np.random.default_rng(2)
    A = np.cov(rng.standard_normal((20, 9)).T)
    pairs = 36
    split = KyFanSplit.rounded(
        np.arange(9), 0.3 * rng.standard_normal(pairs), 0.5 * rng.standard_normal(pairs),
        rng.uniform(0.05, 0.2, 9), 0.03,
    )  # fmt: skip
    smooth = KyFanOptimiser(A, split, Sizes(3, 2, 5, nonnegative), 2.0, floor)
    here = smooth.point.astype(np.float64)
    value, gradient = smooth._evaluate(here, 0.05)
    rough, single = smooth._evaluate(here.astype(np.float32), 0.05)
    assert (rough, single.dtype) == (pytest.approx(value, rel=1e-5), np.float32)
    np.testing.assert_allclose(single, gradient, atol=1e-4)
    for i in [*rng.permutation(here.size)[:40], here.size - 1]:
        moved = [here.copy() for _ in range(2)]
        moved[0][i] += 1e-6
        moved[1][i] -= 1e-6
        up, down = (smooth._evaluate(point, 0.05)[0] for point in moved)
        assert (up - down) / 2e-6 == pytest.approx(gradient[i], abs=2e-5 * max(1.0, abs(value)))


def test_fermi_dirac_weights_add_up_to_k() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        w = np.sort(rng.standard_normal(12) * rng.choice([1e-3, 1.0]))
        k, mu = int(rng.integers(1, 11)), 10.0 ** rng.uniform(-6, 0)
        weight, _, value = fermi_dirac(w, k, mu)
        assert weight.sum() == pytest.approx(k, abs=1e-8)
        assert w[-k:].sum() - 1e-9 <= value <= w[-k:].sum() + mu * 12 * np.log(2) + 1e-9


def test_proved_sum_is_a_sum_of_eigenvalues() -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        n, k = int(rng.integers(1, 10)), int(rng.integers(1, 6))
        M = rng.standard_normal((n, n))
        M = M + M.T
        outside = rng.standard_normal(int(rng.integers(k, 8)))
        every = np.sort(np.concatenate([np.linalg.eigvalsh(M), outside]))[-k:]
        proved = proved_sum(M, outside, k)
        assert every.sum() <= proved <= every.sum() + 1e-9


def test_minimise_keeps_variables_nonnegative_when_asked() -> None:
    target = np.array([1.0, -2.0, 3.0, -1.0])

    def evaluate(y: np.ndarray) -> tuple[float, np.ndarray]:
        d = y - target
        return float(d @ d), 2 * d

    y = minimise(evaluate, np.zeros(4), 50, lambda history: False, nonnegative=2)
    np.testing.assert_allclose(y, [1.0, -2.0, 3.0, 0.0], atol=1e-6)


def test_bound_is_deterministic_and_reports_progress() -> None:
    A = np.cov(np.random.default_rng(5).standard_normal((40, 30)).T)
    cov = covariance_of(A)
    supports = joint_search(cov.dense(), (4, 4))
    seen: list[float] = []
    monitor = Monitor(lambda progress: seen.append(progress.bound))
    question = JointQuestion(cov, (4, 4), supports, 1.0)
    first, second = kyfan.kyfan_bound(question, monitor=monitor), kyfan.kyfan_bound(question)
    assert first.value == second.value
    assert seen
    assert seen[-1] >= first.value


@pytest.mark.parametrize(("name", "k", "s", "gap"), [("communities", 3, 5, 0.01)])
def test_kyfan_bound_is_within_a_percent_on_communities(
    name: str, k: int, s: int, gap: float
) -> None:
    with np.load(data_file("benchmark_correlations.npz")) as matrices:
        cov = covariance_of(matrices[name])
    supports = joint_search(cov.dense(), (s,) * k)
    value = sum(np.linalg.eigvalsh(cov.submatrix(S))[-1] for S in supports)
    bound = kyfan.kyfan_bound(JointQuestion(cov, (s,) * k, supports, value))
    assert value <= bound.value <= value * (1 + gap)


def test_kyfan_bound_holds_when_the_core_has_fewer_features_than_components(monkeypatch):
    """A zero covariance outside: components without a feature explain nothing."""
    monkeypatch.setitem(kyfan.EFFORTS, "fast", kyfan.Effort(1, (0.1,), 6, (0.1,), 4, 0, 0.5))
    A = np.diag([3.0, 2.0, 1.0, 0.5])
    cov = covariance_of(A)
    supports = [np.array([0]), np.array([1]), np.array([2])]
    bound = kyfan.kyfan_bound(JointQuestion(cov, (1, 1, 1), supports, 6 / cov.unit))
    assert 6.0 * (1 - 1e-12) <= bound.value * cov.unit < 6.1


def test_a_split_among_fewer_features_has_their_entries():
    rng = np.random.default_rng(0)
    features = np.array([1, 3, 4, 7, 9])
    u, r = rng.standard_normal((2, 10)).astype(np.float32)
    split = KyFanSplit(features, u, r, rng.random(5).astype(np.float32), 0.5)
    alive = np.array([0, 1, 4, 5, 7, 9])
    part = split.among(alive)
    stay = [0, 2, 3, 4]
    np.testing.assert_array_equal(alive[part.features], features[stay])
    np.testing.assert_array_equal(part.price, split.price[stay])
    for whole, less in zip(split.full(), part.full()):
        np.testing.assert_array_equal(less, whole[np.ix_(stay, stay)])


def test_steps_that_do_not_fit_the_room_are_not_stored(monkeypatch):
    stored = []
    monkeypatch.setattr(
        optimise, "minimise", lambda f, point, *args, **own: stored.append(own) or point
    )
    n, pairs = 30, 435
    plain = KyFanSplit.rounded(np.arange(n), np.zeros(pairs), np.zeros(pairs), np.ones(n), 0.1)
    for room in (np.inf, 300 * n**2, 1.0):
        KyFanOptimiser(np.eye(n), plain, Sizes(5, 2, 10, False), 4.0).run(0.1, 400, room=room)
    most, some, fewest = (own["memory_size"] for own in stored)
    assert (most, fewest) == (optimise.MEMORY, optimise.FEWEST)
    assert fewest < some < most
    assert 8 * (optimise.MATRICES + optimise.VECTORS + 2 * some) * n**2 <= 300 * n**2
    n = 2 * optimise.SMALL
    assert optimise.largest_core(100 * n**2) < n < optimise.largest_core(110 * n**2)
    assert optimise.largest_core(1.0) == optimise.SMALL


def test_a_core_without_room_for_all_that_stand_in_the_way_takes_the_worst_of_them(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 60)) * 1.8
    for j in range(2):
        X[:, 5 * j : 5 * j + 5] = rng.standard_normal((400, 1)) + 0.3 * rng.standard_normal(
            (400, 5)
        )
    cov = covariance_of(np.cov(X.T, bias=True))
    supports = [np.arange(5), np.arange(5, 10)]
    value = sum(np.linalg.eigvalsh(cov.submatrix(s))[-1] for s in supports)
    found = {}
    for most in (25, 40, 60):
        monkeypatch.setattr(kyfan, "largest_core", lambda room, most=most: most)
        monkeypatch.setitem(kyfan.EFFORTS, "wide", replace(kyfan.EFFORTS["wide"], core=14))
        found[most] = kyfan.kyfan_bound(JointQuestion(cov, (5, 5), supports, value), effort="wide")
        assert found[most].data["features"].size <= most
        assert found[most].value >= value
    assert found[60].value < found[40].value < found[25].value
