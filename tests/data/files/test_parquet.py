"""Parquet files."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import read, sparse_pca
from sparcipal.data import arrow
from sparcipal.data.files.bytes import Source
from sparcipal.data.files.parquet import parquet_blocks


def test_parquet_is_read_whole_when_rows_have_labels(tmp_path):
    """Labels of rows are not in the blocks: such a file is read whole."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]}, index=["x", "y", "z"])
    frame.to_parquet(tmp_path / "x.parquet")
    table = read(tmp_path / "x.parquet", cache=tmp_path / "kept", memory_limit=10)
    np.testing.assert_array_equal(table.X, frame.to_numpy())
    assert table.sample_names == ("x", "y", "z")
    assert table.feature_names == ("a", "b")


def written(tmp_path, columns):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_arrays(
        [pa.array(entries) for _, entries in columns], [n for n, _ in columns]
    )
    (tmp_path / "parts").mkdir()
    for i in range(3):
        parquet.write_table(
            table.slice(i * len(table) // 3, len(table) // 3), tmp_path / "parts" / f"{i}.parquet"
        )
    parquet.write_table(table, tmp_path / "one.parquet", row_group_size=4)
    return [tmp_path / "parts", tmp_path / "one.parquet", str(tmp_path / "parts" / "*.parquet")]


@pytest.mark.parametrize("limit", [10, "1GB"], ids=["in blocks", "whole"])
def test_columns_of_one_name_are_refused_in_words(limit, tmp_path):
    for source in written(tmp_path, [("a", range(12)), ("b", range(12)), ("a", range(12))]):
        with pytest.raises(ValueError, match="several columns have the same name"):
            read(source, memory_limit=limit)
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match="several columns of the same name"):
        sparse_pca(polars.scan_parquet(tmp_path / "parts" / "*.parquet"), n_nonzero_coefs=1)


@pytest.mark.filterwarnings("ignore:set aside:UserWarning")
def test_which_columns_are_features_depends_on_no_limit(tmp_path, monkeypatch):
    """Entries that differ in the first rows may come again, and what begins empty may be filled."""
    monkeypatch.setattr(arrow, "BYTES", 320)
    a, e = [3.0, 1.0, 4.0] * 40, [None] * 80 + [1.0] * 40
    user, order = [*range(80), *[1] * 40], [*range(120, 0, -1)]
    columns = [("a", a), ("e", e), ("n", [None] * 120), ("user_id", user), ("order_id", order)]
    for source in written(tmp_path, columns):
        for limit in (512, "1GiB"):
            table = read(source, memory_limit=limit, cache=tmp_path / "kept")
            assert table.feature_names == ("a", "e", "user_id")
            assert table.notes == ("set aside, not fitted: 'n' (empty), 'order_id' (identifier)",)
            assert np.isnan(table.X[:, 1]).sum() == 80
            np.testing.assert_array_equal(table.X[:, 0], a)


def test_blocks_are_large_enough_for_the_work_on_each_column(tmp_path):
    source = written(tmp_path, [(f"c{j}", np.arange(120.0) ** j) for j in range(4)])[1]
    assert len([*parquet_blocks(Source(source, memory_limit=100), None)]) == 1


def test_files_whose_types_differ_are_one_table(tmp_path):
    """By itself pyarrow takes the types of the first file, in which a later 2 is true."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    first = {"a": [1, 2], "b": [True, False], "c": pa.array([1, 2], "int8"), "e": pa.nulls(2)}
    second = {"e": pa.nulls(2), "c": pa.array([300, 4]), "b": [2, 5], "a": [0.5, 3.0]}
    for name, columns in (("0", first), ("1", second), ("_2", {"z": [1]}), (".3", {"z": [1]})):
        parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    for source in (tmp_path, str(tmp_path / "[01].parquet")):
        for limit in (10, "1GB"):
            with pytest.warns(UserWarning, match="not fitted: 'e' .empty"):
                table = read(source, memory_limit=limit)
            assert table.feature_names == ("a", "b", "c")
            assert table.X.tolist() == [[1, 1, 1], [2, 0, 2], [0.5, 2, 300], [3, 5, 4]]


def test_a_column_that_is_text_in_one_file_and_numbers_in_another_is_refused(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, last in (("0", [1.5, 2.5]), ("1", ["x", "y"])):
        parquet.write_table(pa.table({"a": [1, 2], "b": last}), tmp_path / f"{name}.parquet")
    for source in (tmp_path, str(tmp_path / "*.parquet")):
        for limit in (10, "1GiB"):
            with pytest.raises(ValueError, match=r"'b' \(double in .*0.parquet and string in"):
                read(source, memory_limit=limit)
        assert read(source, drop="b").feature_names == ("a",)
        assert read(source, columns=["a"]).feature_names == ("a",)


def test_damaged_files_and_folders_without_any_are_told(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(100))
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "_x.parquet").touch()
    for source in (tmp_path / "a.parquet", str(tmp_path / "*.parquet")):
        with pytest.raises(ValueError, match="parquet: damaged, or not parquet"):
            read(source)
    with pytest.raises(ValueError, match="no Parquet file in it, but for hidden ones"):
        read(tmp_path / "hidden")


@pytest.mark.parametrize("limit", [10, 10**9])
def test_a_folder_of_parquet_names_the_files_that_are_left_out(limit, tmp_path):
    folder = written(tmp_path, [("a", [1.0, 2.0, 4.0]), ("b", [3.0, 1.0, 2.0])])[0]
    assert not read(folder, memory_limit=limit, cache=False).notes
    for name in ("b.csv", "c.txt", "_SUCCESS", ".hidden"):
        (folder / name).write_text("x,y\n1,2\n")
    with pytest.warns(UserWarning, match=r"folder of Parquet, without 'b.csv', 'c.txt'$"):
        assert read(folder, memory_limit=limit, cache=False).shape == (3, 2)
