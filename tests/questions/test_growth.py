"""Rows come and go: `update` and `partial_fit` answer as a fit of the rows that are there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sparcipal import SparsePCA, Sums, sparse_pca, update, verify

RNG = np.random.default_rng(5)
COUNTS = RNG.poisson(2.0, (240, 12))
COUNTS[:120, 1] += COUNTS[:120, 0]
COUNTS[120:, 9] += 3 * COUNTS[120:, 8]
NAMES = [f"f{j}" for j in range(12)]
ASKED = {"n_components": 2, "n_nonzero_coefs": 2}


def test_an_update_answers_as_a_fit_of_all_rows_and_is_proved():
    before = sparse_pca(COUNTS[:120], **ASKED)
    found = update(before, COUNTS[120:], X=COUNTS[:120])
    whole = sparse_pca(covariance=Sums.of(COUNTS), **ASKED)
    assert found.result.value == whole.value  # integers: to the last bit
    assert found.result.bound == whole.bound
    assert found.result.value == pytest.approx(sparse_pca(COUNTS, **ASKED).value, rel=1e-12)
    assert verify(found.result, COUNTS).verdict == "proved"
    assert (found.added, found.removed, found.result.n_samples) == (120, 0, 240)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("limit", [1000, 2600, 1e6])
def test_results_of_sums_are_rechecked_with_the_sums_their_screened_and_the_rows(limit, scale):
    sums = Sums.of(COUNTS, memory_limit=limit, feature_names=NAMES)
    result = sparse_pca(covariance=sums, n_nonzero_coefs=2, scale=scale)
    assert verify(result, covariance=sums).verdict == "proved"
    assert verify(result, covariance=sums.screened(scale=scale)).verdict == "proved"
    assert verify(result, COUNTS).verdict == "proved"
    assert verify(result, covariance=Sums.of(COUNTS[1:], memory_limit=limit)).verdict == "refused"
    others = Sums.of(COUNTS, memory_limit=limit, feature_names=NAMES[::-1])
    assert "names" in verify(result, covariance=others).reason


def test_a_sliding_window_is_the_window_alone_to_the_last_bit():
    before = update(sparse_pca(COUNTS[:120], **ASKED), COUNTS[120:180], X=COUNTS[:120])
    after = update(before, COUNTS[180:], without=COUNTS[:60])
    alone = sparse_pca(covariance=Sums.of(COUNTS[60:]), **ASKED)
    assert (after.result.value, after.result.bound) == (alone.value, alone.bound)
    assert verify(after.result, COUNTS[60:]).verdict == "proved"
    assert (after.added, after.removed) == (60, 60)
    assert before.sums.n_samples == 180  # the sums of before are as they were


def test_an_update_says_what_has_changed():
    before = sparse_pca(COUNTS[:120], feature_names=NAMES, **ASKED)
    found = update(before, COUNTS[120:], X=COUNTS[:120])
    new = next(change for change in found.changes if change.before is None)
    assert set(found.result.names(new.component)) == {"f8", "f9"}
    kept = next(change for change in found.changes if change.before is not None)
    assert set(found.result.names(kept.component)) == {"f0", "f1"}
    assert len(found.faded) == 1
    assert not found.same
    text = str(found)
    assert "120 rows more: 240 rows now" in text
    assert "is new" in text
    assert "does not go on" in text
    assert update(found, COUNTS[:2]).same


@pytest.mark.parametrize("kind", ["floats", "sparse", "blocks", "frame"])
def test_rows_of_every_kind_are_added(kind):
    X = COUNTS / 3.0 + (1e6 if kind == "floats" else 0.0)
    made = {
        "floats": lambda part: part,
        "sparse": sp.csr_array,
        "blocks": lambda part: lambda: iter([part[:7], part[7:]]),
        "frame": lambda part: pd.DataFrame(part, columns=NAMES),
    }[kind]
    before = sparse_pca(X[:100], feature_names=NAMES if kind == "frame" else None, **ASKED)
    found = update(before, made(X[100:]), X=X[:100])
    whole = sparse_pca(X, **ASKED)
    assert found.result.value == pytest.approx(whole.value, rel=1e-8)
    assert found.result.bound >= whole.value * (1 - 1e-9)
    assert verify(found.result, X).verdict == "proved"


@pytest.mark.parametrize("kind", ["LazyFrame", "dataset", "batches", "reader", "function"])
def test_rows_that_are_scanned_are_added(kind):
    pa = pytest.importorskip("pyarrow")
    old, new = (pa.Table.from_arrays([*p.T], names=NAMES) for p in (COUNTS[:120], COUNTS[120:]))
    before = sparse_pca(old, **ASKED)
    if kind == "LazyFrame":
        rows = pytest.importorskip("polars").from_arrow(new).lazy()
    elif kind == "dataset":
        rows = pytest.importorskip("pyarrow.dataset").dataset(new)
    elif kind == "reader":
        rows = new.to_reader(70)
    else:
        rows = new.to_batches(70)
    found = update(before, (lambda: iter(rows)) if kind == "function" else rows, X=old)
    assert found.result.n_samples == len(COUNTS)
    assert found.result.value == update(before, new, X=old).result.value


def test_columns_of_new_rows_are_found_by_name():
    frame = pd.DataFrame(COUNTS, columns=NAMES)
    before = sparse_pca(frame[:120], **ASKED)
    found = update(before, frame[120:][NAMES[::-1]], X=frame[:120])
    straight = update(before, frame[120:], X=frame[:120])
    assert found.result.value == straight.result.value
    with pytest.raises(ValueError, match="f3"):
        update(before, frame[120:].drop(columns="f3"), X=frame[:120])


def test_columns_that_only_new_rows_have_are_named():
    frame = pd.DataFrame(COUNTS, columns=NAMES)
    before = sparse_pca(frame[:120], **ASKED)
    with pytest.warns(UserWarning, match="result does not have them: 'z'"):
        found = update(before, frame[120:].assign(z=1, o="x", id=range(120)), X=frame[:120])
    assert found.result.info["notes"] == ["left out, since the result does not have them: 'z'"]
    assert found.result.value == update(before, frame[120:], X=frame[:120]).result.value


def test_wide_tables_keep_some_products_and_the_bound_counts_all():
    limit = 40 * 8**2  # products of eight of the twelve columns
    before = sparse_pca(covariance=Sums.of(COUNTS[:120], memory_limit=limit), **ASKED)
    sums = Sums.of(COUNTS[:120], memory_limit=limit)
    found = update(before, COUNTS[120:], sums=sums)
    best = sparse_pca(COUNTS, certify="full", **ASKED).value
    assert found.sums.gram.columns.size == 8
    assert found.result.certificate.screening["dropped"] == 4
    assert found.result.value <= best * (1 + 1e-12) <= found.result.bound * (1 + 1e-9)
    assert verify(found.result, COUNTS).verdict == "proved"


def test_what_cannot_be_updated_is_refused_with_a_remedy():
    before = sparse_pca(COUNTS, **ASKED)
    with pytest.raises(ValueError, match="keeps no sums over its rows; pass its rows as X"):
        update(before, COUNTS)
    with pytest.raises(ValueError, match="not those of the result"):
        update(before, COUNTS, X=COUNTS[:100])
    with pytest.raises(ValueError, match="the mean differs for 'x0'"):
        update(before, COUNTS, X=2 * COUNTS)
    with pytest.raises(ValueError, match="neither new_rows nor without"):
        update(before, X=COUNTS)
    with pytest.raises(ValueError, match="only sums of integers"):
        update(sparse_pca(COUNTS / 2, **ASKED), without=COUNTS[:9] / 2, X=COUNTS / 2)
    with pytest.raises(ValueError, match="not all added"):
        update(before, without=9 * COUNTS[:9], X=COUNTS)
    with pytest.raises(ValueError, match="9 features, but the sums have 12"):
        update(before, COUNTS[:, :9], X=COUNTS)
    with pytest.raises(ValueError, match="came from a covariance matrix"):
        update(sparse_pca(covariance=np.eye(3), n_nonzero_coefs=1), COUNTS)
    with pytest.raises(TypeError, match="got ndarray"):
        update(COUNTS, COUNTS)


def test_variances_are_known_as_well_after_many_updates_as_after_one_pass():
    X = np.random.default_rng(0).standard_normal((2000, 60))
    sums = Sums.of(X[:20], memory_limit=10_000)
    for start in range(20, 2000, 20):
        sums = sums.grown(X[start : start + 20])
    once = Sums.of(X, memory_limit=10_000)
    assert sums.moments.errors().max() < 50 * once.moments.errors().max()
    bounds = [sparse_pca(covariance=s, n_nonzero_coefs=2).bound for s in (sums, once)]
    assert bounds[0] < 1.2 * bounds[1]  # other features are kept: those that vary most in 20 rows


def test_sums_are_saved_and_loaded(tmp_path):
    for X in (COUNTS, COUNTS / 7, COUNTS.astype(np.int64) * 10**9):
        sums = Sums.of(X, feature_names=NAMES)
        sums.save(tmp_path / "x.sums")
        again = Sums.load(tmp_path / "x.sums").grown(X[:10])
        first = sums.grown(X[:10])
        assert again.feature_names == tuple(NAMES)
        assert again.exact == first.exact
        np.testing.assert_array_equal(again.gram.second, first.gram.second)
        np.testing.assert_array_equal(again.moments.variances(), first.moments.variances())
    weighted = Sums.of(COUNTS, sample_weight=np.full(240, 0.5))
    weighted.save(tmp_path / "w.sums")
    again = Sums.load(tmp_path / "w.sums").grown(COUNTS[:5], sample_weight=np.ones(5))
    assert again.moments.weight == 125.0
    with pytest.raises(ValueError, match="with and without sample weights"):
        weighted.grown(COUNTS[:5])
    (tmp_path / "bad").write_bytes((tmp_path / "w.sums").read_bytes()[:300])
    with pytest.raises(ValueError, match="does not hold sums"):
        Sums.load(tmp_path / "bad")


def test_partial_fit_sees_all_rows_of_all_calls(tmp_path):
    model = SparsePCA(**ASKED)
    for start in range(0, 240, 60):
        model.partial_fit(COUNTS[start : start + 60])
    whole = sparse_pca(covariance=Sums.of(COUNTS), **ASKED)
    assert model.result_.value == whole.value
    assert verify(model, COUNTS).verdict == "proved"
    assert model.transform(COUNTS[:3]).shape == (3, 2)
    model.save(tmp_path / "model.json")
    again = SparsePCA.load(tmp_path / "model.json")
    assert (
        again.partial_fit(COUNTS[:9]).result_.value == model.partial_fit(COUNTS[:9]).result_.value
    )
    assert update(again, COUNTS[9:18]).result.n_samples == 258
    assert not hasattr(again.fit(COUNTS), "sums_")
    with pytest.warns(UserWarning, match="partial_fit begins with these"):
        assert again.partial_fit(COUNTS[:50]).result_.n_samples == 50


def test_partial_fit_of_frames_remembers_which_columns_are_features():
    frame = pd.DataFrame(COUNTS, columns=NAMES).assign(place="here")
    with pytest.warns(UserWarning, match="place"):
        model = SparsePCA(**ASKED).partial_fit(frame[:120])
    model.partial_fit(frame[120:])
    assert list(model.feature_names_in_) == NAMES
    assert model.result_.n_samples == 240
    with pytest.raises(ValueError, match="missing='mean'"):
        SparsePCA(missing="mean").partial_fit(COUNTS)
    with pytest.raises(ValueError, match="1 sample"):
        SparsePCA().partial_fit(COUNTS[:1])


def test_partial_fit_takes_weights_in_every_call():
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 240)
    weights[:100] /= 8  # weights of different calls are weighed against each other
    model = SparsePCA(**ASKED).partial_fit(COUNTS[:100], sample_weight=weights[:100])
    model.partial_fit(COUNTS[100:], sample_weight=weights[100:])
    whole = sparse_pca(COUNTS, sample_weight=weights, **ASKED)
    assert model.result_.value == pytest.approx(whole.value, rel=1e-9)
    assert verify(model, COUNTS, sample_weight=weights).verdict == "proved"


def test_rows_that_come_twice_in_a_row_are_pointed_out(tmp_path):
    before = sparse_pca(COUNTS[:120], **ASKED)
    once = update(before, COUNTS[120:], X=COUNTS[:120])
    assert not once.repeated
    once.sums.save(tmp_path / "x.sums")
    with pytest.warns(UserWarning, match=r"count once more now.*take them away once \(without="):
        twice = update(once.result, COUNTS[120:], sums=Sums.load(tmp_path / "x.sums"))
    assert twice.repeated
    assert twice.result.n_samples == 360
    assert not update(twice, without=COUNTS[120:]).repeated
    with pytest.warns(UserWarning, match="go back to the result before them"):
        assert update(sparse_pca(COUNTS + 0.5, **ASKED), COUNTS + 0.5, X=COUNTS + 0.5).repeated
