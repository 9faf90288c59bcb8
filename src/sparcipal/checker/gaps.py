"""Data with missing entries: what a result speaks of in their place, seen to come from them.

Rows are left out and entries filled once more, by the rules of docs/missing.rst. Covariances of
pairs of features come with the result, as the matrix that value and bound speak of; here they are
computed from the data and held against it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..problem.result import Result
from .arithmetic import EPS, Float
from .budget import Missing, require
from .covariance import LEAST_DEVIATION
from .gate import parse
from .records import Repair
from .tables import Source
from .weights import weights_of

LOST = 1e-6  # the part of a variance that rounding may hide
HIDDEN = "means or other columns so large that rounding hides the covariances"


def stand_in(
    result: Result, source: Source, sample_weight: Any
) -> tuple[Result, Source | None, Any, Any]:
    """Return the result, its data, covariance and weights, as they would be without gaps."""
    rule = result.settings["missing"]
    X = source.whole(gaps=True)
    require(isinstance(X, np.ndarray), "missing entries are treated in dense tables only")
    weights = None
    if sample_weight is not None:
        weights_of(sample_weight)  # refuses what are none
        weights = np.asarray(sample_weight, dtype=np.float64)
        require(weights.shape == (X.shape[0],), "there is not one weight per sample")
    absent = np.isnan(X)
    require(not absent.all(axis=0).any(), "a column has no entry")
    if rule == "rows":
        whole = ~absent.any(axis=1)
        require(int(whole.sum()) >= 1, "no row is whole")
        kept = None if weights is None else weights[whole]
        return result, Source(X[whole], source.names), None, kept
    if rule == "pairwise":
        matrix = _repaired(result, X, weights)
        plain = {**result.settings, "center": False, "scale": False, "sample_weight": False}
        given = replace(result, settings=plain, n_samples=None, mean=None, scale=None)
        return given, None, matrix, None
    filled = np.array(X, dtype=np.float64)
    for j in np.flatnonzero(absent.any(axis=0)):
        filled[absent[:, j], j] = _stands_for(rule, X[:, j], weights)
    return result, Source(filled, source.names), None, sample_weight


def _stands_for(rule: str, column: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the mean of what is there, by an exact sum, or its median."""
    column = column.astype(np.float64)
    there = ~np.isnan(column)
    if rule == "median":
        return float(np.median(column[there]))
    if weights is None:
        return math.fsum(column[there]) / int(there.sum())
    return math.fsum(weights[there] * column[there]) / math.fsum(weights[there])


