"""The record of a search method and of what it finds, so that a comparison of methods is a loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..problem.problem import Component
from ..problem.result import Bound


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
    """A name for `method=`; `run(problem, options, **method_options)` does the work.

    The keyword-only parameters of `run` are the method's own options: their defaults say what kind
    of value each takes.
    """

    name: str  # also the name of its file in methods/
    paper: str
    run: Callable[..., Found]
    shares_totals: bool = False  # it can share a total number of nonzeros among components
