"""The rounding terms of both sides: the page, the solver's formulas, what the checker proves."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from sparcipal import Result
from sparcipal.checker.arithmetic import Arithmetic, Float
from sparcipal.checker.budget import Budget
from sparcipal.checker.covariance import Question
from sparcipal.checker.exact_covariance import exactly
from sparcipal.checker.family import FAMILIES, Case, redone
from sparcipal.checker.margins import TERMS
from sparcipal.checker.margins import term as checker_term
from sparcipal.checker.moments import covariance_for
from sparcipal.checker.tables import source_of
from sparcipal.numerics import margins
from tests.support import forgeries

PAGE = Path(__file__).parents[2] / "docs" / "methods" / "rounding.rst"
SIZES = {"m": 7, "n": 11, "k": 3, "p": 13, "s": 5, "r": 6}
# The formula of each line of the table, in its order: its name on both sides, and the sizes.
FORMULAS = [
    ("sum_of", "m"),
    ("ky_fan", "nk"),
    ("gram", "p"),
    ("row_sums", "sk"),
    ("frobenius", "ms"),
    ("charges", "s"),
    ("support", "m"),
    ("sum_of", "k"),
    ("lowered", "mr"),
    ("moved", "m"),
    ("claim", ""),
    ("majorant", "r"),
    ("alike", "s"),
    ("outside", "s"),
    ("priced", "n"),
    ("sketch", "p"),
    ("whitened", "n"),
    ("dual_claim", ""),
    ("greedy_entry", ""),
]


def lines() -> list[tuple[list[str], int]]:
    """The bounds and the term of every line of the table."""
    page = PAGE.read_text().split("What each bound adds of its own")[1]
    found = []
    for row in page.split("\nA ``tree`` also claims")[0].split("   * - ")[2:]:
        names, _, term = row.strip().split("\n     - ")
        found.append((re.findall("``([^`]*)``", names), eval(term.strip().strip("`"), {}, SIZES)))
    return found


def test_the_page_states_the_formulas_of_both_sides():
    table = lines()
    assert len(table) == len(FORMULAS)
    for (names, term), (name, sizes) in zip(table, FORMULAS):
        given = [SIZES[size] for size in sizes]
        assert getattr(margins, name)(*given) == term * margins.EPS, names
        assert checker_term(name, *given) == term, names
    assert set().union(*(names for names, _ in table)) == set(FAMILIES)
    assert set(TERMS) == {name for name, _ in FORMULAS}


def question_of(result: Result) -> Question:
    settings = result.settings
    shared = settings["supports"]
    return Question(
        tuple(settings["n_nonzero_coefs"]),
        settings["nonnegative"],
        shared == "disjoint" or settings["n_components"] == 1,
        0.0,
        settings.get("n_nonzero_total"),
        shared=shared if shared != "disjoint" else "free",
        adjusted=settings["objective"] == "adjusted",
    )


def proved(subject: forgeries.Subject, result: Result, ar: Arithmetic) -> list[float]:
    """What each bound of a result proves in this arithmetic, in the user's units."""
    weights, matrix = subject.given.get("sample_weight"), subject.given.get("covariance")
    source = None if matrix is not None else source_of(np.asarray(subject.given["X"]))
    excluded = np.array(result.settings.get("exclude") or (), dtype=np.intp)
    found = []
    with ar.running():
        form = partial(exactly, budget=Budget()) if ar.exact else covariance_for
        whole = form(result, source, matrix, weights)
        for bound in result.certificate.bounds:
            own = {key: x for key, x in bound.data.items() if key != "kept"}
            kept = bound.data.get("kept")
            cov = whole if kept is None else whole.restrict(np.asarray(kept), excluded)
            case = Case(cov, question_of(result), ar, Budget())
            found.append(ar.upper(redone(bound.name, own, case)) * result.certificate.unit)
    return found


def test_what_the_checker_proves_lies_between_the_exact_bound_and_the_claim(subjects):
    """For every family, and what both sides add is next to nothing beside the claim.

    Claims of trees are levels, and may be above what is needed.
    """
    exact = pytest.importorskip("sparcipal.checker.exact")
    seen = set()
    for subject in subjects:
        if subject.judge is forgeries.looked_through:
            continue
        document = json.loads(subject.document)
        settings = document["settings"]
        if (
            settings.get("missing")
            or settings.get("include")
            or document["certificate"]["screening"]
        ):
            continue
        result = Result.from_json(subject.document)
        both = proved(subject, result, exact.Ball()), proved(subject, result, Float())
        for bound, low, own in zip(result.certificate.bounds, *both):
            seen.add(bound.name)
            assert low * (1 - 4 * margins.EPS) <= own <= bound.value, (subject.name, bound.name)
            if bound.name not in ("tree", "configuration", "labels", "lowrank", "neighbour"):
                assert bound.value - low <= 1e-5 * bound.value, (subject.name, bound.name)
    assert seen == set(FAMILIES)
