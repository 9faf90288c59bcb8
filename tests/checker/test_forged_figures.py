"""Forgeries of figures that are printed beside a proof: ties, losses, correlations, last digits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from sparcipal import Status, alternatives, sparse_pca, verify
from sparcipal.checker import Budget
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.common import SetProver
from sparcipal.checker.records import Cut
from sparcipal.problem.result import Bound
from tests.support.second_checker import check, check_alternatives

BOTH = ["float", "exact"]


@pytest.fixture(scope="module")
def tie():
    """The same block of integers twice, its rows in another order: two supports tie exactly."""
    rng = np.random.default_rng(0)
    block = rng.integers(-50, 50, (300, 2))
    block[:, 1] += 2 * block[:, 0]
    other = rng.integers(-9, 9, (300, 2))
    X = np.hstack([block, block[rng.permutation(300)], other]).astype(float)
    result = sparse_pca(X, n_nonzero_coefs=2, certify="full")
    found = alternatives(result, X, within=0.0, drop=False, force=0)
    return X, found


def bare(near, **changes):
    """A list without what is said of features outside."""
    none = near.outsiders[:0], near.leaving[:0], near.with_value[:0], near.with_bound[:0]
    names = ("outsiders", "leaving", "with_value", "with_bound")
    return replace(near, drops=(), forces=(), **dict(zip(names, none)), **changes)


@pytest.mark.parametrize("arithmetic", BOTH)
def test_a_list_within_nothing_holds_what_is_as_good(tie, arithmetic):
    pytest.importorskip("flint")
    X, found = tie
    (near,) = found.components
    assert verify(found, X, arithmetic=arithmetic)
    assert found.complete
    assert len(near.supports) == 2
    assert near.unique is False
    assert near.asked == near.sure < near.value
    assert check_alternatives(found.to_json(), X) == "proved"


@pytest.mark.parametrize("arithmetic", BOTH)
@pytest.mark.parametrize("raised", [1e-10, 1e-12, 3e-14])
def test_a_tie_is_on_the_list_however_values_are_overstated(tie, arithmetic, raised):
    """The level is measured from what the component explains for sure."""
    pytest.importorskip("flint")
    X, found = tie
    (near,), result = found.components, found.result
    value, unit = result.value * (1 + raised), result.certificate.unit
    certificate = replace(
        result.certificate,
        value=value,
        bound=max(result.bound, value),
        rounding=result.certificate.rounding + value - result.value,
    )
    result = replace(result, variances=np.array([value]), certificate=certificate)
    first = replace(near.supports[0], value=value, bound=value * (1 + 1e-9))
    for rounding in (near.rounding, 0.0):
        asked = value - rounding
        log = [
            {**near.proof["log"][0], "listed": [first.support], "bound": asked / unit},
            {"step": "node", "parent": -1, "side": "root", "moved": np.zeros(0, dtype=np.int64),
             "passes": [], "end": "leaf"},
        ]  # fmt: skip
        forged = bare(near, value=value, rounding=rounding, asked=asked, level=asked,
                      supports=(first,), proof={**near.proof, "log": log})  # fmt: skip
        forged = replace(found, result=result, components=(forged,), status="complete")
        assert not verify(forged, X, arithmetic=arithmetic)


@pytest.mark.parametrize("arithmetic", BOTH)
def test_a_tie_is_never_unique(tie, arithmetic):
    pytest.importorskip("flint")
    X, found = tie
    (near,) = found.components
    first, second = near.supports
    for raised in (1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 3e-14):
        value = first.value * (1 + raised)
        one = replace(first, value=value, bound=max(first.bound, value * (1 + 1e-12)))
        for bound in (second.bound, first.value * (1 + 0.6 * raised)):
            two = replace(second, bound=bound, value=second.value * (1 - 2e-12))
            for own in (near.rounding, 0.0):
                asked = near.value - own
                forged = bare(near, supports=(one, two), rounding=own, asked=asked)
                if forged.unique:
                    told = replace(found, components=(forged,))
                    assert not verify(told, X, arithmetic=arithmetic)


@pytest.mark.parametrize("arithmetic", BOTH)
def test_a_bound_is_not_half_a_unit_in_the_last_place_too_small(arithmetic):
    """Numbers of a proof are not rounded by Python before the arithmetic sees them."""
    pytest.importorskip("flint")
    c = 1 + 3 * 2.0**-52
    A = np.diag([c] * 3)
    result = sparse_pca(covariance=A, n_components=3, n_nonzero_coefs=1)
    bound, unit = 3 * c, result.certificate.unit
    assert Fraction(bound) < 3 * Fraction(c)
    certificate = replace(
        result.certificate, value=bound, bound=bound, status=Status.OPTIMAL,
        bounds=(Bound("frobenius", bound, {"c": c / unit}, result.certificate.bounds[-1].margin),),
    )  # fmt: skip
    forged = replace(result, certificate=certificate)
    assert "frobenius" in verify(forged, covariance=A, arithmetic=arithmetic).reason


@pytest.fixture(scope="module")
def alike():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1)) + 0.05 * rng.standard_normal((60, 8))
    return X, sparse_pca(X, n_components=2, n_nonzero_coefs=3)


@pytest.mark.parametrize("arithmetic", BOTH)
def test_how_far_components_repeat_each_other_is_rechecked(alike, arithmetic):
    pytest.importorskip("flint")
    X, result = alike
    assert verify(result, X, arithmetic=arithmetic)
    told = result.info["redundancy"]
    for wrong in (
        {"correlation": 0.0},
        {"correlation": told["correlation"] - 1e-9},
        {"adjusted": result.value},
        {"adjusted": told["adjusted"] * (1 + 1e-9)},
        {"adjusted": float("nan")},
        {"more": 1.0},
    ):
        forged = replace(result, info={**result.info, "redundancy": {**told, **wrong}})
        assert verify(forged, X, arithmetic=arithmetic).verdict == "refused", wrong
    assert "info" in verify(replace(result, info=None), X, arithmetic=arithmetic).reason


@pytest.mark.parametrize("kind", ["constant", "duplicated"])
def test_best_order_of_components_that_add_nothing_is_confirmed(kind):
    """A component without variance of its own may stand anywhere in a best order."""
    for seed in range(20):
        X = np.random.default_rng(seed).standard_normal((20, 5))
        X[:, 0] = 0.0 if kind == "constant" else X[:, 1]
        result = sparse_pca(X, n_components=5, n_nonzero_coefs=1, scale=True)
        verdict = verify(result, X)
        assert verdict, verdict.reason
        told = result.info["redundancy"]
        more = {**told, "adjusted": told["adjusted"] * (1 + 1e-6)}
        assert not verify(replace(result, info={**result.info, "redundancy": more}), X)


def test_what_components_explain_in_another_order_is_not_the_best():
    """Of three components, the first two of this order explain what the third does, and more."""
    A = np.eye(3) + 0.9 * (np.ones((3, 3)) - np.eye(3))
    A[0, 1] = A[1, 0] = 0.63
    result = sparse_pca(covariance=A, n_components=3, n_nonzero_coefs=1)
    assert verify(result, covariance=A)
    told = result.info["redundancy"]
    totals = []
    for order in permutations(range(3)):
        R = np.linalg.cholesky(A[np.ix_(order, order)])
        totals.append(float((np.diagonal(R) ** 2).sum()))
    assert told["adjusted"] == pytest.approx(max(totals), rel=1e-12)
    assert min(totals) < max(totals) - 0.01
    less = {**told, "adjusted": min(totals)}
    verdict = verify(replace(result, info={**result.info, "redundancy": less}), covariance=A)
    assert "adjusted, all explain" in verdict.reason


def test_best_order_of_components_that_are_nearly_alike_is_confirmed():
    """Of two that differ by a part of 1e-7, the one that explains less leaves more to a third."""
    one, other = np.linalg.qr(np.random.default_rng(0).standard_normal((9, 2)))[0].T
    X = np.column_stack([one, one - 1e-7 * other, 0.5 * (other - 0.6 * one)])
    A = X.T @ X
    result = sparse_pca(
        covariance=A, n_components=3, n_nonzero_coefs=1, supports="free", certify=False
    )
    assert result.adjusted_variance == pytest.approx(1.25, rel=1e-12)
    verdict = verify(result, covariance=A)
    assert verdict, verdict.reason


def test_more_than_eight_components_count_in_their_own_order():
    """Where all variances are one, rounding would choose the first of any other order."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 12))
    X[:, :6] += X[:, 6:] * rng.random()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    result = sparse_pca(
        X, n_components=9, n_nonzero_coefs=1, certify=False, method_options={"effort": 0}
    )
    assert verify(result, X)
    assert check(result.to_json(), X) == "proved"
    scores = X[:, [support[0] for support in result.supports]]
    R = np.linalg.qr(scores / np.sqrt(len(X)))[1]
    assert result.adjusted_variance == pytest.approx((np.diagonal(R) ** 2).sum(), rel=1e-9)
    assert "in this order" in str(result)


