"""The enumeration of the papers for every rank, p^r steps: what the search over cones must find."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sparcipal.search.spannogram_enumeration import (
    Support,
    in_general_position,
    nonzero_rows,
    planar_supports,
)


@dataclass(frozen=True)
class Enumerated:
    """The best candidate of an enumeration."""

    value: float  # of x on V V'
    support: np.ndarray  # increasing
    weights: np.ndarray  # unit norm
    candidates: int


def spannogram(
    V: np.ndarray, s: int, *, nonnegative: bool = False, same_sign: bool = False
) -> Enumerated:
    """The optimum on V V' by looking at every candidate support.

    `same_sign` says that V V' has no negative entry: then x >= 0 without loss (Perron), and a
    factor 2^(r-1) of sign patterns is saved.
    """
    candidates = set(candidate_supports(V, s, nonnegative or same_sign))
    best = Enumerated(0.0, np.zeros(1, dtype=np.intp), np.ones(1), len(candidates))
    for support in sorted(candidates):
        rows = np.array(support, dtype=np.intp)
        c = best_direction(V[rows]) if nonnegative else _leading(V[rows])
        x = V[rows] @ c
        value = float(x @ x)
        if value > best.value:
            best = Enumerated(value, rows, x / np.linalg.norm(x), len(candidates))
    return best


def candidate_supports(V: np.ndarray, s: int, nonnegative: bool = False) -> Iterator[Support]:
    """Every support that the truncation of Vc can have, and perhaps others; repetitions occur."""
    rows = nonzero_rows(V)
    W = in_general_position(V[rows]) if rows.size else V
    if not rows.size or W.shape[1] <= 2 or (rows.size <= s and not nonnegative):
        yield from planar_supports(V, s, nonnegative)
        return
    for support in _rank_many(W, s, nonnegative):
        yield tuple(sorted(rows[list(support)].tolist()))


def _rank_many(W: np.ndarray, s: int, nonnegative: bool) -> Iterator[Support]:
    """Every r rows and every pattern of signs: a point where they tie, and all ways to break the
    tie.
    """
    p, r = W.shape
    if nonnegative:
        W = np.vstack([W, np.zeros(r)])
        patterns = [np.ones(r - 1)]
    else:
        patterns = [np.array(b) for b in itertools.product((1.0, -1.0), repeat=r - 1)]
    for tied in itertools.combinations(range(len(W)), r):
        for signs in patterns:
            equations = W[tied[0]] - signs[:, None] * W[list(tied[1:])]
            c = _null_vector(equations)
            for height in (W @ c, -(W @ c)) if nonnegative else (np.abs(W @ c),):
                yield from _broken_ties(height, tied, s, p)


def _broken_ties(height: np.ndarray, tied: Support, s: int, p: int) -> Iterator[Support]:
    """The supports around a point where the rows `tied` are level; index p is the zero row."""
    zero = p in tied
    level = 0.0 if zero else float(height[list(tied)].mean())
    movable = [i for i in tied if i < p]
    others = np.setdiff1d(np.arange(p), movable)
    above = others[height[others] > level]
    above = above[np.argsort(-height[above], kind="stable")][:s].tolist()
    room = min(s - len(above), len(movable))
    # Next to the zero level a row may drop out without another taking its place.
    for size in range(room + 1) if zero else (room,):
        for chosen in itertools.combinations(movable, size):
            yield (*above, *chosen)


def best_direction(R: np.ndarray) -> np.ndarray:
    """The unit c that maximises |Rc| subject to Rc >= 0, for R (m x r); zero if there is none.

    If the leading right singular vector is feasible, with one of its signs, it is the answer. If
    not, some inequality is active at the answer: try each of them in the space orthogonal to its
    row.
    """
    return _best_direction(R, np.eye(R.shape[1]), 1e-10 * np.abs(R).max(initial=0.0))


def _best_direction(R: np.ndarray, basis: np.ndarray, tiny: float) -> np.ndarray:
    inner = R @ basis
    lead = basis @ _leading(inner)
    for c in (lead, -lead):
        if (R @ c >= -tiny).all():
            return c
    best, answer = 0.0, np.zeros(R.shape[1])
    if basis.shape[1] == 1:
        return answer
    for row in inner:
        length = np.linalg.norm(row)
        if length <= tiny:
            continue
        smaller = basis @ np.linalg.svd((row / length)[None, :])[2][1:].T
        c = _best_direction(R, smaller, tiny)
        value = float(((R @ c) ** 2).sum())
        if value > best:
            best, answer = value, c
    return answer


def _leading(R: np.ndarray) -> np.ndarray:
    return np.linalg.eigh(R.T @ R)[1][:, -1]


def _null_vector(equations: np.ndarray) -> np.ndarray:
    """The unit vector orthogonal to the r - 1 rows; rows of very different length count alike."""
    length = np.linalg.norm(equations, axis=1, keepdims=True)
    return np.linalg.svd(equations / np.where(length > 0, length, 1.0))[2][-1]
