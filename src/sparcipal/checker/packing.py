"""All supports that could be part of an answer above a target, and the best way to pack them.

With prices beta and pi >= value(S) - beta(S) for every support, an answer above the target T uses
only supports with value(S) - beta(S) > T - sum beta - (k - 1) pi. They are found here once more,
with the (U, R) of the certificate and one Cholesky factorisation for every branch that is cut and
every support that is looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .covariance import EPS, factorises
from .pairsplit import below

MOST_NODES = 100_000
MOST_CHOICES = 2_000_000


def largest_packing(
    a: np.ndarray,
    s: int,
    k: int,
    price: np.ndarray,
    pi: float,
    target: float,
    packed_u: Any,
    packed_r: Any,
) -> float:
    """The largest value of k disjoint supports, if above the target; infinity beyond a limit."""
    n = a.shape[0]
    scale = float(np.abs(np.diagonal(a)).sum()) + float(price.sum())
    slack = 64 * (n + s + 8) * EPS * scale
    tau = target - float(price.sum()) - (k - 1) * pi - slack
    if not tau > 0.0:
        return float("inf")
    charges = _Charges(a, s, price, packed_u, packed_r)
    supports = charges.above(tau)
    if supports is None:
        return float("inf")
    values = [_proved_value(a[np.ix_(S, S)]) + slack for S in supports]
    lost = [pi - v + float(price[S].sum()) for v, S in zip(values, supports)]
    room = float(price.sum()) + k * pi - target + (k + 1) * slack
    order = sorted(range(len(supports)), key=lambda i: lost[i])
    sets = [frozenset(S) for S in supports]
    return _best(order, sets, values, lost, room, k)


def _best(
    order: list[int],
    sets: list[frozenset],
    values: list[float],
    lost: list[float],
    room: float,
    k: int,
) -> float:
    best, tried = 0.0, 0
    stack: list[tuple[int, tuple[int, ...], frozenset, float]] = [(0, (), frozenset(), 0.0)]
    while stack:
        start, chosen, used, gone = stack.pop()
        tried += 1
        if tried > MOST_CHOICES:
            return float("inf")
        if len(chosen) == k:
            best = max(best, sum(values[i] for i in chosen))
            continue
        for place in range(start, len(order)):
            i = order[place]
            if gone + (k - len(chosen)) * lost[i] > room:
                break
            if not used & sets[i]:
                stack.append((place + 1, (*chosen, i), used | sets[i], gone + lost[i]))
    return best


def _proved_value(block: np.ndarray) -> float:
    """The largest eigenvalue, rounded up so far that Cholesky proves it."""
    m = block.shape[0]
    guess = float(np.linalg.eigvalsh(block)[-1])
    step = 4 * (m + 4) * EPS * (float(np.abs(np.diagonal(block)).sum()) + (m + 1) * abs(guess))
    for slack in (step, 16 * step, 256 * step):
        if below(block, guess + slack):
            return guess + slack
    return float("inf")


class _Charges:
    """The pair-split bound of all supports between two sets of features."""

    def __init__(self, a: np.ndarray, s: int, price: np.ndarray, u: Any, r: Any) -> None:
        n = a.shape[0]
        upper = np.triu_indices(n, 1)
        self.a, self.s, self.price = a, s, price
        self.u, half = np.zeros((n, n)), np.zeros((n, n))
        self.u[upper] = np.asarray(u, dtype=np.float64)
        half[upper] = np.asarray(r, dtype=np.float64)
        self.u = self.u + self.u.T
        if not (np.isfinite(self.u).all() and np.abs(half).max(initial=0.0) <= 100):
            raise ValueError("U or R of the packing is not finite")
        # V_ij V_ji >= U_ij^2 must survive the rounding of exp.
        self.v = np.abs(self.u) * np.exp(half - half.T) * (1 + 6 * EPS)

    def above(self, tau: float) -> list[list[int]] | None:
        """Every support whose value less prices exceeds tau; None if a limit was met."""
        alive = list(range(self.a.shape[0]))
        for _ in range(3):
            rest = [j for j in alive if not self.settled([j], [i for i in alive if i != j], tau)[0]]
            if len(rest) == len(alive):
                break
            alive = rest
        found: list[list[int]] = []
        stack: list[tuple[list[int], list[int]]] = [([], alive)]
        nodes = 0
        while stack:
            forced, free = stack.pop()
            nodes += 1
            if nodes > MOST_NODES:
                return None
            if len(forced) == self.s or not free:
                worth = self.a[np.ix_(forced, forced)]
                if forced and not below(worth, tau + float(self.price[forced].sum())):
                    found.append(sorted(forced))
                continue
            cut, matrix = self.settled(forced, free, tau)
            if cut:
                continue
            lead = np.abs(np.linalg.eigh(matrix)[1][len(forced) :, -1])
            branch = free[int(np.argmax(lead))]
            rest = [j for j in free if j != branch]
            stack += [(forced, rest), ([*forced, branch], rest)]
        return found

    def settled(self, forced: list[int], free: list[int], tau: float) -> tuple[bool, np.ndarray]:
        """Whether no support between forced and forced + free, |S| <= s, is worth more than tau."""
        order = np.array([*forced, *free])
        m, f = order.size, len(forced)
        grid = np.ix_(order, order)
        u, gain = self.u[grid].copy(), self.v[grid] - self.price[order]
        u[:f, :f] = 0.0
        gain[:f, :f] = -self.price[order][:f]
        np.fill_diagonal(gain, 0.0)
        d = gain[:, :f].sum(axis=1)
        choice = np.maximum(gain[:, f:], 0.0)
        choice[np.arange(f, m), np.arange(m - f)] = 0.0
        choice = -np.sort(-choice, axis=1)
        d[:f] += choice[:f, : self.s - f].sum(axis=1)
        d[f:] += choice[f:, : self.s - f - 1].sum(axis=1)
        size = self.v[grid].max(axis=1, initial=0.0) + float(self.price[order].max(initial=0.0))
        d += (self.s + 8) * EPS * self.s * size - self.price[order]
        M = self.a[grid] - u
        M[np.diag_indices(m)] += d
        trace = float(np.abs(tau - np.diagonal(M)).sum()) + abs(tau)
        delta = 2 * (m + 2) * EPS * trace + 2 * EPS * float(np.abs(M).sum(axis=1).max())
        return factorises((tau - delta) * np.eye(m) - M), M
