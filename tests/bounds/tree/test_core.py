"""A proof on a core of the features that holds for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.tree.core import prove_large
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.problem.covariance import covariance_of


def covariance(p: int, seed: int = 0, n: int = 20) -> np.ndarray:
    X = np.random.default_rng(seed).standard_normal((n, p))
    return X.T @ X / n


def test_prove_large_refuses_sizes_and_incumbents_that_do_not_fit():
    cov = covariance_of(covariance(6))
    for s in (0, 7):
        with pytest.raises(ValueError, match=f"between 1 and the number of features 6, got {s}"):
            prove_large(cov, s)
    for support in ([], [0, 1, 2]):
        with pytest.raises(ValueError, match="incumbent must have between 1 and 2 features"):
            prove_large(cov, 2, TreeQuestion(incumbent=(np.array(support, dtype=int), 1.0)))
