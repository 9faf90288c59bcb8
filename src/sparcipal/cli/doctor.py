"""Examine the installation: versions, kernels that compile, and what each extra would add."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import pkgutil
import platform
import time

CORE = ("numpy", "scipy", "scikit-learn", "numba", "click", "rich")
EXTRAS = {
    "matplotlib": "plots (pip install 'sparcipal[plot]')",
    "pandas": "pandas frames (pip install 'sparcipal[io]')",
    "pyarrow": "Parquet files (pip install 'sparcipal[io]')",
    "narwhals": "polars and pyarrow frames (pip install narwhals)",
    "anndata": "AnnData and .h5ad files (pip install 'sparcipal[anndata]')",
    "dask": "dask arrays and clusters (pip install 'sparcipal[dask]')",
    "python-flint": "verify --exact (pip install 'sparcipal[exact]')",
}


def examine() -> tuple[list[tuple[str, str]], bool]:
    """Return the lines of the report as pairs, and whether the core works."""
    rows = [
        ("sparcipal", _version("sparcipal") or "not installed"),
        ("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("cores", str(os.cpu_count())),
    ]
    healthy = True
    for name in CORE:
        version = _version(name)
        healthy &= version is not None
        rows.append((name, version or "MISSING: pip install sparcipal again"))
    rows += [(name, _version(name) or f"not installed: {use}") for name, use in EXTRAS.items()]
    state, works = _kernels()
    rows.append(("kernels", state))
    state, solves = _smoke()
    rows.append(("first answer", state))
    return rows, healthy and works and solves


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _kernels() -> tuple[str, bool]:
    from .. import kernels

    names = [info.name for info in pkgutil.iter_modules(kernels.__path__)]
    try:
        for name in names:
            importlib.import_module(f"{kernels.__name__}.{name}")
    except Exception as error:
        return f"BROKEN: {name}: {error}", False
    return f"{len(names)} files import", True


def _smoke() -> tuple[str, bool]:
    """Solve a small problem with a known answer, which also compiles the kernels it needs."""
    import numpy as np

    from ..fit import sparse_pca

    start = time.perf_counter()
    matrix = np.array([[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 3.5]])
    try:
        result = sparse_pca(covariance=matrix, n_nonzero_coefs=2)
    except Exception as error:
        return f"BROKEN: {error}", False
    right = abs(result.value - 4.0) < 1e-9 and result.bound >= 4.0 - 1e-9
    seconds = time.perf_counter() - start
    return (f"right, after {seconds:.1f} s" if right else f"WRONG: {result!r}"), right
