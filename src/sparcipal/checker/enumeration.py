"""Every support once more (docs/methods/enumeration.rst)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from math import comb
from typing import Any

import numpy as np

from .arithmetic import Arithmetic, Numbers
from .budget import Budget
from .family import Case, Family
from .records import Nothing

BATCH = 20_000
ENTRY = 64  # bytes of an entry of a batch, with those of its factors and of what is left of it
KEPT = 300  # bytes of a support that is kept, beside its features

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
    for s in counts:
        budget.work(sum(comb(p, t) * 1000 * t * t for t in counts[s]), "all supports")
    alone = question.k == 1
    entry = ENTRY * (8 if ar.exact else 1)
    batches = max(min(comb(p, t), BATCH) * t * t for s in counts for t in counts[s])
    kept = 0 if alone else sum(comb(p, t) * (KEPT + 8 * t + p) for s in counts for t in counts[s])
    budget.memory(batches * entry + kept, "all supports")
    A = case.entries(np.arange(p))
    # the anchors of several components are left aside: there are fewer packings with them
    anchors = set(question.forced.tolist()) if alone else set()

    def admits(support: tuple[int, ...]) -> bool:
        return len(anchors.union(support)) <= sizes[0]

    wanted = admits if anchors else None
    scored = {s: _scored(A, counts[s], question.nonnegative, ar, alone, wanted) for s in counts}
    tables = {s: (values, supports) for s, (values, supports, _) in scored.items()}
    best = _best_packing(tables, sorted(sizes), p, question.value, ar, budget)
    # one feature less at every step, down to one
    lost = sum((s - 1) * scored[s][2] for s in sizes)
    return (best + lost) * (1 + 2 * question.k * ar.eps) + cov.rounding(question.n_nonzero)


def _scored(
    A: np.ndarray,
    sizes: Any,
    nonnegative: bool,
    ar: Arithmetic,
    best: bool = False,
    admits: Callable[[tuple[int, ...]], bool] | None = None,
) -> tuple[list[Any], list[tuple[int, ...]], Numbers]:
    """Proved bounds for all supports (that `admits` admits), or the `best` one alone, the largest
    first; what is lost by passing over some."""
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
    """Upper bounds on the largest eigenvalues of small matrices, near the guesses; infinity where
    none is proved."""
    m = blocks.shape[1]
    near = ar.floats(blocks)
    size = np.abs(np.diagonal(near, axis1=1, axis2=2)).sum(axis=1) + (m + 1) * np.abs(guess)
    unit = 2 * (m + 4) * (size + 1e-20)
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
    """At most the Rayleigh quotients of the vectors."""
    m, v = blocks.shape[1], ar.array(vectors)
    top = ((blocks * v[:, None, :]).sum(axis=2) * v).sum(axis=1) / (v * v).sum(axis=1)
    return top - 4 * (m + 4) * ar.eps * ar.sqrt((blocks * blocks).sum(axis=(1, 2)))


def _batches(items: Iterator[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    while batch := list(itertools.islice(items, BATCH)):
        yield batch


def _best_packing(
    tables: dict[int, Table],
    sizes: list[int],
    p: int,
    known: float,
    ar: Arithmetic,
    budget: Budget,
) -> Numbers:
    """The best sum of bounds of disjoint supports, or `known` if none is better."""
    if len(sizes) == 1:
        return ar.maximum(tables[sizes[0]][0][0], 0.0)
    masks = {}
    for s, (_, supports) in tables.items():
        masks[s] = np.zeros((len(supports), p), dtype=bool)
        for row, support in enumerate(supports):
            masks[s][row, list(support)] = True
    heads = [tables[s][0][0] for s in sizes]
    best = ar.maximum(known, 0.0)

    def descend(level: int, used: np.ndarray, start: int, total: Numbers) -> None:
        nonlocal best
        # Fewer components than asked for are allowed: the rest explain nothing.
        best = ar.maximum(best, total)
        if level == len(sizes):
            return
        values, masked = tables[sizes[level]][0], masks[sizes[level]]
        rest = sum(heads[level + 1 :])
        first = start if level and sizes[level] == sizes[level - 1] else 0
        budget.work(1000 + masked.size // 4, "packings of supports")
        free = ~(masked[first:] & used).any(axis=1)
        for i in np.flatnonzero(free) + first:
            if total + values[i] + rest <= best:
                break
            descend(level + 1, used | masked[i], int(i) + 1, total + values[i])

    descend(0, np.zeros(p, dtype=bool), 0, 0.0)
    return best


FAMILIES = (Family("enumeration", Nothing, recheck),)
