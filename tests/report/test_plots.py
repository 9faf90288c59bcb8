"""Pictures, by the data on their artists."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from sparcipal import SparsePCA, alternatives, sparse_pca
from sparcipal.problem.monitor import Progress

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

from sparcipal.report import plots

NAMES = ["a$b", "long name " * 6, "c", "d", "e", "f"]


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 6)) @ rng.standard_normal((6, 6))
    return sparse_pca(X, n_components=2, n_nonzero_coefs=3, feature_names=NAMES)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_loadings_are_bars_with_names(result):
    display = plots.LoadingsDisplay.from_result(result)
    assert len(display.axes_) == len(display.bars_) == 2
    for j, (bars, ax) in enumerate(zip(display.bars_, display.axes_)):
        order = np.argsort(-np.abs(result.weights[j]), kind="stable")
        np.testing.assert_array_equal([bar.get_width() for bar in bars], result.weights[j][order])
        shown = [text.get_text() for text in ax.get_yticklabels()]
        assert len(shown) == len(result.names(j))
        assert all(len(text) <= 31 for text in shown)
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match=r"1 axes for 2 components.*plt\.subplots\(1, 2\)"):
        plots.LoadingsDisplay.from_result(result, ax=plt.subplots()[1])
    axes = plt.subplots(1, 2)[1]
    assert plots.LoadingsDisplay.from_result(result, ax=axes).axes_ == list(axes)


def test_heatmap_shows_weights_and_leaves_zeros_empty(result):
    display = plots.HeatmapDisplay.from_result(result)
    shown = display.image_.get_array()
    assert shown.shape == (2, display.features_.size)
    np.testing.assert_array_equal(shown.filled(0.0), result.components[:, display.features_])
    assert shown.mask.sum() == (result.components[:, display.features_] == 0).sum()
    assert len(display.ax_.get_xticklabels()) == display.features_.size
    display.figure_.canvas.draw()


def test_variance_is_cumulative_and_has_the_bound(result):
    display = plots.VarianceDisplay.from_result(result, result)
    assert len(display.lines_) == 2
    np.testing.assert_allclose(display.lines_[0].get_ydata(), np.cumsum(result.variances))
    assert set(display.bound_.get_ydata()) == {result.bound}
    styles = {line.get_linestyle() for line in display.lines_}
    assert len(styles) == 2  # distinguishable in grey


def test_convergence_shows_value_and_bound_over_time():
    history = [
        Progress("search", 0.5, value=1.0),
        Progress("search", 1.0, value=2.0),
        Progress("prove", 2.0, value=2.0, bound=4.0),
        Progress("prove", 3.0, value=2.0, bound=2.5),
    ]
    display = plots.ConvergenceDisplay.from_history(history)
    np.testing.assert_array_equal(display.value_.get_ydata(), [1.0, 2.0, 2.0, 2.0, 2.0])
    np.testing.assert_array_equal(display.bound_.get_xdata(), [2.0, 3.0, 3.0])
    with pytest.raises(ValueError, match=r"callback=history\.append"):
        plots.ConvergenceDisplay([Progress("search", 0.1)])


def test_convergence_display_draws_the_history_of_a_fit():
    history: list[Progress] = []
    rng = np.random.default_rng(0)
    sparse_pca(rng.standard_normal((30, 8)), n_nonzero_coefs=3, callback=history.append)
    assert plots.ConvergenceDisplay.from_history(history).value_ is not None


def test_displays_are_made_from_an_estimator():
    rng = np.random.default_rng(1)
    estimator = SparsePCA(2, 2)
    with pytest.raises(ValueError, match="not fitted"):
        plots.LoadingsDisplay.from_estimator(estimator)
    estimator.fit(rng.standard_normal((30, 6)))
    ax = plt.subplots()[1]
    assert plots.HeatmapDisplay.from_estimator(estimator, ax=ax).ax_ is ax
    assert plots.VarianceDisplay.from_estimator(estimator, ax=ax).ax_ is ax
    assert len(plots.LoadingsDisplay.from_estimator(estimator).bars_) == 2


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(5).standard_normal((40, 6)) * [3, 2, 2, 1, 1, 1]


@pytest.fixture(scope="module")
def fitted(rows):
    return SparsePCA(3, 2, certify=False).fit(rows)


def test_scores_are_points_by_group_or_along_a_scale(fitted, rows):
    plain = plots.ScoresDisplay.from_estimator(fitted, rows)
    np.testing.assert_allclose(plain.points_[0].get_offsets(), fitted.transform(rows)[:, :2])
    assert plain.ax_.get_legend() is None
    grouped = plots.ScoresDisplay.from_estimator(
        fitted, rows, labels=np.arange(40) % 3, label_name="$kind", components=(2, 0)
    )
    assert [len(points.get_offsets()) for points in grouped.points_] == [14, 13, 13]
    assert grouped.ax_.get_legend().get_title().get_text() == r"\$kind"
    scaled = plots.ScoresDisplay.from_estimator(fitted, rows, labels=rows[:, 0])
    np.testing.assert_allclose(scaled.points_[0].get_array(), rows[:, 0])
    many = plots.ScoresDisplay.from_estimator(fitted, rows, labels=[f"g{i % 9}" for i in range(40)])
    assert many.ax_.get_legend().get_texts()[-1].get_text() == "others"
    for useless in (["same"] * 40, [f"id{i}" for i in range(40)]):
        shown = plots.ScoresDisplay.from_estimator(fitted, rows, labels=useless)
        assert shown.ax_.get_legend() is None


def test_arrows_of_a_biplot_are_correlations(fitted, rows):
    display = plots.BiplotDisplay.from_estimator(fitted, rows, components=(0, 2))
    scores = fitted.transform(rows)
    used = np.flatnonzero(fitted.components_[[0, 2]].any(axis=0))
    assert sorted(display.arrows_) == used.tolist()
    for feature, arrow in display.arrows_.items():
        expected = [np.corrcoef(rows[:, feature], scores[:, j])[0, 1] for j in (0, 2)]
        np.testing.assert_allclose(arrow.xy, expected, atol=1e-12)
    display.figure_.canvas.draw()


def test_correlations_are_sorted_by_size(fitted, rows):
    display = plots.CorrelationsDisplay.from_estimator(fitted, rows)
    found = np.corrcoef(fitted.transform(rows).T)
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_allclose(widths, [found[pair] for pair in display.pairs_])
    assert np.all(np.diff(np.abs(widths)) <= 0)


def test_pictures_of_samples_refuse_what_is_not_there(fitted, rows):
    with pytest.raises(ValueError, match=r"components=\(0, 3\) are not two of the 3"):
        plots.ScoresDisplay.from_estimator(fitted, rows, components=(0, 3))
    with pytest.raises(ValueError, match="labels has 3 entries for 40 samples"):
        plots.BiplotDisplay.from_estimator(fitted, rows, labels=[1, 2, 3])
    single = SparsePCA(1, 2, certify=False).fit(rows)
    with pytest.raises(ValueError, match="ask for two or more"):
        plots.CorrelationsDisplay.from_estimator(single, rows)
    with pytest.raises(ValueError, match="the result has one; fit n_components=2, or draw its"):
        plots.ScoresDisplay.from_estimator(single, rows)


def test_alternatives_are_rows_of_features_with_what_they_fall_short(rows):
    result = sparse_pca(rows, n_nonzero_coefs=2, feature_names=NAMES)
    found = alternatives(result, rows, within=0.6, drop=False)
    listed = found.components[0].supports
    assert len(listed) > 1
    display = plots.AlternativesDisplay.from_alternatives(found)
    kinds = np.asarray(display.image_.get_array())
    for row, entry in zip(kinds, listed):
        assert sorted(display.features_[row > 0]) == entry.support.tolist()
    assert set(kinds[0]) == {0, 1}
    widths = [bar.get_width() for bar in display.axes_[1].patches]
    expected = [100 * (1 - entry.value / listed[0].value) for entry in listed]
    np.testing.assert_allclose(widths, expected, atol=1e-9)
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="component=1 is not one of the 1"):
        plots.AlternativesDisplay(found, 1)
    with pytest.raises(TypeError, match=r"is a Result; pass what sparcipal.alternatives\("):
        plots.AlternativesDisplay.from_alternatives(found.result)


def test_every_display_is_listed_and_others_are_unknown():
    for name in plots.__all__:
        assert getattr(plots, name).__name__ == name
    with pytest.raises(AttributeError, match="PieDisplay"):
        _ = plots.PieDisplay


def test_without_matplotlib_the_remedy_is_told(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'sparcipal\[plot\]'"):
        plots.HeatmapDisplay.from_result(result)


@pytest.fixture
def pyplot():
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    yield plt
    plt.close("all")


def test_convergence_display_draws_a_run_without_a_bound(pyplot):
    from sparcipal.report.plots import ConvergenceDisplay

    shown = ConvergenceDisplay.from_history([Progress("search", 0.5, value=1.0)])
    assert shown.value_ is not None
    assert shown.bound_ is None
    with pytest.raises(ValueError, match="no value and no bound"):
        ConvergenceDisplay.from_history([Progress("search", 0.5)])
