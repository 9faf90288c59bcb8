"""The best weights on given supports: exact eigenvectors, in a fixed order with fixed signs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from ..numerics import margins
from ..numerics.margins import SAFETY
from .covariance import Covariance
from .nonnegative import NEGLIGIBLE, nonnegative_leading
from .problem import Component, Problem

# Beyond so many members a support without one of them has nearly the same weights.
MANY = 100
# The same where dropping weights must not spoil orthogonality.
TINY = 1e-16
# Scores count as uncorrelated below this part of what their features could have in common.
UNCORRELATED = 1e-13
CORRELATED = 5e-11  # and as correlated above this one; `verify` refuses twice as much
NOISE = 4e-15  # of two deviations: covariances below this are rounding and tie nothing
RANK = 1e-10  # singular values below this fraction of the largest count as zero
# Up to this many components the order of adjusted variances is the best of all orders.
ORDERED = 8
TURNS = 3  # up to so many, uncorrelated ones are made in any order
# A component is a combination of others if, after these are projected out, its scores keep less
# than this fraction of the variance they could have had.
DEPENDENT = 1e-12


def refit(problem: Problem, components: tuple[Component, ...]) -> tuple[Component, ...]:
    """Replace the weights of each component by the best ones on its support, the best component
    first.

    Adjusted variances are refitted only if that does not lower their sum. Components that must be
    orthogonal, uncorrelated or in a common set are made so if they are not.
    """
    if problem.k > 1 and (problem.orthogonal or problem.common or problem.uncorrelated):
        return conforming(problem, components)
    fitted = tuple(refit_one(problem.covariance, c, problem.nonnegative) for c in components)
    if problem.include:  # the order says which component has which anchors
        return fitted
    if not problem.adjusted:
        return tuple(_sorted(fitted, variances(problem, fitted)))
    tidy = tuple(_tidy(c.support, c.weights) for c in components)
    ordered = [best_order(problem, choice) for choice in (tidy, fitted)]
    return max(ordered, key=lambda choice: float(variances(problem, choice).sum()))


def conforming(problem: Problem, components: tuple[Component, ...]) -> tuple[Component, ...]:
    """Return components that are what the problem asks for, near the given ones and in order."""
    if problem.common:
        return principal(problem, common_set(problem, components))
    if not _conform(problem, components):
        components = _made_orthogonal(problem, components)
    if problem.uncorrelated:
        spread = np.sqrt(np.abs(problem.covariance.diagonal))
        tidy = tuple(_tidy(c.support, c.weights, TINY, spread[c.support]) for c in components)
        # in any order they explain the same; in this one errors do not grow
        return tuple(_sorted(tidy, np.diagonal(_products(problem.covariance, tidy)[0])))
    tidy = tuple(_tidy(c.support, c.weights, TINY) for c in components)
    return tuple(_sorted(tidy, variances(problem, tidy)))


def principal(problem: Problem, features: np.ndarray) -> tuple[Component, ...]:
    """Return the k principal components of a common set of features, increasing."""
    values, vectors = np.linalg.eigh(problem.covariance.submatrix(features))
    leading = vectors[:, np.argsort(-values, kind="stable")[: problem.k]]
    return tuple(_tidy(features, x, TINY) for x in leading.T)


def common_set(problem: Problem, components: tuple[Component, ...]) -> np.ndarray:
    """Return s features, those of the components with the largest parts in what they explain."""
    cov, s = problem.covariance, problem.s_max
    part = np.zeros(cov.n_features)
    for c in components:
        own = max(float(c.weights @ cov.submatrix(c.support) @ c.weights), 0.0)
        part[c.support] += own * c.weights**2 + 1e-300
    # the features that vary most fill the set
    order = np.lexsort((-cov.diagonal, -part))
    return np.sort(order[:s])


def _conform(problem: Problem, components: tuple[Component, ...]) -> bool:
    """Return whether components are orthogonal, or uncorrelated, up to rounding."""
    if problem.uncorrelated:
        products, reach = _products(problem.covariance, components)
        limit = UNCORRELATED * np.sqrt(np.outer(reach, reach))
    else:
        p = problem.covariance.n_features
        W = np.column_stack([c.vector(p) for c in components])
        products = W.T @ W
        limit = np.full(products.shape, margins.sum_of(problem.n_nonzero + 8))
    return bool((np.abs(products) <= limit)[~np.eye(problem.k, dtype=bool)].all())


def check_uncorrelated(problem: Problem, components: tuple[Component, ...]) -> None:
    """Refuse components that were to be uncorrelated and are not, for lack of digits."""
    if problem.k == 1 or not problem.uncorrelated:
        return
    W, A = _on_used(problem.covariance, components)
    size = np.sqrt(np.einsum("ij,ik,kj->j", np.abs(W), np.abs(A), np.abs(W)))
    off = np.abs(W.T @ A @ W)
    np.fill_diagonal(off, 0.0)
    if (off <= CORRELATED * np.outer(size, size)).all():
        return
    spread = np.sqrt(np.abs(problem.covariance.diagonal))
    apart = float(spread.max() / max(spread[~problem.covariance.inert].min(), 1e-300))
    raise ValueError(
        "uncorrelated=True: scores of the components that were found are correlated, for lack of "
        f"digits: the deviations of features differ by a factor of {apart:.2g}; bring the features "
        "to units of like size, for instance with scale=True"
    )


def _made_orthogonal(problem: Problem, components: tuple[Component, ...]) -> tuple[Component, ...]:
    """Make each component orthogonal to (or uncorrelated with) those before on its own support.

    The shortest supports come first, because they leave the least choice, or of few components
    those first after which all explain most: among features that are parallel a long support may
    have less choice than a short one. Where one leaves none, single features serve as components;
    uncorrelated ones always find a direction.
    """
    shortest = sorted(range(problem.k), key=lambda j: components[j].support.size)
    first = _made_in_turn(problem, components, shortest)
    if first is None:
        largest = np.argsort(-problem.covariance.diagonal, kind="stable")[: problem.k]
        return tuple(Component(np.array([i]), np.ones(1)) for i in largest)
    if not problem.uncorrelated or problem.k > TURNS:
        return first
    others = (_made_in_turn(problem, components, order) for order in permutations(shortest))
    able = [one for one in others if one is not None and _conform(problem, one)]
    return max([first, *able], key=lambda one: float(variances(problem, one).sum()))


def _made_in_turn(
    problem: Problem, components: tuple[Component, ...], order: Sequence[int]
) -> tuple[Component, ...] | None:
    """Make components orthogonal in this order; None if one of them has no direction left."""
    cov = problem.covariance
    shortest = sorted(range(problem.k), key=lambda j: components[j].support.size)
    sizes = dict(zip(shortest, sorted(problem.cardinalities)))
    taken = [c.support for c in components]
    made: dict[int, Component] = {}
    basis = np.zeros((cov.n_features, 0))
    for j in order:
        support = taken[j]
        if problem.uncorrelated and support.size <= len(made):
            taken[j] = support = _longer(problem, support, sizes[j], taken)
        one = best_within(cov, support, basis)
        if one is None:
            return None
        made[j] = one
        basis = with_direction(problem, basis, one)
    return tuple(made[j] for j in range(problem.k))


def with_direction(problem: Problem, basis: np.ndarray, one: Component) -> np.ndarray:
    """Return the constraints of later components with that of `one` added, as columns."""
    direction = one.vector(problem.covariance.n_features)
    if problem.uncorrelated:
        spread = np.sqrt(np.abs(problem.covariance.diagonal))
        direction = problem.covariance.image(one.support, one.weights)
        noise = NOISE * (spread[one.support] @ abs(one.weights)) * spread
        alive = (abs(direction) > noise) & (np.linalg.norm(direction) > np.linalg.norm(noise))
        direction = alive * direction / max(float(np.linalg.norm(direction)), 1e-300)
    return np.column_stack([basis, direction])


def _longer(problem: Problem, support: np.ndarray, s: int, taken: list[np.ndarray]) -> np.ndarray:
    """Return s features with those of the support, of disjoint supports no one else's."""
    allowed = np.ones(problem.covariance.n_features, dtype=bool)
    allowed[np.concatenate(taken) if problem.disjoint else support] = False
    variance = np.where(allowed, problem.covariance.diagonal, -np.inf)
    more = np.argsort(-variance, kind="stable")[: s - support.size]
    return np.union1d(support, more[allowed[more]])


