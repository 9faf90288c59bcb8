"""Every support once more (docs/methods/enumeration.rst)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .arithmetic import Arithmetic, Numbers
from .budget import Budget, choices, require
from .covariance import Question
from .family import Case, Family
from .margins import term
from .records import Nothing

BATCH = 20_000
ENTRY = 64  # bytes of an entry of a batch, with those of its factors and of what is left of it
KEPT = 300  # bytes of a support that is kept, beside its features

# The most nonzeros of a component, its anchors, and features it may not use.
Kind = tuple[int, tuple[int, ...], tuple[int, ...]]
Table = tuple[list[Any], list[tuple[int, ...]]]  # bounds and supports, the largest first


def recheck(record: Nothing, case: Case) -> Numbers:
    """Look at every support.

    Each counts with a bound that an elimination proves. A nonnegative component passes over
    supports T with a vector q of both signs: a positive solution x on T has the largest Rayleigh
    quotient of the plane of x and q, so that on the way to q an entry vanishes where the quotient
    is still no less than that of q, and what T has more than fewer features is known.
    """
    cov, question, ar, budget = case
    p, sizes = cov.p, question.cardinalities
    # full supports are all that matter only where there are enough features for them
    if sum(sizes) > p and not question.nonnegative:
        return float("inf")
    # A larger support never hurts a signed component; a nonnegative one may need a smaller one.
    counts = {s: range(1, s + 1) if question.nonnegative else [s] for s in set(sizes)}
    kinds = _kinds(question)
    for kind in set(kinds):
        budget.work(sum(choices(p, t) * 1000 * t * t for t in counts[kind[0]]), "all supports")
    alone = question.k == 1
    entry = ENTRY * (8 if ar.exact else 1)
    batches = max(min(choices(p, t), BATCH) * t * t for s in counts for t in counts[s])
    every = [t for kind in set(kinds) for t in counts[kind[0]]]
    kept = 0 if alone else sum(choices(p, t) * (KEPT + 8 * t + p) for t in every)
    budget.memory(batches * entry + kept, "all supports")
    A = case.entries(np.arange(p))
    scored = {
        kind: _scored(A, counts[kind[0]], question.nonnegative, ar, alone, _admits(kind))
        for kind in set(kinds)
    }
    tables = {kind: (values, supports) for kind, (values, supports, _) in scored.items()}
    best = _best_packing(tables, sorted(kinds), p, question.value, ar, budget)
    # one feature less at every step, down to one
    lost = sum((kind[0] - 1) * scored[kind][2] for kind in kinds)
    return (best + lost) * (1 + 2 * question.k * ar.eps) + cov.rounding(question.n_nonzero)


def _kinds(question: Question) -> list[Kind]:
    """Return the size of each component, its anchors, and those of others, which it may not use."""
    anchors = question.include or ((),) * question.k
    require(len(anchors) == question.k, "there is not one list of anchors per component")
    every = {feature for own in anchors for feature in own}
    return [
        (s, tuple(sorted(own)), tuple(sorted(every - set(own))))
        for s, own in zip(question.cardinalities, anchors)
    ]


def _admits(kind: Kind) -> Callable[[tuple[int, ...]], bool] | None:
    """Return whether a support leaves room for the anchors of a component and those of the
    others."""
    size, own, others = kind[0], set(kind[1]), set(kind[2])
    if not own and not others:
        return None
    return lambda support: len(own.union(support)) <= size and others.isdisjoint(support)


def _scored(
    A: np.ndarray,
    sizes: Any,
    nonnegative: bool,
    ar: Arithmetic,
    best: bool = False,
    admits: Callable[[tuple[int, ...]], bool] | None = None,
) -> tuple[list[Any], list[tuple[int, ...]], Numbers]:
    """Return proved bounds for all supports (that `admits` admits), or the `best` one alone, the
    largest first; and what is lost by passing over some."""
    values: list[Any] = []
    supports: list[tuple[int, ...]] = []
    lost = ar.number(0.0)
    for size in sizes:
        supports_of_size = itertools.combinations(range(A.shape[0]), size)
        for batch in _batches(filter(admits, supports_of_size) if admits else supports_of_size):
            index = np.array(batch)
            blocks = A[index[:, :, None], index[:, None, :]]
            w, Q = np.linalg.eigh(ar.floats(blocks))
            bound = proved_tops(blocks, w[:, -1], ar)
            keep = np.ones(len(batch), dtype=bool)
            if nonnegative:
                lead = Q[:, :, -1]
                keep[:] = (lead >= -1e-7).all(axis=1) | (lead <= 1e-7).all(axis=1)
                if not keep.all():
                    gap = bound[~keep] - _rayleigh(blocks[~keep], lead[~keep], ar)
                    lost = ar.maximum(lost, ar.top(gap, 1)[0])
            values.extend(bound[keep])
            supports.extend(support for support, good in zip(batch, keep) if good)
            if best and values:
                first = max(range(len(values)), key=lambda i: ar.high(values[i]))
                values, supports = [values[first]], [supports[first]]
    highs = [ar.high(value) for value in values]
    order = sorted(range(len(highs)), key=highs.__getitem__, reverse=True)
    return [highs[i] for i in order], [supports[i] for i in order], lost


def proved_tops(blocks: np.ndarray, guess: np.ndarray, ar: Arithmetic) -> np.ndarray:
    """Return upper bounds on the largest eigenvalues of small matrices, near the guesses; infinity
    where none is proved."""
    m = blocks.shape[1]
    near = ar.floats(blocks)
    size = np.abs(np.diagonal(near, axis1=1, axis2=2)).sum(axis=1) + (m + 1) * np.abs(guess)
    unit = term("support", m) * (size + 1e-20)
    out = np.full(guess.shape, np.inf, dtype=blocks.dtype)
    left = np.arange(len(blocks))
    for factor in (3, 41, 1001):
        t = guess[left] + factor * ar.step * unit[left]
        shifted = -blocks[left]
        shifted[:, np.arange(m), np.arange(m)] += (t - ar.eps * unit[left])[:, None]
        good = ar.eliminates(shifted)
        out[left[good]] = t[good]
        left = left[~good]
        if left.size == 0:
            break
    return out


def _rayleigh(blocks: np.ndarray, vectors: np.ndarray, ar: Arithmetic) -> Numbers:
    """Return at most the Rayleigh quotients of the vectors."""
    m, v = blocks.shape[1], ar.array(vectors)
    top = ((blocks * v[:, None, :]).sum(axis=2) * v).sum(axis=1) / (v * v).sum(axis=1)
    return top - 4 * (m + 4) * ar.eps * ar.sqrt((blocks * blocks).sum(axis=(1, 2)))


def _batches(items: Iterator[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    while batch := list(itertools.islice(items, BATCH)):
        yield batch


def _best_packing(
    tables: dict[Kind, Table],
    kinds: list[Kind],
    p: int,
    known: float,
    ar: Arithmetic,
    budget: Budget,
) -> Numbers:
    """Return the best sum of bounds of disjoint supports, or `known` if none is better."""
    if len(kinds) == 1:
        return ar.maximum(tables[kinds[0]][0][0], 0.0)
    masks = {}
    for kind, (_, supports) in tables.items():
        masks[kind] = np.zeros((len(supports), p), dtype=bool)
        for row, support in enumerate(supports):
            masks[kind][row, list(support)] = True
        masks[kind][:, list(kind[1])] = True  # an anchor takes a place whatever its loading is
    heads = [tables[kind][0][0] for kind in kinds]
    best = ar.maximum(known, 0.0)

    def descend(level: int, used: np.ndarray, start: int, total: Numbers) -> None:
        nonlocal best
        # Fewer components than asked for are allowed: the rest explain nothing.
        best = ar.maximum(best, total)
        if level == len(kinds):
            return
        values, masked = tables[kinds[level]][0], masks[kinds[level]]
        # Components of one kind come in the order of the table: later ones are worth no more.
        end = level + kinds[level:].count(kinds[level])
        alike, rest = end - level - 1, sum(heads[end:])
        first = start if level and kinds[level] == kinds[level - 1] else 0
        budget.work(1000 + masked.size // 4, "packings of supports")
        free = ~(masked[first:] & used).any(axis=1)
        for i in np.flatnonzero(free) + first:
            if total + values[i] + alike * ar.maximum(values[i], 0.0) + rest <= best:
                break
            descend(level + 1, used | masked[i], int(i) + 1, total + values[i])

    descend(0, np.zeros(p, dtype=bool), 0, 0.0)
    return best


FAMILIES = (Family("enumeration", Nothing, recheck),)
