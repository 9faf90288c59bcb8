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


@pytest.fixture
def small(tmp_path, monkeypatch):
    """An empty folder of data, and smaller questions."""
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    monkeypatch.setenv("SPARCIPAL_CACHE", str(tmp_path / "cache"))
    for name, wanted in absent.SETS.items():
        questions = ((2, 3, 2),) if wanted.questions else ()
        curves = ((2, 3, 2),) if wanted.curves else ()
        deflated = ((2, 3),) if wanted.deflated else ()
        wanted = replace(wanted, questions=questions, curves=curves, deflated=deflated)
        monkeypatch.setitem(absent.SETS, name, wanted)
    return tmp_path


def test_sets_that_are_absent_are_named(small):
    lines = list(absent.absent(small))
    assert sum(line.endswith("| absent |") for line in lines) == len(absent.SETS) == 6
    files = {figure.reason.split(" when ")[1].split()[0] for figure in FIGURES if not figure.key}
    assert files == {wanted.file for wanted in absent.SETS.values()}


def test_sets_whose_files_are_there_are_run(small):
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.5 + 2 * (rng.random((20, 26)) < 0.2))
    entries = [f"{i + 1} {j + 1} {counts[i, j]}" for i, j in np.argwhere(counts)]
    text = "\n".join(["20", "26", str(len(entries)), *entries]) + "\n"
    words = [f"word{j}" for j in range(26)]
    for name in ("enron", "nytimes", "pubmed"):
        with gzip.open(small / f"docword.{name}.txt.gz", "wt") as file:
            file.write(text)
        (small / f"vocab.{name}.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    for name in ("amazon", "pems_train"):
        np.savez(small / f"{name}.npz", X=counts)
    tweets = [" ".join(words[j] for j in np.flatnonzero(row)) for row in counts]
    (small / "tweets.txt").write_text("\n".join(tweets), encoding="utf-8")

    page = "\n".join(absent.absent(small))
    assert "| absent |" not in page
    parts = dict(part.split("\n", 1) for part in page.split("\n## ")[1:])
    assert list(parts) == list(absent.SETS)
    best = absent.sparse_pca(counts, n_components=2, n_nonzero_coefs=3, center=False)
    for name in ("Amzn Com Rev", "Pems Train", "BoW:Enron", "BoW:NyTimes"):
        assert "| TPower | EM | SpanSPCA | SPCABiPart | auto | gap |" in parts[name]
    for name in ("BoW:Enron", "BoW:NyTimes"):
        assert f" | {best.value:.5g} | " in parts[name]
        assert "\nSPCABiPart\n\n1. word" in parts[name]
    assert "Figure 4: BoW:NyTimes, components of 3 features" in parts["BoW:NyTimes"]
    for name in ("BoW:NyTimes", "BoW:PubMed"):
        assert "\n26 words, at most " in parts[name]
        assert "\nDSPCA\n\n1. word" in parts[name]
    shares = parts["tweets"].strip().splitlines()[-1].strip("| ").split(" | ")
    assert shares[0] == "2, 3"
    assert len(shares) == 1 + len(absent.DEFLATED)
    assert max(map(float, shares[1:])) == 1.0
