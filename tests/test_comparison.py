"""compare: one table, one proof, and honest rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparcipal import compare
from sparcipal.comparison import Row, _judged, overlap
from tests.support.places import data_file


def a_table(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((25, 12))


def test_rows_are_judged_by_the_same_bound():
    table = compare(a_table(), ["threshold", "tpower", "auto"], n_nonzero_coefs=3)
    assert [row.label for row in table.rows] == ["threshold", "tpower", "auto"]
    for row in table.rows:
        assert row.value <= table.bound
        assert row.gap == pytest.approx(table.bound / row.value - 1)
        (support,) = row.supports
        A = np.cov(a_table().T, bias=True)[np.ix_(support, support)]
        assert row.value == pytest.approx(np.linalg.eigvalsh(A)[-1])
    assert table.best.value == table["auto"].value
    assert table["auto"].gap <= 1e-6


def test_options_make_a_row_of_their_own():
    methods = [("gpower", {"norm": "l0"}), ("gpower", {"norm": "l1"})]
    table = compare(a_table(), methods, n_nonzero_coefs=3, certify=False)
    assert [row.label for row in table.rows] == ["gpower (norm=l0)", "gpower (norm=l1)"]


def test_a_method_that_cannot_answer_says_why():
    table = compare(a_table(), ["nspca", "tpower"], n_nonzero_coefs=3, certify=False)
    assert math.isnan(table["nspca"].value)
    assert "nonnegative=True" in table["nspca"].note
    assert "nonnegative=True" in str(table)
    assert np.isnan(table.agreement[0]).all()
    assert table.best.label == "tpower"


def test_when_nobody_can_answer_the_reason_is_raised():
    with pytest.raises(ValueError, match="n_nonzero_coefs"):
        compare(a_table(), ["threshold", "tpower"], n_nonzero_coefs=99)


def test_bad_requests_are_refused_before_anything_runs():
    with pytest.raises(ValueError, match="methods='magic'"):
        compare(a_table(), ["tpower", "magic"])
    with pytest.raises(ValueError, match="methods is empty"):
        compare(a_table(), [])
    with pytest.raises(ValueError, match="twice"):
        compare(a_table(), ["tpower", "tpower"])
    with pytest.raises(ValueError, match="not method"):
        compare(a_table(), ["tpower"], method="auto")
    with pytest.raises(KeyError, match="there are tpower"):
        compare(a_table(), "tpower", certify=False)["em"]


def test_overlap_pairs_the_components_that_share_most():
    ones = (np.array([0, 1, 2]), np.array([3, 4]))
    others = (np.array([3, 4]), np.array([1, 2, 5]))
    assert overlap(ones, others) == pytest.approx((1 + 0.5) / 2)


def test_table_prints_as_text_markdown_and_records():
    table = compare(a_table(), ["threshold", "tpower"], n_nonzero_coefs=3)
    assert str(table).splitlines()[-1].startswith("no value can exceed")
    assert len(table.markdown().splitlines()) == 4
    records = table.records()
    assert records[1]["nonzeros"] == [3]
    assert {"method", "value", "of_best", "gap", "seconds", "note"} <= set(records[0])


@pytest.mark.parametrize(("name", "k", "s"), [("wine", 1, 5), ("wine", 4, 3), ("miniboone", 2, 5)])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_auto_is_at_least_as_good_as_every_baseline(name, k, s, nonnegative):
    A = np.load(data_file("benchmark_correlations.npz"))[name]
    methods = ["threshold", "tpower", "em", "gpower", "greedy", "spca", "dspca", "auto"]
    if nonnegative:
        methods.insert(0, "nspca")
    table = compare(
        covariance=A,
        methods=methods,
        n_components=k,
        n_nonzero_coefs=s,
        nonnegative=nonnegative,
        certify=False,
    )
    assert table["auto"].value >= table.best.value * (1 - 1e-12)


rng = np.random.default_rng(0)


X = rng.standard_normal((30, 5))


def test_gap_of_a_row_without_a_value_is_infinite_or_zero():
    row = Row("x", "em", 0.0, float("nan"), 1.0, "", None)
    assert _judged(row, 2.0).gap == np.inf
    assert _judged(row, 0.0).gap == 0.0
    found = compare(X, n_nonzero_coefs=2, methods=["threshold"], certify=False)
    assert found.rows[0].gap >= 0.0


def test_comparison_says_gaps_in_words_when_they_are_infinite_or_tiny():
    module = __import__("sparcipal.comparison", fromlist=["_percent"])
    assert [module._percent(g) for g in (math.inf, 1e-13, 0.0125)] == [
        "unproved",
        "< 1e-9 %",
        "1.25 %",
    ]


def test_shares_of_the_best_value_are_rounded_down():
    module = __import__("sparcipal.comparison", fromlist=["_share"])
    said = [module._share(part) for part in (1.0, 1.0 - 1e-15, 0.99999, 0.5, math.nan)]
    assert said == ["100.00 %", "100.00 %", "99.99 %", "50.00 %", "-"]
