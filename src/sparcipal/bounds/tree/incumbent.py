"""Bound "tree"; statement and proof: docs/methods/tree.rst.

The incumbents of the branch and bound are supports found from guesses.

All maximise x'Ax - price(S) over unit x with support in S, |S| <= s, with x >= 0 on request.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...numerics.largest import magnitudes
from ...problem.components import newcomer_gain

# Exchanges from one support end after about this much work, in nanoseconds of one core.
EXCHANGE_WORK = 3e8


@dataclass(frozen=True)
class Incumbent:
    support: np.ndarray  # increasing
    value: float


def best_weights(block: np.ndarray, nonnegative: bool) -> tuple[float, np.ndarray]:
    """Return the largest x'Bx over unit x and its x; for x >= 0, the best that was found."""
    w, q = np.linalg.eigh(block)
    x = q[:, -1] if q[:, -1].sum() >= 0 else -q[:, -1]
    if not nonnegative:
        return float(w[-1]), x
    if x.min() >= 0.0:
        return float(x @ block @ x), x
    n = block.shape[0]
    starts = [np.maximum(x, 0.0), np.maximum(-x, 0.0), np.ones(n)]
    starts.append(np.eye(n)[int(np.argmax(np.diagonal(block)))])
    found = [_positive_ascent(block, start) for start in starts]
    return max(found, key=lambda pair: pair[0])


