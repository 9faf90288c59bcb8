"""The configuration bound once more: prices, and a replayed proof of the best support at them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import Float
from .budget import Budget
from .covariance import EPS, CheckedCovariance, Question
from .family import Family
from .kyfan import Rows, outside_rows
from .packing import largest_packing
from .records import LOG, Configuration
from .tree import replay


def recheck(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    """sum beta + sum_j max_S (value(S) - beta(S)): every feature serves at most one component."""
    if question.k > 1 and not question.disjoint:
        raise ValueError("this bound holds for disjoint supports only")
    core = _core(data, cov)
    price = np.asarray(data["price"], dtype=np.float64)
    if price.shape != core.shape or not np.isfinite(price).all() or not (price >= 0).all():
        raise ValueError("the prices are not nonnegative numbers, one for each feature")
    a = cov.submatrix(core)
    proved = {}
    for part in data["parts"]:
        header = part["log"][0]
        charged = np.asarray(header.get("prices", np.zeros(core.size)), dtype=np.float64)
        same = np.array_equal(charged, price)
        if not same or int(header["s"]) < int(part["s"]):
            raise ValueError("a proof speaks of other prices or of fewer features")
        if header["nonnegative"] and not question.nonnegative:
            raise ValueError("a proof speaks of nonnegative components only")
        log = LOG.read(part["log"], "log", {"n": core.size})
        inside = replay(log, 0.5 * (a + a.T), Float(), Budget())
        outside = _outside(header, core, price, inside, cov)
        proved[int(part["s"])] = max(inside, outside)
    if "packing" in data:
        if core.size < cov.p:
            raise ValueError("supports are packed only where no feature is left out")
        return _by_packing(data, a, price, proved, question) + cov.rounding(
            sum(question.cardinalities)
        )
    total = float(price.sum())
    for s in question.cardinalities:
        allowed = [bound for size, bound in proved.items() if size >= s]
        if not allowed:
            return float("inf")
        # An empty component costs and brings nothing.
        total += max(min(allowed), 0.0) + cov.rounding(s)
    return total * (1 + (core.size + 4) * EPS)


def _core(data: dict[str, Any], cov: CheckedCovariance) -> np.ndarray:
    if "features" not in data:
        return np.arange(cov.p)
    core = np.asarray(data["features"], dtype=np.intp)
    if core.ndim != 1 or core.size == 0 or core.min() < 0 or core.max() >= cov.p:
        raise ValueError("the core names features that are not there")
    if (np.diff(core) <= 0).any():
        raise ValueError("the core is out of order or names a feature twice")
    return core


def _outside(
    header: dict[str, Any],
    core: np.ndarray,
    price: np.ndarray,
    level: float,
    cov: CheckedCovariance,
) -> float:
    """The largest m_j of the features outside, which cost nothing; at least `level`."""
    if core.size == cov.p:
        return level
    s = int(header["s"])
    pads = np.asarray(header.get("pads", np.zeros(core.size)), dtype=np.float64)
    if pads.shape != core.shape or not (pads > 0.0).all():
        raise ValueError("features outside the core need positive pads")
    of = Rows(core, pads, price, s, bool(header["nonnegative"]))
    rows = outside_rows(of, cov, level, Float(), Budget())
    return float(np.maximum(level, rows.max()))


def _by_packing(
    data: dict[str, Any],
    a: np.ndarray,
    price: np.ndarray,
    proved: dict[int, float],
    question: Question,
) -> float:
    """Supports that can be part of something better than the target are enumerated and packed."""
    s, packing = question.s_max, data["packing"]
    if question.nonnegative or set(question.cardinalities) != {s} or s not in proved:
        raise ValueError("supports are packed for equal cardinalities and signed components only")
    target = float(packing["target"])
    a = 0.5 * (a + a.T)
    best = largest_packing(a, s, question.k, price, proved[s], target, packing["u"], packing["r"])
    return max(target, best) * (1 + 4 * EPS)


FAMILIES = (Family("configuration", Configuration, recheck, raw=True),)
