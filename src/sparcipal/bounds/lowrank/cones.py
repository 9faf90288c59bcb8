"""Bound "lowrank"; statement and proof: docs/methods/lowrank.rst.

A tree of cones covers the sphere and grows until every leaf proves a level; sphere.py says which
one. A search that is not over after ROUND cones goes on in REGIONS of the sphere, each with a tree
of its own, on as many threads as there are. Regions tell each other the best value between two
rounds only, so that the answer does not depend on the number of threads.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np

from ...numerics.margins import TINY, top_sum
from ...numerics.threads import ordered_map
from ...problem.monitor import Monitor

# Largest table of v_i.g: points x rows, in floats.
TABLE = 2**25
# Only the longest rows, this many, are sorted by norm.
SORTED = 8192
# Relative accuracy below which rounding, not the cones, decides.
FINEST = 1e-10
# So many cones make one tree; beyond, there are regions.
ROUND = 20_000
REGIONS = 4
# Regions tell each other what they found, and the monitor is asked, after so many cones of each.
STEP = 5_000
LOOKED_AT = 400  # points of large F, for other supports


def _by_size(sizes: np.ndarray) -> np.ndarray:
    """Order the SORTED largest rows by size, as far as scans usually read; then the rest."""
    if sizes.size <= SORTED:
        return np.argsort(-sizes, kind="stable")
    head = np.sort(np.argpartition(-sizes, SORTED - 1)[:SORTED])
    rest = np.ones(sizes.size, dtype=bool)
    rest[head] = False
    return np.concatenate([head[np.argsort(-sizes[head], kind="stable")], np.flatnonzero(rest)])


class Cones:
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
        self.table = TABLE
        self.nodes = np.empty(0, dtype=np.int64)  # of a region: which cones of the whole it has
        self.regions: list[Cones] = []

    @property
    def kernel(self) -> Any:
        from ...kernels import sphere  # here, as the compiler is not needed by every fit

        return sphere

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

    def grow(self, max_cones: int, monitor: Monitor | None, n_jobs: int = 1) -> bool:
        """Halve cones until the proof is complete (True) or the budget ends (False)."""
        if self.advance(min(max_cones, ROUND)):
            return True
        while self.size < max_cones and not (monitor is not None and monitor.stopped):
            self.regions = self.regions or self._divided()
            # Those with the larger bounds go on, as the worst cone would in one tree.
            level = 0.1 * self.target + 0.9 * self.top
            chosen = [part for part in self.regions if part.top > level]
            share = max(2, min(STEP, (max_cones - self.size) // len(chosen)))
            tasks = [(part, part.size + share) for part in chosen]
            with ordered_map(n_jobs) as submit:
                grown = {id(part): new for part, new in zip(chosen, submit(_advanced, tasks))}
            self.regions = [grown.get(id(part), part) for part in self.regions]
            self._share()
            if not any(part.top > self.target for part in self.regions):
                return True
        return False

    def advance(self, limit: int) -> bool:
        """Halve the worst cones until none is open (True) or there are so many (False)."""
        kernel = self.kernel
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
            if status != kernel.OUT_OF_ROOM:
                return bool(status == kernel.FINISHED)
            self._make_room()

    @property
    def target(self) -> float:
        """The level at which a cone needs no halving."""
        return float(self.best[0]) * (1.0 + self.eps) + self.slack

    @property
    def top(self) -> float:
        """The largest bound of an open cone; 0 if there is none."""
        if self.regions:
            return max(part.top for part in self.regions)
        return float(-self.heap_keys[0]) if self.counts[3] else 0.0

    @property
    def size(self) -> int:
        """How many cones there are, those that regions have halved included."""
        return int(self.counts[0]) + sum(part.size - part.nodes.size for part in self.regions)

    @property
    def oracle_calls(self) -> int:
        own = int(self.counts[1] + self.counts[2])
        return own + sum(part.oracle_calls for part in self.regions)

    def _divided(self) -> list[Cones]:
        """Deal the open cones out to regions: neighbours together, and a share of everything."""
        is_open = np.zeros(self.cones.shape[0], dtype=bool)
        is_open[self.heap[: self.counts[3]]] = True
        found, stack = [], list(range(self.roots - 1, -1, -1))
        while stack:
            node = stack.pop()
            first = int(self.child[node])
            if first >= 0:
                stack += [first + 1, first]
            elif is_open[node]:
                found.append(node)
        chunks = np.array_split(np.array(found, dtype=np.int64), REGIONS**2)
        dealt = [np.concatenate(chunks[start::REGIONS]) for start in range(REGIONS)]
        return [self._region(nodes) for nodes in dealt if nodes.size]

    def _region(self, nodes: np.ndarray) -> Cones:
        """Return a search of these open cones only, with points, edges and a heap of its own."""
        part = copy.copy(self)
        part.regions, part.table = [], self.table // REGIONS
        # Increasing keys are a heap.
        part.nodes = nodes = nodes[np.argsort(-self.bounds[nodes], kind="stable")]
        count, room = nodes.size, max(4096, 2 * nodes.size)
        used, place = np.unique(self.cones[nodes], return_inverse=True)
        part.counts = np.array([count, used.size, 0, count], dtype=np.int64)
        part.cones = np.zeros((room, self.r), dtype=np.int64)
        part.cones[:count] = place.reshape(count, self.r)
        part.bounds, part.heap_keys = np.zeros(room), np.zeros(room)
        part.bounds[:count] = self.bounds[nodes]
        part.heap_keys[:count] = -self.bounds[nodes]
        part.heap = np.arange(room)
        part.child = np.full(room, self.kernel.LEAF, dtype=np.int64)
        part.split = np.zeros(room, dtype=np.int64)
        points = max(256, 2 * used.size)
        columns = max(1, min(self.dots.shape[1], part.table // points))
        part.points, part.squares = np.zeros((points, self.r)), np.zeros(points)
        part.dots = np.zeros((points, columns))
        part.points[: used.size], part.squares[: used.size] = self.points[used], self.squares[used]
        part.dots[: used.size] = self.dots[used, :columns]
        part.keys = np.empty(0, dtype=np.int64)
        part._make_table(1 << 14)
        part.value, part.index = self.value.copy(), self.index.copy()
        part.spare, part.small = self.spare.copy(), self.small.copy()
        part.best, part.best_c = self.best.copy(), self.best_c.copy()
        return part

    def _share(self) -> None:
        """Tell all regions the best value that one of them has found."""
        for part in self.regions:
            if part.best[0] > self.best[0]:
                self.best[:], self.best_c[:] = part.best, part.best_c
        for part in self.regions:
            part.best[:], part.best_c[:] = self.best, self.best_c

    def _make_room(self) -> None:
        if self.counts[0] + 2 > self.cones.shape[0]:
            for name in ("cones", "bounds", "child", "split", "heap_keys", "heap"):
                setattr(self, name, _doubled(getattr(self, name)))
        if self.counts[1] + 1 > self.points.shape[0]:
            for name in ("points", "dots", "squares"):
                setattr(self, name, _doubled(getattr(self, name)))
            # Rows beyond the table are computed when needed.
            self.dots = np.ascontiguousarray(self.dots[:, : max(1, self.table // len(self.dots))])
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

    def proof(self) -> tuple[float, np.ndarray]:
        """Return the level that every leaf proves, and the tree cut where it was reached."""
        level = max(self.target, self.top)
        child, split, bounds = self._whole()
        codes = []
        here = np.arange(self.roots)
        while here.size:
            inner = (child[here] >= 0) & (bounds[here] > level)
            codes.append(np.where(inner, split[here], -1).astype(np.int8))
            first = child[here[inner]]
            here = np.column_stack([first, first + 1]).ravel()
        return level, np.concatenate(codes)

    def _whole(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return children, halved edges and bounds of all cones, those of the regions behind the
        own."""
        columns = [[column[: self.counts[0]].copy()] for column in self._tree()]
        start = int(self.counts[0])
        for part in self.regions:
            own, known = part.nodes.size, int(part.counts[0])
            child, split, bounds = (column[:known] for column in part._tree())
            child = np.where(child >= 0, child - own + start, child)
            for all_of_them, column in zip(columns, (child, split, bounds)):
                all_of_them[0][part.nodes] = column[:own]
                all_of_them.append(column[own:])
            start += known - own
        child, split, bounds = (np.concatenate(column) for column in columns)
        return child, split, bounds

    def _tree(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.child, self.split, self.bounds

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

    def others(self, count: int) -> tuple[np.ndarray, ...]:
        """Return supports at the points of largest F: a few, then those that differ by a quarter.

        When V is a sketch, the best support of the whole matrix is often another local optimum.
        """
        everything = [self, *self.regions]
        points = np.concatenate([part.points[: part.counts[1]] for part in everything])
        squares = np.concatenate([part.squares[: part.counts[1]] for part in everything])
        lengths = np.einsum("ij,ij->i", points, points)
        order = np.argsort(-squares / lengths, kind="stable")[:LOOKED_AT]
        found: list[np.ndarray] = []
        for a in order:
            c, dots = points[a], self.unknown
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


def _doubled(array: np.ndarray) -> np.ndarray:
    out = np.zeros((2 * array.shape[0], *array.shape[1:]), dtype=array.dtype)
    out[: array.shape[0]] = array
    return out


def _advanced(task: tuple[Cones, int]) -> Cones:
    """Return a region after so many cones; the same object on threads, a copy on other workers."""
    part, limit = task
    part.advance(limit)
    return part
