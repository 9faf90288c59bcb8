"""Supports of features that are alike (docs/methods/tree.rst, "Near-duplicates"), once more.

A support has forced features, some of a few others and g of a group. Once all but the group are
eliminated, it is worth no more than the level if a sum of squares over the pairs of its g features
is small enough. These sums are made of integers, so that their order does not matter; what they do
not exclude is left over, to be looked at one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .arithmetic import LEAST, Arithmetic, Numbers
from .budget import Budget, require
from .margins import term
from .pairsplit import largest

MOST_OTHERS = 16  # features beside the group: each subset of them is a case
BITS = 44  # of the integers of a sum
BIG = 2**52
CHUNK = 1024  # sets that are extended together


def left_over(of: Any, state: Any, named: np.ndarray | None, budget: Budget) -> Iterator[list[int]]:
    """Name the supports of a state (tree.py) that pairs do not prove to be worth at most the level
    t of its prover. Where no feature costs anything, only the largest ones are meant."""
    bits = 0 if named is None else sum(1 << int(j) for j in named)
    free = state.alive & ~state.forced
    require(bits != 0 and bits & ~free == 0, "a group that is not free")
    require(not of.padded and of.listed is None, "a group beside features outside, or a list")
    forced, others, group = (
        [j for j in range(of.p) if mask >> j & 1] for mask in (state.forced, free & ~bits, bits)
    )
    require(len(others) <= MOST_OTHERS, "too many features beside those that are alike")
    n = len(group)
    for count in range(min(of.s - len(forced), len(others)) + 1):
        for some in combinations(others, count):
            own = [*forced, *some]
            room = min(of.s - len(own), n)
            for g in range(room + 1) if of.costly else [room]:
                m = len(own)
                budget.work(3e5 + n * n * (60.0 + 6 * m) + m**3, "features that are alike")
                costs = _costs(of, own, group, g) if g else None
                for one in costs.below(budget) if costs else [[]] if own else []:
                    budget.work(of.each, "supports of features that are alike")
                    yield [*own, *(group[i] for i in one)]


@dataclass(frozen=True)
class _Costs:
    """A set of g features that costs no less than the limit is worth no more than the level."""

    single: np.ndarray
    pair: np.ndarray
    limit: int
    g: int

    def below(self, budget: Budget) -> Iterator[list[int]]:
        """Name the sets of g features that cost less than the limit.

        Features in a fixed order, those first that are least like the others; a set of chosen ones
        costs at least what they do, and for each further one what it adds and half its pairs with
        the nearest later ones.
        """
        g, n = self.g, self.single.size
        order = np.argsort(-self.pair.sum(axis=1), kind="stable")
        single, pair = self.single[order], self.pair[np.ix_(order, order)]
        if _smallest(2 * single + _nearest(pair, g)[g], g)[0].sum() >= 2 * self.limit:
            return
        held = 8.0 * n * n * (g + 1)  # bytes
        budget.work(30.0 * n**3 + held, "features that are alike")
        budget.memory(held, "features that are alike")
        rest = np.full((n, g + 1, n), BIG)
        for i in range(n):
            rest[i, :, i:] = _nearest(pair[i:, i:], g)
        none = np.zeros((1, 0), dtype=np.int64)
        stack = [(none, np.zeros(1, dtype=np.int64), single[None], np.zeros(1, dtype=np.int64))]
        while stack:
            chosen, base, each, place = stack.pop()
            m, q = chosen.shape[0], g - chosen.shape[1]
            held -= 8.0 * m * (n + g)
            budget.work(m * n * 40.0, "features that are alike")
            later = np.arange(n) >= place[:, None]
            if q == 1:
                rows, columns = np.nonzero(later & (base[:, None] + each < self.limit))
                yield from np.sort(order[np.column_stack([chosen[rows], columns])]).tolist()
                continue
            score = 2 * each + rest[place, q]
            least = _smallest(score, q)
            total = 2 * base + least.sum(axis=1)
            more = np.maximum(score - least[:, -1:], 0)
            rows, columns = np.nonzero(
                later & (np.arange(n) <= n - q) & (total[:, None] + more < 2 * self.limit)
            )
            held += 8.0 * rows.size * (n + g)
            budget.memory(held + 40.0 * m * n, "features that are alike")
            for i in range(0, rows.size, CHUNK):
                row, j = rows[i : i + CHUNK], columns[i : i + CHUNK]
                extended = np.column_stack([chosen[row], j])
                stack.append((extended, base[row] + each[row, j], each[row] + pair[j], j + 1))


def _costs(of: Any, own: list[int], group: list[int], g: int) -> _Costs:
    """Eliminate the features `own`, and put what is left of the inequality into integers."""
    ar: Arithmetic = of.ar
    a, price = of.a[np.ix_(group, group)], of.price[group]
    ranked = price[np.argsort(ar.floats(price), kind="stable")]
    blur = g * (g + 4) * ar.eps * largest(abs(price), ar)  # of a sum of g prices
    low = ranked[:g].sum() - blur
    sizes_of_level = abs(of.t) + of.s * largest(abs(of.price), ar)
    tau = of.t + of.price[own].sum() + low - term("alike", of.s) * ar.eps * sizes_of_level
    spread = ranked[-g:].sum() - low + blur
    require(ar.at_most(LEAST, tau), "a level too low for features that are alike")
    first, K, error = _eliminated(of.a, (own, group), tau, spread, ar)
    N = a + first
    squares, products = N * N, N * K
    error = error + g * term("alike", g) * ar.eps * largest(abs(a), ar)
    # What eigenvalues are compared with: about that of the best set.
    gain = -np.diagonal(ar.floats(squares)) + 2 * float(ar.floats(tau)) * ar.floats(price)
    gain -= (g - 1) * ar.floats(squares).mean(axis=1)
    best = ar.floats(price)[np.argsort(gain, kind="stable")[:g]].sum() - float(ar.floats(low))
    c = ar.number(float(ar.floats(tau)) + max(float(best), 0.0))
    slope = 2 * c + 2 * _least(products, g, ar) + spread * _least(-(K * K), g, ar)
    single = slope * price - np.diagonal(squares)
    sizes = [
        g * g * largest(squares, ar) + g * abs(slope) * largest(abs(price), ar),
        2 * c * (tau + sizes_of_level),
        c * c + (tau + spread) * error,
        2 * spread * g * g * largest(abs(products), ar) + (spread * g) ** 2 * largest(K * K, ar),
    ]
    size = sum(sizes)
    slack = term("alike", of.s) * ar.eps * size + 2 * (tau + spread) * error
    unit = 2.0 ** (BITS - math.frexp(ar.upper(size))[1])
    pair = _whole(-2 * squares, unit, ar)
    np.fill_diagonal(pair, 0)
    limit = -_whole(np.array([2 * c * tau - c * c - slope * low - slack]), unit, ar)
    return _Costs(_whole(single, unit, ar), pair, int(limit[0]), g)


def _eliminated(
    a: np.ndarray,
    sets: tuple[list[int], list[int]],
    tau: Numbers,
    spread: Numbers,
    ar: Arithmetic,
) -> tuple[np.ndarray, np.ndarray, Numbers]:
    """Return B'H^-1 B and B'H^-1 (H + spread I)^-1 B, H = tau I - A_own, and what the first and
    `spread` times the second are off by in norm, in all."""
    own, group = sets
    m, n = len(own), len(group)
    if not own:
        return ar.zeros(n, n), ar.zeros(n, n), ar.number(0.0)
    block, B = a[np.ix_(own, own)], a[np.ix_(own, group)]
    room = 0.5 * (float(ar.floats(tau)) - float(np.linalg.eigvalsh(ar.floats(block))[-1]))
    require(room > 0.0 and ar.below(block, tau - room), "a level below features beside a group")
    H = tau * ar.eye(m) - block
    further = H + spread * ar.eye(m)
    X, Y = ar.solve(H, B), ar.solve(further, B)
    first, second = ar.matmul(B.T, X), ar.matmul(X.T, Y)
    error = ar.number(0.0)
    if not ar.exact:
        b, x, y = (float(np.linalg.norm(z)) for z in (B, X, Y))
        unit = term("alike", m) * ar.eps
        off = [
            (np.linalg.norm(B - S @ Z) + unit * (b + np.linalg.norm(S) * np.linalg.norm(Z))) / room
            for S, Z in ((H, X), (further, Y))
        ]
        error = b * off[0] + spread * (x * off[1] + y * off[0] + off[0] * off[1])
        error += unit * x * (b + spread * y)
    return (first + first.T) / 2, (second + second.T) / 2, error


def _whole(x: np.ndarray, unit: float, ar: Arithmetic) -> np.ndarray:
    """Return integers that are at most `unit`, a power of two, times x."""
    low = np.array([-ar.upper(-one) for one in x.ravel()]) if ar.exact else x.ravel()
    scaled = np.floor(low * unit)
    require(bool((np.abs(scaled) <= 2.0 ** (BITS + 1)).all()), "numbers that are not finite")
    return scaled.astype(np.int64).reshape(x.shape)


def _nearest(pair: np.ndarray, g: int) -> np.ndarray:
    """Return (g + 1, n): for each feature the sum of its q - 1 smallest pairs, q = 0, ..., g."""
    n = pair.shape[0]
    others = np.sort(np.where(np.eye(n, dtype=bool), BIG, pair), axis=1)[:, : n - 1]
    sums = np.zeros((g + 1, n), dtype=np.int64)
    for q in range(2, g + 1):
        sums[q] = others[:, : q - 1].sum(axis=1) if q <= n else BIG
    return sums


def _smallest(x: np.ndarray, q: int) -> np.ndarray:
    """Return the q smallest of each row, the largest of them last."""
    x = np.atleast_2d(x)
    part = np.partition(x, q - 1, axis=1)[:, :q] if q < x.shape[1] else np.sort(x, axis=1)
    return np.sort(part, axis=1)


def _least(matrix: np.ndarray, g: int, ar: Arithmetic) -> Numbers:
    """Return at most the sum over any g rows and columns."""
    return -ar.top_sum(ar.top_sum(-matrix, g), g)
