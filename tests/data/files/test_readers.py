"""Files of every format give the same Table; damaged ones are told with file and line."""

from __future__ import annotations

import gzip
import io
import json
import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sparcipal import read
from sparcipal.data.files import bagofwords
from tests.support.places import data_file

A = np.array([[1, 0, 2], [0, 3, 0], [4, 0, 5], [0, 1, 0]])
WORDS = ("cat", "dog", "owl")
ENTRIES = "".join(f"{i + 1} {j + 1} {A[i, j]}\n" for i, j in zip(*np.nonzero(A)))
HEADER = "4\n3\n6\n"


def write(path, text, compress=False):
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if compress else raw)
    return path


def dense(table):
    return table.X.toarray() if sp.issparse(table.X) else np.asarray(table.X)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("header", [HEADER, ""])
def test_bag_of_words_is_read_with_its_vocabulary(tmp_path, compress, header):
    write(tmp_path / "vocab.pets.txt", "\n".join(WORDS) + "\n")
    name = "docword.pets.txt" + (".gz" if compress else "")
    table = read(write(tmp_path / name, header + ENTRIES, compress))
    np.testing.assert_array_equal(dense(table), A)
    assert table.feature_names == WORDS
    assert table.X.dtype == np.uint8


def test_bag_of_words_adds_repeats_up_in_any_order_and_small_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(bagofwords, "BLOCK", 7)
    lines = ENTRIES.splitlines()
    lines[0] = "1 1 0"
    text = "4\r\n3\r\n7\r\n" + "\r\n".join([*reversed(lines), "1 1 1"])
    table = read(write(tmp_path / "docword.x.txt", text))
    np.testing.assert_array_equal(dense(table), A)
    assert table.feature_names is None


def test_bag_of_words_is_recognised_by_its_lines_and_names_can_be_given(tmp_path):
    path = write(tmp_path / "counts.txt", HEADER + ENTRIES)
    names = write(tmp_path / "words.txt", "\n".join(WORDS))
    assert read(path, feature_names=names).feature_names == WORDS
    assert read(path, feature_names=list(WORDS)).feature_names == WORDS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + ENTRIES + "1 2\n", "line 10: 2 fields instead of"),
        (HEADER + "1 2\n3 1 4 1\n", "line 4: 2 fields instead of"),
        (HEADER + ENTRIES.replace("3 1 4", "3 1 4x"), "line 7: 'x' where"),
        (HEADER + ENTRIES.replace("3 1 4", "3 1 -4"), "line 7: '-' where"),
        (HEADER + ENTRIES.replace("3 1 4", "3 4 4"), "line 7: word 4 is outside 1..3"),
        (HEADER + ENTRIES.replace("3 1 4", "0 1 4"), "line 7: document 0 is outside 1..4"),
        (HEADER + ENTRIES.replace("3 1 4", "3 1 4000000000"), "line 7: count 4000000000 is outs"),
        (HEADER + ENTRIES.replace("3 1 4", "3 1 " + "9" * 30), "line 7: a number of more than 18"),
        (HEADER + ENTRIES[:-6], "the header says 6 entries, the file has 5"),
        ("4\n3\nmany\n" + ENTRIES, "not a bag of words"),
        ("", "not a bag of words"),
    ],
)
def test_bag_of_words_names_the_line_that_is_damaged(tmp_path, text, message):
    path = write(tmp_path / "docword.txt", text)
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read(path)
    assert str(path) in str(error.value)


def test_a_truncated_gzip_file_is_told(tmp_path):
    path = write(tmp_path / "docword.txt.gz", HEADER + ENTRIES * 1000, compress=True)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="damaged or cut short"):
        read(path)


def test_a_vocabulary_of_the_wrong_length_is_told(tmp_path):
    write(tmp_path / "vocab.txt", "cat\ndog\n")
    with pytest.raises(ValueError, match=r"vocab.txt: 2 words, but .* has 3"):
        read(write(tmp_path / "docword.txt", HEADER + ENTRIES))


@pytest.mark.parametrize("compress", [False, True])
def test_matrix_market_is_read_as_it_is_and_transposed(tmp_path, compress):
    buffer = io.BytesIO()
    scipy.io.mmwrite(buffer, sp.coo_array(A))
    name = "m.mtx.gz" if compress else "m.mtx"
    path = write(tmp_path / name, buffer.getvalue().decode(), compress)
    assert sp.issparse(read(path).X)
    np.testing.assert_array_equal(dense(read(path)), A)
    np.testing.assert_array_equal(dense(read(path, transpose=True)), A.T)
    with pytest.raises(ValueError, match="not a Matrix Market file"):
        read(write(tmp_path / "bad.mtx", "hello\n"))


