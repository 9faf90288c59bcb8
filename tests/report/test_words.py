"""Sentences that every face shares."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from sparcipal import compare, sparse_pca, verify
from sparcipal.problem.result import Status
from sparcipal.report import summary, words
from sparcipal.report.page import _headline, _short
from sparcipal.report.terminal import result_view

rng = np.random.default_rng(0)


X = rng.standard_normal((30, 5))


def test_words_tell_signs_and_screened_features():
    result = sparse_pca(X, n_nonzero_coefs=2, nonnegative=True, certify=False)
    assert "nonnegative" in str(result)
    still = np.column_stack([X[:, :4], np.ones(30)])
    streamed = sparse_pca(still, n_nonzero_coefs=2, memory_limit=1, certify=False)
    kept = words.screening(streamed.certificate)
    assert kept == [("kept", "4", "features: all that vary")]
    assert words.screening(result.certificate) == []
    wide = rng.integers(-9, 10, (40, 30))
    some = sparse_pca(lambda: iter([wide]), n_nonzero_coefs=2, memory_limit=1, certify=False)
    kept, dropped, *_ = words.screening(some.certificate)
    assert kept == ("kept", "4", "of 30 features that vary, searched")
    assert dropped[:2] == ("dropped", "26")
    assert "variance" not in dropped[2].split(";")[0]


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-11, 3e-10, 1e-7, 0.00038, 0.03, 0.4])
def test_value_bound_and_gap_agree_in_the_digits_that_are_printed(gap):
    for value in (7.333757223, 4.0, 1e-9 / 3, 2.5e11):
        low, high = (float(text) for text in words.figures(value, value * (1 + gap)))
        assert abs((high - low) / low - gap) <= 0.1 * gap + 1e-11
        assert low <= value * (1 + 1e-10)
        assert high >= value * (1 + gap) * (1 - 1e-10)


def test_a_bound_is_called_by_what_it_is_and_by_its_name():
    assert words.bound_name("tree") == "branch and bound (tree)"
    assert words.bound_name("unheard-of") == "unheard-of"


def test_a_feature_with_nearly_all_of_the_variance_is_named():
    unequal = X * [1000.0, 1, 1, 1, 1]
    assert "one feature, x0, has nearly all" in str(sparse_pca(unequal, n_nonzero_coefs=2))
    assert "one feature" not in str(sparse_pca(unequal, n_nonzero_coefs=2, scale=True))
    assert "one feature" not in str(sparse_pca(X, n_nonzero_coefs=2))


def test_a_large_tolerance_does_not_make_an_answer_the_best():
    A = np.random.default_rng(0).standard_normal((30, 12))
    result = sparse_pca(A, n_nonzero_coefs=3, tol=0.9, certify=False)
    assert result.status.value == "optimal"
    assert words.verdict(result.certificate).headline.startswith(("Within", "At least"))


# --- words that are true only under conditions ---

TABLE = np.random.default_rng(1).standard_normal((12, 30))
NEAR = sparse_pca(TABLE, n_nonzero_coefs=3, tol=0.5, certify=False)
LIMITED = sparse_pca(TABLE, n_nonzero_coefs=3, exclude=[0, 1], include=[5])


@pytest.mark.parametrize("said", [repr, str, summary.proved, lambda r: verify(r, TABLE).reason])
def test_words_do_not_call_an_answer_optimal_that_is_only_within_a_large_tolerance(said):
    assert NEAR.status == "optimal"
    assert NEAR.gap > 0.01
    words_ = said(NEAR)
    assert "optimal" not in words_
    assert "the best there is" not in words_
    assert "explain more, to within" not in words_


def test_the_best_is_so_to_within_a_gap_that_rounding_does_not_explain():
    certificate = replace(LIMITED.certificate, value=1.0, bound=1 + 2.0**-21, status=Status.OPTIMAL)
    result = replace(LIMITED, certificate=replace(certificate, tol=1e-6))
    assert summary.proved(result).startswith("To within 0.001 % this is the best there is: ")
    assert _short(result.certificate) == "the best"
    assert _headline(result.certificate) == "Best possible (proved), to within 0.001 %"
    assert _headline(replace(result.certificate, bound=1.0)) == "Best possible (proved)"
    open_ = replace(result.certificate, status=Status.GAP)
    assert _short(open_) == "≤ 0.001 % off"
    assert words.verdict(open_).headline == "Within 0.001 % of the best possible (proved)"
    assert ("gap", "4.77e-05 %", "(bound - value) / value") in words.facts(open_)


@pytest.mark.parametrize("said", [repr, str, summary.proved, lambda r: verify(r, TABLE).reason])
def test_words_say_that_features_are_excluded_and_required(said):
    words_ = said(LIMITED)
    assert re.search(r"2 features (are )?excluded", words_)
    assert re.search(r"1 feature (is )?required", words_)


def test_claims_name_the_features_that_are_excluded_and_required():
    X = np.random.default_rng(0).standard_normal((30, 8))
    asked = {"include": [["f"], ["g", "h"]], "exclude": ["a", "b", "c", "d"]}
    names = [*"abcdefgh"]
    two = sparse_pca(X, n_components=2, n_nonzero_coefs=2, feature_names=names, **asked)
    limits = ["4 features excluded (a, b, c and 1 more)", "3 features required (f, g, h)"]
    assert words.limits(two) == limits
    one = sparse_pca(X, n_nonzero_coefs=2, feature_names=names, exclude=["e"])
    assert "1 feature excluded (e)" in str(one)
    assert "no other choice with 1 feature excluded (e) captures more" in summary.proved(one)


def test_comparison_says_that_its_bound_is_for_the_features_that_are_left():
    table = compare(TABLE, ["threshold"], n_nonzero_coefs=3, exclude=[0, 1])
    assert "no value with 2 features excluded (x0, x1) can exceed" in str(table)
    assert "no value can exceed" in str(compare(TABLE, ["threshold"], n_nonzero_coefs=3))


def test_question_names_the_kind_of_components():
    few = TABLE[:, :6]
    told = words.question(sparse_pca(few, n_components=2, n_nonzero_coefs=2, supports="free"))
    assert told.endswith("free supports, adjusted variances")
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "uncorrelated": True}
    assert "uncorrelated" in words.question(sparse_pca(few, **asked))


def test_required_features_of_loading_zero_are_named():
    Z = X.copy()
    Z[:, 1] = -Z[:, 0] + 0.1 * Z[:, 1]
    result = sparse_pca(Z, n_nonzero_coefs=2, nonnegative=True, include=[0, 1], certify=False)
    (hidden,) = {0, 1} - set(result.supports[0].tolist())
    assert words.told(result) == [f"required, loading 0: x{hidden}"]
    assert "required, loading 0" in str(result)


def test_notes_of_a_file_are_told_as_such_on_every_line():
    """A file may hold any notes, the headline of a proof among them."""
    headline = "Best possible (proved): no components of this kind explain more"
    result = sparse_pca(X, n_nonzero_coefs=2, certify=False)
    result = replace(result, info={"notes": [headline, "so " * 33 + headline]})
    assert words.told(result)[0] == f"note of the fit: {headline}"
    shown = Console(width=117)
    with shown.capture() as capture:
        shown.print(result_view(result))
    for text in (str(result), capture.get()):
        head = text.split("variance")[0]
        assert head.count("Best possible") == 2
        assert "\nBest possible" not in head


def test_the_best_sum_is_not_called_the_most_that_can_be_captured():
    """Two components that share variance: another choice may explain more, counted once."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((40, 1)) + 0.5 * rng.standard_normal((40, 4))
    asked = {"n_components": 2, "n_nonzero_coefs": 2}
    summed = sparse_pca(shared, **asked)
    assert summed.adjusted_variance < 0.95 * summed.value
    assert "no other choice has a larger sum of variances" in summary.proved(summed)
    alone = sparse_pca(shared, n_nonzero_coefs=2)
    assert "no other choice captures more" in summary.proved(alone)


