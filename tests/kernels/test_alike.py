"""The search for sets of features that cost little, beside the same in plain Python."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparcipal.kernels.alike import sets_below


def cheap(single, pair, g: int, limit: int) -> set[tuple[int, ...]]:
    """All sets of g features below the limit, one by one."""
    return {
        P
        for P in combinations(range(len(single)), g)
        if sum(single[i] for i in P) + sum(pair[i, j] for i, j in combinations(P, 2)) < limit
    }


def searched(single, pair, g: int, limit: int, most: int = 10**6, room: int = 500):
    """What the kernel says: sets, or None where it gave up."""
    n = len(single)
    rest = np.full((n, g + 1, n), 2**40)
    for i in range(n):
        for q in range(g + 1):
            for j in range(i, n):
                others = sorted(pair[j, m] for m in range(i, n) if m != j)
                if q - 1 <= len(others):
                    rest[i, q, j] = sum(others[: max(q - 1, 0)])
    found = np.empty((room, g), dtype=np.int64)
    each, score = np.empty((2, g + 1, n), dtype=np.int64)
    state = np.empty((6, g + 1), dtype=np.int64)
    looked, count = sets_below(single, pair, rest, limit, most, found, each, score, state)
    return looked, None if count < 0 else {tuple(P) for P in found[:count].tolist()}


@pytest.mark.parametrize("seed", range(3))
def test_sets_below_are_those_of_plain_enumeration(seed):
    """Costs of both signs, ties, sets of one feature and of all; every set is met once."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n = int(rng.integers(1, 9))
        g = int(rng.integers(1, n + 1))
        size = int(rng.choice([2, 50, 10**6]))
        single = rng.integers(-size, size + 1, n)
        pair = np.triu(rng.integers(-size, size + 1, (n, n)), 1)
        pair = pair + pair.T
        costs = [
            single[list(P)].sum() + pair[np.ix_(P, P)].sum() // 2 for P in combinations(range(n), g)
        ]
        limit = int(rng.choice(costs)) + int(rng.integers(0, 2))
        assert searched(single, pair, g, limit)[1] == cheap(single, pair, g, limit)


def test_sets_below_gives_up_at_either_limit():
    """More sets than there is room for, or more to look at than is allowed."""
    single, pair = np.zeros(6, dtype=np.int64), np.zeros((6, 6), dtype=np.int64)
    assert len(searched(single, pair, 3, 1)[1]) == 20
    assert searched(single, pair, 3, 1, room=19)[1] is None
    looked, _ = searched(single, pair, 3, 1)
    assert searched(single, pair, 3, 1, most=looked)[1] is not None
    assert searched(single, pair, 3, 1, most=looked - 1)[1] is None
