"""What is known of a problem while its bounds are tried: the best components and every bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..problem.components import refit, variances
from ..problem.problem import Component, Problem
from ..problem.result import Bound


@dataclass(frozen=True)
class Proved:
    """The best components, perhaps better than those that came in, and every bound on the
    optimum."""

    components: tuple[Component, ...]
    bounds: tuple[Bound, ...]
    nodes: int = 0
    eliminated: int = 0
    out_of_nodes: bool = False
    again: Any = None  # start for the proof of a neighbouring cardinality

    def value(self, problem: Problem) -> float:
        return float(variances(problem, self.components).sum())

    @property
    def lowest(self) -> float:
        return min(bound.value for bound in self.bounds)

    def with_supports(self, problem: Problem, supports: Sequence[np.ndarray]) -> Proved:
        """Return these, or the components on `supports` in their place if those explain more."""
        if not supports:
            return self
        found = tuple(Component(support, np.ones(support.size)) for support in supports)
        better = replace(self, components=refit(problem, found))
        return better if better.value(problem) > self.value(problem) else self
