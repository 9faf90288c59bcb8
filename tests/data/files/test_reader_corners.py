"""Files with odd ends, tables in odd blocks, caches that are in the way: the table, or why not."""

from __future__ import annotations

import gzip
import os
import shutil
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import read, sparse_pca
from sparcipal.data.files import blocks, cache, tables
from sparcipal.data.files import bytes as source
from sparcipal.data.files.bytes import read_names
from sparcipal.data.files.cache import Cache
from sparcipal.data.rows import memory_map


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BYTES", 20)
    monkeypatch.setattr(blocks, "ROWS", 2)
    monkeypatch.setattr(tables, "FIELDS", 4)


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- svmlight in blocks ---


@pytest.mark.usefixtures("small_blocks")
def test_lines_longer_than_a_block(tmp_path):
    """A line may be longer than what is read together; the last one need not end."""
    long = "1 " + " ".join(f"{j}:{j}.5" for j in range(1, 12))
    path = written(tmp_path / "x.svmlight", f"0 1:2\n{long}\n0 3:4")
    whole, parts = read(path, cache=False), read(path, cache=tmp_path / "kept")
    assert memory_map(parts.X) is not None
    np.testing.assert_array_equal(parts.X.toarray(), whole.X.toarray())
    assert whole.X[1, 10] == 11.5
    assert whole.X[2, 2] == 4.0


@pytest.mark.usefixtures("small_blocks")
def test_samples_without_entries_and_lines_without_samples(tmp_path):
    path = written(tmp_path / "x.svmlight", "0\n0\n0\n0\n0\n1 2:3\n" + "# nothing here\n" * 5)
    whole, parts = read(path, cache=False), read(path, cache=tmp_path / "kept")
    np.testing.assert_array_equal(parts.X.toarray(), whole.X.toarray())
    assert whole.shape == (6, 2)


@pytest.mark.usefixtures("small_blocks")
def test_names_and_widths_of_svmlight_files(tmp_path):
    path = written(tmp_path / "x.svmlight", "0 1:2 3:1\n1 2:1\n")
    named = read(path, cache=tmp_path / "kept", feature_names=["a", "b", "c", "d"])
    assert named.shape == (2, 4)
    assert named.feature_names == ("a", "b", "c", "d")
    for folder in (False, tmp_path / "kept"):
        with pytest.raises(ValueError, match=r"n_features(=| was set to )2"):
            read(path, cache=folder, n_features=2)
    empty = written(tmp_path / "empty.svmlight", "# nothing\n# at all\n")
    with pytest.raises(ValueError, match="0 sample"):
        read(empty, cache=tmp_path / "kept")


# --- Matrix Market in blocks ---

HEAD = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("sizes", "entries"),
    [
        ("3 2 4", ["1 1 5", "1 2 6", "1 2 1", "3 1 7"]),  # many entries in one row, none in another
        ("2 2 3", ["2 1 5", "2 2 6", "2 1 1"]),  # all in the last row
        ("5 2 2", ["1 1 5", "1 2 6"]),  # rows without an entry at the end
    ],
)
def test_entries_by_rows(tmp_path, sizes, entries):
    path = written(tmp_path / "x.mtx", HEAD + sizes + "\n" + "\n".join(entries) + "\n")
    dense = np.zeros([int(n) for n in sizes.split()[:2]])
    for entry in entries:
        i, j, value = entry.split()
        dense[int(i) - 1, int(j) - 1] += float(value)
    for folder in (False, tmp_path / "kept", tmp_path / "kept"):
        np.testing.assert_array_equal(read(path, cache=folder).X.toarray(), dense)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "body", ["3 2\n1 1 5\n", "3 2 9\n1 1 5\n2 2 1\n", "three two 1\n1 1 5\n", "-3 2 1\n1 1 5\n"]
)
def test_sizes_that_are_wrong(tmp_path, body):
    path = written(tmp_path / "x.mtx", HEAD + body)
    for folder in (False, tmp_path / "kept"):
        with pytest.raises(ValueError, match=r"x\.mtx: not a Matrix Market file"):
            read(path, cache=folder)


# --- Parquet, AnnData, archives ---


