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


def test_a_component_that_loses_all_is_given_no_anchor_of_another():
    """An anchor with a loading of zero is the other component's, though in no support."""
    x = np.array([1.0, 1.0, -1.0, 0.0, 0.0, 1.0])
    A = 0.25 * np.outer(x, x)
    asked = {"n_components": 2, "n_nonzero_coefs": [2, 1], "nonnegative": True}
    near = alternatives(covariance=A, include=[[1, 2], []], within=0.01, **asked)
    assert [own.tolist() for own in near.result.supports] == [[1], [0]]
    (cost,) = (one for one in near.drops if one.feature == 0)
    assert cost.fit.supports[1].tolist() == [5]
    assert verify(near, covariance=A)
