"""Stability over resamples: planted blocks come back, intervals and thresholds are known ones."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import sparse_pca, stability
from sparcipal.questions.resampling import Stability, wilson
from sparcipal.report.answers import stability_html


def planted(n=80, p=40, seed=0):
    """Two blocks of three features among noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, :3] += 3.0 * rng.standard_normal((n, 1))
    X[:, 10:13] += 2.0 * rng.standard_normal((n, 1))
    return X


@pytest.mark.parametrize("scheme", ["halves", "bootstrap"])
def test_planted_blocks_come_back_in_every_resample(scheme):
    found = stability(
        planted(), scheme=scheme, n_components=2, n_nonzero_coefs=3, n_resamples=6, certify=False
    )
    assert found.n_resamples == 6
    assert found.complete
    np.testing.assert_array_equal(found.frequencies[0, :3], 1.0)
    np.testing.assert_array_equal(found.frequencies[1, 10:13], 1.0)
    np.testing.assert_array_equal(found.jaccard, 1.0)
    assert found.frequencies.sum() == pytest.approx(6.0)


def test_noise_does_not_come_back():
    X = np.random.default_rng(1).standard_normal((60, 60))
    found = stability(X, n_nonzero_coefs=3, n_resamples=10, certify=False)
    assert found.jaccard.mean() < 0.5
    assert found.selected.size == 0


def test_selection_obeys_the_stated_bound():
    found = stability(
        planted(), n_components=2, n_nonzero_coefs=3, n_resamples=4, certify=False,
        false_selections=2.0,
    )  # fmt: skip
    q, p = 6, 40
    assert pytest.approx(q**2 / ((2 * found.threshold - 1) * p)) == 2.0
    assert found.selected.tolist() == [0, 1, 2, 10, 11, 12]
    assert "at most 2 of them false on average, if" in found.sentence
    assert (
        "6 of them false on average: all of these could be"
        in replace(found, false_selections=6.0).sentence
    )
    hopeless = stability(planted(p=13), n_nonzero_coefs=6, n_resamples=2, certify=False)
    assert hopeless.threshold > 1
    assert hopeless.selected.size == 0
    assert "No feature can be selected, however often it came back: a half" in hopeless.sentence
    assert "let stability allow 3 false ones" in hopeless.sentence
    noise = np.random.default_rng(1).standard_normal((40, 30))
    rare = stability(noise, n_nonzero_coefs=2, n_resamples=8, certify=False, random_state=0)
    assert rare.threshold <= 1
    assert rare.selected.size == 0
    assert "None is selected: that needs a feature" in str(rare)


def test_what_was_filled_or_set_aside_is_said():
    X = planted(p=13)
    X[0, 0], X[:, 12] = np.nan, 1.0
    found = stability(X, n_nonzero_coefs=2, n_resamples=2, certify=False, missing="mean")
    assert "1 missing entries: filled" in str(found) or "1 missing entry: filled" in str(found)
    assert "(constant)" in str(found)


def test_interval_is_where_the_score_test_does_not_reject():
    """Its ends solve |share - t| = z sqrt(t (1 - t) / n)."""
    z, n = NormalDist().inv_cdf(0.975), 20
    share = np.array([0.0, 0.15, 0.5, 1.0])
    low, high = wilson(share, n, 0.95)
    for end in (low, high):
        inside = (end > 1e-12) & (end < 1 - 1e-12)
        distance = np.abs(share - end)[inside]
        assert distance == pytest.approx(z * np.sqrt(end * (1 - end) / n)[inside])
    assert low[0] == 0.0
    assert high[-1] == pytest.approx(1.0)


def test_resamples_do_not_depend_on_threads_or_container():
    X = np.round(4 * planted())
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "n_resamples": 2, "certify": False}
    one = stability(X, **asked)
    for other in (
        stability(X, n_jobs=2, **asked),
        stability(sp.csr_array(X), **asked),
        stability(lambda: iter([X[:30], X[30:]]), memory_limit=20_000, **asked),
    ):
        np.testing.assert_array_equal(one.frequencies, other.frequencies)


def test_weights_of_rows_are_kept():
    X = planted()
    weights = np.repeat([1.0, 0.0], 40)
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "n_resamples": 2, "certify": False}
    found = stability(X, sample_weight=weights + 1e-3, **asked)
    assert found.reference.settings["sample_weight"]
    assert found.frequencies.sum() == pytest.approx(6.0)


def test_stopped_run_says_so():
    calls = iter(range(10**6))
    found = stability(
        planted(), n_nonzero_coefs=3, n_resamples=20, certify=False,
        callback=lambda progress: progress.stage == "stability" and next(calls) == 2,
    )  # fmt: skip
    assert not found.complete
    assert 0 < found.n_resamples < 20
    assert str(found).startswith(f"Stopped after {found.n_resamples} of 20 resamples.")


def test_questions_that_make_no_sense_are_refused():
    X = planted()
    with pytest.raises(ValueError, match="scheme='thirds' is unknown"):
        stability(X, scheme="thirds")
    with pytest.raises(ValueError, match="n_resamples=1 must be at least 2"):
        stability(X, n_resamples=1)
    with pytest.raises(ValueError, match=r"level=2\.0 must lie in .* write 0\.95 for 95 %"):
        stability(X, level=2)
    with pytest.raises(TypeError, match=r"stability\(\).* 'resamples'; did you mean 'n_resamples'"):
        stability(X, resamples=10)
    with pytest.raises(ValueError, match="X has 3 rows, but resamples need at least 4"):
        stability(X[:3], n_nonzero_coefs=2)


