"""Matrices that were given, and what they may lack of being covariances."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import Arithmetic, Float
from .budget import Refused, require
from .covariance import EPS, TINY, CheckedCovariance


def proved_shift(A: np.ndarray, ar: Arithmetic) -> float:
    """Return a shift with A + shift I proved positive semidefinite; infinity if that fails."""
    guess = ar.floats(A)
    step = 2 * (len(guess) + 2) * ar.step * (float(np.abs(np.diagonal(guess)).sum()) + 1.0)
    lacking = max(0.0, -float(np.linalg.eigvalsh(guess)[0]))
    for factor in (2, 8, 64, 1024):
        if ar.below(-A, lacking + factor * step):
            return lacking + factor * step
    return float("inf")


def check_semidefinite(cov: CheckedCovariance, given: Any) -> None:
    """Refuse a given matrix that lacks more of being a covariance than rounding explains; `cov`
    are the features that a claim speaks of.

    The tolerance is that of the solver, relative to the Frobenius norm: docs/methods/rounding.rst.
    """
    A = cov.submatrix(np.arange(cov.p))
    single = np.asarray(given).dtype == np.float32  # and less is asked of it
    digits = np.finfo(np.float32 if single else np.float64).eps
    step = (cov.p + 2) * EPS * (abs(float(np.trace(A))) + TINY)
    most = float(np.sqrt(digits)) * float(np.linalg.norm(A)) * (1 + 1e-6) + 64 * step
    if not Float().below(-A, most + cov.rounding(cov.p)):
        least = float(np.linalg.eigvalsh(A)[0]) * cov.unit
        raise Refused(
            f"the covariance is not positive semidefinite: its smallest eigenvalue is {least:.3g}"
        )


def check_signs(cov: CheckedCovariance, settings: dict[str, Any]) -> None:
    """Refuse a negative variance beside adjusted variances of disjoint components.

    Adjusted variances count as zero at least, but a component may have to lie on that feature.
    """
    apart = settings["supports"] == "disjoint" and settings["n_components"] > 1
    signs = bool((cov.diagonal >= 0).all()) or settings["objective"] == "sum" or not apart
    require(signs, "adjusted variances of disjoint components beside a negative variance")
