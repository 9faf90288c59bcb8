"""Pair-split certificates: what a row is charged, against fractions and against all supports."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Refused
from sparcipal.checker.pairsplit import Supports, charged, pair_charges, row_sums
from sparcipal.checker.records import PairSplit, RankOneSplit
from tests.support.replay import FLOAT

E = 2.0**-20


class Coarse(Float):
    """Rounding terms so large that each of them can be seen."""

    eps = E


def everything(n, s, nonnegative=False, price=None, forced=None, pad=None):
    """All supports of at most s of n features."""
    none = np.zeros(n)
    return Supports(
        np.arange(n),
        np.zeros(n, dtype=bool) if forced is None else forced,
        s,
        nonnegative,
        none if price is None else price,
        none if pad is None else pad,
    )


@pytest.mark.parametrize("nonnegative", [False, True])
def test_charges_of_a_pair_pay_for_its_entry(nonnegative):
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-6, 1e-200):
        u = np.triu(rng.standard_normal((7, 7)) * scale, 1)
        r = np.triu(rng.uniform(-20, 20, (7, 7)), 1).astype(np.float32).astype(float)
        u, r = u + u.T, r - r.T
        v = pair_charges(u, r, nonnegative, FLOAT)
        for i, j in combinations(range(7), 2):
            due = Fraction(u[i, j]) ** 2 if u[i, j] > 0 or not nonnegative else Fraction(0)
            paid = Fraction(v[i, j]) * Fraction(v[j, i])
            assert due <= paid <= due * (1 + Fraction(1, 10**13))


def test_charges_that_overflow_are_refused():
    u, r = np.full((2, 2), 1e300), np.array([[0.0, 90.0], [-90.0, 0.0]])
    with np.errstate(all="ignore"), pytest.raises(Refused, match="not finite"):
        pair_charges(u, r, False, FLOAT)


def test_charges_of_rows_are_the_largest_of_all_supports():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, s = 5, int(rng.integers(1, 6))
        v = rng.random((n, n))
        price = rng.random(n) * rng.choice([0.0, 0.5])
        forced = np.zeros(n, dtype=bool)
        forced[: int(rng.integers(0, s))] = True
        pad = rng.random(n) * rng.choice([0.0, 0.2])
        of = everything(n, s, price=price, forced=forced, pad=pad)
        d, level, after = row_sums(v - price, of, FLOAT)
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


def test_charges_of_a_row_are_rounded_up_by_the_sizes_of_their_terms():
    rng = np.random.default_rng(2)
    v = rng.random((5, 5))
    for price in (np.zeros(5), rng.random(5)):
        gains = v - price
        d = row_sums(gains, everything(5, 3, price=price), Coarse())[0]
        for i in range(5):
            free = np.sort(np.maximum(np.delete(gains[i], i), 0.0))[::-1][:2]
            due = (3 + 8) * E * (free.sum() + price[i])
            assert d[i] >= free.sum() - price[i] + due * (1 - 1e-9)


@pytest.mark.parametrize("priced", [False, True])
def test_no_support_is_worth_more_than_the_matrix_of_its_certificate(priced):
    """x'Ax - price(S) <= x'Mx for every support."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        n, s = 5, 2 + seed % 3
        A = np.cov(rng.standard_normal((9, n)).T)
        price = rng.random(n) * 0.3 * priced
        split = PairSplit(
            features=np.arange(n), u=rng.standard_normal(10) * 0.3, r=rng.standard_normal(10)
        )
        index = np.flatnonzero(np.arange(n) != (int(rng.integers(n)) if seed % 2 else n))
        forced = np.zeros(index.size, dtype=bool)
        forced[: seed % 2 + 1] = seed > 1
        of = Supports(index, forced, s, False, price[index], np.zeros(index.size))
        M = charged(split, A[np.ix_(index, index)], of, FLOAT).matrix
        for size in range(max(1, int(forced.sum())), s + 1):
            for S in combinations(range(index.size), size):
                if forced[list(S)].sum() != forced.sum():
                    continue
                features = index[list(S)]
                block = A[np.ix_(features, features)] - price[features].sum() * np.eye(size)
                assert np.linalg.eigvalsh(M[np.ix_(S, S)] - block)[0] >= -1e-12


def test_a_certificate_must_name_all_features_of_its_node():
    A = np.eye(3)
    for features in ([0, 1], [1, 2], [0]):
        split = RankOneSplit(
            features=np.array(features), rank_one=np.zeros(len(features)), floor=1.0
        )
        with pytest.raises(Refused, match="lacks features"):
            charged(split, A, everything(3, 2), FLOAT)
