"""The checker's margins with a coarse unit of rounding: so large that each of them can be seen.

Every margin is at least what the page on rounding errors asks for; more would be no mistake.
"""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.checker import cheap as bounds
from sparcipal.checker import configuration, dspca, greedy, kyfan, packing
from sparcipal.checker import core as extension
from sparcipal.checker import dropped as screened
from sparcipal.checker import lowrank as sphere
from sparcipal.checker import pairsplit as split
from sparcipal.checker import tree as proof
from sparcipal.checker.covariance import (
    CheckedCovariance,
    Question,
    covariance_of,
    covariance_of_data,
)
from tests.support.margins import charges, matrices

E = 2.0**-20
LESS = 1 - 1e-9  # of the sums that are written down here, for their own rounding
MODULES = (
    bounds, configuration, dspca, extension, greedy, kyfan, packing, proof, screened, sphere, split
)  # fmt: skip


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    for module in MODULES:
        monkeypatch.setattr(module, "EPS", E)


@pytest.fixture
def factored(monkeypatch):
    """The matrices that were to be factored; all of them are."""
    seen: list[np.ndarray] = []
    for module in (bounds, kyfan, packing, proof, sphere, split):
        monkeypatch.setattr(module, "factorises", lambda M: seen.append(M) or True)
    return seen


def from_data(p: int = 6, scale: float = 1.0) -> CheckedCovariance:
    """A covariance of data, with no errors of its own."""
    X = np.random.default_rng(0).standard_normal((20, p)) * np.geomspace(2, 0.5, p) * scale
    cov = covariance_of_data(X, True, False, None, 1.0)[0]
    cov.error_unit = 0.0
    return cov


def one(*sizes: int, nonnegative: bool = False) -> Question:
    return Question(sizes, nonnegative, True, 0.0)


# --- factorisations ---


def test_sums_of_eigenvalues(factored):
    for A, _ in matrices(4):
        for k in (1, 2, 3):
            for M in (A, A - 2 * np.eye(6)):
                w, Q = np.linalg.eigh(M)
                nu, lifted = w[6 - k], np.maximum(w - w[6 - k], 0.0)
                claims = [bounds.ky_fan(M, k)]
                claims.append(kyfan._ky_fan(M, w[6 - k :], Q[:, 6 - k :], np.zeros(0), k))
                size = np.abs(np.diagonal(M)).sum() + lifted.sum() + 7 * abs(nu)
                size = min(size, np.abs(lifted.sum() - np.trace(M)) + lifted.sum() + 7 * abs(nu))
                for claim, H in zip(claims, factored[-2:]):
                    level = H[0, 0] + M[0, 0] - ((Q * lifted) @ Q.T)[0, 0]
                    delta = 2 * (6 + k + 4) * E * size
                    assert level > nu
                    due = k * (level + delta) + lifted.sum() * (1 + 6 * E)
                    assert claim >= due - 1e-9 * abs(due)


def test_rows_outside_beside_eigenvalues(factored):
    A, _ = next(iter(matrices(1)))
    w, Q = np.linalg.eigh(A)
    rows = np.array([w[-1] + 3.0, w[-1] + 2.0, w[-2], 0.0])
    alone = kyfan._ky_fan(A, w[-3:], Q[:, -3:], np.zeros(0), 3)
    claim = kyfan._ky_fan(A, w[-3:], Q[:, -3:], rows, 3)
    assert claim >= (rows[:2].sum() + w[-1]) * LESS + 4 * E * (5.0)
    assert alone >= w[-3:].sum() + 3 * 2 * 13 * E * w[-1]
    spread = np.abs(A).sum(axis=1).max()
    size = np.abs(np.diagonal(A) - 0).sum()
    bare = kyfan._ky_fan(A, w[-1:], Q[:, -1:], np.zeros(0), 1)
    level = factored[-1][0, 0] + A[0, 0]
    least = 2 * 11 * E * (size + 7 * w[-1]) + 2 * E * spread
    assert bare - level >= least * LESS


