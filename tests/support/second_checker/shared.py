"""Bounds for components that may share features: one file for parts, adjusted, orthogonal, common
and neighbour, with the pages of these names in docs/methods."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from .algebra import below, block, defect, eigen, fan, largest, psd, squared, times
from .pairsplit import triangle
from .proving import EVERY, bound, prove, zeros
from .question import Ask
from .reading import EPS, Matrix, exact, need, vector
from .tree import Tree


@bound("parts", EVERY)
def prove_parts(data: dict, ask: Ask, level: Fraction) -> bool:
    """One bound for each component; what the level leaves is shared among them."""
    parts, sizes = data["parts"], [part["s"] for part in data["parts"]]
    anchored = any(ask.include)
    same = sizes == list(ask.sizes) if anchored else sorted(sizes) == sorted(ask.sizes)
    need(same, "sizes of the parts")
    slack = (level - sum(exact(part["value"]) for part in parts)) / ask.k
    need(slack >= 0, "the parts sum to more")
    seen = []
    for part, anchors in zip(parts, ask.include or [frozenset()] * ask.k):
        if (part, anchors) not in seen:
            seen.append((part, anchors))
            need(part["name"] != "parts", "a part of parts")
            most = exact(part["value"]) + slack
            prove(part["name"], part["data"], ask.alone(part["s"], anchors), most)
    return True


@bound("adjusted", "adjusted")
def prove_adjusted(data: dict, ask: Ask, level: Fraction) -> bool:
    """One component in another matrix H, and the eigenvalues of H^-1 A."""
    need([part["s"] for part in data["parts"]] == sorted(set(ask.sizes)), "sizes of the parts")
    known = {part["s"]: exact(part["value"]) for part in data["parts"]}
    taus = sorted((known[s] for s in ask.sizes), reverse=True)[: ask.p]
    lacking = defect(ask.A) if ask.given else Fraction(0)
    if "ridge" in data["matrix"]:
        ridge = exact(data["matrix"]["ridge"])
        need(ridge > 0 and data["matrix"]["of"] in ("features", "samples"), "a ridge")
        inside, H = ask, None
    else:
        H = [[Fraction(0)] * ask.p for _ in range(ask.p)]
        for (i, j), x in triangle(data["matrix"]["h"], ask.p).items():
            H[i][j] = H[j][i] = x
        for i, x in enumerate(vector(data["matrix"]["diagonal"], ask.p)):
            H[i][i] = x
        need(psd(H), "H is not positive semidefinite")
        inside = Ask(H, ask.sizes, nonnegative=ask.nonnegative, given=True)
    for part in data["parts"]:
        need(part["name"] not in ("parts", "adjusted") and known[part["s"]] > 0, "a part")
        prove(part["name"], part["data"], inside.alone(part["s"]), known[part["s"]])
    if H is None:
        total = Fraction(0)
        w, Q = eigen(ask.A)
        for j, tau in enumerate(taus):
            nu = w[j] + 4 * (ask.p + 2) * EPS * (sum(abs(x) for x in w) + Fraction(1, 2**900))
            M = [
                [
                    ask.A[a][b]
                    - sum((w[i] - w[j]) * Q[i][a] * Q[i][b] for i in range(j) if w[i] > w[j])
                    for b in range(ask.p)
                ]
                for a in range(ask.p)
            ]
            need(below(M, nu), "an eigenvalue is not proved")
            nu = max(nu, Fraction(0)) + lacking
            total += (tau + lacking + ridge) * nu / (nu + ridge)
        return total <= level
    levels = {found["count"]: found for found in data["levels"]}
    total = Fraction(0)
    for j, tau in enumerate(taus, 1):
        step = tau - (taus[j] if j < len(taus) else 0)
        if step:
            need(j in levels, "a sum of eigenvalues is missing")
            total += step * eigenvalue_sum(levels[j], H, ask.A, lacking)
    return total <= level


def eigenvalue_sum(found: dict, H: Matrix, A: Matrix, lacking: Fraction) -> Fraction:
    """The largest eigenvalues of H^-1 A sum to no more."""
    nu, p = exact(found["nu"]), len(A)
    P = [[exact(x) for x in row] for row in found["vectors"]]
    need(nu >= 0 and len(P) == p, "a sum of eigenvalues")
    W = times(H, P)
    square = times(W, [list(column) for column in zip(*W)])
    M = [[nu * H[i][j] + square[i][j] - A[i][j] for j in range(p)] for i in range(p)]
    for i in range(p):
        M[i][i] -= lacking
    need(psd(M), "a sum of eigenvalues is not proved")
    return found["count"] * nu + sum(x * y for a, b in zip(P, W) for x, y in zip(a, b))


@bound("orthogonal", "orthogonal")
def prove_orthogonal(data: dict, ask: Ask, level: Fraction) -> bool:
    """What a feature costs once, and trees with rewards on A - LL' + shift I."""
    L = [[exact(x) for x in row] for row in data["L"]]
    beta, shift, span = vector(data["beta"], ask.p, 0), exact(data["shift"]), range(ask.p)
    need(len(L) == ask.p and len({len(row) for row in L}) == 1 and shift >= 0, "the matrix L")
    need(not ask.nonnegative, "rewards are for signed components")
    Z = squared(L)
    A = [[ask.A[i][j] - Z[i][j] + shift * (i == j) for j in span] for i in span]
    parts = {part["s"]: part for part in data["parts"]}
    need(sorted(parts) == sorted(set(ask.sizes)), "one part for each cardinality")
    problems = {s: part["log"][0] for s, part in parts.items()}
    reward = vector(problems[ask.s].get("prices", [0.0] * ask.p), ask.p)
    need(all(x <= 0 for x in reward), "a reward that is none")
    need(all(beta[i] - reward[i] >= Z[i][i] for i in span), "beta and rewards are too small")
    total = sum(beta) + sum(exact(problems[s]["bound"]) - shift for s in ask.sizes)
    slack = (level - total) / ask.k
    need(slack >= 0, "beta and the parts sum to more")
    for s, part in parts.items():
        problem = problems[s]
        need(vector(problem.get("prices", [0.0] * ask.p), ask.p) == reward, "other rewards")
        tree = Tree(part["log"], A, min(s, ask.p), False, exact(problem["bound"]) + slack)
        need(not tree.padded and not tree.root and not tree.listed, "a tree of another kind")
        tree.check()
    return True


