"""Small matrices with near-duplicates, prices, and what supports of them are worth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np


@dataclass(frozen=True)
class AlikeCase:
    """Supports contain `forced`, some of `others` and some of `group`, s features at most."""

    a: np.ndarray
    price: np.ndarray
    s: int
    forced: np.ndarray
    others: np.ndarray
    group: np.ndarray
    level: float

    @property
    def costly(self) -> bool:
        return bool((self.price > 0.0).any())

    def missing(self, left: list) -> list[tuple[int, ...]]:
        """Supports that are worth more than the level and not among those left; where nothing
        costs anything only the largest ones are asked for."""
        known = {tuple(sorted(int(i) for i in S)) for S in left}
        free = [*self.others, *self.group]
        room = min(self.s - self.forced.size, len(free))
        slack = 1e-12 * np.abs(self.a).max()
        return [
            S
            for q in (range(room + 1) if self.costly else [room])
            for T in combinations(free, q)
            if (S := tuple(sorted(int(i) for i in (*self.forced, *T)))) not in known
            and S
            and self.worth(S) > self.level + slack
        ]

    def worth(self, S) -> float:
        return worth(self.a, self.price, S)


def worth(a: np.ndarray, price: np.ndarray, S) -> float:
    return float(np.linalg.eigvalsh(a[np.ix_(S, S)])[-1] - price[list(S)].sum())


def alike_case(rng: np.random.Generator) -> AlikeCase:
    """Duplicates at a random distance and of random signs beside other features, with prices of
    four kinds; groups that are not alike at all, indefinite matrices, levels next to a value."""
    n, d = int(rng.integers(3, 9)), int(rng.integers(1, 7))
    alike, apart = int(rng.integers(2, n + 1)), 10.0 ** rng.uniform(-6, -0.5)
    X = rng.standard_normal((d, n))
    size = 1 + apart * rng.standard_normal(alike) * (rng.random() < 0.5)
    X[:, :alike] = rng.standard_normal((d, 1)) * rng.choice([1, -1], alike) * size
    X[:, :alike] += apart * rng.standard_normal((d, alike))
    a = X.T @ X * 10.0 ** rng.uniform(-1, 1)
    if rng.random() < 0.2:
        noise = rng.standard_normal((n, n)) * 0.1 * np.abs(a).max()
        a = a + noise + noise.T
    unit, s = float(np.abs(a).max()), int(rng.integers(1, n + 1))
    near = rng.standard_normal() + 10.0 ** rng.uniform(-5, 0) * rng.standard_normal(n)
    price = (np.zeros(n), 0.7 * rng.random(n), -2 * rng.random(n), near)[rng.integers(4)] * unit
    forced = rng.permutation(n)[: int(rng.integers(3)) if rng.random() < 0.4 else 0][:s]
    free = np.setdiff1d(np.arange(n), forced)
    group = free[free < alike]
    if rng.random() < 0.1 or not group.size:
        group = free[: max(free.size // 2, 1)]
    supports = [S for q in range(1, s + 1) for S in combinations(range(n), q)]
    values = [worth(a, price, S) for S in supports]
    level = float(rng.choice(values)) if rng.random() < 0.6 else max(values)
    level += unit * float(rng.choice([0.0, 1e-12, -1e-9, 1e-6, 1e-3, 0.1]))
    return AlikeCase(a, price, s, np.sort(forced), np.setdiff1d(free, group), group, level)