def test_a_level_that_is_tested(factored):
    for A, _ in matrices(6):
        for t in (3.0, 8.0):
            split.below(A, t)
            shifted = t * np.eye(6) - A
            spread = np.abs(shifted).sum(axis=1).max()
            due = 2 * 8 * E * (np.trace(shifted) + t) + 2 * E * spread
            assert (np.diagonal(shifted - factored[-1]) >= due * LESS).all()


def test_matrices_that_are_not_quite_psd(factored):
    A = np.diag([1.0, 0.5, 0.25])
    shift = bounds.psd_shift(covariance_of(A, 1.0))
    tested = factored[-1][0, 0] - 1.0
    assert tested > 0
    assert shift - tested >= 2 * 5 * E * 2.75 * LESS
    assert bounds.psd_shift(from_data()) == 0.0


def test_many_small_matrices():
    for A, _ in matrices(4):
        blocks = np.array([A[:3, :3], A[2:5, 2:5]])
        tops = np.linalg.eigvalsh(blocks)[:, -1]
        room = 2 * 7 * E * (np.trace(blocks, axis1=1, axis2=2) + 4 * tops)
        assert (bounds._proved_tops(blocks, tops) >= (tops + 3 * room) * LESS).all()
        vectors = np.array([[0.6, 0.0, 0.8], [1.0, 2.0, -2.0]])
        plain = np.array([v @ b @ v / (v @ v) for v, b in zip(vectors, blocks)])
        due = 4 * 7 * E * np.linalg.norm(blocks, axis=(1, 2))
        assert (bounds._rayleigh(blocks, vectors) <= plain - due * LESS).all()


def test_small_tests(factored):
    rng = np.random.default_rng(0)
    factor, drop, room = rng.standard_normal((7, 3)), rng.random(7), 5.0
    gram = (factor / (room + drop)[:, None]).T @ factor
    trace = np.trace(gram)
    proof._small_test(factor, room, drop)
    due = (14 + 32) * E * trace + 4 * 5 * E * (3 + trace)
    assert np.allclose(np.eye(3) * (1 - due) - gram, factored[-1], atol=1e-9)


def test_values_of_supports(monkeypatch):
    levels = []
    monkeypatch.setattr(packing, "below", lambda M, t: levels.append(t) or len(levels) > 1)
    A, _ = next(iter(matrices(1, p=4)))
    top = np.linalg.eigvalsh(A)[-1]
    step = 4 * 8 * E * (np.trace(A) + 5 * top)
    assert packing._proved_value(A) == levels[1]
    assert levels[0] >= (top + step) * LESS
    assert levels[1] >= (top + 16 * step) * LESS


# --- sums of charges and prices ---


@pytest.mark.parametrize("nonnegative", [False, True])
def test_cheap_bounds(nonnegative, monkeypatch):
    cov = from_data()
    A, d = cov.dense(), cov.diagonal
    for sizes in ((3,), (2, 2)):
        question, s, k, m = one(*sizes, nonnegative=nonnegative), max(sizes), len(sizes), sum(sizes)
        top = np.sort(d)[::-1][:m].sum()
        assert bounds.trace({}, cov, question) >= top * (1 + m * E) * LESS
        rows = np.sort(d + charges(A, s, nonnegative).sum(axis=1))[::-1][:k].sum()
        assert bounds.gershgorin({}, cov, question) >= rows * (1 + (s + k + 4) * E) * LESS
        c = 0.5
        rho = np.sort((d - c) ** 2 + (charges(A, s, nonnegative) ** 2).sum(axis=1))[::-1][:m].sum()
        plain = k * c + np.sqrt(k * rho)
        found = bounds.frobenius({"c": c}, cov, question)
        assert found >= plain * (1 + (m + s + 16) * E) * LESS
        monkeypatch.setattr(bounds, "ky_fan", lambda M, k: float(np.trace(M)))
        moved = np.clip(A - np.diag(d), 0.0 if nonnegative else -0.1, 0.1)
        paid = charges(moved, s, nonnegative).sum() * (1 + (s + 8) * E)
        assert bounds.clip({"rho": 0.1}, cov, question) >= (d.sum() + paid) * LESS
        monkeypatch.undo()
        monkeypatch.setattr(bounds, "EPS", E)