@bound("common", "common")
def prove_common(data: dict, ask: Ask, level: Fraction) -> bool:
    """The largest diagonal entries of LL' and eigenvalues of A - LL'; or every set."""
    need(ask.k <= ask.s, "more components than features")
    if "L" not in data:
        sets = combinations(range(ask.p), min(ask.s, ask.p))
        return all(fan_of(block(ask.A, T), ask, level) for T in sets)
    L = [[exact(x) for x in row] for row in data["L"]]
    need(len(L) == ask.p and len({len(row) for row in L}) == 1, "the matrix L")
    Z, span = squared(L), range(ask.p)
    left = [[ask.A[i][j] - Z[i][j] for j in span] for i in span]
    return fan_of(left, ask, level - largest([Z[i][i] for i in span], ask.s))


def fan_of(M: Matrix, ask: Ask, level: Fraction) -> bool:
    """The k largest eigenvalues; fewer features than components leave zeros."""
    return fan(M, ask.k, level, [*zeros(ask), *[Fraction(0)] * max(0, ask.k - len(M))])


@bound("neighbour", "")
def prove_neighbour(data: dict, ask: Ask, level: Fraction) -> bool:
    """A bound for fewer nonzeros, times the ratio of their numbers."""
    part = data["part"]
    need(ask.k == 1 and not ask.given and part["s"] <= ask.s, "a neighbour of another question")
    need(part["name"] not in ("parts", "neighbour"), "a neighbour of a neighbour")
    prove(part["name"], part["data"], ask.alone(part["s"]), level * part["s"] / ask.s)
    return True
