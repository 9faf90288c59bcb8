"""Scores of samples on components: (X - mean) / scale @ components', from the used columns only."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .result import Result


def scores(result: Result, X: Any) -> np.ndarray:
    """One row per sample of X (array, memory map or sparse), one column per component.

    A row's scores depend on that row alone.
    """
    if result.mean is None or result.scale is None:
        raise ValueError("the result came from a covariance matrix: there are no samples to score")
    if X.shape[1] != result.n_features:
        raise ValueError(
            f"X has {X.shape[1]} features, but the components were found on {result.n_features}"
        )
    used = np.unique(np.concatenate(result.supports))
    # (features, components): dividing here leaves the data alone
    loadings = (result.components[:, used] / result.scale[used]).T
    if sp.issparse(X):
        columns: Any = sp.csr_array(X[:, used]).astype(np.float64)
        return np.asarray(columns @ loadings) - result.mean[used] @ loadings
    centred = np.asarray(X[:, used], dtype=np.float64) - result.mean[used]
    # Not a matrix product: its summation order may depend on the number of rows.
    return np.einsum("ij,jk->ik", centred, loadings)


def strongest_samples(values: np.ndarray, component: int, count: int) -> np.ndarray:
    """The samples with the largest scores on a component, the largest first."""
    return np.argsort(-values[:, component], kind="stable")[:count]
