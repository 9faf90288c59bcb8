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

from bisect import bisect_right
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from ...numerics import margins
from ...numerics.eigen import largest_eigenpairs
from ...problem.monitor import Monitor
from ..cheap import proved_margins
from ..pairsplit import Optimiser, Part, Split, prove_below, split_matrix
from ..pairsplit.optimise import step_work
from ..tree.fixing import fix

MOST_SUPPORTS = 10_000
PARTIAL = 4e3  # nanoseconds of one core that a partial packing takes
# What supports miss is counted in whole parts of what a packing may miss: sums have no rounding.
PARTS = 2**40
# Smoothings and steps each for the split of the best support, which is made for a higher level. The
# wide ones come first and lower the rows of all features; after each, features that no support
# needs are left out, and the next one sharpens what is left.
SMOOTHING = (1e-2, 3e-3, 1e-3, 3e-4)
STEPS = 40


@dataclass(frozen=True)
class Packed:
    """The certificate (U, R) with which the supports were enumerated, and the best packing.

    `value` is rounded up: no packing explains more, unless all stay below the target.
    """

    split: Split
    value: float
    supports: list[np.ndarray]


@dataclass(frozen=True)
class PackingQuestion:
    """Which k disjoint supports of s features at most explain more than the target?

    `best_priced` bounds value(S) - price(S) over all supports, `start` is a split that proves about
    as much, and `work` is about nanoseconds of one core.
    """

    a: np.ndarray  # (n, n)
    s: int
    k: int
    price: np.ndarray  # (n,)
    paid: float  # at least the prices of all features that are used together
    best_priced: float
    target: float
    start: Split
    work: float


def best_packing(question: PackingQuestion, monitor: Monitor) -> Packed | None:
    """Return the best k disjoint supports if they may explain more than target; None if a limit was
    met.

    Every support counts with a bound that a Cholesky factorisation proves, and with twice what the
    checker allows for the rounding of sums of prices and values.
    """
    a, price, k, best_priced = question.a, question.price, question.k, question.best_priced
    scale = float(np.abs(np.diagonal(a)).sum() + np.abs(price).sum())
    slack = 2 * margins.packing_slack(a.shape[0], question.s) * scale
    tau = question.target - question.paid - (k - 1) * best_priced - slack
    steps = len(SMOOTHING) * STEPS * step_work(a.shape[0])
    if tau <= 0.0 or steps > question.work:
        return None
    enumeration = _Enumeration(question, tau, monitor)
    supports = enumeration.run()
    if supports is None:
        return None
    values = np.array([_proved_value(a[np.ix_(S, S)]) + slack for S in supports])
    missing = np.array([best_priced - v + price[S].sum() for v, S in zip(values, supports)])
    room = question.paid + k * best_priced - question.target + 2 * (k + 1) * slack
    unused = missing_unused(price, k * question.s)
    chosen: list[int] | None = []
    if room > 0.0:
        lost, free = _parts(missing, room), _parts(unused, room)
        chosen = _packed(supports, values, lost, free, k, enumeration.left)
    if chosen is None:
        return None
    best = [supports[i] for i in chosen]
    return Packed(enumeration.split, float(values[chosen].sum()), best)


