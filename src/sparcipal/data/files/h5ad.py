"""AnnData's .h5ad: cells by genes, with their names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..genes import HIGHLY_VARIABLE, from_anndata, labels_of, used_genes
from . import bytes as limits
from .bytes import Path_
from .reader import NotInBlocks, Parsed, Reader

PATIENCE = 20.0  # seconds for the structure of a small file


def read_h5ad(
    source: Path_,
    names: Any,
    *,
    layer: str | None = None,
    label: str | None = None,
    label_needed: bool = True,
    mask_var: str | None = HIGHLY_VARIABLE,
) -> Parsed:
    """Cells by genes. `label` is a column of obs; `mask_var` a column of var that marks the genes
    to use, by default "highly_variable" where there is one, as in scanpy."""
    adata = _opened(source)
    return _parsed(adata, source, layer, _known(adata, label, label_needed), mask_var)


def h5ad_blocks(
    source: Path_,
    names: Any,
    *,
    layer: str | None = None,
    label: str | None = None,
    label_needed: bool = True,
    mask_var: str | None = HIGHLY_VARIABLE,
) -> Iterator[Parsed]:
    """Yield some cells at a time, of a matrix that is dense or stored by cells."""
    if layer is not None:
        raise NotInBlocks("layers are read whole")
    adata = _opened(source, backed="r")
    try:
        n, step = adata.shape[0], _step(source, adata)
        for start in range(0, n, step):
            part = adata[start : min(start + step, n)].to_memory()
            yield _parsed(part, source, None, _known(adata, label, label_needed), mask_var)
    finally:
        adata.file.close()


def _known(adata: Any, label: str | None, needed: bool) -> str | None:
    """Return the column of labels; none where new cells lack it, which are scored without."""
    return label if needed or label in adata.obs.columns else None


def _opened(source: Path_, backed: Any = None) -> Any:
    try:
        import anndata
    except ImportError as error:
        raise ValueError(
            f"{source}: .h5ad files need anndata; pip install 'sparcipal[anndata]'"
        ) from error
    try:
        _check_h5(source)
        return anndata.read_h5ad(os.fspath(source), backed=backed)
    except OSError as error:  # HDF5 does not name the file
        raise ValueError(f"{source}: damaged, or not h5ad ({error})") from error


def _parsed(
    adata: Any, source: Path_, layer: str | None, label: str | None, mask_var: str | None
) -> Parsed:
    used = used_genes(adata, mask_var)
    labels = None if label is None else labels_of(adata, label)
    notes: tuple[str, ...] = ()
    if not used.all():
        notes = (
            f"{int(used.sum())} of {used.size} genes used: those marked {mask_var!r}; "
            "mask_var=None uses all",
        )
        adata = adata[:, used]
    matrix, genes, cells = from_anndata(adata, layer)
    found = Parsed(matrix, genes, cells, labels=labels, label_name=label, notes=notes)
    if found.matrix.dtype.kind not in "biuf":
        raise ValueError(f"{source}: the matrix holds {found.matrix.dtype} instead of numbers")
    return found


def _step(source: Path_, adata: Any) -> int:
    """Cells that are read together."""
    n, p = adata.shape
    limit = source.memory_limit if isinstance(source, limits.Source) else 1 << 30
    if hasattr(adata.X, "group"):  # a sparse matrix in the file
        if getattr(adata.X, "format", "") != "csr":
            raise NotInBlocks("the matrix is stored by genes")
        each = 12 * int(adata.X.group["data"].shape[0]) / max(n, 1)
    else:
        each = 8.0 * p
    return max(1, int(limit / (16 * max(each, 1.0))))


def _numbers(source: Path_) -> int:
    """Return the bytes of the numbers of X, which may be packed in the file."""
    try:
        import h5py

        with h5py.File(os.fspath(source), "r") as file:
            X = file["X"]
            if isinstance(X, h5py.Group):
                return 12 * int(X["data"].shape[0])
            return 8 * int(X.shape[0]) * int(X.shape[1])
    except Exception:  # `read_h5ad` meets the same error and has the words for it
        return 0


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
    h5ad_blocks,
    options={
        "layer": (str,),
        "label": (str,),
        "label_needed": (bool,),
        "mask_var": (str, type(None)),
    },
    from_pipe=False,
    worth_caching=False,
    numbers=_numbers,
)
