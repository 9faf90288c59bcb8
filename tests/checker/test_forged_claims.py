"""Forged claims where few had been tried: tables read in passes, parts, neighbours, other kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparcipal import Alternatives, Result, alternatives, sparse_pca, verify
from sparcipal.problem.result import Bound, Status
from tests.support.neighbours import with_neighbour

ARITHMETICS = ("float", "exact")


def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 30)) * np.linspace(3, 0.3, 30)
    X[:, 1] += X[:, 0]
    return X


X = table()


def blocks():
    return iter([X[:30], X[30:]])


def refused(claim: Any, data: Any = X, words: str = "", **keywords: Any) -> None:
    for arithmetic in ARITHMETICS:
        said = verify(claim, data, arithmetic=arithmetic, **keywords)
        assert said.verdict == "refused", (arithmetic, said)
        assert words in said.reason


def claiming(result: Result, bound: Bound, **changes: Any) -> Result:
    """The result with this bound alone."""
    status = Status.OPTIMAL if bound.value <= result.value * (1 + result.certificate.tol) else "gap"
    told = {"bounds": (bound,), "bound": bound.value, "status": Status(status), **changes}
    return replace(result, certificate=replace(result.certificate, **told))


# --- the rule "rows" of screened tables ---


@pytest.fixture(scope="module")
def screened() -> Result:
    result = sparse_pca(blocks, n_nonzero_coefs=3, memory_limit=3000)
    assert result.certificate.screening["rule"] == "rows"
    assert all(verify(result, X, arithmetic=arithmetic) for arithmetic in ARITHMETICS)
    return result


def rows_changed(result: Result, **changes: Any) -> Result:
    """With another record of what dropped features add, told alike in the certificate."""
    bound, unit = result.certificate.bounds[0], result.certificate.unit
    record = {**bound.data["screened"], **changes}
    told = {"touching": record["touching"] * unit, "rule": record["rule"]}
    told["support_unchanged"] = bool(told["touching"] < result.value - result.certificate.rounding)
    bound = replace(bound, data={**bound.data, "screened": record})
    return claiming(result, bound, screening={**result.certificate.screening, **told})


def test_rows_that_reach_less_than_they_do_are_refused(screened):
    record = screened.certificate.bounds[0].data["screened"]
    assert verify(rows_changed(screened), X)
    for part in (1 - 1e-6, 0.9, 0.0):
        refused(rows_changed(screened, touching=part * record["touching"]), words="may add more")


@pytest.mark.parametrize("entry", ["u", "r", "price"])
def test_rows_without_their_charges_are_refused(screened, entry):
    record = screened.certificate.bounds[0].data["screened"]
    split = dict(record["split"])
    split[entry] = np.zeros_like(split[entry])
    claim = rows_changed(screened, split=split, touching=0.95 * record["touching"])
    assert not verify(claim, X)


def test_rows_of_another_table_are_refused(screened):
    """A dropped feature that goes with the best kept ones, at the variance that it had."""
    other = X.copy()
    along = X[:, 1] - X[:, 1].mean()
    other[:, 20] = X[:, 20].mean() + along * X[:, 20].std() / along.std()
    assert not verify(screened, other)
    moments = {"mean": other.mean(axis=0), "total_variance": float(other.var(axis=0).sum())}
    refused(replace(screened, **moments), other, words="may add more")


def test_rules_do_not_prove_what_rows_prove(screened):
    for rule in ("variances", "prices"):
        assert not verify(rows_changed(screened, rule=rule), X)


# --- alternatives of tables read in passes ---


@pytest.fixture(scope="module")
def found(screened) -> Alternatives:
    found = alternatives(screened, blocks)
    assert found.status == "dropped"
    assert verify(found, X)
    return found


def nearby_changed(found: Alternatives, **changes: Any) -> Alternatives:
    return replace(found, components=(replace(found.components[0], **changes),))


def test_lists_of_screened_tables_are_not_complete_below_what_dropped_features_reach(found):
    one = found.components[0]
    assert one.level > one.asked
    for level in (one.asked, 0.999 * one.level):
        for status in ("complete", "dropped"):
            refused(replace(nearby_changed(found, level=level), status=status))
    refused(replace(found, status="complete"))


def test_costs_of_screened_tables_are_not_below_what_dropped_features_reach(found):
    one = found.components[0]
    for name in ("drops", "forces"):
        for j, cost in enumerate(getattr(one, name)):
            if cost.bound > cost.value * 1.001:
                costs = list(getattr(one, name))
                costs[j] = replace(cost, bound=cost.value)
                refused(nearby_changed(found, **{name: tuple(costs)}))
                break
    refused(nearby_changed(found, with_bound=one.with_value.copy()))


# --- bounds of several components in the place of one, and of other kinds ---

SMALL = X[:, :8]


@pytest.fixture(scope="module")
def common() -> Result:
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "supports": "common"}
    return sparse_pca(SMALL, **asked, method_options={"effort": 0})


def named(result: Result, name: str) -> Bound:
    return next(bound for bound in result.certificate.bounds if bound.name == name)


def test_parts_that_are_bounds_of_several_components_are_refused(common):
    parts = named(common, "parts")
    for name in ("common", "orthogonal", "adjusted"):
        made = [{**part, "name": name, "data": {}} for part in parts.data["parts"]]
        data = {**parts.data, "parts": made}
        refused(claiming(common, replace(parts, data=data)), SMALL, "a part is made of")


@pytest.mark.parametrize("supports", ["orthogonal", "free", "disjoint"])
def test_a_bound_for_common_sets_is_none_for_other_kinds(common, supports):
    """Components on sets of their own explain more."""
    objective = "adjusted" if supports == "free" else "sum"
    settings = {**common.settings, "supports": supports, "objective": objective}
    assert not verify(replace(common, settings=settings), SMALL)
    assert not verify(replace(claiming(common, named(common, "common")), settings=settings), SMALL)


def test_a_bound_of_adjusted_variances_is_none_of_sums():
    """Two features that are nearly one: both count in a sum, and once if adjusted."""
    rng = np.random.default_rng(3)
    Y = rng.standard_normal((40, 4)) * [3.0, 1.0, 1.0, 1.0]
    Y[:, 1] = Y[:, 0] + 1e-3 * Y[:, 1]
    asked = {"n_components": 2, "n_nonzero_coefs": 1}
    adjusted = sparse_pca(Y, **asked, objective="adjusted")
    plain = sparse_pca(Y, **asked)
    assert adjusted.bound < plain.value
    for bound in adjusted.certificate.bounds:
        if bound.value < plain.value:
            claim = claiming(plain, replace(bound, value=max(bound.value, plain.value)))
            said = verify(claim, Y)
            assert not said or said.bound >= plain.value
            refused(claiming(plain, bound), Y)


def test_uncorrelated_components_are_held_to_their_scores():
    asked = {"n_components": 2, "n_nonzero_coefs": 2}
    plain = sparse_pca(SMALL, **asked)
    assert plain.largest_correlation > 0.01
    claim = replace(plain, settings={**plain.settings, "uncorrelated": True})
    refused(claim, SMALL, "correlated")


# --- neighbours ---


@pytest.mark.parametrize("s", [2, 3])
def test_neighbours_scale_a_proof_for_as_many_nonzeros_as_it_has(s):
    """A proof for two nonzeros, told as one for three, would not be scaled."""
    two, three = (sparse_pca(SMALL, n_nonzero_coefs=size) for size in (2, 3))
    honest = with_neighbour(three, two)
    bound = named(honest, "neighbour")
    assert verify(honest, SMALL)
    assert bound.value > 1.1 * three.value > two.value
    part = {**bound.data["part"], "s": s}
    low = replace(bound, value=1.01 * three.value, data={**bound.data, "part": part})
    low = replace(low, margin=bound.margin * (2 / 3 if s == 3 else 1))
    refused(claiming(three, low), SMALL)


def test_neighbours_of_given_matrices_are_refused():
    A = np.cov(SMALL, rowvar=False, bias=True)
    two, three = (sparse_pca(covariance=A, n_nonzero_coefs=s) for s in (2, 3))
    claim = claiming(three, named(with_neighbour(three, two), "neighbour"))
    for arithmetic in ARITHMETICS:
        said = verify(claim, covariance=A, arithmetic=arithmetic)
        assert "need not be a covariance" in said.reason
