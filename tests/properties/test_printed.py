"""Printed figures beside measured ones, and the sets of the papers that are not here."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import data
from benchmarks.tables import absent, scoreboard
from benchmarks.tables.scoreboard import FIGURES, Figure


def test_every_measurement_that_a_figure_names_is_stored():
    measured = scoreboard.stored()
    assert {figure.key for figure in FIGURES if figure.key} <= set(measured)
    assert len({(f.paper, f.place, f.what) for f in FIGURES}) == len(FIGURES)
    assert all(figure.key or figure.reason for figure in FIGURES)


@pytest.mark.parametrize(
    ("printed", "measured", "verdict"),
    [
        ("2.51e3", 2514.0, "to the digit"),
        ("41.4", 41.76, "within 2 %"),
        ("5.06", 6.88, "above"),
        ("0.33", 0.0, "below"),
    ],
)
def test_verdicts_compare_with_what_is_printed(printed, measured, verdict):
    assert Figure("", "", "", printed).verdict(measured) == verdict


def test_a_set_that_is_absent_is_named_and_one_that_is_there_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    assert absent.SETS["BoW:Enron"].questions == ((8, 15, 5),)
    for name, wanted in absent.SETS.items():  # smaller questions of smaller files
        monkeypatch.setitem(absent.SETS, name, replace(wanted, questions=((2, 3, 2),)))
    named = [line for line in absent.absent(tmp_path) if "| absent |" in line]
    assert len(named) == len(absent.SETS)
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.5 + 2 * (rng.random((40, 13)) < 0.2))
    entries = [f"{i + 1} {j + 1} {counts[i, j]}" for i, j in np.argwhere(counts)]
    text = "\n".join(["40", "13", str(len(entries)), *entries]) + "\n"
    with gzip.open(tmp_path / "docword.enron.txt.gz", "wt") as file:
        file.write(text)
    words = [f"word{j}" for j in range(13)]
    (tmp_path / "vocab.enron.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    tweets = [" ".join(words[j] for j in np.flatnonzero(row)) for row in counts]
    (tmp_path / "tweets.txt").write_text("\n".join(tweets), encoding="utf-8")
    rows = [line for line in absent.absent(tmp_path) if line.startswith("| ")]
    lines = {row.split("|")[1].strip(): row for row in rows}
    assert "| 2, 3 |" in lines["BoW:Enron"]
    assert "| 2, 3 |" in lines["tweets"]
    assert lines["BoW:Enron"].rstrip().endswith("% |")
    assert "| absent |" in lines["BoW:NyTimes"]
