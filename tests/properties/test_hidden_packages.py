"""Every optional package may be missing: the rest works, and what needs it says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

HIDING = """
import importlib.abc, sys

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {packages!r}:
            raise ImportError(f"no module named {{name}}")

sys.meta_path.insert(0, Hidden())
"""
WORKING = """
import numpy as np
import sparcipal
from sparcipal import SparsePCA, Result, read, sparse_pca, verify
X = np.random.default_rng(0).standard_normal((20, 5))
result = sparse_pca(X, n_nonzero_coefs=2)
assert verify(Result.from_json(result.to_json()), X)
SparsePCA(1, 2).fit(X).transform(X)
str(result), result._repr_html_()
"""
# What needs the package: code, and words of the error.
NEEDING = {
    "matplotlib": (
        "from sparcipal.report.plots import LoadingsDisplay\n"
        "LoadingsDisplay.from_result(result).plot()",
        "sparcipal[plot]",
    ),
    "pyarrow": ("open('x.parquet', 'wb').write(b'PAR1')\nread('x.parquet')", "sparcipal[io]"),
    "anndata": ("open('x.h5ad', 'wb').write(b'HDF')\nread('x.h5ad')", "sparcipal[anndata]"),
    "flint": ("verify(result, X, arithmetic='exact')", "sparcipal[exact]"),
}


def run(code: str, folder) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=folder
    )


@pytest.mark.parametrize("packages", [("pandas", "polars", "dask", "isal"), tuple(NEEDING)])
def test_package_works_without_optional_packages(packages, tmp_path):
    code = HIDING.format(packages=packages) + WORKING + "print('works')\n"
    for package in set(packages) & set(NEEDING):
        tried = NEEDING[package][0].replace("\n", "\n    ")
        code += f"try:\n    {tried}\nexcept Exception as error:\n    print({package!r}, error)\n"
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("works"), done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines()[1:])
    assert set(said) == set(packages) & set(NEEDING)
    for package, words in said.items():
        assert NEEDING[package][1] in words


def test_importing_loads_none_of_them():
    heavy = ["matplotlib", "pandas", "pyarrow", "polars", "anndata", "dask", "numba", "sklearn"]
    heavy.append("flint")
    code = f"import sys, sparcipal; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout
