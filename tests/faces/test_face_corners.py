"""What people see when there is little to show: words, pictures, progress and small models."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from sparcipal import Result, compare, sparse_path, sparse_pca
from sparcipal.cli import live, main
from sparcipal.cli.group import _sentence
from sparcipal.comparison import Row, _judged
from sparcipal.problem.monitor import Progress
from sparcipal.report import words

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 5))
NAMES = list("abcde")


def run(*arguments, code: int = 0):
    outcome = CliRunner().invoke(main, [str(a) for a in arguments])
    assert outcome.exit_code == code, outcome.output + repr(outcome.exception)
    return outcome


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(",".join(NAMES) + "\n" + "\n".join(",".join(map(repr, r)) for r in X.tolist()))
    return path


# --- the shell ---


def test_errors_of_the_system_in_one_sentence():
    missing = FileNotFoundError(2, "No such file or directory", "x.csv")
    assert _sentence(missing) == "x.csv: No such file or directory"
    assert _sentence(MemoryError("3 GB")) == (
        "not enough memory (3 GB); use fewer features or a machine with more"
    )
    assert _sentence(RuntimeError()) == "RuntimeError"


def test_a_table_that_lies_on_its_side(tmp_path):
    """--transpose: features in rows."""
    lines = [f"{i + 1} {j + 1} {X[i, j]!r}" for i in range(30) for j in range(5)]
    path = tmp_path / "x.mtx"
    head = "%%MatrixMarket matrix coordinate real general\n5 30 150\n"
    turned = [" ".join([*reversed(line.split()[:2]), line.split()[2]]) for line in lines]
    path.write_text(head + "\n".join(turned).replace("np.float64(", "").replace(")", "") + "\n")
    model = tmp_path / "m.json"
    run("fit", path, "--transpose", "-s", 2, "-o", model)
    found = Result.load(model)
    assert found.value == pytest.approx(sparse_pca(X, n_nonzero_coefs=2).value, rel=1e-9)
    assert found.settings["read"] == {"transpose": True}
    assert "proved" in run("verify", model, path).output


def test_a_format_that_was_told_is_remembered(tmp_path, table):
    other = tmp_path / "data.bin"
    other.write_bytes(table.read_bytes())
    model = tmp_path / "m.json"
    run("fit", other, "--input-format", "csv", "-s", 2, "-o", model)
    assert Result.load(model).settings["read"] == {"format": "csv"}
    assert "proved" in run("verify", model, other).output


def test_reports_of_saved_models(tmp_path, table):
    model, page = tmp_path / "m.json", tmp_path / "r.html"
    run("fit", table, "-s", 2, "-o", model)
    run("show", model, "--report", page)
    text = page.read_text()
    assert all(name in text for name in Result.load(model).names(0))


def test_scores_of_a_table_without_names(tmp_path):
    """Where either has no names there is nothing to compare."""
    np.save(tmp_path / "x.npy", X)
    model = tmp_path / "m.json"
    run("fit", tmp_path / "x.npy", "-s", 2, "-o", model)
    lines = run("transform", model, tmp_path / "x.npy").output.split()
    assert lines[0] == "component1"
    found = np.array(lines[1:], dtype=float)
    np.testing.assert_allclose(found.var(), Result.load(model).value, rtol=1e-9)


def test_an_empty_cache_lists_nothing(tmp_path, monkeypatch):
    from sparcipal.data.files import cache

    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kept"))
    assert "0 kept, 0 bytes" in run("cache", "list").output


def test_the_line_of_a_proof_that_counts_nodes():
    view = live._View(None, 60.0)
    progress = Progress("branch", 12.0, value=2.0, bound=3.0, nodes=17)
    line = view._line(progress)
    assert "17 nodes" in line
    assert "48 s left" in line
    assert "Ctrl-C" in line
    reading = Progress("read", 12.0, done=5, total=20, message="x.csv")
    assert "25 %" in view._line(reading)


# --- words ---


def test_questions_and_screenings_in_words():
    result = sparse_pca(X, n_nonzero_coefs=2, nonnegative=True, certify=False)
    assert "nonnegative" in str(result)
    still = np.column_stack([X[:, :4], np.ones(30)])
    streamed = sparse_pca(still, n_nonzero_coefs=2, memory_limit=1, certify=False)
    kept = words.screening(streamed.certificate)
    assert kept == [("kept", "4", "features: all that vary")]
    assert words.screening(result.certificate) == []


def test_rows_without_a_value():
    row = Row("x", "em", 0.0, float("nan"), 1.0, "", None)
    assert _judged(row, 2.0).gap == np.inf
    assert _judged(row, 0.0).gap == 0.0
    found = compare(X, n_nonzero_coefs=2, methods=["threshold"], certify=False)
    assert found.rows[0].gap >= 0.0


def test_a_path_that_is_stopped_keeps_what_it_has():
    """The callback stops it during the second size."""
    told: list[str] = []

    def stop(progress: Progress) -> bool:
        told.append(progress.stage)
        return len(told) > 6

    path = sparse_path(X, n_nonzero_coefs=[1, 2, 3, 4], callback=stop)
    assert 1 <= len(path.results) <= 4
    for result in path.results:
        assert result.value <= result.bound * (1 + 1e-12)


# --- pictures ---


@pytest.fixture
def pyplot():
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    yield plt
    plt.close("all")


def test_pictures_of_a_run_without_a_bound(pyplot):
    from sparcipal.report.plots import ConvergenceDisplay

    shown = ConvergenceDisplay.from_history([Progress("search", 0.5, value=1.0)])
    assert shown.value_ is not None
    assert shown.bound_ is None
    with pytest.raises(ValueError, match="no value and no bound"):
        ConvergenceDisplay.from_history([Progress("search", 0.5)])


def test_notes_on_a_terminal():
    from rich.console import Console

    from sparcipal.report.terminal import result_view

    result = sparse_pca(
        X, n_nonzero_coefs=2, method="em", method_options={"max_iter": 1}, certify=False
    )
    assert "max_iter=1" in result.note
    console = Console(width=100, record=True, file=SimpleNamespace(write=len, flush=lambda: None))
    console.print(result_view(result))
    assert "max_iter=1" in console.export_text()
