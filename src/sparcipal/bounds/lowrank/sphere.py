"""Bound "lowrank"; statement and proof: docs/methods/lowrank.rst.

A certified search on the sphere solves sparse PCA of V V' exactly for a V with few columns.

For V (p x r, rows v_i) and prices pi >= 0,

    max over |I| <= s of [ lambda_max(V_I'V_I) - pi(I) ]  =  max_{|c|=1} F(c),
    F(c) = sum of the s largest positive (v_i.c)^2 - pi_i |c|^2,

with max(v_i.c, 0) in place of v_i.c for nonnegative components (Papailiopoulos et al. 2013 and
Asteris et al. 2014 enumerate the p^r supports that can occur; Algorithm 3 of the latter samples
c). Here the sphere is covered by simplicial cones. Write c = sum_j a_j g_j with a >= 0 on the
cone of generators g_1..g_r, and let T_jk be the sum of the s largest positive (v_i.g_j)(v_i.g_k)
- pi_i g_j.g_k. Then

    F(c) <= a'T a   and   |c|^2 = a'G a,  G_jk = g_j.g_k,

because the best support may be chosen for each pair separately. So `L G - T` copositive proves F
<= L on the cone. The error is second order in the cone's width, and there is none when all pairs
choose the same rows, since then T = (V_I g)'(V_I g). Cones that prove nothing are halved, the
worst first.

Generators are dyadic points of the cross-polytope, so that halving is exact in floating point;
only F, T, G and the test are rounded, which costs `rounding_margin` in the bound and nothing
else.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...numerics import margins
from ...numerics.margins import SAFETY, TINY, power_of_two, top_sum
from ...problem.monitor import Monitor

# Beyond this rank the 2^(r-1) orthants alone are too many to be halved often enough.
MAX_RANK = 10
# Largest table of v_i.g: points x rows, in floats.
TABLE = 2**25
# Only the longest rows, this many, are sorted by norm.
SORTED = 8192
# Relative accuracy below which rounding, not the cones, decides.
FINEST = 1e-10
# The monitor is asked after every so many cones.
ROUND = 20_000


@dataclass(frozen=True)
class SphereResult:
    """`value <= max F <= bound`, with the cones that prove it."""

    value: float  # F(c), reached by `support`
    bound: float  # no unit vector has a larger F; rounding included
    level: float  # what every leaf of the tree was tested at, before rounding
    support: np.ndarray  # (<= s,) increasing rows
    c: np.ndarray  # (r,) unit vector
    oracle_calls: int  # selections of s rows: F at points, T at pairs of them
    cones: int
    tree: (
        np.ndarray
    )  # (cones,) int8, level by level: first * r + second of the halved edge, -1 for a leaf
    finished: bool  # bound <= value (1 + eps), up to rounding
    others: tuple[np.ndarray, ...] = ()  # supports at other good points, as many as asked for

    @property
    def gap(self) -> float:
        return self.bound / self.value - 1.0 if self.value > 0 else np.inf


def sphere_search(
    V: np.ndarray,
    s: int,
    *,
    nonnegative: bool = False,
    prices: np.ndarray | None = None,
    eps: float = 1e-6,
    max_cones: int = 2_000_000,
    slack: float = 0.0,
    starts: int = 30,
    others: int = 0,
    seed: int = 0,
    monitor: Monitor | None = None,
) -> SphereResult:
    """Maximise F over the unit sphere, to a relative accuracy eps (plus `slack`, in units of F).

    Stops early, with a bound that holds all the same, after `max_cones` cones or when the monitor
    says so.
    """
    V = check_factor(V)
    p = V.shape[0]
    s = check_size(s, p)
    check_eps(eps)
    prices = check_prices(prices, p)
    unit = power_of_two(float(np.abs(V).max(initial=0.0)))
    search = _Search(V / unit, s, nonnegative, prices / unit**2, max(eps, FINEST), slack / unit**2)
    search.climb(starts, seed)
    search.cover()
    finished = search.grow(max_cones, monitor)
    level, tree = search.proof(finished)
    c, support, value = search.answer()
    margin = rounding_margin(search.rows, s, level)
    return SphereResult(
        value=value * unit**2,
        bound=(level + 2 * SAFETY * margin) * unit**2,
        level=level * unit**2,
        support=support,
        c=c,
        oracle_calls=int(search.counts[1] + search.counts[2]),
        cones=int(tree.size),
        tree=tree,
        finished=finished,
        others=search.others(others) if others else (),
    )


def rounding_margin(V: np.ndarray, s: int, level: float) -> float:
    """Bound the rounding error of F, T, G and the test of a cone, as a multiple of |c|^2 = 1.

    Each entry of L G - T is off by at most e |g_j||g_k|; generators share an orthant, so G >= 0 and
    sum_jk a_j a_k |g_j||g_k| <= r a'Ga.
    """
    r = V.shape[1]
    longest = top_sum(np.einsum("ij,ij->i", V, V), s)
    e = margins.cone_rows(r, s) * longest + margins.cone_level(r) * abs(level)
    return r * e + 1e-300


def _by_size(sizes: np.ndarray) -> np.ndarray:
    """Order the SORTED largest rows by size, as far as scans usually read; then the rest."""
    if sizes.size <= SORTED:
        return np.argsort(-sizes, kind="stable")
    head = np.sort(np.argpartition(-sizes, SORTED - 1)[:SORTED])
    rest = np.ones(sizes.size, dtype=bool)
    rest[head] = False
    return np.concatenate([head[np.argsort(-sizes[head], kind="stable")], np.flatnonzero(rest)])


class _Search:
    """The growing tree of cones, in arrays that the kernel fills."""

    def __init__(
        self,
        V: np.ndarray,
        s: int,
        nonnegative: bool,
        prices: np.ndarray,
        eps: float,
        slack: float,
    ) -> None:
        from ...kernels import sphere as kernel

        self.kernel: Any = kernel
        sizes = np.einsum("ij,ij->i", V, V)
        self.order = _by_size(sizes)
        self.rows = np.ascontiguousarray(V[self.order])
        self.sizes = np.ascontiguousarray(sizes[self.order])
        # A scan stops where no later row can matter; the unsorted rows share their largest size.
        self.limits = self.sizes.copy()
        self.limits[SORTED:] = self.sizes[SORTED:].max(initial=0.0)
        self.prices = np.ascontiguousarray(prices[self.order])
        self.s, self.nonnegative, self.eps = s, nonnegative, eps
        # The maximum can be zero, and then only an absolute accuracy can be reached.
        self.slack = max(slack, FINEST * top_sum(self.sizes, s) if prices.any() else 0.0, TINY)
        # The lift is P, the sum of the s largest prices below the size of their row, because
        # sqrt(F + P |c|^2) is a norm.
        paid = top_sum(np.where(self.prices < self.sizes, self.prices, 0.0), s)
        self.lift = max(paid, 1e-3 * top_sum(self.sizes, s), TINY)
        self.r = V.shape[1]
        self.value, self.index = np.empty(s), np.empty(s, dtype=np.int64)
        self.spare, self.small = np.zeros((2, self.r)), np.zeros((3, self.r, self.r))
        self.unknown = np.empty(0)
        self.keys = np.empty(0, dtype=np.int64)
        self.edge_top, self.edge_middle = np.empty(0), np.empty(0, dtype=np.int64)
        self.best, self.best_c = np.zeros(1), np.eye(self.r)[0].copy()

    def cover(self) -> None:
        """Start from the orthants; for signed components c and -c are alike, so half suffice."""
        r = self.r
        free = itertools.product((0, 1), repeat=r if self.nonnegative else r - 1)
        signs = np.array(
            [bits if self.nonnegative else (0, *bits) for bits in free], dtype=np.int64
        )
        self.roots = signs.shape[0]
        self.counts = np.array([self.roots, 2 * r, 0, 0], dtype=np.int64)
        room = max(4096, 2 * self.roots)
        self.cones = np.zeros((room, r), dtype=np.int64)
        self.cones[: self.roots] = np.arange(r) + r * signs
        self.bounds = np.zeros(room)
        # A negative bound marks a cone not yet measured; its absolute value is a valid bound.
        self.bounds[: self.roots] = -self._ceiling()
        self.child = np.full(room, self.kernel.LEAF, dtype=np.int64)
        self.split = np.zeros(room, dtype=np.int64)
        self.heap_keys = np.zeros(room)  # minus the bounds of the nodes
        self.heap = np.zeros(room, dtype=np.int64)
        points = max(256, 4 * r)
        self.points = np.zeros((points, r))
        self.points[: 2 * r] = np.vstack([np.eye(r), -np.eye(r)])
        self.dots = np.zeros((points, min(self._scanned(), TABLE // points)))
        self.squares = np.zeros(points)
        for a in range(2 * r):
            self.kernel.enter(self._question(), a, self._places(), self._selection())
        self._make_table(1 << 14 if self.roots * r < 1 << 12 else 1 << 20)

    def _scanned(self) -> int:
        """Estimate how many rows a selection reads: those long enough for a mediocre point."""
        chosen = best_rows(self.rows, self.s, self.nonnegative, self.prices, self.best_c)[1]
        if chosen.size < self.s:
            return int(self.rows.shape[0])
        lowest = float(((self.rows[chosen] @ self.best_c) ** 2).min())
        return max(1, int((self.sizes >= 0.25 * lowest).sum()))

    def _ceiling(self) -> float:
        """Return an upper bound on F, reached if the s longest rows were parallel."""
        return top_sum(np.maximum(self.sizes - self.prices, 0.0), self.s)

    def _question(self) -> tuple[Any, ...]:
        return self.rows, self.limits, self.prices, self.s, self.nonnegative

    def _selection(self) -> tuple[np.ndarray, ...]:
        return self.value, self.index

    def _places(self) -> tuple[np.ndarray, ...]:
        return self.points, self.dots, self.squares

    def climb(self, starts: int, seed: int) -> None:
        """Find a first value by ascent from the axes and from random points."""
        random = np.random.default_rng(seed).standard_normal((starts, self.r))
        for c in np.vstack([np.eye(self.r), -np.eye(self.r), random]):
            c = c / np.linalg.norm(c)
            found = self.kernel.ascend(
                self._question(), c, self.unknown, self._selection(), self.spare[0]
            )
            if found > self.best[0]:
                self.best[0] = found
                self.best_c[:] = self.spare[0]

    def grow(self, max_cones: int, monitor: Monitor | None) -> bool:
        """Halve cones until the proof is complete (True) or the budget ends (False)."""
        kernel = self.kernel
        limit = min(max_cones, ROUND)
        while True:
            status = kernel.grow(
                self._question(),
                (self.eps, self.slack),
                self.lift,
                self.counts,
                self.best,
                self.best_c,
                (self.cones, self.bounds, self.child, self.split),
                (self.heap_keys, self.heap),
                self._places(),
                (self.keys, self.edge_top, self.edge_middle),
                self._selection(),
                self.small,
                self.spare,
                self.unknown,
                limit,
            )
            if status == kernel.FINISHED:
                return True
            if status == kernel.OUT_OF_ROOM:
                self._make_room()
            elif self.counts[0] >= max_cones or (monitor is not None and monitor.stopped):
                return False
            else:
                limit = min(max_cones, limit + ROUND)

    def _make_room(self) -> None:
        if self.counts[0] + 2 > self.cones.shape[0]:
            for name in ("cones", "bounds", "child", "split", "heap_keys", "heap"):
                setattr(self, name, _doubled(getattr(self, name)))
        if self.counts[1] + 1 > self.points.shape[0]:
            for name in ("points", "dots", "squares"):
                setattr(self, name, _doubled(getattr(self, name)))
            # Rows beyond the table are computed when needed.
            self.dots = np.ascontiguousarray(self.dots[:, : max(1, TABLE // len(self.dots))])
        if 2 * (self.counts[2] + self.r + 1) > self.keys.size:
            self._make_table(4 * self.keys.size)

    def _make_table(self, size: int) -> None:
        """Enlarge the hash table of edges and enter the old ones again."""
        old = self.keys, self.edge_top, self.edge_middle
        self.keys = np.full(size, -1, dtype=np.int64)
        self.edge_top = np.zeros(size)
        self.edge_middle = np.full(size, -1, dtype=np.int64)
        for key, top, middle in zip(*(part[old[0] != -1] for part in old)):
            slot, _ = self.kernel.find_edge(self.keys, key >> 32, key & 0xFFFFFFFF)
            self.keys[slot], self.edge_top[slot], self.edge_middle[slot] = key, top, middle

    def proof(self, finished: bool) -> tuple[float, np.ndarray]:
        """Return the level that every leaf proves, and the tree cut where it was reached."""
        level = float(self.best[0]) * (1.0 + self.eps) + self.slack
        if self.counts[3]:
            level = max(level, float(self.bounds[self.heap[0]]))
        codes = []
        here = np.arange(self.roots)
        while here.size:
            inner = (self.child[here] >= 0) & (self.bounds[here] > level)
            codes.append(np.where(inner, self.split[here], -1).astype(np.int8))
            first = self.child[here[inner]]
            here = np.column_stack([first, first + 1]).ravel()
        return level, np.concatenate(codes)

    def answer(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the best point, polished on its own rows, with its support and value."""
        c = self.best_c.copy()
        value, chosen = best_rows(self.rows, self.s, self.nonnegative, self.prices, c)
        for _ in range(20):
            if not chosen.size:
                break
            lead = np.linalg.eigh(self.rows[chosen].T @ self.rows[chosen])[1][:, -1]
            lead = lead if lead @ c >= 0 else -lead
            found, again = best_rows(self.rows, self.s, self.nonnegative, self.prices, lead)
            if found <= value:
                break
            c, value, chosen = lead, found, again
        if not self.nonnegative and chosen.size and c[np.argmax(np.abs(c))] < 0:
            c = -c
        return c, np.sort(self.order[chosen]), value

    def others(self, count: int, looked_at: int = 400) -> tuple[np.ndarray, ...]:
        """Return supports at the points of largest F: a few, then those that differ by a quarter.

        When V is a sketch, the best support of the whole matrix is often another local optimum.
        """
        known = int(self.counts[1])
        lengths = np.einsum("ij,ij->i", self.points[:known], self.points[:known])
        order = np.argsort(-self.squares[:known] / lengths, kind="stable")[:looked_at]
        found: list[np.ndarray] = []
        for a in order:
            c, dots = self.points[a], self.dots[a]
            taken = self.kernel.top_products(self._question(), c, c, dots, dots, self._selection())
            chosen = self.order[self.index[:taken]]
            shared = max((int(np.isin(chosen, other).sum()) for other in found), default=0)
            apart = 1 if len(found) < count // 3 else max(1, chosen.size // 4)
            if chosen.size >= max(1, shared + apart):
                found.append(np.sort(chosen))
            if len(found) == count:
                break
        return tuple(found)


