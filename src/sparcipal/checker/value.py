"""What the loadings of a result explain, and how far rounding may have moved it."""

from __future__ import annotations

import numpy as np

from ..problem.result import Result, Status
from .budget import require
from .components import loadings
from .constraints import allowed_features, excluded_features
from .covariance import EPS, CheckedCovariance
from .redundancy import eliminated, reach_of


def check_value(result: Result, cov: CheckedCovariance) -> float:
    """Return what the loadings give, in the user's units."""
    features, W = loadings(result)
    A = cov.submatrix(features)
    settings = result.settings
    own, growth = _variances(A, W, settings["objective"] == "adjusted")
    certificate, unit, k = result.certificate, cov.unit, len(result.supports)
    sizes = settings["n_nonzero_coefs"]
    m = settings.get("n_nonzero_total") or sum(sizes)
    apart = settings["supports"] == "disjoint" or k == 1
    if settings["supports"] == "common":
        m = max(sizes)
    total = float(own.sum()) * unit
    # What rounding is relative to, and what loadings are whose length is not quite one. The sum of
    # variances is more if the matrix is positive semidefinite; a given one may fall short of it.
    magnitudes = np.abs(W).T @ np.abs(A) @ np.abs(W)
    used = [float(np.abs(cov.diagonal[support]).sum()) for support in result.supports]
    sizes_of = np.maximum(used, np.diagonal(magnitudes))
    # Components may be orthogonal up to rounding only; each of them has its own error then.
    relative = 4 * (m + 8) * EPS * (1 if apart else k)
    summed = relative * float(sizes_of.sum())
    allowed = allowed_features(cov, excluded_features(result))
    rounding = allowed.rounding(m) if apart else sum(allowed.rounding(s) for s in sizes)
    allowance = allowed.allowance(m) if apart else sum(allowed.allowance(s) for s in sizes)
    # Values are compared in the units of the features that a component uses, not of others.
    slacks = np.array([cov.apart(support) for support in result.supports]) + 2 * relative * sizes_of
    slack = float(slacks.sum()) * unit
    # The slack is capped: a forger could choose loadings that make errors grow.
    slack = max(slack, min(slack * growth, 1e-6 * abs(total)))
    for j, claimed in enumerate(result.variances.tolist()):
        require(
            abs(claimed - own[j] * unit) <= (slack if growth > 1 else slacks[j] * unit),
            f"component {j + 1} explains {own[j] * unit:.12g}, not {claimed:.12g}",
        )
    require(
        abs(certificate.value - total) <= slack,
        f"the components explain {total:.12g}, not {certificate.value:.12g}",
    )
    margin = (rounding + summed) * unit * growth
    require(
        0 <= certificate.rounding <= 8 * (margin + allowance * unit * growth)
        and certificate.value - certificate.rounding <= total - margin,
        f"the rounding margin {certificate.rounding:.3g} is not that of this computation",
    )
    short = certificate.bound - (total - margin)
    require(
        certificate.status is not Status.OPTIMAL or short <= (2 * certificate.tol + 1e-6) * total,
        f"the bound is {short - margin:.3g} above the value, and rounding may hide {margin:.3g} "
        f"more: too much for {Status.OPTIMAL.value!r} with a value of {total:.9g}",
    )
    if settings["uncorrelated"] and k > 1:
        products = W.T @ A @ W
        scale = np.sqrt(np.outer(np.diagonal(magnitudes), np.diagonal(magnitudes)))
        off = np.abs(products - np.diag(np.diagonal(products)))
        excess = off - 1e-10 * scale - np.sqrt(np.outer(slacks, slacks))
        require(float(excess.max()) <= 0, "the scores of components are correlated")
    return total


def _variances(A: np.ndarray, W: np.ndarray, adjusted: bool) -> tuple[np.ndarray, float]:
    """Return what each component explains, and how much an error of entries of W'AW grows."""
    products = W.T @ A @ W
    if not adjusted or W.shape[1] == 1:
        return np.diagonal(products).copy(), 1.0
    return eliminated(products, reach_of(A, W))
