"""Pair-split certificates, redone: charges of pairs and rows, and levels that are tested."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sparcipal.checker import pairsplit as split
from tests.support.margins import LESS, E, matrices


@pytest.mark.parametrize("nonnegative", [False, True])
def test_pair_charges_pay_for_every_pair_in_fractions(nonnegative):
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-6):
        u = np.triu(rng.standard_normal((7, 7)) * scale, 1).astype(np.float32).astype(float)
        r = np.triu(rng.uniform(-20, 20, (7, 7)), 1).astype(np.float32).astype(float)
        u, r = u + u.T, r - r.T
        v = split.pair_charges(u, r, nonnegative)
        for i, j in combinations(range(7), 2):
            due = Fraction(u[i, j]) ** 2 if u[i, j] > 0 or not nonnegative else Fraction(0)
            paid = Fraction(v[i, j]) * Fraction(v[j, i])
            assert due <= paid <= due * (1 + Fraction(1, 10**13))
    with pytest.raises(split.Unproved):
        split.pair_charges(np.full((2, 2), np.nan), np.zeros((2, 2)), False)


def test_largest_sums_are_those_of_all_supports_in_fractions():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, s = 5, int(rng.integers(1, 6))
        v = rng.random((n, n))
        price = rng.random(n) * rng.choice([0.0, 0.5])
        forced = np.zeros(n, dtype=bool)
        forced[: int(rng.integers(0, s))] = True
        pad = rng.random(n) * rng.choice([0.0, 0.2])
        d, level, after = split.largest_sums(v - price, v, forced, price, s, pad)
        for i in range(n):
            held = [j for j in range(n) if forced[j] and j != i]
            free = [j for j in range(n) if not forced[j] and j != i]
            room = s - int(forced.sum()) - (not forced[i])
            gains = [Fraction(v[i, j]) - Fraction(price[j]) for j in free]
            gains = sorted((max(g, Fraction(pad[i])) for g in gains), reverse=True)
            gains += [Fraction(pad[i])] * (n + 1)
            exact = sum((Fraction(v[i, j]) - Fraction(price[j]) for j in held), Fraction(0))
            exact += sum(gains[: max(room, 0)], Fraction(0)) - Fraction(price[i])
            if room < 0:
                continue  # no support holds it
            assert exact <= Fraction(d[i]) <= exact + Fraction(1, 10**12)
            if room > 0:
                assert level[i] == pytest.approx(float(gains[room - 1]), abs=1e-15)
                assert after[i] == pytest.approx(float(gains[room]), abs=1e-15)


@pytest.mark.usefixtures("coarse")
def test_below_keeps_its_margin(factored):
    for A, _ in matrices(6):
        for t in (3.0, 8.0):
            split.below(A, t)
            shifted = t * np.eye(6) - A
            spread = np.abs(shifted).sum(axis=1).max()
            due = 2 * 8 * E * (np.trace(shifted) + t) + 2 * E * spread
            assert (np.diagonal(shifted - factored[-1]) >= due * LESS).all()


@pytest.mark.usefixtures("coarse")
def test_largest_sums_keep_their_margins():
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