def test_labelled_rows_of_parquet_files(tmp_path, monkeypatch):
    """Labels of rows are not in the blocks: such a file is read whole."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from sparcipal.data.files import formats as readers

    frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]}, index=["x", "y", "z"])
    frame.to_parquet(tmp_path / "x.parquet")
    monkeypatch.setattr(readers, "LARGEST_WHOLE", 10)
    table = read(tmp_path / "x.parquet", cache=tmp_path / "kept")
    np.testing.assert_array_equal(table.X, frame.to_numpy())
    assert table.sample_names == ("x", "y", "z")
    assert table.feature_names == ("a", "b")


def test_columns_of_several_levels():
    pandas = pytest.importorskip("pandas")
    columns = pandas.MultiIndex.from_tuples([("gene", 1), ("gene", 2)])
    X = np.random.default_rng(0).standard_normal((9, 2))
    result = sparse_pca(pandas.DataFrame(X, columns=columns), n_nonzero_coefs=1)
    assert result.feature_names == ("gene 1", "gene 2")


def test_cells_that_stay_in_their_file(tmp_path):
    """An AnnData object in backed mode, dense and sparse."""
    anndata = pytest.importorskip("anndata")
    X = np.random.default_rng(1).poisson(1.0, (12, 4)).astype(np.float32)
    for name, matrix in (("dense", X), ("sparse", sp.csr_matrix(X))):
        path = tmp_path / f"{name}.h5ad"
        anndata.AnnData(matrix).write_h5ad(path)
        backed = anndata.read_h5ad(path, backed="r")
        found = sparse_pca(backed, n_nonzero_coefs=2)
        backed.file.close()
        assert found.value == pytest.approx(sparse_pca(X, n_nonzero_coefs=2).value, rel=1e-9)


def test_archives_that_unpack_to_much_more(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "LARGE", 1000)
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((1000, 100)))
    with pytest.raises(ValueError, match=r"more than \d+ times their size"):
        read(tmp_path / "x.npz")


@pytest.mark.parametrize("names", [["a"], [1.0, 2.0], [["a", "b"]]])
def test_names_in_archives_that_do_not_fit_are_none(tmp_path, names):
    X = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "x.npz", X=X, feature_names=np.array(names))
    assert read(tmp_path / "x.npz").feature_names is None
    np.savez(tmp_path / "y.npz", X=X, feature_names=np.array(["a", "b"]))
    assert read(tmp_path / "y.npz").feature_names == ("a", "b")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"indices": np.array([0.5, 1.5])}, "indices are not integers"),
        ({"indptr": np.array([1, 1, 2])}, "index pointers do not increase from 0"),
        ({"indptr": np.array([0, 2, 1])}, "index pointers do not increase from 0"),
        ({"indptr": np.array([0, 1, 3])}, "2 indices and 2 entries for 3 places"),
        ({"data": np.ones(1)}, "should have the same size"),
        ({"indices": np.array([0, 7])}, "an index is not in 0..1"),
        ({"indices": np.array([0, -1])}, "an index is not in 0..1"),
    ],
)
def test_sparse_matrices_that_were_broken_later(change, words):
    """SciPy checks what it is given once; its kernels would read beyond the arrays."""
    whole = sp.csr_array(np.diag([1.0, 2.0]))
    assert sparse_pca(whole, n_nonzero_coefs=1).supports[0].tolist() == [1]
    for name, value in change.items():
        setattr(whole, name, value)
    with pytest.raises(ValueError, match=words):
        sparse_pca(whole, n_nonzero_coefs=1)


# --- where it went wrong ---


def test_the_first_of_many_missing_entries():
    X = np.ones((3000, 700))
    X[1500, 2] = np.nan
    X[2900, 5] = np.inf
    with pytest.raises(ValueError, match=r"1 NaN.*row 1500, column 2|row 1500") as caught:
        sparse_pca(X, n_nonzero_coefs=1)
    assert "2900" not in str(caught.value)


def test_a_path_that_is_not_there(tmp_path):
    for format in (None, "csv"):
        with pytest.raises(ValueError, match="no such file or folder"):
            read(tmp_path / "nothing.csv", format=format)


def test_names_end_with_the_last_that_is_not_empty(tmp_path):
    path = written(tmp_path / "names.txt", "a\n\nb\n\n\n")
    assert read_names(path) == ("a", "", "b")


def test_what_a_comma_means(tmp_path):
    path = written(tmp_path / "x.csv", "a;b\n1,5;2\n3;4,25\n")
    with pytest.raises(ValueError, match="line 2: '1,5', column 1 has a decimal comma"):
        read(path)
    plain = written(tmp_path / "y.csv", "a;x,b\n1,2\n3,4\n")
    assert read(plain).feature_names == ("a;x", "b")


def test_bags_of_words_from_damaged_archives(tmp_path):
    """A line that makes no sense in a gzip file may come from damage further on: that is said."""
    text = b"2\n2\n3\n1 1 1\n1 x 1\n2 2 2\n" + b"2 2 2\n" * 2_000_000
    whole = gzip.compress(text)
    path = written(tmp_path / "docword.x.txt.gz", whole)
    with pytest.raises(ValueError, match="line 5"):
        read(path)
    written(path, whole[:-6] + b"\0\0\0\0\0\0")
    with pytest.raises(ValueError, match="damaged or cut short, first seen in line 5"):
        read(path)


def test_lines_that_never_end(tmp_path, monkeypatch):
    from sparcipal.data.files import bagparse

    monkeypatch.setattr(bagparse, "LONGEST", 1 << 12)
    path = written(tmp_path / "docword.x.txt", "2\n2\n1\n1 1 " + "1" * (1 << 23))
    with pytest.raises(ValueError, match="line 4: longer than 4096 bytes"):
        read(path)


# --- the cache ---


def test_a_folder_with_other_files_in_it(tmp_path):
    """Plain files and half-made folders are no entries; clearing leaves the files alone."""
    folder = tmp_path / "kept"
    path = written(tmp_path / "x.csv", "a,b\n1,2\n3,5\n")
    read(path, cache=folder)
    written(folder / "notes-of-mine.txt", "keep this")
    (folder / "part-1-x").mkdir()
    (folder / "empty-entry").mkdir()
    found = Cache(folder)
    assert len(found.entries()) == 1
    assert found.clear() > 0
    assert found.entries() == []
    assert (folder / "notes-of-mine.txt").read_text() == "keep this"


def test_two_files_of_one_content(tmp_path):
    """When one of them changes, the entry stays: the other one still has it."""
    folder = tmp_path / "kept"
    first = written(tmp_path / "x.csv", "a,b\n1,2\n3,5\n")
    second = tmp_path / "y.csv"
    shutil.copy(first, second)
    read(first, cache=folder)
    read(second, cache=folder)
    assert len(Cache(folder).entries()) == 1
    written(first, "a,b\n1,2\n3,7\n")
    assert read(first, cache=folder).X[1, 1] == 7.0
    assert len(Cache(folder).entries()) == 2
    np.testing.assert_array_equal(read(second, cache=folder).X, [[1.0, 2.0], [3.0, 5.0]])


def test_a_cache_that_cannot_be_written_is_told_of_once(tmp_path, monkeypatch):
    path = written(tmp_path / "x.svmlight", "0 1:2 3:1\n1 2:1\n")
    whole = read(path, cache=False)

    def full(self, *arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.Cache, "keep", full)
    with pytest.warns(RuntimeWarning, match="No space left") as told:
        table = read(path, cache=tmp_path / "kept")
    assert len(told) == 1
    np.testing.assert_array_equal(table.X.toarray(), whole.X.toarray())


def test_a_small_table_is_not_kept(tmp_path, monkeypatch):
    """What parses to less than is worth it is handed over and forgotten."""
    monkeypatch.setattr(cache, "LARGE", 200)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kept"))
    path = written(tmp_path / "x.csv", "a,b\n" + "1.000000,2.0000000\n" * 4)
    assert read(path).X.tolist() == [[1.0, 2.0]] * 4
    assert Cache(tmp_path / "kept").entries() == []


# --- pipes ---


def test_progress_of_a_pipe_has_no_end(tmp_path, monkeypatch):
    """Nobody knows how much is still to come; what has come is told."""
    monkeypatch.setattr(source, "TELL", 0.0)
    fifo = tmp_path / "x.csv"
    os.mkfifo(fifo)
    content = b"a,b\n" + b"1,2\n3,5\n" * 50
    writer = threading.Thread(target=lambda: fifo.write_bytes(content))
    writer.start()
    told = []
    table = read(fifo, format="csv", callback=lambda progress: told.append(progress))
    writer.join()
    assert table.X.sum() == 550.0
    assert told[-1].total is None
    assert told[-1].done == len(content)
    assert told[-1].message == "x.csv: 404 bytes"


def test_reading_in_threads_gives_the_same(tmp_path):
    path = written(tmp_path / "x.csv", "a,b\n" + "1,2\n3,5\n" * 50)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(read(path, cache=tmp_path / "kept").X.sum()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [550.0] * 4
