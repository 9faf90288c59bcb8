"""The reasons for which other data than those of the fit are refused."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.data.table import Table

NAMES = ("alcohol", "acid", "ash", "phenols", "hue", "proline")
X = np.random.default_rng(0).standard_normal((40, 6)) * [1, 2, 3, 4, 5, 6] + np.arange(6) + 1
STANDARDISED = (X - X.mean(axis=0)) / X.std(axis=0)


def table(values, names=NAMES):
    return Table(np.asarray(values), names)


def reason(fitted, passed, **options):
    verdict = verify(sparse_pca(fitted, n_nonzero_coefs=2, **options), passed)
    assert verdict.verdict == "refused"
    return verdict.reason


@pytest.mark.parametrize("memory_limit", [None, 1])
def test_reordered_columns_are_told_by_their_names(memory_limit):
    order = [0, 2, 1, 3, 4, 5]
    options = {} if memory_limit is None else {"memory_limit": memory_limit}
    told = reason(table(X), table(X[:, order], tuple(NAMES[j] for j in order)), **options)
    assert "the same feature names in another order" in told
    assert "feature 1 is 'acid' in the result, 'ash' in the data" in told


def test_other_names_and_sizes_are_told_apart():
    other = ("alcohol", "acid", "dust", "phenols", "hue", "proline")
    assert "feature 2 is 'ash' in the result, 'dust' in the data" in reason(
        table(X), table(X, other)
    )
    assert reason(table(X), table(X[:, :5], NAMES[:5])) == (
        "the result speaks of 6 features, the data has 5"
    )


def test_the_first_mean_that_differs_is_named_with_both_numbers():
    other = X.copy()
    other[0, 3:] += 4
    told = reason(table(X), table(other))
    assert "mean differs from the data's: that of feature 'phenols'" in told
    assert f"{X[:, 3].mean():.10g} in the result, {other[:, 3].mean():.10g} in the data" in told
    assert "that of feature 3 is" in reason(X, other)


def test_the_first_scale_that_differs_is_named_with_both_numbers():
    other = X.copy()
    other[:, 4] = 2 * X[:, 4] - X[:, 4].mean()
    told = reason(table(X), table(other), scale=True)
    assert "scale differs from the data's: that of feature 'hue'" in told
    assert f"{X[:, 4].std():.10g} in the result, {other[:, 4].std():.10g} in the data" in told


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("by", [1.0, np.sqrt(39 / 40)])
def test_standardised_and_raw_data_are_told_apart(scale, by):
    there = reason(X, STANDARDISED * by, scale=scale)
    assert "the data look standardised, those of the fit raw" in there
    back = reason(STANDARDISED * by, X, scale=scale)
    assert "the data look raw, those of the fit standardised" in back
    assert f"scale={scale}" in back


def test_other_variances_are_told_before_the_unit():
    """Also where means are the same, or differ by the rounding of centring only."""
    centred = X - X.mean(axis=0)
    whole = np.round(100 * centred)
    symmetric = np.concatenate([whole, -whole])
    for fitted, passed in ((1000 * centred, centred), (1000 * symmetric, symmetric)):
        told = reason(fitted, passed)
        total = passed.var(axis=0).sum()
        assert f"the total variance is {total:.10g}, not {1e6 * total:.10g}" in told
    told = reason(2.0**20 * symmetric, symmetric)
    assert told.index("the total variance") < told.index("does not fit the data")


def test_no_hint_is_given_where_both_tables_look_alike():
    assert "look" not in reason(X, X[:, ::-1])


def test_names_are_told_as_they_are_written():
    X = np.random.default_rng(0).standard_normal((20, 3))
    result = sparse_pca(X, n_nonzero_coefs=2, feature_names=["Höhe", "b", "c"])
    said = verify(result, Table(X, ["H\u202ehe", "b", "c"])).reason
    assert "'Höhe' in the result, 'H\\u202ehe' in the data" in said