def test_eigenvalues_from_samples(monkeypatch):
    X = np.random.default_rng(1).standard_normal((5, 30))
    cov = covariance_of_data(X, True, False, None, 1.0)[0]
    monkeypatch.setattr(bounds, "FACTOR_LIMIT", 10)
    monkeypatch.setattr(bounds, "ky_fan", lambda M, k: float(np.linalg.eigvalsh(M)[-k:].sum()))
    cov.error_unit = 0.0
    plain = np.linalg.eigvalsh(cov.dense())[-2:].sum()
    due = 2 * 32 * E * np.trace(cov.gram())
    assert bounds.eigenvalues({}, cov, one(2, 2)) >= (plain + due) * LESS


def test_enumerated_supports(monkeypatch):
    cov = from_data(5)
    monkeypatch.setattr(bounds, "_proved_tops", lambda blocks, guess: guess)
    for question in (one(2), one(2, 1)):
        best = bounds.enumeration({}, cov, question)
        monkeypatch.setattr(bounds, "EPS", 0.0)
        plain = bounds.enumeration({}, cov, question)
        monkeypatch.setattr(bounds, "EPS", E)
        assert best >= plain * (1 + 2 * question.k * E) * LESS
    # supports that are passed over cost what they have more, at every step down to one
    signs = one(3, nonnegative=True)
    lost = 1.0
    monkeypatch.setattr(bounds, "_scored", lambda *given: (np.array([2.0]), [(0,)], lost))
    assert bounds.enumeration({}, cov, signs) >= (2.0 + 2 * lost) * (1 + 2 * E) * LESS


def test_charges_of_a_row():
    rng = np.random.default_rng(2)
    w = rng.random((5, 5))
    none = np.zeros(5, dtype=bool)
    for price in (np.zeros(5), rng.random(5)):
        gains = w - price
        d = split.largest_sums(gains, w, none, price, 3, np.zeros(5))[0]
        for i in range(5):
            free = np.sort(np.maximum(np.delete(gains[i], i), 0.0))[::-1][:2]
            paid = free.sum() - price[i]
            size = w[i].max() * 3 + price.max() * 4
            due = (3 + 8) * E * (abs(paid) + (3 * size if price.any() else 0.0))
            assert d[i] >= paid + due * LESS


@pytest.mark.parametrize("nonnegative", [False, True])
def test_joint_splits(nonnegative, monkeypatch):
    seen = {}
    monkeypatch.setattr(kyfan, "_ky_fan", lambda M, *rest: seen.update(M=M) or 0.0)
    cov = from_data(6)
    rng = np.random.default_rng(3)
    u, r = rng.standard_normal(15) * 0.1, rng.standard_normal(15)
    price, pad, s = rng.random(6) * 0.1, 0.01, 3
    data = {"features": np.arange(6), "u": u, "r": r, "price": price, "pad": pad}
    full, turn = np.zeros((6, 6)), np.zeros((6, 6))
    full[np.triu_indices(6, 1)], turn[np.triu_indices(6, 1)] = u, r
    full, turn = full + full.T, turn - turn.T
    v = np.maximum(full, 0.0) if nonnegative else np.abs(full)
    gain = np.maximum(v * np.exp(turn) * (1 + 6 * E) - price, pad)
    floor = 0.005
    question = one(s, 2, nonnegative=nonnegative)
    total, prices = kyfan.spectrum(data, cov, question, floor)
    assert total >= 4 * 2 * s * E * floor * LESS
    assert np.allclose(prices, price + floor, atol=0)
    for i in range(6):
        charge = np.sort(np.delete(gain[i], i))[::-1][: s - 1].sum()
        charge += (s + 4) * E * (charge + 2 * s * price.max())
        due = cov.dense()[i, i] + charge - price[i] - s * floor
        assert seen["M"][i, i] >= due - 1e-12
        assert seen["M"][i, i] <= due + 1e-3
    paid = np.sort(price)[::-1][:5].sum()
    assert kyfan.recheck(data, cov, question) >= paid * (1 + 6 * E) * LESS


