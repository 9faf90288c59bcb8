"""All supports that could be part of an answer above a target, and the best way to pack them.

With prices beta and pi >= value(S) - beta(S) for every support, an answer above the target T uses
only supports with value(S) - beta(S) > T - paid - (k - 1) pi, where paid is at least the price of
all features that are used. They are found here once more,
with the (U, R) of the certificate and one proof for every branch that is cut and every support
that is looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arithmetic import Arithmetic, Numbers
from .budget import Budget
from .enumeration import proved_tops
from .family import Case
from .margins import term
from .pairsplit import mirrored, pair_charges
from .records import Packing


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
    room = paid + k * pi - record.target + (k + 1) * slack
    # The least that a support loses: numbers without a radius, which can be sorted.
    least = [-ar.high(-loss) for loss in lost]
    order = sorted(range(len(supports)), key=least.__getitem__)
    sets = [frozenset(supports[i]) for i in order]
    return _best(sets, [values[i] for i in order], [least[i] for i in order], room, case)


def _best(
    sets: list[frozenset], values: list[Any], lost: list[Any], room: Numbers, case: Case
) -> Numbers:
    _, question, ar, budget = case
    k = question.k
    best = ar.number(0.0)
    stack: list[tuple[int, tuple[int, ...], frozenset, Any]] = [(0, (), frozenset(), 0.0)]
    while stack:
        start, chosen, used, gone = stack.pop()
        budget.work(1000 * (1 + len(sets) - start), "packings of supports")
        if len(chosen) == k:
            best = ar.maximum(best, sum(values[i] for i in chosen))
            continue
        for i in range(start, len(sets)):
            if gone + (k - len(chosen)) * lost[i] > room:
                break
            if not used & sets[i]:
                stack.append((i + 1, (*chosen, i), used | sets[i], gone + lost[i]))
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
