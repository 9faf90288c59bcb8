"""Figures of the documents are those of the library, of what was measured, and of each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

import pytest
from benchmarks.library.archive import OPTIMAL, Archive, Entry
from benchmarks.tables import scoreboard

from tests.support.places import ROOT

ENTRIES = Archive().entries()
# What the documents call the data of the library.
NAMES = {
    "20 newsgroups": "20news",
    "Arcene": "arcene",
    "Arcene Train": "arcene",
    "BoW:KOS": "kos",
    "BoW:NIPS": "nips",
    "CBCL": "cbcl",
    "CBCL Face Train": "cbcl",
    "CBCL faces": "cbcl",
    "Isolet": "isolet",
    "Isolet-5": "isolet",
    "KOS": "kos",
    "KOS words, centred": "kos-centred",
    "KOS words, not centred": "kos",
    "LRS": "lrs",
    "Leukemia": "leukemia",
    "Leukemia genes": "leukemia",
    "Mfeat": "mfeat",
    "Mfeat Pix": "mfeat",
    "NIPS": "nips",
    "NIPS words, not centred": "nips",
    "PBMC 3k": "pbmc",
    "Pitprops": "pitprops",
    "arrhythmia": "arrhythmia",
    "colon genes, logarithms": "colon",
    "communities": "communities",
    "miniboone": "miniboone",
    "wine": "wine",
}


def rows(file: str, head: str) -> Iterator[dict[str, str]]:
    """The rows of the table of a Markdown file whose head begins so."""
    text = (ROOT / file).read_text(encoding="utf-8")
    table = takewhile(lambda line: line[:1] == "|", text[text.index(f"| {head}") :].splitlines())
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
    return (dict(zip(cells[0], row)) for row in cells[2:])


def entry(data: str, sizes: str, nonnegative: bool = False) -> Entry:
    """The line of the library: `8 x 15` and `8, 15` are components and nonzeros."""
    k, s = re.findall(r"\d+", sizes)
    return ENTRIES[f"{NAMES[data]}-{k}x{s}{'-nonnegative' if nonnegative else ''}"]


def same_digits(shown: str, value: float) -> bool:
    digits = len(shown.split("e")[0].replace(".", "").lstrip("0"))
    return float(shown) == float(f"{value:.{digits}g}")


def percent(text: str) -> float:
    """The gap that a cell states."""
    if text.startswith("optimal"):
        return OPTIMAL
    return float(re.search(r"([\d.]+) %", text)[1]) / 100


def test_the_table_of_the_readme_is_that_of_the_library():
    found = list(rows("README.md", "data |"))
    assert len(found) == 13
    for row in found:
        nonnegative = row["data"].endswith(", nonnegative")
        known = entry(
            row["data"].removesuffix(", nonnegative"), row["components x nonzeros"], nonnegative
        )
        assert same_digits(row["value"], known.value), row
        assert known.gap <= percent(row["proved"]), row


def test_the_best_answers_that_were_compared_are_those_of_the_library():
    found = list(rows("benchmarks/baselines/README.md", "problem |"))
    assert len(found) == 24
    for row in found:
        name, _, sizes = row["problem"].partition(", ")
        if name == "Colon":
            continue  # the library has its logarithms
        known = entry(name, sizes.removesuffix(" x>=0"), sizes.endswith("x>=0"))
        assert same_digits(row["auto"], known.value), row
        assert all(float(share) <= 100 for share in list(row.values())[2:] if share[:1].isdigit())


def test_joint_optima_are_those_of_the_library():
    name = ""
    found = list(rows("benchmarks/joint/README.md", "set | k, s | value |"))
    assert len(found) == 8
    for row in found:
        name = row["set"] or name
        known = entry(name, row["k, s"])
        assert same_digits(row["value"], known.value), row
        assert known.optimal


def test_recovery_is_shown_as_it_was_measured():
    measured = scoreboard.stored()
    for row in rows("benchmarks/lowrank/README.md", "method | 50 samples"):
        for samples in (50, 5):
            shown = re.sub(r" \(.*", "", row[f"{samples} samples"])
            names = [row["method"]]
            if row["method"] == "GPower l0, l1":
                names = ["GPower l0, searched", "GPower l1, searched"]
            for name, figure in zip(names, shown.split(", "), strict=True):
                assert float(figure) == pytest.approx(measured[f"{name} {samples}"], abs=0.005)


def test_peers_of_the_readme_are_those_of_the_benchmark():
    whole = {row["package"]: row for row in rows("benchmarks/baselines/README.md", "package |")}
    for row in rows("README.md", "package |"):
        for name, share in row.items():
            if name != "package":
                assert share == whole[row["package"]][f"{name}, 3 x 5"]


def test_the_error_terms_of_theorem_2_are_shown_as_they_were_measured():
    measured = scoreboard.stored()
    page = (ROOT / "docs" / "methods" / "lowrank.rst").read_text(encoding="utf-8")
    shown = re.findall(r"between ([\d.]+) and ([\d.]+) instead of ([\d.]+)", " ".join(page.split()))
    assert len(shown) == len(scoreboard.ERROR_TERMS)
    for name, (at_least, at_most, there) in zip(scoreboard.ERROR_TERMS, shown):
        low, high, eigenvalue = (
            measured[f"error term {name}, {part}"] for part in ("at least", "at most", "eigenvalue")
        )
        assert low - 0.001 <= float(at_least) <= low
        assert high <= float(at_most) <= high + 0.001
        assert float(there) == pytest.approx(eigenvalue, abs=0.0005)


def test_joint_gaps_of_the_readme_are_those_of_the_benchmark():
    default = {
        (row["data"].split()[0], row["components x nonzeros"]): percent(row["proved"])
        for row in rows("README.md", "data |")
    }
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    long = re.search(r"joint gaps to ([\d.]+) % and ([\d.]+) % in three CPU minutes", text)
    for name, sizes, gap in (("KOS", "8, 15", long[1]), ("Leukemia", "5, 40", long[2])):
        by_full = _row("set | k, s | full before", name, sizes)["full now"]
        assert by_full == f"{gap} %"
        by_default = percent(_row("set | k, s | db7e602", name, sizes)["now"])
        assert by_default <= default[name, sizes.replace(", ", " x ")] < by_default + 0.001


def _row(head: str, name: str, sizes: str) -> dict[str, str]:
    found = rows("benchmarks/joint/README.md", head)
    return next(row for row in found if row["set"].split()[0] == name and row["k, s"] == sizes)
