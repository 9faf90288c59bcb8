"""Bound "configuration"; statement and proof: docs/methods/configuration.rst.

The gap of the configuration bound is closed by packing every support that can still matter.

Let T be the value to be proved, beta prices and pi the best value(S) - beta(S) over all supports.
Components that explain more than T in all use only supports with

    value(S) - beta(S) > tau = T - sum beta - (k - 1) pi.

Near the optimal prices these are few. They are enumerated by branching on features, a branch being
cut when its pair-split bound is at most tau, and the best packing of k disjoint ones among them is
found by trying all: a packing above T misses sum beta + k pi by less than the gap, and each support
in it contributes pi - (value(S) - beta(S)) to what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...numerics import margins
from ...problem.monitor import Monitor
from ..cheap import proved_margins
from ..pairsplit import Optimiser, Part, Split, best_start, prove_below, split_matrix

MOST_NODES = 30_000
MOST_SUPPORTS = 5_000
MOST_PACKINGS = 500_000
SMOOTHING = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)
STEPS = 150


@dataclass(frozen=True)
class Packed:
    """The certificate (U, R) with which the supports were enumerated, and the best packing.

    `value` is rounded up: no packing explains more, unless all stay below the target.
    """

    split: Split
    value: float
    supports: list[np.ndarray]


def best_packing(
    a: np.ndarray,
    s: int,
    k: int,
    price: np.ndarray,
    best_priced: float,
    target: float,
    monitor: Monitor,
) -> Packed | None:
    """The best k disjoint supports if they may explain more than target; None if a limit was met.

    Every support counts with a bound that a Cholesky factorisation proves, and with twice what the
    checker allows for the rounding of sums of prices and values.
    """
    scale = float(np.abs(np.diagonal(a)).sum() + price.sum())
    slack = 2 * margins.packing_slack(a.shape[0], s) * scale
    tau = target - float(price.sum()) - (k - 1) * best_priced - slack
    if tau <= 0.0:
        return None
    root = _root(a, s, price)
    split = _optimised(root, best_priced)
    supports = _enumerated(root, split, tau, monitor)
    if supports is None:
        return None
    values = np.array([_proved_value(a[np.ix_(S, S)]) + slack for S in supports])
    missing = np.array([best_priced - v + price[S].sum() for v, S in zip(values, supports)])
    room = float(price.sum()) + k * best_priced - target + (k + 1) * slack
    chosen = _packed(supports, missing, values, room, k)
    if chosen is None:
        return None
    return Packed(split, float(values[chosen].sum()), [supports[i] for i in chosen])


def _root(a: np.ndarray, s: int, price: np.ndarray) -> Part:
    n = a.shape[0]
    none = np.zeros(n, dtype=bool)
    return Part(np.arange(n), a, none, price, s, False, np.zeros(n))


def _optimised(root: Part, scale: float) -> Split:
    optimiser = Optimiser(root, best_start(root)[0])
    for mu in SMOOTHING:
        optimiser.run(mu * scale, STEPS, -np.inf)
    return optimiser.split()


def _enumerated(root: Part, split: Split, tau: float, monitor: Monitor) -> list[np.ndarray] | None:
    """Return all supports above tau (and perhaps some below), or None at a limit."""
    found: list[np.ndarray] = []
    features = _reduced(root, split, tau)
    stack: list[tuple[list[int], list[int]]] = [([], list(features))]
    nodes = 0
    while stack:
        forced, free = stack.pop()
        nodes += 1
        if nodes > MOST_NODES or len(found) > MOST_SUPPORTS or monitor.stopped:
            return None
        if len(forced) == root.s or not free:
            if forced and not _proved_worthless(root, forced, tau):
                found.append(np.array(sorted(forced)))
            continue
        matrix, order = _node(root, split, forced, free)
        if prove_below(matrix, tau):
            continue
        lead = np.square(np.linalg.eigh(matrix)[1][:, -1])
        inside = np.isin(order, forced)
        branch = int(order[int(np.argmax(np.where(inside, -1.0, lead)))])
        rest = [j for j in free if j != branch]
        stack.append((forced, rest))
        stack.append(([*forced, branch], rest))
    return found


def _reduced(root: Part, split: Split, tau: float) -> np.ndarray:
    """Return the features that one test each cannot exclude from every support above tau."""
    alive = np.arange(root.n)
    for _ in range(3):
        kept = [
            j
            for j in alive.tolist()
            if not prove_below(
                _node(root, split, [j], [i for i in alive.tolist() if i != j])[0], tau
            )
        ]
        if len(kept) == alive.size:
            break
        alive = np.array(kept, dtype=np.intp)
    return alive


def _node(
    root: Part, split: Split, forced: list[int], free: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    order = np.array(sorted([*forced, *free]))
    keep = np.zeros(root.n, dtype=bool)
    keep[order] = True
    inside = np.zeros(root.n, dtype=bool)
    inside[forced] = True
    return split_matrix(root.restrict(keep, inside), split.on(order)).matrix, order


def _proved_worthless(root: Part, support: list[int], tau: float) -> bool:
    """Return whether Cholesky proves the value of a support minus its prices at most tau."""
    block = root.a[np.ix_(support, support)]
    return prove_below(block, tau + float(root.price[support].sum()))


def _proved_value(block: np.ndarray) -> float:
    top = np.linalg.eigvalsh(block)[-1:]
    return float(top[0] + proved_margins(block[None], top)[0])


def _packed(
    supports: list[np.ndarray], missing: np.ndarray, values: np.ndarray, room: float, k: int
) -> list[int] | None:
    """Return the best k disjoint supports that miss at most `room`; None at the limit."""
    order = np.argsort(missing, kind="stable").tolist()
    masks = [sum(1 << int(i) for i in support) for support in supports]
    best: tuple[float, list[int]] = (0.0, [])
    stack: list[tuple[int, int, float, list[int]]] = [(0, 0, 0.0, [])]
    tried = 0
    while stack:
        start, used, lost, chosen = stack.pop()
        tried += 1
        if tried > MOST_PACKINGS:
            return None
        total = float(values[chosen].sum())
        if len(chosen) == k:
            best = max(best, (total, chosen), key=lambda pair: pair[0])
            continue
        for position in range(start, len(order)):
            i = order[position]
            # Sorted: the supports still to come miss at least as much as this one.
            if lost + (k - len(chosen)) * float(missing[i]) > room:
                break
            if not used & masks[i]:
                stack.append(
                    (position + 1, used | masks[i], lost + float(missing[i]), [*chosen, i])
                )
    return best[1]
