"""Packings of supports, redone: every support above a level, their values and the best packing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparcipal.checker import packing
from sparcipal.checker.budget import Budget
from sparcipal.checker.covariance import Question
from sparcipal.checker.family import Case
from tests.support.margins import LESS, E
from tests.support.replay import FLOAT, charges_of, packing_of


def test_above_finds_every_support_above_a_level():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, s = 5, 2
        A = np.cov(rng.standard_normal((9, n)).T)
        price = rng.random(n) * 0.2
        worth = {
            S: np.linalg.eigvalsh(A[np.ix_(S, S)])[-1] - price[list(S)].sum()
            for size in (1, s)
            for S in combinations(range(n), size)
        }
        charging = charges_of(A, s, price, A[np.triu_indices(n, 1)] * 0.5, np.zeros(10))
        for tau in (0.2, float(np.median(list(worth.values()))), max(worth.values()) * 0.999):
            found = {tuple(S) for S in charging.above(tau)}
            # a larger support may stand for those within it
            for S, value in worth.items():
                assert value <= tau or any(set(S) <= set(T) for T in found) or S in found
            best = max(worth, key=worth.__getitem__)
            assert best in found
        assert charging.above(max(worth.values()) * 1.001) == []


@pytest.mark.usefixtures("coarse")
def test_largest_packing_keeps_its_margins(monkeypatch):
    rng = np.random.default_rng(5)
    A = np.cov(rng.standard_normal((9, 5)).T)
    price, pi, s, k = np.full(5, 0.1), 2.0, 2, 2
    upper = np.zeros(10)
    slack = 64 * (5 + s + 8) * E * (np.trace(A) + price.sum())
    asked, packed = [], []
    supports = [[0, 1], [2, 3]]
    monkeypatch.setattr(packing.Charges, "above", lambda self, t: asked.append(t) or supports)
    monkeypatch.setattr(packing, "proved_tops", lambda *given: np.ones(1))
    monkeypatch.setattr(packing, "_best", lambda *given: packed.append(given) or 1.0)
    target = 3.0
    packing_of(A, (s, s), price, pi, {"target": target, "u": upper, "r": upper})
    assert asked[0] <= target - 0.5 - pi - slack * LESS
    _, values, lost, unused, case = packed[0]
    assert case.question.k == k
    assert min(values) >= 1.0 + slack * LESS
    room = 0.5 + k * pi - target + 2 * (k + 1) * slack
    assert max(lost) / packing.PARTS * room <= pi - 1.0 + 0.2 - slack * LESS
    assert max(lost) / packing.PARTS * room >= (pi - 1.0 + 0.2 - slack) * (1 - 1e-9)
    assert set(unused.values()) == {0}  # of five features that cost the same, one may be unused


def test_best_packing_is_that_of_all_disjoint_choices_that_lose_no_more_than_they_may():
    rng = np.random.default_rng(8)
    for _ in range(60):
        n, k, count = int(rng.integers(4, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 15))
        sets = [frozenset(rng.choice(n, rng.integers(1, 4), False).tolist()) for _ in range(count)]
        lost = sorted((rng.random(count) * packing.PARTS * 0.7).astype(int).tolist())
        unused = {int(f): int(rng.integers(packing.PARTS // 4)) for f in rng.permutation(n)}
        values = rng.integers(1, 100, count).astype(float).tolist()
        few, many = [0.0], [0.0]
        for some in combinations(range(count), k):
            used = frozenset().union(*(sets[i] for i in some))
            gone = sum(lost[i] for i in some)
            if len(used) == sum(len(sets[i]) for i in some) and gone <= packing.PARTS:
                many.append(sum(values[i] for i in some))
                if gone + sum(unused[f] for f in unused if f not in used) <= packing.PARTS:
                    few.append(many[-1])
        case = Case(None, Question((3,) * k, False, True, 0.0), FLOAT, Budget())
        assert max(few) <= packing._best(sets, values, lost, unused, case) <= max(many)
        free = dict.fromkeys(unused, 0)
        assert packing._best(sets, values, lost, free, case) == max(many)


@pytest.mark.usefixtures("coarse")
def test_settled_compares_with_its_margin(factored):
    """M and the level it is compared with, against all supports of the branch."""
    rng = np.random.default_rng(6)
    n, s, tau = 5, 3, 0.7
    A = 4 * np.cov(rng.standard_normal((9, n)).T)
    price, u, r = rng.random(n) * 0.1, 4 * rng.standard_normal(10), rng.standard_normal(10)
    charging = charges_of(A, s, price, u, r)
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
            chosen = sum(gains[: s - f - (a >= f)])
            paid = held + chosen + (s - f - (a >= f) + 8) * E * chosen - price[i]
            size = v[i, order].max() + price[order].max()
            plain[a, a] = A[i, i] + paid + (s + 8) * E * s * size
        assert np.allclose(M, plain, rtol=0, atol=1e-12)
        due = 2 * (m + 2) * E * (np.abs(tau - np.diagonal(M)).sum() + tau)
        assert (np.diagonal(tau * np.eye(m) - M - factored[-1]) >= due * LESS).all()
