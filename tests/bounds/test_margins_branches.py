"""Branches of the checker's trees against all supports, one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparcipal.checker import configuration, kyfan, packing
from sparcipal.checker import pairsplit as split
from sparcipal.checker import tree as proof
from sparcipal.checker.covariance import covariance_of

E = 2.0**-20


def header(**more):
    plain = {"unit": 1.0, "s": 2, "nonnegative": False, "bound": 9.0, "step": "problem"}
    return {**plain, **more}


def test_features_leave_with_their_twins_only():
    """Out with a feature go multiples of it that are no longer and no cheaper."""
    A = np.outer([1.0, 0.5, 0.25, 1.0], [1.0, 0.5, 0.25, 1.0])
    A[3] = A[:, 3] = [0.0, 0.0, 0.0, 1.0]
    twins = {"features": [1, 2], "leaders": [0, 0], "factors": [0.5, 0.25]}
    replayed = proof._Replay([header(twins=twins)], A)
    for into, out in ((0, [0]), (0, [0, 1]), (0, [0, 1, 2]), (1, [1, 2])):
        replayed._check_branch(np.array([into]), np.array(out))
    for into, out in ((1, [0, 1]), (0, [0, 3]), (3, [0, 3]), (0, [1]), (2, [1, 2])):
        with pytest.raises(split.Unproved):
            replayed._check_branch(np.array([into]), np.array(out))
    replayed.price = np.array([0.2, 0.1, 0.2, 0.2])
    replayed._check_branch(np.array([0]), np.array([0, 2]))
    with pytest.raises(split.Unproved):
        replayed._check_branch(np.array([0]), np.array([0, 1]))


@pytest.mark.parametrize("priced", [False, True])
def test_the_matrix_of_a_node(priced):
    """x'Ax - price(S) <= x'Mx for every support of the node."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        n, s = 5, 2 + seed % 3
        A = np.cov(rng.standard_normal((9, n)).T)
        price = rng.random(n) * 0.3 * priced
        step = {"step": "split", "features": np.arange(n)}
        step |= {"u": rng.standard_normal(10) * 0.3, "r": rng.standard_normal(10)}
        replayed = proof._Replay([header(s=s, prices=price), step], A)
        alive = np.ones(n, dtype=bool)
        alive[int(rng.integers(n))] = seed % 2 == 0
        forced = np.zeros(n, dtype=bool)
        forced[np.flatnonzero(alive)[: seed % 2 + 1]] = seed > 1
        M = replayed._split(1, alive, forced)[0]
        index = np.flatnonzero(alive).tolist()
        for size in range(max(1, int(forced.sum())), s + 1):
            for S in combinations(range(len(index)), size):
                features = [index[i] for i in S]
                if forced[features].sum() != forced.sum():
                    continue
                block = A[np.ix_(features, features)] - price[features].sum() * np.eye(size)
                gap = np.linalg.eigvalsh(M[np.ix_(S, S)] - block)
                assert gap[0] >= -1e-12


def test_every_support_above_a_level_is_found():
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
        charging = packing._Charges(A, s, price, A[np.triu_indices(n, 1)] * 0.5, np.zeros(10))
        for tau in (0.2, float(np.median(list(worth.values()))), max(worth.values()) * 0.999):
            found = {tuple(S) for S in charging.above(tau)}
            # a larger support may stand for those within it
            for S, value in worth.items():
                assert value <= tau or any(set(S) <= set(T) for T in found) or S in found
            best = max(worth, key=worth.__getitem__)
            assert best in found
        assert charging.above(max(worth.values()) * 1.001) == []


def test_rows_outside_are_added_with_their_rounding(monkeypatch):
    monkeypatch.setattr(kyfan, "EPS", E)
    monkeypatch.setattr(kyfan, "factorises", lambda M: True)
    A = np.diag([3.0, 2.0, 1.0])
    w, Q = np.linalg.eigh(A)
    rows = np.array([2.0**20, 2.0**19, 0.0, 0.0])
    claim = kyfan._ky_fan(A, w[-3:], Q[:, -3:], rows, 3)
    assert claim >= (rows.sum() - 6.0) * (1 + 4 * E) + 9.0


def test_cores_of_configurations():
    cov = covariance_of(np.eye(4), 1.0)
    assert configuration._core({}, cov).tolist() == [0, 1, 2, 3]
    assert configuration._core({"features": [1, 3]}, cov).tolist() == [1, 3]
    for core in ([], [-1, 2], [2, 4], [2, 2], [3, 1], [[0, 1]]):
        with pytest.raises(ValueError, match="core"):
            configuration._core({"features": core}, cov)
