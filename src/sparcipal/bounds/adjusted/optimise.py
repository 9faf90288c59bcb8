"""Bound "adjusted"; statement and proof: docs/methods/adjusted.rst.

Known components are points z_i = A^1/2 x_i. Of all ellipsoids z'Wz <= 1 around them the one is
looked for whose k largest squared semi-axes sum to least. It comes from weights on the points: with
zeta the eigenvalues of sum_i w_i z_i z_i', largest first, the squared semi-axes are

    sqrt(zeta_j) for j <= r,  nu = sqrt((zeta_(r+1) + ...) / (k - r)) for all others,

and no ellipsoid is better once no z_i'Wz_i exceeds their weighted mean; until then weights are
multiplied by these numbers. W is I / nu less a matrix of rank r, and so is what a component sees in
place of A. Components that explain more there than all known ones join them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...problem.covariance import Covariance
from ...problem.problem import Component, Problem
from ..tree.incumbent import Rounder, best_weights
from .lowered import Lowered

STEPS = 400  # in which weights are balanced
BALANCED = 1e-5  # excess of one point at which the weights are good enough
CLOSE = 5e-4  # excess of a component beyond the known ones at which it joins them
NEGLIGIBLE = 1e-6  # weight of a point that is left out when others join
NEW = 0.1  # the share of all weight that joining points are given
FLATTEST = 1e-3  # least squared semi-axis, as a part of the longest one
TINY = 1e-200  # variances that are as good as none
WORKING = 200  # features of a search that vary most, and as many that covary most with the points


class Around:
    """The known components, their weights, and the ellipsoid around them."""

    def __init__(self, problem: Problem, components: Sequence[Component]) -> None:
        self.problem, self.cov = problem, problem.covariance
        self.points = [c for c in components if c.support.size]
        self.weights = np.full(len(self.points), 1.0 / len(self.points))

    def fitted(self) -> Lowered:
        """Return what is left of the covariance in the best ellipsoid around the points."""
        features = np.unique(np.concatenate([c.support for c in self.points]))
        X = np.zeros((features.size, len(self.points)))
        for i, point in enumerate(self.points):
            X[np.searchsorted(features, point.support), i] = point.weights
        gram = X.T @ self.cov.submatrix(features) @ X
        self.weights, mixture = balanced(0.5 * (gram + gram.T), self.problem.k, self.weights)
        return Lowered(self.cov, features, X @ mixture)

    def grown(self, lowered: Lowered) -> bool:
        """Let components join that explain more in the matrix than the known ones do."""
        sign = self.problem.nonnegative
        # one of each support: points that share it would double their number in every round
        tried = [*(c.support for c in self.points), self._searched(lowered)]
        supports = {tuple(support): support for support in tried}
        return self.join(lowered, [best_on(lowered, own, sign) for own in supports.values()])

    def join(self, lowered: Lowered, found: Sequence[Component]) -> bool:
        """Let those of the components join that explain more; return whether there are any."""
        level = max(worth(lowered, c) for c in self.points)
        new = [c for c in found if worth(lowered, c) > (1 + CLOSE) * level]
        if new:
            kept = [i for i, w in enumerate(self.weights) if w > NEGLIGIBLE]
            self.points = [self.points[i] for i in kept] + new
            old = (1 - NEW) * self.weights[kept] / self.weights[kept].sum()
            self.weights = np.append(old, np.full(len(new), NEW / len(new)))
        return bool(new)

    def best(self, lowered: Lowered) -> Component:
        """Return the known component that explains most in the matrix."""
        return max(self.points, key=lambda c: worth(lowered, c))

    def _searched(self, lowered: Lowered) -> np.ndarray:
        """Return s features for a component that explains much, among features of promise."""
        p, s = lowered.n_features, self.problem.s_max
        among = np.arange(p)
        if p > 2 * WORKING:
            seen = np.max(
                [np.abs(lowered.image(c.support, c.weights)) for c in self.points], axis=0
            )
            largest = [np.argsort(-a, kind="stable")[:WORKING] for a in (lowered.diagonal, seen)]
            among = np.unique(np.concatenate([*largest, *(c.support for c in self.points)]))
        block = lowered.submatrix(among)
        block = 0.5 * (block + block.T)
        rounder = Rounder(block, min(s, p), np.zeros(among.size), self.problem.nonnegative)
        starts = [np.searchsorted(among, c.support) for c in self.points if c.support.size == s]
        found = [rounder.first(), *(rounder.exchange(support) for support in starts)]
        best: np.ndarray = among[max(found, key=lambda one: one.value).support]
        return best


def best_on(cov: Covariance, support: np.ndarray, nonnegative: bool) -> Component:
    """Return the component on a support that explains most in a matrix."""
    return Component(support, best_weights(cov.submatrix(support), nonnegative)[1])


def worth(cov: Covariance, component: Component) -> float:
    """Return what a component explains in a matrix."""
    x = component.weights
    return float(x @ cov.submatrix(component.support) @ x)


def balanced(gram: np.ndarray, k: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of points with these products, and the columns of Y as their mixtures."""
    own, mixture = np.diagonal(gram), np.zeros((len(gram), 0))
    if not own.max() > TINY:
        return weights, mixture
    for _ in range(STEPS):
        root = np.sqrt(weights)
        zeta, vectors = np.linalg.eigh(root[:, None] * gram * root)
        zeta, vectors = np.maximum(zeta[::-1], 0.0), vectors[:, ::-1]
        r, nu = _flat(zeta, k)
        axes, mixture = np.sqrt(zeta[:r]), root[:, None] * vectors[:, :r] / np.sqrt(zeta[:r])
        along = gram @ mixture  # of the points, along the longer axes
        seen = np.maximum(own / nu - (along**2 * (1 / nu - 1 / axes)).sum(axis=1), 0.0)
        mean = float(weights @ seen)
        if seen.max() <= (1 + BALANCED) * mean:
            break
        weights = weights * seen / mean
        weights = weights / weights.sum()
    return weights, mixture * np.sqrt(1 - nu / axes)


def _flat(zeta: np.ndarray, k: int) -> tuple[int, float]:
    """Return how many semi-axes are longer than the others, and the square of the others."""
    least = FLATTEST * float(np.sqrt(zeta[0]))
    for r in range(k):
        nu = max(float(np.sqrt(zeta[r:].sum() / (k - r))), least)
        if r >= zeta.size or zeta[r] <= nu * nu * (1 + 1e-12):
            break
    return r, nu
