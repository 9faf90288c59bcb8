"""The configuration bound once more: prices, and a replayed proof of the best support at them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data import EPS, CheckedCovariance, Question
from .packing import largest_packing
from .proof import Unproved, replay


def recheck(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    """sum beta + sum_j max_S (value(S) - beta(S)): every feature serves at most one component."""
    if question.k > 1 and not question.disjoint:
        raise ValueError("this bound holds for disjoint supports only")
    price = np.asarray(data["price"], dtype=np.float64)
    if price.shape != (cov.p,) or not np.isfinite(price).all() or not (price >= 0).all():
        raise ValueError("the prices are not nonnegative numbers, one for each feature")
    a = cov.dense()
    proved = {}
    for part in data["parts"]:
        header = part["log"][0]
        charged = np.asarray(header.get("prices", np.zeros(cov.p)), dtype=np.float64)
        same = np.array_equal(charged, price)
        if not same or int(header["s"]) < int(part["s"]):
            raise ValueError("a proof speaks of other prices or of fewer features")
        if header["nonnegative"] and not question.nonnegative:
            raise ValueError("a proof speaks of nonnegative components only")
        try:
            proved[int(part["s"])] = replay(part["log"], 0.5 * (a + a.T))
        except Unproved:
            return float("inf")
    if "packing" in data:
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
    return total * (1 + (cov.p + 4) * EPS)


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
