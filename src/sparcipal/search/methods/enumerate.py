"""Find the optimum of a small problem by exhaustion; all other methods are tested against it.

bounds/enumeration.py does the work and explains why no support is missed.
"""

from __future__ import annotations

from ...bounds.enumeration import count_supports, exhaust
from ...problem.problem import Options, Problem
from ..method import Found, Method

LIMIT = 1_000_000


def run(problem: Problem, options: Options, *, max_packings: int = 10_000_000) -> Found:
    """Score every support; several components are chosen among up to `max_packings` packings."""
    count = count_supports(problem)
    if count > LIMIT:
        raise ValueError(
            f"method='enumerate' would look at {count:,} supports; the limit is {LIMIT:,}. "
            "Use method='auto', which proves its answer without looking at all of them"
        )
    if problem.adjusted or not problem.disjoint:
        raise ValueError(
            "method='enumerate' with n_components > 1 needs supports='disjoint'; "
            "use method='auto' for supports='free'"
        )
    components, bound, looked = exhaust(problem, options, max_packings)
    note = ""
    if bound is None:
        note = f"stopped after {looked:,} packings of supports: the answer may not be optimal"
    bounds = () if bound is None else (bound,)
    return Found(components, n_iter=looked, note=note, bounds=bounds, info={"supports": count})


METHOD = Method("enumerate", "exhaustive search", run, anchors=True)
