"""Forged repairs of covariances of pairs are refused, at every offset and scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify


def with_gaps(seed=0, offset=0.0, factor=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 1)) * 2.0 + rng.standard_normal((60, 6))
    X = factor * (X + offset)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def forged(result: Result, **changes) -> Result:
    """The claim of a small matrix, with a repair that says how it came about."""
    p = result.n_features
    small = 1e-3 * np.eye(p) * result.value
    told = sparse_pca(covariance=small, n_nonzero_coefs=3)
    repair = {**result.certificate.repair, "matrix": small, **changes}
    certificate = replace(told.certificate, repair=repair)
    return replace(
        result, supports=told.supports, weights=told.weights, variances=told.variances,
        total_variance=told.total_variance, certificate=certificate,
    )  # fmt: skip


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize(
    ("offset", "factor"), [(0.0, 1.0), (1e7, 1.0), (0.0, 1e-90), (0.0, 1e80), (100.0, 1e-6)]
)
def test_repair_that_is_not_the_nearest_matrix_is_refused(offset, factor, scale):
    X = with_gaps(0, offset, factor)
    result = sparse_pca(X, n_nonzero_coefs=3, missing="pairwise", scale=scale)
    assert verify(result, X)
    far = {"moved": 2.0 * result.total_variance, "relative": 1.0}
    for changes in (far, {"moved": 0.0, "relative": 0.0}, {}):
        assert verify(forged(result, **changes), X).verdict == "refused"


def test_complete_table_needs_its_own_covariance():
    X = np.nan_to_num(with_gaps())
    gaps = with_gaps()
    result = sparse_pca(gaps, n_nonzero_coefs=3, missing="pairwise")
    assert verify(result, X).verdict == "refused"
    far = {"moved": 2.0 * result.total_variance, "relative": 1.0}
    assert verify(forged(result, **far), X).verdict == "refused"


def test_repaired_matrix_that_is_not_symmetric_is_refused():
    X = with_gaps()
    result = sparse_pca(X, n_nonzero_coefs=3, missing="pairwise")
    matrix = result.certificate.repair["matrix"].copy()
    matrix[0, 1] += 1e-3
    repair = {**result.certificate.repair, "matrix": matrix}
    bent = replace(result, certificate=replace(result.certificate, repair=repair))
    assert verify(bent, X).verdict == "refused"


def test_repair_without_missing_entries_is_refused():
    X = np.nan_to_num(with_gaps())
    result = sparse_pca(X, n_nonzero_coefs=3)
    repair = {"moved": 123.0, "relative": 0.9}
    told = replace(result, certificate=replace(result.certificate, repair=repair))
    assert verify(told, X).verdict == "refused"


def test_number_of_features_beyond_any_table_is_refused():
    X = np.nan_to_num(with_gaps())
    result = sparse_pca(X, n_nonzero_coefs=3)
    assert verify(replace(result, n_features=10**30), X).verdict == "refused"


def test_repeated_names_are_refused_beside_a_wider_frame():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X = np.nan_to_num(with_gaps())
    frame = pl.DataFrame({f"c{j}": X[:, j] for j in range(6)})
    result = sparse_pca(X[:, [2, 2, 3]], n_nonzero_coefs=2, feature_names=["c2", "x", "c3"])
    told = replace(result, feature_names=("c2", "c2", "c3"))
    assert verify(told, frame).verdict == "refused"


def test_a_repaired_matrix_is_the_nearest_one_and_not_only_as_near():
    """Along the boundary of the positive semidefinite matrices distances hardly grow: a matrix may
    lie sqrt(2 d e) from the nearest one and only e further away from the pairs."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((12, 6)) + rng.standard_normal((12, 1))
    X[rng.random(X.shape) < 0.35] = np.nan
    result = sparse_pca(X, n_nonzero_coefs=3, missing="pairwise")
    assert verify(result, X)
    repair = result.certificate.repair
    assert repair["relative"] > 1e-3
    matrix = np.array(repair["matrix"])
    w, Q = np.linalg.eigh(matrix)
    for step in (1e-6, 1e-8):
        turned = Q.copy()
        turned[:, 0] = np.sqrt(1 - step**2) * Q[:, 0] + step * Q[:, -1]
        turned[:, -1] = np.sqrt(1 - step**2) * Q[:, -1] - step * Q[:, 0]
        other = (turned * w) @ turned.T
        other = (other + other.T) / 2
        fresh = sparse_pca(covariance=other, n_nonzero_coefs=3)
        certificate = replace(fresh.certificate, repair={**repair, "matrix": other})
        forged = replace(
            result,
            supports=fresh.supports,
            weights=fresh.weights,
            variances=fresh.variances,
            total_variance=fresh.total_variance,
            certificate=certificate,
        )
        assert "nearest" in verify(forged, X).reason


@pytest.mark.parametrize("asked", [{"exclude": [5]}, {"include": [2], "n_nonzero_coefs": 1}])
def test_large_columns_do_not_hide_the_covariances_of_others(asked):
    """Pairs that need no repair are compared in the units of each feature."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1)) + rng.standard_normal((60, 6))
    X[3, 2] = X[7, 0] = np.nan
    X[:, 5] *= 1e9
    asked = {"n_nonzero_coefs": 3, **asked}
    result = sparse_pca(X, missing="pairwise", **asked)
    assert verify(result, X)
    repair = result.certificate.repair
    matrix = np.array(repair["matrix"])
    matrix[2, 2] *= 1 + 1e-9
    other = replace(result.certificate, repair={**repair, "matrix": matrix})
    assert "needs no repair" in verify(replace(result, certificate=other), X).reason


def test_pairs_of_which_all_features_are_excluded_are_refused():
    X = with_gaps()
    result = sparse_pca(X, n_nonzero_coefs=2, missing="pairwise")
    assert result.certificate.repair["moved"] == 0
    none = {**result.settings, "exclude": list(range(6))}
    assert verify(replace(result, settings=none), X).verdict == "refused"


def test_repair_is_refused_where_it_hides_small_columns():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((12, 6)) + rng.standard_normal((12, 1))
    X[rng.random(X.shape) < 0.35] = np.nan
    result = sparse_pca(X, n_nonzero_coefs=3, missing="pairwise")
    assert result.certificate.repair["moved"] > 0
    X[:, 5] *= 1e9
    with pytest.raises(ValueError, match="rounding hides its part"):
        sparse_pca(X, n_nonzero_coefs=3, missing="pairwise")
    scaled = sparse_pca(X, n_nonzero_coefs=3, missing="pairwise", scale=True)
    assert verify(scaled, X)
    assert not verify(replace(scaled, scale=scaled.scale * (1 + 1e-9)), X)
