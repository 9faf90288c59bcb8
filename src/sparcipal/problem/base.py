"""What every search method takes and gives, so that a comparison of methods is a loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .monitor import Monitor
from .result import Bound


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


@dataclass(frozen=True)
class Found:
    """What a search returns: components, what it did, and what it could prove on the way."""

    components: tuple[Component, ...]
    n_iter: int = 0
    note: str = ""  # a sentence for the user when something fell short, for instance no convergence
    bounds: tuple[Bound, ...] = ()
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A name for `method=`; `run(problem, options, **method_options)` does the work."""

    name: str
    paper: str
    run: Callable[..., Found]
