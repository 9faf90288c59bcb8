"""A result scores new samples as the fitted estimator does, whatever holds them."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import Result, SparsePCA, read, sparse_pca

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 4))
X[:, 1] += X[:, 0]


def frame():
    pandas = pytest.importorskip("pandas")
    made = pandas.DataFrame(X, columns=list("abcd"), index=[f"row{i}" for i in range(30)])
    made["when"] = pandas.date_range("2024-01-01", periods=30)
    made["city"] = ["x", "y"] * 15
    return made


@pytest.fixture
def model():
    with pytest.warns(UserWarning, match="'when'"):
        return SparsePCA(2, 2).fit(frame())


def test_a_result_finds_columns_by_their_names(model):
    expected = model.transform(frame())
    result = model.result_
    for held in (
        frame(),
        frame()[["city", "d", "c", "b", "a"]],
        X,
        lambda: iter([X[:9], X[9:]]),
        read(frame()[["b", "d", "a", "c"]]),
    ):
        np.testing.assert_allclose(result.transform(held), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="'a'"):
        result.transform(frame()[["b", "c", "d"]])
    with pytest.raises(ValueError, match="no feature 'a'"):
        result.transform(read(frame()[["b", "c", "d"]]))


def test_lazy_frames_with_dates_are_fitted_and_scored(model):
    dd = pytest.importorskip("dask.dataframe")
    lazy = dd.from_pandas(frame(), npartitions=3, sort=False)
    with pytest.warns(UserWarning, match="'when'"):
        other = SparsePCA(2, 2).fit(lazy)
    assert other.result_.supports[0].tolist() == model.result_.supports[0].tolist()
    for scores in (other.transform(lazy), model.result_.transform(lazy)):
        np.testing.assert_allclose(scores.compute(), model.transform(frame()), rtol=1e-9)


def test_new_texts_are_counted_as_those_of_the_fit():
    texts = ["red apple and green apple", "blue sea", "green sea and blue sky", "red red wine"]
    result = sparse_pca(read(texts, weighting="tfidf"), n_nonzero_coefs=2)
    np.testing.assert_allclose(
        result.transform(texts), result.transform(read(texts, like=result)), rtol=1e-12
    )


def test_a_saved_model_scores_as_before(model, tmp_path):
    model.save(tmp_path / "m.json")
    again = SparsePCA.load(tmp_path / "m.json")
    np.testing.assert_array_equal(again.transform(frame()), model.transform(frame()))
    assert again.get_params()["n_nonzero_coefs"] == [2, 2]
    assert again.score(frame()) == pytest.approx(model.score(frame()))
    assert isinstance(again.result_, Result)
    with pytest.raises(ValueError, match="covariance matrix"):
        SparsePCA.load(sparse_pca(covariance=np.eye(3)))


def test_scores_keep_the_names_of_rows():
    pytest.importorskip("pandas")
    with pytest.warns(UserWarning, match="'when'"):
        table = read(frame())
    scores = SparsePCA(2, 2).set_output(transform="pandas").fit_transform(table)
    assert list(scores.index[:2]) == ["row0", "row1"]


def test_a_result_begins_another_search(model):
    for init in (model, model.result_):
        result = sparse_pca(X, n_components=2, n_nonzero_coefs=2, init=init)
        assert result.value == pytest.approx(model.result_.value)
    with pytest.raises(TypeError, match="init must be a list of supports"):
        sparse_pca(X, n_components=2, n_nonzero_coefs=2, init=3)


def test_missing_entries_are_treated_beyond_the_memory_limit():
    gaps = X.copy()
    gaps[3, 2] = np.nan
    whole = sparse_pca(gaps, n_components=2, n_nonzero_coefs=2, missing="mean")
    parts = sparse_pca(
        gaps, n_components=2, n_nonzero_coefs=2, missing="mean", memory_limit="0.5KB"
    )
    assert parts.value == pytest.approx(whole.value)
    assert parts.info["missing"]["entries"] == 1
    assert np.isfinite(parts.transform(gaps)).all()


def test_blocks_are_scored_by_their_names_in_any_order():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X = np.random.default_rng(0).standard_normal((40, 5))
    frame = pd.DataFrame(X, columns=list("abcde"))
    result = sparse_pca(frame, n_nonzero_coefs=2)

    def turned():
        return (frame[list("edcba")][start : start + 10] for start in range(0, 40, 10))

    np.testing.assert_array_equal(result.transform(turned), result.transform(frame))


def test_an_estimator_of_texts_takes_texts_as_its_result_does():
    texts = ["red apple and green apple", "blue sea", "green sea and blue sky", "red red wine"]
    model = SparsePCA(1, 2, certify=False).fit(read(texts, weighting="tfidf"))
    new = ["a green apple", "wine by the sea"]
    np.testing.assert_array_equal(model.transform(new), model.result_.transform(new))
    assert model.score(new) == pytest.approx(model.score(read(new, like=model.result_)))
    with pytest.raises(TypeError, match=r"X\[1\] is None, not a text"):
        model.transform(["red", None])
