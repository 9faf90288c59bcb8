"""Files that are parsed in blocks: the table of the whole file, and never all of it in memory."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import read, sparse_pca
from sparcipal.data.files import bytes as source
from sparcipal.data.files import cache, csv, matrixmarket, parquet, spill
from sparcipal.data.rows import memory_map


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(source, "LINES", 500)
    monkeypatch.setattr(parquet, "ROWS", 7)
    monkeypatch.setattr(csv, "FIELDS", 40)
    monkeypatch.setattr(spill, "CHUNK", 50)


def counts(n=60, p=9, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, size=(n, p)).astype(float)
    X[3] = X[-1] = 0.0  # samples without an entry
    X[7, 2] = 0.125
    return X


def csv_file(X, labels=False):
    lines = [",".join([*(["id"] if labels else []), *(f"w{j}" for j in range(X.shape[1]))])]
    for i, row in enumerate(X):
        lines.append(",".join([*([f"s{i}"] if labels else []), *map(repr, row.tolist())]))
    return ("\n".join(lines) + "\n").encode()


def svmlight_file(X, first=1):
    rows = (" ".join(f"{j + first}:{row[j]!r}" for j in np.flatnonzero(row)) for row in X.tolist())
    return "".join(f"{i % 2} {row}\n" for i, row in enumerate(rows)).encode()


def mtx_file(X, by_columns=False):
    entries = sorted(zip(*np.nonzero(X)), key=lambda e: e[::-1] if by_columns else e)
    lines = [f"{i + 1} {j + 1} {X[i, j]!r}".replace("np.float64(", "").rstrip(")")
             for i, j in entries]  # fmt: skip
    head = "%%MatrixMarket matrix coordinate real general\n% made up\n"
    return (head + f"{X.shape[0]} {X.shape[1]} {len(lines)}\n" + "\n".join(lines) + "\n").encode()


X = counts()
FILES = {
    "x.csv": (csv_file(X), {}),
    "x.csv.gz": (gzip.compress(csv_file(X, labels=True)), {}),
    "x.tsv": (csv_file(X).replace(b",", b"\t"), {}),
    "one.svmlight": (svmlight_file(X), {}),
    "zero.svmlight": (svmlight_file(X, first=0), {}),
    "wide.svmlight": (svmlight_file(X), {"n_features": 12}),
    "x.mtx": (mtx_file(X), {}),
    "turned.mtx": (mtx_file(X.T, by_columns=True), {"transpose": True}),
}


def dense(table):
    return table.X.toarray() if sp.issparse(table.X) else np.asarray(table.X)


@pytest.mark.parametrize("name", FILES)
def test_blocks_make_the_table_of_the_whole_file(tmp_path, name):
    content, options = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    whole = read(path, cache=False, **options)
    assert np.array_equal(dense(whole)[:, :9], X)
    for attempt in ("parsed", "found"):
        kept = read(path, cache=tmp_path / "kept", **options)
        assert memory_map(kept.X) is not None, attempt
        assert np.array_equal(dense(kept), dense(whole))
        assert (kept.X.dtype, kept.shape) == (whole.X.dtype, whole.shape)
        assert (kept.feature_names, kept.sample_names) == (whole.feature_names, whole.sample_names)
        if sp.issparse(kept.X):
            assert kept.X.has_canonical_format
    few = {"n_nonzero_coefs": 2, "certify": False}
    streamed = sparse_pca(kept, memory_limit=2000, **few)
    assert streamed.certificate.screening
    assert streamed.value == pytest.approx(sparse_pca(whole, **few).value, rel=1e-12)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (mtx_file(X, by_columns=True), "sorted by columns"),
        (mtx_file(X).replace(b"\n1 ", b"\n\n1 ", 1), "an empty line"),
        (mtx_file(X).replace(b"general", b"symmetric"), "no list of all entries"),
    ],
)
def test_what_cannot_be_read_in_blocks_is_read_whole(tmp_path, content, why):
    path = tmp_path / "x.mtx"
    if why == "no list of all entries":
        square = mtx_file(np.tril(X[10:19, :9])).replace(b"general", b"symmetric")
        content = square
    path.write_bytes(content)
    whole, kept = read(path, cache=False), read(path, cache=tmp_path / "kept")
    assert np.array_equal(dense(kept), dense(whole)), why
    assert np.array_equal(dense(read(path, cache=tmp_path / "kept")), dense(whole))


def test_parquet_is_read_in_blocks_when_large(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({f"w{j}": X[:, j] for j in range(9)}), path)
    whole = read(path, cache=tmp_path / "kept")
    assert memory_map(whole.X) is None
    for _ in range(2):
        kept = read(path, cache=tmp_path / "kept", memory_limit=1000)
        assert memory_map(kept.X) is not None
        assert np.array_equal(kept.X, whole.X)
        assert kept.feature_names == whole.feature_names


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.csv", csv_file(X).replace(b"0.125", b"what"), r"line 9: 'what', column 3 \('w2'\)"),
        ("x.csv", csv_file(X) + b"1,2\n", r"line 62: 2 fields instead of 9"),
        ("x.svmlight", svmlight_file(X) + b"1 4:a\n", r"lines \d+ to 61: not a svmlight file"),
        ("x.mtx", mtx_file(X) + b"1 2\n", "not a Matrix Market file"),
        ("x.mtx", mtx_file(X) + b"3 1 1.0\n", "not a Matrix Market file"),
    ],
)
def test_readers_in_blocks_leave_nothing_behind_after_faults(tmp_path, name, content, words):
    path, folder = tmp_path / name, tmp_path / "kept"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read(path, cache=folder)
    assert not [found for found in folder.glob("*") if found.name != "notes"]


def test_a_full_disk_is_survived(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_bytes(csv_file(X))

    def full(self, raw):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.Column, "_all", full)
    with pytest.warns(RuntimeWarning, match="No space left") as told:
        table = read(path, cache=tmp_path / "kept")
    assert len(told) == 1
    assert np.array_equal(table.X, X)
    assert not list((tmp_path / "kept").glob("part-*"))


@pytest.mark.parametrize(("name", "make"), [("x.csv", csv_file), ("x.svmlight", svmlight_file)])
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, name, make):
    monkeypatch.setattr(source, "LINES", 1 << 15)
    monkeypatch.setattr(csv, "FIELDS", 1 << 12)
    monkeypatch.setattr(spill, "CHUNK", 1 << 12)
    peaks, sizes = [], []
    for rows in (500, 500, 3000):  # the first one imports
        large = np.random.default_rng(rows).integers(0, 9, size=(rows, 50)).astype(float)
        sizes.append(large.nbytes)
        path = tmp_path / f"{len(sizes)}{name}"
        path.write_bytes(make(large))
        del large
        tracemalloc.start()
        table = read(path, cache=tmp_path / f"kept{len(sizes)}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert memory_map(table.X) is not None
    # one byte per entry says whether it is finite
    assert peaks[2] - peaks[1] < 0.35 * (sizes[2] - sizes[1]), (peaks, sizes)


@pytest.fixture
def tiny_blocks(monkeypatch):
    monkeypatch.setattr(source, "LINES", 20)
    monkeypatch.setattr(parquet, "ROWS", 2)
    monkeypatch.setattr(csv, "FIELDS", 4)


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


HEAD = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize(
    ("sizes", "entries"),
    [
        ("3 2 4", ["1 1 5", "1 2 6", "1 2 1", "3 1 7"]),  # many entries in one row, none in another
        ("2 2 3", ["2 1 5", "2 2 6", "2 1 1"]),  # all in the last row
        ("5 2 2", ["1 1 5", "1 2 6"]),  # rows without an entry at the end
    ],
)
def test_matrix_market_in_blocks_adds_entries_by_rows(tmp_path, sizes, entries):
    path = written(tmp_path / "x.mtx", HEAD + sizes + "\n" + "\n".join(entries) + "\n")
    dense = np.zeros([int(n) for n in sizes.split()[:2]])
    for entry in entries:
        i, j, value = entry.split()
        dense[int(i) - 1, int(j) - 1] += float(value)
    for folder in (False, tmp_path / "kept", tmp_path / "kept"):
        np.testing.assert_array_equal(read(path, cache=folder).X.toarray(), dense)


@pytest.mark.parametrize("transpose", [False, True])
def test_matrix_market_counts_are_those_that_scipy_reads(tmp_path, monkeypatch, transpose):
    """Lines of counts have a parser of their own; those with a sign go to SciPy."""
    monkeypatch.setattr(source, "LINES", 300)
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (60, 45)) * rng.integers(0, 2**31, (60, 45))
    X[20:23] *= -1
    place = np.argwhere(X.T if transpose else X)
    place = place[:, ::-1] if transpose else place
    lines = [f"{i + 1} {j + 1} {X[i, j]}{' ' * (i % 3)}" for i, j in place]
    head = HEAD.replace("real", "integer")
    assert "integer" in head
    path = written(tmp_path / "x.mtx", f"{head}60 45 {len(lines)}\n" + "\n".join(lines))
    mine = []
    real = matrixmarket._counts
    monkeypatch.setattr(matrixmarket, "_counts", lambda *a: mine.append(real(*a)) or mine[-1])
    table = read(path, transpose=transpose, cache=False, memory_limit=100)
    assert table.X.dtype == np.int64
    np.testing.assert_array_equal(table.X.toarray(), X.T if transpose else X)
    taken = [found is not None for found in mine]
    assert any(taken)
    assert not all(taken)


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize(
    "body", ["3 2\n1 1 5\n", "3 2 9\n1 1 5\n2 2 1\n", "three two 1\n1 1 5\n", "-3 2 1\n1 1 5\n"]
)
def test_matrix_market_refuses_sizes_that_are_wrong(tmp_path, body):
    path = written(tmp_path / "x.mtx", HEAD + body)
    for folder in (False, tmp_path / "kept"):
        with pytest.raises(ValueError, match=r"x\.mtx: not a Matrix Market file"):
            read(path, cache=folder)
