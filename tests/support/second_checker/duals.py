"""Duals; docs/methods/duals.rst."""

from __future__ import annotations

from fractions import Fraction

from .algebra import below, block, defect, fan, psd
from .pairsplit import triangle
from .proving import EVERY, bound
from .question import Ask
from .reading import exact, need, places, vector


@bound("dspca-dual", EVERY)
def prove_dspca(data: dict, ask: Ask, level: Fraction) -> bool:
    """Eigenvalues of A + U - penalty I on the core; where supports overlap, one by one."""
    penalty, core = exact(data["penalty"]), places(data["core"], ask.p)
    U, A, span = triangle(data["moved"], len(core)), block(ask.A, core), range(len(core))
    short = defect(ask.A) if ask.given else Fraction(0)
    for u in U.values():
        need(u >= -penalty and (ask.nonnegative or u <= penalty), "U is not within the penalty")
    rest = set(range(ask.p)) - set(core)
    need(all(ask.A[i][i] + short <= penalty for i in rest), "a feature outside the core")
    M = [
        [A[i][j] + (short - penalty if i == j else U[min(i, j), max(i, j)]) for j in span]
        for i in span
    ]
    left = level - penalty * sum(ask.sizes)
    if ask.overlapping:
        return left >= 0 and below(M, left / ask.k)
    return fan(M, ask.k, left, [Fraction(0)] * ask.k)


@bound("greedy-dual")
def prove_greedy(data: dict, ask: Ask, level: Fraction) -> bool:
    """The Gram matrix of the dual; its rows are scaled so that no root is needed."""
    need(ask.k == 1, "the greedy dual is for one component")
    rho, core = exact(data["rho"]), places(data["core"], ask.p)
    support = places(data["support"], ask.p)
    x, span = vector(data["weights"], len(support)), range(ask.p)
    shift = exact(data["shift"]) if "shift" in data else Fraction(0)
    if ask.given and "shift" not in data:
        shift = defect(ask.A)
    need(shift >= 0 and rho > 0, "the level")
    A = [[v + (shift if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(ask.A)]
    need(not ask.given or psd(A), "the shifted matrix is not positive semidefinite")
    Ax = [sum(A[i][j] * y for j, y in zip(support, x)) for i in span]
    form = sum(Ax[i] * y for i, y in zip(support, x))
    need(form > 0, "x explains nothing")
    g2 = [v * v / form for v in Ax]
    need(all(i in core or (A[i][i] <= rho and g2[i] <= rho) for i in span), "the core")
    rows = [i for i in core if A[i][i] > rho]
    need(all(g2[i] != rho for i in rows), "a product at the level")
    H = [[Fraction(0)] * len(rows) for _ in rows]
    for a, i in enumerate(rows):
        for b, j in enumerate(rows):
            if g2[i] > rho and g2[j] > rho:
                cross = rho * (Ax[i] / Ax[j] + Ax[j] / Ax[i]) - rho * rho * form / (Ax[i] * Ax[j])
            else:
                cross = Ax[i] * Ax[j] / form
            H[a][b] = cross - A[i][j]
        top = level + shift - rho * ask.s
        if g2[i] > rho:
            H[a][a] += top * (g2[i] - rho) / g2[i]
        else:
            H[a][a] += top * (rho - g2[i]) * (A[i][i] - g2[i]) / (rho * (A[i][i] - rho))
    return level + shift >= rho * ask.s and psd(H)
