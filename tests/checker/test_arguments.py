"""What `verify` may be given, and what it says it did not look at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparcipal import Result, SparsePCA, alternatives, sparse_pca, verify
from sparcipal.checker import Budget

X = np.random.default_rng(0).standard_normal((30, 6)) + np.arange(6)


@pytest.fixture(scope="module")
def result():
    return sparse_pca(X, n_nonzero_coefs=2)


def test_a_fitted_estimator_is_as_good_as_its_result():
    estimator = SparsePCA(n_components=2, n_nonzero_coefs=2).fit(X)
    assert verify(estimator, X)
    with pytest.raises(TypeError, match=r"result is a SparsePCA that is not fitted; call its fit"):
        verify(SparsePCA(), X)


@pytest.mark.parametrize("given", [None, X, "model.json", {}, [1]], ids=lambda g: type(g).__name__)
def test_anything_else_is_a_type_error_that_names_the_argument(given):
    with pytest.raises(TypeError, match=r"^result is a"):
        verify(given, X)


def test_swapped_arguments_are_a_type_error(result):
    with pytest.raises(TypeError, match=r"^result is a ndarray"):
        verify(X, result)
    with pytest.raises(TypeError, match=r"^X is a Result"):
        verify(result, result)
    with pytest.raises(TypeError, match=r"^covariance is a Result"):
        verify(result, covariance=result)
    for name in ("wine.csv", Path("wine.csv")):
        with pytest.raises(TypeError, match=r"^X is a .*; pass sparcipal.read\('wine.csv'\)$"):
            verify(result, name)
    with pytest.raises(TypeError, match=r"^sample_weight is a str"):
        verify(result, X, sample_weight="weights")


NO_TABLES = {
    "verdict": lambda result: verify(result, X),
    "alternatives": lambda result: alternatives(result, X, within=0.1),
    "dict": lambda _: {"X": X},
    "set": lambda _: {1.0},
    "number": lambda _: 3.0,
    "rows that are read once": lambda _: iter([X]),
}


@pytest.mark.parametrize("name", NO_TABLES)
def test_what_is_no_table_is_a_type_error(result, name):
    with pytest.raises(TypeError, match=r"^X is a .*; call verify\(result, X\)$"):
        verify(result, NO_TABLES[name](result))


@pytest.mark.parametrize("data", [np.zeros((0, 6)), np.zeros((30, 0))], ids=["rows", "columns"])
@pytest.mark.parametrize("held", [np.asarray, lambda X: lambda: iter([X])], ids=["array", "blocks"])
def test_tables_of_nothing_are_an_error_and_no_verdict(result, data, held):
    with pytest.raises(ValueError, match=r"^X has no rows or no columns$"):
        verify(result, held(data))


def test_one_column_of_a_frame_is_no_table(result):
    for package in ("pandas", "polars"):
        column = pytest.importorskip(package).Series(X[:, 0])
        with pytest.raises(ValueError, match=r"^X must be a two-dimensional table"):
            verify(result, column)


def test_data_must_be_given_once(result):
    for given in ({}, {"X": X, "covariance": np.eye(6)}):
        with pytest.raises(ValueError, match="exactly one"):
            verify(result, **given)


def test_a_verdict_lists_what_is_no_part_of_the_proof(result):
    forged = replace(
        result,
        note="certified by the moon",
        certificate=replace(result.certificate, nodes=10**9),
    )
    verdict = verify(forged, X)
    assert verdict
    assert {"certificate.nodes", "note"} <= set(verdict.not_rechecked)
    plain = replace(result.certificate, nodes=0, eliminated=0, message="")
    assert verify(replace(result, n_iter=0, note="", info={}, certificate=plain), X) == replace(
        verify(result, X), not_rechecked=()
    )


def test_a_budget_that_does_not_suffice_is_named_with_the_way_out(result):
    big = np.random.default_rng(1).standard_normal((60, 30))
    honest = sparse_pca(big, n_nonzero_coefs=5)
    verdict = verify(honest, big, budget=1e4)
    assert verdict.verdict == "refused"
    assert "budget=" in verdict.reason
    assert verify(honest, big, budget=Budget(work=1e12, memory=2**30))
    with pytest.raises(ValueError, match="positive"):
        verify(honest, big, budget=0)
    for budget in ("1e9", None, True, np.array([1e9])):
        with pytest.raises(TypeError, match="the budget of work is a"):
            verify(honest, big, budget=budget)


@pytest.mark.parametrize(
    "change",
    [
        {"supports": (np.array([[0, 1]]),)},
        {"supports": (np.array([1, 1]),)},
        {"supports": (np.array([-1, 2]),)},
        {"supports": ()},
        {"supports": ((0, 1),)},
        {"weights": (np.array([1.0, np.nan]),)},
        {"weights": (np.array([1.0]),)},
        {"weights": (np.array([[1.0, 0.0]]),)},
        {"variances": np.array([1.0, 2.0])},
        {"variances": np.array([[1.0]])},
        {"mean": np.zeros(5)},
        {"mean": np.full(6, np.inf)},
        {"scale": None},
        {"n_features": 6.0},
        {"n_features": True},
        {"n_samples": "30"},
        {"total_variance": np.nan},
        {"feature_names": ("a", "b")},
        {"feature_names": (1, 2, 3, 4, 5, 6)},
        {"settings": {}},
        {"settings": None},
    ],
    ids=lambda change: str(change)[:40],
)
def test_results_whose_entries_are_not_what_they_say_are_refused(result, change):
    assert verify(replace(result, **change), X).verdict == "refused"


@pytest.mark.parametrize(
    "change",
    [
        {"value": 1}, {"value": None}, {"bound": np.inf}, {"rounding": -1e-300}, {"unit": 3.0},
        {"unit": 0.0}, {"unit": 1}, {"tol": -1.0}, {"tol": "x"}, {"status": "optimal"},
        {"bounds": ()}, {"screening": None}, {"screening": {"kept": 2}},
    ],
    ids=str,
)  # fmt: skip
def test_certificates_whose_entries_are_not_what_they_say_are_refused(result, change):
    forged = replace(result, certificate=replace(result.certificate, **change))
    assert verify(forged, X).verdict in ("refused", "not proved")


@pytest.mark.parametrize("name", ["n_nonzero_coefs", "supports", "nonnegative", "center", "tol"])
@pytest.mark.parametrize("value", [None, 2.5, "x", [], {}, [1.5], -1], ids=str)
def test_settings_that_are_none_are_refused(result, name, value):
    forged = replace(result, settings={**result.settings, name: value})
    assert verify(forged, X).verdict == "refused"


def test_a_saved_result_is_the_same_claim(result):
    assert verify(Result.from_json(result.to_json()), X)
