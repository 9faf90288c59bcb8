"""One page on an answer: each sentence follows from the data, and what is not known says so."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sparcipal import (
    SparsePCA,
    alternatives,
    choose,
    explain,
    sparse_path,
    sparse_pca,
    stability,
)
from sparcipal.problem.answers import Cost
from sparcipal.report.answers import Best, overview, withouts
from sparcipal.report.summary import related
from sparcipal.report.words import facts


def planted(n=60, p=9, seed=0):
    """Two blocks of three features among noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, :3] += 3.0 * rng.standard_normal((n, 1))
    X[:, 3:6] += 2.0 * rng.standard_normal((n, 1))
    return X


NAMES = ["<a>", "b", "c", "d", "e", "f", "g", "h", "i"]


@pytest.fixture(scope="module")
def asked():
    X = planted()
    return X, sparse_pca(X, n_components=2, n_nonzero_coefs=3, feature_names=NAMES)


def best_without(X, feature, s):
    """The largest eigenvalue over all supports of s features without one, by enumeration."""
    from itertools import combinations

    A = np.cov(X, rowvar=False, bias=True)
    left = [j for j in range(A.shape[0]) if j != feature]
    return max(np.linalg.eigvalsh(A[np.ix_(c, c)])[-1] for c in combinations(left, s))


def test_costs_enclose_what_enumeration_finds():
    X = planted()
    result = sparse_pca(X, n_nonzero_coefs=3, feature_names=NAMES)
    page = explain(result, X)
    told = json.loads(page.to_json())["components"][0]["without"]
    assert sorted(cost["feature"] for cost in told) == ["<a>", "b", "c"]
    for cost in told:
        lost = 1 - best_without(X, NAMES.index(cost["feature"]), 3) / result.value
        assert cost["at_least"] - 1e-9 <= lost <= cost["at_most"] + 1e-9
        assert cost["at_least"] > 0.1
    sure = page.sections["How sure each feature is"]
    assert any(line.startswith("no answer without b comes within") for line in sure)
    assert page.complete


def test_page_of_several_components_has_the_share_of_the_estimator(asked):
    X, result = asked
    page = explain(result, X, within=0.05, stability=4)
    model = SparsePCA(n_components=2, n_nonzero_coefs=3).fit(X)
    assert page.share == pytest.approx(model.score(X))
    assert page.correlations == pytest.approx(np.corrcoef(model.transform(X), rowvar=False))
    assert page.complete
    assert page.stability.n_resamples == 4
    assert list(page.sections) == [
        "What was found",
        "How sure each feature is",
        "What else could be in",
        "How much is explained together",
        "What other rows would give",
    ]
    near = alternatives(result, X, within=0.05, force=3)
    told = json.loads(page.to_json())
    assert [c["nearby"] for c in told["components"]] == [n.count for n in near.components]
    assert {c["feature"] for c in told["without"]} == set("bcdef") | {"<a>"}
    assert "<a>" not in page.to_html()
    assert "&lt;a&gt;" in page.to_html()
    assert page._repr_html_() in page.to_html()
    assert "all together: no answer without d comes within" in str(page)


def test_components_whose_neighbours_hold_all_other_features_have_no_choice():
    X = planted()[:, :6]
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=3, feature_names=NAMES[:6])
    told = str(explain(result, X))
    assert "nothing to choose: the other components hold every other feature" in told
    assert "unique" not in told
    assert "in none" not in told


def test_components_that_repeat_each_other_are_named():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 1)) + 0.3 * rng.standard_normal((80, 6))
    page = explain(sparse_pca(X, n_components=2, n_nonzero_coefs=3), X)
    assert "Components 1 and 2 (" in str(page)
    assert "say nearly the same" in str(page)


@pytest.mark.parametrize(
    ("keywords", "why"),
    [
        ({"n_components": 2, "n_nonzero_coefs": 3, "supports": "common"}, "supports='disjoint'"),
        ({"n_components": 2, "n_nonzero_coefs": {"total": 5}}, "n_nonzero_coefs=[3, 2]"),
        ({"n_nonzero_coefs": 3, "missing": "pairwise"}, "estimated from other rows"),
    ],
)
def test_a_question_without_an_answer_is_a_sentence(keywords, why):
    X = planted()
    if "missing" in keywords:
        X[0, 0] = np.nan
    result = sparse_pca(X, certify=False, **keywords)
    page = explain(result, X)
    assert page.alternatives is None or not page.alternatives.components
    assert why in " ".join(page.sections["How sure each feature is"])
    if keywords.get("missing") == "pairwise":  # a covariance of pairs has no rows to score
        assert np.isnan(page.share)
        with pytest.raises(ValueError, match="missing='pairwise'"):
            explain(result, X, stability=2)
    else:
        assert 0.0 < page.share < 1.0
    assert json.loads(page.to_json())["unanswered"] == page.unanswered


