"""Cheap bounds, computed once more: the mathematics is in the docstring of `certify.py`, the code
is not shared."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import comb
from typing import Any

import numpy as np

from .covariance import EPS, CheckedCovariance, Question, factorises
from .family import Family
from .records import Clip, Eigenvalues, Frobenius, Nothing

FACTOR_LIMIT = 4000  # order of the largest matrix that is factored
ENUMERATION_LIMIT = 1_000_000
MOST_PACKINGS = 1_000_000
BATCH = 20_000


def ky_fan(M: np.ndarray, k: int) -> float:
    """The k largest eigenvalues of M sum to at most this; a Cholesky factorisation is the proof."""
    n = M.shape[0]
    k = min(k, n)
    w, Q = np.linalg.eigh(M)
    nu = float(w[n - k])
    root = Q[:, n - k :] * np.sqrt(np.maximum(w[n - k :] - nu, 0.0))
    Z = root @ root.T
    size = float(np.abs(np.diagonal(M)).sum() + np.trace(Z)) + (n + 1) * abs(nu)
    delta = 2 * (n + k + 4) * EPS * size
    for slack in (2 * delta, 50 * delta, 1000 * delta):
        if factorises(Z - M + (nu + slack) * np.eye(n)):
            return k * (nu + slack + delta) + float(np.trace(Z)) * (1 + n * EPS)
    return float("inf")


def eigenvalues(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    k = min(question.k, cov.p)
    # which matrix was factored: their roundings differ
    if data.get("matrix", "features") == "samples":
        gram = cov.gram()
        if gram is None or gram.shape[0] > FACTOR_LIMIT:
            return float("inf")
        total = ky_fan(gram, k) + k * (cov.p + 2) * EPS * float(np.trace(gram))
    elif cov.p <= FACTOR_LIMIT:
        total = ky_fan(cov.dense(), k)
    else:
        return float("inf")
    return total + k * cov.rounding(cov.p)


def trace(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    m = question.n_nonzero
    total = float(np.sort(cov.diagonal)[::-1][:m].sum())
    return total * (1 + m * EPS) + m * psd_shift(cov) + cov.rounding(m)


def psd_shift(cov: CheckedCovariance) -> float:
    """A covariance of data is PSD; for a given matrix the smallest eigenvalue says what is
    missing."""
    if not cov.given:
        return 0.0
    n = cov.p
    A = cov.dense()
    margin = 2 * (n + 2) * EPS * (float(np.abs(cov.diagonal).sum()) + 1.0)
    shift = margin
    for _ in range(30):
        if factorises(A + shift * np.eye(n)):
            return shift + margin
        shift *= 3
    return float("inf")


def gershgorin(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    s, k = question.s_max, question.k
    p = cov.p
    std = np.sqrt(np.maximum(cov.diagonal, 0.0) + psd_shift(cov))
    limit = cov.diagonal + std * float(np.sort(std)[::-1][: s - 1].sum())
    order = np.argsort(-limit)
    known: list[float] = []
    position = 0
    # Only rows that could still be among the k largest are worth computing.
    while position < min(p, 4096):
        if len(known) >= k and sorted(known)[-k] >= limit[order[position]]:
            break
        block = order[position : position + 512]
        rows = cov.submatrix(block, np.arange(p))
        rows[np.arange(block.size), block] = 0.0
        rows = np.where(rows > 0, rows, 0.0) if question.nonnegative else np.abs(rows)
        sums = cov.diagonal[block] + -np.sort(-rows, axis=1)[:, : s - 1].sum(axis=1)
        known.extend(np.minimum(sums, limit[block]).tolist())
        position += block.size
    values = np.concatenate([known, limit[order[position:]]])
    total = float(np.sort(np.maximum(values, 0.0))[::-1][:k].sum()) * (1 + (s + k + 4) * EPS)
    roots = np.sort(np.sqrt(cov.weights))[::-1]
    row_error = cov.error_unit * float(roots[0] * roots[:s].sum())
    return total + k * row_error + cov.rounding(question.n_nonzero)


def clip(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    rho = float(data["rho"])
    if not (rho >= 0 and np.isfinite(rho)) or cov.p > FACTOR_LIMIT:
        return float("inf")
    A = cov.dense()
    off = A - np.diag(np.diagonal(A))
    if question.nonnegative:
        off = np.where(off > 0, off, 0.0)
    moved = np.minimum(np.maximum(off, -rho), rho)
    largest = -np.sort(-np.abs(moved), axis=1)[:, : question.s_max - 1]
    charge = largest.sum(axis=1) * (1 + (question.s_max + 8) * EPS)
    M = off - moved + np.diag(np.diagonal(A) + charge)
    return ky_fan(M, question.k) + cov.rounding(question.n_nonzero)


def frobenius(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    c = float(data["c"])
    # below zero, the two parts of the sum would cancel
    if not (c >= 0 and np.isfinite(c)) or cov.p > FACTOR_LIMIT:
        return float("inf")
    A = cov.dense()
    off = A - np.diag(np.diagonal(A))
    if question.nonnegative:
        off = np.where(off > 0, off, 0.0)
    squares = -np.sort(-(off**2), axis=1)[:, : question.s_max - 1].sum(axis=1)
    m = question.n_nonzero
    rho = np.sort((np.diagonal(A) - c) ** 2 + squares)[::-1][:m].sum()
    total = question.k * c + float(np.sqrt(question.k * rho))
    return total * (1 + (m + question.s_max + 16) * EPS) + cov.rounding(m)


def enumeration(data: dict[str, Any], cov: CheckedCovariance, question: Question) -> float:
    """Look at every support once more.

    Each counts with a bound that a Cholesky factorisation proves. A nonnegative component passes
    over supports T with a vector q of both signs: a positive solution x on T has the largest
    Rayleigh quotient of the plane of x and q, so that on the way to q an entry vanishes where the
    quotient is still no less than that of q, and what T has more than fewer features is known.
    """
    sizes = sorted(set(question.cardinalities))
    p = cov.p
    # full supports are all that matter only where there are enough features for them
    if sum(question.cardinalities) > p and not question.nonnegative:
        return float("inf")
    counts = {s: _sizes(s, question.nonnegative) for s in sizes}
    if sum(comb(p, t) for s in sizes for t in counts[s]) > ENUMERATION_LIMIT:
        return float("inf")
    A = cov.dense()
    A = (A + A.T) / 2
    scored = {s: _scored(A, counts[s], question.nonnegative) for s in sizes}
    tables = {s: (values, supports) for s, (values, supports, _) in scored.items()}
    best = _best_packing(tables, sorted(question.cardinalities), p, question.value)
    # one feature less at every step, down to one
    lost = sum((s - 1) * scored[s][2] for s in question.cardinalities)
    return (best + lost) * (1 + 2 * question.k * EPS) + cov.rounding(question.n_nonzero)


def _sizes(s: int, nonnegative: bool) -> list[int]:
    # A larger support never hurts a signed component; a nonnegative one may need a smaller one.
    return list(range(1, s + 1)) if nonnegative else [s]


def _scored(
    A: np.ndarray, sizes: list[int], nonnegative: bool
) -> tuple[np.ndarray, list[tuple[int, ...]], float]:
    """Proved bounds for all supports, the largest first; what is lost by passing over some."""
    values: list[float] = []
    supports: list[tuple[int, ...]] = []
    lost = 0.0
    for size in sizes:
        for batch in _batches(itertools.combinations(range(A.shape[0]), size)):
            index = np.array(batch)
            blocks = A[index[:, :, None], index[:, None, :]]
            if not nonnegative:
                bound = _proved_tops(blocks, np.linalg.eigvalsh(blocks)[:, -1])
                keep = np.ones(len(batch), dtype=bool)
            else:
                w, Q = np.linalg.eigh(blocks)
                lead = Q[:, :, -1]
                bound = _proved_tops(blocks, w[:, -1])
                keep = np.logical_or((lead >= -1e-7).all(axis=1), (lead <= 1e-7).all(axis=1))
                gap = bound - _rayleigh(blocks, lead)
                lost = max(lost, float(gap[~keep].max(initial=0.0)))
            values.extend(bound[keep].tolist())
            supports.extend(support for support, good in zip(batch, keep) if good)
    order = np.argsort(-np.array(values))
    return np.array(values)[order], [supports[i] for i in order], lost


def _proved_tops(blocks: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Upper bounds on the largest eigenvalues of small matrices, near the guesses."""
    m = blocks.shape[1]
    diagonal = np.diagonal(blocks, axis1=1, axis2=2)
    room = 2 * (m + 4) * EPS * (np.abs(diagonal).sum(axis=1) + (m + 1) * np.abs(guess) + 1e-20)
    for slack in (2 * room, 40 * room, 1000 * room):
        try:
            np.linalg.cholesky((guess + slack)[:, None, None] * np.eye(m) - blocks)
        except np.linalg.LinAlgError:
            continue
        return guess + slack + room
    return np.full(guess.shape, np.inf)


