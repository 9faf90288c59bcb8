"""The spannogram as its papers write it down: readable, exact, for small cases and for comparison.

Papailiopoulos, Dimakis & Korokythakis (2013), signed components, and Asteris, Papailiopoulos &
Dimakis (2014), nonnegative ones. For a fixed unit c the best s-sparse x is the truncation of Vc;
over all c only so many supports occur, and each of them occurs next to a point where r of the
curves |v_i.c| meet.

Both papers assume general position. Here V is reduced to its rank, zero rows are dropped, and the
enumeration sees rows moved by a hair, so that ties, repeated rows and r > rank work as well; every
candidate is scored with the rows as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..bounds.lowrank.sphere import best_rows, check_eps, sphere_search

Support = tuple[int, ...]
# Rows are moved by this fraction of their length: far above rounding, far below any gap that
# matters.
HAIR = 1e-10


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
    rows = np.flatnonzero(np.abs(V).max(axis=1, initial=0.0) > 0)
    if not rows.size:
        return
    W = _general_position(reduce_rank(V[rows]))
    inside = {1: _rank_one, 2: _rank_two}.get(W.shape[1], _rank_many)
    if rows.size <= s and not nonnegative:
        yield tuple(rows.tolist())
        return
    for support in inside(W, s, nonnegative):
        yield tuple(sorted(rows[list(support)].tolist()))


def _rank_one(W: np.ndarray, s: int, nonnegative: bool) -> Iterator[Support]:
    """One curve per row that never meet: the s largest entries, of either sign if signs count."""
    for column in (W[:, 0], -W[:, 0]):
        size = column if nonnegative else np.abs(column)
        chosen = np.argsort(-size, kind="stable")[:s]
        yield tuple(chosen[size[chosen] > 0].tolist())


def _rank_two(W: np.ndarray, s: int, nonnegative: bool) -> Iterator[Support]:
    """Sweep c = (sin f, cos f) through the crossings in angular order; one support between any
    two.
    """
    angles = crossings(W, nonnegative)
    middles = np.append(
        (angles[1:] + angles[:-1]) / 2, angles[-1] + (angles[0] + np.pi - angles[-1]) / 2
    )
    for f in middles:
        height = W @ np.array([math.sin(f), math.cos(f)])
        for side in (height, -height) if nonnegative else (np.abs(height),):
            chosen = np.argpartition(-side, s - 1)[:s] if s < len(side) else np.arange(len(side))
            yield tuple(chosen[side[chosen] > 0].tolist())


def crossings(W: np.ndarray, nonnegative: bool) -> np.ndarray:
    """Angles in (-pi/2, pi/2] at which two of the curves W (sin f, cos f) meet, in order.

    Signed: |w_i| = |w_j|, two crossings for every pair. Nonnegative: w_i = w_j or w_i = 0.
    """
    i, j = np.triu_indices(len(W), 1)
    normals = [W[i] - W[j], W if nonnegative else W[i] + W[j]]
    a, b = np.concatenate(normals).T
    angles = np.arctan2(-b, a)  # a sin f + b cos f = 0
    angles[angles <= -np.pi / 2] += np.pi
    angles[angles > np.pi / 2] -= np.pi
    return np.unique(angles)


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


@dataclass(frozen=True)
class Net:
    """What a random net found: F(c*) (1 - eps) <= value with the given probability."""

    value: float
    support: np.ndarray
    c: np.ndarray
    samples: int
    probability: float


def random_net(
    V: np.ndarray, s: int, eps: float, rng: np.random.Generator, *, nonnegative: bool = True
) -> Net:
    """Algorithm 3 of Asteris et al.: the best rank-one solution at random points of the sphere.

    A point at angle t from the best one has F >= cos(t)^2 max F. Both c and -c are tried, so a
    sample with sin(t)^2 <= eps has the probability I_eps((r-1)/2, 1/2), the regularised beta
    function, and log(p) over that many samples miss it with probability at most 1/p.
    """
    check_eps(eps)
    p, r = V.shape
    samples = net_size(p, r, eps)
    best, answer = -1.0, (np.zeros(0, dtype=np.intp), np.eye(r)[0])
    for point in rng.standard_normal((samples, r)):
        c = point / np.linalg.norm(point)
        for side in (c, -c) if nonnegative else (c,):
            value, chosen = best_rows(V, s, nonnegative, np.zeros(p), side)
            if value > best:
                best, answer = value, (np.sort(chosen), side)
    # x is the truncated Vc: |V'x|^2 is what the paper scores, and it is at least F(c).
    x = V[answer[0]] @ answer[1]
    score = float(((V[answer[0]].T @ x) ** 2).sum() / (x @ x)) if x.any() else 0.0
    return Net(score, answer[0], answer[1], samples, 1.0 - 1.0 / p)


def net_size(p: int, r: int, eps: float) -> int:
    """Samples after which the net holds a (1 - eps)-good point with probability 1 - 1/p."""
    if r == 1:
        return 1
    from scipy.special import betainc  # here, as every fit would pay for the import

    hit = float(betainc((r - 1) / 2, 0.5, eps))
    return max(1, math.ceil(math.log(max(p, 2)) / hit))


def eliminate_rows(
    V: np.ndarray, s: int, value: float, *, nonnegative: bool = False, eps: float = 1e-3
) -> np.ndarray:
    """The rows that an optimal support can contain, given any known `value` on V V' (increasing
    indices).

    A row i of an optimal support I satisfies OPT_s <= |v_i|^2 + OPT_(s-1): what it cannot add, it
    is not needed for. This is provably safe; a rule by norms alone is not.
    """
    sizes = np.einsum("ij,ij->i", V, V)
    fewer = 0.0
    if s > 1:
        fewer = sphere_search(V, s - 1, nonnegative=nonnegative, eps=eps).bound
    return np.flatnonzero(sizes * (1 + 1e-12) + fewer >= value * (1 - 1e-12))


def reduce_rank(V: np.ndarray) -> np.ndarray:
    """V in the coordinates of its own row space: as many columns as its numerical rank."""
    values, basis = np.linalg.svd(V, full_matrices=False)[1:]
    rank = max(1, int((values > 1e-12 * values[0]).sum()))
    return V @ basis[:rank].T


def _general_position(W: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal(W.shape)
    return W + HAIR * np.linalg.norm(W, axis=1, keepdims=True) * noise


def _leading(R: np.ndarray) -> np.ndarray:
    return np.linalg.eigh(R.T @ R)[1][:, -1]


def _null_vector(equations: np.ndarray) -> np.ndarray:
    """The unit vector orthogonal to the r - 1 rows; rows of very different length count alike."""
    length = np.linalg.norm(equations, axis=1, keepdims=True)
    return np.linalg.svd(equations / np.where(length > 0, length, 1.0))[2][-1]
