"""The supports of a list: what is found by bits is what a scan finds, and it is charged."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from sparcipal import alternatives, sparse_pca, verify
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


def test_a_support_that_shrinks_to_a_part_of_a_listed_one_is_not_settled_by_the_list():
    A = np.eye(4) - 0.2
    A[0], A[:, 0] = -0.5, -0.5
    A[0, 1] = A[1, 0] = 0.5
    np.fill_diagonal(A, [3.0, 1.0, 1.0, 1.0])
    found = alternatives(
        sparse_pca(covariance=A, n_nonzero_coefs=2, nonnegative=True), covariance=A, within=0.3
    )
    near = found.components[0]
    assert [support.tolist() for support in (one.support for one in near.supports)] != [[0, 1]]

    def node(parent, side, moved, end):
        moved = np.array(moved, dtype=np.int32)
        return {
            "step": "node", "parent": parent, "side": side, "moved": moved, "passes": [],
            "end": end,
        }  # fmt: skip

    # {0, 2} and {0, 3} have no positive best vector; {0} alone is part of the listed {0, 1}
    log = [
        {**near.proof["log"][0], "listed": [np.array([0, 1], dtype=np.int32)]},
        node(-1, "root", [], "branch"),
        node(1, "out", [0], "leaf"),
        node(1, "in", [0], "branch"),
        node(3, "in", [2], "branch"),
        node(3, "out", [2], "branch"),
        node(4, "in", [1], "empty"),
        node(4, "out", [1], "branch"),
        node(7, "in", [3], "empty"),
        node(7, "out", [3], "shrink"),
        node(9, "shrink", [0], "leaf"),
        node(9, "shrink", [2], "leaf"),
        node(5, "in", [3], "branch"),
        node(5, "out", [3], "leaf"),
        node(12, "in", [1], "empty"),
        node(12, "out", [1], "shrink"),
        node(15, "shrink", [0], "leaf"),
        node(15, "shrink", [3], "leaf"),
    ]
    best = [one for one in near.supports if one.support.tolist() == [0, 1]]
    bare = {"drops": (), "outsiders": near.outsiders[:0], "with_value": near.with_value[:0]}
    bare |= {"with_bound": near.with_bound[:0], "leaving": near.leaving[:0]}
    forged = replace(near, supports=tuple(best), proof={**near.proof, "log": log}, **bare)
    checked = verify(replace(found, components=(forged,)), covariance=A)
    assert checked.verdict == "refused"
    assert "leaf" in checked.reason
