"""Small problems with anchors and excluded features, and their optima by enumeration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from sparcipal.problem.nonnegative import nonnegative_leading


@dataclass(frozen=True)
class Constrained:
    X: np.ndarray
    sizes: tuple[int, ...]
    include: list[list[int]]
    exclude: list[int]
    nonnegative: bool

    @property
    def covariance(self) -> np.ndarray:
        return np.atleast_2d(np.cov(self.X.T, bias=True))

    @property
    def keywords(self) -> dict:
        k = len(self.sizes)
        anchored = any(self.include)
        return {
            "n_components": k,
            "n_nonzero_coefs": list(self.sizes),
            "include": (self.include if k > 1 else self.include[0]) if anchored else None,
            "exclude": self.exclude or None,
            "nonnegative": self.nonnegative,
        }

    def optimum(self) -> float:
        A, p = self.covariance, self.X.shape[1]
        allowed = set(range(p)) - set(self.exclude)

        def best(j: int, free: set[int]) -> float:
            if j == len(self.sizes):
                return 0.0
            anchors = set(self.include[j])
            later = {f for own in self.include[j + 1 :] for f in own}
            others = sorted(free - anchors - later)
            room = min(self.sizes[j] - len(anchors), len(others))
            return max(
                (
                    value(A, sorted(anchors.union(chosen)), self.nonnegative)
                    + best(j + 1, free - anchors - set(chosen))
                    for chosen in itertools.combinations(others, room)
                ),
                default=-np.inf,
            )

        return best(0, allowed)


def value(A: np.ndarray, support: list[int], nonnegative: bool) -> float:
    if not support:
        return 0.0
    block = A[np.ix_(support, support)]
    if not nonnegative:
        return float(np.linalg.eigvalsh(block)[-1])
    x = nonnegative_leading(block)
    return float(x @ block @ x)


def awkward(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Data with ties, twins, constant columns or very different scales, or none of these."""
    X = rng.standard_normal((n, p))
    kind = int(rng.integers(6))
    if kind == 1:
        X[:, 1] = X[:, 0]
    elif kind == 2:
        X[:, 0] = 3.0
    elif kind == 3:
        X = rng.integers(-1, 2, (n, p)).astype(float)
    elif kind == 4:
        X = np.round(X) * 10.0 ** rng.integers(-2, 3, p)
    elif kind == 5:
        X[:, 0] = -2.0 * X[:, 1]
        X[:, 2] = 0.0
    return X


def constrained(seed: int, k: int = 1) -> Constrained:
    rng = np.random.default_rng((seed, k))
    p = int(rng.integers(4, 10 if k == 1 else 8))
    sizes = tuple(int(s) for s in rng.integers(1, p // k if k > 1 else p, k))
    order = rng.permutation(p).tolist()
    include = []
    for s in sizes:
        count = int(rng.integers(0, s + 1))
        include.append(sorted(order[:count]))
        order = order[count:]
    spare = p - sum(sizes)
    out = int(rng.integers(0, spare + 1))
    exclude = sorted(order[len(order) - out :]) if out else []
    X = awkward(rng, int(rng.integers(2, 16)), p)
    return Constrained(X, sizes, include, exclude, bool(rng.integers(2)))