def test_tables_that_are_read_in_passes_are_explained():
    X = planted(n=400, p=200)
    blocks = lambda: iter([X[:200], X[200:]])  # noqa: E731
    result = sparse_pca(blocks, n_nonzero_coefs=3, memory_limit=200_000, certify=False)
    page = explain(result, blocks, memory_limit=200_000)
    assert page.alternatives.complete
    assert page.share == pytest.approx(explain(result, X, force=0).share)


def test_a_covariance_has_no_rows_to_ask(asked):
    X, _ = asked
    A = np.cov(X, rowvar=False)
    result = sparse_pca(covariance=A, n_nonzero_coefs=3)
    page = explain(result, covariance=A)
    assert np.isnan(page.share)
    assert json.loads(page.to_json())["share"] is None
    assert "How much is explained together" not in page.sections
    with pytest.raises(ValueError, match="stability=4 needs the rows"):
        explain(result, covariance=A, stability=4)


def test_what_is_known_when_it_is_stopped_is_marked_incomplete(asked):
    X, result = asked
    page = explain(result, X, stability=4, callback=lambda progress: True)
    assert not page.complete
    assert page.stability is None
    assert "This page is incomplete" in str(page)
    assert "Incomplete: stopped by the user." in page.sections["How sure each feature is"]
    assert page.sections["What other rows would give"][0].startswith("Incomplete")
    assert json.loads(page.to_json())["complete"] is False


def test_explain_refuses_bad_input_by_the_name_of_the_parameter(asked):
    X, result = asked
    with pytest.raises(TypeError, match="given is a ndarray"):
        explain(X, X)
    with pytest.raises(ValueError, match="within"):
        explain(result, X, within=2.0)
    with pytest.raises(ValueError, match="stability=1"):
        explain(result, X, stability=1)
    with pytest.raises(ValueError, match="n_features=9, but the data have 8"):
        explain(result, X[:, :8])
    with pytest.raises(ValueError, match="no feature '<a>', but the result has"):
        explain(result, X, feature_names=[*NAMES[1:], "z"])
    with pytest.raises(ValueError, match="the data that it came from"):
        explain(result, X + planted(seed=1))
    with pytest.raises(TypeError, match=r"leave out costs .*drop for the costs"):
        alternatives(result, X, costs=False)


def test_other_numbers_of_components_and_nonzeros_are_compared():
    X = planted()
    page = explain(sparse_pca(X, n_nonzero_coefs=2), X, force=0, choice=True)
    first, tried, reason = page.sections["How many components and nonzeros"]
    assert all(f" {pair} " in tried for pair in ("1 x 1", "1 x 2", "1 x 4", "2 x 2"))
    assert first.startswith("1 x 2, as asked, explains")
    assert reason == page.choice.reason
    assert json.loads(page.to_json())["choice"]["recommended"] == list(page.choice.best)
    assert (
        explain(sparse_pca(covariance=np.eye(3)), covariance=np.eye(3), choice=True).choice is None
    )


def test_why_other_numbers_are_not_compared_is_said():
    X = planted()
    page = explain(sparse_pca(X, n_nonzero_coefs=2, include=[5]), X, force=0, choice=True)
    (line,) = page.sections["How many components and nonzeros"]
    assert line.startswith("Not known: ")
    assert "required (include)" in line
    assert json.loads(page.to_json())["uncompared"] == page.uncompared


def test_gaps_that_the_answer_does_not_know_are_no_question_of_missing(asked):
    X, result = asked
    gaps = X.copy()
    gaps[0, 0] = np.nan
    for ask in (alternatives, explain):
        with pytest.raises(ValueError, match="pass the data that the result came from") as told:
            ask(result, gaps)
        assert "missing=" not in str(told.value)


def test_other_supports_are_told_by_what_they_lose(asked):
    X, result = asked
    page = explain(result, X, within=0.9, force=0)
    told = page.sections["What else could be in"]
    assert all(" less: " in line or " more" in line or " costs " in line for line in told)
    near = page.alternatives.components[0]
    share = 100 * (1 - near.supports[1].value / near.supports[0].value)
    percent = float(told[0].split(": ")[1].split(" %")[0])
    assert percent <= share <= percent * 1.01 + 1e-9  # rounded down, as beside "unique"
    html = page.to_html()
    assert "<h1>2 sparse components" in html


def test_components_without_a_choice_are_told_once():
    X = planted(p=6)
    page = explain(sparse_pca(X, n_components=2, n_nonzero_coefs=3), X, force=0)
    assert str(page).count("nothing to choose") == 1


def test_other_numbers_are_compared_within_the_time_limit(asked):
    X, result = asked
    page = explain(result, X, choice=True, time_limit=1e-6)
    assert page.choice is None
    assert page.stopped
    assert not page.complete


