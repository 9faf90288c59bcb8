"""Stability over resamples: planted blocks come back, intervals and thresholds are known ones."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import stability
from sparcipal.questions.resampling import wilson


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
    hopeless = stability(planted(p=13), n_nonzero_coefs=6, n_resamples=2, certify=False)
    assert hopeless.threshold > 1
    assert hopeless.selected.size == 0
    assert "None is selected: with so many nonzeros" in str(hopeless)


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
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "n_resamples": 4, "certify": False}
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
    assert str(found).startswith(f"Stopped after {found.n_resamples} resamples")


def test_questions_that_make_no_sense_are_refused():
    X = planted()
    with pytest.raises(ValueError, match="scheme='thirds' is unknown"):
        stability(X, scheme="thirds")
    with pytest.raises(ValueError, match="n_resamples=1 must be at least 2"):
        stability(X, n_resamples=1)
    with pytest.raises(ValueError, match=r"level=2\.0 must lie in"):
        stability(X, level=2)
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
        "component 1, mean overlap 1.00",
        "component 2, mean overlap 1.00",
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