def best_within(rest: Covariance, support: np.ndarray, basis: np.ndarray) -> Component | None:
    """Return the unit vector on the support that explains most of `rest` and is orthogonal to the
    columns of the basis, or None if only zero is."""
    block = rest.submatrix(support)
    block = 0.5 * (block + block.T)
    rows = basis[support]
    if not rows.any():
        return Component(support, np.linalg.eigh(block)[1][:, -1])
    _, sizes, right = np.linalg.svd(rows.T, full_matrices=True)
    rank = int(np.count_nonzero(sizes > RANK * max(float(sizes[0]), 1e-300)))
    free = right[rank:].T  # (s, s - rank)
    if free.shape[1] == 0:
        return None
    x = free @ np.linalg.eigh(free.T @ block @ free)[1][:, -1]
    return Component(support, x / np.linalg.norm(x))


def refit_one(covariance: Covariance, component: Component, nonnegative: bool) -> Component:
    A = covariance.submatrix(component.support)
    if nonnegative:
        weights = nonnegative_leading(A, component.weights)
    else:
        weights = np.linalg.eigh(A)[1][:, -1]
    return _tidy(component.support, weights)


def support_value(
    A: np.ndarray, support: np.ndarray, nonnegative: bool
) -> tuple[float, np.ndarray]:
    """Return the best value found on a support, and its unit vector."""
    from ..kernels.exchange import leading

    block = A[np.ix_(support, support)]
    row = block[int(np.argmax(np.square(block).sum(axis=0)))]
    x = np.maximum(row, 0.0) if nonnegative else row.copy()
    norm = np.sqrt(x @ x)
    x = x / norm if norm > 0.0 else np.full(support.size, support.size**-0.5)
    image, limit = np.empty(support.size), power_steps(support.size)
    return leading(block, np.arange(support.size), nonnegative, limit, x, image), x


