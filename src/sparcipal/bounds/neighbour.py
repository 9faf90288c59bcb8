"""Bound "neighbour"; statement and proof: docs/methods/neighbour.rst.

For a covariance the optimum per nonzero does not increase: what is proved for r < s nonzeros bounds
that for s, times s / r.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics import margins
from ..problem.covariance import MatrixCovariance
from ..problem.problem import Problem
from ..problem.result import Bound

NEIGHBOUR = "neighbour"


def neighbour_bound(problem: Problem, known: Bound, r: int, among: np.ndarray) -> Bound | None:
    """Return what `known`, proved for one component of r nonzeros, says of s >= r.

    None for a matrix that is not known to be a covariance, or if the proof does not speak of the
    features `among`. A bound of this kind is replaced by the one that it was made of.
    """
    cov, s = problem.covariance, problem.cardinalities[0]
    if isinstance(cov, MatrixCovariance) and cov.n_samples is None:
        return None
    kept = known.data.get("kept")
    if kept is not None and not np.array_equal(kept, among):
        return None
    data = {key: entry for key, entry in known.data.items() if key != "kept"}
    part: dict[str, Any] = {"name": known.name, "value": known.value, "s": r, "data": data}
    margin = known.margin
    if known.name == NEIGHBOUR:
        part = data["part"]
        margin *= part["s"] / r
    value = part["value"] * (s / part["s"]) * (1 + margins.SAFETY * margins.sum_of(8))
    return Bound(NEIGHBOUR, value, {"part": part}, margin * (s / part["s"]))
