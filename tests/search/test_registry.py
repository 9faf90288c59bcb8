"""A method is one file and one line: everything else learns of it from the registry."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparcipal import sparse_pca
from sparcipal.search.registry import METHODS, get_method, sharing_methods
from tests.support.places import ROOT, copied_package

METHODS_FOLDER = ROOT / "src" / "sparcipal" / "search" / "methods"


def test_every_file_of_the_folder_is_a_method_of_its_name():
    files = {path.stem for path in METHODS_FOLDER.glob("*.py")} - {"__init__"}
    assert files == set(METHODS)
    assert [get_method(name).name for name in METHODS] == list(METHODS)
    assert all(get_method(name).paper for name in METHODS)


def test_sharing_methods_are_those_that_share_a_total():
    assert sharing_methods() == ["auto", "bipartite"]


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(ValueError, match="method='magic' is unknown; choose one of auto, bip"):
        get_method("magic")


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The package with the example of CONTRIBUTING.md added to it: one file, one line."""
    folder = tmp_path_factory.mktemp("package")
    package = copied_package(folder)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add a method")[1]
    example = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert example is not None
    (package / "search" / "methods" / "variances.py").write_text(example[1], encoding="utf-8")
    registry = package / "search" / "registry.py"
    line = '    "enumerate",\n'
    before = registry.read_text(encoding="utf-8")
    assert line in before
    registry.write_text(before.replace(line, f'{line}    "variances",\n'), encoding="utf-8")
    return folder


def python(folder: Path, *arguments: object) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "100"}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.processes
def test_an_added_method_solves_and_is_verified(copy):
    program = """
import numpy as np
from sparcipal import sparse_pca, verify
A = np.diag([1.0, 5.0, 2.0, 4.0, 3.0, 6.0]) + 0.5
found = sparse_pca(covariance=A, n_components=2, n_nonzero_coefs=2, method="variances")
assert verify(found, covariance=A)
print([support.tolist() for support in found.supports])
try:
    sparse_pca(covariance=A, n_components=2, n_nonzero_coefs={"total": 3}, method="variances")
except ValueError as refused:
    print(refused)
"""
    shown, refused = python(copy, "-c", program).splitlines()
    assert shown == "[[1, 5], [3, 4]]"
    assert "needs method='auto' or 'bipartite', got 'variances'" in refused


@pytest.mark.processes
def test_an_added_method_is_known_to_the_command_line(copy, tmp_path):
    assert "variances" in python(copy, "-m", "sparcipal", "fit", "--help")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((30, 5)))
    table = tmp_path / "x.npy"
    told = python(
        copy, "-m", "sparcipal", "fit", table, "-s", 2, "--method", "variances", "--format", "json"
    )
    assert json.loads(told)["settings"]["method"] == "variances"


@pytest.mark.processes
def test_lists_of_names_load_no_method(copy):
    program = (
        "import sys; from sparcipal.cli import main; from sparcipal.search.registry import METHODS;"
        "print([m for m in sys.modules if 'search.methods' in m or m in ('numpy', 'numba')])"
    )
    assert python(copy, "-c", program).strip() == "[]"


rng = np.random.default_rng(0)


SAMPLES = rng.standard_normal((30, 8))


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("em", {"thresholding": "medium"}, "thresholding must be 'hard' or 'soft', got 'medium'"),
        ("enumerate", {"max_packings": 0}, r"\['max_packings'\]=0 must be at least 1"),
        ("spannogram", {"algorithm": "magic"}, "algorithm must be 'cones' or 'net', got 'magic'"),
        ("spannogram", {"max_cones": 0}, r"\['max_cones'\]=0 must be at least 1"),
        ("spannogram", {"algorithm": "net", "eps": 1e-9}, "random points, the limit is"),
        ("auto", {"effort": -1}, r"\['effort'\]=-1 must be at least 0"),
    ],
)
def test_methods_refuse_options_out_of_range(method, settings, message):
    with pytest.raises(ValueError, match=message):
        sparse_pca(SAMPLES, n_nonzero_coefs=3, method=method, method_options=settings)


OVERLAPPING = ("auto", "threshold", "tpower", "em", "gpower", "greedy", "dspca", "spannogram")


@pytest.mark.parametrize("method", OVERLAPPING)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_methods_answer_when_components_outnumber_directions(method, nonnegative):
    """Rank one, several components: the first explains all, and the others are still components."""
    x = np.array([0.6, 2.0, 1.1, 0.9, 1.7, 0.7])
    result = sparse_pca(
        covariance=np.outer(x, x),
        n_components=2,
        n_nonzero_coefs=3,
        method=method,
        nonnegative=nonnegative,
        supports="free",
        certify=False,
        rank=2 if method == "spannogram" else None,
    )
    assert result.variances[0] == pytest.approx(2.0**2 + 1.7**2 + 1.1**2)
    assert abs(result.variances[1]) < 1e-9
    assert min(s.size for s in result.supports) >= 1