def test_rows_outside_are_rounded_up():
    charge = np.array([[0.5, -1.0, 0.25, 0.125]])
    for count, plain in ((1, 0.5), (2, 0.75), (4, 0.875)):
        due = plain + (count + 6) * E * (plain + 2 * count * 3.0)
        assert kyfan._up(charge, count, 3.0)[0] >= due * LESS
    assert kyfan._up(charge, 0, 3.0)[0] == 0.0
    rows = np.array([0, 1, 2])
    diagonal, terms = np.array([1.0, 1.0, 1.0]), np.full((3, 2), 0.5)
    m = 2.0 + (2 + 16) * E * 2.0
    for t, kept in ((m * (1 - E), 3), (m * (1 + E), 0)):
        assert extension._above(rows, t, 2, diagonal, lambda rows: terms[rows]).size == kept


def test_prices_of_configurations(monkeypatch):
    cov = from_data(4)
    price = np.array([0.1, 0.2, 0.3, 0.4])
    header = {"s": 2, "nonnegative": False, "prices": price}
    data = {"price": price, "parts": [{"s": 2, "log": [header]}]}
    given: list[np.ndarray] = []
    monkeypatch.setattr(configuration, "replay", lambda log, a: given.append(a) or 3.0)
    assert configuration.recheck(data, cov, one(2, 2)) >= 7.0 * (1 + 8 * E) * LESS
    assert np.allclose(given[0], cov.dense())
    monkeypatch.setattr(configuration, "replay", lambda log, a: -3.0)
    assert configuration.recheck(data, cov, one(2, 1)) >= 1.0
    packed = {**data, "packing": {"target": 5.0, "u": [], "r": []}}
    matrix: list[np.ndarray] = []
    for best, least in ((4.0, 5.0), (6.0, 6.0)):
        monkeypatch.setattr(
            configuration, "largest_packing", lambda *given, b=best: matrix.append(given[0]) or b
        )
        assert configuration.recheck(packed, cov, one(2, 2)) >= least * (1 + 4 * E) * LESS
        assert np.allclose(matrix[0], cov.dense())
    cov.error_unit = 1e-3
    assert configuration.recheck(packed, cov, one(2, 2)) >= 6.0 + cov.rounding(4)
    monkeypatch.setattr(configuration, "replay", lambda log, a: 3.0)
    assert configuration.recheck(data, cov, one(2, 2)) >= 7.0 + 2 * cov.rounding(2)


