"""Words for a refusal: what the two tables look like that a result and its data come from."""

from __future__ import annotations

import numpy as np

from ..problem.result import Result
from .covariance import Checked


def totals(result: Result, own: Checked) -> str:
    """Tell both total variances where they differ: of centred data, means say little."""
    total = float(own.covariance.diagonal.sum()) * own.covariance.unit
    if abs(result.total_variance - total) <= 1e-6 * abs(total):
        return ""
    return f"; the total variance is {total:.10g}, not {result.total_variance:.10g}"


def treatment(result: Result, own: Checked | None) -> str:
    """Return a hint, where one of two tables looks standardised or centred and the other does
    not."""
    settings = result.settings
    if own is None or result.mean is None or result.scale is None or not settings["center"]:
        return ""
    cov, varying = own.covariance, max(int(np.count_nonzero(~own.covariance.inert)), 1)
    if settings["scale"]:
        fitted = _looks(result.mean, float(np.mean(result.scale**2)), own.n)
        passed = _looks(own.mean, float(np.mean(own.spread**2)), own.n)
    else:
        fitted = _looks(result.mean, result.total_variance / varying, own.n)
        passed = _looks(own.mean, float(cov.diagonal.sum()) * cov.unit / varying, own.n)
    if fitted == passed:
        return ""
    return (
        f"; the data look {passed}, those of the fit {fitted}: pass the table that was fitted "
        f"(with center=True, scale={settings['scale']})"
    )


def _looks(mean: np.ndarray, variance: float, n: int) -> str:
    """Return what seems to have been done to a table with these means and this average variance."""
    if not (np.abs(mean) <= 1e-6 * np.sqrt(variance)).all():
        return "raw"
    # a deviation may have been divided by n or by n - 1
    return "standardised" if abs(variance - 1.0) <= 1e-6 + 2.0 / n else "centred"
