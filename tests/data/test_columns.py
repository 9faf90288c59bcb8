"""Which columns of a table are features, what is set aside, and the sentences that say so."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest

from sparcipal import SparsePCA, Table, read, sparse_pca, verify

pandas = pytest.importorskip("pandas")

MESSY = """id,name,joined,income,age,zero,group,price
1,Ann,2024-01-02,10.5,33,7,a,"1,200"
2,Bob,2024-01-03,12.5,41,7,b,850
3,Cid,2024-02-01,9.25,27,7,a,"2,400"
4,Dee,2024-02-09,11.0,52,7,b,"1,100"
5,Eve,2024-03-05,14.0,38,7,a,990
6,Fay,2024-03-06,13.0,45,7,b,"3,000"
"""


def written(path, text):
    path.write_text(text)
    return path


def test_what_is_no_feature_is_set_aside_and_named(tmp_path):
    path = written(tmp_path / "x.csv", MESSY)
    with pytest.warns(UserWarning, match="set aside, not fitted") as told:
        table = read(path)
    assert table.feature_names == ("income", "age", "zero", "price")
    assert table.X[:3, 3].tolist() == [1200.0, 850.0, 2400.0]
    sentence = str(told[0].message)
    for words in ("'id' (names the rows)", "'name' (text)", "'joined' (dates)",
                  "'group' (text, 2 categories)", "thousands separator in 'price'"):  # fmt: skip
        assert words in sentence
    assert table.notes
    with pytest.warns(UserWarning, match=r"'zero' \(constant\)"):
        result = sparse_pca(table, n_nonzero_coefs=2)
    (noted,) = [note for note in result.info["notes"] if note.startswith("set aside")]
    assert "'name' (text)" in noted
    assert "'zero' (constant)" in noted
    assert noted in " ".join(str(result).split())


def test_columns_are_chosen_by_name_pattern_and_range(tmp_path):
    path = written(tmp_path / "x.csv", MESSY)
    assert read(path, columns=["income:age"]).feature_names == ("income", "age")
    assert read(path, columns=["in*", "price"], thousands=",").feature_names == ("income", "price")
    kept = read(path, drop=["id", "joined", "z*", "group", "price"], index="name", label="group")
    assert kept.feature_names == ("income", "age")
    assert kept.sample_names[:2] == ("Ann", "Bob")
    assert kept.labels[:2] == ("a", "b")
    assert kept.label_name == "group"
    asked = read(path, columns=["id", "age"])  # asked for by name
    assert asked.feature_names == ("id", "age")


@pytest.mark.parametrize(
    ("head", "names"),
    [
        ("a,respondent,b", ("11", "12", "13")),
        ("a,sample_id,b", ("11", "12", "13")),
        ("a,distance,b", None),
    ],
)
def test_a_column_of_distinct_integers_names_the_rows_by_its_own_name(head, names, tmp_path):
    path = written(tmp_path / "x.csv", f"{head}\n1.5,11,2\n2.5,12,1\n3.5,13,2\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = read(path)
    assert table.sample_names == names
    assert table.shape == (3, 2 if names else 3)


def test_identifiers_that_repeat_name_no_rows(tmp_path):
    path = written(tmp_path / "x.csv", "a,patient,b\n1.5,11,2\n2.5,11,1\n3.5,13,2\n")
    table = read(path)
    assert table.sample_names is None
    assert table.feature_names == ("a", "patient", "b")


def test_categories_are_encoded_on_request(tmp_path):
    path = written(tmp_path / "x.csv", MESSY)
    table = read(path, columns=["age", "group"], one_hot=["group"])
    assert table.feature_names == ("age", "group=a", "group=b")
    assert table.X[:2].tolist() == [[33.0, 1.0, 0.0], [41.0, 0.0, 1.0]]
    beside = read(path, columns=["ag*"], one_hot=["group"])  # asked for by its name
    assert beside.feature_names == table.feature_names
    frame = pandas.read_csv(path)
    same = read(frame, columns=["age", "group"], one_hot=True)
    assert np.array_equal(same.X, table.X)
    assert same.feature_names == table.feature_names


def test_all_unknown_names_are_one_error(tmp_path):
    path = written(tmp_path / "x.csv", MESSY)
    with pytest.raises(
        ValueError, match=r"label='grup'.*'incme' .did you mean 'income'.*'q\*'"
    ) as caught:
        read(path, columns=["incme", "q*"], label="grup", drop=["nothing"])
    assert "drop='nothing'" in str(caught.value)


def test_all_problems_of_a_file_are_one_error(tmp_path):
    path = written(tmp_path / "x.csv", "a,b,c\n1,2,3\n4,x,6\n7,8\n9,10,oops\n11,12,13\n14,y,3\n")
    with pytest.raises(ValueError, match="line 4: 2 fields instead of 3") as caught:
        read(path)
    for words in ("line 3: 'x', column 2 ('b') is not a number (nor are 1 more", "line 5: 'oops'"):
        assert words in str(caught.value)
    table = read(written(path, "a,b\n1,2\n3,none at all\n5,6\n"), na_values=["none at all"])
    assert np.isnan(table.X[1, 1])


def test_an_index_without_a_name_is_never_fitted(tmp_path):
    X = np.random.default_rng(0).standard_normal((12, 3))
    frame = pandas.DataFrame(X, columns=list("abc"))
    frame.to_csv(tmp_path / "x.csv")
    with pytest.warns(UserWarning, match="column 1 .no name, numbers the rows"):
        table = read(tmp_path / "x.csv")
    assert table.feature_names == ("a", "b", "c")
    assert table.sample_names[:2] == ("0", "1")
    again = pandas.read_csv(tmp_path / "x.csv")
    with pytest.warns(UserWarning, match="'Unnamed: 0' .identifier"):
        assert sparse_pca(again, n_nonzero_coefs=2).feature_names == ("a", "b", "c")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(written(tmp_path / "y.csv", "1,2,3\n2,1,7\n3,5,1\n")).shape == (3, 3)


def test_a_header_of_numbers_names_the_columns(tmp_path):
    X = np.random.default_rng(0).standard_normal((12, 4)).round(3)
    buffer = io.StringIO()
    pandas.DataFrame(X, columns=[2001, 2002, 2003, 2004]).to_csv(buffer, index=False)
    path = written(tmp_path / "x.csv", buffer.getvalue())
    with pytest.warns(UserWarning, match="the first line .2001, 2002, 2003, ...* was taken"):
        table = read(path)
    assert table.feature_names == ("2001", "2002", "2003", "2004")
    assert table.shape == (12, 4)
    assert read(path, header=False).shape == (13, 4)


def _fitted(way):
    """A result of columns of which two are called `a`, and what verify is asked about."""
    X = np.random.default_rng(0).standard_normal((40, 4)) * [1, 2, 3, 4]
    names, C = ["a", "b", "a", "c"], np.cov(X.T)
    named = {"feature_names": names} if way in ("array", "blocks", "covariance") else {}
    data = {
        "array": lambda: {"X": X},
        "blocks": lambda: {"X": lambda: iter([X])},
        "read": lambda: {"X": read(X, feature_names=names)},
        "Table": lambda: {"X": Table(X, names)},
        "covariance": lambda: {"covariance": C},
        "frame": lambda: {"covariance": pandas.DataFrame(C, index=names, columns=names)},
        "anndata": lambda: {"X": _genes(X, names)},
    }[way]()
    return sparse_pca(**data, **named, n_nonzero_coefs=3), data


def _genes(X, names):
    anndata = pytest.importorskip("anndata")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own words on names
        return anndata.AnnData(X, var=pandas.DataFrame(index=names))


@pytest.mark.parametrize(
    "way", ["array", "blocks", "read", "Table", "covariance", "frame", "anndata"]
)
def test_names_that_are_there_twice_are_made_distinct_wherever_they_come_from(way):
    with pytest.warns(UserWarning, match=r"names made distinct, as 'a' and 'a \(2\)'"):
        result, data = _fitted(way)
    assert result.feature_names == ("a", "b", "a (2)", "c")
    assert verify(result, **data)


def test_repeated_names_are_made_distinct(tmp_path):
    path = written(tmp_path / "x.csv", "price,age,price\n1,2,3\n4,9,6\n7,8,1\n")
    with pytest.warns(UserWarning, match="names made distinct"):
        assert read(path).feature_names == ("price", "age", "price (2)")
    frame = pandas.DataFrame(np.random.default_rng(0).random((9, 3)), columns=["p", "q", "p"])
    with pytest.warns(UserWarning, match="names made distinct"):
        estimator = SparsePCA(n_nonzero_coefs=2).fit(frame)
    assert estimator.feature_names_in_.tolist() == ["p", "q", "p (2)"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estimator.transform(frame).shape == (9, 1)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_with_text_and_dates_are_fitted_on_their_numbers(library):
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.random((20, 4)), columns=list("abcd"))
    mixed = frame.assign(who=[f"p{i}" for i in range(20)], when=pandas.Timestamp("2024-01-01"))
    other = mixed
    if library == "polars":
        other = pytest.importorskip("polars").from_pandas(mixed)
    elif library == "pyarrow":
        other = pytest.importorskip("pyarrow").Table.from_pandas(mixed)
    with pytest.warns(UserWarning, match=r"'who' \(text\), 'when' \(dates\)"):
        estimator = SparsePCA(n_components=2, n_nonzero_coefs=2).fit(other)
    plain = SparsePCA(n_components=2, n_nonzero_coefs=2).fit(frame)
    assert np.array_equal(estimator.components_, plain.components_)
    assert np.array_equal(estimator.transform(other), plain.transform(frame))
    assert verify(estimator, other).verdict == "proved"
    with pytest.raises(ValueError, match="X lacks columns that the model was fitted on: 'a'"):
        estimator.transform(mixed.drop(columns="a"))


def test_columns_named_by_numbers_keep_their_names():
    X = np.random.default_rng(0).random((9, 3))
    years = pandas.DataFrame(X, columns=[2001, 2002, 2003])
    estimator = SparsePCA(n_nonzero_coefs=2).fit(years)
    assert estimator.result_.feature_names == ("2001", "2002", "2003")
    assert not hasattr(estimator, "feature_names_in_")
    assert verify(estimator, years).verdict == "proved"
    assert SparsePCA(n_nonzero_coefs=2).fit(pandas.DataFrame(X)).result_.feature_names is None
    levels = pandas.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    nested = SparsePCA(n_nonzero_coefs=2).fit(pandas.DataFrame(X, columns=levels))
    assert nested.result_.feature_names == ("a 1", "a 2", "b 1")


def test_a_list_of_blocks_is_their_rows():
    X = np.random.default_rng(0).random((30, 4))
    whole, blocks = sparse_pca(X, n_nonzero_coefs=2), [X[:10], X[10:]]
    result = sparse_pca(blocks, n_nonzero_coefs=2)
    assert result.value == pytest.approx(whole.value, rel=1e-12)
    assert verify(result, blocks).verdict == "proved"


def test_excel_exports_are_read(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"sep=;\r\na;b\r\n1,5;2\r\n2,5;7\r\n")
    assert read(path, decimal=",").X.tolist() == [[1.5, 2.0], [2.5, 7.0]]
    path.write_bytes("a\tb\r\n1.5\t2\r\n2.5\t7\r\n".encode("utf-16"))
    assert read(path).X.tolist() == [[1.5, 2.0], [2.5, 7.0]]


def test_columns_are_chosen_by_a_mask(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b,c\n1,2,4\n2,4,3\n5,2,6\n")
    assert read(path, columns=[True, False, True]).feature_names == ("a", "c")
    assert read(path, drop=np.array([True, False, False])).feature_names == ("b", "c")
    with pytest.raises(ValueError, match="3 columns for a mask columns of 2 entries"):
        read(path, columns=[True, False])


def test_names_that_python_takes_for_numbers_stay_names(tmp_path):
    path = tmp_path / "returns.csv"
    path.write_text("NA,nan,INF,1e5,B\n1,2,3,4,5\n2,3,4,1,6\n")
    assert read(path).feature_names == ("NA", "nan", "INF", "1e5", "B")
    path.write_text("nan,2\n2,3\n")
    assert read(path).feature_names is None


def test_semicolons_part_fields_whose_names_hold_commas(tmp_path):
    path = tmp_path / "items.csv"
    for name in ("b, c, d", '"b, c, d"'):
        path.write_text(f"a;{name};e\n1,5;2,5;3\n2;3,1;4\n")
        with pytest.warns(UserWarning, match="decimal comma"):
            assert read(path).feature_names == ("a", "b, c, d", "e")


def test_ranges_that_run_backwards_and_near_names_that_were_given_are_told(tmp_path):
    path = written(tmp_path / "x.csv", "oil1,oil2,bank\n1,2,3\n4,9,6\n7,8,1\n")
    with pytest.raises(ValueError, match="a range columns='bank:oil1' that runs backwards: write"):
        read(path, columns=["bank:oil1"])
    with pytest.raises(ValueError, match=r"columns='oil3' \(did you mean 'oil2'") as caught:
        read(path, columns=["oil1", "oil3"])
    assert "'oil1'?" not in str(caught.value)
    frame = pandas.read_csv(path)
    result = sparse_pca(frame, n_nonzero_coefs=1)
    with pytest.raises(ValueError, match=r"fitted on: 'oil2'$"):
        result.transform(frame[["oil1", "bank"]])
    with pytest.raises(ValueError, match=r"include has unknown features 'oil3' .*'oil2'"):
        sparse_pca(frame, n_nonzero_coefs=2, include=["oil1", "oil3"])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_without_rows_are_told_as_arrays_are(library):
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]})[:0]
    if library == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    elif library == "pyarrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    for call in (sparse_pca, read, SparsePCA().fit):
        with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 2\)\)"):
            call(frame)
