"""Files from strangers, damaged, lying or bombs: a clear error in bounded time and memory.

Thousands more: `SPARCIPAL_FUZZ=5000 pytest tests/properties/test_fuzz.py`.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparcipal import Result, read, sparse_pca
from sparcipal.data.files import bytes as source_module
from sparcipal.data.files import h5ad
from tests.support import hostile
from tests.support.places import ROOT

PACKAGE = ROOT / "src" / "sparcipal"
ROUNDS = int(os.environ.get("SPARCIPAL_FUZZ", "40"))  # damaged files of every format
SECONDS = 20.0  # that nothing of this size may take, compilation of the parser included


def reads_or_refuses(path: Path) -> str:
    start = time.process_time()
    try:
        read(path)
        said = ""
    except (ValueError, OSError) as error:
        said = str(error)
        assert said
    assert time.process_time() - start < SECONDS
    return said


@pytest.mark.filterwarnings("ignore:set aside")  # columns that damage has emptied
@pytest.mark.parametrize("name", sorted(hostile.SEEDS))
def test_read_refuses_damaged_files_with_words(name, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    content = hostile.SEEDS[name]()
    path = tmp_path / name
    path.write_bytes(content)
    assert read(path).shape[0] >= 2
    for seed in range(ROUNDS):
        path.write_bytes(hostile.damaged(content, np.random.default_rng(seed)))
        reads_or_refuses(path)


@pytest.mark.filterwarnings("ignore:set aside")
@settings(max_examples=ROUNDS, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=300), st.sampled_from(sorted(hostile.SEEDS)))
def test_read_refuses_arbitrary_bytes_with_words(content, name):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        reads_or_refuses(path)


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore")  # anndata warns of much in strange files
@pytest.mark.parametrize("name", sorted(hostile.CELLS))
def test_read_refuses_hostile_single_cell_files(name, tmp_path):
    pytest.importorskip("anndata")
    h5py = pytest.importorskip("h5py")
    path = hostile.single_cells(tmp_path)
    assert read(path).shape == (4, 3)
    change, words = hostile.CELLS[name]
    with h5py.File(path, "r+") as file:
        change(file)
    assert words in reads_or_refuses(path)


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore")
def test_read_survives_damaged_single_cell_files(tmp_path, monkeypatch):
    """Where HDF5 itself loops or crashes, it does so in another process."""
    pytest.importorskip("anndata")
    monkeypatch.setattr(h5ad, "PATIENCE", 4.0)
    path = hostile.single_cells(tmp_path)
    content = path.read_bytes()
    for seed in range(ROUNDS // 2):
        damage = hostile.damaged if seed % 3 == 0 else hostile.overwritten
        path.write_bytes(damage(content, np.random.default_rng(seed)))
        reads_or_refuses(path)


@pytest.mark.processes
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("end", "words"),
    [("kill -SEGV $$", "HDF5 library crashes on it"), ("exec sleep 60", "not found its way")],
)
def test_files_of_cells_that_crash_the_library_are_refused(end, words, tmp_path, monkeypatch):
    pytest.importorskip("anndata")
    path = hostile.single_cells(tmp_path)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{end}\n")
    python.chmod(0o755)
    monkeypatch.setattr(h5ad, "PATIENCE", 0.5)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(ValueError, match=words):
        read(path)


LYING = [name for name in hostile.BOMBS if "bomb" not in name and name != "lines.txt.gz"]


@pytest.mark.processes
def test_files_that_lie_about_their_size_are_refused_in_little_memory(tmp_path):
    """In a process that may not have more than three gigabytes."""
    pytest.importorskip("resource")
    for name in LYING:
        (tmp_path / name).write_bytes(hostile.BOMBS[name]())
    code = """
import resource, sys
import scipy.io, sklearn.datasets, sklearn.feature_extraction.text
from sparcipal import read
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
for path in sys.argv[1:]:
    try:
        read(path)
    except (ValueError, OSError) as error:
        assert str(error)
