"""Improve components one at a time while the others stay, under any objective and constraint.

What a component sees of the others is a matrix, some forbidden features and some directions to
which it must be orthogonal:

adjusted      x explains x'Bx beyond the others, B the Schur complement of A on their directions
orthogonal    x'Ax, with x'x_i = 0
uncorrelated  x'Ax, with x'Ax_i = 0
disjoint      no feature of the others; two components may trade features

Supports come from the search for one component in that matrix and from exchanges of single
features; on a support the best vector is an eigenvector. A tight ascent makes uncorrelated
components one after the other, on the best support for one of them in which what it has in common
with those before costs more and more: features of theirs enter that take it away. Adjusted
variances depend on all weights at once, which a few L-BFGS steps on fixed supports improve
together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, islice, permutations, product

import numpy as np

from ..problem.components import (
    RANK,
    best_order,
    best_within,
    conforming,
    newcomer_gain,
    variances,
    with_direction,
)
from ..problem.covariance import Covariance, MatrixCovariance
from ..problem.nonnegative import nonnegative_leading
from ..problem.problem import Component, Options, Problem
from .deflation import Downdated, beyond
from .polish import polished
from .tied import exchanged, refined

SWEEPS = 4  # over all components
LEAVING, ENTERING = 4, 6  # features that are tried in an exchange
TRADED = 5  # features of each of two components that they may trade
EXCHANGES = 30  # of one component in one sweep
DENSE = 400  # up to so many features a matrix that is seen is formed
PERTURBED = 10  # starts near the best answer, for each unit of effort
SMALL, RANDOM = 12, 8  # up to so many features there are so many starts anywhere
CHANGED, NEAR = 3, 10  # features of a component that change then, and among how many others
PROMISING = 0.98  # of the best value: exchanges with all weights moving are worth their time
PRICES = (3.0, 30.0, 300.0)  # of variance, for what an uncorrelated component may have in common
ORDERS, COMPLETED = 6, 4  # in which uncorrelated ones are completed; so many are improved
BETTER = 1.0 + 1e-10

Search = Callable[[Covariance, int], np.ndarray]


def ascend(
    problem: Problem,
    starts: Sequence[Sequence[Component]],
    search: Search,
    options: Options,
    effort: int,
    *,
    tight: bool = False,
) -> tuple[Component, ...]:
    """Return the best components from any of the starts, which need not be of the right kind.

    `search(cov, s)` returns a good support of s features for one component, without constraints.
    A `tight` ascent is for uncorrelated components: it looks further for features that take away
    what components have in common. It ends elsewhere, and not always higher.
    """
    ascent = _Ascent(problem, search, tight)
    possible = [ascent.admitted(tuple(start)) for start in starts]
    if tight:
        possible = [*ascent.completed(possible, options), max(possible, key=ascent.value)]
    ranked = sorted(possible, key=ascent.value, reverse=True)
    ends = [ascent.run(start, options, 1 if i else 2) for i, start in enumerate(ranked)]
    best = max([*ends, *ranked], key=ascent.value)
    best = ascent.exchanged(best, options)
    rng = np.random.default_rng(options.seed)
    seen = {_supports(end) for end in [*ends, *ranked]}
    few = RANDOM * effort if problem.covariance.n_features <= SMALL else 0
    for turn in range(PERTURBED * effort + few):
        if options.monitor.stopped:
            break
        near = ascent.random(rng) if turn < few else ascent.perturbed(best, rng)
        if _supports(near) in seen:
            continue
        trial = ascent.run(near, options, 0)
        seen |= {_supports(near), _supports(trial)}
        if ascent.value(trial) > PROMISING * ascent.value(best):
            trial = ascent.exchanged(trial, options)
        best = max((best, trial), key=ascent.value)
    return best


def _supports(components: Sequence[Component]) -> tuple[bytes, ...]:
    """Return the supports, as a key."""
    return tuple(c.support.tobytes() for c in components)


class _Ascent:
    def __init__(self, problem: Problem, search: Search, tight: bool = False) -> None:
        self.problem, self.search, self.tight = problem, search, tight
        self.cov = problem.covariance
        self.constrained = problem.orthogonal or problem.uncorrelated
        self._alone: dict[int, np.ndarray] = {}

    def value(self, components: Sequence[Component]) -> float:
        """Return what the components explain, in the best of their orders; minus infinity if they
        share features and may not."""
        chosen = tuple(components)
        used = np.concatenate([c.support for c in chosen])
        if self.problem.disjoint and np.unique(used).size < used.size:
            return -np.inf
        if self.problem.adjusted:
            chosen = best_order(self.problem, chosen)
        return float(variances(self.problem, chosen).sum())

    def admitted(self, components: tuple[Component, ...]) -> tuple[Component, ...]:
        """Return the components, made orthogonal or uncorrelated where that is asked for, in the
        order of the sizes."""
        if self.constrained:
            components = conforming(self.problem, components)
        sizes = self.problem.cardinalities
        places = sorted(range(len(sizes)), key=lambda j: -sizes[j])
        longest = sorted(components, key=lambda c: -c.support.size)
        slots = dict(zip(places, longest))
        return tuple(slots[j] for j in range(len(sizes)))

    def random(self, rng: np.random.Generator) -> tuple[Component, ...]:
        """Return components on any supports."""
        order, at, made = rng.permutation(self.cov.n_features), 0, []
        for s in self.problem.cardinalities:
            support = np.sort(order[at : at + s])
            weights = np.abs(rng.standard_normal(s))
            made.append(Component(support, weights / np.linalg.norm(weights)))
            if self.problem.disjoint:
                at += s
            else:
                order = rng.permutation(order)
        return self.admitted(tuple(made))

    def perturbed(
        self, components: tuple[Component, ...], rng: np.random.Generator
    ) -> tuple[Component, ...]:
        """Return components of which each has some features exchanged for others that matter."""
        changed = list(components)
        for j, s in enumerate(self.problem.cardinalities):
            rest, basis, allowed = self._seen(changed[:j] + changed[j + 1 :])
            own = changed[j]
            image = np.abs(rest.image(own.support, own.weights))
            allowed[own.support] = False
            near = np.argsort(-np.where(allowed, image, -np.inf), kind="stable")[: 2 * s + NEAR]
            near = near[allowed[near]]
            count = min(int(rng.integers(0, CHANGED + 1)), own.support.size, near.size)
            kept = rng.permutation(own.support)[count:]
            new = np.append(kept, rng.permutation(near)[:count])
            one = self._on(rest, np.sort(new), basis)
            changed[j] = one if one is not None else own
        return self.admitted(tuple(changed))

    def run(
        self, components: tuple[Component, ...], options: Options, searching: int
    ) -> tuple[Component, ...]:
        """Sweep over the components; in the first sweeps, so many, search for every one anew."""
        best, value = list(components), self.value(components)
        for sweep in range(SWEEPS):
            before = value
            for j in range(len(best)):
                if options.monitor.stopped:
                    return tuple(best)
                for new in self._replacements(best, j, sweep < searching):
                    best, value = self._better(best, value, [*best[:j], new, *best[j + 1 :]])
            best, value = self._better(best, value, self._polished(best))
            if value <= before * (1.0 + 1e-9) and self.problem.disjoint and searching > 1:
                best, value = self._traded(best, value)
            if value <= before * (1.0 + 1e-9):
                break
        return tuple(best)

    def completed(
        self, starts: list[tuple[Component, ...]], options: Options
    ) -> list[tuple[Component, ...]]:
        """Return uncorrelated components near the starts, made one after the other on supports in
        which features of the others make up for what the best ones have in common with these.

        The order in which all explain most is found for the best of them.
        """
        none = np.zeros((self.cov.n_features, 0))
        made: list[tuple[Component, ...]] = []
        for start in starts:
            alone = [self._on(self.cov, c.support, none) or c for c in start]
            worth = [-_worth(self.cov, one) for one in alone]
            made.append(self._completed(start, np.argsort(worth, kind="stable").tolist()))
            if options.monitor.stopped:
                return made
        best = starts[int(np.argmax([self.value(one) for one in made]))]
        for order in islice(permutations(range(len(best))), ORDERS):
            if options.monitor.stopped:
                break
            made.append(self._completed(best, order))
        different = {_supports(one): one for one in made}
        return sorted(different.values(), key=self.value, reverse=True)[:COMPLETED]

    def _completed(
        self, start: tuple[Component, ...], order: Sequence[int]
    ) -> tuple[Component, ...]:
        made = list(start)
        basis = np.zeros((self.cov.n_features, 0))
        for j in order:
            allowed = np.ones(self.cov.n_features, dtype=bool)
            if self.problem.disjoint:
                allowed[np.concatenate([c.support for i, c in enumerate(made) if i != j])] = False
            s = min(self.problem.cardinalities[j], int(np.count_nonzero(allowed)))
            one = self._tightened(made[j].support, basis, allowed, s)
            made[j] = made[j] if one is None else one
            basis = with_direction(self.problem, basis, made[j])
        return self.admitted(tuple(made))

    def _tightened(
        self, support: np.ndarray, basis: np.ndarray, allowed: np.ndarray, s: int
    ) -> Component | None:
        """Return a component near the best one on the support: what it has in common with the
        basis costs more and more, so that features enter which take it away, and then nothing."""
        none = basis[:, :0]
        one = self._on(self.cov, support, none)
        if one is None or not basis.any():
            return one and self._exchanged(self.cov, one, none, allowed, s)
        level = max(_worth(self.cov, one), 0.0)
        # no component of s features has more than its length in common with a column
        largest = -np.sort(-np.abs(basis), axis=0)[:s]
        columns = basis / np.maximum(np.linalg.norm(largest, axis=0), 1e-300)
        for price in PRICES:
            rest: Covariance = self.cov
            for column in columns.T:
                rest = Downdated(rest, np.sqrt(price * level) * column)
            one = self._exchanged(rest, one, none, allowed, s)
        exact = self._on(self.cov, one.support, basis)
        return exact and self._exchanged(self.cov, exact, basis, allowed, s)

    def exchanged(
        self, components: tuple[Component, ...], options: Options
    ) -> tuple[Component, ...]:
        """Exchange features of uncorrelated or orthogonal components, weights of all included: it
        is dear, and finds what changes of one component alone do not."""
        if not self.constrained:
            return components
        return exchanged(self.problem, components, options)

    def _better(
        self, best: list[Component], value: float, trial: list[Component]
    ) -> tuple[list[Component], float]:
        """Return the better of two choices."""
        now = self.value(trial)
        return (trial, now) if now > value * BETTER else (best, value)

    def _seen(self, others: list[Component]) -> tuple[Covariance, np.ndarray, np.ndarray]:
        """Return what a component sees of the others: matrix, constraints, allowed features."""
        p = self.cov.n_features
        basis = np.zeros((p, 0))
        allowed = np.ones(p, dtype=bool)
        if self.problem.disjoint:
            allowed[np.concatenate([c.support for c in others])] = False
        if self.constrained:
            for other in others:
                basis = with_direction(self.problem, basis, other)
            return self.cov, basis, allowed
        rest = beyond(self.cov, others)
        if p <= DENSE:
            rest = MatrixCovariance(rest.submatrix(np.arange(p)), self.cov.unit)
        return rest, basis, allowed

    def _replacements(
        self, components: list[Component], j: int, searching: bool
    ) -> list[Component]:
        rest, basis, allowed = self._seen(components[:j] + components[j + 1 :])
        s = min(self.problem.cardinalities[j], int(np.count_nonzero(allowed)))
        supports = [components[j].support]
        if searching:
            supports.append(self._searched(rest, allowed, s))
        found = [self._on(rest, support, basis) for support in supports]
        if searching and self.tight:
            found += [self._tightened(support, basis, allowed, s) for support in supports]
        return [self._exchanged(rest, one, basis, allowed, s) for one in found if one is not None]

    def _searched(self, rest: Covariance, allowed: np.ndarray, s: int) -> np.ndarray:
        """Return a support for one component. It is searched for once where the others change
        neither the matrix nor the allowed features, but only its constraints."""
        same = self.constrained and bool(allowed.all())
        if same and s in self._alone:
            return self._alone[s]
        places = np.flatnonzero(allowed)
        found = places[self.search(rest if allowed.all() else rest.restrict(places), s)]
        if same:
            self._alone[s] = found
        return found

    def _exchanged(
        self,
        rest: Covariance,
        component: Component,
        basis: np.ndarray,
        allowed: np.ndarray,
        s: int,
    ) -> Component:
        """Exchange single features while the value grows."""
        value = _worth(rest, component)
        for _ in range(EXCHANGES):
            image = rest.image(component.support, component.weights)
            if basis.shape[1]:
                image -= basis @ np.linalg.lstsq(basis, image, rcond=None)[0]
            gains = [image if self.problem.nonnegative else np.abs(image)]
            if basis.shape[1] and self.tight:
                gains.append(_newcomers(rest, component, basis))
            outside = allowed.copy()
            outside[component.support] = False
            enter = dict.fromkeys(b for gain in gains for b in _largest(gain, outside, ENTERING))
            weak = component.support[np.argsort(np.abs(component.weights))[:LEAVING]]
            full = component.support.size >= s
            supports = [
                np.sort(np.append(_without(component, a), b))
                for b in enter
                for a in (weak.tolist() if full else [-1])
            ]
            if not supports:
                break
            guess = self._guessed(rest, np.array(supports), basis)
            i = int(np.argmax(guess))
            if guess[i] <= value * BETTER:
                break
            one = self._on(rest, supports[i], basis)
            if one is None or _worth(rest, one) <= value * BETTER:
                break
            value, component = _worth(rest, one), one
        return component

    def _guessed(self, rest: Covariance, supports: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Return what the best vector on each support (m, s) explains."""
        every = np.unique(supports)
        places = np.searchsorted(every, supports)
        blocks = rest.submatrix(every)[places[:, :, None], places[:, None, :]]
        if self.problem.nonnegative:
            found = [nonnegative_leading(block) for block in blocks]
            return np.array([x @ block @ x for x, block in zip(found, blocks)])
        if basis.shape[1]:
            rows = basis[supports]  # (m, s, constraints)
            left, sizes, _ = np.linalg.svd(rows, full_matrices=False)
            left *= (sizes > RANK * np.maximum(sizes[:, :1], 1e-300))[:, None]
            free = np.eye(supports.shape[1]) - left @ left.swapaxes(1, 2)
            blocks = free @ blocks @ free
        values: np.ndarray = np.linalg.eigvalsh(0.5 * (blocks + blocks.swapaxes(1, 2)))[:, -1]
        return values

    def _traded(self, best: list[Component], value: float) -> tuple[list[Component], float]:
        """Let every two components trade one feature each, while the value grows."""
        for i, j in combinations(range(len(best)), 2):
            for a, b in product(_weakest(best[i]), _weakest(best[j])):
                first, second = best[i], best[j]
                if a in first.support and b in second.support:  # as long as no trade moved them
                    trial = list(best)
                    trial[i] = Component(np.sort(np.append(_without(first, a), b)), first.weights)
                    trial[j] = Component(np.sort(np.append(_without(second, b), a)), second.weights)
                    for t in (i, j):
                        rest, basis, _ = self._seen(trial[:t] + trial[t + 1 :])
                        one = self._on(rest, trial[t].support, basis)
                        trial[t] = one if one is not None else trial[t]
                    if self.constrained:
                        trial = list(self.admitted(tuple(trial)))
                    best, value = self._better(best, value, trial)
        return best, value

    def _polished(self, components: list[Component]) -> list[Component]:
        """Improve all weights together on their supports."""
        if self.constrained:
            return list(refined(self.problem, components) or components)
        if not self.problem.adjusted:
            return components
        sign = self.problem.nonnegative
        if sign:
            components = list(components)
            for j in range(len(components)):  # no other may take what one took
                components[j] = self._filled(components, j)
        ordered = best_order(self.problem, tuple(components))
        places = [next(i for i, c in enumerate(components) if c is one) for one in ordered]
        if len(set(places)) < len(places):  # one component twice
            return components
        better = dict(zip(places, polished(self.cov, ordered, sign)))
        return [better[j] for j in range(len(components))]

    def _filled(self, components: list[Component], j: int) -> Component:
        """Return the j-th component, filled up to its size with features of weight zero.

        Beyond what the others explain such features may be useless, but not when this component
        comes before the others.
        """
        own, p = components[j], self.cov.n_features
        used = own.weights > 0.0
        allowed = np.ones(p, dtype=bool)
        for i, other in enumerate(components):
            if i == j:
                allowed[other.support[used]] = False
            elif self.problem.disjoint:
                allowed[other.support] = False
        image = np.where(allowed, self.cov.image(own.support, own.weights), -np.inf)
        count = self.problem.cardinalities[j] - int(np.count_nonzero(used))
        more = np.argsort(-image, kind="stable")[:count]
        more = more[allowed[more]]
        support = np.append(own.support[used], more)
        order = np.argsort(support)
        weights = np.append(own.weights[used], np.zeros(more.size))
        return Component(support[order], weights[order])

    def _on(self, rest: Covariance, support: np.ndarray, basis: np.ndarray) -> Component | None:
        """Return the best vector on the support, or None if the constraints leave none."""
        if self.problem.nonnegative:
            return Component(support, nonnegative_leading(rest.submatrix(support)))
        return best_within(rest, support, basis)


