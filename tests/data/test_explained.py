"""The share that components explain by regression, against least squares on the rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from sparcipal import SparsePCA


def table(n=60, p=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) + 3.0


def by_least_squares(model, X, weights=None):
    Z = (X - model.mean_) / model.scale_
    T = model.transform(X)
    if weights is not None:
        Z, T = Z * np.sqrt(weights)[:, None], T * np.sqrt(weights)[:, None]
    rest = Z - T @ np.linalg.lstsq(T, Z, rcond=None)[0]
    return 1.0 - np.square(rest).sum() / np.square(Z).sum()


LAZY = {"certify": False, "method_options": {"effort": 0}}


@pytest.mark.parametrize("supports", ["disjoint", "free"])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_share_is_that_of_least_squares_on_new_rows(supports, scale, center):
    model = SparsePCA(2, 3, supports=supports, scale=scale, center=center, **LAZY)
    model.fit(table())
    new = table(25, seed=1)
    assert model.score(new) == pytest.approx(by_least_squares(model, new), rel=1e-10)
    weights = np.random.default_rng(2).random(25)
    weighted = model.score(new, sample_weight=weights)
    assert weighted == pytest.approx(by_least_squares(model, new, weights), rel=1e-10)


def test_share_is_the_same_for_every_container():
    X = np.round(table())
    model = SparsePCA(2, 3, certify=False).fit(X)
    share = model.score(X)
    assert model.score(sp.csr_array(X)) == pytest.approx(share, rel=1e-12)
    assert model.score(lambda: iter([X[:7], X[7:]])) == pytest.approx(share, rel=1e-12)
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    assert model.score(da.from_array(X, chunks=(9, 8))) == pytest.approx(share, rel=1e-12)


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


def test_score_of_rows_that_do_not_vary_is_nan_and_says_so():
    X = table()
    model = SparsePCA(2, 3, certify=False).fit(X)
    for rows in (np.ones((5, 8)), X[:1], np.tile(model.mean_, (3, 1))):
        with pytest.warns(UndefinedMetricWarning, match="do not vary"):
            assert np.isnan(model.score(rows))


def test_share_of_a_small_score_beside_a_large_one_is_not_lost():
    a, b = np.random.default_rng(0).standard_normal((2, 50))
    X = np.column_stack([1e9 * a, b, 1e9 * b])
    model = SparsePCA(2, 1, exclude=[2], certify=False).fit(X)
    assert model.score(X) == pytest.approx(by_least_squares(model, X), rel=1e-9)
    assert model.score(X) == pytest.approx(1.0)


def test_share_of_a_feature_that_did_not_vary_in_the_fit_counts_in_its_own_unit():
    X, new = table(), table(seed=1)
    X[:, 5] = 7.0
    with pytest.warns(UserWarning, match="constant"):
        model = SparsePCA(2, 2, scale=True, certify=False).fit(X)
    assert model.result_.scale[5] == 1.0
    assert model.score(new) == pytest.approx(by_least_squares(model, new), rel=1e-9)
