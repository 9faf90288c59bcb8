"""Local search by exchange swaps features between components, and with the free ones.

The gain of every swap is predicted from the 2 x 2 problem of a component without one member and the
newcomer; the most promising swaps are evaluated exactly, and the first that gains is made. Where no
swap gains, chains are tried: a free feature takes the place of a member, which takes that of a
member of another component, and so on, until one is left free.
"""

from __future__ import annotations

import numpy as np

from ..problem.components import power_steps, replacements, support_value
from ..problem.monitor import Monitor

CANDIDATES = 8  # predicted swaps, or chains, evaluated exactly before the search gives up
LONGEST = 5  # components that a chain changes


class Exchange:
    """Search locally from an assignment (p,) of features to components, -1 for a free feature."""

    def __init__(
        self,
        A: np.ndarray,
        need: np.ndarray,
        nonnegative: bool,
        owner: np.ndarray,
        anchor: np.ndarray,
    ) -> None:
        self.A, self.nonnegative = A, nonnegative
        self.anchored = anchor >= 0  # features that stay where they are
        k, p = need.size, A.shape[0]
        self.owner = owner.astype(np.int64)
        self.first = np.concatenate([[0], np.cumsum(need)])
        self.flat = np.concatenate([np.flatnonzero(owner == j) for j in range(k)])
        self.component = np.repeat(np.arange(k), need)
        self.place = np.zeros(p, dtype=np.int64)
        self.place[self.flat] = np.arange(self.flat.size)
        self.estimate = np.empty((self.flat.size, p))
        self.loading = []
        self.value = np.empty(k)
        for j in range(k):
            self.value[j], x = support_value(A, self._members(j), nonnegative)
            self.loading.append(x)

    def _members(self, j: int) -> np.ndarray:
        return self.flat[self.first[j] : self.first[j + 1]]

    def run(self, monitor: Monitor, most: float = np.inf) -> tuple[np.ndarray, float, float]:
        """Swap while that gains, for about `most` nanoseconds of one core as `step_work` counts
        them; return the assignment, its value and the work that was done."""
        from ..kernels.exchange import promising

        gain = np.empty(CANDIDATES)
        leaving = np.empty(CANDIDATES, dtype=np.int64)
        entering = np.empty(CANDIDATES, dtype=np.int64)
        stale = set(range(self.value.size))
        nothing_to_swap = self.value.size == 1 and self.flat.size == self.owner.size
        work = 0.0
        for _ in range(20 + 20 * self.flat.size):
            if nothing_to_swap or monitor.stopped is not None or work > most:
                break
            for j in stale:
                self._predict(j)
            work += step_work(self.flat.size, len(stale) / self.value.size, self.owner.size)
            promising(
                self.estimate, self.flat, self.component, self.value, self.owner, self.place,
                gain, leaving, entering,
            )  # fmt: skip
            stale = self._first_improving(gain, leaving, entering)
            if not stale:
                work += chain_work(self.flat.size, self.value.size, self.owner.size)
                stale = self._chained()
            if not stale:
                break
        return self.owner, float(self.value.sum()), work

    def _predict(self, j: int) -> None:
        """Estimate the value of component j with any member replaced by any feature."""
        members = self._members(j)
        rows = self.estimate[self.first[j] : self.first[j + 1]]
        rows[:] = replacements(self.A, members, self.loading[j], self.nonnegative)
        rows[self.anchored[members]] = -np.inf

    def _first_improving(
        self, gain: np.ndarray, leaving: np.ndarray, entering: np.ndarray
    ) -> set[int]:
        """Make the first swap whose exact gain is positive; return the components it changed."""
        least = 1e-10 * self.value.sum()
        for c in range(CANDIDATES):
            if not np.isfinite(gain[c]):
                break
            a, b = int(leaving[c]), int(entering[c])
            j, other = int(self.owner[a]), int(self.owner[b])
            value, loading = self._traded(j, a, b)
            change = value - self.value[j]
            if other >= 0:
                value2, loading2 = self._traded(other, b, a)
                change += value2 - self.value[other]
            if change > least:
                self._swap(a, b)
                self.value[j], self.loading[j] = value, loading
                if other < 0:
                    return {j}
                self.value[other], self.loading[other] = value2, loading2
                return {j, other}
        return set()

    def _chained(self) -> set[int]:
        """Make the first chain of moves whose exact gain is positive; return what it changed."""
        for chain, newcomer in self._chains():
            entering = [*self.flat[chain[1:]].tolist(), newcomer]
            components = self.component[chain].tolist()
            traded = [
                self._traded(j, int(a), b)
                for j, a, b in zip(components, self.flat[chain], entering, strict=True)
            ]
            change = sum(value for value, _ in traded) - self.value[components].sum()
            if change > 1e-10 * self.value.sum():
                self.owner[self.flat[chain[0]]] = -1
                for t, j, b, (value, loading) in zip(
                    chain, components, entering, traded, strict=True
                ):
                    self.flat[t], self.owner[b], self.place[b] = b, j, t
                    self.value[j], self.loading[j] = value, loading
                return set(components)
        return set()

    def _chains(self) -> list[tuple[list[int], int]]:
        """Return the most promising chains: places that pass on, and the free feature that enters.

        The best chain from a place passes on to the best chain, shorter by one, from another one.
        Such a chain may meet a component twice; then it is left out.
        """
        free = np.flatnonzero(self.owner < 0)
        if not free.size:
            return []
        own = self.value[self.component]
        ends = self.estimate[:, free]
        newcomer = free[ends.argmax(axis=1)]
        best = ends.max(axis=1) - own
        moves = self.estimate[:, self.flat] - own[:, None]
        moves[self.component[:, None] == self.component] = -np.inf
        follow: list[np.ndarray] = []
        found: list[tuple[float, list[int]]] = []
        for _ in range(2, min(self.value.size, LONGEST) + 1):
            through = moves + best
            follow.append(through.argmax(axis=1))
            best = through.max(axis=1)
            for t in np.argsort(-best, kind="stable")[:CANDIDATES].tolist():
                chain = [t]
                for step in reversed(follow):
                    chain.append(int(step[chain[-1]]))
                if np.isfinite(best[t]) and np.unique(self.component[chain]).size == len(chain):
                    found.append((float(best[t]), chain))
        found.sort(key=lambda one: -one[0])
        return [(chain, int(newcomer[chain[-1]])) for _, chain in found[:CANDIDATES]]

    def _traded(self, j: int, a: int, b: int) -> tuple[float, np.ndarray]:
        """Return value and vector of component j with feature b in the place of member a."""
        from ..kernels.exchange import leading

        place = self.place[a] - self.first[j]
        members = self._members(j).copy()
        members[place] = b
        x = self.loading[j].copy()
        x[place] = 0.0
        cross = x @ self.A[b, members]
        # Power iteration may never reach the new feature from a start without weight on it.
        x[place] = 0.3 if cross >= 0.0 or self.nonnegative else -0.3
        x /= np.sqrt(x @ x)
        image = np.empty(x.size)
        return leading(self.A, members, self.nonnegative, power_steps(x.size), x, image), x

    def _swap(self, a: int, b: int) -> None:
        """Let features a and b change places; b may be free."""
        self.flat[self.place[a]] = b
        if self.owner[b] >= 0:
            self.flat[self.place[b]] = a
        self.place[a], self.place[b] = self.place[b], self.place[a]
        self.owner[a], self.owner[b] = self.owner[b], self.owner[a]


def step_work(members: int, stale: float, p: int) -> float:
    """Estimate the nanoseconds of one core that a swap takes, by counts.

    `members` are the features of all components, `stale` the part of the components whose gains
    are predicted anew.
    """
    return (3.0 + 13.0 * stale) * members * p + 1.5e5


def chain_work(members: int, components: int, p: int) -> float:
    """Estimate the nanoseconds of one core that a look at chains takes, by counts."""
    lengths = max(min(components, LONGEST) - 1, 0)
    return 2.0 * members * p + 3.0 * lengths * members**2 + 5e4 * lengths