def _repaired(result: Result, X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the matrix of the result, if it is what the covariances of the pairs are repaired
    to."""
    n, p = X.shape
    require(p == result.n_features, f"the result speaks of {result.n_features} features, not {p}")
    repair = parse(Repair, result.certificate.repair, {"p": p}, "repair")
    if repair.matrix is None:
        raise Missing("the repaired matrix was not saved with the result")
    require(repair.matrix.shape == (p, p), "repair: the matrix is not square")
    center, scale = result.settings["center"], result.settings["scale"]
    require(n == result.n_samples, f"{n} samples here, {result.n_samples} in the claim")
    require(result.settings["sample_weight"] == (weights is not None), "sample weights differ")
    require(result.mean is not None and result.scale is not None, "mean or scale is missing")
    assert result.mean is not None
    assert result.scale is not None
    there = ~np.isnan(X)
    mean = np.zeros(p)
    if center:
        mean = np.array([_stands_for("mean", X[:, j], weights) for j in range(p)])
    size = np.where(there, np.abs(X), 0.0).max(axis=0)
    require(
        bool((np.abs(mean - result.mean) <= 16 * EPS * size).all()), "the means are not those of X"
    )
    away = np.where(there, X - mean, 0.0)
    w = np.ones(n) if weights is None else weights
    mass = there.T @ (there * w[:, None])
    require(bool((mass > 0).all()), "two features share no row")
    reach = np.abs(away).max(axis=0)
    moving = reach[reach > 0]
    require(
        bool(((moving > LEAST_DEVIATION) & (moving < 1 / LEAST_DEVIATION)).all()),
        "deviations that squares lose",
    )
    pairs = (away.T @ (away * w[:, None])) / mass
    deviations = np.ones(p)
    if scale:
        spread = np.sqrt(np.maximum(np.diagonal(pairs), 0.0))
        deviations = np.where(spread > 0, spread, 1.0)
    # Sums of n products, in the order that BLAS chooses; a mean is off by some roundings of X.
    doubt, off = (4 * n + 64) * EPS, 20 * EPS * size
    wrong = doubt * (np.abs(away).T @ (np.abs(away) * w[:, None])) / mass
    wrong += np.outer(off, reach) + np.outer(reach, off) + np.outer(off, off)
    own = np.diagonal(wrong)  # of variances
    own = np.minimum(own / deviations, np.sqrt(own)) if scale else np.zeros(p)
    near = np.abs(deviations - result.scale) <= doubt * deviations + own
    require(bool(near.all()), "the scales are not those of X")
    ratio = np.outer(deviations, deviations)
    pairs = (pairs + pairs.T) / 2
    excluded = np.array(result.settings.get("exclude") or (), dtype=np.intp)
    return _nearest(repair, pairs / ratio, wrong / ratio, excluded)


def _nearest(
    repair: Repair, pairs: np.ndarray, wrong: np.ndarray, excluded: np.ndarray
) -> np.ndarray:
    """Return the matrix of the result, if it is the nearest positive semidefinite one to `pairs`.

    Nearest points of a convex set lie no further apart than the points that they belong to: what
    rounding adds to the pairs, and leaves of them beside their eigenvalues and eigenvectors, moves
    the nearest matrix by no more.
    """
    given, p = repair.matrix, pairs.shape[0]
    assert given is not None
    matrix = given
    require(bool((matrix == matrix.T).all()), "repair: the matrix is not symmetric")
    top = max(float(np.abs(pairs).max()), float(np.abs(matrix).max()))
    require(0.0 < top < math.inf, "covariances that are zero or overflow")
    unit = 2.0 ** math.frexp(top)[1]  # no square overflows, none that matters is lost
    pairs, matrix, wrong = pairs / unit, matrix / unit, wrong / unit
    whole = float(np.linalg.norm(pairs))
    spoken = np.setdiff1d(np.flatnonzero(np.diagonal(pairs) > 0), excluded)
    slack = 3 * float(np.linalg.norm(wrong)) + 64 * p * EPS * max(whole, 1.0)
    if _definite(pairs, wrong):
        off = np.abs(matrix - pairs) <= 2 * wrong
        require(bool(off.all()), "the matrix is not that of the pairs, which needs no repair")
        # none is spoken of where settings exclude all: what is wrong then is found later
        hidden = (wrong / np.maximum(_sizes(pairs), 1e-300))[np.ix_(spoken, spoken)]
        require(float(hidden.max(initial=0.0)) <= LOST, HIDDEN)
        slack = 3 * float(np.linalg.norm(wrong))
        _check_moved(repair, 0.0, whole, unit, slack)
        return given
    # A repair is one of the whole matrix, whose rounding is relative to its largest entries.
    require(slack <= LOST * float(np.diagonal(pairs)[spoken].min(initial=math.inf)), HIDDEN)
    w, Q = np.linalg.eigh(pairs)
    left = float(np.linalg.norm((Q * w) @ Q.T - pairs))
    left += 2 * whole * float(np.linalg.norm(Q.T @ Q - np.eye(p)))
    require(left <= 32 * p * EPS * max(whole, 1.0), "covariances whose eigenvalues are not found")
    away = float(np.linalg.norm((Q * np.maximum(w, 0.0)) @ Q.T - matrix))
    require(
        away <= slack,
        f"the matrix is {away * unit:.6g} from the nearest positive semidefinite one to the "
        "covariances of the pairs",
    )
    _check_moved(repair, float(np.linalg.norm(matrix - pairs)), whole, unit, slack)
    return given


def _sizes(pairs: np.ndarray) -> np.ndarray:
    """Return the product of the deviations of each pair of features."""
    deviations = np.sqrt(np.maximum(np.diagonal(pairs), 0.0))
    return np.outer(deviations, deviations)


def _definite(pairs: np.ndarray, wrong: np.ndarray) -> bool:
    """Return whether the covariances of the pairs, in the units of each feature, are proved
    positive definite: the nearest matrix is then their own."""
    moving = np.flatnonzero(np.diagonal(pairs) > 0)
    grid = np.ix_(moving, moving)
    if pairs.any(axis=0).sum() > moving.size:
        return False
    sizes = _sizes(pairs)[grid]
    return Float().psd(pairs[grid] / sizes, float(np.linalg.norm(wrong[grid] / sizes)))


def _check_moved(repair: Repair, moved: float, whole: float, unit: float, slack: float) -> None:
    """Check what a result says of the size of its repair."""
    require(abs(repair.moved / unit - moved) <= slack + 1e-6 * moved, "the repair moved otherwise")
    part = moved / max(whole, 1e-300)
    require(
        abs(part - repair.relative) <= 1e-6 * (1 + part) + slack,
        "the size of the repair is another",
    )