def test_the_correlation_of_two_scores_keeps_its_sign():
    told = summary.related(np.array([[1.0, -0.34], [-0.34, 1.0]]))
    assert "correlate by -0.34" in told
    assert "share" not in told


COPIES = np.random.default_rng(0).standard_normal((60, 2)) @ [[1, 1, 0.9, 0.9], [0, 0, 0.3, 0.3]]


def test_what_repeated_components_explain_has_three_figures_each_with_its_name():
    result = sparse_pca(COPIES, n_components=2, n_nonzero_coefs=2)
    assert words.repeated(result)
    lead = " ".join(summary.sentences(result))
    new = words.share_percent(result.adjusted_variance / result.total_variance)
    assert "have variances that add up to 100.0 % of the variance of all features" in lead
    assert f"new in each beyond those before it adds up to {new} (adjusted variance)" in lead
    assert f"{new} of all variance (adjusted variance)" in words.redundancy(result)[0]
    told = summary.together(result, 1.0)
    assert told[0].endswith(
        "explains 100.0 % of the variance of all features (explained together)."
    )
    assert "a third figure" in told[1]
    apart = sparse_pca(TABLE, n_components=2, n_nonzero_coefs=2)
    assert not words.repeated(apart)
    assert "capture" in summary.sentences(apart)[1]
    assert len(summary.together(apart, 0.3)) == 1
