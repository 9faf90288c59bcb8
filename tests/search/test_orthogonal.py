"""Orthogonal components with overlapping supports."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.problem.result import Result


def vectors(result: Result) -> np.ndarray:
    V = np.zeros((len(result.supports), result.n_features))
    for row, support, weights in zip(V, result.supports, result.weights):
        row[support] = weights
    return V


def adjusted_variance(X: np.ndarray, V: np.ndarray) -> float:
    """Zou, Hastie and Tibshirani: the squared diagonal of R in the QR decomposition of scores."""
    scores = (X - X.mean(axis=0)) @ V.T / np.sqrt(X.shape[0])
    return float(np.square(np.diagonal(np.linalg.qr(scores)[1])).sum())


@pytest.mark.parametrize("seed", range(8))
def test_components_are_orthogonal_and_valued_by_adjusted_variance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 12))
    k, s = int(rng.integers(2, min(p, 4) + 1)), int(rng.integers(1, p + 1))
    X = rng.standard_normal((int(rng.integers(4, 20)), p)) @ rng.standard_normal((p, p))
    if seed % 3 == 0:
        X[:, 0] = X[:, 1]
    question = {"n_components": k, "n_nonzero_coefs": s, "supports": "free"}
    result = sparse_pca(X, method_options={"orthogonal": True, "effort": 1}, **question)
    V = vectors(result)
    np.testing.assert_allclose(V @ V.T, np.eye(k), atol=1e-8)
    assert np.count_nonzero(V, axis=1).max() <= s
    assert result.value == pytest.approx(adjusted_variance(X, V), rel=1e-6)
    assert result.value <= result.bound
    assert verify(result, X).verdict == "proved"


def test_all_features_give_the_principal_components() -> None:
    X = np.random.default_rng(0).standard_normal((30, 6)) * np.arange(1, 7)
    result = sparse_pca(
        X,
        n_components=3,
        n_nonzero_coefs=6,
        supports="free",
        method_options={"orthogonal": True},
    )
    largest = np.linalg.eigvalsh(np.cov(X.T, bias=True))[-3:].sum()
    assert result.value == pytest.approx(largest, rel=1e-7)


def test_nonnegative_and_orthogonal_means_disjoint() -> None:
    with pytest.raises(ValueError, match="disjoint"):
        sparse_pca(
            np.random.default_rng(0).standard_normal((9, 5)),
            n_components=2,
            n_nonzero_coefs=2,
            supports="free",
            nonnegative=True,
            method_options={"orthogonal": True},
        )


def test_orthogonal_components_leave_a_support_that_is_full():
    """Two features have room for two orthogonal components, not for a third one."""
    matrix = np.diag([5.0, 4.0, 0.1, 0.05])
    result = sparse_pca(
        covariance=matrix,
        n_components=3,
        n_nonzero_coefs=2,
        supports="free",
        method="auto",
        method_options={"orthogonal": True},
        certify=False,
    )
    W = result.components
    np.testing.assert_allclose(W @ W.T, np.eye(3), atol=1e-9)
    assert result.value == pytest.approx(9.1)
