"""Bad settings: an error that names the parameter, its value and the way out, before any work."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import SparsePCA, sparse_pca

X = np.random.default_rng(0).standard_normal((20, 6))


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"n_nonzero_coefs": 0}, ValueError, ["n_nonzero_coefs=0", "at least 1"]),
        ({"n_nonzero_coefs": 7}, ValueError, ["n_nonzero_coefs=7", "n_features=6"]),
        ({"n_nonzero_coefs": 2.5}, TypeError, ["n_nonzero_coefs", "2.5"]),
        ({"n_nonzero_coefs": True}, TypeError, ["n_nonzero_coefs", "True"]),
        ({"n_nonzero_coefs": "3"}, TypeError, ["n_nonzero_coefs", "'3'"]),
        (
            {"n_components": 2, "n_nonzero_coefs": [2, 2, 2]},
            ValueError,
            ["3 entries", "n_components=2"],
        ),
        ({"n_components": 0}, ValueError, ["n_components=0", "at least 1"]),
        ({"n_components": 7}, ValueError, ["n_components=7", "n_features=6"]),
        (
            {"n_components": 3, "n_nonzero_coefs": 3},
            ValueError,
            ["need 9 features", "at most 2", "supports='free'"],
        ),
        ({"supports": "shared"}, ValueError, ["supports='shared'", "'disjoint'"]),
        ({"method": "magic"}, ValueError, ["method='magic'", "auto"]),
        ({"method": 3}, TypeError, ["method", "3"]),
        ({"method_options": {"no": 1}}, ValueError, ["'no'", "takes"]),
        (
            {"method": "em", "method_options": {"max_iter": 0}},
            ValueError,
            ["['max_iter']=0", "at least 1"],
        ),
        (
            {"method": "tpower", "method_options": {"restarts": -1}},
            ValueError,
            ["['restarts']=-1", "at least 0"],
        ),
        ({"nonnegative": 1}, TypeError, ["nonnegative", "1"]),
        ({"center": "yes"}, TypeError, ["center", "'yes'"]),
        ({"certify": True}, ValueError, ["certify=True", "'fast'"]),
        ({"tol": -1e-3}, ValueError, ["tol=-0.001"]),
        ({"tol": np.nan}, TypeError, ["tol"]),
        ({"time_limit": 0}, ValueError, ["time_limit=0"]),
        ({"max_nodes": -1}, ValueError, ["max_nodes=-1"]),
        ({"rank": 0}, ValueError, ["rank=0"]),
        ({"n_jobs": 0}, ValueError, ["n_jobs=0"]),
        ({"random_state": -1}, ValueError, ["random_state=-1"]),
        ({"verbose": -1}, ValueError, ["verbose=-1"]),
        ({"callback": 3}, TypeError, ["callback"]),
        ({"sample_weight": -np.ones(20)}, ValueError, ["negative", "sample 0"]),
        ({"sample_weight": np.zeros(20)}, ValueError, ["zero for every sample"]),
        ({"sample_weight": np.ones(19)}, ValueError, ["(20,)", "(19,)"]),
    ],
)
def test_settings_outside_their_limits_are_refused_with_a_remedy(settings, error, words):
    with pytest.raises(error) as caught:
        sparse_pca(X, **settings)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_nonzero_coefs": {"total": 9}}, ValueError, "must be at most n_features=6"),
        ({"method_options": 3}, TypeError, "method_options must be a dict"),
        ({"method_options": {"effort": -1}}, ValueError, "effort"),
        (
            {"method": "gpower", "method_options": {"norm": 3}},
            TypeError,
            "must be a string",
        ),
        ({"sample_weight": np.full(20, np.nan)}, ValueError, "contains NaN or infinity"),
    ],
)
def test_settings_that_do_not_fit_the_table_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        sparse_pca(X, **{"n_nonzero_coefs": 2, **settings})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_nonzero_coefs": np.array(3)}, "n_nonzero_coefs"),
        ({"feature_names": 3}, "feature_names"),
        ({"supports": np.array(["free", "a"])}, "supports"),
        ({"certify": np.array([1, 2])}, "certify"),
        ({"method_options": {"effort": "x"}}, "effort"),
        ({"method_options": {"effort": None}}, "effort"),
    ],
)
def test_settings_of_odd_types_are_named_when_refused(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        sparse_pca(X, **options)


def test_all_settings_that_are_wrong_are_named_in_one_error():
    wrong = {"tol": 3, "n_jobs": 0, "n_components": 0, "n_nonzero_coefs": [2.5], "method": "magi"}
    with pytest.raises(ValueError, match="5 problems") as caught:
        sparse_pca(X, **wrong)
    assert type(caught.value) is ValueError
    assert all(f"\n- {name}" in str(caught.value) for name in wrong)
    with pytest.raises(TypeError, match="2 problems") as caught:
        sparse_pca(X, alpha=1, scal=True)
    assert "n_nonzero_coefs" in str(caught.value)
    assert "'scale'" in str(caught.value)


def test_all_settings_that_do_not_fit_the_table_are_named_in_one_error():
    with pytest.raises(ValueError, match="3 problems") as caught:
        sparse_pca(X, n_components=2, n_nonzero_coefs=4, exclude=["a"], init=[[0], [9]])
    assert all(word in str(caught.value) for word in ("need 8 features", "'a'", "init[1]"))


def test_iterators_are_read_once_and_refused_where_they_would_be_read_again():
    given = {"n_components": 2, "n_nonzero_coefs": [2, 1], "init": [[1, 2], [3]], "exclude": [0]}
    once = {name: iter(v) if isinstance(v, list) else v for name, v in given.items()}
    assert sparse_pca(X, **once).value == sparse_pca(X, **given).value
    with pytest.raises(TypeError, match="exclude and n_nonzero_coefs"):
        SparsePCA(n_nonzero_coefs=iter([2]), exclude=iter([0])).fit(X)


def test_init_may_not_use_what_exclude_leaves_out():
    with pytest.raises(ValueError, match="1 in init and in exclude"):
        sparse_pca(X, n_nonzero_coefs=2, init=[1, 2], exclude=[1])
    first = sparse_pca(X, n_nonzero_coefs=2)
    again = sparse_pca(X, n_nonzero_coefs=2, init=first, exclude=first.supports[0][:1])
    assert first.supports[0][0] not in again.supports[0]


def test_effort_has_a_limit_and_unfitted_estimators_are_named():
    with pytest.raises(ValueError, match=r"'effort'\]=1000000000 must be at most"):
        sparse_pca(X, n_nonzero_coefs=2, method_options={"effort": 10**9})
    with pytest.raises(TypeError, match="SparsePCA is not fitted"):
        sparse_pca(X, n_nonzero_coefs=2, init=SparsePCA())


def test_own_result_begins_another_search_whichever_component_is_larger():
    for seed in range(6):
        X = np.random.default_rng(seed).standard_normal((30, 8))
        for sizes in ([3, 1], [1, 3]):
            asked = {"n_components": 2, "n_nonzero_coefs": sizes}
            known = sparse_pca(X, **asked)
            assert sparse_pca(X, **asked, init=known).value >= known.value * (1 - 1e-12)
    with pytest.raises(ValueError, match="component 2 may use 1"):
        sparse_pca(X, n_components=2, n_nonzero_coefs=[3, 1], init=[[0, 1], [2, 3]])
