"""What other libraries scan is read in blocks, and gives the answer of the array."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import SparsePCA, read, sparse_pca, verify
from sparcipal.data import arrow
from sparcipal.data.sources import as_rows

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


def test_datasets_are_read_as_pyarrow_scans_them(tmp_path):
    """Partitions, chosen rows and columns, and unions; Parquet says how many rows there are."""
    pa, datasets = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    whole = pa.table({"a": X[:, 0], "b": X[:, 1], "g": np.repeat([1, 2, 3], 100)})
    hive = datasets.partitioning(pa.schema([("g", pa.int64())]), flavor="hive")
    datasets.write_dataset(whole, tmp_path / "p", format="parquet", partitioning=hive)
    parted, plain = datasets.dataset(tmp_path / "p", partitioning="hive"), dataset(tmp_path)
    cases = {
        "parted": (parted, 300),
        "filtered": (plain.filter(datasets.field("f0") > 0), None),
        "one column": (plain.replace_schema(pa.schema([("f0", pa.float64())])), 300),
        "union": (datasets.dataset([plain, plain]), None),
        "in memory": (datasets.dataset(whole), None),
    }
    for name, (source, rows) in cases.items():
        found = arrow.in_batches(source)
        assert found.n_samples == rows, name
        assert pa.concat_tables(list(found())).equals(source.to_table()), name


def test_rows_that_are_counted_are_not_held_beyond_half_of_the_limit(tmp_path):
    """A table, its centred copy and its covariance must fit: below that limit blocks are summed as
    they come."""
    rows, needed = as_rows(chunked(tmp_path)), 2 * X.nbytes + 8 * X.shape[1] ** 2
    assert rows.gathered(needed - 1) is None
    assert rows.moments is None  # no pass was needed to know it
    np.testing.assert_array_equal(rows.gathered(needed).X, X)


@pytest.mark.parametrize("limit", [1 << 20, 1000])
def test_a_relation_with_a_column_of_nulls_is_read(limit):
    """To see whether later rows have an entry there takes a reading, and DuckDB allows one."""
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    connection = duckdb.connect()
    connection.register("t", table(pa))
    relation = connection.sql("select *, null as e, null::double as d from t")
    with pytest.warns(UserWarning, match="'e' .empty., 'd' .empty"):
        result = sparse_pca(relation, memory_limit=limit, **ASKED)
    assert result.value == pytest.approx(sparse_pca(X, **ASKED).value, rel=1e-12)


def test_what_a_library_cannot_read_is_told_in_its_words(tmp_path):
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    zarr = pytest.importorskip("zarr", minversion="3")
    pa = pytest.importorskip("pyarrow")
    datasets = pytest.importorskip("pyarrow.dataset")
    with pytest.raises(ValueError, match=r"polars cannot read it \(ColumnNotFoundError"):
        sparse_pca(polars.LazyFrame({"a": [1.0, 2.0]}).with_columns(polars.col("b")))
    connection = duckdb.connect()
    relation = connection.sql("select range as a from range(9)")
    connection.close()
    with pytest.raises(ValueError, match=r"duckdb cannot read it \(ConnectionException"):
        sparse_pca(relation)
    for name, column in (("0", [1, 2]), ("1", [0.5, 1.0])):
        pa.parquet.write_table(pa.table({"a": column}), tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match=r"pyarrow cannot read it \(ArrowInvalid: .*truncated"):
        sparse_pca(datasets.dataset(tmp_path))
    group = zarr.open_group(str(tmp_path / "z"), mode="w")
    group.create_array("X", shape=(3, 2), dtype="f8")
    with pytest.raises(ValueError, match=r"pass one of its arrays: 'X' \(3, 2\)"):
        sparse_pca(group)
    reader = table(pa).to_reader()
    reader.read_all()
    with pytest.raises(ValueError, match="RecordBatchReader without rows"):
        sparse_pca(reader)


@pytest.mark.filterwarnings("ignore:set aside:UserWarning")
def test_intervals_are_no_empty_columns():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.connect().sql(
        "select (i * i) % 7 as a, i % 5 as b, (interval 1 second) * i as iv from range(40) t(i)"
    )
    found = sparse_pca(relation, n_nonzero_coefs=1)
    assert found.info["notes"] == ["set aside, not fitted: 'iv' (dates)"]


def test_numbers_that_numpy_does_not_have_are_refused_by_name():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1, 4, 2], "big": [3, 1, 1]})
    frame = frame.with_columns(polars.col("big").cast(polars.Int128))
    for X in (frame, frame.lazy()):
        with pytest.raises(ValueError, match="'big' is of type Int128, which NumPy does not have"):
            sparse_pca(X, n_nonzero_coefs=1)


def test_verify_says_that_a_reader_is_read_once():
    table = pytest.importorskip("pyarrow").table({"a": [1, 4, 2], "b": [3, 1, 1]})
    found = sparse_pca(table.to_reader(2), n_nonzero_coefs=1)
    with pytest.raises(TypeError, match="batches come once only"):
        verify(found, table.to_reader(2))
    assert verify(found, table.to_batches(2)).verdict == "proved"


def parts_that_begin_without_entries(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    late = [pa.nulls(100), pa.array(range(100)), pa.array(X[:100, 0])]
    for i, column in enumerate(late):
        part = table(pa).slice(100 * i, 100).append_column("late", column)
        part = part.append_column("never", pa.nulls(100))
        parquet.write_table(part, tmp_path / f"{i}.parquet")


@pytest.mark.parametrize("limit", [1 << 20, 1000])
def test_columns_of_a_dataset_have_the_types_of_later_files(limit, tmp_path):
    parts_that_begin_without_entries(tmp_path)
    data = pytest.importorskip("pyarrow.dataset").dataset(tmp_path)
    with pytest.warns(UserWarning, match=r"'never' .empty."):
        found = read(data, memory_limit=limit)
    assert found.feature_names == (*NAMES, "late")
    expected = np.concatenate([np.full(100, np.nan), np.arange(100), X[:100, 0]])
    np.testing.assert_array_equal(found.X[:, -1], expected)
    dropped = data.filter(pytest.importorskip("pyarrow.dataset").field("f0") > 0)
    with pytest.raises(ValueError, match=r"no entry in 'late', 'never'; pass the dataset as"):
        sparse_pca(dropped, memory_limit=limit)


@pytest.mark.parametrize("limit", [1 << 20, 1000])
def test_a_scan_whose_first_file_has_an_empty_column_says_what_to_do(limit, tmp_path):
    polars = pytest.importorskip("polars")
    parts_that_begin_without_entries(tmp_path)
    files = sorted(tmp_path.glob("*.parquet"))
    with pytest.raises(ValueError, match=r"no entry in 'late', 'never'; leave .*X\.drop\('late'\)"):
        sparse_pca(polars.scan_parquet(files), memory_limit=limit, **ASKED)
    again = polars.concat([polars.scan_parquet(f) for f in files], how="vertical_relaxed")
    for scan in (again.drop("late"), polars.scan_parquet(files).drop("late")):
        with pytest.warns(UserWarning, match=r"'never' .empty."):
            found = sparse_pca(scan, memory_limit=limit, **ASKED)
        assert found.feature_names == tuple(NAMES)
    assert read(again).shape == (300, 7)
