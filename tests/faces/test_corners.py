"""Refusals, words and small roads that the tests of larger things do not come by."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Moments, Result, sparse_pca, verify
from sparcipal.checker import covariance as checked
from sparcipal.cli import live, options, output
from sparcipal.data.files import bytes as source
from sparcipal.data.files import cache
from sparcipal.data.products import Gram
from sparcipal.data.rows import as_rows

X = np.random.default_rng(0).standard_normal((20, 5))


@pytest.fixture(scope="module")
def result() -> Result:
    return sparse_pca(X, n_nonzero_coefs=2)


# --- results ---


def test_what_things_look_like_in_a_shell(result):
    assert repr(result).startswith("<Result: 1 component(s), value ")
    gram = Gram(np.array([0, 2])).add(np.arange(12).reshape(4, 3))
    assert repr(gram) == "<Gram: 4 samples x 2 columns, exact>"
    assert "4 samples" in repr(Moments(3).add(np.arange(12).reshape(4, 3)))


def test_a_proof_of_another_result_is_refused(result, tmp_path):
    result.save(tmp_path / "a.json")
    other = sparse_pca(X, n_nonzero_coefs=3)
    other.save(tmp_path / "b.json")
    os.replace(tmp_path / "b.json.proof", tmp_path / "a.json.proof")
    with pytest.raises(ValueError, match="belongs to another result"):
        Result.load(tmp_path / "a.json")
    os.remove(tmp_path / "a.json.proof")
    assert Result.load(tmp_path / "a.json").value == result.value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(sparcipal=99), "format 99 is not the format"),
        (lambda d: d["certificate"]["bounds"][0].update(data=3), "has no data"),
        (lambda d: d["certificate"]["bounds"][0].update(name=3), "no name or no value"),
        (lambda d: d["certificate"].update(guarantees={"a": "b"}), "guarantee is no number"),
        (lambda d: d.update(mean={"$array": "", "dtype": "<O", "shape": [0]}), "unknown dtype"),
    ],
)
def test_documents_with_wrong_parts(result, change, message):
    document = json.loads(result.to_json())
    change(document)
    with pytest.raises(ValueError, match=message):
        Result.from_json(json.dumps(document))


# --- rows, sums ---


def test_rows_gather_what_they_have():
    dense = as_rows(lambda: iter([X[:7], X[7:]]))
    np.testing.assert_array_equal(dense.gather().X, X)
    sparse = as_rows(lambda: iter([sp.csr_array(X[:7]), X[7:]]))
    np.testing.assert_array_equal(sparse.gather().X.toarray(), X)
    np.testing.assert_array_equal(as_rows(sp.csc_array(X)).gather().X.toarray(), X)


def test_rows_that_do_not_fit():
    with pytest.raises(ValueError, match="feature_names has 2 names, but there are 5 features"):
        as_rows(X, feature_names=["a", "b"])
    with pytest.raises(TypeError, match="can be read once only"):
        as_rows(iter([X]))
    bad = X.copy()
    bad[9, 1] = np.nan
    late = as_rows(lambda: iter([bad[:7], bad[7:]]))
    with pytest.raises(ValueError, match=r"block 1 .its row 0 is row 7 of the table.*NaN"):
        late.accumulate(Moments(5))
    uneven = as_rows(lambda: iter([X[:7], X[7:, :4]]))
    with pytest.raises(ValueError, match="block 1 has 4 features, but the first one has 5"):
        uneven.accumulate(Moments(5))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X[:1], "centring leaves nothing"),
        (X * 1e151, "whose square overflows"),
        (X * 1e-150, "variances underflow"),
    ],
)
def test_streams_that_cannot_be_worked_on(rows, message):
    with pytest.raises(ValueError, match=message):
        sparse_pca(lambda: iter([rows]), n_nonzero_coefs=1, memory_limit=1)


def test_products_refuse_and_come_back():
    with pytest.raises(ValueError, match="a block has 3 columns, but column 4 is asked for"):
        Gram(np.array([0, 4])).add(np.ones((2, 3)))
    gram = Gram(np.array([0, 2])).add(np.arange(12).reshape(4, 3))
    with pytest.raises(ValueError, match="with and without sample weights"):
        gram.add_weight(1.0)
    back = Gram.from_arrays(gram.arrays())
    assert (back.second == gram.second).all()
    assert back.n_samples == 4
    assert Gram(np.array([0])).add(np.array([[0.5]])).arrays() is None


# --- the checker's own reading ---


@pytest.mark.parametrize(
    ("weights", "message"),
    [(-np.ones(20), "not negative"), (np.zeros(20), "zero for every sample")],
)
def test_the_checker_refuses_weights(weights, message):
    result = sparse_pca(X, n_nonzero_coefs=2, sample_weight=np.arange(20.0), certify=False)
    with pytest.raises(ValueError, match=message):
        verify(result, X, sample_weight=weights)


def test_the_checker_refuses_tables(result):
    for table in (X[0], X * np.nan, np.full((20, 5), "a")):
        with pytest.raises(ValueError, match="two-dimensional table of finite numbers"):
            verify(result, table)
    with pytest.raises(ValueError, match="square matrix of finite numbers"):
        checked.covariance_of(np.ones((2, 3)), 1.0)


# --- the shell ---


def test_the_doctor_finds_what_is_broken(monkeypatch):
    doctor = importlib.import_module("sparcipal.cli.doctor")
    assert doctor._version("no-such-package") is None

    def broken(*arguments, **keywords):
        raise RuntimeError("out of order")

    with monkeypatch.context() as patch:
        patch.setattr(doctor.importlib, "import_module", broken)
        assert doctor._kernels() == ("BROKEN: dspca: out of order", False)
    monkeypatch.setattr("sparcipal.fit.sparse_pca", broken)
    assert doctor._smoke() == ("BROKEN: out of order", False)


def test_the_bar_of_a_file():
    progress = SimpleNamespace(done=5, total=20, seconds=3.0, message="[red]")
    shown = live._bar(progress)
    assert " 25 %" in shown
    assert r"\[red]" in shown
    assert live._bar(replace_seconds(progress, 0.1)) == r"reading \[red]"


def replace_seconds(progress: SimpleNamespace, seconds: float) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(progress), "seconds": seconds})


def test_times_in_words():
    assert [source.time_words(s) for s in (3, 600, 7200)] == ["3 s", "10 min", "2.0 h"]


def test_a_terminal_has_colours_and_a_file_has_none(result, monkeypatch, capsys):
    output.print_result(result, "table")
    plain = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output.print_result(result, "table")
    drawn = capsys.readouterr().out
    for name in result.names(0):
        assert name in plain
        assert name in drawn
    assert plain != drawn


def test_places_that_may_not_be_written(tmp_path, monkeypatch):
    import click

    monkeypatch.setattr(options.os, "access", lambda path, mode: False)
    with pytest.raises(click.BadParameter, match="cannot be written; choose another place"):
        options.Output().convert(str(tmp_path / "m.json"), None, None)


def test_words_for_the_shell():
    assert options.complete_cache(None, None, "b") == ["beside"]
    assert options.complete_methods(None, None, "auto,tpo") == ["auto,tpower"]


# --- the cache ---


@pytest.mark.parametrize(
    ("platform", "ending"),
    [("win32", "AppData/Local/sparcipal"), ("darwin", "Library/Caches/sparcipal")],
)
def test_where_other_systems_keep_things(platform, ending, monkeypatch):
    for name in (cache.VARIABLE, "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cache.sys, "platform", platform)
    assert cache.default_folder() == Path.home() / ending


def test_who_is_alive(monkeypatch):
    assert cache._alive(os.getpid())

    def refused(pid, signal):
        raise PermissionError

    monkeypatch.setattr(cache.os, "kill", refused)
    assert cache._alive(1), "a process of somebody else lives"


def test_an_entry_of_another_version_is_made_again(tmp_path):
    path = tmp_path / "docword.txt"
    path.write_text("2\n2\n2\n1 1 1\n2 2 3\n")
    from sparcipal import read

    read(path, cache=tmp_path / "kept")
    (facts,) = (tmp_path / "kept").rglob("entry.json")
    facts.write_text(json.dumps({**json.loads(facts.read_text()), "version": -1}))
    with pytest.warns(RuntimeWarning, match="written by another version"):
        assert read(path, cache=tmp_path / "kept").X.sum() == 4


# --- pictures ---


def test_pictures_of_paths(result):
    pytest.importorskip("matplotlib")
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    from sparcipal.report.plots import PathDisplay

    with pytest.raises(ValueError, match="results is empty"):
        PathDisplay([])
    two = sparse_pca(X, n_components=2, n_nonzero_coefs=1, certify=False)
    with pytest.raises(ValueError, match="one component each"):
        PathDisplay([two])
    drawn = PathDisplay.from_data(X, [3, 1], certify=False)
    assert [len(r.supports[0]) for r in drawn.results] == [1, 3]
    others = PathDisplay.from_results(
        [result], others={"another": [result]}, bounds={"a bound": [result.bound]}
    )
    assert len(others.lines_) == 3
    plt.close("all")


def _triples(p: int):
    from itertools import combinations

    return combinations(range(p), 3)


# --- numbers where the usual road gives up ---


def spiked(p: int = 30) -> np.ndarray:
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((p, p)))[0]
    return (Q * np.r_[9.0, 5.0, np.linspace(1.0, 0.1, p - 2)]) @ Q.T


def test_eigenvectors_when_lanczos_gives_up(monkeypatch):
    from scipy.sparse.linalg import ArpackNoConvergence

    from sparcipal.problem import sketch
    from sparcipal.problem.covariance import covariance_of
    from sparcipal.search.methods import threshold

    A = spiked()
    expected = np.linalg.eigh(A)[1][:, :-3:-1]

    def gives_up(operator, k, **options):
        raise ArpackNoConvergence("no convergence", np.empty(0), np.empty((30, 0)))

    monkeypatch.setattr(threshold, "DENSE_EIGEN", 5)
    monkeypatch.setattr(sketch, "DENSE_EIGEN", 5)
    monkeypatch.setattr(threshold.spla, "eigsh", gives_up)
    found = threshold.leading_eigenvectors(covariance_of(A), 2, np.random.default_rng(0))
    np.testing.assert_allclose(np.abs((found * expected).sum(axis=0)), 1.0, atol=1e-10)
    seen = sketch.spectrum(covariance_of(A), 2)
    # a covariance is scaled by a power of two
    np.testing.assert_allclose(seen.values / seen.trace, [9.0, 5.0] / np.trace(A), rtol=1e-6)


def test_largest_eigenvalue_of_a_matrix_that_is_not_small(monkeypatch):
    from sparcipal.problem import sketch

    monkeypatch.setattr(sketch, "DENSE_EIGEN", 5)
    assert sketch._largest_eigenvalue(spiked()) == pytest.approx(9.0, rel=1e-9)


def test_nonnegative_weights_on_more_features_than_can_be_enumerated(monkeypatch):
    """The climb reaches what enumeration of all parts finds."""
    from sparcipal.problem import components as refine

    rng = np.random.default_rng(2)
    for _ in range(20):
        Y = rng.standard_normal((12, 8))
        A = Y.T @ Y
        best = refine._best_part(A)
        with monkeypatch.context() as patch:
            patch.setattr(refine, "EXHAUSTIVE", 3)
            x = refine.nonnegative_leading(A, np.full(8, 8**-0.5))
        assert (x >= 0).all()
        assert np.linalg.norm(x) == pytest.approx(1.0)
        assert x @ A @ x == pytest.approx(best @ A @ best, rel=1e-6)


def test_a_zero_matrix_has_the_coordinates_as_eigenvectors(monkeypatch):
    from sparcipal.problem.covariance import covariance_of
    from sparcipal.search.methods import threshold

    monkeypatch.setattr(threshold, "DENSE_EIGEN", 5)
    found = threshold.leading_eigenvectors(
        covariance_of(np.zeros((30, 30))), 2, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(found, np.eye(30, 2))


def test_products_are_kept_with_the_parsed_data(tmp_path, monkeypatch):
    """The second fit of a streamed file makes no pass for the products."""
    from sparcipal import read
    from sparcipal.data.rows import Rows

    rng = np.random.default_rng(5)
    path = tmp_path / "docword.txt"
    table = rng.poisson(1.0, (40, 12))
    lines = [f"{i + 1} {j + 1} {table[i, j]}" for i, j in np.argwhere(table)]
    path.write_text(f"40\n12\n{len(lines)}\n" + "\n".join(lines) + "\n")
    question = {"n_nonzero_coefs": 3, "memory_limit": 1}
    first = sparse_pca(read(path, cache=tmp_path / "kept"), **question)
    monkeypatch.setattr(Rows, "accumulate", lambda *given: pytest.fail("a pass was made"))
    again = read(path, cache=tmp_path / "kept")
    assert sparse_pca(again, **question).to_json() == first.to_json()


def test_what_was_not_read_to_its_end_is_not_kept(tmp_path):
    kept = cache.Cache(tmp_path / "kept")
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="was not read to its end"):
        kept.keep(kept.draft(), source.Source(path), "csv", {})
