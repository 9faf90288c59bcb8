"""Data frames and AnnData as a matrix with names."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import SparsePCA, read, sparse_pca
from sparcipal.data.frames import from_frame
from sparcipal.data.table import as_table

COUNTS = np.random.default_rng(0).poisson(5, (20, 3))


def test_frame_names_join_the_levels_of_columns():
    pandas = pytest.importorskip("pandas")
    columns = pandas.MultiIndex.from_tuples([("gene", 1), ("gene", 2)])
    X = np.random.default_rng(0).standard_normal((9, 2))
    result = sparse_pca(pandas.DataFrame(X, columns=columns), n_nonzero_coefs=1)
    assert result.feature_names == ("gene 1", "gene 2")


def test_fit_takes_anndata_in_backed_mode(tmp_path):
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


def test_frames_refuse_an_anndata_object_without_a_matrix():
    anndata = pytest.importorskip("anndata")
    empty = anndata.AnnData(shape=(4, 3))
    with pytest.raises(ValueError, match="has no X; name a layer"):
        sparse_pca(empty, n_nonzero_coefs=1)


def test_frames_name_columns_that_hold_no_numbers():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"height": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.warns(UserWarning, match="set aside, not fitted: 'colour'"):
        assert sparse_pca(frame, n_nonzero_coefs=1).feature_names == ("height",)


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_one_entry_of_text_in_a_column_of_numbers_is_named_as_in_a_file(frame, tmp_path):
    library = pytest.importorskip(frame)
    entries = [str(i * i) for i in range(7)] + ["oops", None]
    made = library.DataFrame({"a": np.arange(9.0), "b": entries})
    words = (
        r"'b' \(1 of 8, such as 'oops' in row 7 \(counted from 0\)\); mend or empty these entries"
    )
    with pytest.raises(ValueError, match=words):
        as_table(made)
    words = r"line 9: 'oops', column 2 \('b'\) is not a number"
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "".join(f"{i},{e or ''}\n" for i, e in enumerate(entries)))
    with pytest.raises(ValueError, match=words):
        read(path)
    with pytest.raises(ValueError, match=r"'b' \(numbers stored as text\); convert them"):
        as_table(made[["b"]][:7])


def test_text_in_new_samples_is_named_by_its_column():
    pandas = pytest.importorskip("pandas")
    made = pandas.DataFrame(np.arange(12.0).reshape(4, 3) ** 2, columns=list("abc"))
    fitted = SparsePCA(n_nonzero_coefs=2).fit(made)
    with pytest.raises(
        ValueError, match=r"'b' \(1 of 4, such as 'bad' in row 2 \(counted from 0\)\)"
    ):
        fitted.transform(made.astype(object).replace({"b": {made["b"][2]: "bad"}}))


@pytest.mark.parametrize("maker", ["pandas", "pyarrow", "polars"])
@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([datetime.date(2024, 1, 1 + i) for i in range(20)], "dates"),
        ([datetime.time(i) for i in range(20)], "times"),
        ([[i, 1] for i in range(20)], "lists"),
        ([{"q": i} for i in range(20)], "records"),
        ([None] * 20, "empty"),
        ([None, datetime.date(2024, 1, 1)] * 10, "dates"),
    ],
)
def test_columns_of_objects_are_set_aside_by_what_they_hold(maker, entries, words):
    library = pytest.importorskip(maker)
    columns = {name: COUNTS[:, j] for j, name in enumerate("abc")}
    if maker == "pandas":
        frame = library.DataFrame(columns).assign(z=library.Series(entries, dtype=object))
    else:
        frame = (library.table if maker == "pyarrow" else library.DataFrame)(
            {**columns, "z": entries}
        )
    assert read_quietly(frame) == (("a", "b", "c"), f"set aside, not fitted: 'z' ({words})")


def test_columns_of_a_type_without_an_entry_are_set_aside_as_those_of_a_file():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(COUNTS, columns=list("abc"))
    aside = (("a", "b", "c"), "set aside, not fitted: 'z' (empty)")
    for empty in (np.nan, pandas.array([None] * 20, dtype="Int64")):
        assert read_quietly(frame.assign(z=empty)) == aside
    nothing = pyarrow.array([None] * 20, pyarrow.int32())
    assert read_quietly(pyarrow.table({**frame, "z": nothing})) == aside
    some = frame.assign(z=[np.nan] * 19 + [1.0])
    with pytest.raises(ValueError, match="19 NaN"):
        sparse_pca(some, n_nonzero_coefs=2)


def test_categories_of_numbers_are_called_so():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COUNTS, columns=list("abc"))
    told = read_quietly(frame.assign(z=pandas.Categorical([1, 2] * 10)))
    assert told == (("a", "b", "c"), "set aside, not fitted: 'z' (categories of numbers)")


def test_a_column_that_is_empty_in_the_first_blocks_only_is_no_empty_one():
    """What is set aside does not depend on how the rows are cut."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(COUNTS.astype(float), columns=list("abc"))
    never, late = frame.assign(z=np.nan), frame.assign(z=[np.nan] * 12 + [1.0] * 8)
    asked = {"n_nonzero_coefs": 2, "memory_limit": 1}
    with pytest.warns(UserWarning, match="'z' .empty."):
        result = sparse_pca(lambda: iter([never[:5], never[5:]]), **asked)
    assert result.feature_names == ("a", "b", "c")
    with pytest.raises(ValueError, match=r"12 NaN, the first in row 0 \(counted from 0\), 'z'"):
        sparse_pca(lambda: iter([late[:5], late[5:10], late[10:]]), **asked)


def read_quietly(frame):
    """The names of the features, and what is said of the others."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = sparse_pca(frame, n_nonzero_coefs=2, certify=False)
    return result.feature_names, *(str(warning.message) for warning in told)


def test_days_have_no_time_where_every_moment_is_midnight():
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2024-01-30", periods=3)
    frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]}, index=days)
    assert as_table(frame).sample_names == ("2024-01-30", "2024-01-31", "2024-02-01")
    hours = frame.set_index(days + pandas.Timedelta(hours=1) * np.arange(3))
    assert as_table(hours).sample_names[:2] == ("2024-01-30 00:00:00", "2024-01-31 01:00:00")


def test_columns_are_not_looked_up_one_by_one(monkeypatch):
    """pandas makes all types anew each time, narwhals lists all names: a square of the columns."""
    pandas, nw = pytest.importorskip("pandas"), pytest.importorskip("narwhals.stable.v1")
    frame = pandas.DataFrame({f"g{j}": [j, 2, 5] for j in range(50)})
    table = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    asked, dtypes = [], pandas.DataFrame.dtypes
    again = property(lambda self: asked.append(1) or dtypes.fget(self))
    monkeypatch.setattr(pandas.DataFrame, "dtypes", again)
    monkeypatch.setattr(nw.DataFrame, "__getitem__", lambda *given: asked.extend(given))
    assert from_frame(frame).matrix.shape == from_frame(table).matrix.shape == (3, 50)
    assert len(asked) < 5
