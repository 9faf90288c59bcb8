"""Swaps and chains of the exchange search, against every swap."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparcipal.problem.monitor import Monitor
from sparcipal.search.exchange import Exchange
from tests.support.brute import covariance


def worth(A: np.ndarray, owner: np.ndarray, k: int) -> float:
    """The sum of the largest eigenvalues of the components' blocks."""
    members = [np.flatnonzero(owner == j) for j in range(k)]
    return sum(float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]) for S in members)


def best_swap(A: np.ndarray, owner: np.ndarray, k: int) -> float:
    """The largest value of an assignment in which two features have changed places."""
    values = []
    for a, b in combinations(range(owner.size), 2):
        other = owner.copy()
        other[[a, b]] = owner[[b, a]]
        values.append(worth(A, other, k))
    return max(values)


def searched(A: np.ndarray, need: list[int], owner: np.ndarray, anchor: np.ndarray) -> np.ndarray:
    search = Exchange(A, np.array(need), False, owner, anchor)
    found, value, _ = search.run(Monitor())
    assert value == pytest.approx(worth(A, found, len(need)), rel=1e-9)
    assert np.bincount(found[found >= 0], minlength=len(need)).tolist() == need
    return found


def cases(need: list[int], p: int):
    """Matrices, assignments to begin with, and where a search from them ends."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A = covariance(rng.standard_normal((2 * p, 3)) @ rng.standard_normal((3, p)))
        A += np.diag(rng.uniform(0.0, 0.5, p))
        owner = np.full(p, -1)
        owner[rng.permutation(p)[: sum(need)]] = np.repeat(np.arange(len(need)), need)
        yield A, owner


@pytest.mark.parametrize("need", [[3, 3], [4, 3, 2], [2, 2, 2, 2]])
def test_a_search_never_ends_below_its_start(need):
    for A, owner in cases(need, 14):
        found = searched(A, need, owner, np.full(14, -1))
        assert worth(A, found, len(need)) >= worth(A, owner, len(need)) - 1e-12


@pytest.mark.parametrize("need", [[3, 3], [4, 3, 2], [2, 2, 2, 2]])
def test_a_chain_gains_where_no_swap_does(need, monkeypatch):
    passed = 0
    for A, owner in cases(need, 14):
        with monkeypatch.context() as patch:
            patch.setattr(Exchange, "_chained", lambda self: set())
            without = searched(A, need, owner, np.full(14, -1))
        k = len(need)
        stuck = best_swap(A, without, k) <= worth(A, without, k) * (1 + 1e-9)
        found = searched(A, need, without, np.full(14, -1))
        passed += stuck and worth(A, found, k) > worth(A, without, k) * (1 + 1e-6)
    assert passed > 0


def test_a_chain_leaves_anchors_in_their_components():
    need, anchor = [4, 3, 2], np.full(14, -1)
    for A, owner in cases(need, 14):
        held = np.array([np.flatnonzero(owner == j)[0] for j in range(3)])
        anchor[:] = -1
        anchor[held] = np.arange(3)
        found = searched(A, need, owner, anchor)
        assert found[held].tolist() == [0, 1, 2]