def _newcomers(rest: Covariance, component: Component, basis: np.ndarray) -> np.ndarray:
    """Return by how much a component orthogonal to the basis gains at least from every feature.

    With C the basis on its support and W = C(C'C)^-1, a feature b comes with the weights -WC_b',
    which keep the sum orthogonal: the gain is that of two vectors.
    """
    support, own = component.support, basis[component.support]
    own = np.where(np.abs(own) > 1e-100, own, 0.0)  # squares of W are numbers
    W = np.linalg.pinv(own.T, rcond=RANK)
    X = np.zeros((rest.n_features, 1 + W.shape[1]))
    X[support, 0], X[support, 1:] = component.weights, W
    images = rest.matmat(X)
    block = images[support]
    value = float(component.weights @ block[:, 0])
    size = 1.0 + np.einsum("ij,jk,ik->i", basis, W.T @ W, basis)
    link = images[:, 0] - basis @ (W.T @ block[:, 0])
    variance = np.einsum("ij,jk,ik->i", basis, W.T @ block[:, 1:], basis) + rest.diagonal
    variance -= 2.0 * np.einsum("ij,ij->i", basis, images[:, 1:])
    return newcomer_gain(value, variance / size, link / np.sqrt(size), False)


def _largest(gain: np.ndarray, allowed: np.ndarray, count: int) -> list[int]:
    """Return allowed features of the largest gain, so many if there are."""
    best = np.argsort(-np.where(allowed, gain, -np.inf), kind="stable")[:count]
    return [int(i) for i in best[allowed[best]]]


def _weakest(component: Component) -> list[int]:
    order = np.argsort(np.abs(component.weights), kind="stable")[:TRADED]
    return [int(i) for i in component.support[order]]


def _without(component: Component, feature: int) -> np.ndarray:
    return component.support[component.support != feature]


def _worth(rest: Covariance, component: Component) -> float:
    block = rest.submatrix(component.support)
    return float(component.weights @ block @ component.weights)
