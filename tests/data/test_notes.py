"""What is set aside is named once, in the same words whatever holds the table."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import SparsePCA, read, sparse_path, sparse_pca
from sparcipal.data.notes import joined, on_codes, on_constants, on_copies, on_trends, tell

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 5))
X[:, 1] += X[:, 0]
X[:, 3] = 7.0
SENTENCE = r"set aside, not fitted: ('d'|x3) \(constant\)"


def frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=list("abcde"))


def written(tmp_path):
    frame().to_csv(tmp_path / "x.csv", index=False)
    return read(tmp_path / "x.csv")


def mapped(tmp_path):
    np.save(tmp_path / "x.npy", X)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def dask_frame(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(frame(), npartitions=3)


@pytest.mark.parametrize(
    "held",
    [
        lambda path: X,
        lambda path: sp.csr_array(X),
        lambda path: frame(),
        written,
        mapped,
        dask_frame,
        lambda path: lambda: iter([X[:15], X[15:]]),
        lambda path: lambda: iter([frame()[:15], frame()[15:]]),
    ],
)
@pytest.mark.parametrize("memory_limit", [1 << 30, 900])
def test_constant_columns_keep_their_place_and_are_named(held, memory_limit, tmp_path):
    with pytest.warns(UserWarning, match=SENTENCE):
        model = SparsePCA(2, 2, memory_limit=memory_limit).fit(held(tmp_path))
    assert model.n_features_in_ == 5
    assert not model.components_[:, 3].any()
    assert "(constant)" in model.result_.info["notes"][0]


def test_a_path_names_constant_columns():
    with pytest.warns(UserWarning, match=SENTENCE):
        path = sparse_path(X, n_nonzero_coefs=[1, 2])
    assert "(constant)" in str(path[-1].info["notes"])


def test_uncentred_constants_are_features_like_others():
    result = sparse_pca(X, n_nonzero_coefs=1, center=False)
    assert result.supports[0].tolist() == [3]
    assert "notes" not in result.info


def test_sentences_on_columns_are_joined():
    constant = np.array([False, True, *[True] * 9])
    (note,) = on_constants(constant, None)
    assert note.endswith("x7, x8 and 2 more (constant)")
    one = on_constants(constant[:2], ("a", "b"))
    assert joined(("set aside, not fitted: 'when' (dates)", "renamed"), one) == (
        "set aside, not fitted: 'when' (dates), 'b' (constant)",
        "renamed",
    )


def test_the_same_sentence_is_shown_once_by_default_filters():
    heard = []
    for _ in range(3):
        with warnings.catch_warnings(record=True) as told:
            warnings.resetwarnings()  # as in the loops of scikit-learn, which forget what was shown
            tell(("a sentence of this test",))
        heard += told
    assert len(heard) == 1
    assert heard[0].filename == __file__


def test_every_sentence_is_shown_to_those_who_ask_for_all():
    for _ in range(2):
        with pytest.warns(UserWarning, match="another sentence"):
            tell(("another sentence",))


def test_features_that_copy_used_ones_are_named_in_the_result():
    X = np.random.default_rng(0).standard_normal((50, 4))
    X[:, 1] += X[:, 0]
    X[:, 3] = 32.0 - 1.8 * X[:, 1]
    X[:, 2] *= 0.1
    notes = sparse_pca(X, n_nonzero_coefs=2, feature_names=list("abcd")).info["notes"]
    said = (
        "copies of features that are used, or nearly so (correlations of 0.9999 or more, the "
        "closest first, = where they are 1): "
    )
    assert notes == [f"{said}'b' = 'd'"]
    assert "notes" not in sparse_pca(X[:, :3], n_nonzero_coefs=2).info


def test_chains_of_copies_are_named_together_with_the_closest_first():
    pairs = np.array([[0, 5], [2, 3], [5, 4], [0, 4], [3, 6]])
    apart = np.array([0.0, 1e-7, 2e-7, 2e-7, 3e-7])
    (note,) = on_copies(pairs, apart, 0.9999, tuple("abcdefg"))
    assert note.endswith("where they are 1): 'a' = 'f', 'e'; 'c', 'd', 'g'")


@pytest.mark.parametrize("unit", [1.0, 1e300])
def test_levels_that_wander_are_told_from_their_changes(unit):
    steps = np.random.default_rng(5).standard_normal((250, 6)) * unit / 1e3
    levels = np.cumsum(steps, axis=0)
    levels[3, 0] = np.nan
    assert "pct_change" in on_trends(levels)[0]
    assert on_trends(steps) == ()
    assert on_trends(np.sort(levels, axis=0)[:20]) == ()  # too few rows to tell


def test_prices_are_told_from_returns_in_the_notes_of_a_result():
    steps = 0.2 + np.random.default_rng(6).standard_normal((120, 4))
    prices = 100.0 + np.cumsum(steps, axis=0)
    gappy = prices.copy()
    gappy[::5, :] = np.nan  # filled with one number, they would step away and back
    for given in (
        {"X": prices},
        *({"X": gappy, "missing": rule} for rule in ("rows", "mean", "median", "pairwise")),
    ):
        told = sparse_pca(**given, n_nonzero_coefs=2).info["notes"]
        assert any("trend from row to row" in note for note in told), given
    assert "notes" not in sparse_pca(steps, n_nonzero_coefs=2).info


@pytest.mark.filterwarnings("error")
def test_codes_beyond_half_precision_are_no_overflow():
    X = np.random.default_rng(0).poisson(20, (300, 3)).astype(np.float16)
    assert on_codes(X, None) == ()
    X[[3, 5], 1] = -999
    assert "-999 is far from all other entries of x1" in on_codes(X, None)[0]