def power_steps(s: int) -> int:
    """Return how many power steps a support of s features is worth: fewer where they are long."""
    return max(12, min(300, 27_000_000 // (s * s)))


def newcomer_gain(
    value: Any, variance: np.ndarray, link: np.ndarray, nonnegative: bool
) -> np.ndarray:
    """Return a lower bound on the growth of the value x'Ax when a feature joins a component.

    `value` plus this is the largest eigenvalue of the 2 x 2 problem spanned by x and the feature,
    whose entries are the value, the feature's variance and `link`, its entry of Ax.
    """
    if nonnegative:
        link = np.maximum(link, 0.0)
    half = 0.5 * (value - variance)
    gain: np.ndarray = half * half + link * link
    gain = np.sqrt(gain, out=gain)  # in place: searches ask for many at a time
    return np.subtract(gain, half, out=gain)


def removals(
    block: np.ndarray, weights: np.ndarray, nonnegative: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each t nearly the best unit vector without the t-th member, and its value."""
    s = weights.size
    image = np.tile(weights, (s, 1))
    vectors = image
    for _ in range(4):  # power steps, for all t at a time
        image.flat[:: s + 1] = 0.0
        if nonnegative:
            np.maximum(image, 0.0, out=image)
        norm = np.sqrt(np.einsum("ti,ti->t", image, image))
        vectors = image / np.where(norm > 0.0, norm, 1.0)[:, None]
        image = vectors @ block
    return vectors, np.einsum("ti,ti->t", image, vectors)


def least_loss(covariance: Covariance, support: np.ndarray, nonnegative: bool) -> float:
    """Return about what a component explains less without its least useful feature."""
    A = covariance.submatrix(support)
    value, x = support_value(A, np.arange(support.size), nonnegative)
    return value if support.size == 1 else value - float(removals(A, x, nonnegative)[1].max())


def replacements(
    A: np.ndarray, members: np.ndarray, weights: np.ndarray, nonnegative: bool
) -> np.ndarray:
    """Estimate (s, p) what a support explains with its t-th member replaced by feature b.

    It is a lower bound: the largest eigenvalue of the 2 x 2 problem of the feature and a vector on
    the other members. Of more than MANY members that vector is the one given without its t-th
    weight, which is close to the best and takes no product of matrices.
    """
    rows, diagonal = A[members], A.diagonal().copy()
    if members.size <= MANY:
        vectors, values = removals(rows[:, members], weights, nonnegative)
        cross = vectors @ rows
    else:
        image = weights @ rows
        own = image[members]
        left = np.maximum(1.0 - weights**2, 1e-12)
        values = (weights @ own - 2 * weights * own + diagonal[members] * weights**2) / left
        cross = (image - weights[:, None] * rows) / np.sqrt(left)[:, None]
    gain = newcomer_gain(values[:, None], diagonal, cross, nonnegative)
    return np.add(gain, values[:, None], out=gain)


def variances(problem: Problem, components: tuple[Component, ...]) -> np.ndarray:
    """Return what each component explains; adjusted variances, beyond those before it."""
    covariance = problem.covariance
    if not problem.adjusted:
        return np.array(
            [c.weights @ covariance.submatrix(c.support) @ c.weights for c in components]
        )
    return _elimination(*_products(covariance, components))[0]


def redundancy(covariance: Covariance, components: tuple[Component, ...]) -> tuple[float, float]:
    """Return the largest correlation between the scores of two components, and the adjusted
    variances of all, summed: in their best order, or their own if they are more than ORDERED."""
    products, reach = _products(covariance, components)
    variance = np.diagonal(products)
    # scores without variance but for rounding correlate with nothing
    deviation = np.sqrt(np.where(variance > _lost(reach), variance, 0.0))
    scale = np.outer(deviation, deviation)
    off = np.divide(np.abs(products), scale, out=np.zeros_like(scale), where=scale > 0.0)
    np.fill_diagonal(off, 0.0)
    lost = _lost(reach)
    if reach.size <= ORDERED:
        order = _exact_order(products, lost)
    else:  # of so many, no best order is found, nor need two computers find the same
        order = _useful_first(range(reach.size), products, lost)
    total = float(_elimination(products[np.ix_(order, order)], reach[order])[0].sum())
    return min(float(off.max()), 1.0), total


def rounding_of_value(problem: Problem, components: tuple[Component, ...]) -> float:
    """Return by how much the computed value may exceed that of exact arithmetic."""
    m = problem.n_nonzero
    size = float(sum(problem.covariance.diagonal[c.support].sum() for c in components))
    # SAFETY leaves room for the rounding of the checker.
    doubt = problem.covariance.rounding(m)
    summed = margins.value(m) * abs(size)
    if not problem.disjoint:
        doubt = sum(problem.covariance.rounding(s) for s in problem.cardinalities)
        # components that are orthogonal only up to rounding
        summed *= problem.k
    error = SAFETY * (doubt + summed)
    if not problem.adjusted:
        return error
    return error * _elimination(*_products(problem.covariance, components))[1]


def _elimination(products: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, float]:
    """Return adjusted variances from W'AW, and the growth of an entry's error in their sum.

    They are the squared diagonal of R in the QR decomposition of the scores: the pivots of Gaussian
    elimination. A pivot's row is subtracted from the rest with factors l: errors grow by
    (1 + |l|)^2 each time.
    """
    rest = products.copy()
    out = np.zeros(reach.size)
    error = growth = 1.0
    for j in range(reach.size):
        pivot = float(rest[j, j])
        # Below this the scores of j are constant or a combination of those before it; the rest,
        # also of later components, may be rounding and counts as zero.
        if not pivot > _lost(reach[j]):
            break
        out[j] = pivot
        if j + 1 < reach.size:
            error *= (1.0 + float(np.abs(rest[j + 1 :, j]).max()) / pivot) ** 2
            growth += error
        rest = rest - np.outer(rest[:, j], rest[j]) / pivot
    return out, growth


def _lost(reach: Any) -> Any:
    """Return the variance below which a component may be nothing but rounding."""
    return DEPENDENT * np.maximum(reach, 1e-300)


def _products(
    covariance: Covariance, components: tuple[Component, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return W'AW, and what each component would explain if its features were all parallel, to
    which rounding is relative."""
    W, A = _on_used(covariance, components)
    deviation = np.sqrt(np.maximum(np.diagonal(A), 0.0))
    return W.T @ A @ W, (deviation @ np.abs(W)) ** 2


def _on_used(
    covariance: Covariance, components: tuple[Component, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (m, k) and the covariance (m, m) of the features that are used."""
    features = np.unique(np.concatenate([c.support for c in components]))
    W = np.zeros((features.size, len(components)))
    for j, c in enumerate(components):
        W[np.searchsorted(features, c.support), j] = c.weights
    return W, covariance.submatrix(features)


def best_order(problem: Problem, components: tuple[Component, ...]) -> tuple[Component, ...]:
    """Order the components so that their adjusted variances sum to the most.

    Up to ORDERED components no order is better; of more, each adds the most to those before it.
    """
    products, reach = _products(problem.covariance, components)
    find = _exact_order if len(components) <= ORDERED else _greedy_order
    order = find(products, _lost(reach))
    # The order in which components were asked for may explain more than the greedy one.
    choices = [tuple(components), tuple(components[j] for j in order)]
    return max(choices, key=lambda c: float(variances(problem, c).sum()))


def _greedy_order(products: np.ndarray, lost: np.ndarray) -> list[int]:
    rest, order = products, []
    left = list(range(len(lost)))
    while left:
        j = max(left, key=lambda i: float(rest[i, i]))
        left.remove(j)
        order.append(j)
        rest = _without(rest, j, lost)
    return order


def _exact_order(products: np.ndarray, lost: np.ndarray) -> list[int]:
    """Return the best order, by the best one of each set in which every component adds something:
    what one more adds to such a set does not depend on the order of the set."""
    k = len(lost)
    # of each set: what it explains, in which order, and what was left for the last of it
    best: dict[int, tuple[float, list[int], np.ndarray]] = {0: (0.0, [], products)}
    for chosen in range(2**k):
        if chosen not in best:
            continue
        total, order, rest = best[chosen]
        rest = _without(rest, order[-1], lost) if order else rest
        for j in np.flatnonzero(np.diagonal(rest) > lost).tolist():
            more, larger = total + float(rest[j, j]), chosen | 1 << j
            if j not in order and (larger not in best or more > best[larger][0]):
                best[larger] = more, [*order, j], rest
    useful = max(best.values(), key=lambda one: (one[0], len(one[1])))[1]
    return useful + [j for j in range(k) if j not in useful]


def _useful_first(order: Sequence[int], products: np.ndarray, lost: np.ndarray) -> list[int]:
    """Return an order in which what adds nothing comes last, because nothing after it counts."""
    useful, rest = list[int](), products
    for j in order:
        if rest[j, j] > lost[j]:
            useful.append(j)
            rest = _without(rest, j, lost)
    return useful + [j for j in order if j not in useful]


def _without(rest: np.ndarray, j: int, lost: np.ndarray) -> np.ndarray:
    """Return what is left of the products once j is explained."""
    if not rest[j, j] > lost[j]:
        return rest
    return rest - np.outer(rest[:, j], rest[j]) / rest[j, j]


def _sorted(components: tuple[Component, ...], values: np.ndarray) -> list[Component]:
    order = sorted(range(len(components)), key=lambda j: (-values[j], components[j].support[0]))
    return [components[j] for j in order]


def _tidy(
    support: np.ndarray,
    weights: np.ndarray,
    negligible: float = NEGLIGIBLE,
    spread: np.ndarray | None = None,
) -> Component:
    """Normalise a component: unit norm, no negligible weights, the largest one positive.

    With the deviations of its features, a weight stays that matters to the scores.
    """
    size = np.abs(weights)
    keep = size > negligible * size.max()
    if spread is not None:
        part = size * spread
        keep |= part > negligible * part.max()
    support, weights = support[keep], weights[keep]
    lead = int(np.argmax(np.abs(weights) >= np.abs(weights).max() * (1 - 1e-9)))
    weights = weights * (1.0 if weights[lead] > 0 else -1.0)
    order = np.argsort(support)
    return Component(support[order], _unit(weights[order]))


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x)


def matched(
    ones: Sequence[np.ndarray], others: Sequence[np.ndarray], same: Sequence[int] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Match supports of two lists, one to one, so that their Jaccard indices sum to the most; those
    at the places `same` are partners in any case.

    Returns which of the others each of the first has (-1: none), and the indices of the pairs.
    """
    jaccard = np.zeros((len(ones), len(others)))
    for i, one in enumerate(ones):
        for j, other in enumerate(others):
            common = np.intersect1d(one, other).size
            jaccard[i, j] = common / (one.size + other.size - common)
    from scipy.optimize import linear_sum_assignment  # here, as every fit would pay for the import

    score = jaccard.copy()
    score[list(same), list(same)] += len(ones)
    rows, columns = linear_sum_assignment(-score)
    partner = np.full(len(ones), -1)
    partner[rows] = columns
    return partner, jaccard[rows, columns]
