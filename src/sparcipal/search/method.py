"""All search methods share one record and one type of answer, so that a loop can compare them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..problem.problem import Component
from ..problem.result import Bound


@dataclass(frozen=True)
class Found:
    """A search returns its components, a record of its work and the bounds that it proved."""

    components: tuple[Component, ...]
    n_iter: int = 0
    note: str = ""  # a sentence for the user when something fell short, for instance no convergence
    bounds: tuple[Bound, ...] = ()
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A method is a name for `method=` and `run(problem, options, **method_options)`.

    The keyword-only parameters of `run` are the method's own options; a default shows what kind of
    value the option takes.
    """

    name: str  # also the name of its file in methods/
    paper: str
    run: Callable[..., Found]
    shares_totals: bool = False  # whether it can share a total number of nonzeros among components
    takes_starts: bool = False  # whether it begins with the problem's `starts`
    anchors: bool = False  # whether a single component can be made to use given features
    anchors_several: bool = False  # whether several components can, each with features of its own
