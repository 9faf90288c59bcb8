"""Bounds for components that may share features: one file for parts, adjusted, orthogonal, common
and neighbour, with the pages of these names in docs/methods."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from .algebra import below, block, defect, eigen, fan, largest, squared, times
from .proving import EVERY, bound, prove, zeros
from .question import Ask
from .reading import EPS, Matrix, exact, need, places, vector
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
    """One component in another matrix H, and what every component counts for."""
    need([part["s"] for part in data["parts"]] == sorted(set(ask.sizes)), "sizes of the parts")
    known = {part["s"]: exact(part["value"]) for part in data["parts"]}
    taus = sorted((known[s] for s in ask.sizes), reverse=True)[: ask.p]
    lacking = defect(ask.A) if ask.given else Fraction(0)
    if "ridge" in data["matrix"]:
        ridge = exact(data["matrix"]["ridge"])
        need(ridge > 0 and data["matrix"]["of"] in ("features", "samples"), "a ridge")
        inside, heights = ask, []
    else:
        H, heights = lowered(data["matrix"], ask.A, lacking)
        need(all(part["name"] == "tree" for part in data["parts"]), "parts are trees")
        inside = Ask(H, ask.sizes, nonnegative=ask.nonnegative)
    for part in data["parts"]:
        need(part["name"] not in ("parts", "adjusted") and known[part["s"]] > 0, "a part")
        prove(part["name"], part["data"], inside.alone(part["s"]), known[part["s"]])
    if "ridge" not in data["matrix"]:
        heights = sorted([*heights, *[Fraction(1)] * len(taus)], reverse=True)
        return sum(tau * theta for tau, theta in zip(taus, heights)) <= level
    total = Fraction(0)
    w, Q = eigen(ask.A)
    for j, tau in enumerate(taus if ask.given else taus[: ask.n]):  # others are zero
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


def lowered(told: dict, A: Matrix, lacking: Fraction) -> tuple[Matrix, list[Fraction]]:
    """B - BYY'B for B = A + shift I, and 1 / (1 - n) for the row sums n of |Y'BY|."""
    span, rows, shift = range(len(A)), places(told["features"], len(A)), exact(told["shift"])
    Y = [[exact(x) for x in row] for row in told["y"]]
    need(shift >= lacking, "the shift is too small")
    need(len(Y) == len(rows) and len({len(row) for row in Y}) == 1, "the matrix Y")
    B = [[A[i][j] + shift * (i == j) for j in span] for i in span]
    V = times([[B[i][j] for j in rows] for i in span], Y)
    Z = squared(V)
    N = times([list(column) for column in zip(*Y)], [V[i] for i in rows])
    sums = [sum(abs(x) for x in row) for row in N]
    need(all(n < 1 for n in sums), "Y'BY is not below one")
    return [[B[i][j] - Z[i][j] for j in span] for i in span], [1 / (1 - n) for n in sums]


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
    rewards = [-x for x in reward]
    tops = {s: exact(problems[s]["bound"]) - shift for s in parts}
    tops = {s: max(top, largest(rewards, s - 1)) for s, top in tops.items()}
    total = sum(beta) + sum(tops[s] for s in ask.sizes)
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
    """Branch and bound on inequalities for sets; or every set."""
    need(ask.k <= ask.s, "more components than features")
    if "log" not in data:
        sets = combinations(range(ask.p), min(ask.s, ask.p))
        return all(fan_of(block(ask.A, T), ask, level) for T in sets)
    core = places(data["core"], ask.p) if "core" in data else list(range(ask.p))
    lacking = defect(ask.A) if ask.given and "core" in data else Fraction(0)
    outside = [ask.A[i][i] + lacking for i in range(ask.p) if i not in core]
    need(exact(data["log"][0]["bound"]) + ask.k * lacking <= level, "the log proves less")
    level -= ask.k * lacking
    need(largest(outside, ask.s) <= level, "sets outside the core")
    SetTree(data["log"], block(ask.A, core), ask, outside, level).check()
    return True


class SetTree(Tree):
    """The log of a common set: what settles a node is a sum of coefficients."""

    def __init__(self, log: list[dict], A: Matrix, ask: Ask, outside: list, level: Fraction):
        need(log[0]["step"] == "problem", "another problem")
        self.log, self.A, self.s, self.k, self.t = log, A, ask.s, ask.k, level
        self.outside, self.root, self.cuts = outside, frozenset(), {}

    def of_zeros(self) -> bool:
        """Return False: sets always have nodes."""
        return False

    def split(self, place: int) -> tuple[Fraction, dict[int, Fraction]]:
        """k nu and the coefficients of a cut, with A <= nu I + LL' + BB'."""
        if place in self.cuts:
            return self.cuts[place]
        need(self.log[place]["step"] == "split", "no inequality there")
        features = places(self.log[place]["features"], len(self.A))
        L = [[exact(x) for x in row] for row in self.log[place]["L"]]
        need(len(L) == len(features) and len({len(row) for row in L}) == 1, "the matrix L")
        A, Z, span = block(self.A, features), squared(L), range(len(features))
        M = [[A[i][j] - Z[i][j] for j in span] for i in span]
        w, Q = eigen(M)
        nu = max(w[self.k - 1], Fraction(0)) if self.k <= len(w) else Fraction(0)
        lift = [max(x - nu, Fraction(0)) for x in w]
        B = [[sum(x * q[i] * q[j] for x, q in zip(lift, Q) if x) for j in span] for i in span]
        step = EPS * sum((abs(x) for x in w), Fraction(1, 2**900))
        while not below([[M[i][j] - B[i][j] for j in span] for i in span], nu):
            nu, step = nu + step, 2 * step
        self.cuts[place] = self.k * nu, {j: Z[i][i] + B[i][i] for i, j in enumerate(features)}
        return self.cuts[place]

    def worth(self, cut, alive, forced) -> Fraction:
        """The most that a set of a node is worth by an inequality."""
        base, coef = cut
        need(alive <= coef.keys(), "an inequality for fewer features")
        others = [coef[j] for j in alive - forced] + self.outside
        return base + sum(coef[j] for j in forced) + largest(others, self.s - len(forced))

    def fixed(self, split, alive, forced, features, side: str) -> bool:
        """Whether no set with each of the features in, or out, is worth more."""
        nodes = [(alive, forced | {j}) if side == "in" else (alive - {j}, forced) for j in features]
        return all(len(f) > self.s or self.worth(split, a, f) <= self.t for a, f in nodes)

    def replaces(self, j: int, i: int) -> bool:
        return False

    def settle(self, place: int, node: dict, alive, forced, nodes: list[int]) -> None:
        """Prove a node, given that all later ones are proved or will be."""
        if self.empty(alive, forced) or node["end"] == "branch":
            super().settle(place, node, alive, forced, nodes)
        elif node["end"] == "closed":
            cut = self.split(node["split"])
            need(self.worth(cut, alive, forced) <= self.t, "a node is not closed")
        else:
            full = len(forced) == self.s or not self.outside
            need(node["end"] == "leaf" and full, "a node is left open")
            free, room = sorted(alive - forced), self.s - len(forced)
            for T in combinations(free, min(room, len(free))):
                own = block(self.A, sorted(forced | set(T)))
                need(fan(own, self.k, self.t, [Fraction(0)] * self.k), "a set of a leaf")


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
