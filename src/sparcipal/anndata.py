"""Sparse components of single-cell data are stored in the AnnData object as scanpy stores a PCA."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data.genes import HIGHLY_VARIABLE, from_anndata, is_anndata, used_genes
from .data.scores import scores
from .data.table import Table
from .fit import sparse_pca
from .problem.result import Result

# These settings are recorded under "params", as scanpy does.
_PARAMS = (
    "center",
    "scale",
    "supports",
    "objective",
    "uncorrelated",
    "nonnegative",
    "method",
    "certify",
    "random_state",
)


def spca(
    adata: Any,
    n_comps: int = 10,
    n_nonzero: int | list[int] = 20,
    *,
    layer: str | None = None,
    mask_var: Any = HIGHLY_VARIABLE,
    key_added: str | None = None,
    copy: bool = False,
    proof: bool = True,
    **options: Any,
) -> Any:
    """PCA with few genes per component, and a certificate of how good they are.

    Parameters
    ----------
    adata : AnnData
        Cells by genes; a sparse matrix stays sparse.
    n_comps : int
        The number of components.
    n_nonzero : int, or one int per component
        At most so many genes each.
    layer : str, optional
        Which layer, instead of `X`.
    mask_var : str, array of bool or None
        The genes to use: a column of `adata.var`, or one truth value per gene; None means all. As
        in scanpy, the genes that are marked "highly_variable" are used where such a column is.
        Loadings of the others are zero, and `include` and `exclude` may name only the used ones.
    key_added : str, optional
        Name under which everything is stored, instead of the names below.
    copy : bool
        Return a changed copy and leave `adata` alone.
    proof : bool
        Whether `result` holds the proof as well, so that `verify` can recheck it.
    **options
        Of `sparse_pca`, for instance `center`, `supports`, `nonnegative`, `n_jobs`.

    Returns
    -------
    AnnData or None
        The copy, if asked for. These are set:

        - `obsm["X_spca"]`: scores of the cells
        - `varm["sPCs"]`: loadings of the genes
        - `uns["spca"]`: `variance`, `variance_ratio`, `params`, `certificate` (value, bound, gap,
          status, proved_by) and `result`, which `sparcipal.Result.from_json` reads and
          `sparcipal.verify(result, adata)` rechecks
    """
    if not is_anndata(adata):
        raise ValueError(
            f"adata must be an AnnData object, got {type(adata)}; use sparse_pca for X"
        )
    for name, own in (("n_components", "n_comps"), ("n_nonzero_coefs", "n_nonzero")):
        if name in options:
            raise TypeError(f"spca() calls {name} {own}, as scanpy does; pass {own}=...")
    adata = adata.copy() if copy else adata
    used = used_genes(adata, mask_var)
    matrix, names, cells = from_anndata(adata, layer)
    if not used.all():
        matrix, names = matrix[:, used], tuple(map(str, adata.var_names[used]))
    table = Table(matrix, names, cells)
    result = sparse_pca(table, n_components=n_comps, n_nonzero_coefs=n_nonzero, **options)
    loadings = np.zeros((used.size, len(result.supports)))
    loadings[used] = result.components.T
    adata.obsm[key_added or "X_spca"] = scores(result, table.X)
    adata.varm[key_added or "sPCs"] = loadings
    chosen: dict[str, Any] = {} if layer is None else {"layer": layer}
    if not used.all():
        chosen["mask_var"] = mask_var if isinstance(mask_var, str) else used
    adata.uns[key_added or "spca"] = _summary(result, chosen, proof)
    return adata if copy else None


def _summary(result: Result, chosen: dict[str, Any], proof: bool) -> dict[str, Any]:
    """Return only numbers, strings and arrays, which an .h5ad file can hold."""
    certificate = result.certificate
    params = {name: result.settings[name] for name in _PARAMS if result.settings[name] is not None}
    return {
        "variance": result.variances,
        "variance_ratio": result.variances / result.total_variance,
        "params": params
        | {"n_nonzero": [int(s) for s in result.settings["n_nonzero_coefs"]]}
        | chosen,
        "certificate": {
            "value": certificate.value,
            "bound": certificate.bound,
            "gap": certificate.gap,
            "status": certificate.status.value,
            "proved_by": certificate.proved_by,
        },
        "result": result.to_json(proof=proof),
    }