def test_dual_of_dspca(monkeypatch):
    cov = from_data(4)
    data = {"penalty": 0.1, "core": np.arange(4), "moved": np.zeros(6)}
    monkeypatch.setattr(dspca, "ky_fan", lambda M, k: 2.0)
    wide = np.abs(cov.diagonal - 0.1).max() + 4 * 0.1
    for question, k in ((one(2), 1), (one(2, 1), 2)):
        n = sum(question.cardinalities)
        due = (2.0 + 0.1 * n) * (1 + 4 * E) + k * E * wide
        assert dspca.recheck(data, cov, question) >= due * LESS
    free = Question((2, 1), False, False, 0.0)
    assert dspca.recheck(data, cov, free) >= (4.0 + 0.3) * (1 + 4 * E) * LESS + 2 * E * wide
    cov.error_unit = 1e-3
    assert dspca.recheck(data, cov, one(2, 1)) >= 2.3 + cov.rounding(3)
    assert dspca.recheck(data, cov, free) >= 4.3 + 2 * cov.rounding(2)
    # variances outside the core may reach the penalty, not rise above it
    part = {"penalty": float(cov.diagonal[3]), "core": np.arange(3), "moved": np.zeros(3)}
    assert dspca.recheck(part, cov, one(2)) == np.inf
    cov.error_unit = 0.0
    assert dspca.recheck({**part, "penalty": part["penalty"] + 1e-9}, cov, one(2)) < np.inf
    given = covariance_of(np.diag([1.0, 1.0, 1.0, 0.5]), 1.0)
    assert dspca.recheck({**part, "penalty": 0.5 + E}, given, one(2)) == np.inf


def test_dropped_features():
    X = np.random.default_rng(4).standard_normal((30, 6)) * [3.0, 2.5, 2.0, 1.5, 1.2, 0.4]
    cov = screened.of_data(X, np.array([0, 1, 2]), True, False, None, 1.0)[0]
    assert (cov.upper - cov.diagonal >= 2 * E * cov.diagonal * LESS).all()
    cov.upper = cov.diagonal
    cov.inner.error_unit = 0.0
    v = np.sort(cov.diagonal)[::-1]
    plain = (v[:2].sum() * (1 + 3 * E) + v[3]) * (1 + 7 * E)
    assert screened.touching({"rule": "variances"}, 100.0, cov, one(3)) >= plain * LESS
    given = one(2, 2)
    parts = {"parts": [{"s": 2, "rule": "variances"}]}
    touch, total = screened.by_parts(parts, {2: 1.0}, cov, given)
    alone = screened.touching({"rule": "variances"}, 1.0, cov, one(2))
    assert min(touch, total) >= 2 * max(alone, 1.0) * (1 + 2 * E) * LESS


# --- packings ---


def test_packed_supports_know_their_error(monkeypatch):
    rng = np.random.default_rng(5)
    A = np.cov(rng.standard_normal((9, 5)).T)
    price, pi, s, k = np.full(5, 0.1), 2.0, 2, 2
    upper = np.zeros(10)
    slack = 64 * (5 + s + 8) * E * (np.trace(A) + price.sum())
    asked, packed = [], []
    supports = [[0, 1], [2, 3]]
    found = {"above": None}
    monkeypatch.setattr(
        packing._Charges, "above", lambda self, t: asked.append(t) or found["above"]
    )
    target = 6.0
    assert packing.largest_packing(A, s, k, price, pi, target, upper, upper) == np.inf
    assert asked[0] <= target - 0.5 - pi - slack * LESS
    found["above"] = supports
    monkeypatch.setattr(packing, "_proved_value", lambda block: 1.0)
    monkeypatch.setattr(packing, "_best", lambda *given: packed.append(given) or 1.0)
    packing.largest_packing(A, s, k, price, pi, target, upper, upper)
    _, _, values, lost, room, count = packed[0]
    assert count == k
    assert min(values) >= 1.0 + slack * LESS
    assert max(lost) <= pi - 1.0 + 0.2 - slack * LESS
    assert room >= 0.5 + k * pi - target + (k + 1) * slack * LESS


def test_the_best_packing():
    values = [5.0, 4.0, 3.0, 2.0]
    lost = [0.0, 1.0, 2.0, 3.0]
    sets = [frozenset(S) for S in ((0, 1), (1, 2), (2, 3), (4, 5))]
    order = list(range(4))
    assert packing._best(order, sets, values, lost, 10.0, 2) == 8.0
    assert packing._best(order, sets, values, lost, 10.0, 3) == 10.0
    assert packing._best(order, sets, values, lost, 2.0, 2) == 8.0
    assert packing._best(order, sets, values, lost, 1.9, 2) == 0.0
    assert packing._best(order, sets, values, lost, 10.0, 1) == 5.0