def test_svmlight_is_read_as_a_sparse_matrix(tmp_path):
    lines = [f"1 {' '.join(f'{j + 1}:{v}' for j, v in enumerate(row) if v)}" for row in A]
    path = write(tmp_path / "x.svmlight", "\n".join(lines))
    np.testing.assert_array_equal(dense(read(path)), A)
    assert read(path, feature_names=[*WORDS, "elk"]).shape == (4, 4)
    with pytest.raises(ValueError, match="not a svmlight file"):
        read(write(tmp_path / "bad.svmlight", "hello world\n"))


def test_npz_is_read_from_scipy_and_numpy(tmp_path):
    sp.save_npz(tmp_path / "s.npz", sp.csc_array(A))
    assert sp.issparse(read(tmp_path / "s.npz").X)
    np.testing.assert_array_equal(dense(read(tmp_path / "s.npz")), A)
    np.savez(tmp_path / "d.npz", X=A, y=np.arange(4), features=np.array(WORDS))
    table = read(tmp_path / "d.npz")
    np.testing.assert_array_equal(table.X, A)
    assert table.feature_names == WORDS
    np.savez(tmp_path / "two.npz", train=A, test=A[:2])
    assert read(tmp_path / "two.npz", key="test").shape == (2, 3)
    with pytest.raises(ValueError, match="which array"):
        read(tmp_path / "two.npz")
    with pytest.raises(ValueError, match="no array 'valid'; there are 'train'"):
        read(tmp_path / "two.npz", key="valid")


def test_pickles_inside_archives_are_never_loaded(tmp_path):
    np.savez(tmp_path / "p.npz", X=np.array([[{}]], dtype=object))
    np.save(tmp_path / "p.npy", np.array([[{}]], dtype=object))
    for name in ("p.npz", "p.npy"):
        with pytest.raises(ValueError, match=r"pickle|Object arrays|not an array"):
            read(tmp_path / name)


def test_npy_is_memory_mapped(tmp_path):
    np.save(tmp_path / "x.npy", A)
    table = read(tmp_path / "x.npy")
    assert type(table.X) is np.memmap
    np.testing.assert_array_equal(table.X, A)


@pytest.mark.parametrize(("name", "delimiter"), [("x.csv", ","), ("x.tsv", "\t")])
def test_delimited_tables_are_read_with_names_and_labels(tmp_path, name, delimiter):
    rows = [delimiter.join(map(str, row)) for row in A]
    plain = read(write(tmp_path / name, "\n".join(rows)))
    np.testing.assert_array_equal(plain.X, A)
    assert plain.feature_names is None
    named = read(write(tmp_path / name, "\n".join([delimiter.join(WORDS), *rows])))
    assert named.feature_names == WORDS
    labelled = [f'"doc, {i}"{delimiter}{row}' for i, row in enumerate(rows)]
    for corner in ("", delimiter, f"id{delimiter}"):
        text = "\ufeff" + "\n".join([corner + delimiter.join(WORDS), *labelled])
        table = read(write(tmp_path / name, text))
        np.testing.assert_array_equal(table.X, A)
        assert table.feature_names == WORDS
        assert table.sample_names[1] == "doc, 1"


@pytest.mark.parametrize("mark", [";", "\t"])
def test_csv_is_read_with_another_separator(tmp_path, mark):
    rows = [mark.join(map(str, row)) for row in A]
    for head in ((), (mark.join(WORDS),)):
        table = read(write(tmp_path / "x.csv", "\n".join([*head, *rows])))
        np.testing.assert_array_equal(table.X, A)
        assert table.feature_names == (WORDS if head else None)
    one = read(write(tmp_path / "x.csv", f"length{mark}width\n1\n2\n"))  # one column, odd name
    assert one.feature_names == (f"length{mark}width",)


