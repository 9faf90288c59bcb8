"""All supports that could be part of an answer above a target, and the best way to pack them.

With prices beta and pi >= value(S) - beta(S) for every support, an answer above the target T uses
only supports with value(S) - beta(S) > T - paid - (k - 1) pi, where paid is at least the price of
all features that are used. They are found here once more,
with the (U, R) of the certificate and one proof for every branch that is cut and every support
that is looked at.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arithmetic import Arithmetic, Numbers
from .budget import Budget
from .enumeration import proved_tops
from .family import Case
from .margins import term
from .pairsplit import mirrored, pair_charges
from .records import Packing

PARTS = 2**40  # of what may be lost: losses are counted in whole ones, so that sums are exact


def largest_packing(
    record: Packing, a: np.ndarray, price: np.ndarray, paid: Numbers, pi: Numbers, case: Case
) -> Numbers:
    """Return the largest value of k disjoint supports, if above the target; infinity if the target
    lies too low for its proof."""
    _, question, ar, budget = case
    n, s, k = a.shape[0], question.s_max, question.k
    slack = 64 * (n + s + 8) * ar.eps * (abs(np.diagonal(a)).sum() + abs(price).sum())
    tau = record.target - paid - (k - 1) * pi - slack
    if not tau > 0.0:
        return float("inf")
    supports = Charges(record, a, s, price, ar, budget).above(tau)
    if not supports:
        return ar.number(0.0)
    values = []
    for S in supports:
        block = a[np.ix_(S, S)][None]
        values.append(
            proved_tops(block, np.linalg.eigvalsh(ar.floats(block))[:, -1], ar)[0] + slack
        )
    lost = [pi - value + price[S].sum() for value, S in zip(values, supports)]
    room = ar.upper(paid + k * pi - record.target + 2 * (k + 1) * slack)
    if not room > 0.0:
        return ar.number(0.0)
    # Of t features that are used at most, one of the t dearest makes room for the next one.
    dearest, t = np.argsort(-ar.floats(price), kind="stable"), s * k
    spare = price[dearest[min(t, n - 1)]] if t <= n else ar.number(0.0)
    parts = [_parts(loss, room, ar) for loss in lost]
    unused = {int(f): _parts(price[f] - spare, room, ar) for f in dearest}
    order = sorted(range(len(supports)), key=parts.__getitem__)
    sets = [frozenset(supports[i]) for i in order]
    return _best(sets, [values[i] for i in order], [parts[i] for i in order], unused, case)


def _parts(lost: Numbers, room: float, ar: Arithmetic) -> int:
    """Return at most what is lost, not below zero, in whole parts of the room for losses."""
    return max(math.floor(PARTS * min(-ar.upper(-lost) / room, 2.0)) - 1, 0)


def _best(
    sets: list[frozenset[int]],
    values: list[Any],
    lost: list[int],
    unused: dict[int, int],
    case: Case,
) -> Numbers:
    """Return the largest value of k disjoint sets that lose, with the features that none of them
    has, no more than PARTS. Sets are in the order of what they lose, features in that of `unused`.
    """
    _, question, ar, budget = case
    features = list(unused)
    best = ar.number(0.0)
    every = tuple(range(len(sets)))
    stack: list[tuple[tuple[int, ...], int, int, tuple[int, ...]]] = [(every, 0, 0, ())]
    while stack:
        alive, place, gone, chosen = stack.pop()
        budget.work(1000 * (1 + len(alive)), "packings of supports")
        left = question.k - len(chosen)
        if left == 0:
            best = ar.maximum(best, sum(values[i] for i in chosen))
        if left == 0 or not alive:
            continue
        most = PARTS - gone - (left - 1) * lost[alive[0]]
        alive = tuple(i for i in alive if lost[i] <= most)
        while place < len(features) and any(features[place] in sets[i] for i in chosen):
            place += 1
        if not alive or place == len(features):
            continue
        feature = features[place]
        others = tuple(i for i in alive if feature not in sets[i])
        stack.append((others, place + 1, gone + unused[feature], chosen))
        for i in alive:
            if feature in sets[i]:
                apart = tuple(j for j in others if not sets[i] & sets[j])
                stack.append((apart, place + 1, gone + lost[i], (*chosen, i)))
    return best


class Charges:
    """The pair-split bound of all supports between two sets of features."""

    def __init__(
        self,
        record: Packing,
        a: np.ndarray,
        s: int,
        price: np.ndarray,
        ar: Arithmetic,
        budget: Budget,
    ) -> None:
        n = a.shape[0]
        self.a, self.s, self.price, self.ar, self.budget = a, s, price, ar, budget
        self.u = ar.array(mirrored(record.u, n))
        self.v = pair_charges(self.u, mirrored(record.r, n, -1.0), False, ar)

    def above(self, tau: Numbers) -> list[list[int]]:
        """List every support whose value less prices is not proved to be at most tau."""
        alive = list(range(self.a.shape[0]))
        for _ in range(3):
            rest = [j for j in alive if not self.settled([j], [i for i in alive if i != j], tau)[0]]
            if len(rest) == len(alive):
                break
            alive = rest
        found: list[list[int]] = []
        stack: list[tuple[list[int], list[int]]] = [([], alive)]
        while stack:
            forced, free = stack.pop()
            if len(forced) == self.s or not free:
                worth = self.a[np.ix_(forced, forced)]
                if forced and not self.ar.below(worth, tau + self.price[forced].sum()):
                    found.append(sorted(forced))
                continue
            cut, matrix = self.settled(forced, free, tau)
            if cut:
                continue
            lead = np.abs(np.linalg.eigh(self.ar.floats(matrix))[1][len(forced) :, -1])
            branch = free[int(np.argmax(lead))]
            rest = [j for j in free if j != branch]
            stack += [(forced, rest), ([*forced, branch], rest)]
        return found

    def settled(self, forced: list[int], free: list[int], tau: Numbers) -> tuple[bool, np.ndarray]:
        """Return whether no support between forced and forced + free, |S| <= s, is worth more than
        tau."""
        ar, s, f = self.ar, self.s, len(forced)
        order = np.array([*forced, *free])
        m, grid = order.size, np.ix_(order, order)
        self.budget.work(20_000 + m**3, "supports that could be packed")
        zero = ar.number(0.0)
        price = self.price[order]
        largest = ar.top(self.v[grid], 1)[:, 0] + ar.top(abs(price), 1)[0]
        u, gain = self.u[grid].copy(), self.v[grid] - price
        u[:f, :f] = zero
        gain[:f, :f] = -price[:f]
        gain[np.diag_indices(m)] = zero
        choice = ar.maximum(gain[:, f:], 0.0)
        d = gain[:, :f].sum(axis=1) - price
        d[:f] += ar.top_sum(choice[:f], s - f)
        d[f:] += ar.top_sum(choice[f:], s - f - 1)
        d += term("charges", s) * s * ar.eps * largest
        M = self.a[grid] - u
        M[np.diag_indices(m)] += d
        return ar.below(M, tau), M
