"""Optima by looking at everything, written as plainly as possible: the oracle of the tests."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import scipy.sparse as sp


def best_value(A: np.ndarray, cardinalities: tuple[int, ...], nonnegative: bool = False) -> float:
    """The largest sum of x_j'Ax_j over unit x_j with disjoint supports of at most s_j features."""
    tables = {s: _values(A, s, nonnegative) for s in set(cardinalities)}
    return _pack(tables, sorted(cardinalities, reverse=True), frozenset())


def _values(A: np.ndarray, s: int, nonnegative: bool) -> list[tuple[float, frozenset]]:
    p = A.shape[0]
    found = []
    for size in range(1, s + 1) if nonnegative else (min(s, p),):
        for support in combinations(range(p), size):
            block = A[np.ix_(support, support)]
            w, Q = np.linalg.eigh(block)
            lead = Q[:, -1]
            if nonnegative and lead.min() < -1e-9 and lead.max() > 1e-9:
                continue
            found.append((float(w[-1]), frozenset(support)))
    return sorted(found, key=lambda pair: -pair[0])


def _pack(tables: dict, sizes: list[int], used: frozenset) -> float:
    if not sizes:
        return 0.0
    best = 0.0
    rest = sum(tables[s][0][0] for s in sizes[1:])
    for value, support in tables[sizes[0]]:
        if value + rest <= best:
            break
        if not support & used:
            best = max(best, value + _pack(tables, sizes[1:], used | support))
    return best


def covariance(X: np.ndarray, center: bool = True) -> np.ndarray:
    Y = X - X.mean(axis=0) if center else X
    return Y.T @ Y / X.shape[0]


def sparse_rows(shape: tuple[int, int], density: float, seed: int) -> sp.csr_array:
    """Positive numbers at random places (SciPy's own maker has changed its name for the seed)."""
    rng = np.random.default_rng(seed)
    return sp.csr_array(rng.random(shape) * (rng.random(shape) < density))
