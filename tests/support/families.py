"""Small problems of every family, made to break proofs: ties, copies, wild units, bad conditions.

Each family gives a table (samples by features) of at most eight features; a covariance is the
product of one with itself, formed in floating point as a user would form it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rng = np.random.Generator


def gaussian(rng: Rng, n: int, p: int) -> np.ndarray:
    return rng.standard_normal((n, p))


def spiked(rng: Rng, n: int, p: int) -> np.ndarray:
    spike = np.zeros(p)
    spike[rng.choice(p, size=int(rng.integers(1, p + 1)), replace=False)] = 1.0
    strength = 10.0 ** rng.uniform(-1, 2)
    return rng.standard_normal((n, p)) + strength * np.outer(rng.standard_normal(n), spike)


def block(rng: Rng, n: int, p: int) -> np.ndarray:
    groups = rng.integers(0, 3, p)
    shared = rng.standard_normal((n, 3)) * rng.choice([1.0, 1.0, 3.0], 3)
    return shared[:, groups] + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal((n, p))


def low_rank(rng: Rng, n: int, p: int) -> np.ndarray:
    """Low rank plus a multiple of the identity: orthogonal noise of equal size."""
    r = int(rng.integers(1, 3))
    factor = rng.standard_normal((r, p)) * rng.choice([1.0, 3.0])
    # r + p samples whose second moments are factor' factor + noise^2 I
    return np.vstack([factor, rng.choice([1e-3, 0.5, 1.0]) * np.eye(p)]) * np.sqrt(r + p)


def copies(rng: Rng, n: int, p: int) -> np.ndarray:
    """Correlations with repeated, negated and shrunk features."""
    X = rng.standard_normal((n, p))
    for _ in range(3):
        i, j = rng.integers(p, size=2)
        X[:, i] = X[:, j] * rng.choice([1.0, -1.0, 0.0, 0.5, 1e-8])
    spread = X.std(axis=0)
    return X / np.where(spread > 0, spread, 1.0)


def counts(rng: Rng, n: int, p: int) -> np.ndarray:
    return rng.poisson(rng.choice([0.05, 0.5, 3.0, 1000.0], p), (n, p)).astype(float)


def near_singular(rng: Rng, n: int, p: int) -> np.ndarray:
    X = np.outer(rng.standard_normal(n), rng.choice([-1.0, 1.0, 1.0], p))
    return X + 10.0 ** rng.uniform(-16, -6) * rng.standard_normal((n, p))


def wild_units(rng: Rng, n: int, p: int) -> np.ndarray:
    """All features in one unit between 1e-135 and 1e145, some of them in another."""
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-130, 145)
    if rng.random() < 0.5:
        X *= 10.0 ** -rng.uniform(0, 30, p)
    return X


def integers(rng: Rng, n: int, p: int) -> np.ndarray:
    return rng.integers(-2, 3, (n, p)).astype(float)


def denormals(rng: Rng, n: int, p: int) -> np.ndarray:
    """Some columns are of ordinary size, the others of a few times the smallest positive number."""
    X = rng.standard_normal((n, p))
    small = rng.random(p) < 0.6
    small[rng.integers(p)] = False
    X[:, small] *= rng.choice([1e-320, 1e-310, 1e-300, 1e-160])
    return X


def hilbert(rng: Rng, n: int, p: int) -> np.ndarray:
    i = np.arange(1, p + 1)
    # a factor of Cholesky type, so that both the table and its covariance are notorious
    return 1.0 / (np.arange(1, n + 1)[:, None] + i[None, :] - 1.0)


def kahan(rng: Rng, n: int, p: int) -> np.ndarray:
    angle = rng.uniform(0.3, 1.4)
    c, s = np.cos(angle), np.sin(angle)
    upper = np.triu(np.full((p, p), -c), 1) + np.eye(p)
    return np.diag(s ** np.arange(p)) @ upper


def wilkinson(rng: Rng, n: int, p: int) -> np.ndarray:
    """W+: pairs of eigenvalues that agree in many digits."""
    middle = (p - 1) / 2
    W = np.diag(np.abs(np.arange(p) - middle)) * rng.choice([1.0, 1e3, 1e6])
    return W + np.diag(np.ones(p - 1), 1) + np.diag(np.ones(p - 1), -1) if p > 1 else W + 1.0


def ties(rng: Rng, n: int, p: int) -> np.ndarray:
    """Equal variances and equal covariances: every support of a size is as good as any other."""
    correlation = rng.choice([0.0, 0.25, 0.5])
    A = np.eye(p) * (1 - correlation) + correlation
    return np.linalg.cholesky(A).T * np.sqrt(p)


FAMILIES: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "gaussian": gaussian,
    "spiked": spiked,
    "block": block,
    "low rank": low_rank,
    "copies": copies,
    "counts": counts,
    "near singular": near_singular,
    "wild units": wild_units,
    "integers": integers,
    "denormals": denormals,
    "hilbert": hilbert,
    "kahan": kahan,
    "wilkinson": wilkinson,
    "ties": ties,
}


def table(family: str, rng: Rng, least: int = 1) -> np.ndarray:
    """A table of that family; now and then with constant or zero columns, or a large offset."""
    p = int(rng.integers(least, 9))
    n = int(rng.integers(2, 13))
    X = FAMILIES[family](rng, n, p)
    if rng.random() < 0.15:
        X[:, rng.integers(p)] = rng.choice([0.0, 1.0]) * np.abs(X).max()
    if family in ("gaussian", "integers", "counts") and rng.random() < 0.2:
        X = X + rng.choice([1e3, 1e6, 1e9])
    return X


def matrix(family: str, rng: Rng) -> np.ndarray:
    """A covariance of that family, formed in floating point; the famous ones as they are."""
    X = table(family, rng)
    n, p = X.shape
    if family == "hilbert":
        A = 1.0 / (np.arange(p)[:, None] + np.arange(p)[None, :] + 1.0)
    elif family == "wilkinson":
        # its smallest eigenvalue is above -2
        A = wilkinson(rng, p, p) + 2 * np.eye(p)
    else:
        A = X.T @ X / n
        A = A * 10.0 ** rng.integers(-12, 13) if family == "gaussian" else A
    return (A + A.T) / 2
