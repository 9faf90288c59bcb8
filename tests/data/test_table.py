"""Everything people hold becomes the same Table, and what cannot is refused in words."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Table
from sparcipal.data.table import as_table

A = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 5.5], [0.0, 1.0, 0.0]])


def frames():
    columns = {"a": A[:, 0], "b": A[:, 1], "c": A[:, 2]}
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    yield pandas.DataFrame(columns)
    yield pandas.DataFrame(columns).convert_dtypes()
    yield pandas.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow")
    yield polars.DataFrame(columns)
    yield pyarrow.table(columns)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_floats_keep_their_dtype_up_to_double(dtype, order):
    X = np.asarray(A, dtype=dtype, order=order)
    table = as_table(X)
    assert table.X.dtype == (np.float64 if dtype is np.longdouble else dtype)
    np.testing.assert_array_equal(table.X, A)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, bool])
def test_integers_and_booleans_are_taken_as_they_are(dtype):
    X = (A > 0).astype(dtype)
    assert as_table(X).X is X


def test_plain_arrays_are_not_copied():
    assert as_table(A).X is A
    read_only = A.copy()
    read_only.setflags(write=False)
    assert as_table(read_only).X is read_only


def test_memory_maps_stay_on_disk(tmp_path):
    np.save(tmp_path / "x.npy", A)
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert type(as_table(X).X) is np.memmap


@pytest.mark.parametrize("fmt", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_matrices_stay_sparse(fmt, container):
    X = container(A).asformat(fmt)
    table = as_table(X)
    assert isinstance(table.X, sp.csc_array if fmt == "csc" else sp.csr_array)
    np.testing.assert_array_equal(table.X.toarray(), A)


def test_compressed_sparse_matrices_share_memory_and_64_bit_indices_work():
    X = sp.csr_array(A)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    table = as_table(X)
    assert np.shares_memory(table.X.data, X.data)
    np.testing.assert_array_equal(table.X.toarray(), A)


def test_frames_keep_their_names_and_numbers():
    for frame in frames():
        table = as_table(frame)
        assert table.feature_names == ("a", "b", "c")
        np.testing.assert_array_equal(table.X, A)


def test_frame_dtypes_are_kept_when_all_columns_agree():
    pandas = pytest.importorskip("pandas")
    assert as_table(pandas.DataFrame(A.astype(np.float32))).X.dtype == np.float32
    assert as_table(pandas.DataFrame({"a": [1, 2], "b": [0.5, 1]})).X.dtype == np.float64
    assert as_table(pandas.DataFrame({"a": [True, False]})).X.dtype == bool


def test_pandas_labels_become_sample_names_and_numbered_columns_stay_unnamed():
    pandas = pytest.importorskip("pandas")
    table = as_table(pandas.DataFrame(A, index=list("wxyz")))
    assert table.feature_names is None
    assert table.sample_names == ("w", "x", "y", "z")


def test_pandas_sparse_frames_stay_sparse():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(A, columns=list("abc"))
    table = as_table(frame.astype(pandas.SparseDtype(float, 0)))
    assert sp.issparse(table.X)
    assert table.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(table.X.toarray(), A)
    with pytest.raises(ValueError, match="mixes sparse columns and dense ones"):
        as_table(frame.astype({"a": pandas.SparseDtype(float, 0)}))
    with pytest.raises(ValueError, match="filled with something else than 0"):
        as_table(frame.astype(pandas.SparseDtype(float, 1)))


def test_lists_and_object_arrays_of_numbers_work():
    np.testing.assert_array_equal(as_table(A.tolist()).X, A)
    np.testing.assert_array_equal(as_table(A.astype(object)).X, A)


def test_a_table_passes_through_and_names_can_be_given():
    table = Table(A, ("a", "b", "c"), ("w", "x", "y", "z"))
    again = as_table(table)
    assert again.X is A
    assert (again.feature_names, again.sample_names) == (table.feature_names, table.sample_names)
    assert as_table(table, ["d", "e", "f"]).feature_names == ("d", "e", "f")
    assert as_table(A, np.array(["d", "e", "f"])).feature_names == ("d", "e", "f")


def test_table_of_anndata_keeps_matrix_and_names():
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(sp.csr_matrix(A))
    table = as_table(adata)
    assert sp.issparse(table.X)
    assert table.feature_names == ("0", "1", "2")
    assert table.sample_names == ("0", "1", "2", "3")


def with_entries(*entries):
    X = A.copy()
    for i, j, value in entries:
        X[i, j] = value
    return X


@pytest.mark.parametrize(
    ("X", "names", "message"),
    [
        (
            with_entries((1, 2, np.nan)),
            None,
            "X contains 1 NaN, the first in row 1 (counted from 0), column 2, X[1, 2];",
        ),
        (
            with_entries((1, 2, np.inf), (2, 0, np.nan), (3, 0, -np.inf)),
            ["a", "b", "c"],
            "X contains 1 NaN and 2 infinities, the first in row 1 (counted from 0), 'c'",
        ),
        (A * 1j, None, "Complex data not supported"),
        (A[0], None, "X has shape (3,); pass X.reshape(-1, 1)"),
        (A[None], None, "X has shape (1, 4, 3); pass X.reshape(len(X), -1)"),
        (np.float64(3), None, "X has shape ()"),
        (A[:0], None, "0 sample(s)"),
        (A[:, :0], None, "0 feature(s)"),
        (A.astype(str), None, "which does not hold numbers"),
        (np.array([[1, "a"]], dtype=object), None, "X[0, 1] is 'a', not a number"),
        (np.array([[1, 1j]], dtype=object), None, "Complex data not supported"),
        (np.array([[1, None]], dtype=object), None, "X contains 1 NaN"),
        ([[1, 2], [3]], None, "X is not a table of numbers"),
        (np.ma.masked_equal(A, 0), None, "a masked array with 6 masked entries"),
        ("docword.txt", None, "pass sparcipal.read('docword.txt')"),
        (np.array(["2020-01-01"], dtype="datetime64[D]")[:, None], None, "does not hold numbers"),
        (A, ["a", "b"], "feature_names has 2 names, but X has 3 features"),
        (A, "abc", "is one string"),
        (A, [1, 2, 3], "feature_names[0]=1 is not a string"),
    ],
)
def test_table_refuses_what_cannot_be_used_as_it_is(X, names, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        as_table(X, names)


@pytest.mark.skipif(np.longdouble(1).itemsize == 8, reason="long double is double here")
def test_numbers_beyond_double_are_refused():
    with pytest.raises(ValueError, match="entries that float64 cannot hold"):
        as_table(np.array([[np.longdouble("1e4000")]]))


@pytest.mark.parametrize("fmt", ["csr", "csc", "coo"])
def test_sparse_matrices_with_nan_are_refused_with_the_place(fmt):
    X = sp.csr_array(with_entries((2, 0, np.inf), (2, 2, np.nan))).asformat(fmt)
    with pytest.raises(
        ValueError, match=r"1 NaN and 1 infinity, the first in row 2 \(counted from 0\), column 0"
    ):
        as_table(X)


def test_broken_sparse_matrices_are_refused():
    X = sp.csr_array(A)
    X.indices[0] = 99
    with pytest.raises(ValueError, match="broken sparse matrix"):
        as_table(X)


def test_objects_that_are_no_numbers_are_type_errors():
    with pytest.raises(TypeError, match="must be a string or a real number, not 'dict'"):
        as_table(np.array([[{}]], dtype=object))


def test_frames_without_a_column_of_numbers_are_refused_by_name():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    columns = {"place": ["x", "y"], "day": ["1", "2"]}
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns)):
        with pytest.raises(ValueError, match=r"no column of numbers: 'place' \(text.*'day'"):
            as_table(frame)
    with pytest.raises(ValueError, match=r"sparcipal.read\(X, one_hot=True\)"):
        as_table(pandas.DataFrame({"place": ["x", "y"]}))
    with pytest.raises(ValueError, match="numbers but for some entries: 'a'"):
        as_table(pandas.DataFrame({"a": np.array([1, "x"], dtype=object)}))
    with pytest.raises(ValueError, match="no column of numbers: 'a'"):
        as_table(pandas.DataFrame({"a": pandas.Categorical([1, 2])}))


def test_frames_with_missing_entries_are_refused_by_name():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    columns = {"a": [1, 2], "b": [3, None]}
    for frame in (
        pandas.DataFrame(columns),
        pandas.DataFrame(columns, dtype="Int64"),
        polars.DataFrame(columns),
    ):
        with pytest.raises(
            ValueError, match=r"1 NaN.*row 1 \(counted from 0\), 'b'; missing by column: 'b' 1"
        ):
            as_table(frame)
    with pytest.raises(ValueError, match="1 NaN"):
        as_table(polars.DataFrame({"a": [1.0, float("nan")]}))


def test_lazy_and_mixed_frames_are_refused():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match="collect"):
        as_table(polars.DataFrame({"a": [1]}).lazy())
    with pytest.raises(TypeError, match="all input features have string names"):
        as_table(pandas.DataFrame({"a": [1], 3: [2]}))


def test_frames_work_without_narwhals(monkeypatch):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    monkeypatch.setitem(__import__("sys").modules, "narwhals.stable.v1", None)
    assert as_table(pandas.DataFrame({"a": [1, 2]})).feature_names == ("a",)
    with pytest.raises(ValueError, match="needs narwhals"):
        as_table(polars.DataFrame({"a": [1, 2]}))


def test_the_input_is_never_altered():
    X = with_entries((0, 0, -7.0))
    before = X.copy()
    as_table(X, ["a", "b", "c"])
    np.testing.assert_array_equal(X, before)
    S = sp.coo_array(X)
    as_table(S)
    assert S.format == "coo"


def test_repr_says_what_it_is():
    assert repr(as_table(A)) == "<Table: 4 samples x 3 unnamed features, ndarray of float64>"
    assert "csr_array of float64, 6 stored>" in repr(as_table(sp.csr_array(A), list("abc")))
