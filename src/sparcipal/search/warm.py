"""A path of cardinalities starts each search from a support grown out of a smaller one."""

from __future__ import annotations

import numpy as np

from ..bounds.tree.incumbent import Rounder
from ..problem.components import newcomer_gain
from ..problem.covariance import DENSE_LIMIT, Covariance
from ..problem.problem import Options, Problem
from .joint import joint_search

ALL_FEATURES = 500  # up to so many features, all of them are searched
WORKING_SET = 150  # of more features, so many near the support are searched


def warm_support(whole: Problem, support: np.ndarray, options: Options) -> np.ndarray:
    """Return a support of up to s features, by a short search near a smaller support."""
    cov, s = whole.covariance, whole.cardinalities[0]
    grown = grow(cov, support, s, whole.nonnegative)
    near = np.arange(cov.n_features)
    if near.size > ALL_FEATURES:
        near = _nearest(cov, grown, max(WORKING_SET, 3 * s), whole.nonnegative)
    found = joint_search(
        cov.dense() if near.size == cov.n_features <= DENSE_LIMIT else cov.submatrix(near),
        (s,),
        nonnegative=whole.nonnegative,
        options=options,
        effort=1,
        starts=[[np.searchsorted(near, grown)]],
    )
    return near[found[0]]


def grow(cov: Covariance, support: np.ndarray, s: int, nonnegative: bool) -> np.ndarray:
    """Grow a support to s features by greedy additions."""
    while support.size < s:
        near = _nearest(cov, support, WORKING_SET, nonnegative)
        rounder = Rounder(cov.submatrix(near), support.size + 1, np.zeros(near.size), nonnegative)
        larger = rounder.exchange(np.searchsorted(near, support), rounds=1).support
        if larger.size == support.size:  # no feature adds variance: fill up by variance
            return np.union1d(support, _others(cov, support)[: s - support.size])
        support = near[larger]
    return support


def _others(cov: Covariance, support: np.ndarray) -> np.ndarray:
    """Return the features outside a support, the largest variances first."""
    order = np.argsort(-cov.diagonal, kind="stable")
    return order[~np.isin(order, support)]


def _nearest(cov: Covariance, support: np.ndarray, count: int, nonnegative: bool) -> np.ndarray:
    """Return the support and the `count` features that add most to it, sorted.

    What a feature adds is that of the 2 x 2 problem of the component and the feature.
    """
    block = cov.submatrix(support)
    rounder = Rounder(block, support.size, np.zeros(support.size), nonnegative)
    value, weights = rounder.evaluate(np.arange(support.size))
    x = np.zeros(cov.n_features)
    x[support] = weights
    link = cov.matvec(x)
    score = newcomer_gain(value, cov.diagonal, link, nonnegative)
    best = np.argsort(-score, kind="stable")[:count]
    return np.union1d(support, best)
