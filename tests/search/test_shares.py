"""A total number of nonzeros shared among components: against enumeration of all shares."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from sparcipal.search.shares import shared_assignment
from tests.search.test_joint import random_covariance
from tests.support.brute import best_value


def best_shared(A: np.ndarray, k: int, total: int, nonnegative: bool) -> float:
    shares = combinations_with_replacement(range(1, total + 1), k)
    return max(best_value(A, sizes, nonnegative) for sizes in shares if sum(sizes) == total)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_value_and_bound_enclose_the_optimum_of_a_total(nonnegative: bool) -> None:
    rng = np.random.default_rng(7)
    reached = []
    for _ in range(7):
        p, k = int(rng.integers(4, 9)), int(rng.integers(2, 4))
        total = int(rng.integers(k, min(p, 6) + 1))
        A = random_covariance(rng, p) * 10.0 ** rng.integers(-12, 13)
        best = best_shared(A, k, total, nonnegative)
        asked = {"n_components": k, "n_nonzero_coefs": {"total": total}}
        result = sparse_pca(covariance=A, nonnegative=nonnegative, **asked)
        assert sum(support.size for support in result.supports) <= total
        assert len(result.supports) == k
        assert result.value <= best * (1 + 1e-9)
        assert result.bound >= best * (1 - 1e-9)
        checked = verify(Result.from_json(result.to_json()), covariance=A)
        assert checked, checked.reason
        reached.append(result.value >= best * (1 - 1e-9))
    assert sum(reached) >= 6


def test_the_bound_knows_the_total() -> None:
    """Far below what the largest possible component would be charged."""
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((300, 6)) @ rng.standard_normal((6, 30))
    A = np.cov((Y + 2 * rng.standard_normal(Y.shape)).T)
    lazy = {"n_components": 3, "method_options": {"effort": 0}}
    result = sparse_pca(covariance=A, n_nonzero_coefs={"total": 12}, **lazy)
    loose = sparse_pca(covariance=A, n_nonzero_coefs=10, certify=False, **lazy)
    even = sparse_pca(covariance=A, n_nonzero_coefs=4, certify=False, **lazy)
    assert result.value >= even.value
    assert result.gap < 0.1
    assert result.bound < 0.8 * loose.value
    assert verify(result, covariance=A)


@pytest.mark.parametrize("points", ["random", "net"])
def test_bipartite_shares_a_total(points: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        V = rng.standard_normal((8, 2))
        A = V @ V.T
        options = {"points": points, "eps": 0.2}
        result = sparse_pca(
            covariance=A, n_components=2, n_nonzero_coefs={"total": 5}, method="bipartite",
            rank=2, method_options=options,
        )  # fmt: skip
        best = best_shared(A, 2, 5, False)
        assert 0.8 * best <= result.value <= best * (1 + 1e-9) <= result.bound * (1 + 1e-8)
        assert verify(result, covariance=A)
        if points == "net":
            assert result.info["rank_optimum_at_most"] >= best * (1 - 1e-9)


def test_assignment_of_a_total_is_the_best() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        k, p = int(rng.integers(1, 4)), int(rng.integers(4, 9))
        total = int(rng.integers(k, p + 1))
        weight = rng.integers(0, 5, (k, p)).astype(float)
        owner = shared_assignment(weight, total)
        assert np.count_nonzero(owner >= 0) == total
        assert np.unique(owner[owner >= 0]).size == k
        rows = np.flatnonzero(owner >= 0)
        value = weight[owner[rows], rows].sum()
        assert value <= np.sort(weight.max(axis=0))[::-1][:total].sum()
    weight = np.array([[4.0, 3.0, 1.0, 0.0], [1.0, 3.5, 0.0, 2.0]])
    assert shared_assignment(weight, 3).tolist() == [0, 1, -1, 1]


def test_a_forged_total_is_refused() -> None:
    A = np.diag([5.0, 4.0, 3.0, 2.0, 1.0])
    result = sparse_pca(covariance=A, n_components=2, n_nonzero_coefs={"total": 4})
    assert verify(result, covariance=A)
    for total in (2, 3, 2.5, True):
        result.settings["n_nonzero_total"] = total
        few = sum(support.size for support in result.supports) <= total
        assert not verify(result, covariance=A) or (few and type(total) is int)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"n_nonzero_coefs": {"total": 1}}, "at least 2; one nonzero per component"),
        ({"n_nonzero_coefs": {"total": 9}}, "at most n_features=5"),
        ({"n_nonzero_coefs": {"sum": 3}}, "must be {'total': ...}"),
        ({"n_nonzero_coefs": {"total": 3}, "supports": "free"}, "needs supports='disjoint'"),
        ({"n_nonzero_coefs": {"total": 3}, "method": "tpower"}, "'auto' or 'bipartite'"),
    ],
)
def test_totals_that_make_no_sense_are_refused(asked: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace("{", r"\{")):
        sparse_pca(covariance=np.eye(5), n_components=2, **asked)
