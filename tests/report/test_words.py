"""Sentences that every face shares."""

from __future__ import annotations

import numpy as np

from sparcipal import sparse_pca
from sparcipal.report import words

rng = np.random.default_rng(0)


X = rng.standard_normal((30, 5))


def test_words_tell_signs_and_screened_features():
    result = sparse_pca(X, n_nonzero_coefs=2, nonnegative=True, certify=False)
    assert "nonnegative" in str(result)
    still = np.column_stack([X[:, :4], np.ones(30)])
    streamed = sparse_pca(still, n_nonzero_coefs=2, memory_limit=1, certify=False)
    kept = words.screening(streamed.certificate)
    assert kept == [("kept", "4", "features: all that vary")]
    assert words.screening(result.certificate) == []
