"""What features are worth to all components together."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import alternatives, sparse_pca, verify


def test_without_one_of_several_exact_copies_nothing_is_lost():
    """Four columns that are one up to sign, scale and shift; those that share the other factors
    are nearly as good in their place, so that a search that starts with them ends with them."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((200, 2))
    X = np.repeat(factors, 4, axis=1) + 0.01 * rng.standard_normal((200, 8))
    copies = np.column_stack([X[:, 0], -X[:, 0], 3 * X[:, 0] + 7])
    X = np.column_stack([X, copies])
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=3, scale=True)
    found = alternatives(result, X, force=0)
    same = {0, 8, 9, 10}
    costs = {cost.feature: cost for cost in found.drops}
    used = same.intersection(costs)
    assert len(used) == 3
    for feature in used:
        assert costs[feature].value == pytest.approx(result.value, rel=1e-12)
    assert verify(found, X)