def test_branches_that_are_cut(factored):
    """M and the level it is compared with, against all supports of the branch."""
    rng = np.random.default_rng(6)
    n, s, tau = 5, 3, 0.7
    A = 4 * np.cov(rng.standard_normal((9, n)).T)
    price, u, r = rng.random(n) * 0.1, 4 * rng.standard_normal(10), rng.standard_normal(10)
    charging = packing._Charges(A, s, price, u, r)
    v, full = charging.v, np.zeros((n, n))
    full[np.triu_indices(n, 1)] = u
    full = full + full.T
    assert (v * v.T >= full**2 * (1 + 12 * E) * LESS).all()
    for forced, free in (([], [0, 1, 2, 3]), ([4], [0, 2, 3]), ([1, 3], [0, 4])):
        _, M = charging.settled(forced, free, tau)
        order = [*forced, *free]
        m, f = len(order), len(forced)
        plain = A[np.ix_(order, order)] - full[np.ix_(order, order)]
        for a, i in enumerate(order):
            for b, j in enumerate(order):
                if a < f and b < f:
                    plain[a, b] = A[i, j]
            held = sum((0.0 if a < f else v[i, j]) - price[j] for j in forced if j != i)
            gains = sorted((max(v[i, j] - price[j], 0.0) for j in free if j != i), reverse=True)
            paid = held + sum(gains[: s - f - (a >= f)]) - price[i]
            size = v[i, order].max() + price[order].max()
            plain[a, a] = A[i, i] + paid + (s + 8) * E * s * size
        assert np.allclose(M, plain, rtol=0, atol=1e-12)
        size = np.abs(tau - np.diagonal(M)).sum() + tau
        due = 2 * (m + 2) * E * size + 2 * E * np.abs(M).sum(axis=1).max()
        assert (np.diagonal(tau * np.eye(m) - M - factored[-1]) >= due * LESS).all()


# --- what a replay allows for ---


def test_twins_that_are_not_quite_multiples():
    A = np.array([[4.0, 2.0, 0.4], [2.0, 1.0 + 1e-3, 0.2], [0.4, 0.2, 4.0]])
    header = {"unit": 1.0, "s": 2, "nonnegative": False, "bound": 6.0, "step": "problem"}
    header["twins"] = {"features": [1], "leaders": [0], "factors": [0.5]}
    replayed = proof._Replay([header], A)
    assert replayed.bound - replayed.t >= 2 * (1e-3 + 4 * E * 4.0) * LESS
    assert replayed.a[1, 1] == 1.0


def test_fixed_features_leave_room(monkeypatch):
    asked = []
    monkeypatch.setattr(proof, "_small_test", lambda B, room, drop: asked.append(drop) or True)
    monkeypatch.setattr(proof, "_majorant", lambda M, t: (np.zeros((4, 2)), 0.0))
    rng = np.random.default_rng(7)
    A = np.cov(rng.standard_normal((9, 4)).T)
    header = {"unit": 1.0, "s": 2, "nonnegative": False, "bound": 5.0, "step": "problem"}
    step = {"step": "split", "features": np.arange(4), "u": np.full(6, 3.0), "r": np.zeros(6)}
    replayed = proof._Replay([header, step], A)
    alive, forced = np.ones(4, dtype=bool), np.zeros(4, dtype=bool)
    _, w, level, following = replayed._split(1, alive, forced)
    replayed._check_fixing(1, alive, forced, np.array([0]), np.array([2]))
    for drop, gap, size in (
        (asked[0], level - w[:, 0], level + np.abs(w[:, 0])),
        (asked[1], (w[:, 2] - following)[[0, 1, 3]], (following + np.abs(w[:, 2]))[[0, 1, 3]]),
    ):
        rows = np.arange(drop.size) > 0 if drop.size == 4 else np.arange(3) >= 0
        assert (drop[rows] <= (gap - 8 * E * size)[rows] + 1e-15).all()
    assert asked[0][0] == 0.0


