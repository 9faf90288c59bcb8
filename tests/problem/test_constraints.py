"""include= and exclude= from names and numbers to numbers, and every refusal at once."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from sparcipal import SparsePCA, alternatives, explain, sparse_path, sparse_pca, update
from sparcipal.problem.constraints import Columns, Constraints, constraints_of

COLUMNS = Columns(5, ("a", "b", "c", "d", "3"))


def test_names_and_numbers_become_numbers():
    found = constraints_of(["c", 0], np.array(["d", "3"]), COLUMNS, (3,), True)
    assert found == Constraints(((0, 2),), (3, 4))
    assert found.record() == {"include": [[0, 2]], "exclude": [3, 4]}
    assert Constraints().record() == {}
    several = constraints_of([["a"], None, []], None, COLUMNS, (1, 1, 1), True)
    assert several.include == ((0,), (), ())
    assert constraints_of([["a"]], None, COLUMNS, (2, 2), True).include == ((0,), ())
    assert constraints_of([[], []], None, COLUMNS, (2, 2), True) == Constraints()
    mask = np.array([True, False, False, False, True])
    assert constraints_of(None, mask, COLUMNS, (2,), True).exclude == (0, 4)
    assert constraints_of(None, mask.tolist(), COLUMNS, (2,), True).exclude == (0, 4)


def test_features_are_numbered_among_those_that_are_left():
    asked = Constraints(((1, 4),), (0, 3))
    assert asked.among(np.array([1, 3, 4])) == Constraints(((0, 2),), (1,))


def test_one_error_names_everything_that_is_wrong():
    with pytest.raises(ValueError, match="include") as caught:
        constraints_of([["a", "a", "z"], ["a", 9]], ["a", "y"], COLUMNS, (1, 1), True)
    said = str(caught.value)
    for part in ("'z'", "9", "'y'", "repeats 'a'", "'a' in include and in exclude", "several"):
        assert part in said
    with pytest.raises(ValueError, match="3 anchors for n_nonzero_coefs=2"):
        constraints_of(["a", "b", "c"], None, COLUMNS, (2,), True)
    with pytest.raises(ValueError, match="include has 2 lists for n_components=1"):
        constraints_of([["a"], ["b"]], None, COLUMNS, (2,), True)
    with pytest.raises(ValueError, match="the data have no names"):
        constraints_of(["a"], None, Columns(3, None), (2,), True)
    with pytest.raises(ValueError, match="unknown features None"):
        constraints_of([None], None, COLUMNS, (2,), True)
    with pytest.raises(ValueError, match="mask of"):
        constraints_of(None, np.ones(2, dtype=bool), COLUMNS, (2,), True)
    with pytest.raises(TypeError, match=r"write \['a'\]"):
        constraints_of("a", None, COLUMNS, (2,), True)
    with pytest.raises(TypeError, match="one list of features per component"):
        constraints_of(["a"], None, COLUMNS, (2, 2), True)


def test_what_cannot_be_constrained_is_refused_before_any_work():
    X = np.random.default_rng(0).standard_normal((20, 6))
    with pytest.raises(ValueError, match="include needs method='auto' or 'enumerate'"):
        sparse_pca(X, n_nonzero_coefs=2, include=[1], method="tpower")
    with pytest.raises(ValueError, match="needs supports='disjoint'"):
        sparse_pca(X, n_components=2, n_nonzero_coefs=2, include=[[1], []], supports="free")
    with pytest.raises(ValueError, match="got a total of 4"):
        sparse_pca(X, n_components=2, n_nonzero_coefs={"total": 4}, include=[[1], []])
    with pytest.raises(ValueError, match="needs method='auto', got 'enumerate'"):
        sparse_pca(X, n_components=2, n_nonzero_coefs=2, include=[[1], []], method="enumerate")
    with pytest.raises(ValueError, match="exclude leaves 2 of 6 features: n_nonzero_coefs=3"):
        sparse_pca(X, n_nonzero_coefs=3, exclude=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="2 anchors for n_nonzero_coefs=1"):
        sparse_path(X, n_nonzero_coefs=[1, 2], include=[0, 1])


@pytest.mark.parametrize("method", ["threshold", "tpower", "gpower", "greedy", "spannogram"])
def test_every_method_leaves_out_what_is_excluded(method):
    X = np.random.default_rng(1).standard_normal((30, 7)) * np.array([9, 1, 1, 1, 1, 1, 1])
    result = sparse_pca(X, n_nonzero_coefs=3, exclude=[0], method=method)
    assert 0 not in result.supports[0]
    assert result.value <= sparse_pca(X[:, 1:], n_nonzero_coefs=3).bound


def test_a_path_keeps_to_its_constraints():
    X = np.random.default_rng(2).standard_normal((40, 8)) * np.arange(1, 9)
    path = sparse_path(X, include=[0], exclude=[7])
    assert path.n_nonzero_coefs.tolist() == [1, 2, 3, 4, 5, 6, 7]
    for s, result in zip(path.n_nonzero_coefs, path):
        alone = sparse_pca(X, n_nonzero_coefs=int(s), include=[0], exclude=[7])
        assert result.value == pytest.approx(alone.value, rel=1e-9)
        assert 7 not in result.supports[0]


@pytest.mark.parametrize("given", ["X", "covariance"])
def test_excluding_every_feature_that_varies_is_an_error(given):
    table = np.diag([3.0, 2.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"left without these 2 is constant.*exclude fewer"):
        sparse_pca(**{given: table}, n_components=2, n_nonzero_coefs=1, exclude=[0, 1])


@pytest.mark.parametrize("size", [1e85, 1e140])  # small variances, and none
def test_excluded_columns_beside_which_all_others_underflow_are_named(size):
    X = np.random.default_rng(0).standard_normal((20, 5))
    X[:, 0] *= size
    X[:, 1:] /= 1e40
    with pytest.raises(ValueError, match="remove the excluded columns from X"):
        sparse_pca(X, n_nonzero_coefs=2, exclude=[0])


def test_too_many_lists_do_not_hide_what_is_wrong_inside_them():
    X = np.random.default_rng(0).standard_normal((20, 5))
    with pytest.raises(ValueError, match="include has 3 lists for n_components=2") as error:
        sparse_pca(X, n_components=2, n_nonzero_coefs=2, include=[[0], [0], [77]], exclude=[1, 99])
    for named in ("77", "99", "several disjoint components"):
        assert named in str(error.value)


def test_patterns_name_features_and_may_meet():
    rng = np.random.default_rng(0)
    X, names = rng.standard_normal((30, 5)), ["gene1", "gene2", "x", "gene*", "y"]
    asked = {"n_nonzero_coefs": 2, "feature_names": names}
    result = sparse_pca(X, exclude=["gene?", "*1", "gene*"], **asked)
    assert result.settings["exclude"] == [0, 1, 3]  # a name is itself, whatever it matches
    assert sparse_pca(X, include=["gene[12]"], **asked).settings["include"] == [[0, 1]]
    with pytest.raises(ValueError, match="exclude has unknown features 'z\\*'"):
        sparse_pca(X, exclude=["z*"], **asked)


def test_numbers_that_are_names_of_other_features_are_refused():
    X = np.random.default_rng(0).standard_normal((30, 4)) * [1, 2, 3, 4]
    frame = pandas.DataFrame(X, columns=[3, 2, 1, 0])
    words = "feature 3 .counted from 0. is called '0', and '3' is feature 0; write '0' or '3'"
    for asked in ({"include": [3]}, {"exclude": [3]}, {"init": [3, "2"]}):
        with pytest.raises(ValueError, match=words):
            sparse_pca(frame, n_nonzero_coefs=2, **asked)
    assert sparse_pca(frame, n_nonzero_coefs=2, include=["3"]).settings["include"] == [[0]]
    mask = [True, False, False, False]
    result = sparse_pca(frame, n_nonzero_coefs=2, exclude=mask, init=sparse_pca(X[:, 1:]))
    assert result.settings["exclude"] == [0]
    # what asks the same question again means the features, not their names
    assert 0 not in alternatives(result, frame).components[0].supports[0].support
    assert 0 not in update(result, frame[:9], X=frame).result.supports[0]
    explain(result, frame, choice=True)
    again = SparsePCA.load(result)
    assert again.exclude == ["3"]
    assert np.array_equal(again.fit(frame).components_, result.components)


def test_too_few_features_that_are_left_are_no_reason_for_dense_loadings():
    with pytest.raises(ValueError, match=r"exclude leaves 1 of 3 .*exclude fewer, or ask for") as e:
        sparse_pca(np.random.default_rng(0).random((9, 3)), n_nonzero_coefs=2, exclude=[0, 1])
    assert "ordinary PCA" not in str(e.value)
