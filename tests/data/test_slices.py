"""A frame beyond the limit is read some rows at a time, and has the answer of one piece."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

from sparcipal import SparsePCA, sparse_pca
from sparcipal.data import slices
from sparcipal.data.moments import Moments
from sparcipal.data.rows import fits_memory
from sparcipal.data.sources import as_rows

RNG = np.random.default_rng(0)
N = 400
COUNTS = RNG.poisson(3.0, (N, 6)) * np.array([5, 4, 3, 2, 1, 1])
LATE = np.where(np.arange(N) < 300, None, "7.5")
MIXED = {
    "name": [f"n{i % 170}" for i in range(N)],
    "whole": COUNTS[:, 0].astype(np.int32),
    "many": COUNTS[:, 1].astype(np.int64),
    "fraction": COUNTS[:, 2] / 3,
    "single": (COUNTS[:, 3] / 7).astype(np.float32),
    "yes": COUNTS[:, 4] > 1,
    "kind": np.where(np.arange(N) < 350, "a", "b"),
    "day": pd.date_range("2020-01-01", periods=N),
    "gone": [None] * N,
    "seen": LATE,  # text whose entries are numbers, if all of them are looked at
    "customer_id": np.arange(N),
    "row_id": np.r_[np.arange(N - 1), 0],  # comes again in the last row
}


def pandas_frame():
    frame = pd.DataFrame(MIXED)
    frame["kind"] = frame["kind"].astype("category")
    frame["nullable"] = pd.array(COUNTS[:, 5], dtype="Int16")
    return frame


def objects():
    """Text only further down, and numbers as objects."""
    frame = pd.DataFrame(COUNTS, columns=list("abcdef"))
    frame["o"] = [1, 2, *[3.5] * (N - 2)]
    frame["o"] = frame["o"].astype(object)
    frame["t"] = [*range(150), *["text"] * (N - 150)]
    return frame


def twice():
    frame = pd.DataFrame(COUNTS, columns=["a", "b", "a", "c", "b", "a"])
    return frame.set_index(pd.Index([f"r{i}" for i in range(N)]))


def numbered():
    return pd.DataFrame(COUNTS)


def polars_frame():
    polars = pytest.importorskip("polars")
    return polars.from_pandas(pandas_frame())


def arrow_table():
    pa = pytest.importorskip("pyarrow")
    whole = pa.Table.from_pandas(pandas_frame())
    return pa.concat_tables([whole.slice(0, 130), whole.slice(130)])  # two chunks


def arrow_twice():
    pa = pytest.importorskip("pyarrow")
    return pa.Table.from_arrays([pa.array(COUNTS[:, j]) for j in range(6)], names=[*"abacba"])


FRAMES = [pandas_frame, objects, twice, numbered, polars_frame, arrow_table, arrow_twice]
ASKED = {"n_components": 2, "n_nonzero_coefs": 2, "certify": False}


def told(X, **asked):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = sparse_pca(X, **ASKED, **asked)
    return found, sorted(str(warning.message) for warning in caught)


@pytest.mark.parametrize("make", FRAMES)
def test_a_frame_beyond_the_limit_has_the_answer_of_one_piece(make, monkeypatch):
    frame = make()
    whole, words = told(frame)
    monkeypatch.setattr(slices, "DENSE_BLOCK", 2000)
    assert slices.sliced(frame, 4000) is not None
    found, same_words = told(frame, memory_limit=4000)
    assert same_words == words
    assert found.feature_names == whole.feature_names
    assert [s.tolist() for s in found.supports] == [s.tolist() for s in whole.supports]
    assert found.value == pytest.approx(whole.value, rel=1e-12)
    assert found.certificate.screening
    assert not whole.certificate.screening
    model = SparsePCA(**ASKED, memory_limit=4000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame)
    assert model.result_.value == found.value
    assert model.transform(frame).shape == (N, 2)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_gaps_in_a_frame_beyond_the_limit_are_told_and_treated(library, monkeypatch):
    frame = pd.DataFrame({f"c{j}": COUNTS[:, j] / 2 for j in range(6)}).astype({"c4": np.float32})
    frame.loc[[7, 390], "c1"] = np.nan
    frame["c5"] = pd.array(COUNTS[:, 5], dtype="Int64")
    frame.loc[380, "c5"] = pd.NA
    if library == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    elif library == "pyarrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    monkeypatch.setattr(slices, "DENSE_BLOCK", 2000)
    errors = []
    for limit in ("1GiB", 4000):
        with pytest.raises(ValueError, match="X contains 3 NaN, the first in row 7") as error:
            sparse_pca(frame, n_nonzero_coefs=2, memory_limit=limit)
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    for missing in ("mean", "rows"):
        whole = sparse_pca(frame, **ASKED, missing=missing)
        found = sparse_pca(frame, **ASKED, missing=missing, memory_limit=4000)
        assert found.value == pytest.approx(whole.value, rel=1e-12)


def test_a_frame_is_not_copied_beyond_the_limit():
    frame = pd.DataFrame({f"c{j}": RNG.poisson(3.0, 80_000) for j in range(100)})
    tracemalloc.start()
    rows = as_rows(frame, memory_limit=1_000_000)
    rows.accumulate(Moments(100))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 30e6 < frame.to_numpy().nbytes
    assert rows.n_samples == 80_000


def test_frames_whose_features_fit_and_sparse_ones_stay_in_one_piece():
    frame = pd.DataFrame(
        {"a": COUNTS[:, 0], "b": COUNTS[:, 1], **{f"t{j}": ["x"] * N for j in "cd"}}
    )
    assert not fits_memory(np.empty((N, 4)), 2 * 8 * 2 * N + 4000)
    assert slices.sliced(frame, 2 * 8 * 2 * N + 4000) is None
    assert slices.sliced(frame, 2 * 8 * 2 * N - 1) is not None
    sparse = pd.DataFrame(COUNTS).astype(pd.SparseDtype(np.int64, 0))
    assert slices.sliced(sparse, 10) is None
    assert slices.sliced(COUNTS, 10) is None
