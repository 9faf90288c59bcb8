"""Bound "kyfan"; statement and proof: docs/methods/kyfan.rst.

A question holds what joint bounds are asked about: components with disjoint supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...problem.covariance import Covariance
from ...problem.result import Bound


@dataclass(frozen=True)
class JointQuestion:
    """How much can components with these cardinalities and disjoint supports explain together?

    `supports` and `value` are the best answer known, in the covariance's own units: they choose
    cores and scales, a bound is valid whatever they are. A proof may end within `tol` of the value.
    With `total`, components have at most so many nonzeros together. `include` has the anchors of
    each component, or is empty; a bound may leave them aside. With `overlapping`, supports may
    overlap while components are orthogonal, and there are no prices. `room` is what a proof may
    take, in bytes.
    """

    cov: Covariance
    cardinalities: tuple[int, ...]
    supports: Sequence[np.ndarray]
    value: float
    nonnegative: bool = False
    tol: float = 1e-6
    total: int | None = None
    include: tuple[tuple[int, ...], ...] = ()
    overlapping: bool = False
    room: float = np.inf


@dataclass(frozen=True)
class Sizes:
    """k components of at most s nonzeros each, and at most `total` together."""

    s: int
    k: int
    total: int
    nonnegative: bool = False


@dataclass(frozen=True)
class JointAnswer:
    """A bound, if it is better than the known ones, and disjoint supports that are, if any were
    met; `again` is what a longer bound of the same name may begin with."""

    bound: Bound | None
    supports: tuple[np.ndarray, ...] = ()
    again: Any = None
