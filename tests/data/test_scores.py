"""Scores of samples on components."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import SparsePCA, sparse_pca

X = np.random.default_rng(0).standard_normal((20, 5))


def test_scorer_refuses_a_result_of_a_covariance():
    result = sparse_pca(covariance=np.cov(X.T), n_nonzero_coefs=2)
    from sparcipal.data.scores import Scorer

    with pytest.raises(ValueError, match="there are no samples to score"):
        Scorer(result)


def test_scores_of_blocks_are_those_of_the_table_and_need_its_features():
    model = SparsePCA(1, 2, certify=False).fit(X)
    with pytest.raises(ValueError, match="4 features"):
        model.transform(lambda: iter([X[:, :4]]))
    np.testing.assert_allclose(model.transform(lambda: iter([X[:8], X[8:]])), model.transform(X))
