"""AnnData as a matrix with names, and the genes that are marked in it."""

from __future__ import annotations

from typing import Any

import numpy as np

Named = tuple[Any, tuple[str, ...] | None, tuple[str, ...] | None]  # matrix, features, samples
HIGHLY_VARIABLE = "highly_variable"  # the column in which scanpy marks genes


def is_anndata(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "anndata" and hasattr(X, "var_names")


def used_genes(adata: Any, mask_var: Any) -> np.ndarray:
    """Return one truth value per gene: whether it is used."""
    count = adata.n_vars
    missing = isinstance(mask_var, str) and mask_var not in adata.var
    if mask_var is None or (missing and mask_var == HIGHLY_VARIABLE):
        return np.ones(count, dtype=bool)
    if missing:
        known = ", ".join(map(repr, adata.var.columns)) or "none"
        raise ValueError(f"mask_var={mask_var!r} is no column of adata.var; its columns: {known}")
    mask = np.asarray(adata.var[mask_var] if isinstance(mask_var, str) else mask_var)
    if mask.dtype != bool or mask.shape != (count,):
        raise ValueError(
            f"mask_var must hold {count} truth values, one per gene, got {mask.dtype} of shape "
            f"{mask.shape}; pass for instance adata.var['highly_variable'].to_numpy(bool)"
        )
    if not mask.any():
        raise ValueError(f"mask_var={mask_var!r} marks no gene; pass mask_var=None to use all")
    return mask


def on_marked_genes(adata: Any) -> tuple[str, ...]:
    """Say that all genes are used where some are marked, which `spca` and files would use alone."""
    if HIGHLY_VARIABLE not in adata.var:
        return ()
    marked = np.asarray(adata.var[HIGHLY_VARIABLE])
    if marked.dtype != bool or marked.all() or not marked.any():
        return ()
    return (
        f"all {marked.size} genes used, not only the {int(marked.sum())} marked "
        f"{HIGHLY_VARIABLE!r}; pass adata[:, adata.var[{HIGHLY_VARIABLE!r}]] for these alone",
    )


def labels_of(adata: Any, label: str) -> tuple[str, ...]:
    """Return the entries of a column of `adata.obs`, as labels of the cells."""
    if label not in adata.obs:
        known = ", ".join(map(repr, adata.obs.columns)) or "none"
        raise ValueError(f"label={label!r} is no column of adata.obs; its columns: {known}")
    column = adata.obs[label]
    return tuple("" if gone else str(e) for e, gone in zip(column, column.isna()))


def from_anndata(adata: Any, layer: str | None = None) -> Named:
    """Return the matrix of an AnnData object (or one of its layers), cells in rows, genes in
    columns."""
    if layer is not None and layer not in adata.layers:
        known = ", ".join(map(repr, adata.layers)) or "none"
        raise ValueError(f"layer={layer!r} is not in this AnnData object; its layers: {known}")
    matrix = adata.X if layer is None else adata.layers[layer]
    if matrix is None:
        raise ValueError("the AnnData object has no X; name a layer, or set adata.X")
    if hasattr(matrix, "to_memory"):
        matrix = matrix.to_memory()
    elif type(matrix).__module__.partition(".")[0] == "h5py":
        matrix = matrix[...]
    return matrix, tuple(map(str, adata.var_names)), tuple(map(str, adata.obs_names))