def _positive_ascent(block: np.ndarray, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Take projected power steps, then the leading eigenvector while that stays nonnegative."""
    for _ in range(60):
        y = np.maximum(block @ x, 0.0)
        norm = float(np.linalg.norm(y))
        if norm == 0.0:
            break
        y /= norm
        if float(np.abs(y - x).max()) < 1e-9:
            x = y
            break
        x = y
    x = x / max(float(np.linalg.norm(x)), 1e-300)
    active = np.flatnonzero(x > 1e-7)
    while active.size:
        q = np.linalg.eigh(block[np.ix_(active, active)])[1][:, -1]
        q = q if q.sum() >= 0 else -q
        if q.min() >= 0.0:
            y = np.zeros_like(x)
            y[active] = q
            if y @ block @ y >= x @ block @ x:
                x = y
            break
        active = active[q > 0.0]
    return float(x @ block @ x), x


class Rounder:
    """Turns scores and vectors into supports by truncation and exchange."""

    def __init__(
        self,
        a: np.ndarray,
        s: int,
        price: np.ndarray,
        nonnegative: bool,
        forced: np.ndarray | None = None,
    ) -> None:
        self.a, self.s, self.price, self.nonnegative = a, s, price, nonnegative
        # features that every support contains
        self.forced = np.empty(0, dtype=np.intp) if forced is None else forced
        self._known: dict[bytes, Incumbent] = {}  # support -> where exchanges from it ended
        self._work = 0.0

    def spent(self) -> float:
        """Return the work since the last call."""
        work, self._work = self._work, 0.0
        return work

    def evaluate(self, support: np.ndarray) -> tuple[float, np.ndarray]:
        value, x = self._weights(support)
        return value - float(self.price[support].sum()), x

    def _weights(self, support: np.ndarray) -> tuple[float, np.ndarray]:
        self._work += 4e4 + 100.0 * support.size**2 + 0.8 * float(support.size) ** 3
        return best_weights(self.a[np.ix_(support, support)], self.nonnegative)

    def from_scores(self, scores: np.ndarray) -> Incumbent:
        """Take the s largest scores (n,), then exchange features."""
        return self.exchange(self._largest(scores))

    def from_vector(self, x: np.ndarray) -> Incumbent:
        """Take truncated power steps from x (n,), then exchange features."""
        return self.exchange(self.power(x))

    def power(self, x: np.ndarray) -> np.ndarray:
        """Return the support on which truncated power steps settle."""
        last = np.empty(0, dtype=np.intp)
        for _ in range(50):
            y = self.a @ x
            size = magnitudes(y, self.nonnegative)
            support = self._largest(size)
            if np.array_equal(support, last):
                break
            last = support
            x = np.zeros(y.size)
            x[support] = y[support] if not self.nonnegative else size[support]
            norm = float(np.linalg.norm(x))
            if norm == 0.0:
                break
            x /= norm
        return last

    def _largest(self, scores: np.ndarray) -> np.ndarray:
        """Return the forced features and those of the largest scores, s in all."""
        if self.forced.size:
            scores = scores.copy()
            scores[self.forced] = np.inf
        return np.sort(np.argsort(-scores, kind="stable")[: self.s])

    def exchange(self, support: np.ndarray, rounds: int = 100) -> Incumbent:
        """Swap or drop one feature as long as the value grows."""
        path: list[bytes] = []
        limit = self._work + EXCHANGE_WORK
        value, _ = self.evaluate(support)
        for _ in range(rounds):
            path.append(support.tobytes())
            if path[-1] in self._known:
                support, value = self._known[path[-1]].support, self._known[path[-1]].value
                break
            better = self._improve(support, value, limit)
            if better is None:
                break
            support, value = better
        found = Incumbent(support, value)
        self._known.update(dict.fromkeys(path, found))
        return found

    def _improve(
        self, support: np.ndarray, value: float, limit: float
    ) -> tuple[np.ndarray, float] | None:
        tiny = 1e-12 * abs(value)
        grow = [None] if support.size < self.s else []
        for leave in [*grow, *np.setdiff1d(support, self.forced)]:
            rest = support if leave is None else support[support != leave]
            if rest.size == 0:
                continue
            if self._work > limit:
                return None
            lam, x = self._weights(rest)
            self._work += 2.0 * self.a.shape[0] * (rest.size + 30)
            base = float(self.price[rest].sum())
            if leave is not None and lam - base > value + tiny:
                return rest, lam - base
            for enter in self._promising(rest, lam, x, base, value):
                swapped = np.sort(np.append(rest, enter))
                found, _ = self.evaluate(swapped)
                if found > value + tiny and not np.array_equal(swapped, support):
                    return swapped, found
        return None

    def _promising(
        self, rest: np.ndarray, lam: float, x: np.ndarray, base: float, value: float
    ) -> np.ndarray:
        """Return the three features that add most in the 2 x 2 problem of x and the feature."""
        link = self.a[:, rest] @ x
        guess = lam + newcomer_gain(lam, np.diagonal(self.a), link, self.nonnegative)
        guess = guess - base - self.price
        guess[rest] = -np.inf
        order = np.argsort(-guess, kind="stable")[:3]
        # the guess is a lower bound, but a joint change of weights may add to it
        return order[guess[order] > value - 0.02 * abs(value)]

    def first(self) -> Incumbent:
        """Find an incumbent by power steps from leading eigenvectors and the strongest columns."""
        n = self.a.shape[0]
        vectors = np.linalg.eigh(self.a)[1][:, ::-1] if n <= 600 else np.empty((n, 0))
        heavy = np.argsort(-np.diagonal(self.a), kind="stable")
        strength = np.sort(np.abs(self.a), axis=1)[:, -self.s :].sum(axis=1)
        strong = np.argsort(-strength, kind="stable")
        starts = [vectors[:, i] for i in range(min(6, vectors.shape[1]))]
        starts += [self.a[:, i] for i in [*heavy[:5], *strong[:15]]]
        if self.nonnegative:
            starts += [-x for x in starts[: min(6, n)]]
        supports = {tuple(self.power(x)) for x in starts}
        supports.add(tuple(self._largest(np.diagonal(self.a))))
        ranked = []
        for support in sorted(supports):
            candidate = np.array(support, dtype=np.intp)
            if candidate.size:
                ranked.append((self.evaluate(candidate)[0], support))
        ranked.sort(reverse=True)
        found = [self.exchange(np.array(support, dtype=np.intp)) for _, support in ranked[:4]]
        return max(found, key=lambda incumbent: incumbent.value)
