"""Cheap bounds, and all supports one by one; docs/methods/cheap.rst and enumeration.rst."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from .algebra import Values, best_packing, defect, fan, largest, worth
from .proving import EVERY, bound, counted, zeros
from .question import Ask
from .reading import Matrix, exact, need


@bound("trace", EVERY, totals=True)
def prove_trace(data: dict, ask: Ask, level: Fraction) -> bool:
    """The largest variances, as many as there are nonzeros."""
    short = defect(ask.A) * ask.m if ask.given else 0
    return largest([ask.A[i][i] for i in range(ask.p)], ask.m) + short <= level


def partners(row: list[Fraction], i: int, count: int) -> Fraction:
    """The largest magnitudes of row i off the diagonal."""
    return largest([abs(x) for j, x in enumerate(row) if j != i], count)


@bound("gershgorin", totals=True)
def prove_gershgorin(data: dict, ask: Ask, level: Fraction) -> bool:
    """Every component has a row of its own."""
    rows = [row[i] + partners(row, i, ask.s - 1) for i, row in enumerate(counted(ask))]
    return largest(rows, ask.k) <= level


@bound("frobenius", totals=True)
def prove_frobenius(data: dict, ask: Ask, level: Fraction) -> bool:
    """The root is avoided: squares are compared."""
    c = exact(data["c"])
    rho = [
        (row[i] - c) ** 2 + partners([x * x for x in row], i, ask.s - 1)
        for i, row in enumerate(counted(ask))
    ]
    left = level - ask.k * c
    return c >= 0 and left >= 0 and left**2 >= ask.k * largest(rho, ask.m)


def clipped(ask: Ask, rho: Fraction) -> Matrix:
    """The covariance, its entries up to rho traded for charges."""
    A, span = counted(ask), range(ask.p)
    need(rho >= 0, "a negative threshold")
    U = [[max(-rho, min(rho, A[i][j])) if i != j else Fraction(0) for j in span] for i in span]
    M = [[A[i][j] - U[i][j] for j in span] for i in span]
    for i in span:
        M[i][i] += partners(U[i], i, ask.s - 1)
    return M


@bound("clip", totals=True)
def prove_clip(data: dict, ask: Ask, level: Fraction) -> bool:
    """The k largest eigenvalues of what clipping leaves."""
    return fan(clipped(ask, exact(data["rho"])), ask.k, level, zeros(ask))


@bound("eigenvalues", EVERY, totals=True)
def prove_eigenvalues(data: dict, ask: Ask, level: Fraction) -> bool:
    """Which of the two matrices was factored makes no difference to exact numbers.

    Where supports overlap, a matrix that was given is made positive semidefinite.
    """
    need(data.get("matrix", "features") in ("features", "samples"), "no such matrix")
    lacking = defect(ask.A) if ask.given and ask.overlapping else Fraction(0)
    return fan(ask.A, ask.k, level - ask.k * lacking, zeros(ask))


def table_of(ask: Ask, s: int, anchors, short: bool) -> list[tuple[Fraction, frozenset]]:
    """The supports of at most s features that contain the anchors, the best first.

    Where signs are free and there is room for all components, the largest supports are enough.
    """
    values, free = Values(ask.A, ask.nonnegative), sorted(set(range(ask.p)) - anchors)
    most = min(s - len(anchors), len(free))
    table = [
        (values.of(tuple(sorted({*T, *anchors}))), frozenset(T) | anchors)
        for size in range(0 if short else most, most + 1)
        for T in combinations(free, size)
        if T or anchors
    ]
    table += [(Fraction(0), frozenset())] if short and not anchors else []
    return sorted(table, key=lambda pair: -pair[0])


def shares(total: int, k: int, most: int):
    """The ways to share a total among k components, the largest first."""
    if k == 0:
        yield ()
    for s in range(min(most, total - k + 1), 0, -1) if k else ():
        yield from ((s, *rest) for rest in shares(total - s, k - 1, s))


@bound("enumeration", totals=True)
def prove_enumeration(data: dict, ask: Ask, level: Fraction) -> bool:
    """All supports; of several components the best disjoint ones."""
    if ask.k == 1:
        free = sorted(set(range(ask.p)) - ask.anchors)
        return all(
            worth(ask.A, sorted(ask.anchors.union(T)), level, ask.nonnegative)
            for T in combinations(free, min(ask.s - len(ask.anchors), len(free)))
        )
    wanted = [tuple(sorted(ask.sizes, reverse=True)) if not ask.include else ask.sizes]
    if ask.total is not None:
        wanted = list(shares(ask.total, ask.k, ask.s))
    include = ask.include or (frozenset(),) * ask.k
    short = ask.nonnegative or sum(wanted[0]) > ask.p or any(include)
    for sizes in wanted:
        tables = {one: table_of(ask, *one, short) for one in set(zip(sizes, include))}
        best = best_packing([tables[one] for one in zip(sizes, include)])
        if best is not None and best > level:
            return False
    return True
