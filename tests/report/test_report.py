"""Text and HTML of results against golden files.

`pytest --update-golden` rewrites these; read the difference before it is committed.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from sparcipal import sparse_pca
from sparcipal.problem.monitor import Progress
from sparcipal.problem.result import Bound, Certificate, Result, Status
from sparcipal.report import words
from sparcipal.report.drawings import proof_drawing
from sparcipal.report.progress import ProgressLines
from sparcipal.report.terminal import components_view, result_view
from sparcipal.report.text import ComponentTable


def certificate(value: float = 2.5, bound: float = 2.575, **changes) -> Certificate:
    parts = {
        "value": value,
        "bound": bound,
        "rounding": 1e-15,
        "status": Status.GAP,
        "bounds": (Bound("pair split", bound), Bound("trace", 9.0)),
        "tol": 1e-6,
        "nodes": 1200,
        "eliminated": 3,
        "message": "gap 3 % > tol 0.0001 %: raise max_nodes, or accept the gap",
        "guarantees": {"spannogram": 0.8125},
    }
    return Certificate(**{**parts, **changes})


def result(names: tuple[str, ...] | None = None, **changes) -> Result:
    parts = {
        "supports": (np.array([0, 2, 5]), np.array([1, 4])),
        "weights": (np.array([0.36, -0.48, 0.8]), np.array([0.8, 0.6])),
        "variances": np.array([1.5, 1.0]),
        "total_variance": 9.0,
        "n_features": 9,
        "n_samples": 40,
        "feature_names": names,
        "mean": np.zeros(9),
        "scale": np.ones(9),
        "settings": {
            "n_components": 2,
            "n_nonzero_coefs": 3,
            "supports": "disjoint",
            "nonnegative": False,
            "center": True,
            "scale": False,
        },
        "certificate": certificate(),
    }
    return Result(**{**parts, **changes})


PROVED = certificate(
    bound=2.5, status=Status.OPTIMAL, nodes=0, eliminated=0, message="", guarantees={}
)
NASTY = (
    "<script>alert(1)</script>",
    'a" onmouseover="x',
    "tab\there",
    "it's & so",
    "\x1b[31mred\x1b[0m",
    "long" * 30,
    "x",
    "y",
    "z",
)
CASES = {
    "open": result(note="TPower did not converge within 200 steps"),
    "proved": result(names=tuple("abcdefghi"), certificate=PROVED),
    "nothing": result(certificate=certificate(bound=math.inf, bounds=(), message="")),
    "nasty": result(names=NASTY),
    "covariance": result(
        n_samples=None,
        mean=None,
        scale=None,
        settings={"n_nonzero_coefs": [3, 2], "supports": "free", "nonnegative": True},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_text_is_as_reviewed(name, golden):
    golden(f"{name}.txt", str(CASES[name]))


@pytest.mark.parametrize("name", ["open", "proved", "nasty"])
def test_html_is_as_reviewed(name, golden):
    golden(f"{name}.html", CASES[name]._repr_html_())


def test_what_is_not_proved_does_not_look_proved():
    assert str(CASES["proved"].certificate).startswith("Best possible (proved)")
    seen = {name: str(CASES[name].certificate) for name in ("open", "nothing", "covariance")}
    assert seen["open"].startswith("Within 3 % of the best possible (proved)")
    assert seen["nothing"].startswith("Nothing proved")
    for name, tone in (("open", "near"), ("nothing", "open")):
        page = CASES[name].certificate._repr_html_()
        assert f'class="spc-verdict spc-{tone}"' in page
    wide = replace(CASES["open"].certificate, bound=2.7)
    assert 'class="spc-verdict spc-open"' in wide._repr_html_()
    far = replace(CASES["open"].certificate, bound=1.5 * CASES["open"].certificate.value)
    assert str(far).startswith("At least 66.6 % of the best possible (proved)")
    assert 'class="spc-verdict spc-proved"' in CASES["proved"].certificate._repr_html_()


def test_status_optimal_with_a_gap_above_tol_is_not_believed():
    claimed = replace(PROVED, bound=2.6)
    assert str(claimed).startswith("Within 4 % of the best possible")


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_feature_names_cannot_become_markup():
    parser = _Tags()
    parser.feed(CASES["nasty"]._repr_html_() + CASES["nasty"].table()._repr_html_())
    assert "script" not in parser.tags
    assert parser.attributes <= {"class", "style", "title", "role", "aria-label"}


def test_text_holds_no_control_characters():
    text = str(CASES["nasty"])
    assert all(c.isprintable() or c == "\n" for c in text)
    assert max(map(len, text.splitlines())) <= 100


def test_lines_stay_within_the_width():
    wide = result(
        supports=(np.arange(60), np.array([70])),
        weights=(np.full(60, 60**-0.5), np.ones(1)),
        n_features=80,
        names=None,
    )
    lines = str(wide.table()).splitlines()
    assert len(lines) > 6
    assert max(map(len, lines)) <= 100
    assert len(re.findall(r"x\d+ 0\.129", str(wide.table()))) == 60


@pytest.mark.parametrize(
    ("x", "low", "high"),
    [
        (1.2, "1.2", "1.2"),
        (62.90284999, "62.9028", "62.9029"),
        (1e-12, "1e-12", "1e-12"),
        (0.0, "0", "0"),
        (9.9999999, "9.99999", "10"),
        (5647366100.5, "5.64736e+09", "5.64737e+09"),
        (-1.23456789, "-1.23457", "-1.23456"),
        (math.inf, "infinite", "infinite"),
        (math.nan, "unknown", "unknown"),
    ],
)
def test_values_are_rounded_down_and_bounds_up(x, low, high):
    assert (words.at_least(x), words.at_most(x)) == (low, high)


@pytest.mark.parametrize(
    ("gap", "shown"),
    [(0.0, "0 %"), (0.0290001, "2.91 %"), (1e-13, "1e-11 %"), (math.inf, "unknown")],
)
def test_gaps_are_rounded_up(gap, shown):
    assert words.gap_percent(gap) == shown


@pytest.mark.parametrize("variances", [[7.333755], [4.000055, 3.3337], [9.99996e-9], [123456.7]])
def test_no_face_shows_a_value_above_the_bound(variances):
    total = float(np.sum(variances))
    k = len(variances)
    tight = certificate(total, total, bounds=(Bound("pair split", total),), status=Status.OPTIMAL)
    found = result(
        supports=(np.array([0]), np.array([1]))[:k],
        weights=(np.array([1.0]), np.array([1.0]))[:k],
        variances=np.array(variances),
        certificate=tight,
    )
    row = str(found.table()).splitlines()[-1].split()
    assert float(row[1]) <= total
    assert float(components_view(found).columns[1].footer) <= total
    drawn = re.search(r"found</b>: ([\d.e+-]+) by", proof_drawing(found))
    assert drawn
    assert float(drawn[1]) <= total
    assert all(float(words.variance(v)) <= v for v in variances)


def test_table_rows_and_records_agree_with_the_result():
    table = ComponentTable(CASES["proved"])
    assert len(table) == 2
    first = table.rows[0]
    assert first.features == ("f", "c", "a")
    assert first.weights == (0.8, -0.48, 0.36)
    assert first.share == pytest.approx(1.5 / 9)
    records = table.records()
    assert len(records) == 5
    assert records[3] == {
        "component": 2, "feature": "b", "index": 1, "weight": 0.8, "variance": 1.0,
    }  # fmt: skip


def test_progress_is_one_line_per_change():
    stream = io.StringIO()
    show = ProgressLines(stream)
    for progress in (
        Progress("search", 0.1, message="component 1 of 2"),
        Progress("search", 0.2, value=2.5),
        Progress("search", 0.3, value=2.5, message="nothing new"),
        Progress("prove", 1.25, value=2.5, bound=2.575, nodes=12),
    ):
        show(progress)
    assert stream.getvalue().splitlines() == [
        " seconds  stage              value         bound        gap     nodes",
        "     0.1  search                 -             -          -         -  component 1 of 2",
        "     0.2  search               2.5             -          -         -",
        "     1.2  prove                2.5         2.575        3 %        12",
    ]


def test_the_terminal_shows_the_same_and_never_parts_a_name_from_its_weight():
    wide = result(
        supports=(np.arange(60), np.array([70])),
        weights=(np.full(60, 60**-0.5), np.ones(1)),
        n_features=80,
    )
    for width in (40, 80, 120):
        console = Console(width=width, file=io.StringIO())
        console.print(result_view(wide, feature="word"))
        console.print(result_view(CASES["nasty"]))
        shown = console.file.getvalue()
        assert max(map(len, shown.splitlines())) <= width
        assert len(re.findall(r"x\d+ 0\.13", shown)) == 60
        assert "Within" in shown
        assert "\x1b" not in shown
    assert console.file.getvalue().count("<script>alert(1)</script>") == 1


def test_report_says_the_question_in_words_for_every_kind_of_cardinality():
    X = np.random.default_rng(0).standard_normal((20, 5))
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=[2, 1], scale=True, certify=False)
    assert "scaled to unit variance" in str(result)
    assert "at most 2, 1 nonzeros" in " ".join(str(result).split())
    one = sparse_pca(X, n_components=1, n_nonzero_coefs={"total": 2}, certify=False)
    assert one.supports[0].size <= 2
    several = sparse_pca(X, n_components=2, n_nonzero_coefs={"total": 3}, certify=False)
    assert "at most 3 nonzeros in all" in " ".join(str(several).split())
