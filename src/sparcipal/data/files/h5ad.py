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


def read_h5ad(
    source: Path_,
    names: Any,
    *,
    layer: str | None = None,
    label: str | None = None,
    mask_var: str | None = frames.HIGHLY_VARIABLE,
) -> Parsed:
    """Cells by genes. `label` is a column of obs; `mask_var` a column of var that marks the genes
    to use, by default "highly_variable" where there is one, as in scanpy."""
    try:
        import anndata
    except ImportError as error:
        raise ValueError(
            f"{source}: .h5ad files need anndata; pip install 'sparcipal[anndata]'"
        ) from error
    try:
        _check_h5(source)
        adata = anndata.read_h5ad(os.fspath(source))
    except OSError as error:  # HDF5 does not name the file
        raise ValueError(f"{source}: damaged, or not h5ad ({error})") from error
    used = frames.used_genes(adata, mask_var)
    labels = None if label is None else frames.labels_of(adata, label)
    notes: tuple[str, ...] = ()
    if not used.all():
        notes = (
            f"{int(used.sum())} of {used.size} genes used: those marked {mask_var!r}; "
            "mask_var=None uses all",
        )
        adata = adata[:, used]
    matrix, genes, cells = frames.from_anndata(adata, layer)
    found = Parsed(matrix, genes, cells, labels=labels, label_name=label, notes=notes)
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
    "h5ad",
    (".h5ad",),
    read_h5ad,
    options={"layer": (str,), "label": (str,), "mask_var": (str, type(None))},
    from_pipe=False,
    worth_caching=False,
)
