"""The supports of a list: what is found by bits is what a scan finds, and it is charged."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from sparcipal import alternatives, sparse_pca, verify
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.listed import Listing
from tests.support.second_checker import check_alternatives


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
    assert checked.reason == "a support has a larger value"


def _other_weights(near, at, weights, A):
    """The list with other weights of one support, and what they explain."""
    weights = weights / np.linalg.norm(weights)
    S = near.supports[at].support
    value = float(weights @ A[np.ix_(S, S)] @ weights)
    entries = [*near.supports]
    entries[at] = replace(entries[at], weights=weights, value=value)
    return replace(near, supports=tuple(sorted(entries, key=lambda entry: -entry.value)))


@pytest.fixture(scope="module", params=[False, True], ids=["signed", "nonnegative"])
def listed(request):
    X = np.random.default_rng(5).standard_normal((40, 6))
    X[:, 1] += 0.9 * X[:, 0]
    X[:, 2] += 0.89 * X[:, 0]
    A = np.cov(X.T, bias=True)
    found = alternatives(
        covariance=A, n_nonzero_coefs=2, within=0.3, drop=False, force=0, nonnegative=request.param
    )
    assert len(found.components[0].supports) > 1
    return found, A


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_weights_of_a_list_that_are_not_the_best_are_refused(listed, arithmetic):
    if arithmetic == "exact":
        pytest.importorskip("flint")
    found, A = listed
    near = found.components[0]
    assert verify(found, covariance=A, arithmetic=arithmetic)
    weights = near.supports[1].weights + np.array([0.0, 1e-6])
    forged = replace(found, components=(_other_weights(near, 1, weights, A),))
    assert "near them surpass" in verify(forged, covariance=A, arithmetic=arithmetic).reason
    assert "near them surpass" in check_alternatives(forged.to_json(), covariance=A)


def test_another_eigenvector_of_a_listed_support_is_refused():
    A = np.diag([2.0, 1.99, 1.98, 1.0])
    found = alternatives(covariance=A, n_nonzero_coefs=2, within=0.3, drop=False, force=0)
    near = found.components[0]
    at = next(i for i, one in enumerate(near.supports) if one.support.tolist() == [1, 2])
    forged = _other_weights(near, at, np.array([0.0, 1.0]), A)
    claim = replace(found, components=(forged,))
    assert "not the best" in verify(claim, covariance=A).reason
    assert "not the best" in check_alternatives(claim.to_json(), covariance=A)


def test_a_list_whose_component_explains_less_than_the_answer_says_is_refused():
    A = np.diag([2.0, 1.99, 1.98, 1.0])
    found = alternatives(
        covariance=A, n_nonzero_coefs=2, within=0.3, drop=False, force=0, nonnegative=True
    )
    near = found.components[0]
    at = next(i for i, one in enumerate(near.supports) if one.support.tolist() == [0, 1])
    forged = _other_weights(near, at, np.array([0.0, 1.0]), A)
    claim = replace(found, components=(forged,))
    assert "than the list says" in verify(claim, covariance=A).reason
    assert "component explains more" in check_alternatives(claim.to_json(), covariance=A)


def test_an_outsider_that_does_better_in_the_place_of_another_member_is_refused(listed):
    found, A = listed
    near, support = found.components[0], found.result.supports[0]
    worse = np.where(near.leaving == support[0], support[1], support[0])
    forged = replace(found, components=(replace(near, leaving=worse),))
    assert "place of another member" in verify(forged, covariance=A).reason
    assert "another member" in check_alternatives(forged.to_json(), covariance=A)


def test_nothing_is_said_of_ties_that_bounds_do_not_prove():
    found = alternatives(covariance=np.diag([2.0, 2.0, 1.0]), n_nonzero_coefs=1, within=0.3)
    near = found.components[0]
    assert near.unique is False
    loose = [replace(entry, bound=1.1 * entry.bound) for entry in near.supports]
    doubtful = replace(near, supports=tuple(loose))
    assert doubtful.unique is None
    assert "that is not known" in str(replace(found, components=(doubtful,)))


@pytest.mark.parametrize("seed", [6, 12])
def test_nonnegative_lists_of_features_of_wild_scales_are_proved(seed):
    """Weights of small features are no digit of a value, but their gradient is one of the list."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 6)) * 10.0 ** rng.integers(-4, 5, 6)
    found = alternatives(X, n_nonzero_coefs=4, nonnegative=True, drop=False, force=0)
    assert verify(found, X)


def test_a_list_that_was_cut_says_no_more_of_the_others_than_is_proved():
    X = np.random.default_rng(0).normal(size=(60, 20)) * np.linspace(1, 1.2, 20)
    asked = {"n_nonzero_coefs": 3, "within": 0.1, "drop": False, "force": 0}
    whole, cut = (alternatives(X, **asked, most=most) for most in (1000, 1))
    assert whole.complete
    assert not cut.complete
    assert "the next one explains 1.42 % less" in str(whole)
    near = cut.components[0]
    proved = 100.0 * (1.0 - near.level / near.supports[0].value)
    said = re.search(r"all others explain at least ([\d.]+) % less", str(cut))
    assert said is not None
    assert 0.98 * proved <= float(said[1]) <= proved < 1.42
