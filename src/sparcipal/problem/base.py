"""A component, and the keywords that every search method takes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .monitor import Monitor


@dataclass(frozen=True)
class Component:
    """One sparse unit vector: sorted feature indices and their weights."""

    support: np.ndarray  # (m,) intp, increasing
    weights: np.ndarray  # (m,) float64, unit norm

    @staticmethod
    def from_vector(x: np.ndarray) -> Component:
        support = np.flatnonzero(x)
        weights = np.asarray(x[support], dtype=np.float64)
        return Component(support, weights / np.linalg.norm(weights))

    def vector(self, n_features: int) -> np.ndarray:
        x = np.zeros(n_features)
        x[self.support] = self.weights
        return x


@dataclass(frozen=True)
class Options:
    """The shared keywords of every method, already validated."""

    rank: int | None = None
    seed: int = 0
    n_jobs: int = 1
    tol: float = 1e-6
    max_nodes: int | None = None
    monitor: Monitor = field(default_factory=Monitor)
