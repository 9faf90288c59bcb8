"""Bound "lowrank"; statement and proof: docs/methods/lowrank.rst.

A certified search on the sphere solves sparse PCA of V V' exactly for a V with few columns.

For V (p x r, rows v_i) and prices pi >= 0,

    max over |I| <= s of [ lambda_max(V_I'V_I) - pi(I) ]  =  max_{|c|=1} F(c),
    F(c) = sum of the s largest positive (v_i.c)^2 - pi_i |c|^2,

with max(v_i.c, 0) in place of v_i.c for nonnegative components (Papailiopoulos et al. 2013 and
Asteris et al. 2014 enumerate the p^r supports that can occur; Algorithm 3 of the latter samples
c). Here the sphere is covered by simplicial cones. Write c = sum_j a_j g_j with a >= 0 on the
cone of generators g_1..g_r, and let T_jk be the sum of the s largest positive (v_i.g_j)(v_i.g_k)
- pi_i g_j.g_k. Then

    F(c) <= a'T a   and   |c|^2 = a'G a,  G_jk = g_j.g_k,

because the best support may be chosen for each pair separately. So `L G - T` copositive proves F
<= L on the cone. The error is second order in the cone's width, and there is none when all pairs
choose the same rows, since then T = (V_I g)'(V_I g). Cones that prove nothing are halved, the
worst first.

Generators are dyadic points of the cross-polytope, so that halving is exact in floating point;
only F, T, G and the test are rounded, which costs `rounding_margin` in the bound and nothing
else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...numerics import margins
from ...numerics.margins import SAFETY, power_of_two, top_sum
from ...problem.problem import Options
from .cones import FINEST, Cones

# Beyond this rank the 2^(r-1) orthants alone are too many to be halved often enough.
MAX_RANK = 10


@dataclass(frozen=True)
class SphereResult:
    """`value <= max F <= bound`, with the cones that prove it."""

    value: float  # F(c), reached by `support`
    bound: float  # no unit vector has a larger F; rounding included
    level: float  # what every leaf of the tree was tested at, before rounding
    support: np.ndarray  # (<= s,) increasing rows
    c: np.ndarray  # (r,) unit vector
    oracle_calls: int  # selections of s rows: F at points, T at pairs of them
    cones: int
    tree: (
        np.ndarray
    )  # (cones,) int8, level by level: first * r + second of the halved edge, -1 for a leaf
    finished: bool  # bound <= value (1 + eps), up to rounding
    others: tuple[np.ndarray, ...] = ()  # supports at other good points, as many as asked for

    @property
    def gap(self) -> float:
        return self.bound / self.value - 1.0 if self.value > 0 else np.inf


@dataclass(frozen=True)
class Effort:
    """How far a search goes: to a relative accuracy eps plus `slack`, or to a number of cones."""

    eps: float = 1e-6
    slack: float = 0.0  # in units of F
    max_cones: int = 2_000_000
    starts: int = 30  # points that are climbed from before the first cone
    others: int = 0  # supports at other good points to return


def sphere_search(
    V: np.ndarray,
    s: int,
    *,
    nonnegative: bool = False,
    prices: np.ndarray | None = None,
    effort: Effort | None = None,
    options: Options | None = None,
) -> SphereResult:
    """Maximise F over the unit sphere.

    Stops early, with a bound that holds all the same, when its effort ends or the monitor says so.
    Long searches use several threads, and find the same for any number of them.
    """
    effort, options = effort or Effort(), options or Options()
    V = check_factor(V)
    p = V.shape[0]
    s = check_size(s, p)
    check_eps(effort.eps)
    prices = check_prices(prices, p)
    unit = power_of_two(float(np.abs(V).max(initial=0.0)))
    eps, slack = max(effort.eps, FINEST), effort.slack / unit**2
    search = Cones(V / unit, s, nonnegative, prices / unit**2, eps, slack)
    search.climb(effort.starts, options.seed)
    search.cover()
    finished = search.grow(effort.max_cones, options.monitor, options.n_jobs)
    level, tree = search.proof()
    c, support, value = search.answer()
    margin = rounding_margin(search.rows, s, level)
    return SphereResult(
        value=value * unit**2,
        bound=(level + 2 * SAFETY * margin) * unit**2,
        level=level * unit**2,
        support=support,
        c=c,
        oracle_calls=search.oracle_calls,
        cones=int(tree.size),
        tree=tree,
        finished=finished,
        others=search.others(effort.others) if effort.others else (),
    )


def rounding_margin(V: np.ndarray, s: int, level: float) -> float:
    """Bound the rounding error of F, T, G and the test of a cone, as a multiple of |c|^2 = 1.

    Each entry of L G - T is off by at most e |g_j||g_k|; generators share an orthant, so G >= 0 and
    sum_jk a_j a_k |g_j||g_k| <= r a'Ga.
    """
    r = V.shape[1]
    longest = top_sum(np.einsum("ij,ij->i", V, V), s)
    e = margins.cone_rows(r, s) * longest + margins.cone_level(r) * abs(level)
    return r * e + 1e-300


def check_factor(V: np.ndarray) -> np.ndarray:
    V = np.ascontiguousarray(V, dtype=np.float64)
    if V.ndim != 2 or V.shape[0] < 1 or V.shape[1] < 1:
        raise ValueError(f"V must be a p x r matrix with p, r >= 1, got shape {V.shape}")
    if not np.isfinite(V).all():
        raise ValueError("V contains NaN or infinity")
    check_rank(V.shape[1])
    return V


def check_rank(rank: int) -> int:
    if rank < 1:
        raise ValueError(f"rank must be at least 1, got rank={rank}")
    if rank > MAX_RANK:
        raise ValueError(
            f"rank={rank} is beyond the limit of {MAX_RANK}: the exact search takes about ten "
            "times longer with each rank; up to rank 7 it ends within seconds"
        )
    return rank


def check_size(s: int, p: int) -> int:
    if s < 1:
        raise ValueError(f"s must be at least 1 nonzero, got s={s}")
    return min(s, p)


def check_eps(eps: float) -> None:
    if not 0.0 < eps < 1.0:
        raise ValueError(f"eps must lie strictly between 0 and 1, got eps={eps}; 1e-6 is usual")


def check_prices(prices: np.ndarray | None, p: int) -> np.ndarray:
    if prices is None:
        return np.zeros(p)
    prices = np.asarray(prices, dtype=np.float64)
    if prices.shape != (p,) or not (prices >= 0).all() or not np.isfinite(prices).all():
        raise ValueError(f"prices must be {p} finite numbers >= 0, one per row of V")
    return prices
