"""Entries of text files: numbers in several styles, dates, and what is missing."""

from __future__ import annotations

import pytest

from sparcipal import read
from sparcipal.data.files.fields import COMMA, GROUPED, PLAIN, Ambiguous, is_date, style_of


@pytest.mark.parametrize(
    ("entries", "style", "numbers"),
    [
        (["1", "2.5", "-3e4"], PLAIN, [1, 2.5, -3e4]),
        (["1,200,000", "1,200"], GROUPED, [1200000, 1200]),
        (["1,200", "850"], GROUPED, [1200, 850]),
        (["1,200.50", "3,100"], GROUPED, [1200.5, 3100]),
        (["1,5", "3"], COMMA, [1.5, 3]),
        (["0,123", "1,200"], COMMA, [0.123, 1.2]),
        (["1,200", "1500"], COMMA, [1.2, 1500]),
        (["1.200,50", "3,1"], COMMA, [1200.5, 3.1]),
        (["1\u00a0200,5", "7,25"], COMMA, [1200.5, 7.25]),
        (["1 200", "13 400"], GROUPED, [1200, 13400]),
        (["1'200.5", "13'400"], GROUPED, [1200.5, 13400]),
        (["True", "false"], "true and false", [1, 0]),
    ],
)
def test_style_is_told_by_all_entries_of_a_column(entries, style, numbers):
    found = style_of(entries, None, None)
    assert found.name == style
    assert [found.parse(entry) for entry in entries] == numbers


def test_style_names_the_entry_that_tells_it():
    assert "'1,200,000'" in style_of(["1,200", "1,200,000"], None, None).evidence
    assert "'850'" in style_of(["1,200", "850"], None, None).evidence


def test_style_of_commas_that_nothing_tells_apart_is_left_to_the_user():
    entries = ["1,200", "3,400"]
    with pytest.raises(Ambiguous, match="1,200"):
        style_of(entries, None, None)
    assert style_of(entries, ",", None).parse("1,200") == 1.2
    assert style_of(entries, None, ",").parse("1,200") == 1200.0


def test_style_of_text_is_none():
    for entries in (["a"], ["1,5", "2.5"], ["1,2,3"], ["1_000"]):
        assert style_of(entries, None, None) is None


@pytest.mark.parametrize(
    "entry",
    ["2024-01-31", "2024-01-31 12:30:01", "2024-01-31T12:30Z", "31.01.2024", "1/31/24", "2024/1/3",
     "31-Jan-2024", "Jan 31, 2024", "2024-01"],
)  # fmt: skip
def test_dates_are_told_from_numbers(entry):
    assert is_date(entry)
    assert not is_date(entry[:2])
    assert not is_date("1.5")


def test_points_part_thousands_beside_decimal_commas(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;b;c\n1,5;1.200;0.5\n2,5;13.400;0.25\n3,25;7;1.5\n")
    with pytest.warns(UserWarning, match="'b' .as in the other columns"):
        table = read(path)
    assert table.X[:, 1].tolist() == [1200.0, 13400.0, 7.0]
    assert table.X[:, 2].tolist() == [0.5, 0.25, 1.5]