@pytest.mark.parametrize("text", ["a;b\n1,5;2\n", "a;b\n1;2,5\n", "1,5;2\n3;4\n", "x;1,5\ny;2\n"])
def test_decimal_commas_are_read_and_named(tmp_path, text):
    with pytest.warns(UserWarning, match="decimal comma in .* .as '.,5' shows"):
        table = read(write(tmp_path / "x.csv", text))
    assert {1.5, 2.5} & set(table.X.ravel().tolist())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", "line 3: 1 fields instead of 2"),
        ("a,b\n1,2\n3,x\n", "line 3: 'x', column 2 ('b') is not a number"),
        ("a,b,c\n1,2\n", "the header has 3 fields, the first line 2"),
        ("a,b\n", "a header and no line of numbers"),
        ("", "the file is empty"),
        ("a,b\n1,inf\n2,3\n", "X contains 1 infinity, the first in row 0 (counted from 0), 'b'"),
    ],
)
def test_delimited_tables_name_the_line_that_is_damaged(tmp_path, text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read(write(tmp_path / "x.csv", text))


def test_parquet_is_read_with_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(A, columns=list(WORDS), index=list("wxyz"))
    frame.to_parquet(tmp_path / "x.parquet")
    table = read(tmp_path / "x.parquet")
    np.testing.assert_array_equal(table.X, A)
    assert (table.feature_names, table.sample_names) == (WORDS, ("w", "x", "y", "z"))


TEXTS = ["the cat saw the dog", "a dog and an owl", "owl owl owl"]


def documents(tmp_path):
    folder = tmp_path / "texts"
    (folder / "sub").mkdir(parents=True)
    (folder / ".hidden").write_bytes(b"\xff")
    for name, text in zip(("a.txt", "b.md", "sub/c"), TEXTS):
        write(folder / name, text)
    yield folder
    yield write(tmp_path / "x.jsonl", "\n".join(json.dumps({"text": t}) for t in TEXTS) + "\n\n")
    yield write(tmp_path / "y.jsonl.gz", "\n".join(json.dumps(t) for t in TEXTS), compress=True)
    yield write(tmp_path / "x.txt", "\n".join(TEXTS))


def test_words_of_documents_are_counted_in_every_container(tmp_path):
    for source in documents(tmp_path):
        table = read(source, stop_words="english")
        assert table.feature_names == ("cat", "dog", "owl", "saw")
        np.testing.assert_array_equal(dense(table), [[1, 1, 0, 1], [0, 1, 1, 0], [0, 0, 3, 0]])
        assert len(table.sample_names) == 3
    assert read(tmp_path / "texts").sample_names == ("a.txt", "b.md", "sub/c")
    assert read(tmp_path / "texts", pattern="*.md").shape == (1, 2)
    assert read(tmp_path / "x.txt", min_df=2).feature_names == ("dog", "owl")
    assert "owl owl" in read(tmp_path / "x.txt", ngram_range=(1, 2)).feature_names
    with pytest.warns(UserWarning, match="1 of 3 documents has none of the 2 words"):
        assert read(tmp_path / "x.txt", feature_names=["owl", "elk"]).shape == (3, 2)


def test_stop_words_are_compared_in_lower_case(tmp_path):
    table = read(write(tmp_path / "a.txt", "Owl saw\nan owl\n"), stop_words=["OWL"])
    assert table.feature_names == ("an", "saw")


def test_all_wrong_options_of_texts_are_one_error(tmp_path):
    path = write(tmp_path / "a.csv", "text,kind\nowl,a\n")
    with pytest.raises(ValueError, match="5 problems") as caught:
        read(
            path,
            text_field="text",
            weighting="tf",
            stop_words="no",
            min_df=-1,
            max_df=0,
            ngram_range=2,
        )
    named = ("weighting", "stop_words", "min_df", "max_df", "ngram_range")
    assert all(f"- {name}" in str(caught.value) for name in named)
    with pytest.raises(ValueError, match="did you mean 'text_field'"):
        read(path, text_feild="text")


def test_new_texts_are_read_from_the_field_of_the_fit(tmp_path):
    path = write(tmp_path / "a.csv", "id,post\n1,owl and fox\n2,owl or dog\n")
    table = read(path, text_field="post", weighting="tfidf")
    other = write(tmp_path / "b.jsonl", '{"post": "fox owl owl", "day": 1}')
    for new in (other, write(tmp_path / "b.csv", "day,post\n1,fox owl owl\n")):
        found = read(new, like=table)
        assert found.feature_names == table.feature_names
        np.testing.assert_array_equal(
            found.X.toarray(), read(["fox owl owl"], like=table).X.toarray()
        )
    with pytest.raises(ValueError, match=r"'weighting': for texts; name the column.*text_field"):
        read(path, weighting="tfidf")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_labels_of_new_texts_are_not_needed(tmp_path, name):
    text = "text,kind\nowl,a\n" if name == "a.csv" else '{"text": "owl", "kind": "a"}'
    path = write(tmp_path / name, text)
    with pytest.raises(ValueError, match="'date'"):
        read(path, text_field="text", label_field="date")
    table = read(path, text_field="text", label_field="date", label_needed=False)
    assert table.labels is None


@pytest.mark.filterwarnings("ignore:1 row.s. without text")
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_field_names_the_texts(tmp_path, name):
    lines = ["no,text,day", "R1,an owl,1", "R2,,2", ",a fox,3"]
    if name == "a.jsonl":
        lines = ['{"no": "R1", "text": "an owl"}', '{"no": null, "text": "a fox"}']
    path = write(tmp_path / name, "\n".join(lines))
    table = read(path, text_field="text", index="no")
    assert table.sample_names == ("R1", "a fox")
    if name == "a.csv":
        assert table.notes == ("1 row(s) without text in 'text' left out (R2)",)
        kept = read(path, text_field="text", index="no", empty=True)
        assert kept.sample_names == ("R1", "R2", "a fox")
    with pytest.raises(ValueError, match="'number'"):
        read(path, text_field="text", index="number")
    assert read(path, text_field="text", index="number", index_needed=False).sample_names == (
        "an owl",
        "a fox",
    )


def test_documents_that_cannot_be_read_are_refused_with_the_reason(tmp_path):
    with pytest.raises(ValueError, match=r"line 1: no text in 'body'; name its field"):
        read(write(tmp_path / "a.jsonl", '{"text": "x"}'), text_field="body")
    with pytest.raises(ValueError, match="line 2: not JSON"):
        read(write(tmp_path / "a.jsonl", '"fine words"\n{"text": '))
    with pytest.raises(ValueError, match="no words are left"):
        read(write(tmp_path / "a.txt", "one\ntwo\n"), min_df=2)
    with pytest.raises(ValueError, match="no documents"):
        read(write(tmp_path / "a.txt", "\n\n"))
    (tmp_path / "latin.txt").write_bytes("blå bær\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r'line 1: not utf-8 text .* encoding="latin-1"'):
        read(tmp_path / "latin.txt")
    assert read(tmp_path / "latin.txt", encoding="latin-1").feature_names == ("blå", "bær")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no file in it"):
        read(tmp_path / "empty")


def test_formats_are_read_from_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO((HEADER + ENTRIES).encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    with pytest.raises(ValueError, match="pass format="):
        read("-")
    with pytest.raises(ValueError, match="cannot come from standard input"):
        read("-", format="npz")
    np.testing.assert_array_equal(dense(read("-", format="bagofwords")), A)


def test_read_names_unknown_formats_and_options(tmp_path):
    with pytest.raises(ValueError, match="no such file or folder"):
        read(tmp_path / "nowhere.csv")
    path = write(tmp_path / "x.csv", "1,2\n")
    with pytest.raises(ValueError, match="format='excel' is unknown; choose one of bagofwords"):
        read(path, format="excel")
    with pytest.raises(ValueError, match="'min_df': for texts; name the column"):
        read(path, min_df=2)
    with pytest.raises(ValueError, match="cannot be told from the name"):
        read(write(tmp_path / "x.dat", "1,2\n"))
    with pytest.raises(ValueError, match="min_df: only for a file or folder"):
        read(A, min_df=3)
    assert read(A, feature_names=WORDS).feature_names == WORDS


@pytest.mark.processes
def test_h5ad_is_read_by_layer(tmp_path):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(sp.csr_matrix(A.astype(np.float32)))
    adata.var_names = list(WORDS)
    adata.layers["twice"] = 2 * adata.X
    adata.write_h5ad(tmp_path / "x.h5ad")
    table = read(tmp_path / "x.h5ad")
    np.testing.assert_array_equal(dense(table), A)
    assert table.feature_names == WORDS
    np.testing.assert_array_equal(dense(read(tmp_path / "x.h5ad", layer="twice")), 2 * A)
    with pytest.raises(ValueError, match="layer='no' is not in this AnnData object"):
        read(tmp_path / "x.h5ad", layer="no")


def test_kos_blog_entries_are_read_whole():
    table = read(data_file("docword.kos.txt.gz"))
    assert table.shape == (3430, 6906)
    assert table.X.nnz == 353160
    assert table.X.sum() == 467714
    assert table.feature_names[0] == "aarp"
