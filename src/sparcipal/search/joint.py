"""Search for several components with disjoint supports at once, on a dense covariance matrix.

No single technique finds the best supports: choosing components one after the other spoils the
later ones, and random starts miss the last per cent. So deflation, the matching ascent of Asteris
et al. (2015) on the full matrix, exchange local search, destroy-and-rebuild and random swaps are
combined, and the best assignment is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..numerics.threads import ordered_map
from ..problem.components import support_value
from ..problem.problem import Options
from .assign import assign
from .exchange import Exchange

CHAINS = 2  # starts that are perturbed
WORSE = 0.01  # relative loss at which a perturbed assignment is still accepted
RETURN = 6  # rounds after which a chain returns to its best assignment
PATIENCE = 8  # rounds after which a chain that has not improved on its start ends
WORK = 3.5e8  # nanoseconds of one core, by count, for several components and each unit of effort
FIRST = 0.4  # part of the work after which no further start is improved
BATCH = 4  # starts improved at a time, for every n_jobs


@dataclass(frozen=True)
class State:
    """A state is an assignment of features to components and its value."""

    owner: np.ndarray  # (p,) component of every feature, -1 if free
    value: float
    work: float = 0.0  # that led to it from a start

    def supports(self, k: int) -> list[np.ndarray]:
        return [np.flatnonzero(self.owner == j) for j in range(k)]


def joint_search(
    A: np.ndarray,
    cardinalities: Sequence[int],
    *,
    nonnegative: bool = False,
    options: Options | None = None,
    effort: int = 1,
    starts: Iterable[Sequence[np.ndarray]] | None = None,
) -> list[np.ndarray]:
    """Return disjoint supports of large total variance, with cardinalities[j] features each.

    Parameters
    ----------
    A : (p, p) positive semidefinite array.
    cardinalities : nonzeros of each component; their sum is at most p.
    nonnegative : components with nonnegative weights only.
    effort : multiplies the numbers of starts and perturbations, and for several components the
        work they may take; 0 only improves the starts.
    starts : supports to improve, in the order of cardinalities; the result is never worse.

    Returns
    -------
    Sorted supports in the order of cardinalities.
    """
    search = JointSearch(A, cardinalities, nonnegative, options or Options())
    return search.run(effort, starts or [])


class JointSearch:
    """The search of `joint_search`; `anchors` are features that each component must have, no
    feature twice."""

    def __init__(
        self,
        A: np.ndarray,
        cardinalities: Sequence[int],
        nonnegative: bool,
        options: Options,
        anchors: Sequence[Sequence[int]] = (),
    ) -> None:
        self.A = np.ascontiguousarray(A, dtype=np.float64)
        self.need = np.array(cardinalities, dtype=np.int64)
        self.k = self.need.size
        self.p = self.A.shape[0]
        self.nonnegative = nonnegative
        self.seed, self.n_jobs, self.monitor = options.seed, options.n_jobs, options.monitor
        self.meter = options.meter
        self.diagonal = np.diag(self.A).copy()
        self.most = np.inf  # work of one local search
        self.anchor = np.full(self.p, -1)  # the component that a feature anchors
        for j, features in enumerate(anchors):
            self.anchor[list(features)] = j

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Align the matrix: unpickling in a worker may leave it unaligned, and then every product
        would copy it."""
        self.__dict__.update(state)
        self.A = np.require(self.A, requirements=("C", "ALIGNED"))

    def run(self, effort: int, starts: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
        rounds = effort * self._rounds() // CHAINS if self.k > 1 else 0
        work = WORK * max(effort, 1) if self.k > 1 else np.inf
        self.most = work / BATCH
        with ordered_map(self.n_jobs, self) as submit:
            pool = list(submit(JointSearch.improve, self._given(starts)))
            if rounds:
                self.monitor.update("search", message=f"all {self.k} components at once: starts")
            if (effort > 0 and not self.monitor.stopped) or not pool:
                pool += self._first_states(effort, submit, FIRST * work)
            if rounds:
                self.monitor.update("search", message=f"all {self.k} at once: perturbations")
            spent = sum(state.work for state in pool)
            left = max(work - spent, 0.0)
            pool.sort(key=lambda state: -state.value)
            chains = [
                (start, chain, rounds, left / CHAINS) for chain, start in enumerate(pool[:CHAINS])
            ]
            ends = list(submit(JointSearch._wander, chains)) if rounds else []
            best = max([pool[0], *ends], key=lambda state: state.value)
        self.meter.spend(spent + sum(state.work for state in ends))
        return best.supports(self.k)

    def _rounds(self) -> int:
        """Return more rounds where each is cheap, so that the work is about the same everywhere."""
        work = int(self.need.sum()) * int(self.need.max()) * self.p
        return min(max(6, 3_000_000 // work), 20)

    # starting points ------------------------------------------------------------------------

    def _given(self, starts: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
        owners = []
        for supports in starts:
            owner = np.full(self.p, -1)
            for j, support in enumerate(supports):
                owner[np.asarray(support, dtype=np.intp)[: self.need[j]]] = j
            owners.append(self._filled(owner))
        return owners

    def _filled(self, owner: np.ndarray) -> np.ndarray:
        """Fill up every component with the free features of largest variance."""
        for j in range(self.k):
            short = self.need[j] - np.count_nonzero(owner == j)
            if short > 0:
                free = np.flatnonzero(owner < 0)
                owner[free[np.argsort(-self.diagonal[free], kind="stable")[:short]]] = j
        return owner

    def _first_states(self, effort: int, submit: Callable, most: float) -> list[State]:
        """Improve starts of every kind, as many as `most` work allows, at least a batch."""
        rng = np.random.default_rng(self.seed)
        basis = self._leading_subspace(rng)
        if self.k == 1:
            singles = self._single_starts(basis, rng, effort)
            return list(submit(JointSearch.improve, self._best(singles, 1 + 2 * effort)))
        owners = [self._deflated(basis)]
        # random ascents take at most half as much work as the searches that start from them
        count = max(min(8 * effort, int(0.5 * most / (2 * self._ascent_work()))), 2)
        for _ in range(count):
            rank = rng.integers(self.k, basis.shape[0] + 1)
            score = rng.standard_normal((self.k, rank)) @ basis[:rank]
            owners.append(self.ascend(score))
            if self.monitor.stopped:
                return list(submit(JointSearch.improve, owners[:1]))
        packed = self._packed(rng, max(4 * effort, 1))
        mixed = self._best(owners[1:], 1 + effort)
        # in turn, so that a search that ends early has met both kinds
        turns = itertools.zip_longest(mixed, self._best(packed, 1 + effort))
        chosen = [owners[0], *(owner for turn in turns for owner in turn if owner is not None)]
        states: list[State] = []
        for first in range(0, len(chosen), BATCH):
            states += submit(JointSearch.improve, chosen[first : first + BATCH])
            if sum(state.work for state in states) > most or self.monitor.stopped:
                break
        return states

    def _packed(self, rng: np.random.Generator, count: int) -> list[np.ndarray]:
        """Combine good single components into disjoint ones, greedily in a noisy order of value."""
        s = int(np.median(self.need))
        rows = self._strongest_rows(s, 100)
        singles = [np.flatnonzero(owner == 0) for owner in self._ascend_apart(self.A[rows], s)]
        values = np.array([self._value_on(support)[0] for support in singles])
        packed = []
        for _ in range(count):
            owner = np.full(self.p, -1)
            j = 0
            for index in np.argsort(-values * rng.uniform(0.85, 1.0, values.size)):
                if j < self.k and (owner[singles[index]] < 0).all():
                    owner[singles[index][: self.need[j]]] = j
                    j += 1
            packed.append(self._filled(owner))
        return packed

    def _best(self, owners: list[np.ndarray], count: int) -> list[np.ndarray]:
        """Return the `count` most valuable distinct assignments."""
        distinct = {owner.tobytes(): owner for owner in owners}
        return sorted(distinct.values(), key=self.rough_value, reverse=True)[:count]

    def _leading_subspace(self, rng: np.random.Generator) -> np.ndarray:
        """Return approximate leading eigenvectors times roots of eigenvalues, as rows (r, p)."""
        r = min(self.p, max(8, 3 * self.k))
        if self.p <= 64:
            values, vectors = np.linalg.eigh(self.A)
        else:
            block = rng.standard_normal((self.p, r))
            for _ in range(2):
                block = np.linalg.qr(self.A @ (self.A @ block))[0]
            values, rotation = np.linalg.eigh(block.T @ (self.A @ block))
            vectors = block @ rotation
        scale = np.sqrt(np.maximum(values[::-1][:r], 0.0))
        return np.ascontiguousarray((vectors[:, ::-1][:, :r] * scale).T)

    def _single_starts(
        self, basis: np.ndarray, rng: np.random.Generator, effort: int
    ) -> list[np.ndarray]:
        """Ascend, for one component, from eigenvectors, mixtures of them and strong rows of A."""
        s = int(self.need[0])
        rows = self._strongest_rows(s, 4 * effort) if effort else np.empty(0, dtype=np.intp)
        mixed = rng.standard_normal((4 * effort, basis.shape[0])) @ basis
        order = np.argsort(-self.diagonal, kind="stable")
        largest = np.zeros((2, self.p))
        largest[0, order[0]] = 1.0
        largest[1, order[:s]] = 1.0
        scores = np.concatenate([basis[:4], mixed, self.A[rows], largest])
        if self.nonnegative:
            scores = np.concatenate([scores, -scores])
        return self._ascend_apart(scores, s)

    def _strongest_rows(self, s: int, count: int) -> np.ndarray:
        """Return the features whose s largest squared covariances have the largest sum."""
        top = np.empty(self.p)
        for start in range(0, self.p, 64):  # in batches, so as not to hold a second matrix
            squares = np.square(self.A[start : start + 64])
            squares.partition(self.p - s, axis=1)
            top[start : start + 64] = squares[:, self.p - s :].sum(axis=1)
        return np.argsort(-top, kind="stable")[:count]

    def _ascend_apart(self, scores: np.ndarray, s: int) -> list[np.ndarray]:
        """Run the truncated power method for one component from many starts (m, p) at once."""
        for _ in range(8):
            if self.nonnegative:
                scores = np.maximum(scores, 0.0)
            supports = np.argpartition(-np.abs(scores), s - 1, axis=1)[:, :s]
            x = np.take_along_axis(scores, supports, axis=1)
            scores = np.empty((supports.shape[0], self.p))
            for row, (weights, support) in enumerate(zip(x, supports)):
                scores[row] = weights @ self.A[support]
            scores /= np.maximum(np.abs(scores).max(axis=1, keepdims=True), 1e-300)
        owners = []
        for support in np.unique(np.sort(supports, axis=1), axis=0):
            owner = np.full(self.p, -1)
            owner[support] = 0
            owners.append(owner)
        return owners

    def _deflated(self, basis: np.ndarray) -> np.ndarray:
        """Assign components one after the other, each among the features that are left."""
        owner = np.full(self.p, -1)
        for j in np.argsort(-self.need, kind="stable"):
            blocked = owner >= 0
            image = self.A @ np.where(blocked, 0.0, basis.T[:, : 4 * self.k].T).T
            tried = [
                self._taken(self.ascend(sign * column[None, :], blocked, j))
                for column in image.T[:4]
                for sign in ((1.0, -1.0) if self.nonnegative else (1.0,))
            ]
            owner[max(tried, key=lambda support: self._value_on(support)[0])] = j
        return owner

    @staticmethod
    def _taken(owner: np.ndarray) -> np.ndarray:
        return np.flatnonzero(owner == 0)

    # perturbations --------------------------------------------------------------------------

    def _wander(self, given: tuple[State, int, int, float]) -> State:
        """Perturb and improve repeatedly, accepting slightly worse states; return the best one with
        the work of all.

        `given` holds the start, the number of the chain, of rounds, and the work they may take. A
        whole chain is one task because a step takes milliseconds, as long as sending it to a worker
        does.
        """
        start, chain, rounds, most = given
        left = most
        best = current = start
        for number in range(rounds):
            unchanged = number == PATIENCE and best is start
            if self.monitor.stopped or unchanged or left <= 0.0:
                break
            tried = self._perturbed(current, (self.seed, chain, number))
            left -= sum(state.work for state in tried)
            better = [state for state in tried if state.value > best.value * (1.0 + 1e-10)]
            best = max(better, key=lambda state: state.value, default=best)
            slack = WORSE * (1.0 - number % RETURN / RETURN)
            others = [
                state
                for state in tried
                if abs(state.value - current.value) > 1e-9 * best.value
                and state.value > best.value * (1.0 - slack)
            ]
            current = max(others, key=lambda state: state.value, default=current)
            if number % RETURN == RETURN - 1:
                current = best
        return replace(best, work=most - left)

    def _perturbed(self, state: State, seed: tuple[int, ...]) -> list[State]:
        ways = (self._rebuild_one_by_one, self._kick, self._rebuild_jointly, self._shake)
        tried: list[State] = []
        for index, way in enumerate(ways):
            if tried and self.monitor.stopped:
                break
            rng = np.random.default_rng((*seed, index))
            tried.append(self.improve(way(state.owner, rng)))
        return tried

    def _some_components(self, rng: np.random.Generator, low: int, high: int) -> np.ndarray:
        count = rng.integers(min(low, self.k), min(high, self.k) + 1)
        return rng.permutation(self.k)[:count]

    def _rebuild_one_by_one(self, owner: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        chosen = self._some_components(rng, 1, 4)
        owner = np.where(np.isin(owner, chosen), -1, owner)
        for j in chosen:
            blocked = owner >= 0
            if rng.random() < 0.5:
                # Score the features by their covariance with a random one.
                score = self.A[rng.choice(np.flatnonzero(~blocked))]
            else:
                score = self.A @ (self.A @ rng.standard_normal(self.p))
            owner[self._taken(self.ascend(score[None, :], blocked, j))] = j
        return owner

    def _rebuild_jointly(self, owner: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        chosen = self._some_components(rng, 2, 4)
        owner = np.where(np.isin(owner, chosen), -1, owner)
        free = owner < 0
        score = rng.standard_normal((self.p, chosen.size))
        for _ in range(3):
            score = self.A @ np.where(free[:, None], score, 0.0)
        score /= np.maximum(np.linalg.norm(score, axis=0), 1e-300)
        found = self.ascend(np.ascontiguousarray(score.T), ~free, chosen)
        return np.where(found >= 0, chosen[found], owner)

    def _kick(self, owner: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        owner = owner.copy()
        for _ in range(rng.integers(2, max(4, int(self.need.max()) // 4))):
            a = rng.choice(np.flatnonzero(owner >= 0))
            b = rng.integers(self.p)
            owner[a], owner[b] = owner[b], owner[a]
        return owner

    def _shake(self, owner: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        score = self._scores(owner)
        width = rng.choice([0.05, 0.15, 0.4]) * score.std(axis=1, keepdims=True)
        return self.ascend(score + width * rng.standard_normal(score.shape))

    # the three moves every start goes through ------------------------------------------------

    def ascend(
        self,
        score: np.ndarray,
        blocked: np.ndarray | None = None,
        which: int | np.ndarray | slice = slice(None),
        limit: int = 40,
    ) -> np.ndarray:
        """Ascend by matchings from scores (m, p): W = A x_j / sqrt(x_j'A x_j), X from match(W)."""
        need = np.atleast_1d(self.need[which])
        last = -1.0
        owner = np.full(self.p, -1)
        for _ in range(limit):
            weight = np.square(np.maximum(score, 0.0) if self.nonnegative else score)
            if blocked is not None:
                weight[:, blocked] = -1.0
            owner = assign(weight, need)
            total, score = self._images(owner, score)
            if total <= last * (1.0 + 1e-7):
                break
            last = total
        return owner

    def _images(self, owner: np.ndarray, score: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value of the scores on their supports, and the scores of the next round."""
        image = np.empty_like(score)
        total = 0.0
        for j in range(score.shape[0]):
            support = np.flatnonzero(owner == j)
            x = score[j, support]
            if self.nonnegative:
                x = np.maximum(x, 0.0)
            norm = np.sqrt(x @ x)
            # A column whose scores vanish restarts from equal weights.
            x = x / norm if norm > 0.0 else np.full(support.size, support.size**-0.5)
            image[j] = x @ self.A[support]
            value = float(x @ image[j, support])
            total += value
            if value > 0.0:
                image[j] /= np.sqrt(value)
        return total, image

    def _scores(self, owner: np.ndarray) -> np.ndarray:
        score = np.empty((self.k, self.p))
        for j in range(self.k):
            support = np.flatnonzero(owner == j)
            value, x = self._value_on(support)
            score[j] = x @ self.A[support] / np.sqrt(max(value, 1e-300))
        return score

    def rough_value(self, owner: np.ndarray) -> float:
        return sum(self._value_on(np.flatnonzero(owner == j))[0] for j in range(self.k))

    def _value_on(self, support: np.ndarray) -> tuple[float, np.ndarray]:
        return support_value(self.A, support, self.nonnegative)

    def improve(self, owner: np.ndarray) -> State:
        """Improve an assignment by swaps with free features and between components."""
        owner = self._anchored(owner)
        search = Exchange(self.A, self.need, self.nonnegative, owner, self.anchor)
        owner, value, work = search.run(self.monitor, self.most)
        return State(owner, value, work + self._ascent_work())

    def _ascent_work(self) -> float:
        """Estimate the nanoseconds of an ascent of ten matchings; from a random start it is two."""
        return 10.0 * float(self.need.sum() + 20 * self.k) * self.p

    def _anchored(self, owner: np.ndarray) -> np.ndarray:
        """Move every anchor to its component, in exchange for the member that varies least."""
        owner = owner.copy()
        for feature in np.flatnonzero(self.anchor >= 0):
            j = int(self.anchor[feature])
            if owner[feature] == j:
                continue
            members = np.flatnonzero((owner == j) & (self.anchor != j))
            least = members[np.argmin(self.diagonal[members])]
            owner[least], owner[feature] = owner[feature], j
        return owner