def test_the_second_checker_knows_correlations_too(alike):
    X, result = alike
    assert check(result.to_json(), X) == "proved"
    told = result.info["redundancy"]
    for wrong in ({"correlation": 0.0}, {"adjusted": result.value}):
        forged = replace(result, info={**result.info, "redundancy": {**told, **wrong}})
        assert check(forged.to_json(), X).startswith("refused: the")


@pytest.mark.parametrize("arithmetic", BOTH)
@pytest.mark.parametrize("name", ["common", "eigenvalues", "tree", "dspca-dual"])
def test_parts_may_name_any_family(arithmetic, name):
    """A margin of parts is asked of the family of each, whose record is not that of the part."""
    pytest.importorskip("flint")
    X = np.random.default_rng(0).standard_normal((30, 5))
    part = {"s": 2, "name": name, "value": 1e3, "data": {}}
    for asked, data in (
        ({"n_components": 2, "supports": "orthogonal"}, ("parts", {"parts": [part, part]})),
        ({}, ("neighbour", {"part": part})),
    ):
        result = sparse_pca(X, n_nonzero_coefs=2, **asked)
        bounds = (*result.certificate.bounds, Bound(data[0], 2e3, data[1], 0.0))
        forged = replace(result, certificate=replace(result.certificate, bounds=bounds))
        assert not verify(forged, X, arithmetic=arithmetic)


