"""The search over cones: against brute force, against its own recheck, and at the edges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sparcipal.bounds.lowrank.cones import best_rows
from sparcipal.bounds.lowrank.sphere import MAX_RANK, Effort, rounding_margin, sphere_search
from sparcipal.checker import lowrank as checker
from sparcipal.checker.budget import Refused
from sparcipal.kernels import sphere as kernel
from sparcipal.problem.monitor import Monitor
from sparcipal.problem.problem import Options
from tests.support.replay import FLOAT, level_of


def brute_force(V, s, nonnegative=False, prices=None):
    """The optimum over all supports; for x >= 0 those whose leading eigenvector has one sign."""
    p = len(V)
    prices = np.zeros(p) if prices is None else prices
    A, best = V @ V.T, 0.0
    every_size = nonnegative or prices.any()
    for size in range(1 if every_size else min(s, p), min(s, p) + 1):
        for support in map(list, itertools.combinations(range(p), size)):
            w, Q = np.linalg.eigh(A[np.ix_(support, support)])
            lead = Q[:, -1]
            if nonnegative and not ((lead >= -1e-9).all() or (lead <= 1e-9).all()):
                continue
            best = max(best, float(w[-1]) - float(prices[support].sum()))
    return best


def adversarial(rng):
    """Small factors of every unpleasant kind."""
    p, r = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    V = rng.standard_normal((p, r))
    kind = rng.integers(8)
    if kind == 1:
        V = rng.integers(-1, 2, (p, r)).astype(float)  # ties and zero rows
    if kind == 2:
        V[rng.integers(p)] = 0.0
        V[rng.integers(p)] = V[rng.integers(p)]
    if kind == 3:
        V[rng.integers(p)] = -V[rng.integers(p)]
    if kind == 4:
        V = np.outer(rng.standard_normal(p), rng.standard_normal(r))  # rank one, r columns
    if kind == 5:
        V *= 10.0 ** rng.uniform(-6, 6, (p, 1))
    if kind == 6:
        V = np.abs(V)
    if kind == 7:
        V[:, -1] = V[:, 0]
    return V * 10.0 ** int(rng.integers(-12, 13)), int(rng.integers(1, p + 1))


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_sphere_search_encloses_the_optimum(seed, nonnegative):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        V, s = adversarial(rng)
        optimum = brute_force(V, s, nonnegative)
        found = sphere_search(V, s, nonnegative=nonnegative)
        assert found.finished
        assert found.value == pytest.approx(optimum, rel=1e-9, abs=1e-280)
        assert optimum * (1 - 1e-14) <= found.bound <= found.value * (1 + 1.01e-6) + 1e-280
        own = level_of(V, s, nonnegative, np.zeros(len(V)), found.level, found.tree)
        assert optimum * (1 - 1e-14) <= own <= found.bound


@pytest.mark.parametrize("nonnegative", [False, True])
def test_sphere_search_holds_with_prices(nonnegative):
    rng = np.random.default_rng(11)
    for _ in range(80):
        V, s = adversarial(rng)
        sizes = (V * V).sum(axis=1)
        scale = np.sort(sizes)[::-1][:s].sum()
        prices = rng.uniform(0, 1, len(V)) * sizes * rng.choice([0.1, 0.5, 1.0, 2.0])
        optimum = brute_force(V, s, nonnegative, prices)
        found = sphere_search(V, s, nonnegative=nonnegative, prices=prices)
        assert found.finished
        assert abs(found.value - optimum) <= 1e-11 * scale
        assert optimum - 1e-14 * scale <= found.bound
        assert found.bound <= found.value * (1 + 1.01e-6) + 1e-9 * scale + 1e-280
        own = level_of(V, s, nonnegative, prices, found.level, found.tree)
        assert optimum - 1e-14 * scale <= own <= found.bound


def test_prices_of_zero_change_nothing():
    V = np.random.default_rng(0).standard_normal((30, 3))
    plain, priced = sphere_search(V, 4), sphere_search(V, 4, prices=np.zeros(30))
    assert plain.value == priced.value
    assert plain.bound == priced.bound


@pytest.mark.kernels
def test_sphere_search_returns_a_support_that_explains_its_value():
    V = np.random.default_rng(3).standard_normal((200, 4))
    for nonnegative in (False, True):
        found = sphere_search(V, 7, nonnegative=nonnegative)
        value, rows = best_rows(V, 7, nonnegative, np.zeros(200), found.c)
        assert np.linalg.norm(found.c) == pytest.approx(1.0)
        assert value == pytest.approx(found.value, rel=1e-12)
        assert np.array_equal(np.sort(rows), found.support)
        lead = np.linalg.eigvalsh(V[found.support].T @ V[found.support])[-1]
        assert lead == pytest.approx(found.value, rel=1e-9) or nonnegative


def test_the_checker_refuses_what_is_not_proved():
    V = np.random.default_rng(5).standard_normal((60, 3))
    found, free = sphere_search(V, 5), np.zeros(60)
    assert level_of(V, 5, False, free, found.value * (1 - 1e-7), found.tree) == np.inf
    assert level_of(V, 6, False, free, found.level, found.tree) == np.inf
    longer = V * 1.01
    assert level_of(longer, 5, False, free, found.level, found.tree) == np.inf
    with pytest.raises(Refused, match="malformed"):
        level_of(V, 5, False, free, found.level, found.tree[:-1])
    pruned = found.tree.copy()
    pruned[0] = 3 * 3
    with pytest.raises(Refused, match="malformed"):
        level_of(V, 5, False, free, found.level, pruned)
    pruned[0] = 0
    with pytest.raises(Refused, match="a point"):
        level_of(V, 5, False, free, found.level, pruned)
    # A tree for signed components covers half of the sphere only.
    with pytest.raises(Refused, match="malformed"):
        level_of(V, 5, True, free, found.level, found.tree)


def test_stopping_early_leaves_a_valid_bound():
    V = np.random.default_rng(1).standard_normal((400, 6))
    best = sphere_search(V, 10, effort=Effort(1e-4))
    assert best.finished
    for limit in (1, 40, 300, 2000):
        early = sphere_search(V, 10, effort=Effort(1e-4, max_cones=limit))
        assert not early.finished
        assert early.bound >= best.value
        own = level_of(V, 10, False, np.zeros(400), early.level, early.tree)
        assert best.value <= own <= early.bound


def test_the_monitor_stops_the_search():
    V = np.random.default_rng(1).standard_normal((500, 8))
    monitor = Monitor()
    monitor.stop()
    found = sphere_search(V, 10, options=Options(monitor=monitor))
    assert not found.finished
    assert found.bound >= found.value
    assert found.cones <= 30_000


def test_an_accuracy_beyond_rounding_ends():
    V = np.random.default_rng(2).standard_normal((20, 3))
    found = sphere_search(V, 4, effort=Effort(1e-15))
    assert found.finished
    assert found.value <= found.bound <= found.value * (1 + 1e-9)


def test_wild_scales_are_the_same_problem():
    V = np.random.default_rng(4).standard_normal((50, 3))
    plain = sphere_search(V, 5)
    for power in (-500, -100, 100, 500):
        scaled = sphere_search(np.ldexp(V, power), 5)
        assert np.array_equal(scaled.support, plain.support)
        assert scaled.value == np.ldexp(plain.value, 2 * power)
        assert scaled.bound == np.ldexp(plain.bound, 2 * power)


def test_the_same_question_has_the_same_answer():
    V = np.random.default_rng(6).standard_normal((300, 5))
    one, other = sphere_search(V, 9), sphere_search(V, 9)
    assert one.bound == other.bound
    assert np.array_equal(one.tree, other.tree)


def everything(found):
    """The bytes of an answer and of its proof."""
    figures = np.array([found.value, found.bound, found.level, found.cones, found.oracle_calls])
    arrays = (figures, found.c, found.support, found.tree, *found.others)
    return tuple(array.tobytes() for array in arrays)


def test_regions_give_the_same_bytes_on_any_number_of_threads(monkeypatch):
    """Finished and not, signed and not, with prices: three threads find what one finds."""
    monkeypatch.setattr("sparcipal.bounds.lowrank.cones.ROUND", 400)
    monkeypatch.setattr("sparcipal.bounds.lowrank.cones.STEP", 150)
    for seed, max_cones in enumerate((2_000_000, 2_000_000, 3_000, 401, 400)):
        rng = np.random.default_rng(seed)
        V = rng.standard_normal((120, 5))
        prices = 0.3 * rng.random(120) if seed == 1 else None
        effort = Effort(1e-3, max_cones=max_cones, others=10)
        asked = {"nonnegative": seed % 2 == 1, "prices": prices, "effort": effort}
        one, *more = (
            sphere_search(V, 8, options=Options(n_jobs=jobs), **asked) for jobs in (1, 2, 3)
        )
        assert all(everything(found) == everything(one) for found in more)
        assert one.finished == (max_cones > 3_000)
        free = np.zeros(120) if prices is None else prices
        own = level_of(V, 8, asked["nonnegative"], free, one.level, one.tree)
        assert one.value <= own <= one.bound
        assert one.cones <= max_cones + 8, "a region halves one cone at least"


@pytest.mark.parametrize("nonnegative", [False, True])
def test_regions_prove_what_one_tree_proves(monkeypatch, nonnegative):
    """Ties, twins, zero rows and all scales: the optimum lies between value and bound."""
    monkeypatch.setattr("sparcipal.bounds.lowrank.cones.STEP", 3)
    for seed in range(40):
        V, s = adversarial(np.random.default_rng(1000 + seed))
        monkeypatch.setattr("sparcipal.bounds.lowrank.cones.ROUND", 1 + seed % 7)
        found = sphere_search(V, s, nonnegative=nonnegative)
        best = brute_force(V, s, nonnegative)
        assert found.value <= best * (1 + 1e-9) <= found.bound * (1 + 2e-9)
        free = np.zeros(len(V))
        assert found.value <= level_of(V, s, nonnegative, free, found.level, found.tree)
        if found.finished:
            assert found.bound <= best * (1 + 2e-6) + 1e-280


def test_rows_too_short_to_be_chosen_add_no_cones():
    rng = np.random.default_rng(0)
    small = rng.standard_normal((2000, 4)) * np.arange(1, 2001)[:, None] ** -0.5
    more = rng.standard_normal((40_000, 4)) * np.arange(2001, 42_001)[:, None] ** -0.5
    a, b = sphere_search(small, 10), sphere_search(np.vstack([small, more]), 10)
    assert a.value == b.value
    assert a.cones == b.cones


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"V": np.ones((5, MAX_RANK + 1))}, "up to rank 7"),
        ({"V": np.ones(5)}, "p x r matrix"),
        ({"V": np.full((3, 2), np.nan)}, "NaN"),
        ({"s": 0}, "at least 1"),
        ({"effort": Effort(0.0)}, "strictly between 0 and 1"),
        ({"effort": Effort(1.0)}, "strictly between 0 and 1"),
        ({"prices": -np.ones(5)}, "prices must be 5"),
        ({"prices": np.ones(4)}, "prices must be 5"),
    ],
)
def test_sphere_search_refuses_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        sphere_search(**{"V": np.ones((5, 2)), "s": 2, **arguments})


# --- the kernels against plain NumPy ---


def plain_products(V, prices, s, positive, a, b):
    x, y = V @ a, V @ b
    gains = np.where((x > 0) & (y > 0), x * y, 0.0) if positive else x * y
    gains = gains - prices * (a @ b)
    return np.sort(gains[gains > 0])[::-1][:s]


@pytest.mark.kernels
@pytest.mark.parametrize("positive", [False, True])
def test_top_products_match_numpy(positive):
    rng = np.random.default_rng(0)
    for _ in range(50):
        p, r, s = int(rng.integers(1, 40)), int(rng.integers(1, 6)), int(rng.integers(1, 10))
        V = rng.standard_normal((p, r)) * rng.uniform(0, 2, (p, 1))
        V = np.ascontiguousarray(V[np.argsort(-(V * V).sum(axis=1))])
        prices = rng.uniform(0, 0.5, p) * rng.integers(0, 2)
        a, b = np.abs(rng.standard_normal((2, r)))
        value, index = np.empty(s), np.empty(s, dtype=np.int64)
        known = int(rng.integers(0, p + 1))
        question = V, (V * V).sum(axis=1), prices, s, positive
        dots = V[:known] @ a, V[:known] @ b
        count = kernel.top_products(question, a, b, *dots, (value, index))
        expected = plain_products(V, prices, s, positive, a, b)
        assert count == expected.size
        assert np.sort(value[:count])[::-1] == pytest.approx(expected, rel=1e-12)
        assert len(set(index[:count])) == count


@pytest.mark.kernels
def test_ascend_never_descends():
    rng = np.random.default_rng(1)
    for positive in (False, True):
        V = rng.standard_normal((100, 4))
        V = np.ascontiguousarray(V[np.argsort(-(V * V).sum(axis=1))])
        c = rng.standard_normal(4)
        c /= np.linalg.norm(c)
        before = best_rows(V, 6, positive, np.zeros(100), c)[0]
        spare, value, index = np.empty(4), np.empty(6), np.empty(6, dtype=np.int64)
        sizes, free, empty = (V * V).sum(axis=1), np.zeros(100), np.empty(0)
        question = V, sizes, free, 6, positive
        after = kernel.ascend(question, c, empty, (value, index), spare)
        assert after >= before
        assert after == pytest.approx(best_rows(V, 6, positive, free, spare)[0], rel=1e-12)


@pytest.mark.kernels
def test_copositive_kernel_agrees_with_the_checker_and_with_samples():
    rng = np.random.default_rng(2)
    passed = 0
    for _ in range(400):
        r = int(rng.integers(1, 6))
        S = rng.standard_normal((r, r)) + 1.5 * np.eye(r)
        S = S + S.T
        zero, work = np.zeros((r, r)), np.empty((r, r))
        seen = kernel.copositive(S, zero, 1.0, work)
        assert seen == bool(checker.copositive(S[None], FLOAT)[0])
        if seen:
            passed += 1
            a = np.abs(rng.standard_normal((300, r)))
            assert np.einsum("ij,jk,ik->i", a, S, a).min() >= 0
            assert kernel.copositive(S, zero, 1.7, work)
    assert passed > 50


@pytest.mark.kernels
def test_heap_keeps_the_smallest_key_on_top():
    rng = np.random.default_rng(3)
    given = rng.standard_normal(200)
    keys, items, out = np.zeros(200), np.zeros(200, dtype=np.int64), []
    for item in range(200):
        kernel.rise(keys, items, item, given[item], item)
    for size in range(199, -1, -1):
        out.append(int(items[0]))
        kernel.sink(keys, items, size, keys[size], items[size])
    assert out == np.argsort(given).tolist()


@pytest.mark.kernels
def test_find_edge_finds_edges_again_from_either_end():
    rng = np.random.default_rng(4)
    keys = np.full(1024, -1, dtype=np.int64)
    for a, b in rng.integers(0, 40, (400, 2)):
        slot, key = kernel.find_edge(keys, a, b)
        keys[slot] = key
        assert kernel.find_edge(keys, b, a) == (slot, key)
    distinct = keys[keys != -1]
    assert np.unique(distinct).size == distinct.size


def test_margin_covers_higher_precision():
    """T in extended precision differs from T as computed by less than the margin."""
    rng = np.random.default_rng(5)
    V = rng.standard_normal((30, 4)) * 10.0 ** rng.uniform(-3, 3, (30, 1))
    order = np.argsort(-(V * V).sum(axis=1))
    V = np.ascontiguousarray(V[order])
    for _ in range(50):
        a, b = np.abs(rng.standard_normal((2, 4)))
        long = np.longdouble
        exact = np.sort((V.astype(long) @ a.astype(long)) * (V.astype(long) @ b.astype(long)))
        exact = exact[exact > 0][::-1][:5].sum()
        mine = plain_products(V, np.zeros(30), 5, False, a, b).sum()
        room = rounding_margin(V, 5, 0.0) * np.linalg.norm(a) * np.linalg.norm(b)
        assert abs(float(exact) - mine) <= room / 4


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("priced", [False, True])
def test_rows_beyond_the_sorted_head_count_too(monkeypatch, nonnegative, priced):
    rng = np.random.default_rng(3)
    for _ in range(30):
        p, r, s = int(rng.integers(8, 40)), int(rng.integers(1, 4)), int(rng.integers(1, 6))
        V = rng.standard_normal((p, r)) * rng.uniform(0.2, 1.0, (p, 1))
        prices = rng.uniform(0, 0.3, p) if priced else None
        whole = sphere_search(V, s, nonnegative=nonnegative, prices=prices)
        monkeypatch.setattr("sparcipal.bounds.lowrank.cones.SORTED", int(rng.integers(1, 6)))
        part = sphere_search(V, s, nonnegative=nonnegative, prices=prices)
        monkeypatch.undo()
        assert part.value == pytest.approx(whole.value, rel=2e-6, abs=1e-12)
        assert part.bound >= whole.value * (1 - 1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"s": 0}, "s must be at least 1 nonzero, got s=0"),
        ({"prices": np.ones(3)}, "prices must be 4 finite numbers >= 0, one per row of V"),
        ({"prices": -np.ones(4)}, "prices must be 4 finite numbers >= 0"),
        ({"prices": np.full(4, np.inf)}, "prices must be 4 finite numbers >= 0"),
    ],
)
def test_sphere_search_refuses_sizes_and_prices_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        sphere_search(np.eye(4)[:, :2], **{"s": 2, **arguments})
