"""How far several components repeat each other, which is printed beside what is proved of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..problem.result import Result
from .budget import require
from .components import loadings
from .covariance import EPS, CheckedCovariance
from .gate import parse
from .records import Redundancy

LOST = 1e-12  # the part of its reach below which a component may be nothing but rounding
ORDERED = 8  # up to so many components, the best order is found
LOOSELY = 1e-4  # the part of adjusted variances that rounding may move, however errors grow


def check_redundancy(info: Any, result: Result, cov: CheckedCovariance) -> None:
    """Refuse what the solver reports of it unless it is so, as far as rounding tells."""
    require(type(info) is dict, "info: not a record")
    if info.get("redundancy") is None:
        return
    told = parse(Redundancy, info["redundancy"], {}, "redundancy")
    features, W = loadings(result)
    A, unit, k = cov.submatrix(features), cov.unit, W.shape[1]
    products, reach = W.T @ A @ W, reach_of(A, W)
    variance = np.diagonal(products)
    off = np.array([cov.apart(support) for support in result.supports]) / 2
    off = off + 4 * (features.size + 8) * EPS * reach
    doubt = np.sqrt(np.outer(off, off))
    surely = variance - off > 4 * LOST * reach  # others may count as constant
    low, high = np.maximum(variance - off, 0.0), variance + off
    least = (np.abs(products) - doubt) / np.sqrt(np.maximum(np.outer(high, high), 1e-300))
    least = np.where(np.outer(surely, surely), least, 0.0)
    most = np.ones((k, k))
    known = np.outer(low, low) > 0
    most[known] = ((np.abs(products) + doubt)[known]) / np.sqrt(np.outer(low, low)[known])
    pairs = ~np.eye(k, dtype=bool)
    between = min(least[pairs].max(), 1.0) - 16 * EPS <= told.correlation
    require(
        bool(between and told.correlation <= most[pairs].max() + 16 * EPS),
        f"scores correlate otherwise than by {told.correlation:.6g}",
    )
    # Of more components than ORDERED the order is their own.
    order = _best_order(products, reach) if k <= ORDERED else range(k)
    order = _useful_first(order, products, reach)
    pivots, growth = eliminated(products[np.ix_(order, order)], reach[order])
    adjusted, slack = float(pivots.sum()), 2 * float(off.sum())
    slack = max(slack, min(slack * growth, LOOSELY * adjusted)) + 64 * k * EPS * adjusted
    require(
        abs(told.adjusted / unit - adjusted) <= slack,
        f"adjusted, all explain {adjusted * unit:.12g}, not {told.adjusted:.12g}",
    )


def _best_order(products: np.ndarray, reach: np.ndarray) -> Sequence[int]:
    """Find it by the best order of each set of components that all add something: what one more
    adds does not depend on the order of such a set."""
    k = len(reach)
    best: dict[int, tuple[float, tuple[int, ...], np.ndarray]] = {0: (0.0, (), products)}
    for chosen in range(1, 2**k):
        found = []
        for j in (j for j in range(k) if chosen >> j & 1 and chosen ^ (1 << j) in best):
            total, order, rest = best[chosen ^ (1 << j)]
            if rest[j, j] > LOST * reach[j]:
                found.append((total + float(rest[j, j]), (*order, j), rest))
        if found:
            total, order, rest = max(found, key=lambda one: one[0])
            best[chosen] = total, order, _without(rest, order[-1], reach)
    useful = max(best.values(), key=lambda one: (one[0], len(one[1])))[1]
    return [*useful, *(j for j in range(k) if j not in useful)]


def _useful_first(order: Sequence[int], rest: np.ndarray, reach: np.ndarray) -> list[int]:
    """Put what adds nothing last, because nothing after it is counted."""
    useful = []
    for j in order:
        if rest[j, j] > LOST * reach[j]:
            useful.append(j)
        rest = _without(rest, j, reach)
    return [*useful, *(j for j in order if j not in useful)]


def _without(rest: np.ndarray, j: int, reach: np.ndarray) -> np.ndarray:
    """Return what is left of all components beyond one."""
    pivot = float(rest[j, j])
    return rest - np.outer(rest[:, j], rest[j]) / pivot if pivot > LOST * reach[j] else rest


def reach_of(A: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Return what each component would explain if its features were all parallel, at least next to
    nothing: rounding is relative to that."""
    reach = (np.sqrt(np.maximum(np.diagonal(A), 0.0)) @ np.abs(W)) ** 2
    return np.asarray(np.maximum(reach, 1e-300))


def eliminated(products: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, float]:
    """Return what each component explains beyond those before it: the pivots of the Gaussian
    elimination of W'AW."""
    rest = products.copy()
    out = np.zeros(rest.shape[0])
    error = growth = 1.0
    for j in range(rest.shape[0]):
        pivot = float(rest[j, j])
        # Constant, or a combination of those before it: what is left of it, and of those after it,
        # is rounding.
        if not pivot > LOST * float(reach[j]):
            break
        out[j] = pivot
        factor = float(np.abs(rest[j + 1 :, j]).max(initial=0.0)) / pivot
        rest -= np.outer(rest[:, j], rest[j]) / pivot
        error *= (1.0 + factor) ** 2
        growth += error if j + 1 < rest.shape[0] else 0.0
    return out, growth
