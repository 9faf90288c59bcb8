"""CSV files."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from sparcipal import read
from sparcipal.data.files import csv


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_decimal_point_in_another_column_tells_that_commas_part_thousands(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('a,b\n"1,200",0.5\n"3,400",1.25\n')
    with pytest.warns(UserWarning, match="separator in 'a' .as '0.5' has a decimal point"):
        assert read(path).X[:, 0].tolist() == [1200.0, 3400.0]


def test_csv_tells_decimal_commas_from_separators(tmp_path):
    path = written(tmp_path / "x.csv", "a;b\n1,5;2\n3;4,25\n")
    with pytest.warns(UserWarning, match="decimal comma in 'a' .as '1,5' shows"):
        assert read(path).X.tolist() == [[1.5, 2.0], [3.0, 4.25]]
    plain = written(tmp_path / "y.csv", "a;x,b\n1,2\n3,4\n")
    assert read(plain).feature_names == ("a;x", "b")


@pytest.mark.parametrize("mark", [",", ";", "|"])
def test_csv_with_a_separator_at_the_end_of_lines_keeps_names_above_their_numbers(tmp_path, mark):
    text = "height,weight,age\n170,60,30,\n180,75,41,\n165,58,22,\n".replace(",", mark)
    with pytest.warns(UserWarning, match="end with a separator.*names are from the left"):
        table = read(written(tmp_path / "x.csv", text))
    assert table.feature_names == ("height", "weight", "age")
    assert table.X.tolist() == [[170, 60, 30], [180, 75, 41], [165, 58, 22]]


@pytest.mark.parametrize("more", ["", '"7",1\n'])  # a quote takes the careful parser
def test_csv_refuses_integers_that_would_be_rounded(tmp_path, more):
    text = "a,b\n1,9007199254740993\n2,9007199254740994\n" + more
    with pytest.raises(ValueError, match=r"9007199254740993, column 2 .'b'. is beyond 2\*\*53"):
        read(written(tmp_path / "x.csv", text))
    text = "a,b\n1,9007199254740994\n2,1e300\n3,9007199254740992.5\n" + more
    assert read(written(tmp_path / "y.csv", text)).X[0, 1] == 2**53 + 2


def test_csv_names_an_archive_as_such(tmp_path):
    with pytest.raises(ValueError, match=r"is a zip archive, as .xlsx is"):
        read(written(tmp_path / "x.csv", b"PK\x03\x04abc\n"))


def test_csv_read_in_threads_gives_the_same(tmp_path):
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


ODD = [
    "1_000", "nan", "inf", "-Infinity", " 7 ", "\t8", "\u0663", "0x1p3", "0x10", "1e400", "1e-400",
    "1d5", "1+2j", "True", "", " ", "x", "1.5.", "--1", "+3", "5.", ".5", '"6"', '"6', "#9", "9#",
    "1 2", "\x0c4", "4\x85", "4\u2028", "\u00a05", "(1)", "1,", "1e", "1E+05", "0" * 400 + "1",
    "2.2250738585072011e-308", "9007199254740993", "179769313486231580793e289", "\0",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_csv_by_loadtxt_is_csv_field_by_field(tmp_path, monkeypatch, seed):
    """Numbers, names, labels and messages are the same on both ways through the lines."""
    monkeypatch.setattr(csv, "FIELDS", 12)
    rng = random.Random(seed)

    def outcome(path, **options):
        try:
            found = csv.read_csv(path, None, **options)
        except Exception as error:
            return type(error), str(error)
        return found.matrix.tobytes(), found.matrix.shape, found.features, found.samples

    plainly, plain_blocks = csv._Layout.parsed_plainly, 0

    def counted(self, lines):
        nonlocal plain_blocks
        found = plainly(self, lines)
        plain_blocks += found is not None
        return found

    for case in range(150):
        mark, end = rng.choice(",;\t"), rng.choice(["\n", "\r\n", "\r"])
        width, labelled = rng.randint(1, 4), rng.random() < 0.4
        rows = [[repr(rng.gauss(0, 1)) for _ in range(width)] for _ in range(rng.randint(1, 20))]
        if labelled:
            rows = [[rng.choice(["a", "b c", "", "\u00e9", "3"]), *row] for row in rows]
        if case % 2:
            rng.choice(rows)[-1] = rng.choice(ODD)
        lines = [mark.join(row) for row in rows]
        if rng.random() < 0.2:
            lines.insert(rng.randint(0, len(lines)), rng.choice(["", " ", mark, lines[0] + mark]))
        if rng.random() < 0.5:
            lines.insert(0, mark.join(["id"] * labelled + [f"w{j}" for j in range(width)]))
        path = written(tmp_path / "x.csv", end.join(lines) + rng.choice(["", end]))
        options = {"index": True} if labelled else {"index": False}
        with monkeypatch.context() as patched:
            patched.setattr(csv._Layout, "parsed_plainly", lambda self, lines: None)
            expected = outcome(path, **options)
        monkeypatch.setattr(csv._Layout, "parsed_plainly", counted)
        assert outcome(path, **options) == expected, lines
    assert plain_blocks > 100


def test_csv_names_the_line_after_blocks_without_a_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "FIELDS", 8)
    lines = ["a,b", *(f"{i},{i}" for i in range(30)), "", '"7",8', "7,x"]
    path = written(tmp_path / "x.csv", "\n".join(lines))
    with pytest.raises(ValueError, match=r"line 34: 'x', column 2 \('b'\)"):
        read(path)
    assert np.array_equal(read(written(path, "\n".join(lines[:-1]))).X[-2:], [[29, 29], [7, 8]])


def test_csv_reads_a_column_of_percents_with_a_note(tmp_path):
    path = written(tmp_path / "x.csv", 'a,b,c\n1.5 %,"-1,804 %",2\n-3%,"0,25 %",4\nNA,"7 %",5\n')
    with pytest.warns(UserWarning, match="percent sign, 5 % read as 5, in 'a', 'b'"):
        table = read(path)
    expected = [[1.5, -1.804, 2.0], [-3.0, 0.25, 4.0], [np.nan, 7.0, 5.0]]
    np.testing.assert_array_equal(table.X, expected)


@pytest.mark.parametrize("signs", [1, 5])
def test_csv_names_entries_with_a_percent_sign_beside_others(tmp_path, signs):
    entries = [f"{i} %" if i < signs else str(i) for i in range(6)]
    path = written(tmp_path / "x.csv", "\n".join(["a", *entries]))
    with pytest.raises(ValueError, match=r"line 2: '0 %', column 1 .'a'. is not a number"):
        read(path)


def test_csv_names_the_line_of_a_byte_that_is_no_text(tmp_path):
    path = written(tmp_path / "x.csv", b"a,b\n" + 3000 * b"1,2\n" + b"\xe4,1\n" + 3000 * b"1,2\n")
    with pytest.raises(ValueError, match=r"x.csv, line 3002: not utf-8 text; name its encoding"):
        read(path)


def test_csv_refuses_text_of_another_encoding(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n1,2\n\xff\xfe\xff,3\n")
    with pytest.raises(ValueError, match=r"line 3: not utf-8 text; name its encoding"):
        read(path)


@pytest.mark.parametrize("codes", [["99"], [99], 99, "99", 99.0, [np.int64(99), "gone"]])
@pytest.mark.parametrize(("name", "mark"), [("m.csv", ","), ("m.tsv", "\t"), ("m.csv", ";")])
def test_numbers_may_stand_for_missing_entries(codes, name, mark, tmp_path):
    path = tmp_path / name
    path.write_text("a,b,c\n1,99,3\n4,5,6\n7,8,99.0\n2,1,0\n".replace(",", mark))
    X = read(path, na_values=codes).X
    assert np.argwhere(np.isnan(X)).tolist() == [[0, 1], [2, 2]]
    assert X[1].tolist() == [4, 5, 6]


def test_codes_of_missing_entries_are_numbers_as_the_column_writes_them(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;b\n1,5;-9\n-9,0;2\n3,25;4\n2;7\n")
    with pytest.warns(UserWarning, match="decimal comma"):
        X = read(path, na_values=["-9"]).X
    assert np.argwhere(np.isnan(X)).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("quoted", [False, True])
def test_codes_of_missing_entries_hold_in_every_block(quoted, tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "FIELDS", 8)
    lines = [f"{i},{-9 if i % 5 == 0 else i + 0.5}" for i in range(40)]
    if quoted:
        lines[20] = '"20",-9'
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "\n".join(lines) + "\n")
    X = read(path, na_values=[-9]).X
    assert np.flatnonzero(np.isnan(X[:, 1])).tolist() == list(range(0, 40, 5))
    assert not np.isnan(X[:, 0]).any()


@pytest.mark.parametrize("codes", [True, [None], {"a": 1}, [["99"]]])
def test_codes_of_missing_entries_are_texts_or_numbers(codes, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3,5\n")
    with pytest.raises(TypeError, match=r"na_values=.*a text, a number, or a list of them"):
        read(path, na_values=codes)


def test_a_csv_with_features_in_lines_is_transposed(tmp_path):
    path = tmp_path / "genes.csv"
    path.write_text("gene,s1,s2,s3\nTP53,1,2,4\nMYC,5,4,9\nMYC,7,8,0\n")
    with pytest.warns(UserWarning, match="'gene' names the rows; if they are features"):
        assert read(path).feature_names == ("s1", "s2", "s3")
    with pytest.warns(UserWarning, match="names made distinct"):
        table = read(path, transpose=True)
    assert table.feature_names == ("TP53", "MYC", "MYC (2)")
    assert table.sample_names == ("s1", "s2", "s3")
    assert table.X.tolist() == [[1, 5, 7], [2, 4, 8], [4, 9, 0]]
    with pytest.warns(UserWarning, match="names made distinct"):  # too large for its limit
        assert np.array_equal(read(path, transpose=True, memory_limit=10).X, table.X)
    with pytest.raises(ValueError, match="label='s1' names a column"):
        read(path, transpose=True, label="s1")
