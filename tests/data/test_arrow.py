"""What other libraries scan is read in blocks, and gives the answer of the array."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import SparsePCA, read, sparse_pca, verify
from sparcipal.data import arrow

NAMES = [f"f{j}" for j in range(6)]
X = np.random.default_rng(0).standard_normal((300, 6)) * np.geomspace(3, 1, 6)
ASKED = {"n_nonzero_coefs": 2, "certify": False}


def table(pa):
    text = pa.array(["some"] * 300)
    return pa.table({**{name: X[:, j] for j, name in enumerate(NAMES)}, "words": text})


def dataset(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(3):
        parquet.write_table(table(pa).slice(100 * i, 100), folder / f"{i}.parquet")
    return pytest.importorskip("pyarrow.dataset").dataset(folder)


def scan(tmp_path):
    polars = pytest.importorskip("polars")
    dataset(tmp_path)
    return polars.scan_parquet(tmp_path / "parts" / "*.parquet")


def relation(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    dataset(tmp_path)
    return duckdb.connect().read_parquet(str(tmp_path / "parts" / "*.parquet"))


def chunked(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3")
    made = zarr.create_array(str(tmp_path / "z"), shape=X.shape, chunks=(70, 6), dtype="f8")
    made[:] = X
    return made


def batches(tmp_path):
    return table(pytest.importorskip("pyarrow")).to_batches(max_chunksize=70)


SOURCES = [dataset, scan, relation, chunked, batches]


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("limit", [1 << 20, 1000])
@pytest.mark.filterwarnings("ignore:.*words:UserWarning")
def test_scanned_tables_give_the_answer_of_the_array(make, limit, tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "BYTES", 8 * 7 * 50)  # several blocks
    source, whole = make(tmp_path), sparse_pca(X, **ASKED)
    result = sparse_pca(source, memory_limit=limit, **ASKED)
    assert result.supports[0].tolist() == whole.supports[0].tolist()
    assert result.value == pytest.approx(whole.value, rel=1e-12)
    assert bool(result.certificate.screening) == (limit == 1000)
    assert result.feature_names == (None if make is chunked else tuple(NAMES))
    assert verify(result, X)
    assert SparsePCA(**ASKED).fit(source).result_.value == pytest.approx(whole.value, rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*words:UserWarning")
def test_batches_that_come_once_are_kept():
    pa = pytest.importorskip("pyarrow")
    result = sparse_pca(table(pa).to_reader(max_chunksize=7), **ASKED)
    assert result.value == pytest.approx(sparse_pca(X, **ASKED).value, rel=1e-12)
    assert result.feature_names == tuple(NAMES)


@pytest.mark.filterwarnings("ignore:.*words:UserWarning")
def test_folder_of_parquet_files_is_read(tmp_path):
    dataset(tmp_path)
    found = read(tmp_path / "parts")
    np.testing.assert_array_equal(found.X, X)
    assert found.feature_names == tuple(NAMES)
