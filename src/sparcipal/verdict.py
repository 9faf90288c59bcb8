"""What is claimed of an answer: the certificate, its status and the sentence beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .bounds.proved import Proved
from .numerics.margins import few
from .problem.components import rounding_of_value, variances
from .problem.problem import Options, Problem
from .problem.result import Certificate, Status
from .search.method import Found

# A promise that is missed by this much is missed by the accuracy of the search.
ALMOST = 2e-6


def certificate_of(
    problem: Problem, proved: Proved, options: Options, certify: Any, found: Found
) -> Certificate:
    """Return the value of the components and the bounds that were proved, as a claim."""
    value = float(variances(problem, proved.components).sum())
    rounding = rounding_of_value(problem, proved.components)
    bounds = tuple(sorted(proved.bounds, key=lambda bound: bound.value))
    lowest = bounds[0]
    if lowest.value < value - rounding:
        unit = problem.covariance.unit
        raise ArithmeticError(
            f"the bound {lowest.name!r} of {lowest.value * unit:.12g} is below the value "
            f"{value * unit:.12g} by more than rounding ({rounding * unit:.3g}), so that one of "
            "them is wrong; please report it with the data"
        )
    # A bound can come out below the computed value by rounding only; the claim must not.
    bounds = tuple(replace(b, value=max(b.value, value)) for b in bounds)
    certificate = Certificate(
        value=value,
        bound=bounds[0].value,
        rounding=rounding,
        status=Status.OPTIMAL,
        bounds=bounds,
        tol=options.tol,
        nodes=proved.nodes,
        guarantees=_promises(problem, options, found),
        unit=problem.covariance.unit,
    )
    status = _status(certificate, proved, options)
    message = _message(certificate, status, _remedy(problem, certify))
    return replace(certificate, status=status, message=message)


def _promises(problem: Problem, options: Options, found: Found) -> dict[str, float]:
    """Return what the method's theorems promise, where they apply: all features, a search that
    ended."""
    if problem.dropped or problem.adjusted or options.monitor.stopped is not None:
        return {}
    promised: dict[str, float] = found.info.get("guarantees", {})
    return {name: part for name, part in promised.items() if part > 0.0}


def kept_promises(certificate: Certificate) -> dict[str, float]:
    """Return the promises that value and bound prove to be kept, as far as they do.

    One that is missed by no more than the accuracy of a search is lowered to what is proved; others
    are left out: what the certificate cannot show to be true is not claimed.
    """
    least = certificate.value - certificate.rounding
    if not 0.0 < certificate.bound < np.inf or least <= 0.0:
        return {}
    # a few units of the last place less: the checker compares exactly
    proved = least / certificate.bound * (1.0 - few())
    return {
        name: min(part, proved)
        for name, part in certificate.guarantees.items()
        if part <= proved + ALMOST
    }


def extended_claim(certificate: Certificate, inside: Certificate, scaled: bool) -> Certificate:
    """Return a certificate that was extended from the kept features to all, with status and
    message."""
    if certificate.gap <= certificate.tol:
        return replace(certificate, status=Status.OPTIMAL, message="")
    if certificate.bound <= inside.bound:
        return certificate
    status = Status.GAP if inside.status is Status.OPTIMAL else inside.status
    accept = f"accept: at most {_below(certificate.gap)} below the optimum"
    remedy = "keep more features (a larger memory_limit)"
    if scaled:
        remedy += ": standardised columns cannot be screened by their variance"
    message = (
        f"gap {_percent(certificate.gap)} > tol {100 * certificate.tol:.3g} %, "
        f"{_percent(inside.gap)} among the kept features: {remedy}, or {accept}"
    )
    return replace(certificate, status=status, message=message)


def cut_short(certificate: Certificate, stopped: str | None) -> Certificate:
    """Return the claim of an answer that was about to be improved when the run was stopped."""
    if certificate.status is Status.OPTIMAL:
        return certificate
    status = Status.INTERRUPTED if stopped == "user" else Status.TIME_LIMIT
    return replace(certificate, status=status)


def _status(certificate: Certificate, proved: Proved, options: Options) -> Status:
    if certificate.gap <= certificate.tol:
        return Status.OPTIMAL
    stopped = options.monitor.stopped
    if stopped is not None:
        return Status.TIME_LIMIT if stopped == "time" else Status.INTERRUPTED
    return Status.NODE_LIMIT if proved.out_of_nodes else Status.GAP


def _remedy(problem: Problem, certify: Any) -> str:
    """Return what may close a gap that no limit has left open.

    Another question is no remedy: adjusted variances are asked for where sums repeat themselves.
    """
    # a longer proof narrowed these gaps by less than a fifth wherever it was tried
    exhausted = problem.adjusted or problem.uncorrelated or problem.total is not None
    if not certify:
        return f"pass certify='{'fast' if exhausted else 'full'}'"
    if certify == "full" or exhausted:
        return f"ask for fewer nonzeros{' or components' if problem.k > 1 else ''}"
    return "pass certify='full'"


def _message(certificate: Certificate, status: Status, unlimited: str) -> str:
    """Return the gap, and what can be done about it; `unlimited` is the remedy where no limit was
    met."""
    if status is Status.OPTIMAL:
        return ""
    gap = f"gap {_percent(certificate.gap)} > tol {100 * certificate.tol:.3g} %"
    accept = f"accept: at most {_below(certificate.gap)} below the optimum"
    remedy = {
        Status.TIME_LIMIT: "raise time_limit",
        Status.INTERRUPTED: "let it run",
        Status.NODE_LIMIT: "raise max_nodes",
    }.get(status, unlimited)
    return f"{gap}: {remedy}, or {accept}"


def _below(gap: float) -> str:
    """Return how far below the optimum a value may lie; the gap says how far the bound lies above
    it."""
    return _percent(gap / (1 + gap)) if np.isfinite(gap) else "100 %"


def _percent(fraction: float) -> str:
    """Round up to three digits: the words must not claim more than the numbers."""
    if not 0 < fraction < np.inf:
        return f"{100 * fraction:g} %"
    step = 10.0 ** (np.floor(np.log10(100 * fraction)) - 2)
    return f"{np.ceil(100 * fraction / step) * step:.3g} %"
