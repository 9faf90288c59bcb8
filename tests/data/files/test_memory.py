"""Numbers that exceed the memory limit are read in blocks and mapped, whatever the format."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import read
from sparcipal.data.files import cache
from sparcipal.data.rows import memory_map

X = np.random.default_rng(0).standard_normal((60, 9))
S = sp.random_array((60, 9), density=0.3, rng=np.random.default_rng(1), format="csr")
COUNTS = np.random.default_rng(2).poisson(0.5, size=(60, 9))
NAMES = tuple(f"w{j}" for j in range(9))


def _csv(path):
    lines = [",".join(NAMES), *(",".join(map(repr, row)) for row in X.tolist())]
    path.write_text("\n".join(lines) + "\n")


def _parquet(path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({name: X[:, j] for j, name in enumerate(NAMES)}), path)


def _parquet_folder(path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path.mkdir()
    for number, part in enumerate(np.array_split(X, 3)):
        made = pa.table({name: part[:, j] for j, name in enumerate(NAMES)})
        parquet.write_table(made, path / f"part{number}.parquet")


def _zarr(path):
    zarr = pytest.importorskip("zarr")
    array = zarr.open(str(path), mode="w", shape=X.shape, chunks=(7, 4), dtype="f8")
    array[:] = X


def _h5ad(path):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(X).write_h5ad(path)


def _h5ad_sparse(path):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(sp.csr_matrix(S)).write_h5ad(path)


def _bag(path, shuffled=False):
    rows, columns = np.nonzero(COUNTS)
    order = np.random.default_rng(3).permutation(rows.size) if shuffled else range(rows.size)
    lines = [f"{rows[i] + 1} {columns[i] + 1} {COUNTS[rows[i], columns[i]]}\n" for i in order]
    path.write_text(f"60\n9\n{len(lines)}\n" + "".join(lines))


MAKERS = {
    "docword.txt": (_bag, COUNTS),
    "docword.mixed.txt": (lambda path: _bag(path, shuffled=True), COUNTS),
    "x.csv": (_csv, X),
    "x.parquet": (_parquet, X),
    "parts": (_parquet_folder, X),
    "x.zarr": (_zarr, X),
    "x.npz": (lambda path: np.savez(path, X=X), X),
    "packed.npz": (lambda path: np.savez_compressed(path, X=X), X),
    "sparse.npz": (lambda path: sp.save_npz(path, S), S.toarray()),
    "x.h5ad": (_h5ad, X),
    "sparse.h5ad": (_h5ad_sparse, S.toarray()),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.processes if n.endswith("h5ad") else ()) for n in MAKERS],
)
def test_what_exceeds_the_limit_is_mapped_and_the_same(name, cached, tmp_path, monkeypatch):
    make, expected = MAKERS[name]
    make(tmp_path / name)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    kept = tmp_path / "kept" if cached else False
    whole = read(tmp_path / name, cache=False)
    found = read(tmp_path / name, cache=kept, memory_limit=700)
    assert memory_map(found.X) is not None
    assert memory_map(whole.X) is None
    for table in (whole, found):
        dense = table.X.toarray() if sp.issparse(table.X) else table.X
        np.testing.assert_array_equal(dense, expected)
    assert (found.feature_names, found.sample_names) == (whole.feature_names, whole.sample_names)
    assert not list((tmp_path / "temporary").iterdir())  # nothing is left there


@pytest.mark.parametrize("limit", ["1GiB", 700])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_a_pattern_names_several_files_as_one_table(suffix, limit, tmp_path):
    make, _ = MAKERS[f"x.{suffix}"]
    for number in (1, 2, 10):
        make(tmp_path / f"part-{number}.{suffix}")
    found = read(tmp_path / f"part-*.{suffix}", memory_limit=limit)
    np.testing.assert_array_equal(found.X, np.concatenate([X, X, X]))
    assert (memory_map(found.X) is None) == (limit == "1GiB")
    with pytest.raises(ValueError, match="no file matches this pattern"):
        read(tmp_path / f"other-*.{suffix}")


def test_files_of_a_pattern_have_the_same_columns(tmp_path):
    for number, head in enumerate(("a,b", "a,c", "a,b,c")):
        row = ",".join("1.5" for _ in head.split(","))
        (tmp_path / f"{number}.csv").write_text(f"{head}\n{row}\n{row}\n")
    with pytest.raises(ValueError, match=r"1\.csv lacks 'b' and has 'c', compared with .*0\.csv"):
        read(tmp_path / "[01].csv")
    with pytest.raises(ValueError, match=r"2\.csv has 'c'"):
        read(tmp_path / "[02].csv")
    (tmp_path / "a.txt").write_text("one text\nanother text\n")
    with pytest.raises(ValueError, match="name the folder, or join the files"):
        read(tmp_path / "*.txt")


@pytest.mark.parametrize("name", ["*.parquet", ""])
def test_parquet_parts_are_joined_by_the_names_of_their_columns(tmp_path, name):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": [1.0, 2.0], "b": [3.0, 5.0]}), tmp_path / "0.parquet")
    parquet.write_table(pa.table({"b": [7.0], "a": [9.0]}), tmp_path / "1.parquet")
    if name:  # of a folder, a note tells what is left out
        (tmp_path / "notes.csv").write_text("no part of it")
    found = read(tmp_path / name)
    assert found.X.tolist() == [[1.0, 3.0], [2.0, 5.0], [9.0, 7.0]]
    parquet.write_table(pa.table({"c": [7.0], "a": [9.0]}), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet lacks 'b' and has 'c', compared with .*0\."):
        read(tmp_path / name)
    assert read(tmp_path / name, columns="a").shape == (4, 1)


def test_groups_of_zarr_say_which_array(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
    group.create_array("one", shape=(3, 2), dtype="f8")
    group.create_array("two", shape=(3, 2), dtype="f8")[:] = np.arange(6).reshape(3, 2)
    with pytest.raises(ValueError, match="which array"):
        read(Path(tmp_path / "x.zarr"))
    assert read(tmp_path / "x.zarr", key="two").X[2].tolist() == [4.0, 5.0]
    with pytest.raises(ValueError, match="no array 'six'"):
        read(tmp_path / "x.zarr", key="six")


@pytest.mark.parametrize("name", ["x.csv", "docword.txt", "docword.mixed.txt"])
def test_what_cannot_be_written_is_held_with_one_warning(name, tmp_path, monkeypatch):
    make, expected = MAKERS[name]
    make(tmp_path / name)

    def full(self, raw):
        raise OSError(28, "No space left on device")

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with monkeypatch.context() as disk:
        disk.setattr(cache.Column, "_all", full)
        with pytest.warns(RuntimeWarning, match="No space") as told:
            found = read(tmp_path / name, cache=False, memory_limit=700)
    assert len(told) == 1
    assert "temporary: the parsed data could not be kept" in str(told[0].message)
    assert memory_map(found.X) is None
    np.testing.assert_array_equal(found.X.toarray() if sp.issparse(found.X) else found.X, expected)
    assert not list((tmp_path / "temporary").iterdir())

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.warns(RuntimeWarning, match=r"nowhere: .*TMPDIR") as told:
        found = read(tmp_path / name, cache=False, memory_limit=700)
    assert len(told) == 1
    assert memory_map(found.X) is None
