"""Features that provably cannot matter are set aside before the search, and counted."""

from __future__ import annotations

import numpy as np

from .covariance import Covariance


def informative(covariance: Covariance, needed: int) -> np.ndarray:
    """The features to search among: those that are not constant.

    A constant feature has zero covariance with every other one, so it adds nothing to any
    component.
    When fewer than `needed` others are left, some of them stay to fill the supports.
    """
    alive = ~covariance.inert
    missing = needed - int(alive.sum())
    if missing > 0:
        alive[np.flatnonzero(~alive)[:missing]] = True
    return np.flatnonzero(alive)