def test_inequalities_are_held_for_their_own_features_and_charged():
    X = np.random.default_rng(0).standard_normal((20, 40))
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=2, supports="common", certify=False)
    none = np.zeros(0, dtype=np.int8)
    cut = {"step": "split", "features": np.zeros(1, dtype=np.int32), "L": np.ones((1, 1))}
    passes = [{"split": i + 1, "out": none, "in": none} for i in range(2000)]
    log = [{"step": "problem", "bound": 1e3}, *(dict(cut) for _ in range(2000))]
    log.append({"step": "node", "parent": -1, "side": "root", "moved": none, "passes": passes,
                "end": "closed", "split": 1})  # fmt: skip
    bounds = (*result.certificate.bounds, Bound("common", 1e9, {"log": log}, 0.0))
    forged = replace(result, certificate=replace(result.certificate, bounds=bounds))
    assert "inequality speaks of fewer features" in verify(forged, X).reason
    assert "inequalities of a log" in verify(forged, X, budget=Budget(memory=7e5)).reason
    prover = SetProver(np.eye(40), np.zeros(0), 2, 2, 1e3, Float())
    one = Cut(features=np.array([7]), L=np.ones((1, 1)))
    assert prover._inequality(one).coef.size == 1


def test_alternatives_of_small_components_beside_large_ones_are_believed():
    """Rounding is measured among the features of a component, not by those of its neighbours."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 8)) * np.repeat([1e6, 1.0], 4) + 0.3 * rng.standard_normal((20, 1))
    result = sparse_pca(X, n_components=3, n_nonzero_coefs=2, center=False)
    found = alternatives(result, X, drop=False, force=0)
    for arithmetic in ("float", "exact"):
        verdict = verify(found, X, arithmetic=arithmetic)
        assert verdict, verdict.reason