class _Enumeration:
    """All supports above tau (and perhaps some below), by branching on features."""

    def __init__(self, question: PackingQuestion, tau: float, monitor: Monitor) -> None:
        n = question.a.shape[0]
        none = np.zeros(n, dtype=bool)
        everything = np.arange(n)
        self.root = Part(
            everything, question.a, none, question.price, question.s, False, np.zeros(n)
        )
        self.tau, self.monitor = tau, monitor
        self.left = question.work
        self.split = self._optimised(question)

    def _optimised(self, question: PackingQuestion) -> Split:
        split, alive = question.start, self.root.features
        for mu in SMOOTHING:
            if not alive.size:
                break
            optimiser = Optimiser(self._on(alive), split.on(alive))
            optimiser.run(mu * question.best_priced, STEPS, -np.inf, self.monitor)
            self.left -= optimiser.work
            split = split.merged(optimiser.split())
            alive = self._reduced(split, alive)
        return split

    def run(self) -> list[np.ndarray] | None:
        """Return the supports, or None at a limit."""
        found: list[np.ndarray] = []
        alive = self._reduced(self.split, self.root.features)
        stack: list[tuple[list[int], list[int]]] = [([], alive.tolist())]
        while stack:
            forced, free = stack.pop()
            if self.left <= 0.0 or len(found) > MOST_SUPPORTS or self.monitor.stopped:
                return None
            if len(forced) == self.root.s or not free:
                if forced and not self._worthless(forced):
                    found.append(np.array(sorted(forced)))
                continue
            part, matrix = self._node(forced, free)
            if prove_below(matrix, self.tau):
                continue
            if len(forced) == self.root.s - 1:  # most nodes would lie below: no bound cuts many
                found += self._with_one_more(forced, free)
                continue
            lead = np.square(largest_eigenpairs(matrix, 1)[1][:, -1])
            branch = int(part.features[int(np.argmax(np.where(part.forced, -1.0, lead)))])
            rest = [j for j in free if j != branch]
            stack.append((forced, rest))
            stack.append(([*forced, branch], rest))
        return found

    def _on(self, alive: np.ndarray) -> Part:
        return self.root.restrict(np.isin(self.root.features, alive), self.root.forced)

    def _reduced(self, split: Split, alive: np.ndarray) -> np.ndarray:
        """Return the features that no test excludes from every support above tau."""
        while alive.size:
            part = self._on(alive)
            tests = fix(part, split_matrix(part, split.on(alive)), self.tau)
            self.left -= node_work(part.n)
            if tests.closed:
                return alive[:0]
            if not tests.out.any():
                return alive
            alive = alive[~tests.out]
        return alive

    def _node(self, forced: list[int], free: list[int]) -> tuple[Part, np.ndarray]:
        keep, inside = np.zeros((2, self.root.n), dtype=bool)
        keep[forced] = keep[free] = inside[forced] = True
        part = self.root.restrict(keep, inside)
        self.left -= node_work(part.n)
        return part, split_matrix(part, self.split.on(part.features)).matrix

    def _with_one_more(self, forced: list[int], free: list[int]) -> list[np.ndarray]:
        """Return the supports of the forced features, with one more of the free ones or none, that
        Cholesky does not prove worthless."""
        sets = np.sort(np.array([[*forced, j] for j in free]), axis=1)
        blocks = self.root.a[sets[:, :, None], sets[:, None, :]]
        tops = np.linalg.eigvalsh(blocks)[:, -1]
        most = tops + proved_margins(blocks, tops)
        self.left -= len(free) * support_work(sets.shape[1])
        found = list(sets[most > self.tau + self.root.price[sets].sum(axis=1)])
        if forced and not self._worthless(forced):
            found.append(np.array(sorted(forced)))
        return found

    def _worthless(self, support: list[int]) -> bool:
        """Return whether Cholesky proves the value of a support minus its prices at most tau."""
        block = self.root.a[np.ix_(support, support)]
        self.left -= 3e4
        return prove_below(block, self.tau + float(self.root.price[support].sum()))


def node_work(n: int) -> float:
    """Estimate the nanoseconds of one core that a node with n features takes."""
    return 0.6 * float(n) ** 3 + 60.0 * n * n + 1e5


def support_work(s: int) -> float:
    """Estimate the nanoseconds of one core that the value of a support takes, with its proof."""
    return 8e3 + 10.0 * float(s) ** 3


def _proved_value(block: np.ndarray) -> float:
    top = np.linalg.eigvalsh(block)[-1:]
    return float(top[0] + proved_margins(block[None], top)[0])


def missing_unused(price: np.ndarray, used: int) -> np.ndarray:
    """Return at least what is missing for each feature that no component uses.

    At most `used` features are paid for: without one of the dearest, the next one is.
    """
    ranked = np.sort(price)[::-1]
    next_dearest = ranked[min(used, price.size - 1)] if used <= price.size else 0.0
    return np.maximum(price - next_dearest, 0.0)


def _parts(missing: np.ndarray, room: float) -> list[int]:
    """Return numbers as parts of `room`, rounded down."""
    return [max(int(PARTS * share) - 1, 0) for share in np.minimum(missing / room, 2.0)]


def _packed(
    supports: list[np.ndarray],
    values: np.ndarray,
    missing: list[int],
    unused: list[int],
    k: int,
    work: float,
) -> list[int] | None:
    """Return the best k disjoint supports that miss no more than may be; None if it takes more
    work.

    Feature by feature, the dearest first: one of the supports that contain it, or it is unused.
    Sets of supports are the bits of integers, the supports that miss least first.
    """
    first = sorted(range(len(missing)), key=missing.__getitem__)
    sets, least = [supports[i].tolist() for i in first], [missing[i] for i in first]
    dearest = sorted(range(len(unused)), key=lambda f: -unused[f])
    holds = [sum(1 << i for i, own in enumerate(sets) if f in own) for f in range(len(unused))]
    meets = [reduce(or_, (holds[f] for f in own)) for own in sets]
    best: tuple[float, list[int]] = (0.0, [])
    stack: list[tuple[int, int, int, list[int]]] = [((1 << len(sets)) - 1, 0, 0, [])]
    while stack:
        alive, place, lost, chosen = stack.pop()
        work -= PARTIAL
        if work <= 0.0:
            return None
        left = k - len(chosen)
        if not left:
            best = max(best, (float(values[[first[i] for i in chosen]].sum()), chosen))
        if not (left and alive):
            continue
        cheapest = least[(alive & -alive).bit_length() - 1]
        alive &= (1 << bisect_right(least, PARTS - lost - (left - 1) * cheapest)) - 1
        while place < len(dearest) and any(dearest[place] in sets[i] for i in chosen):
            place += 1
        if not alive or place == len(dearest):
            continue
        feature = dearest[place]
        users, others = alive & holds[feature], alive & ~holds[feature]
        stack.append((others, place + 1, lost + unused[feature], chosen))
        while users:
            i = (users & -users).bit_length() - 1
            users ^= 1 << i
            stack.append((others & ~meets[i], place + 1, lost + least[i], [*chosen, i]))
    return [first[i] for i in best[1]]
