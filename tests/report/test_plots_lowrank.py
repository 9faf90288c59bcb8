"""The picture of a path of cardinalities: what it shows is what was computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Result, sparse_pca
from sparcipal.report.plots import PathDisplay

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def table(n=60, p=12):
    return np.random.default_rng(0).standard_normal((n, p)) * np.geomspace(3, 0.3, p)


def path(**settings):
    X = table()
    return [sparse_pca(X, n_components=1, n_nonzero_coefs=s, **settings) for s in (6, 1, 3)]


def test_path_region_is_value_to_bound():
    results = path(method="spannogram", rank=2, certify=False)
    display = PathDisplay.from_results(results)
    assert [int(r.settings["n_nonzero_coefs"][0]) for r in display.results] == [1, 3, 6]
    drawn = np.vstack([p.vertices for p in display.region_.get_paths()])
    for result in display.results:
        s = result.settings["n_nonzero_coefs"][0]
        heights = drawn[drawn[:, 0] == s, 1]
        assert heights.min() == pytest.approx(result.value / display.leading)
        assert heights.max() == pytest.approx(result.bound / display.leading)
    assert display.leading == pytest.approx(np.linalg.eigvalsh(np.cov(table().T, bias=True))[-1])
    assert (display.lines_[0].get_ydata() <= 1 + 1e-12).all()


def test_path_draws_other_methods_and_bounds():
    results = path(certify=False)
    display = PathDisplay.from_results(
        results,
        others={"tpower": path(method="tpower", certify=False)},
        bounds={"other bound": [6.0, 1.0, 3.0]},
        leading=1.0,
    )
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "tpower" in labels
    # Given in the order of the results, drawn in the order of cardinalities.
    assert list(display.lines_[-1].get_ydata()) == [1.0, 3.0, 6.0]
    display.figure_.canvas.draw()


def test_path_display_is_made_in_one_call():
    display = PathDisplay.from_data(table(), [2, 4], method="spannogram", certify=False)
    assert list(display.lines_[0].get_xdata()) == [2, 4]


def test_path_without_a_leading_eigenvalue_shows_shares_of_the_total():
    results = path(method="threshold", certify=False)
    bare = [
        replace(r, certificate=replace(r.certificate, bounds=r.certificate.bounds[-1:]), info={})
        for r in results
        if r.certificate.bounds[-1].name != "eigenvalues"
    ]
    display = PathDisplay.from_results(bare)
    assert display.leading is None
    assert "total variance" in display.ax_.get_ylabel()
    drawn = display.lines_[0].get_ydata()
    assert drawn == pytest.approx([r.value / r.total_variance for r in display.results])


def test_path_display_refuses_what_it_cannot_draw():
    with pytest.raises(ValueError, match="empty"):
        PathDisplay([])
    one = sparse_pca(table(), n_nonzero_coefs=2, certify=False)
    two = sparse_pca(table(), n_components=2, n_nonzero_coefs=2, certify=False)
    with pytest.raises(ValueError, match=r"results have \[1, 2\] components"):
        PathDisplay([one, two])


def test_path_of_several_components_is_a_share_of_the_total_variance():
    two = sparse_pca(table(), n_components=2, n_nonzero_coefs=2, certify=False)
    display = PathDisplay([two]).plot()
    assert display.lines_[0].get_ydata() == pytest.approx([two.value / two.total_variance])
    assert display.ax_.get_xlabel() == "nonzeros allowed in each of 2 components"


X = np.random.default_rng(0).standard_normal((20, 5))


@pytest.fixture(scope="module")
def result() -> Result:
    return sparse_pca(X, n_nonzero_coefs=2)


def test_path_display_refuses_and_draws_other_results(result):
    pytest.importorskip("matplotlib")
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    from sparcipal.report.plots import PathDisplay

    with pytest.raises(ValueError, match="results is empty"):
        PathDisplay([])
    drawn = PathDisplay.from_data(X, [3, 1], certify=False)
    assert [len(r.supports[0]) for r in drawn.results] == [1, 3]
    others = PathDisplay.from_results(
        [result], others={"another": [result]}, bounds={"a bound": [result.bound]}
    )
    assert len(others.lines_) == 3
    plt.close("all")
