"""Topics over time: windows, threads, what is new and what fades."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from sparcipal import read, trends, verify
from sparcipal.questions.windows import matched

EARLY = ["cat dog bone", "dog cat bone bone", "cat cat dog", "bone dog dog", "cat bone bone"]
LATE = [
    "star moon orbit",
    "moon moon star",
    "orbit star star",
    "moon orbit orbit",
    "star moon moon",
]


def corpus():
    texts = [*EARLY, *EARLY, *LATE, *LATE]
    years = [2001] * 5 + [2002] * 10 + [2003] * 5
    return read(texts), [f"{year}-05-0{i % 9 + 1}" for i, year in enumerate(years)]


def test_topics_appear_go_on_and_fade():
    table, times = corpus()
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "nonnegative": True}
    with warnings.catch_warnings(action="error"):  # that some words are not in a window is no news
        found = trends(table, times, windows="year", **asked)
    assert [window.n_samples for window in found.windows] == [5, 10, 5]
    first, middle, last = found.windows
    animals = next(t for t in middle.topics if not t.new)
    stars = next(t for t in middle.topics if t.new)
    assert set(animals.words) <= {"cat", "dog", "bone"}
    assert set(stars.words) <= {"star", "moon", "orbit"}
    assert animals.thread in {t.thread for t in first.topics}
    assert animals.thread in {t.thread for t in last.faded}
    assert stars.thread in {t.thread for t in last.topics}
    text = str(found)
    assert "new" in text
    assert "fades:" in text
    assert len(found.records()) == 6


@pytest.mark.parametrize(("size", "needed"), [(1, 1), (2, 1), (3, 2), (5, 2), (8, 4), (10, 4)])
def test_a_topic_goes_on_with_two_fifths_of_its_words(size, needed):
    before = [str(word) for word in range(size)]
    for kept in range(size + 1):
        now = [*before[:kept], *(f"new{i}" for i in range(size - kept))]
        assert matched([before], [now]) == ({0: 0} if kept >= needed else {})


def test_pairs_that_do_not_go_on_take_no_partner_from_those_that_do():
    before = [tuple("abcdef"), tuple("ghijkl")]
    now = [("a", "b", "c", "g", "h", "x"), ("d", "e", "y", "z", "u", "v")]
    assert matched(before, now) == {0: 0}


def test_words_of_a_topic_that_fades_are_cut_visibly():
    early = [text + " tail paw" * (i % 2) for i, text in enumerate(EARLY)]
    texts, years = [*early, *LATE], [2001] * 5 + [2002] * 5
    for size in (3, 5):
        asked = {"n_components": 1, "n_nonzero_coefs": size, "certify": False}
        found = trends(read(texts), years, windows="year", **asked)
        faded = found[1].faded[0].words
        line = next(line for line in str(found).splitlines() if "fades: " in line)
        assert line.endswith(f"fades: {', '.join(faded[:4])}" + (", …" if len(faded) > 4 else ""))
    assert len(faded) == 5


def test_a_topic_that_returns_keeps_its_number(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    texts, years = [*EARLY, *LATE, *EARLY], [2001] * 5 + [2002] * 5 + [2003] * 5
    asked = {"n_components": 1, "n_nonzero_coefs": 3, "nonnegative": True}
    found = trends(read(texts), years, windows="year", **asked)
    animals, stars, again = (window.topics[0] for window in found.windows)
    assert (animals.thread, stars.thread, again.thread) == (0, 1, 0)
    assert again.returns
    assert not again.new
    assert [topic.thread for topic in found[1].faded] == [0]
    lines = str(found).splitlines()
    assert lines[-1].startswith("new: among the 1 largest of a window for the first time; fades: ")
    assert any(line.startswith("    1  ") and "returns  " in line for line in lines)
    assert all("5 documents; optimal" in str(found).split("\n\n")[i] for i in range(3))
    assert [r["returns"] for r in found.records()] == [False, False, True]
    drawn = [np.isnan(line.get_ydata()).tolist() for line in found.plot().lines_]
    assert drawn == [[False, True, False], [False]]


def test_each_window_has_its_certificate():
    table, times = corpus()
    found = trends(table, times, windows="year", n_components=1, n_nonzero_coefs=2)
    rows = np.array([time.startswith("2002") for time in times])
    assert verify(found[1].result, table.X[rows]).verdict == "proved"


def test_windows_of_equal_length_are_cut_by_the_times():
    table, _ = corpus()
    numbers = list(range(20))
    found = trends(table, numbers, windows=2, n_components=1, n_nonzero_coefs=2)
    assert [w.n_samples for w in found.windows] == [10, 10]
    assert (found[0].first, found[1].last) == ("0", "19")
    with pytest.raises(ValueError, match=r"windows='week' is unknown"):
        trends(table, numbers, windows="week")
    with pytest.raises(ValueError, match="needs dates"):
        trends(table, numbers, windows="year")
    with pytest.raises(ValueError, match="neither a date as 2024-01-31 nor a number"):
        trends(table, ["last week"] * 20)
    with pytest.raises(ValueError, match="have no times"):
        trends(table)
    with pytest.raises(ValueError, match="fewer than 2 documents"):
        trends(table, numbers, windows=20)


def test_trends_draw_one_line_per_thread(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    table, times = corpus()
    found = trends(table, times, windows="year", n_components=2, n_nonzero_coefs=2)
    display = found.plot()
    assert len(display.lines_) == len(found.threads())
    display.figure_.savefig(tmp_path / "x.png")
