"""What is refused, and the words and remedies that come with it, one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Moments, SparsePCA, read, sparse_path, sparse_pca
from sparcipal.data.screening import Screened

X = np.random.default_rng(0).standard_normal((20, 5))
A = np.diag([3.0, 2.0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kept": np.array([1, 0])}, "kept must hold increasing integers"),
        ({"matrix": np.eye(3)}, r"matrix has shape \(3, 3\), but 2 features are kept"),
        ({"kept": np.array([0, 9])}, "kept names feature 9, but there are 4 variances"),
        ({"variances": np.array([3.0, 2.0, -1.0, 0.0])}, "finite and not negative"),
        ({"variances": np.array([3.0, 7.0, 1.0, 0.0])}, "feature 1 has another variance"),
    ],
)
def test_screened_covariances(changed, message):
    whole = {"matrix": A, "kept": np.array([0, 1]), "variances": np.array([3.0, 2.0, 1.0, 0.5])}
    assert Screened(**whole).n_features == 4
    with pytest.raises(ValueError, match=message):
        Screened(**{**whole, **changed})


def test_sums_of_different_tables():
    moments = Moments(5).add(X)
    gram = Moments(5).add(X).gram(np.array([0, 1])).add(X[:10])
    with pytest.raises(ValueError, match="moments are of 20 rows, products of 10"):
        Screened.of(moments, gram)


def test_blocks_that_hold_no_rows_of_the_table():
    with pytest.raises(ValueError, match="rows of 5 features are expected"):
        Moments(5).add(X[:, :3])
    with pytest.raises(ValueError, match="does not hold numbers"):
        Moments(1).add(np.array([["a"]]))
    repeated = sp.csr_array((np.ones(2), np.zeros(2, int), [0, 2]), shape=(1, 2))
    assert Moments(2).add(repeated).means().tolist() == [2.0, 0.0]
    assert "20 samples x 5 features, rounded" in repr(Moments(5).add(X))
    assert Moments(5).add(X.astype(np.float16)).n_samples == 20


def test_large_integers_that_are_constant_or_nearly():
    """Beyond 2^53 smallest and largest are rounded; the exact sums decide."""
    big = 2**53
    moments = Moments(2).add(np.array([[big, big], [big, big + 1]]))
    assert moments.constant.tolist() == [True, False]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_nonzero_coefs": {"total": 9}}, ValueError, "must be at most n_features=5"),
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
def test_parameters(settings, error, message):
    with pytest.raises(error, match=message):
        sparse_pca(X, **{"n_nonzero_coefs": 2, **settings})


def test_names_that_do_not_fit():
    with pytest.raises(ValueError, match="feature_names has 3 names for n_features=2"):
        sparse_pca(covariance=A, n_nonzero_coefs=1, feature_names=["a", "b", "c"])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(A, columns=["a", "b"], index=["b", "a"])
    with pytest.raises(ValueError, match="other names in its rows than in its columns"):
        sparse_pca(covariance=frame, n_nonzero_coefs=1)
    screened = Screened(A, np.array([0, 1]), np.array([3.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match="feature_names has 2 names for n_features=3"):
        sparse_pca(covariance=screened, n_nonzero_coefs=1, feature_names=["a", "b"])


def test_scores_of_what_cannot_be_scored():
    model = SparsePCA(1, 2, certify=False).fit(X)
    with pytest.raises(ValueError, match="4 features"):
        model.transform(lambda: iter([X[:, :4]]))
    np.testing.assert_allclose(model.transform(lambda: iter([X[:8], X[8:]])), model.transform(X))


def test_a_path_draws_itself():
    pytest.importorskip("matplotlib")
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    path = sparse_path(X, n_nonzero_coefs=[1, 2], time_limit=60.0)
    assert len(path.plot().results) == 2
    plt.close("all")


def test_gaps_in_words():
    module = __import__("sparcipal.comparison", fromlist=["_percent"])
    assert [module._percent(g) for g in (math.inf, 1e-13, 0.0125)] == [
        "unproved",
        "< 1e-9 %",
        "1.25 %",
    ]


def test_questions_in_words():
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=[2, 1], scale=True, certify=False)
    assert "scaled to unit variance" in str(result)
    assert "at most 2, 1 nonzeros" in " ".join(str(result).split())
    one = sparse_pca(X, n_components=1, n_nonzero_coefs={"total": 2}, certify=False)
    assert one.supports[0].size <= 2
    several = sparse_pca(X, n_components=2, n_nonzero_coefs={"total": 3}, certify=False)
    assert "at most 3 nonzeros in all" in " ".join(str(several).split())


def test_tables_of_another_encoding(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n1,2\n\xff\xfe\xff,3\n")
    with pytest.raises(ValueError, match=r"not utf-8.* text .*name its encoding"):
        read(path)


def test_an_anndata_object_without_a_matrix():
    anndata = pytest.importorskip("anndata")
    empty = anndata.AnnData(shape=(4, 3))
    with pytest.raises(ValueError, match="has no X; name a layer"):
        sparse_pca(empty, n_nonzero_coefs=1)


def test_spca_with_overlapping_supports():
    """The paper's own problem: all components at once."""
    result = sparse_pca(
        X, n_components=2, n_nonzero_coefs=3, supports="free", method="spca", certify=False
    )
    assert [s.size <= 3 for s in result.supports] == [True, True]
    assert result.info["joint"] is True


def test_positive_eigenvectors():
    """True only where no x > 0 is an eigenvector above t."""
    from sparcipal.bounds.tree import positive

    rule = positive.no_interior_solution
    signed = np.array([[2.0, -1.5], [-1.5, 2.0]])  # leading eigenvector (1, -1)
    assert rule(signed, 1.0)
    assert not rule(-signed + 4 * np.eye(2), 1.0), "(1, 1) leads"
    assert not rule(signed, 9.0), "nothing is above t"
    assert not rule(np.eye(3), 0.5), "all are above t"
    ones = np.ones((3, 3))
    assert not rule(ones, 1.0)