def test_picture_has_a_panel_per_component():
    pytest.importorskip("matplotlib").use("Agg")
    found = stability(
        planted(), n_components=2, n_nonzero_coefs=3, n_resamples=4, certify=False,
        false_selections=3,
    )  # fmt: skip
    display = found.plot()
    assert [ax.get_title(loc="left") for ax in display.axes_] == [
        "component 1\nmean overlap 1.00",
        "component 2\nmean overlap 1.00",
    ]
    assert [t.get_text() for t in display.axes_[0].get_yticklabels()] == ["x0", "x1", "x2"]


@pytest.mark.parametrize("calls", [1, 5])
def test_stability_of_a_run_that_was_stopped_counts_whole_pairs(calls):
    X = np.random.default_rng(0).standard_normal((40, 6))
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(seen) >= calls

    found = stability(X, n_nonzero_coefs=2, n_resamples=6, callback=stop)
    assert not found.complete
    assert found.n_resamples % 2 == 0
    assert found.jaccard.shape == (found.n_resamples, 1)
    assert "Stopped after" in str(found)


@pytest.mark.parametrize("scheme", ["halves", "bootstrap"])
def test_every_resample_is_a_fit_of_its_rows_matched_by_supports(scheme):
    X, n = planted(61, 8), 61
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "scale": True, "certify": False}
    found = stability(X, scheme=scheme, n_resamples=4, **asked)
    for number, (supports, jaccard) in enumerate(zip(found.supports, found.jaccard)):
        rng = np.random.default_rng([0, number // 2 if scheme == "halves" else number])
        if scheme == "halves":
            start = 30 * (number % 2)
            rows = rng.permutation(n)[start : start + 30]
        else:
            rows = rng.integers(n, size=n)
        alone = [set(s) for s in map(np.ndarray.tolist, sparse_pca(X[rows], **asked).supports)]
        known = [set(s.tolist()) for s in found.reference.supports]
        overlaps = [
            [len(a & b) / len(a | b) for a, b in zip(known, order)]
            for order in (alone, alone[::-1])
        ]
        best = int(sum(overlaps[1]) > sum(overlaps[0]))
        assert [set(s.tolist()) for s in supports] == (alone[::-1] if best else alone)
        assert jaccard.tolist() == overlaps[best]


def test_selection_counts_only_features_that_could_come_in_by_mistake():
    X = np.column_stack([planted(p=20), np.zeros((80, 5))])
    found = stability(
        X, n_nonzero_coefs=3, n_resamples=4, certify=False, include=[19], exclude=[15, 16],
        false_selections=2.0,
    )  # fmt: skip
    assert found.candidates == 25 - 5 - 2 - 1  # constant, excluded, anchor
    assert found.threshold == pytest.approx(0.5 * (1 + 2**2 / (2.0 * 17)))
    assert 19 not in found.selected
    assert found.selected.size


def test_components_with_anchors_are_matched_by_them():
    found = stability(
        planted(p=20, seed=3), n_components=2, n_nonzero_coefs=2, n_resamples=6, certify=False,
        include=[[19], []],
    )  # fmt: skip
    assert found.frequencies[0, 19] == 1.0
    assert found.frequencies[1, 19] == 0.0


def test_an_answer_in_place_of_data_is_refused():
    answer = sparse_pca(planted(), n_nonzero_coefs=3, certify=False)
    with pytest.raises(TypeError, match=r"X is a Result, not data; pass stability\(X"):
        stability(answer)


def test_resample_that_cannot_be_fitted_is_named():
    second = np.isin(np.arange(80), np.random.default_rng([0, 0]).permutation(80)[40:])
    with pytest.raises(ValueError, match="resample 1 cannot be fitted: all of its rows have samp"):
        stability(planted(), n_nonzero_coefs=2, certify=False, sample_weight=second.astype(float))


def counted(*supports, nonzeros, features, allowed=1.0):
    """Halves that gave these supports, of a fit to noise."""
    X = np.random.default_rng(0).standard_normal((20, features))
    fit = sparse_pca(X, n_components=2, n_nonzero_coefs=nonzeros, certify=False)
    halves = tuple(tuple(np.array(own) for own in both) for both in supports)
    overlaps = np.zeros((len(halves), 2))
    return Stability(fit, halves, overlaps, "halves", 0.95, allowed, features, len(halves))


def test_a_feature_that_two_components_select_together_says_so():
    found = counted(
        ([0], [1]), ([1], [0]), ([0], [2]), ([3], [0]), nonzeros=1, features=40, allowed=0.3
    )
    assert 0.5 < found.threshold < 1.0
    assert found.selected.tolist() == [0]
    for text in (str(found), stability_html(found)):
        assert text.count("selected: 100 % in any component") == 1


def test_false_selections_are_advised_only_where_they_are_few():
    every = ([0, 1, 2], [3, 4, 5])
    assert "fewer nonzeros." in counted(every, every, nonzeros=3, features=6).sentence
    assert "allow 2 false ones" in counted(every, every, nonzeros=3, features=30).sentence
