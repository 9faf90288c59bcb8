"""Look at every support: the optimum by exhaustion, for small problems and for testing all other
methods.

A signed component never loses by a larger support, so supports of exactly s features are enough.
The best nonnegative x is the leading eigenvector of A on its own support, so there all supports of
at most s features count whose leading eigenvector has one sign. Several disjoint components are the
best packing of such supports, found by a depth-first search through the supports in the order of
their values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from math import comb

import numpy as np

from ..certify import SAFETY
from ..covariance import EPS
from ..problem import Problem
from ..result import Bound
from .base import Component, Found, Method, Options

LIMIT = 1_000_000
BATCH = 16_384
ONE_SIGN = 1e-9


def count_supports(problem: Problem) -> int:
    """How many supports an enumeration would look at."""
    p = problem.covariance.n_features
    return sum(
        comb(p, size) for s in set(problem.cardinalities) for size in _sizes(s, problem.nonnegative)
    )


def run(problem: Problem, options: Options) -> Found:
    count = count_supports(problem)
    if count > LIMIT:
        raise ValueError(
            f"method='enumerate' would look at {count:,} supports; the limit is {LIMIT:,}. "
            "Use method='auto', which proves its answer without looking at all of them"
        )
    if problem.k > 1 and not problem.disjoint:
        raise ValueError(
            "method='enumerate' with n_components > 1 needs supports='disjoint'; "
            "use method='auto' for supports='free'"
        )
    A = problem.covariance.dense()
    tables = {s: _scored(A, s, problem.nonnegative) for s in set(problem.cardinalities)}
    chosen, total, looked = _best_packing(tables, problem.cardinalities, A.shape[0])
    components = tuple(_component(A, support) for support in _padded(chosen, problem))
    m = sum(problem.cardinalities)
    diagonal = np.sort(np.abs(problem.covariance.diagonal))[::-1]
    margin = 64 * m * EPS * float(diagonal[:m].sum()) + problem.covariance.rounding(m)
    bound = Bound("enumeration", total + SAFETY * margin)
    return Found(components, n_iter=looked, bounds=(bound,), info={"supports": count})


def _sizes(s: int, nonnegative: bool) -> range:
    return range(1, s + 1) if nonnegative else range(s, s + 1)


def _scored(A: np.ndarray, s: int, nonnegative: bool) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """The value of every support, the largest first."""
    values: list[np.ndarray] = []
    supports: list[tuple[int, ...]] = []
    for size in _sizes(s, nonnegative):
        combinations = itertools.combinations(range(A.shape[0]), size)
        while batch := list(itertools.islice(combinations, BATCH)):
            index = np.array(batch, dtype=np.intp)
            blocks = A[index[:, :, None], index[:, None, :]]
            if nonnegative:
                w, Q = np.linalg.eigh(blocks)
                lead = Q[:, :, -1]
                good = np.logical_or(
                    (lead >= -ONE_SIGN).all(axis=1), (lead <= ONE_SIGN).all(axis=1)
                )
                values.append(w[good, -1])
                supports.extend(itertools.compress(batch, good))
            else:
                values.append(np.linalg.eigvalsh(blocks)[:, -1])
                supports.extend(batch)
    everything = np.concatenate(values)
    order = np.argsort(-everything, kind="stable")
    return everything[order], [supports[i] for i in order]


def _best_packing(
    tables: dict[int, tuple[np.ndarray, list[tuple[int, ...]]]],
    cardinalities: tuple[int, ...],
    p: int,
) -> tuple[list[tuple[int, ...]], float, int]:
    """Disjoint supports, one per component, with the largest sum of values."""
    sizes = sorted(cardinalities)
    member = {s: _membership(supports, p) for s, (_, supports) in tables.items()}
    best: tuple[float, list[tuple[int, ...]]] = (-np.inf, [])
    looked = 0

    def descend(level: int, used: np.ndarray, start: int, total: float, chosen: list) -> None:
        nonlocal best, looked
        looked += 1
        if total > best[0]:
            best = (total, list(chosen))
        if level == len(sizes):
            return
        values, supports = tables[sizes[level]]
        rest = sum(float(tables[s][0][0]) for s in sizes[level + 1 :])
        # Components of one size are alike: take their supports in increasing position.
        first = start if level and sizes[level] == sizes[level - 1] else 0
        free = np.flatnonzero(~(member[sizes[level]][first:] & used).any(axis=1)) + first
        for i in free:
            if total + values[i] + rest <= best[0]:
                break
            taken = used | member[sizes[level]][i]
            descend(level + 1, taken, int(i) + 1, total + float(values[i]), [*chosen, supports[i]])

    descend(0, np.zeros(p, dtype=bool), 0, 0.0, [])
    return best[1], best[0], looked


def _membership(supports: list[tuple[int, ...]], p: int) -> np.ndarray:
    member = np.zeros((len(supports), p), dtype=bool)
    for row, support in enumerate(supports):
        member[row, list(support)] = True
    return member


def _padded(chosen: list[tuple[int, ...]], problem: Problem) -> Iterable[tuple[int, ...]]:
    """A component that can explain nothing still gets a feature of its own."""
    used = {i for support in chosen for i in support}
    spare = (i for i in range(problem.covariance.n_features) if i not in used)
    yield from chosen
    for _ in range(problem.k - len(chosen)):
        yield (next(spare),)


def _component(A: np.ndarray, support: tuple[int, ...]) -> Component:
    index = np.array(support, dtype=np.intp)
    weights = np.linalg.eigh(A[np.ix_(index, index)])[1][:, -1]
    return Component(index, weights)


METHOD = Method("enumerate", "exhaustive search", run)
