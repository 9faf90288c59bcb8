"""Sparse components of single-cell data are stored in the AnnData object as scanpy stores a PCA."""

from __future__ import annotations

from typing import Any

from .data.frames import from_anndata, is_anndata
from .data.scores import scores
from .data.table import Table, as_table
from .fit import sparse_pca
from .problem.result import Result

# These settings are recorded under "params", as scanpy does.
_PARAMS = ("center", "scale", "supports", "nonnegative", "method", "certify", "random_state")


def spca(
    adata: Any,
    n_comps: int = 10,
    n_nonzero: int | list[int] = 20,
    *,
    layer: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
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
    key_added : str, optional
        Name under which everything is stored, instead of the names below.
    copy : bool
        Return a changed copy and leave `adata` alone.
    **options
        Of `sparse_pca`, for instance `center`, `supports`, `nonnegative`, `n_jobs`.

    Returns
    -------
    AnnData or None
        The copy, if asked for. These are set:

        - `obsm["X_spca"]`: scores of the cells
        - `varm["sPCs"]`: loadings of the genes
        - `uns["spca"]`: `variance`, `variance_ratio`, `params`, `certificate` (value, bound, gap,
          status, proved_by) and `result`, which `sparcipal.Result.from_json` reads
    """
    if not is_anndata(adata):
        raise ValueError(
            f"adata must be an AnnData object, got {type(adata)}; use sparse_pca for X"
        )
    adata = adata.copy() if copy else adata
    table = as_table(Table(*from_anndata(adata, layer)))
    result = sparse_pca(table, n_components=n_comps, n_nonzero_coefs=n_nonzero, **options)
    adata.obsm[key_added or "X_spca"] = scores(result, table.X)
    adata.varm[key_added or "sPCs"] = result.components.T
    adata.uns[key_added or "spca"] = _summary(result, layer)
    return adata if copy else None


def _summary(result: Result, layer: str | None) -> dict[str, Any]:
    """Return only numbers, strings and arrays, which an .h5ad file can hold."""
    certificate = result.certificate
    params = {name: result.settings[name] for name in _PARAMS if result.settings[name] is not None}
    return {
        "variance": result.variances,
        "variance_ratio": result.variances / result.total_variance,
        "params": params
        | {"n_nonzero": [int(s) for s in result.settings["n_nonzero_coefs"]]}
        | ({"layer": layer} if layer is not None else {}),
        "certificate": {
            "value": certificate.value,
            "bound": certificate.bound,
            "gap": certificate.gap,
            "status": certificate.status.value,
            "proved_by": certificate.proved_by,
        },
        "result": result.to_json(proof=False),
    }