def _rayleigh(blocks: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """At most the Rayleigh quotients of the vectors."""
    m = blocks.shape[1]
    top = np.einsum("bi,bij,bj->b", vectors, blocks, vectors)
    error = 4 * (m + 4) * EPS * np.linalg.norm(blocks, axis=(1, 2))
    return top / np.einsum("bi,bi->b", vectors, vectors) - error


def _batches(items: Iterator[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    while batch := list(itertools.islice(items, BATCH)):
        yield batch


def _best_packing(
    tables: dict[int, tuple[np.ndarray, list[tuple[int, ...]]]],
    sizes: list[int],
    p: int,
    known: float,
) -> float:
    """The best sum of values of disjoint supports, or `known` if none is better.

    Infinity when there are more packings than anyone should have to look at.
    """
    if len(sizes) == 1:
        return float(tables[sizes[0]][0].max(initial=0.0))
    masks = {}
    for s, (_, supports) in tables.items():
        member = np.zeros((len(supports), p), dtype=bool)
        for row, support in enumerate(supports):
            member[row, list(support)] = True
        masks[s] = member
    heads = [float(tables[s][0][0]) for s in sizes]
    best = max(known, 0.0)
    # as many as may be looked at in a minute or so
    left = min(MOST_PACKINGS, int(4.1e10 / p / max(len(t[1]) for t in tables.values())))

    def descend(level: int, used: np.ndarray, start: int, total: float) -> None:
        nonlocal best, left
        left -= 1
        if level == len(sizes) or left < 0:
            best = max(best, total) if left >= 0 else float("inf")
            return
        values = tables[sizes[level]][0]
        rest = sum(heads[level + 1 :])
        first = start if level and sizes[level] == sizes[level - 1] else 0
        free = ~(masks[sizes[level]][first:] & used).any(axis=1)
        for i in np.flatnonzero(free) + first:
            if total + values[i] + rest <= best:
                break
            descend(level + 1, used | masks[sizes[level]][i], int(i) + 1, total + float(values[i]))
        # Fewer components than asked for is allowed: the rest explain nothing.
        best = max(best, total)

    descend(0, np.zeros(p, dtype=bool), 0, 0.0)
    return best


FAMILIES = (
    Family("trace", Nothing, trace, totals=True, raw=True),
    Family("eigenvalues", Eigenvalues, eigenvalues, totals=True, overlapping=True, raw=True),
    Family("gershgorin", Nothing, gershgorin, totals=True, raw=True),
    Family("frobenius", Frobenius, frobenius, totals=True, raw=True),
    Family("clip", Clip, clip, totals=True, raw=True),
    Family("enumeration", Nothing, enumeration, raw=True),
)