def best_rows(
    V: np.ndarray, s: int, nonnegative: bool, prices: np.ndarray, c: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return F(c) for a unit c, and the rows that attain it."""
    dots = V @ c
    gains = (np.maximum(dots, 0.0) if nonnegative else dots) ** 2 - prices
    chosen = np.flatnonzero(gains > 0)
    if chosen.size > s:
        chosen = np.sort(chosen[np.argpartition(-gains[chosen], s - 1)[:s]])
    return float(gains[chosen].sum()), chosen


def check_factor(V: np.ndarray) -> np.ndarray:
    V = np.ascontiguousarray(V, dtype=np.float64)
    if V.ndim != 2 or V.shape[0] < 1 or V.shape[1] < 1:
        raise ValueError(f"V must be a p x r matrix with p, r >= 1, got shape {V.shape}")
    if not np.isfinite(V).all():
        raise ValueError("V contains NaN or infinity")
    check_rank(V.shape[1])
    return V


def check_rank(rank: int) -> int:
    if rank < 1:
        raise ValueError(f"rank must be at least 1, got rank={rank}")
    if rank > MAX_RANK:
        raise ValueError(
            f"rank={rank} is beyond the limit of {MAX_RANK}: the exact search takes about ten "
            "times longer with each rank; up to rank 7 it ends within seconds"
        )
    return rank


def check_size(s: int, p: int) -> int:
    if s < 1:
        raise ValueError(f"s must be at least 1 nonzero, got s={s}")
    return min(s, p)


def check_eps(eps: float) -> None:
    if not 0.0 < eps < 1.0:
        raise ValueError(f"eps must lie strictly between 0 and 1, got eps={eps}; 1e-6 is usual")


def check_prices(prices: np.ndarray | None, p: int) -> np.ndarray:
    if prices is None:
        return np.zeros(p)
    prices = np.asarray(prices, dtype=np.float64)
    if prices.shape != (p,) or not (prices >= 0).all() or not np.isfinite(prices).all():
        raise ValueError(f"prices must be {p} finite numbers >= 0, one per row of V")
    return prices


def _doubled(array: np.ndarray) -> np.ndarray:
    out = np.zeros((2 * array.shape[0], *array.shape[1:]), dtype=array.dtype)
    out[: array.shape[0]] = array
    return out
