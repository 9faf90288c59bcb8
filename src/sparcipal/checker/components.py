"""Whether the answer is of the kind that was asked for, sizes, signs and what components share; and
whether it is as good as promised."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from ..problem.result import Certificate, Result
from .budget import Budget, require
from .constraints import check_constraints, with_anchors
from .covariance import EPS
from .records import THEOREMS


def check_settings(result: Result) -> None:
    settings = result.settings
    sizes, total = settings["n_nonzero_coefs"], settings.get("n_nonzero_total")
    require(len(sizes) == settings["n_components"], "there is not one cardinality per component")
    shared = total is None or (
        settings["supports"] == "disjoint" and set(sizes) == {total - len(sizes) + 1}
    )
    require(shared, "n_nonzero_total is no total of nonzeros of disjoint components")
    supports, objective = settings["supports"], settings["objective"]
    fits = {"free": "adjusted", "orthogonal": "sum", "common": "sum"}.get(supports, objective)
    require(objective == fits, f"the objective {objective!r} does not go with {supports} supports")
    require(
        supports != "common" or (len(set(sizes)) == 1 and len(sizes) <= sizes[0]),
        "components of a common set have one size, and are no more than it has features",
    )
    one_sign = settings["nonnegative"] and supports in ("orthogonal", "common")
    require(not one_sign, f"nonnegative components with {supports} supports are not of this kind")
    apart = settings["uncorrelated"] and (settings["nonnegative"] or supports == "orthogonal")
    require(not apart, "uncorrelated components are neither nonnegative nor orthogonal")
    require(settings["tol"] == result.certificate.tol, "tol is not the tolerance asked for")
    check_constraints(result)


def check_components(result: Result, budget: Budget, size: int) -> None:
    """Refuse components that were not asked for; `size` is the bytes of a number."""
    settings, k = result.settings, len(result.supports)
    m = np.unique(np.concatenate(result.supports)).size
    # loadings W, A and W'AW, and for adjusted variances one elimination
    budget.memory(size * (m * (k + m) + 4.0 * k * k), f"{k} components of {m} features")
    budget.work(size * (m * k * (m + k) + float(k) ** 3), f"{k} components of {m} features")
    require(
        len(result.supports) == len(result.weights) == len(settings["n_nonzero_coefs"]),
        "there are not as many components as were asked for",
    )
    for support, weights in zip(result.supports, result.weights):
        require(support.size == weights.size, "there is not one loading per feature")
        norm = float(np.linalg.norm(weights))
        require(
            abs(norm - 1.0) <= (weights.size + 8) * EPS, f"a component has norm {norm:.17g}, not 1"
        )
        if settings["nonnegative"]:
            require(bool((weights >= 0).all()), "a loading is negative")
    sizes, allowed = [s.size for s in result.supports], list(settings["n_nonzero_coefs"])
    taken = with_anchors(result)
    if settings.get("include"):  # in the order of the components
        sizes = [s.size for s in taken]
    else:
        sizes, allowed = sorted(sizes, reverse=True), sorted(allowed, reverse=True)
    for size, most in zip(sizes, allowed):
        require(size <= most, f"more nonzeros in a component, {size}, than n_nonzero_coefs={most}")
    total = settings.get("n_nonzero_total")
    require(total is None or sum(sizes) <= total, "there are more nonzeros in all than allowed")
    everything = np.concatenate(taken)
    used = np.unique(everything).size
    if settings["supports"] == "disjoint":
        require(used == everything.size, "supports are not disjoint")
    if settings["supports"] == "common":
        require(used <= allowed[0], "the common set has more features than allowed")
    if settings["supports"] in ("orthogonal", "common"):
        W = loadings(result)[1]
        worst = float(np.abs(np.triu(W.T @ W, 1)).max())
        require(
            worst <= 4 * (sum(allowed) + 8) * EPS,
            f"components are not orthogonal: their product is {worst:.3g}",
        )
    barred = np.isin(everything, settings.get("exclude") or ())
    require(not barred.any(), "a component uses a feature that is excluded")


def loadings(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """Return the features that are used, increasing, and the loadings on them, one column each."""
    features, place = np.unique(np.concatenate(result.supports), return_inverse=True)
    W = np.zeros((features.size, len(result.supports)))
    start = 0
    for j, (support, weights) in enumerate(zip(result.supports, result.weights)):
        W[place[start : start + support.size], j] = weights
        start += support.size
    return features, W


def check_promises(certificate: Certificate, settings: dict[str, Any]) -> None:
    """Check that each promised fraction is reached, so much of the bound being explained, and that
    the theorem is about the method.

    Value and bound are proved by now, and fractions are compared without rounding.
    """
    least = Fraction(certificate.value) - Fraction(certificate.rounding)
    for name, promised in certificate.guarantees.items():
        method, signs = THEOREMS[name]
        about = settings.get("method") == method and settings["nonnegative"] in signs
        require(about, f"{name!a} says nothing about this method")
        require(
            Fraction(promised) * Fraction(certificate.bound) <= least,
            f"{promised:.6g} of the optimum is promised by {name!a}, and not proved to be reached",
        )
