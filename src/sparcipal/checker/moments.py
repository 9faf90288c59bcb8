"""Whether a result came from these data: samples, features, names, means, scales, total variance.

A mean or a scale is compared in the units of its own feature, with the rounding of the sums that it
comes from: docs/methods/rounding.rst.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem.result import Result
from . import dropped as screened
from .budget import Missing, Refused, require
from .constraints import allowed_features, excluded_features
from .containers import check_names, names_of
from .covariance import (
    Checked,
    CheckedCovariance,
    covariance_of,
    covariance_of_data,
    given_matrix,
)
from .given import check_semidefinite, check_signs
from .hints import totals, treatment
from .tables import Source
from .weights import weights_of


def covariance_for(
    result: Result, source: Source | None, covariance: Any, sample_weight: Any
) -> CheckedCovariance:
    """Return the covariance that a result speaks of, once it is seen to come from these data."""
    settings, unit = result.settings, result.certificate.unit
    columns = names_of(covariance) if source is None else source.names
    if columns is not None:
        check_names(result.feature_names, columns)
    dropped = bool(result.certificate.screening)
    if dropped:
        if not result.certificate.bounds[0].data:
            raise Missing("the proof of the bound was not saved with the result")
        kept = screened.kept_of(result)
    own: Checked | None = None
    if covariance is not None and dropped:
        require(hasattr(covariance, "kept"), "the result came from a Screened: pass that")
        given_matrix(covariance.matrix)
        cov: CheckedCovariance = screened.of_given(covariance, kept, unit)
        inner = allowed_features(cov, excluded_features(result))
        check_semidefinite(inner, covariance.matrix)
        # a component on no kept feature explains zero, which would be more
        require(bool((inner.diagonal >= 0).all()), "a kept feature has a negative variance")
        same = (covariance.n_samples, covariance.center, covariance.scaled, covariance.weighted)
        asked = (settings["center"], settings["scale"], settings["sample_weight"])
        require((result.n_samples, *asked) == same, "the settings are not those of the Screened")
        _check_given_moments(result, covariance)
    elif covariance is not None:
        require(result.n_samples is None, "the result came from data, not from a covariance matrix")
        require(result.mean is None and result.scale is None, "a covariance has no mean or scale")
        for name in ("center", "scale", "sample_weight"):
            require(settings[name] is False, f"{name} does not apply to a covariance matrix")
        cov = covariance_of(covariance, unit)
        inner = allowed_features(cov, excluded_features(result))
        check_semidefinite(inner, covariance)
        check_signs(inner, settings)
    else:
        require(
            result.n_samples is not None, "the result came from a covariance matrix, not from X"
        )
        weighted = settings["sample_weight"]
        require(
            weighted == (sample_weight is not None),
            f"the result was computed {'with' if weighted else 'without'} sample weights",
        )
        weights = None if sample_weight is None else weights_of(sample_weight)
        prepared = screened.Prepared(settings["center"], settings["scale"], weights, unit)
        if dropped:
            about = result.mean if settings["center"] else np.zeros(result.n_features)
            if about is None:
                raise Refused("mean is missing")
            own = screened.of_data(source, kept, prepared, about, int(result.n_samples or 0))
        else:
            assert source is not None
            own = covariance_of_data(source.whole(), *prepared)
        cov = own.covariance
        require(own.n == result.n_samples, f"{own.n} samples here, {result.n_samples} in the claim")
    if isinstance(cov, screened.ScreenedCovariance):
        cov.without(excluded_features(result))
    p, names = result.n_features, result.feature_names
    require(cov.p == p, f"the result speaks of {p} features, the data has {cov.p}")
    if own is not None:
        _check_moments(result, own)
    require(names is None or len(names) == cov.p, "there is not one feature name per feature")
    total = float(cov.diagonal.sum()) * unit
    slack = (2 * cov.apart(cov.known()[1]) + 4 * cov.doubt) * unit
    wrong = ""
    if not abs(result.total_variance - total) <= slack:
        wrong = f"the total variance is {total:.10g}, not {result.total_variance:.10g}"
        wrong += treatment(result, own)
    if unit != cov.unit or not cov.in_range():
        wrong += f"{'; ' if wrong else ''}unit {unit:.3g} does not fit the data"
    require(not wrong, wrong)
    return cov


def _check_moments(result: Result, own: Checked) -> None:
    """Check that means and scales are off by rounding in sums over their own feature at most."""
    for name, claimed, found, error in (
        ("mean", result.mean, own.mean, own.mean_error),
        ("scale", result.scale, own.spread, own.spread_error),
    ):
        if claimed is None:
            raise Refused(f"{name} is missing")
        fits = np.abs(claimed - found) <= error
        if not fits.all():
            j = int(np.argmin(fits))
            feature = f"{j}" if result.feature_names is None else f"{result.feature_names[j]!r}"
            raise Refused(
                f"{name} differs from the data's: that of feature {feature} is {claimed[j]:.10g} "
                f"in the result, {found[j]:.10g} in the data{totals(result, own)}"
                f"{treatment(result, own)}"
            )


def _check_given_moments(result: Result, given: Any) -> None:
    """Check that mean and scale are those of the Screened; a scale that it lacks is one."""
    known = given.n_samples is not None and given.mean is not None
    spread = np.ones(result.n_features) if known and given.scale is None else given.scale
    for name, claimed, own in (("mean", result.mean, given.mean), ("scale", result.scale, spread)):
        same = claimed is None if own is None else np.array_equal(np.asarray(claimed), own)
        require(bool(same), f"{name} is not that of the Screened")
