"""Missing entries: what each rule does to the table, the answer and the scores."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Result, SparsePCA, read, sparse_path, sparse_pca, verify
from sparcipal.data.missing import RULES
from sparcipal.report.page import report_html

rng = np.random.default_rng(0)
FACTORS = rng.standard_normal((60, 2))
WHOLE = FACTORS @ rng.standard_normal((2, 6)) + 0.3 * rng.standard_normal((60, 6))
GAPPY = np.where(rng.random(WHOLE.shape) < 0.08, np.nan, WHOLE)
NAMES = tuple("abcdef")


def fitted(rule, X=GAPPY, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return SparsePCA(n_components=2, n_nonzero_coefs=3, missing=rule, **options).fit(X)


def test_error_counts_by_column_and_names_the_ways_out():
    with pytest.raises(ValueError, match="missing by column: 'x") as caught:
        sparse_pca(GAPPY)
    for rule in RULES[1:]:
        assert f"missing='{rule}'" in str(caught.value)
    with pytest.raises(ValueError, match="missing='guess' is unknown"):
        sparse_pca(GAPPY, missing="guess")


def test_rows_mean_and_median_are_the_fit_of_the_treated_table():
    complete = GAPPY[~np.isnan(GAPPY).any(axis=1)]
    treated = {
        "rows": complete,
        "mean": np.where(np.isnan(GAPPY), np.nanmean(GAPPY, axis=0), GAPPY),
        "median": np.where(np.isnan(GAPPY), np.nanmedian(GAPPY, axis=0), GAPPY),
    }
    for rule, X in treated.items():
        expected = SparsePCA(n_components=2, n_nonzero_coefs=3).fit(X).result_
        found = fitted(rule).result_
        assert found.value == pytest.approx(expected.value, rel=1e-12)
        assert found.settings["missing"] == rule


@pytest.mark.parametrize("rule", RULES[1:])
@pytest.mark.parametrize("scale", [False, True])
def test_every_rule_is_proved_and_rechecked(rule, scale, tmp_path):
    estimator = fitted(rule, scale=scale)
    assert verify(estimator, GAPPY).verdict == "proved"
    result = estimator.result_
    result.save(tmp_path / "m.json")
    assert verify(Result.load(tmp_path / "m.json"), GAPPY).verdict == "proved"
    other = GAPPY.copy()
    other[np.isnan(other)] = 0.5
    assert verify(result, other).verdict == "refused"
    moved = GAPPY.copy()
    moved[0, ~np.isnan(moved[0])] += 0.5
    moved[1, ~np.isnan(moved[1])] -= 0.7
    assert verify(result, moved).verdict == "refused"


def test_weights_go_with_every_rule():
    weights = np.random.default_rng(1).random(60)
    for rule in RULES[1:]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            result = sparse_pca(GAPPY, n_nonzero_coefs=2, missing=rule, sample_weight=weights)
        assert verify(result, GAPPY, sample_weight=weights).verdict == "proved"


def test_pairwise_states_its_repair_and_speaks_of_the_repaired_matrix():
    sparse = np.where(np.random.default_rng(3).random((12, 6)) < 0.45, np.nan, WHOLE[:12])
    result = fitted("pairwise", sparse).result_
    repair = result.certificate.repair
    assert repair["moved"] > 0
    A = repair["matrix"]
    assert np.linalg.eigvalsh(A)[0] > -1e-12
    again = sparse_pca(covariance=A, n_components=2, n_nonzero_coefs=3)
    assert again.value == pytest.approx(result.value, rel=1e-12)
    assert "repaired matrix" in str(result.certificate)
    assert verify(result, sparse).verdict == "proved"
    for forged in (
        {**repair, "moved": repair["moved"] / 2},
        {**repair, "matrix": A + 0.01 * np.eye(6)},
        {**repair, "matrix": A[:5, :5]},
        {**repair, "extra": 1.0},
    ):
        claim = replace(result, certificate=replace(result.certificate, repair=forged))
        assert verify(claim, sparse).verdict == "refused"
    bare = {key: repair[key] for key in ("moved", "relative")}
    claim = replace(result, certificate=replace(result.certificate, repair=bare))
    assert verify(claim, sparse).verdict == "not proved"


def test_pairwise_without_gaps_is_the_ordinary_fit():
    assert fitted("pairwise", WHOLE).result_.certificate.repair == {}
    assert fitted("pairwise", WHOLE).result_.value == fitted("error", WHOLE).result_.value


@pytest.mark.parametrize("data", [GAPPY, WHOLE], ids=["gaps", "none"])
@pytest.mark.parametrize("rule", ["rows", "pairwise"])
def test_scores_of_rows_with_gaps_are_the_best_linear_prediction(rule, data):
    estimator = fitted(rule, data)
    result = estimator.result_
    used = np.unique(np.concatenate(result.supports))
    C, mean = result.info["missing"]["covariance"], result.mean[used]
    new = WHOLE[:5].copy()
    whole = estimator.transform(new)
    new[0, used[0]] = np.nan
    scores = estimator.transform(new)
    there = np.arange(1, used.size)
    guess = C[0, there] @ np.linalg.solve(
        C[np.ix_(there, there)], new[0, used[there]] - mean[there]
    )
    filled = WHOLE[0].copy()
    filled[used[0]] = mean[0] + guess
    np.testing.assert_allclose(scores[0], estimator.transform(filled[None])[0], atol=1e-9)
    np.testing.assert_array_equal(scores[1:], whole[1:])
    with pytest.warns(UserWarning, match="scores are nan in 1 row"):
        assert np.isnan(estimator.transform(np.full((1, 6), np.nan))).all()


@pytest.mark.parametrize("data", [GAPPY, WHOLE], ids=["gaps", "none"])
def test_scores_after_mean_are_those_of_the_filled_rows(data):
    estimator = fitted("mean", data)
    filled = np.where(np.isnan(GAPPY), np.nanmean(data, axis=0), GAPPY)
    np.testing.assert_allclose(estimator.transform(GAPPY), estimator.transform(filled), atol=1e-12)
    with pytest.raises(ValueError, match="NaN"):
        SparsePCA(n_nonzero_coefs=2).fit(WHOLE).transform(GAPPY)


def test_what_no_rule_can_mend_is_said():
    empty = GAPPY.copy()
    empty[:, 2] = np.nan
    with pytest.raises(ValueError, match=r"1 column.s. without an entry: 'x2'"):
        sparse_pca(empty, missing="mean")
    apart = WHOLE[:6].copy()
    apart[:3, 0], apart[3:, 1] = np.nan, np.nan
    with pytest.raises(ValueError, match="x0 and x1 share 0"):
        sparse_pca(apart, missing="pairwise")
    holes = np.where(np.eye(6) > 0, np.nan, WHOLE[:6])
    with pytest.raises(ValueError, match="leaves 0 of 6 rows"):
        sparse_pca(holes, missing="rows")


def test_files_and_frames_with_gaps_are_fitted(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(GAPPY, columns=list(NAMES))
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = read(tmp_path / "x.csv")
    assert np.array_equal(np.isnan(table.X), np.isnan(GAPPY))
    result = sparse_pca(table, n_nonzero_coefs=3, missing="pairwise")
    assert verify(result, table).verdict == "proved"
    assert verify(result, frame).verdict == "proved"
    path = sparse_path(table, n_nonzero_coefs=[1, 2], missing="mean")
    assert verify(path[1], table).verdict == "proved"


@pytest.mark.filterwarnings("ignore:scores are nan in 1 row")
@pytest.mark.parametrize("rule", RULES[1:])
def test_blocks_with_gaps_are_the_table_of_their_rows(rule):
    def blocks():
        return iter([GAPPY[:25], GAPPY[25:]])

    asked = {"n_nonzero_coefs": 2, "missing": rule, "certify": False}
    model = SparsePCA(**asked).fit(blocks)
    assert model.result_.value == sparse_pca(GAPPY, **asked).value
    assert verify(model, blocks)
    assert np.array_equal(model.transform(blocks), model.transform(GAPPY), equal_nan=True)
    with pytest.raises(ValueError, match="more than memory_limit=100"):
        sparse_pca(blocks, memory_limit=100, **asked)


def test_rows_without_any_entry_are_scored_nan_with_a_word():
    result = fitted("pairwise").result_
    new = WHOLE[:6].copy()
    new[4] = np.nan
    with pytest.warns(UserWarning, match=r"scores are nan in 1 row\(s\) .* use: 4 \(counted"):
        whole = result.transform(new)
    with pytest.warns(UserWarning, match="use: 4 "):
        parts = result.transform([new[:3], new[3:]])
    np.testing.assert_array_equal(whole, parts)
    assert np.isnan(whole).all(axis=1).tolist() == [False] * 4 + [True, False]
    with pytest.warns(UserWarning, match="use: 4 "):
        page = report_html(result, table=new)
    assert "NaN" not in page
    with pytest.warns(UserWarning, match="6 row"), pytest.raises(ValueError, match="no row of the"):
        report_html(result, table=np.full_like(new, np.nan))


def test_pairs_of_entries_far_from_zero_are_refused_with_the_way_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    near = X + np.array([0.0, 0.0, 1e6, 0.0])
    assert verify(sparse_pca(near, n_nonzero_coefs=2, missing="pairwise"), near)
    with pytest.raises(
        ValueError, match=r"column 3 lies so far from zero.* subtract a number near"
    ):
        sparse_pca(X + np.array([0.0, 0.0, 1e9, 0.0]), n_nonzero_coefs=2, missing="pairwise")


def test_codes_of_missing_entries_are_pointed_out():
    answers = np.random.default_rng(3).integers(1, 6, (40, 3)).astype(float)
    assert "notes" not in sparse_pca(answers, n_nonzero_coefs=2).info
    answers[[3, 9], [1, 2]] = -99
    with pytest.warns(UserWarning, match=r"-99 is far from all other entries of x1, x2 .there 2"):
        sparse_pca(answers, n_nonzero_coefs=2)


@pytest.mark.parametrize("rule", ["rows", "mean", "median", "pairwise"])
def test_codes_of_missing_entries_are_pointed_out_beside_gaps(rule, tmp_path):
    answers = np.random.default_rng(3).integers(1, 6, (40, 3)).astype(float)
    answers[[3, 9], [1, 2]], answers[5, 0] = -99, np.nan
    told = "-99 is far from all other entries of {} .there 2 times"
    with pytest.raises(ValueError, match=told.format("x1, x2")):
        sparse_pca(answers, n_nonzero_coefs=2)
    with pytest.warns(UserWarning, match=told.format("x1, x2")):
        found = sparse_pca(answers, n_nonzero_coefs=2, missing=rule)
    assert any(re.match(told.format("x1, x2"), note) for note in found.info["notes"])
    path = tmp_path / f"{rule}.csv"
    np.savetxt(path, answers, delimiter=",", header=f"a{rule},b{rule},c", comments="")
    with pytest.warns(UserWarning, match=told.format(f"'b{rule}', 'c'")):
        table = read(path)
    found = sparse_pca(table, n_nonzero_coefs=2, missing=rule).info["notes"]
    assert sum("is far from all other entries" in note for note in found) == 1


def test_report_is_written_where_only_unused_features_have_gaps():
    X = WHOLE.copy()
    X[3, 0] = np.nan
    result = sparse_pca(X, n_nonzero_coefs=3, missing="mean", exclude=[0])
    assert "<svg" in report_html(result, table=X)


@pytest.mark.parametrize("kind", ["blocks", "map", "scan"])
def test_what_a_message_advises_on_tables_beyond_the_limit_can_be_followed(kind, tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 5))
    X[7, 2] = np.nan
    np.save(tmp_path / "x.npy", X)
    if kind == "scan":
        pytest.importorskip("pyarrow.parquet")
        pandas = pytest.importorskip("pandas")
        pandas.DataFrame(X).rename(columns="x{}".format).to_parquet(tmp_path / "x.parquet")
        data = pytest.importorskip("polars").scan_parquet(tmp_path / "x.parquet")
    elif kind == "blocks":
        data = lambda: iter(np.array_split(X, 4))  # noqa: E731
    else:
        data = np.load(tmp_path / "x.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="'x2' 1; leave out or fill these") as told:
        sparse_pca(data, n_nonzero_coefs=2, memory_limit=1000)
    limit = int(re.search(r"memory_limit=(\d+)", str(told.value))[1])
    for rule in ("rows", "mean", "median", "pairwise"):
        found = sparse_pca(data, n_nonzero_coefs=2, memory_limit=limit, missing=rule)
        assert verify(found, X).verdict == "proved"
    with pytest.raises(ValueError, match="pass missing='rows'"):
        sparse_pca(data, n_nonzero_coefs=2, memory_limit=limit)


@pytest.mark.parametrize("rule", ["rows", "mean", "median", "pairwise"])
def test_rules_on_blocks_that_do_not_fit_say_the_limit_that_they_need(rule):
    X = np.random.default_rng(1).standard_normal((40, 20))
    X[39, 2] = np.nan
    blocks = lambda: iter([X[:20], X[20:]])  # noqa: E731
    asked = {"n_nonzero_coefs": 2, "missing": rule}
    with pytest.raises(ValueError, match=r"would take 6400 bytes, .*; pass memory_limit=6400"):
        sparse_pca(blocks, memory_limit=1, **asked)
    assert verify(sparse_pca(blocks, memory_limit=6400, **asked), X).verdict == "proved"


def test_dask_advises_to_fill_before():
    dask = pytest.importorskip("dask.dataframe")
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0, np.nan, 2, 4], "b": [3.0, 1, 2, 2]})
    for parts in (1, 2):
        with pytest.raises(ValueError, match=r"block 0 of X: .*'a' 1; leave out .* X.fillna"):
            sparse_pca(dask.from_pandas(frame, npartitions=parts), n_nonzero_coefs=1)
