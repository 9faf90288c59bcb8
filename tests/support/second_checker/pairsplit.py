"""Pair splits and the Ky Fan bound; docs/methods/pairsplit.rst and kyfan.rst."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

from .algebra import block, fan, largest
from .proving import bound, counted, zeros
from .question import Ask
from .reading import Matrix, exact, need, places, vector


def triangle(numbers, n: int) -> dict[tuple[int, int], Fraction]:
    """The numbers above the diagonal, by their places."""
    pairs = list(combinations(range(n), 2))
    return dict(zip(pairs, vector(numbers, len(pairs))))


def pair_split(record: dict, A: Matrix, nonnegative: bool) -> tuple[Matrix, Matrix]:
    """The matrices U and V of a certificate; any factor and its inverse keep V_ij V_ji = U_ij^2."""
    n = len(A)
    U, V = [[[Fraction(0)] * n for _ in range(n)] for _ in range(2)]

    def put(i: int, j: int, u: Fraction, factor: Fraction) -> None:
        U[i][j] = U[j][i] = u
        charge = max(u, Fraction(0)) if nonnegative else abs(u)
        V[i][j], V[j][i] = charge * factor, charge / factor

    if "clip" in record:
        rho = exact(record["clip"])
        need(rho >= 0, "a negative threshold")
        for i, j in combinations(range(n), 2):
            low = A[i][j] if nonnegative else max(A[i][j], -rho)
            put(i, j, min(low, rho), Fraction(1))
        return U, V
    features = places(record["features"], n)
    if "rank_one" in record:
        v, floor = vector(record["rank_one"], len(features)), exact(record["floor"])
        need(floor > 0, "the floor")
        e = Fraction(math.exp(25))
        for a, b in combinations(range(len(features)), 2):
            factor = max(abs(v[b]), floor) / max(abs(v[a]), floor)
            put(features[a], features[b], v[a] * v[b], min(max(factor, 1 / e), e))
        return U, V
    u, r = triangle(record["u"], len(features)), triangle(record["r"], len(features))
    need(all(abs(x) <= 100 for x in r.values()), "an exponent out of range")
    for a, b in u:
        put(features[a], features[b], u[a, b], Fraction(math.exp(r[a, b])))
    return U, V


def node_matrix(A: Matrix, split, s: int, sets, rule, *, j: int = -1, side: str = ""):
    """The matrix M of supports that contain `forced` and lie in `alive`; rows increase.

    `rule` is (nonnegative, prices, pads). With a side, j is in, or out of, every support.
    """
    (U, V), (alive, forced), (nonnegative, prices, pads) = split, sets, rule
    rows = [i for i in sorted(alive) if not (side == "out" and i == j)]
    M = [[A[a][b] for b in rows] for a in rows]
    for x, a in enumerate(rows):
        for y, b in enumerate(rows):
            # nothing is gained where a charge is sure; a negative one of x >= 0 costs nothing
            sure = a in forced and b in forced
            M[x][y] -= (min(U[a][b], 0) if nonnegative else 0) if sure else U[a][b]
    for x, i in enumerate(rows):
        count = s - len(forced) - (i not in forced)
        M[x][x] -= prices[i] + sum(prices[f] for f in forced if f != i)
        M[x][x] += 0 if i in forced else sum(V[i][f] for f in forced)
        free = {b: V[i][b] - prices[b] for b in alive if b not in forced and b != i}
        if side == "out":
            free.pop(j, None)
        if side == "in" and i != j and count > 0:
            M[x][x], count = M[x][x] + free.pop(j, Fraction(0)), count - 1
        M[x][x] += largest([*free.values(), *[pads[i]] * count], count)
    return M


def outside(
    ask: Ask, core: list[int], theta, beta: dict[int, Fraction], s: int, banned=(), floor=0
):
    """The numbers m_b of the features that are neither in a core nor banned, prices subtracted, and
    `floor` for each feature."""
    A, found = counted(ask), []
    rest = sorted(set(range(ask.p)) - set(core) - set(banned))
    need(s == 1 or not rest or all(t > 0 for t in theta), "a pad of zero beside features outside")
    for b in rest:
        own = beta.get(b, Fraction(0))
        charges = [abs(A[b][i]) - beta.get(i, 0) for i in rest if i != b]
        if s > 1:
            charges += [A[b][a] ** 2 / (t + own) - beta.get(a, 0) for a, t in zip(core, theta)]
        net = [charge - floor for charge in charges]
        found.append(A[b][b] - own - floor + largest(net, s - 1))
    return found


@bound("kyfan", "disjoint orthogonal", totals=True)
def prove_kyfan(data: dict, ask: Ask, level: Fraction) -> bool:
    """The Ky Fan split with prices, a core and pads."""
    M, others, price = ky_fan_matrix(data, ask)
    need("disjoint" in ask.kinds or not any(price), "prices of features that serve twice")
    return fan(M, ask.k, level - largest(price, ask.m), others + zeros(ask))


def ky_fan_matrix(
    data: dict, ask: Ask, floor: Fraction = Fraction(0)
) -> tuple[Matrix, list[Fraction], list[Fraction]]:
    """M on the core, the m_j outside, and the prices of the core; a further price `floor` on every
    feature is subtracted outside."""
    core = places(data["features"], ask.p)
    price, pad = vector(data["price"], len(core), 0), exact(data["pad"])
    need(pad >= 0, "a negative pad")
    A = block(ask.A, core)
    U, V = pair_split({**data, "features": range(len(core))}, A, ask.nonnegative)
    theta, M = [], [[A[i][j] - U[i][j] for j in range(len(core))] for i in range(len(core))]
    for a in range(len(core)):
        charges = [V[a][b] - price[b] for b in range(len(core)) if b != a] + [pad] * ask.s
        chosen = sorted(charges, reverse=True)[: ask.s - 1]
        M[a][a] += sum(chosen) - price[a]
        theta.append(min(chosen, default=pad))
    return M, outside(ask, core, theta, dict(zip(core, price)), ask.s, floor=floor), price
