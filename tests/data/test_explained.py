"""The share that components explain by regression, against least squares on the rows."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from sparcipal import SparsePCA


def table(n=60, p=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) + 3.0


def by_least_squares(model, X, new, weights=None):
    """The share of new rows by the regression of X, with weights of both."""
    root = [np.sqrt(w) for w in weights or [np.ones(len(rows)) for rows in (X, new)]]
    Z, new_Z = (r[:, None] * (x - model.mean_) / model.scale_ for x, r in zip((X, new), root))
    T, new_T = (r[:, None] * model.transform(x) for x, r in zip((X, new), root))
    rest = new_Z - new_T @ np.linalg.lstsq(T, Z, rcond=None)[0]
    return 1.0 - np.square(rest).sum() / np.square(new_Z).sum()


LAZY = {"certify": False, "method_options": {"effort": 0}}


@pytest.mark.parametrize("supports", ["disjoint", "free"])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_score_is_that_of_least_squares_on_the_rows_of_the_fit(supports, scale, center):
    model = SparsePCA(2, 3, supports=supports, scale=scale, center=center, **LAZY)
    X, new = table(), table(25, seed=1)
    assert model.fit(X).score(new) == pytest.approx(by_least_squares(model, X, new), rel=1e-10)
    weights = [np.random.default_rng(2).random(n) for n in (60, 25)]
    weighted = model.fit(X, sample_weight=weights[0]).score(new, sample_weight=weights[1])
    assert weighted == pytest.approx(by_least_squares(model, X, new, weights), rel=1e-10)


def test_share_is_the_same_for_every_container():
    X = np.round(table())
    model = SparsePCA(2, 3, certify=False).fit(X)
    share = model.score(X)
    assert model.score(sp.csr_array(X)) == pytest.approx(share, rel=1e-12)
    assert model.score(lambda: iter([X[:7], X[7:]])) == pytest.approx(share, rel=1e-12)
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    assert model.score(da.from_array(X, chunks=(9, 8))) == pytest.approx(share, rel=1e-12)


def gappy(n, seed, share=0.25):
    X, rng = table(n, p=6, seed=seed), np.random.default_rng(seed)
    return np.where(rng.random(X.shape) < share, np.nan, X)


@pytest.mark.parametrize("rule", ["mean", "median"])
def test_score_fills_gaps_as_the_fit_did(rule):
    X, new, weights = gappy(60, 0), gappy(25, 1) + 3.0, np.random.default_rng(2).random((2, 60))
    weights[0] = np.ceil(2 * weights[0])
    given = weights[0] if rule == "mean" else np.ones(60)
    model = SparsePCA(2, 2, missing=rule, **LAZY).fit(X, sample_weight=given)
    fill = [
        np.median(x[~np.isnan(x)])
        if rule == "median"
        else np.average(x[~np.isnan(x)], weights=given[~np.isnan(x)])
        for x in X.T
    ]
    whole, filled = (np.where(np.isnan(rows), fill, rows) for rows in (X, new))
    judges = given, weights[1, :25]
    share = by_least_squares(model, whole, filled, judges)
    assert model.score(new, sample_weight=judges[1]) == pytest.approx(share, rel=1e-9)
    new[:, 3] = np.nan  # none of the rows that are scored has an entry there
    filled[:, 3] = fill[3]
    share = by_least_squares(model, whole, filled, (given, np.ones(25)))
    assert model.score(new) == pytest.approx(share, rel=1e-9)


@pytest.mark.filterwarnings("ignore:scores are nan", "ignore:score leaves out 2")
@pytest.mark.parametrize("rule", ["rows", "pairwise"])
def test_score_of_rows_with_gaps_is_that_of_their_entries(rule):
    model = SparsePCA(2, 2, missing=rule, scale=True, **LAZY).fit(gappy(90, 0, 0.1))
    new, weights = gappy(25, 1), np.random.default_rng(2).random(25)
    new[:, 3] = np.nan
    Z, T = (new - model.mean_) / model.scale_, model.transform(new)
    Z[np.isnan(T).any(axis=1)] = np.nan
    rest = Z - T @ model.result_.info["regression"]["coefficients"]
    sums = [np.nansum(weights[:, None] * squares**2) for squares in (rest, Z)]
    share = 1.0 - sums[0] / sums[1]
    found = model.score(new, sample_weight=weights)
    assert found == pytest.approx(share, rel=1e-9)
    blocks = [new[:7], new[7:]]
    assert model.score(blocks, sample_weight=weights) == pytest.approx(found, rel=1e-9)
    assert np.isfinite(model.score(new[:1]))
    beside = np.vstack([new[:1], np.full(6, np.nan)])
    with pytest.warns(UserWarning, match=r"leaves out 1 row\(s\) without an entry"):
        assert model.score(beside) == pytest.approx(model.score(new[:1]), rel=1e-9)
    with (
        pytest.warns(UserWarning, match="leaves out 1 row"),
        pytest.warns(UndefinedMetricWarning, match="no row is left"),
    ):
        assert np.isnan(model.score(beside[-1:]))


@pytest.mark.filterwarnings("ignore:score leaves out")
@pytest.mark.parametrize("rule", ["mean", "rows"])
@pytest.mark.parametrize("kind", ["array", "frame"])
def test_cross_validation_goes_through_a_fold_without_an_entry_of_a_column(rule, kind):
    X = gappy(60, 0, 0.05)
    X[:12, 3] = np.nan
    if kind == "frame":
        X = pytest.importorskip("pandas").DataFrame(X, columns=list("abcdef"))
    scores = cross_val_score(SparsePCA(1, 2, missing=rule, **LAZY), X, cv=5)
    assert np.isfinite(scores).all()


def test_score_of_rows_with_gaps_needs_a_fit_with_a_rule_and_rows_at_hand():
    X, new = table(p=6), gappy(20, 1)
    with pytest.raises(ValueError, match="fill them, or fit with missing='mean'"):
        SparsePCA(1, 2, **LAZY).fit(X).score(new)
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    model = SparsePCA(1, 2, missing="mean", **LAZY).fit(X)
    assert model.score(da.from_array(X, chunks=(9, 6))) == pytest.approx(model.score(X))
    with pytest.raises(ValueError, match=r"pass X.compute\(\)"):
        model.score(da.from_array(new, chunks=(9, 6)))


def test_share_counts_what_components_have_in_common_once():
    x = np.random.default_rng(0).standard_normal((50, 1))
    X = x @ np.ones((1, 6))
    X[:, 5] += 1e-3 * np.random.default_rng(1).standard_normal(50)
    model = SparsePCA(2, 3, certify=False).fit(X)
    assert 0.999 < model.score(X) <= 1.0


def test_share_refuses_other_columns_and_covariances():
    model = SparsePCA(1, 2, certify=False).fit(table())
    with pytest.raises(ValueError, match="X has 7 features, but SparsePCA is expecting 8"):
        model.score(table()[:, :7])


def test_score_serves_grid_search_and_cross_validation_without_y():
    X = table()
    search = GridSearchCV(
        SparsePCA(certify=False), {"n_components": [1, 2], "n_nonzero_coefs": [2]}, cv=3
    ).fit(X)
    assert search.best_params_["n_components"] == 2
    scores = cross_val_score(SparsePCA(2, 2, certify=False), X, cv=3)
    assert ((scores > 0) & (scores < 1)).all()


def test_score_of_rows_that_are_the_means_of_the_fit_is_nan_and_says_so():
    X = table()
    model = SparsePCA(2, 3, certify=False).fit(X)
    with pytest.warns(UndefinedMetricWarning, match="are the means of the fit"):
        assert np.isnan(model.score(np.tile(model.mean_, (3, 1))))
    assert np.isfinite(model.score(X[:1]))  # one row is enough


def test_score_of_noise_does_not_grow_by_components_where_columns_are_many():
    noise = np.random.default_rng(0).standard_normal((60, 400))
    one, five = (SparsePCA(k, 4, **LAZY).fit(noise[:40]).score(noise[40:]) for k in (1, 5))
    assert five < one < 0.01


def test_score_after_every_kind_of_fit_is_that_of_least_squares(tmp_path):
    X, new = np.round(table()), table(25, seed=1)
    share = SparsePCA(2, 3, **LAZY).fit(X).score(new)
    blocks = SparsePCA(2, 3, **LAZY).fit(lambda: iter([X[:7], X[7:]]))
    parts = SparsePCA(2, 3, **LAZY).partial_fit(X[:30]).partial_fit(X[30:])
    blocks.save(tmp_path / "model.json")
    loaded = SparsePCA.load(tmp_path / "model.json")
    for model in (blocks, parts, loaded, SparsePCA.load(blocks.result_)):
        assert model.score(new) == pytest.approx(share, rel=1e-9)


def test_score_of_a_screened_table_predicts_dropped_features_by_their_means():
    X, new = table(p=40), table(25, p=40, seed=1)
    X[:, 12:] *= 1e-3
    model = SparsePCA(1, 2, memory_limit=2000, **LAZY).fit(lambda: iter([X]))
    kept = model.result_.info["regression"]["features"]
    assert kept.size < 40
    Z, new_Z = X - model.mean_, new - model.mean_
    B = np.zeros((1, 40))
    B[:, kept] = np.linalg.lstsq(model.transform(X), Z[:, kept], rcond=None)[0]
    rest = new_Z - model.transform(new) @ B
    share = 1.0 - np.square(rest).sum() / np.square(new_Z).sum()
    assert model.score(new) == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (None, "no regression on the scores.*fit again"),
        ({"coefficients": np.zeros((1, 3))}, "damaged"),
        ({"coefficients": np.zeros((2, 1)), "features": np.array([99])}, "damaged"),
        ([], "damaged"),
    ],
)
def test_score_refuses_a_model_without_its_regression(told, message):
    model = SparsePCA(2, 3, **LAZY).fit(table())
    model.result_ = replace(model.result_, info={} if told is None else {"regression": told})
    with pytest.raises(ValueError, match=message):
        model.score(table())


def test_share_of_a_small_score_beside_a_large_one_is_not_lost():
    a, b = np.random.default_rng(0).standard_normal((2, 50))
    X = np.column_stack([1e9 * a, b, 1e9 * b])
    model = SparsePCA(2, 1, exclude=[2], certify=False).fit(X)
    assert model.score(X) == pytest.approx(by_least_squares(model, X, X), rel=1e-9)
    assert model.score(X) == pytest.approx(1.0)


def test_share_of_a_feature_that_did_not_vary_in_the_fit_counts_in_its_own_unit():
    X, new = table(), table(seed=1)
    X[:, 5] = 7.0
    with pytest.warns(UserWarning, match="constant"):
        model = SparsePCA(2, 2, scale=True, certify=False).fit(X)
    assert model.result_.scale[5] == 1.0
    assert model.score(new) == pytest.approx(by_least_squares(model, X, new), rel=1e-9)


def test_regression_and_score_overflow_nowhere_with_tiny_columns():
    """Two whose variances are denormal numbers: products of their units are too large."""
    X = np.random.default_rng(0).standard_normal((20, 3)) * [1.0, 1e-158, 1e-158]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pca = SparsePCA(n_components=3, n_nonzero_coefs=1, certify=False).fit(X)
        assert pca.score(X) == pytest.approx(1.0)
