"""The programs of the gallery run, draw, and print what is kept in tests/golden."""

from __future__ import annotations

import contextlib
import io
import runpy

import pytest

from tests.support.places import ROOT

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pytest.importorskip("pandas")
plt = pytest.importorskip("matplotlib.pyplot")

PROGRAMS = sorted((ROOT / "docs" / "examples").glob("plot_*.py"))


def printed(path) -> str:
    plt.close("all")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(path))
    assert plt.get_fignums()
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")
    return out.getvalue().rstrip("\n")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_print_what_is_kept(path, golden, monkeypatch, tmp_path):
    monkeypatch.setenv("SPARCIPAL_DATA", str(tmp_path))  # no data but what packages bring
    golden(f"{path.stem}.txt", printed(path))