"""
    paths = [str(tmp_path / name) for name in LYING]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert not Path("/tmp/sparcipal-was-here").exists()


@pytest.mark.parametrize("name", ["docword.bomb.txt.gz", "bomb.csv.gz", "lines.txt.gz", "bomb.npz"])
def test_read_refuses_files_that_unpack_to_too_much(name, tmp_path, monkeypatch):
    monkeypatch.setattr(source_module, "LARGE", 1 << 24)
    path = tmp_path / name
    path.write_bytes(hostile.BOMBS[name]())
    assert path.stat().st_size < 1 << 20
    assert "times" in reads_or_refuses(path)


def test_names_in_an_archive_are_no_paths(tmp_path):
    path = tmp_path / "deep" / "paths.npz"
    path.parent.mkdir()
    path.write_bytes(hostile.BOMBS["paths.npz"]())
    reads_or_refuses(path)
    assert [p.name for p in tmp_path.rglob("*")] == ["deep", "paths.npz"]


def test_read_takes_formulas_for_text(tmp_path):
    path = tmp_path / "formulas.csv"
    path.write_text("=1+1,@x\n1,2\n3,5\n")
    assert read(path).feature_names == ("=1+1", "@x")
    path.write_text("a,b\n1,2\n3,=1+1\n")
    assert "not a number" in reads_or_refuses(path)


# --- saved results ---


@pytest.mark.parametrize("name", sorted(hostile.models()))
def test_documents_that_are_no_results_are_refused(name):
    with pytest.raises(ValueError, match="not a sparcipal result"):
        Result.from_json(hostile.models()[name])


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.json"
    sparse_pca(np.random.default_rng(0).standard_normal((20, 6)), n_nonzero_coefs=2).save(path)
    return path


@pytest.mark.parametrize("which", ["model.json", "model.json.proof"])
def test_loading_refuses_damaged_models(model, which, tmp_path):
    whole = {
        name: (model.parent / name).read_bytes() for name in ("model.json", "model.json.proof")
    }
    for seed in range(3 * ROUNDS):
        for name, content in whole.items():
            changed = hostile.damaged(content, np.random.default_rng(seed))
            (tmp_path / name).write_bytes(changed if name == which else content)
        with contextlib.suppress(ValueError, OSError):
            Result.load(tmp_path / "model.json")


# --- what the package does not do ---

LOOKED_AT = ast.Import | ast.ImportFrom | ast.Call | ast.keyword


@cache
def sources():
    """Every file of the package, with its imports, calls and keywords."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        found.append((path, [node for node in nodes if isinstance(node, LOOKED_AT)]))
    return found


def imported(node):
    """Top names of the packages outside ours that a statement imports."""
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [node.module or ""]
    return {name.split(".")[0] for name in names}


def test_sources_use_neither_pickle_nor_eval_nor_yaml():
    forbidden = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "runpy"}
    for path, nodes in sources():
        for node in nodes:
            assert not imported(node) & forbidden, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile", "__import__"}, path
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant), path
                assert node.value.value is False, path


def test_arrays_are_loaded_without_pickle():
    """`allow_pickle=False` stands at every np.load, whatever NumPy's default."""
    for path, nodes in sources():
        for node in nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr == "load" and getattr(node.func.value, "id", "") == "np":
                assert "allow_pickle" in {k.arg for k in node.keywords}, f"{path}:{node.lineno}"


def test_no_network_modules_are_imported():
    network = {"socket", "ssl", "http", "urllib", "requests", "ftplib", "smtplib", "xmlrpc"}
    for path, nodes in sources():
        for node in nodes:
            assert not imported(node) & network, path


@pytest.mark.processes
def test_nothing_opens_a_socket(tmp_path):
    """Fit, report, save, load, verify and the command line, with sockets out of order."""
    data = tmp_path / "data.csv"
    X = np.random.default_rng(1).standard_normal((30, 5))
    data.write_text("a,b,c,d,e\n" + "\n".join(",".join(map(repr, row)) for row in X.tolist()))
    code = """
import sys

def hook(event, arguments):
    if event.startswith("socket.") and event not in ("socket.__new__", "socket.gethostname"):
        raise RuntimeError(event)
    if event == "socket.__new__" and arguments[1] != 1:  # AF_UNIX stays on the machine
        raise RuntimeError(event)

sys.addaudithook(hook)
from sparcipal.cli import main
folder = sys.argv[1]
main(["fit", f"{folder}/data.csv", "-k", "1", "-s", "2", "--out", f"{folder}/m.json",
      "--report", f"{folder}/r.html", "--quiet"], standalone_mode=False)
main(["verify", f"{folder}/m.json", f"{folder}/data.csv"], standalone_mode=False)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    page = (tmp_path / "r.html").read_text()
    # no script, picture or style from elsewhere
    for mark in ("<script src", 'src="http', 'href="http', "@import", "url(http"):
        assert mark not in page


def test_the_report_escapes_names(tmp_path):
    from sparcipal.report.page import write_report

    names = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "a&b", "' onclick='x"]
    X = np.random.default_rng(1).standard_normal((30, 4))
    result = sparse_pca(X, n_nonzero_coefs=4, feature_names=names)
    write_report(result, tmp_path / "r.html")
    for page in ((tmp_path / "r.html").read_text(), result._repr_html_()):
        for name in ("<script>alert", "<img src=x", "' onclick='x"):
            assert name not in page


@pytest.mark.processes
def test_csv_output_keeps_names_as_they_are(model, tmp_path):
    """Names are data: they come back as they went in. The documentation says what that means."""
    import csv

    names = ["=1+1", "+2", "-3", "@x"]
    result = sparse_pca(np.eye(4) @ np.diag([4.0, 3, 2, 1]), n_nonzero_coefs=4, feature_names=names)
    path = tmp_path / "m.json"
    result.save(path)
    done = subprocess.run(
        [sys.executable, "-m", "sparcipal", "show", str(path), "--format", "csv"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert {row["feature"] for row in rows} <= set(names)
    assert json.loads(path.read_text())["feature_names"] == names
