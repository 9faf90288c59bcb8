"""Bad input: an error that names the parameter, its value and the way out, and nothing is
computed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import SparsePCA, sparse_pca

X = np.random.default_rng(0).standard_normal((20, 6))


def with_entry(value):
    bad = X.copy()
    bad[3, 2] = value
    return bad


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"X": with_entry(np.nan)}, ValueError, ["NaN"]),
        ({"X": with_entry(np.inf)}, ValueError, ["infinity"]),
        ({"X": sp.csr_array(with_entry(np.nan))}, ValueError, ["NaN"]),
        ({"X": X[0]}, ValueError, ["2D array"]),
        ({"X": X[:0]}, ValueError, ["sample"]),
        ({"X": X[:, :0]}, ValueError, ["feature"]),
        ({"X": X[:1]}, ValueError, ["n_samples=1", "center=False"]),
        ({"X": np.ones((5, 3))}, ValueError, ["constant"]),
        ({"X": sp.csr_array(np.ones((5, 3)))}, ValueError, ["constant"]),
        ({"X": X + 1j}, ValueError, ["omplex"]),
        ({"X": np.array([["a", "b"], ["c", "d"]])}, ValueError, ["numbers"]),
        ({"X": X * 1e200}, ValueError, ["1e150"]),
        ({"X": X * 1e-200}, ValueError, ["1e-140"]),
        ({}, ValueError, ["exactly one of X"]),
        ({"X": X, "covariance": np.eye(3)}, ValueError, ["exactly one of X"]),
        ({"X": X, "n_nonzero_coefs": 0}, ValueError, ["n_nonzero_coefs=0", "at least 1"]),
        ({"X": X, "n_nonzero_coefs": 7}, ValueError, ["n_nonzero_coefs=7", "n_features=6"]),
        ({"X": X, "n_nonzero_coefs": 2.5}, TypeError, ["n_nonzero_coefs", "2.5"]),
        ({"X": X, "n_nonzero_coefs": True}, TypeError, ["n_nonzero_coefs", "True"]),
        ({"X": X, "n_nonzero_coefs": "3"}, TypeError, ["n_nonzero_coefs", "'3'"]),
        (
            {"X": X, "n_components": 2, "n_nonzero_coefs": [2, 2, 2]},
            ValueError,
            ["3 entries", "n_components=2"],
        ),
        ({"X": X, "n_components": 0}, ValueError, ["n_components=0", "at least 1"]),
        ({"X": X, "n_components": 7}, ValueError, ["n_components=7", "n_features=6"]),
        (
            {"X": X, "n_components": 3, "n_nonzero_coefs": 3},
            ValueError,
            ["need 9 features", "at most 2", "supports='free'"],
        ),
        ({"X": X, "supports": "shared"}, ValueError, ["supports='shared'", "'disjoint'"]),
        ({"X": X, "method": "magic"}, ValueError, ["method='magic'", "auto"]),
        ({"X": X, "method": 3}, TypeError, ["method", "3"]),
        ({"X": X, "method_options": {"no": 1}}, ValueError, ["'no'", "takes"]),
        (
            {"X": X, "method": "em", "method_options": {"max_iter": 0}},
            ValueError,
            ["['max_iter']=0", "at least 1"],
        ),
        (
            {"X": X, "method": "tpower", "method_options": {"restarts": -1}},
            ValueError,
            ["['restarts']=-1", "at least 0"],
        ),
        ({"X": X, "nonnegative": 1}, TypeError, ["nonnegative", "1"]),
        ({"X": X, "center": "yes"}, TypeError, ["center", "'yes'"]),
        ({"X": X, "certify": True}, ValueError, ["certify=True", "'fast'"]),
        ({"X": X, "tol": -1e-3}, ValueError, ["tol=-0.001"]),
        ({"X": X, "tol": np.nan}, TypeError, ["tol"]),
        ({"X": X, "time_limit": 0}, ValueError, ["time_limit=0"]),
        ({"X": X, "max_nodes": -1}, ValueError, ["max_nodes=-1"]),
        ({"X": X, "rank": 0}, ValueError, ["rank=0"]),
        ({"X": X, "n_jobs": 0}, ValueError, ["n_jobs=0"]),
        ({"X": X, "random_state": -1}, ValueError, ["random_state=-1"]),
        ({"X": X, "verbose": -1}, ValueError, ["verbose=-1"]),
        ({"X": X, "callback": 3}, TypeError, ["callback"]),
        ({"X": X, "sample_weight": -np.ones(20)}, ValueError, ["negative", "sample 0"]),
        ({"X": X, "sample_weight": np.zeros(20)}, ValueError, ["zero for every sample"]),
        ({"X": X, "sample_weight": np.ones(19)}, ValueError, ["(20,)", "(19,)"]),
        ({"X": X, "feature_names": ["a"]}, ValueError, ["1", "6"]),
        ({"covariance": np.ones((2, 3))}, ValueError, ["square", "(2, 3)"]),
        ({"covariance": np.array([[1.0, 0.5], [0.2, 1.0]])}, ValueError, ["symmetric", "0.3"]),
        (
            {"covariance": np.array([[1.0, 2.0], [2.0, 1.0]])},
            ValueError,
            ["semidefinite", "-1", "-33 %"],
        ),
        ({"covariance": np.full((2, 2), np.nan)}, ValueError, ["NaN"]),
        ({"covariance": np.zeros((3, 3))}, ValueError, ["no variance"]),
        ({"covariance": np.array([["a"]])}, ValueError, ["real numbers"]),
        ({"covariance": np.eye(3), "scale": True}, ValueError, ["scale", "pass X"]),
        ({"covariance": np.eye(3), "sample_weight": np.ones(3)}, ValueError, ["sample_weight"]),
    ],
)
def test_bad_input(arguments, error, words):
    with pytest.raises(error) as caught:
        sparse_pca(**arguments)
    for word in words:
        assert word in str(caught.value)


def test_bad_input_to_the_estimator():
    model = SparsePCA(2, 2).fit(X)
    with pytest.raises(ValueError, match="6 features"):
        model.transform(X[:, :5])
    with pytest.raises(ValueError, match="one column per component: 2"):
        model.inverse_transform(X[:, :3])
    with pytest.raises(ValueError, match="X contains NaN"):
        model.inverse_transform(np.full((3, 2), np.nan))
    with pytest.raises(TypeError, match="dense data is required"):
        model.inverse_transform(sp.csr_array(np.ones((3, 2))))


def test_non_numeric_columns_are_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"height": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.raises(ValueError, match="colour"):
        sparse_pca(frame)


def test_too_many_supports_to_enumerate():
    with pytest.raises(ValueError, match=r"supports; the limit is 1,000,000"):
        sparse_pca(covariance=np.eye(60), n_nonzero_coefs=10, method="enumerate")