def test_all_that_is_wrong_is_in_one_error(asked):
    X, result = asked
    with pytest.raises(ValueError, match="5 problems") as told:
        explain(result, X, within=2.0, force=-1, stability=1, choice=3, time_limit=-1)
    for name in ("within", "force", "stability", "choice", "time_limit"):
        assert name in str(told.value)
    with pytest.raises(ValueError, match="4 problems") as told:
        alternatives(X, within=-1, most=0, force=-2, n_nonzero_coefs=0)
    assert "n_nonzero_coefs" in str(told.value)
    with pytest.raises(ValueError, match="4 problems") as told:
        stability(X, scheme="thirds", n_resamples=1, level=2, tol=-1)
    assert "scheme" in str(told.value)
    with pytest.raises(ValueError, match="4 problems") as told:
        choose(X, n_components=[0], n_nonzero_coefs=[], folds=1, nonnegative="yes")
    assert "folds" in str(told.value)
    with pytest.raises(ValueError, match="3 problems") as told:
        sparse_path(X, n_nonzero_coefs=[0, 2], certify="maybe", tol=7)
    assert "certify" in str(told.value)
    with pytest.raises(ValueError, match="2 problems") as told:
        sparse_path(X, n_nonzero_coefs=[2, 4000], exclude=["nowhere"])
    assert "nowhere" in str(told.value)


def test_a_component_that_a_stop_left_out_is_not_answered_yet(asked):
    X, result = asked
    near = alternatives(
        result, X, within=0.9, most=1, callback=lambda progress: progress.stage == "alternatives"
    )
    assert near.status == "interrupted"  # though the first list was full before
    text = str(near)
    assert "component 2, the others as they are: not answered yet" in text
    assert "incomplete: stopped by the user" in text


def test_losses_are_of_this_answer_where_the_best_is_not_known():
    X = planted(p=6)
    asked = {"n_components": 2, "n_nonzero_coefs": 2}
    for more, whose in (({}, "the best"), ({"supports": "free", "certify": False}, "this answer")):
        result = sparse_pca(X, **asked, **more)
        page = explain(result, X, force=0)
        told = [line for line in page.sections["How sure each feature is"] if "without" in line]
        assert told
        assert all(f" of {whose}" in line for line in told)


def test_joint_costs_that_cannot_be_say_why():
    X = planted(p=6)
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=3)
    page = explain(result, X, force=0)
    line = page.sections["How sure each feature is"][-1]
    assert line.startswith("all components together: they may use all 6 features")
    assert line in str(page.alternatives).replace("\n", " ")


def test_page_says_what_was_filled():
    X = planted()
    X[0, 0] = np.nan
    page = explain(sparse_pca(X, n_nonzero_coefs=2, missing="mean"), X)
    assert any("filled with the mean" in line for line in page.sections["What was found"])


@pytest.mark.parametrize(
    ("size", "said"), [(0.1, "correlate little"), (0.45, "by -0.45"), (0.6, "partly the same")]
)
def test_words_on_correlations_follow_their_size(size, said):
    assert said in related(np.array([[1.0, -size], [-size, 1.0]]))


def test_copies_that_are_all_in_are_not_offered_for_exchange():
    A = np.diag([4.0, 4.0, 1.0, 1.0])
    A[0, 1] = A[1, 0] = 3.0
    found = alternatives(covariance=A, n_nonzero_coefs=3)
    groups = (np.array([0, 1]), np.array([2, 3]))
    near = replace(found.components[0], groups=groups)
    told = [line for line in overview(found, near) if line.startswith("can be exchanged")]
    assert told == ["can be exchanged: x2, x3"]


def test_a_certificate_that_reports_advice_alone_says_where_it_stands(asked):
    bare = replace(asked[1].certificate, nodes=0, eliminated=0, message="Ask for more.")
    assert facts(bare)[-1][2] == "by the solver, not part of the proof: the advice below"


@pytest.mark.parametrize(("many", "sentences"), [(10, 10), (11, 6), (40, 6)])
def test_costs_of_many_features_are_a_few_sentences(many, sentences):
    X = np.random.default_rng(0).standard_normal((60, 40))
    result = sparse_pca(X, n_nonzero_coefs=1, certify=False)
    found = alternatives(result, X, drop=False, force=0)
    best = Best(1.0, 0.0)
    costs = [Cost(j, 0.5 + j / 100, 0.95, None) for j in range(many)]
    lines = list(withouts(found, costs, best, "the best"))
    assert len(lines) == sentences
    if many > 10:
        assert lines[-1].startswith("without one of the others the best loses (proved; from least")
        assert "these differ): x5 5 to 45 %, x6 " in lines[-1]
    assert ("and 15 more, the last 5" in lines[-1]) == (many == 40)
