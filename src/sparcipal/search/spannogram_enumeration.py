"""The spannogram's supports are enumerated, and its random points drawn, as in its papers.

Papailiopoulos, Dimakis & Korokythakis (2013) treat signed components, Asteris, Papailiopoulos &
Dimakis (2014) nonnegative ones. For a fixed unit c the best s-sparse x is the truncation of Vc;
over all c finitely many supports occur, and each of them occurs next to a point where r of the
curves |v_i.c| meet. For r = 2 these points are visited one by one.

Both papers assume general position. Here V is reduced to its rank, zero rows are dropped, and the
enumeration uses slightly perturbed rows, so that ties, repeated rows and r > rank work as well;
every candidate is scored with the unperturbed rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..bounds.lowrank.cones import best_rows
from ..bounds.lowrank.sphere import Effort, check_eps, sphere_search

Support = tuple[int, ...]
# Rows are perturbed by this fraction of their length, which is far above rounding and far below
# any difference of values that matters.
HAIR = 1e-10


def planar_supports(V: np.ndarray, s: int, nonnegative: bool) -> Iterator[Support]:
    """Yield every support that the truncation of Vc can have, for V of rank one or two.

    Other supports may be yielded too, and repetitions occur.
    """
    rows = nonzero_rows(V)
    if not rows.size:
        return
    if rows.size <= s and not nonnegative:
        yield tuple(rows.tolist())
        return
    W = in_general_position(V[rows])
    for support in (_rank_one if W.shape[1] == 1 else _rank_two)(W, s, nonnegative):
        yield tuple(sorted(rows[list(support)].tolist()))


def _rank_one(W: np.ndarray, s: int, nonnegative: bool) -> Iterator[Support]:
    """Yield the s largest entries, for each sign of c if `nonnegative`: the curves never meet."""
    for column in (W[:, 0], -W[:, 0]):
        size = column if nonnegative else np.abs(column)
        chosen = np.argsort(-size, kind="stable")[:s]
        yield tuple(chosen[size[chosen] > 0].tolist())


def _rank_two(W: np.ndarray, s: int, nonnegative: bool) -> Iterator[Support]:
    """Yield the supports at c = (sin f, cos f) between any two neighbouring crossings."""
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
    """Return the sorted angles in (-pi/2, pi/2] at which two of the curves W (sin f, cos f) meet.

    Signed curves meet where |w_i| = |w_j|, twice for every pair, nonnegative ones where w_i = w_j
    or w_i = 0.
    """
    i, j = np.triu_indices(len(W), 1)
    normals = [W[i] - W[j], W if nonnegative else W[i] + W[j]]
    a, b = np.concatenate(normals).T
    angles = np.arctan2(-b, a)  # a sin f + b cos f = 0
    angles[angles <= -np.pi / 2] += np.pi
    angles[angles > np.pi / 2] -= np.pi
    return np.unique(angles)


@dataclass(frozen=True)
class Net:
    """A random net found a value of at least F(c*) (1 - eps), with the given probability."""

    value: float
    support: np.ndarray
    c: np.ndarray
    samples: int
    probability: float


def random_net(
    V: np.ndarray, s: int, eps: float, rng: np.random.Generator, *, nonnegative: bool = True
) -> Net:
    """Return the best rank-one solution at random points (Algorithm 3 of Asteris et al.).

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
    """Return how many samples hold a (1 - eps)-good point with probability 1 - 1/p."""
    if r == 1:
        return 1
    from scipy.special import betainc  # here, as every fit would pay for the import

    hit = float(betainc((r - 1) / 2, 0.5, eps))
    return max(1, math.ceil(math.log(max(p, 2)) / hit))


def eliminate_rows(V: np.ndarray, s: int, value: float, nonnegative: bool) -> np.ndarray:
    """Return the rows, in order, that an optimal support can contain, given any `value` on V V'.

    A row i of an optimal support I satisfies OPT_s <= |v_i|^2 + OPT_(s-1), so a row for which the
    right side is below `value` is safely left out. A rule by norms alone would not be safe.
    """
    sizes = np.einsum("ij,ij->i", V, V)
    fewer = 0.0
    if s > 1:
        fewer = sphere_search(V, s - 1, nonnegative=nonnegative, effort=Effort(1e-3)).bound
    return np.flatnonzero(sizes * (1 + 1e-12) + fewer >= value * (1 - 1e-12))


def nonzero_rows(V: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.abs(V).max(axis=1, initial=0.0) > 0)


def in_general_position(V: np.ndarray) -> np.ndarray:
    """Return V in the coordinates of its own row space, with slightly perturbed rows.

    It has as many columns as the numerical rank of V.
    """
    values, basis = np.linalg.svd(V, full_matrices=False)[1:]
    rank = max(1, int((values > 1e-12 * values[0]).sum()))
    W = V @ basis[:rank].T
    noise = np.random.default_rng(0).standard_normal(W.shape)
    return W + HAIR * np.linalg.norm(W, axis=1, keepdims=True) * noise
