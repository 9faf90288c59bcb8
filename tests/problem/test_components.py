"""The best weights on given supports."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca


def test_nonnegative_leading_climbs_to_the_best_part_when_there_are_many(monkeypatch):
    """The climb reaches what enumeration of all parts finds."""
    from sparcipal.problem import components as refine

    rng = np.random.default_rng(2)
    for _ in range(20):
        Y = rng.standard_normal((12, 8))
        A = Y.T @ Y
        best = refine._best_part(A)
        with monkeypatch.context() as patch:
            patch.setattr(refine, "EXHAUSTIVE", 3)
            x = refine.nonnegative_leading(A, np.full(8, 8**-0.5))
        assert (x >= 0).all()
        assert np.linalg.norm(x) == pytest.approx(1.0)
        assert x @ A @ x == pytest.approx(best @ A @ best, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_scores_without_variance_correlate_with_nothing(seed):
    X = np.random.default_rng(seed).normal(size=(10, 3))
    X[:, 1] = X[:, 0]
    result = sparse_pca(
        X, n_components=3, n_nonzero_coefs=3, supports="common", scale=True, certify=False
    )
    assert result.variances[2] < 1e-12  # the matrix has rank two: the third score is rounding
    assert result.largest_correlation < 1e-12