# --- low rank ---


def test_low_rank_totals(monkeypatch):
    cov = from_data(4)
    prices = np.array([0.1, 0.0, 0.2, 0.0])
    data = {"V": np.ones((4, 1)), "s": 2, "level": 1.0, "shift": 0.5, "nonnegative": False,
            "prices": prices, "proof": "features", "tree": np.zeros(0, dtype=np.int8)}  # fmt: skip
    monkeypatch.setattr(sphere, "majorant", lambda *given: 0.5)
    monkeypatch.setattr(sphere, "sphere", lambda *given: 1.0)
    largest = np.sort(cov.diagonal)[::-1][:2].sum()
    for question in (one(2), one(2, 2)):
        k = question.k
        plain = k * (1.5 + 2 * E * largest) + 0.3
        assert sphere.recheck(data, cov, question) >= plain * (1 + 4 * (4 + k) * E) * LESS
    cov.error_unit = 1e-3
    assert sphere.recheck(data, cov, one(2, 2)) >= 3.3 + 2 * cov.rounding(2)


def test_low_rank_majorants(factored):
    cov = from_data(6)
    A, shift = cov.dense(), 0.5
    for error, V in ((0.0, np.full((6, 2), 0.1)), (1e-3, np.full((6, 2), 2.0))):
        cov.error_unit = error
        claim = sphere._factored(A, V, shift, cov)
        tested = factored[-1][0, 0] + (A - V @ V.T)[0, 0]
        size = np.trace(A) + (V * V).sum() + 7 * shift
        due = 2 * (6 + 16) * E * size + error * cov.weights.sum()
        assert claim - tested >= due * LESS
        assert tested > shift
        claim = sphere._factored_by_samples(cov, V, shift)
        weight, gamma = cov.weights.sum(), 2 * (6 + 16) * E
        wide = (V * V).sum()
        stretch = 1 + 2 * np.sqrt(wide / shift)
        due = (gamma * stretch + 4 * (20 + 16) * E + error) * (weight + 20 * shift)
        level = claim - due
        assert level >= (shift + 3 * due) * LESS
        # the small matrix is made larger by its own rounding
        X, W = cov._left, np.column_stack([V, np.zeros(6)])
        inner = W.T @ W + (level + gamma * wide) * np.eye(3)
        K = X @ W @ np.linalg.solve(inner, (X @ W).T) - X @ X.T + level * np.eye(20)
        assert np.allclose(factored[-1], K, atol=1e-9)
    assert (
        np.diagonal(sphere.clipped(A, 0.1, 3, False)).sum()
        >= (np.trace(A) + charges(np.clip(A, -0.1, 0.1), 3, False).sum() * (1 + 11 * E)) * LESS
    )


def test_low_rank_traces():
    for error, scale in ((0.0, 0.25), (1e-3, 0.25), (0.0, 4.0), (1e-3, 4.0)):
        cov = from_data(6, scale)
        w, Q = np.linalg.eigh(cov.dense())
        V = Q[:, -2:] * np.sqrt(w[-2:])
        plain = w[:4].sum()
        cov.error_unit = error
        due = 4 * (8 * 22 * E + error) * cov.weights.sum() * w[-1] / w[-2]
        assert sphere._by_trace(cov, V) >= (plain + due) * LESS
    assert sphere._by_trace(cov, V * [1.0, 0.9]) >= plain + 0.18 * w[-1]


def test_entries_of_cones():
    for r, s in ((2, 3), (4, 1)):
        due = r * E * ((4 * r + s + 20) * 2.0 + (6 * r + 12) * 3.0)
        assert sphere._rounding(r, s, 2.0, -3.0) >= due * LESS
