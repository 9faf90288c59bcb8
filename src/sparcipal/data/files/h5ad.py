"""AnnData's .h5ad: cells by genes, with their names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .. import frames
from . import bytes as limits
from .bytes import Path_
from .reader import Parsed, Reader

PATIENCE = 20.0  # seconds for the structure of a small file


def read_h5ad(source: Path_, names: Any, *, layer: str | None = None) -> Parsed:
    try:
        import anndata
    except ImportError as error:
        raise ValueError(
            f"{source}: .h5ad files need anndata; pip install 'sparcipal[anndata]'"
        ) from error
    try:
        _check_h5(source)
        found = Parsed(*frames.from_anndata(anndata.read_h5ad(os.fspath(source)), layer))
    except OSError as error:  # HDF5 does not name the file
        raise ValueError(f"{source}: damaged, or not h5ad ({error})") from error
    if found.matrix.dtype.kind not in "biuf":
        raise ValueError(f"{source}: the matrix holds {found.matrix.dtype} instead of numbers")
    return found


def _check_h5(source: Path_) -> None:
    """Raise what h5check.py finds wrong with the file, or that it crashes or takes too long."""
    path = os.fspath(source)
    script = Path(__file__).with_name("h5check.py")
    command = [sys.executable, "-P", os.fspath(script), path, str(limits.LARGE), str(limits.RATIO)]
    seconds = PATIENCE + os.path.getsize(path) / 1e7
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"{source}: damaged: the HDF5 library has not found its way through it in "
            f"{seconds:.0f} s"
        ) from None
    if done.returncode < 0:
        raise ValueError(f"{source}: damaged: the HDF5 library crashes on it")
    if done.returncode:
        raise ValueError(f"{source}: {done.stderr.strip()}")


READER = Reader(
    "h5ad", (".h5ad",), read_h5ad, options={"layer": (str,)}, from_pipe=False, worth_caching=False
)
