"""Ellipsoids and sketches; docs/methods/ellipsoid.rst and lowrank.rst."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

from .algebra import below, block, fan_value, grows, inverse, largest, psd
from .cheap import clipped
from .proving import EVERY, bound
from .question import Ask
from .reading import Matrix, exact, need, places, vector


@bound("ellipsoid")
def prove_ellipsoid(data: dict, ask: Ask, level: Fraction) -> bool:
    """f'(T + ww')^-1 f of every column, by the inverse of T and the formula of Sherman."""
    T = [vector(row, data["order"]) for row in data["T"]]
    W = [vector(row, data["order"]) for row in data["W"]]
    named = dict(zip(places(data["features"], ask.p, 0), W))
    need(len(named) == len(W) and len(T) == data["order"] == ask.n, "the order of an ellipsoid")
    need(bool(ask.columns) and [list(row) for row in zip(*T)] == T and psd(T), "an ellipsoid")
    inv = inverse(T)[1]
    need(bool(inv), "a flat ellipsoid")

    def form(x, y) -> Fraction:
        return sum(a * sum(map(Fraction.__mul__, row, y)) for a, row in zip(x, inv))

    stretch = Fraction(1)
    for j, f in enumerate(ask.columns):
        size = form(f, f)
        if j in named:
            size -= form(named[j], f) ** 2 / (1 + form(named[j], named[j]))
        stretch = max(stretch, size / (ask.n * ask.unit))
    span = range(ask.n)
    outer = [[sum(w[a] * w[b] for w in W) for b in span] for a in span]
    total = Fraction(0)
    for s in ask.sizes:
        M = [[s * T[a][b] + outer[a][b] for b in span] for a in span]
        total += stretch * fan_value(M, 1)
    return total <= level


@bound("lowrank", EVERY)
def prove_lowrank(data: dict, ask: Ask, level: Fraction) -> bool:
    """A sketch A <= shift I + VV', and a level that no direction exceeds on any cone."""
    A, k, p = ask.A, ask.k, ask.p
    V = [[exact(x) for x in row] for row in data["V"]]
    need(len(V) == p and len({len(row) for row in V}) == 1, "the shape of the sketch")
    need(data["s"] >= min(ask.s, p), "a sketch for fewer nonzeros")
    need(ask.nonnegative or not data["nonnegative"], "a sketch for nonnegative components")
    prices = vector(data.get("prices", [0.0] * p), p, 0)
    need(not any(prices) or not ask.overlapping, "prices where supports may overlap")
    if "clip" in data:
        A = clipped(ask, exact(data["clip"]))
    shift, top = exact(data["shift"]), exact(data["level"])
    slack = (level - sum(prices) - k * (shift + top)) / (2 * k)
    need(slack >= 0, "sketch and level sum to more")
    left = [[A[i][j] - sum(x * y for x, y in zip(V[i], V[j])) for j in range(p)] for i in range(p)]
    need(below(left, shift + slack), "the sketch")
    norms = [sum(x * x for x in v) - c for v, c in zip(V, prices)]
    if largest(norms, data["s"]) <= top + slack:  # (v.c)^2 is at most |v|^2 in every direction
        return True
    r, codes = len(V[0]), iter(data["tree"])
    signs = [c for c in product((1, -1), repeat=r) if data["nonnegative"] or c[0] > 0]
    cones = [[[Fraction(c[i] * (i == j)) for j in range(r)] for i in range(r)] for c in signs]
    while cones:
        halves = []
        for cone in cones:
            code = next(codes, None)
            need(code is not None and -1 <= code < r * r, "the tree of cones")
            if code == -1:
                need(cone_holds(cone, V, prices, data, top + slack), "a cone")
                continue
            a, b = divmod(code, r)
            need(a != b, "an edge of a cone")
            middle = [(x + y) / 2 for x, y in zip(cone[a], cone[b])]
            halves += [[middle if i == end else g for i, g in enumerate(cone)] for end in (a, b)]
        cones = halves
    return next(codes, None) is None


def cone_holds(cone: Matrix, V: Matrix, prices, data: dict, level: Fraction) -> bool:
    """Whether level G - T is copositive on the generators of a cone."""
    r = range(len(cone))
    along = [[sum(x * y for x, y in zip(v, g)) for g in cone] for v in V]
    if data["nonnegative"]:
        along = [[max(x, Fraction(0)) for x in row] for row in along]
    G = [[sum(x * y for x, y in zip(cone[a], cone[b])) for b in r] for a in r]
    H = [
        [
            level * G[a][b]
            - largest([v[a] * v[b] - c * G[a][b] for v, c in zip(along, prices)], data["s"])
            for b in r
        ]
        for a in r
    ]
    return not any(grows(block(H, T)) for size in r for T in combinations(r, size + 1))
