"""Pictures pixel by pixel, without their text: fonts differ between machines, shapes do not.

The small pictures in tests/golden/pictures are renewed by `pytest --update-golden`.
"""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca
from sparcipal.problem.monitor import Progress
from tests.support.places import ROOT

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

from matplotlib.testing.compare import compare_images
from matplotlib.testing.decorators import remove_ticks_and_titles

from sparcipal.report import plots

FOLDER = ROOT / "tests" / "golden" / "pictures"
DRAWN_WITH = "3.11"  # lines are drawn a little differently by every version


def rows():
    rng = np.random.default_rng(5)
    return rng.standard_normal((40, 6)) @ rng.standard_normal((6, 6))


GROUPS = ["even", "odd"] * 20


@pytest.fixture(scope="module")
def result():
    return sparse_pca(rows(), n_components=2, n_nonzero_coefs=3)


def convergence():
    steps = [(0.5, 1.0, None), (1.0, 2.0, 4.0), (2.0, 2.0, 3.0), (3.0, 2.0, 2.0)]
    return plots.ConvergenceDisplay.from_history(
        [Progress("prove", t, value=v, bound=b) for t, v, b in steps]
    )


PICTURES = {
    "loadings": lambda result: plots.LoadingsDisplay.from_result(result),
    "heatmap": lambda result: plots.HeatmapDisplay.from_result(result),
    "variance": lambda result: plots.VarianceDisplay.from_result(result, result),
    "convergence": lambda result: convergence(),
    "scores": lambda result: plots.ScoresDisplay.from_result(result, rows(), labels=GROUPS),
    "biplot": lambda result: plots.BiplotDisplay.from_result(result, rows(), labels=GROUPS),
    "correlations": lambda result: plots.CorrelationsDisplay.from_result(result, rows()),
}


def without_text(figure) -> None:
    remove_ticks_and_titles(figure)
    for ax in figure.axes:
        if ax.get_legend() is not None:
            ax.get_legend().remove()
        ax.set(xlabel="", ylabel="")
        for text in ax.texts:
            text.set_visible(False)


@pytest.mark.skipif(
    not matplotlib.__version__.startswith(DRAWN_WITH),
    reason=f"the pictures were drawn with matplotlib {DRAWN_WITH}",
)
@pytest.mark.parametrize("name", PICTURES)
def test_pictures_look_as_they_did(name, result, request, tmp_path):
    with matplotlib.style.context(["default"]):
        figure = PICTURES[name](result).figure_
        without_text(figure)
        kept, drawn = FOLDER / f"{name}.png", tmp_path / f"{name}.png"
        if request.config.getoption("--update-golden"):
            FOLDER.mkdir(exist_ok=True)
            figure.savefig(kept, dpi=40, metadata={"Software": None})
        figure.savefig(drawn, dpi=40, metadata={"Software": None})
        plt.close(figure)
    assert kept.exists(), f"{kept} is missing; run pytest --update-golden and look at it"
    assert compare_images(str(kept), str(drawn), tol=4) is None
