"""The supports of a list: what is found by bits is what a scan finds, and it is charged."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.listed import Listing


@pytest.mark.parametrize("seed", range(5))
def test_a_support_is_listed_or_a_part_of_one_up_to_exchanges(seed):
    rng = np.random.default_rng(seed)
    p, s = 7, 3
    leaders = np.arange(p)
    leaders[4] = 1  # features 1 and 4 are equal; 5 is a multiple of 0
    leaders[5] = 0
    factors = np.where(np.arange(p) == 5, 0.5, 1.0)
    every = [list(S) for S in combinations(range(p), s) if 4 not in S or 1 in S]
    listed = [np.array(every[i]) for i in rng.choice(len(every), 4, replace=False)]
    listing = Listing(tuple(listed), leaders, factors, s)

    def first(support):
        return {1 if j == 4 and 1 not in support else j for j in support}

    for size in range(1, s + 1):
        for support in combinations(range(p), size):
            inside = any(first(support) <= set(other.tolist()) for other in listed)
            assert listing.holds(list(support)) == inside


def test_looking_through_a_list_is_charged():
    listed = tuple(np.array(S) for S in combinations(range(20), 3))
    listing, budget = Listing(listed, np.arange(20), np.ones(20), 4), Budget()
    listing.charge(1000.0, budget)
    assert budget.spent > 1000 * 4 * 5e3
    with pytest.raises(Refused, match="list"):
        listing.charge(1e6, Budget(1e9))
    with pytest.raises(Refused, match="GiB"):
        listing.charge(1.0, Budget(memory=1000.0))
