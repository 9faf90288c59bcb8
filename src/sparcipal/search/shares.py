"""Search for the best way to share a total number of nonzeros among the components.

At fixed scores the best assignment is simple: the `total` features with the best scores go each to
the component that scores it highest. So the matching ascent of Asteris et al. (2015) also finds
shares; then single nonzeros are moved from component to component while that gains, and between
such moves components of these sizes are searched for as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..problem.components import newcomer_gain, support_value
from ..problem.covariance import Covariance
from ..problem.problem import Problem

STARTS = 6  # random starts of the matching ascent for each unit of effort
STEPS = 40  # matchings of one ascent
CANDIDATES = 4  # newcomers of a component that are tried exactly
DISTINCT = 3  # starts of different sizes that are improved


def shared_assignment(weight: np.ndarray, total: int) -> np.ndarray:
    """Return the component of every feature, or -1 for a free one; weight is (k, p).

    The `total` features of the largest weights go each to the component that gives it that weight.
    A component that would stay empty takes the feature whose move costs least.
    """
    k, p = weight.shape
    owner = np.full(p, -1)
    chosen = np.argpartition(-weight.max(axis=0), total - 1)[:total]
    owner[chosen] = weight[:, chosen].argmax(axis=0)
    counts = np.bincount(owner[chosen], minlength=k)
    for j in np.flatnonzero(counts == 0):
        spare = chosen[counts[owner[chosen]] > 1]
        row = spare[int(np.argmax(weight[j, spare] - weight[owner[spare], spare]))]
        counts[owner[row]] -= 1
        owner[row], counts[j] = j, 1
    return owner


def best_shares(
    problem: Problem,
    search: Callable[[Sequence[np.ndarray], bool], list[np.ndarray]],
    seed: int,
    effort: int,
) -> list[np.ndarray]:
    """Return disjoint supports of `problem.n_nonzero` features in all.

    `search(supports, thorough)` improves supports at their sizes, and never makes them worse.
    """
    shares = _Shares(problem.covariance, problem.nonnegative)
    k, total = problem.k, problem.n_nonzero
    rng = np.random.default_rng(seed)
    starts = [shares.even(k, total)]
    starts += [shares.ascend(rng, k, total) for _ in range(STARTS * max(effort, 1))]
    starts.sort(key=shares.value, reverse=True)
    distinct: dict[tuple[int, ...], list[np.ndarray]] = {}
    for start in starts:
        distinct.setdefault(tuple(sorted(support.size for support in start)), start)
    ends = [
        shares.improve(start, lambda supports: search(supports, False))
        for start in list(distinct.values())[:DISTINCT]
    ]
    best = max(ends, key=shares.value)
    return shares.improve(search(best, True), lambda supports: search(supports, False))


class _Shares:
    """The search for shares in one covariance, with the value of components that share nothing."""

    def __init__(self, cov: Covariance, nonnegative: bool) -> None:
        self.cov, self.nonnegative = cov, nonnegative

    def value(self, supports: Sequence[np.ndarray]) -> float:
        """Return the sum of what the best component on each support explains."""
        return sum(self._alone(support)[0] for support in supports)

    def _alone(self, support: np.ndarray) -> tuple[float, np.ndarray]:
        """Return value and weights of the best component on a support."""
        block = self.cov.submatrix(support)
        return support_value(block, np.arange(support.size), self.nonnegative)

    def even(self, k: int, total: int) -> list[np.ndarray]:
        """Deal out the features of largest variance to the components in turn."""
        order = np.argsort(-self.cov.diagonal, kind="stable")[:total]
        return [np.sort(order[j::k]) for j in range(k)]

    def ascend(self, rng: np.random.Generator, k: int, total: int) -> list[np.ndarray]:
        """Ascend by matchings from a random point near the leading subspace."""
        score = np.linalg.qr(self.cov.matmat(rng.standard_normal((self.cov.n_features, k))))[0]
        score = self.cov.matmat(score).T
        last, supports = -np.inf, self.even(k, total)
        for _ in range(STEPS):
            seen = np.maximum(score, 0.0) if self.nonnegative else score
            owner = shared_assignment(np.square(seen), total)
            X = np.where(owner == np.arange(k)[:, None], seen, 0.0)
            norms = np.linalg.norm(X, axis=1, keepdims=True)
            # A component whose scores vanish restarts from equal weights.
            X = np.where(norms > 0.0, X, owner == np.arange(k)[:, None])
            X = X / np.linalg.norm(X, axis=1, keepdims=True)
            score = self.cov.matmat(X.T).T
            values = np.einsum("ji,ji->j", X, score)
            score /= np.sqrt(np.maximum(values, 1e-300))[:, None]
            if values.sum() <= last * (1.0 + 1e-7):
                break
            last = float(values.sum())
            supports = [np.flatnonzero(owner == j) for j in range(k)]
        return supports

    def improve(
        self,
        supports: Sequence[np.ndarray],
        search: Callable[[Sequence[np.ndarray]], list[np.ndarray]],
    ) -> list[np.ndarray]:
        """Move nonzeros between components, then search at the new sizes, until nothing gains."""
        best, value = list(supports), self.value(supports)
        for _ in range(sum(support.size for support in supports)):
            moved = search(self._moved(best))
            now = self.value(moved)
            if now <= value * (1.0 + 1e-9):
                break
            best, value = moved, now
        return best

    def _moved(self, supports: list[np.ndarray]) -> list[np.ndarray]:
        """Move nonzeros, one at a time, while that gains: a component gives up its least useful
        feature, and another one takes a new feature, or that one."""
        supports = list(supports)
        for _ in range(2 * sum(support.size for support in supports)):
            taken = np.concatenate(supports)
            leave = [self._cheapest(support) for support in supports]
            enter = [self._newcomers(support, taken) for support in supports]
            best, move = 1e-9 * self.value(supports), None
            for j, (loss, a) in enumerate(leave):
                for i in range(len(supports)):
                    if i == j or not np.isfinite(loss):
                        continue
                    before = self._alone(supports[i])[0]
                    for b in (*enter[i], a):
                        grown = np.sort(np.append(supports[i], b))
                        gain = self._alone(grown)[0] - before - loss
                        if gain > best:
                            best, move = gain, (j, a, i, grown)
            if move is None:
                break
            j, a, i, grown = move
            supports[j], supports[i] = supports[j][supports[j] != a], grown
        return supports

    def _cheapest(self, support: np.ndarray) -> tuple[float, int]:
        """Return the least loss by giving up a feature of the support, and that feature."""
        if support.size == 1:
            return np.inf, -1
        block = self.cov.submatrix(support)
        places = np.arange(support.size)
        values = [support_value(block, np.delete(places, t), self.nonnegative)[0] for t in places]
        t = int(np.argmax(values))
        return self._alone(support)[0] - values[t], int(support[t])

    def _newcomers(self, support: np.ndarray, taken: np.ndarray) -> list[int]:
        """Return the free features of largest gain, predicted by the 2 x 2 problem of the component
        and the feature."""
        value, x = self._alone(support)
        cross = self.cov.columns(support) @ x
        promise = newcomer_gain(value, self.cov.diagonal, cross, self.nonnegative)
        promise[taken] = -np.inf
        order = np.argsort(-promise, kind="stable")[:CANDIDATES]
        return [int(b) for b in order if promise[b] > -np.inf]
