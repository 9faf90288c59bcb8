"""Components that are uncorrelated, or orthogonal: all weights and supports improved together.

Maximise sum_j x_j'Ax_j with x_i'Bx_j = 0, where B = A for uncorrelated components and B = I for
orthogonal ones. While the others stay, such a component can hardly move: its constraints are the
others. So the weights move together: each x_j is free but for its projection off the columns
C = (Bx_i)_{i<j} on its support, and with P = I - CC+, z = Py, a gradient g of z pulls back to

    y by Pg,    C by -(Pg a' + z b'),    a = C+y, b = C+g.

An exchange of features is judged by the Lagrangian x_j'Ax_j - 2 sum_i l_ij x_j'Bx_i, in which the
others may stay, and taken if the weights that follow are better. Where supports are few, all of
them are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from math import comb, factorial, prod

import numpy as np

from ..numerics.lbfgs import minimise, slow
from ..problem.components import NOISE, best_within, with_direction
from ..problem.problem import Component, Options, Problem

EVERY = 600  # so many tuples of supports are all tried
SAMPLES = 24  # random weights on each of them
FINALISTS = 12  # of all tuples, those whose weights are found to the end
FEW, MANY = 15, 60  # L-BFGS steps on weights
TRIALS = 8  # exchanges of one component that are tried at a time
ENTERING, LEAVING = 6, 4
ROUNDS = 12  # of exchanges, over all components
ORDERS = 6  # in which components are fitted one after the other
BETTER = 1.0 + 1e-10

Answer = tuple[Component, ...]


class _Weights:
    """The weights of all components on given supports, as functions of free vectors."""

    def __init__(self, problem: Problem, supports: Sequence[np.ndarray]) -> None:
        features = np.unique(np.concatenate(supports))
        self.A = problem.covariance.submatrix(features)
        self.B = _without_noise(self.A) if problem.uncorrelated else np.eye(features.size)
        self.supports = list(supports)
        self.places = np.searchsorted(features, np.concatenate(supports))
        sizes = [support.size for support in supports]
        self.first = np.concatenate([[0], np.cumsum(sizes)])
        k, n = len(sizes), self.places.size
        self._work = np.zeros((k, k, max(sizes))), np.zeros((k, k, k)), np.zeros((k, k))
        self._size, self._slope, self._x = np.zeros(k), np.zeros(n), np.zeros(n)

    def evaluate(self, y: np.ndarray) -> tuple[float, np.ndarray]:
        """Return minus what the components explain, and its gradient in the free vectors."""
        from ..kernels.tied import tied

        gradient = np.empty_like(y)
        value = tied(
            self.A, self.B, self.places, self.first, y, self._x, *self._work,
            self._size, self._slope, gradient,
        )  # fmt: skip
        return -float(value), -gradient

    def components(self, y: np.ndarray) -> Answer | None:
        """Return the components of free vectors; None if one of them has no direction left."""
        self.evaluate(y)
        if not self._size.all():
            return None
        parts = np.split(self._x.copy(), self.first[1:-1])
        return tuple(map(Component, self.supports, parts))

    def improved(self, y: np.ndarray, steps: int) -> tuple[np.ndarray, float]:
        """Return better free vectors, and what their components explain."""
        y = minimise(self.evaluate, y.copy(), steps, _still)
        return y, -self.evaluate(y)[0]


def _without_noise(A: np.ndarray) -> np.ndarray:
    """Return a covariance in which features that covary by rounding only do not covary."""
    spread = np.sqrt(np.abs(np.diagonal(A)))
    return np.where(np.abs(A) > NOISE * np.outer(spread, spread), A, 0.0)


def _still(history: list[float]) -> bool:
    return slow(history, 5, 1e-11 * abs(history[-1]))


def refined(problem: Problem, components: Sequence[Component], steps: int = MANY) -> Answer | None:
    """Return components of the kind asked for on the same supports, which explain much; None if
    one of them has no direction left."""
    order = _shortest_first(components)
    weights = _Weights(problem, [components[j].support for j in order])
    y, _ = weights.improved(np.concatenate([components[j].weights for j in order]), steps)
    return _in_turn(weights.components(y), order)


def _shortest_first(components: Sequence[Component]) -> list[int]:
    """Return the order in which components are made: the shortest supports leave least choice."""
    return sorted(range(len(components)), key=lambda j: components[j].support.size)


def _in_turn(made: Answer | None, order: Sequence[int]) -> Answer | None:
    """Put components back in their places."""
    if made is None:
        return None
    places = dict(zip(order, made))
    return tuple(places[j] for j in range(len(made)))


def _value(problem: Problem, components: Answer | None) -> float:
    """Return the sum of variances, which is that of adjusted ones if scores are uncorrelated."""
    if components is None:
        return -np.inf
    cov = problem.covariance
    return float(sum(c.weights @ cov.submatrix(c.support) @ c.weights for c in components))


# --- all supports ---


def of_every_support(problem: Problem, options: Options) -> Answer | None:
    """Return the best components over all tuples of supports, as far as random weights and L-BFGS
    find the best weights; None if the tuples are too many."""
    p, sizes = problem.covariance.n_features, sorted(problem.cardinalities)
    if _count(p, sizes, problem.disjoint) > EVERY:
        return None
    rng = np.random.default_rng(options.seed)
    found: list[tuple[float, np.ndarray, _Weights]] = []
    for supports in _tuples(p, sizes, problem.disjoint):
        weights = _Weights(problem, supports)
        y = max(_free_vectors(problem, weights, rng), key=lambda y: -weights.evaluate(y)[0])
        y, value = weights.improved(y, FEW)
        found.append((value, y, weights))
    found.sort(key=lambda one: -one[0])
    ends: list[Answer | None] = []
    for _, y, weights in found[:FINALISTS]:
        starts = [y, *_free_vectors(problem, weights, rng, SAMPLES // 4)]
        best = max((weights.improved(start, MANY) for start in starts), key=lambda end: end[1])
        ends.append(weights.components(best[0]))
    places = sorted(range(problem.k), key=lambda j: problem.cardinalities[j])
    return _in_turn(max(ends, key=lambda end: _value(problem, end)), places)


def _count(p: int, sizes: Sequence[int], disjoint: bool) -> int:
    """Return how many tuples of supports there are, about: of equal sizes each set counts once."""
    if disjoint:
        left, count = p, 1
        for s in sizes:
            count, left = count * comb(left, s), left - s
    else:
        count = prod(comb(p, s) for s in sizes)
    return count // prod(factorial(times) for times in Counter(sizes).values())


def _tuples(p: int, sizes: Sequence[int], disjoint: bool) -> Iterator[list[np.ndarray]]:
    """Yield the supports of all components; of equal sizes each set of supports comes once."""

    def extend(chosen: list[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
        j = len(chosen)
        if j == len(sizes):
            yield chosen
            return
        used = set().union(*chosen) if disjoint and chosen else set()
        for support in combinations([i for i in range(p) if i not in used], sizes[j]):
            if j and sizes[j - 1] == sizes[j] and support < chosen[-1]:
                continue
            yield from extend([*chosen, support])

    for supports in extend([]):
        yield [np.array(support) for support in supports]


def _free_vectors(
    problem: Problem, weights: _Weights, rng: np.random.Generator, count: int = SAMPLES
) -> list[np.ndarray]:
    """Return free vectors: components fitted one after the other in some orders, random ones."""
    k = len(weights.supports)
    found = list(rng.standard_normal((count, weights.places.size)))
    for order in list(permutations(range(k)))[:ORDERS]:
        made: dict[int, np.ndarray] = {}
        basis = np.zeros((problem.covariance.n_features, 0))
        for j in order:
            one = best_within(problem.covariance, weights.supports[j], basis)
            made[j] = np.ones(weights.supports[j].size) if one is None else one.weights
            if one is not None:
                basis = with_direction(problem, basis, one)
        found.append(np.concatenate([made[j] for j in range(k)]))
    return found


# --- exchanges ---


def exchanged(problem: Problem, components: Answer, options: Options) -> Answer:
    """Exchange features of one component, or between two, while what all explain grows."""
    best = _better(problem, components, refined(problem, components))
    for _ in range(ROUNDS):
        before = best
        for j in range(problem.k):
            for trial in _trials(problem, best, j):
                if options.monitor.stopped:
                    return best
                end = refined(problem, trial, FEW)
                if end is not None and _better(problem, best, end) is end:
                    best = _better(problem, end, refined(problem, end))
                    break
        if best is before:
            break
    return best


def _better(problem: Problem, known: Answer, trial: Answer | None) -> Answer:
    if trial is None or _value(problem, trial) <= _value(problem, known) * BETTER:
        return known
    return trial


def _trials(problem: Problem, components: Answer, j: int) -> Iterator[Answer]:
    """Yield components with one feature of the j-th exchanged, the most promising first."""
    cov, own = problem.covariance, components[j]
    taken = np.zeros(cov.n_features, dtype=bool)
    owner: dict[int, int] = {}
    if problem.disjoint:
        for i, other in enumerate(components):
            if i != j:
                taken[other.support] = True
                owner.update(dict.fromkeys(other.support.tolist(), i))
    image = _pull(problem, components, j)
    x, s = own.vector(cov.n_features), problem.cardinalities[j]
    level = float(x @ image)
    image[own.support] = 0.0
    gain = np.abs(image) / np.sqrt(np.maximum(level - cov.diagonal, 0.1 * abs(level)) + 1e-300)
    gain[own.support] = -np.inf
    enter = np.argsort(-gain, kind="stable")[:ENTERING]
    weak = own.support[np.argsort(np.abs(own.weights), kind="stable")[:LEAVING]]
    leaving = weak.tolist() if own.support.size >= s else [-1]
    ranked = []
    for b in enter[np.isfinite(gain[enter])].tolist():
        for a in leaving:
            lost = float(x[a] ** 2) if a >= 0 else 0.0
            ranked.append((float(gain[b] ** 2) - level * lost, a, b))
    ranked.sort(key=lambda one: -one[0])
    for _, a, b in ranked[:TRIALS]:
        trial = list(components)
        if taken[b]:  # the other component takes what this one leaves
            if a < 0:
                continue
            trial[owner[b]] = _with(components[owner[b]], b, a)
        trial[j] = _with(own, a, b)
        yield tuple(trial)


def _pull(problem: Problem, components: Answer, j: int) -> np.ndarray:
    """Return Ax_j - sum_i l_ij Bx_i: half the slope of the Lagrangian at every feature."""
    cov, p = problem.covariance, problem.covariance.n_features
    X = np.column_stack([c.vector(p) for c in components])
    image = np.column_stack([cov.image(c.support, c.weights) for c in components])
    others = [i for i in range(problem.k) if i != j]
    ties = (image if problem.uncorrelated else X)[:, others]
    inside = components[j].support
    own = X[inside, j]
    slope = image[inside, j] - own * (own @ image[inside, j])
    multipliers = np.linalg.lstsq(ties[inside], slope, rcond=1e-10)[0]
    pull: np.ndarray = image[:, j] - ties @ multipliers
    return pull


def _with(component: Component, out: int, new: int) -> Component:
    """Return the component with one feature less and another one of a small weight."""
    keep = component.support != out
    support = np.append(component.support[keep], new)
    weights = np.append(component.weights[keep], 0.1)
    order = np.argsort(support)
    return Component(support[order], weights[order] / np.linalg.norm(weights))
