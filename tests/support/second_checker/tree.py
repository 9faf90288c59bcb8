"""The replay of a log; docs/methods/tree.rst and touch.rst."""

from __future__ import annotations

from fractions import Fraction
from heapq import nlargest
from itertools import combinations

from .algebra import below, block, largest, worth
from .pairsplit import node_matrix, pair_split
from .proving import bound, counted
from .question import Ask
from .reading import Matrix, Refused, exact, need, places, power_of_two, vector


class Tree:
    """The replay of a log on a core: its nodes in their order, each proved at the level."""

    def __init__(self, log: list[dict], A: Matrix, s: int, nonnegative: bool, level: Fraction):
        problem = log[0]
        need(problem["step"] == "problem" and problem["s"] >= s, "another problem")
        need(nonnegative or not problem["nonnegative"], "a log for nonnegative components")
        n, unit = len(A), power_of_two(problem["unit"])
        self.log, self.s, self.nonnegative = log, problem["s"], problem["nonnegative"]
        self.prices = [x / unit for x in vector(problem.get("prices", [0.0] * n), n)]
        self.pads = [x / unit for x in vector(problem.get("pads", [0.0] * n), n, 0)]
        self.padded = "pads" in problem
        self.root = frozenset(places(problem.get("forced", []), n, 0))
        self.listed = [frozenset(places(S, n)) for S in problem.get("listed", [])]
        self.A = [[x / unit for x in row] for row in A]
        self.t = level / unit
        self.twins(problem["twins"])
        self.splits: dict[int, tuple[Matrix, Matrix]] = {}

    def twins(self, record: dict) -> None:
        """Make rows exact multiples of others, and lower the level by what this changes."""
        n = len(self.A)
        self.leader, self.factor = list(range(n)), [Fraction(1)] * n
        if not record:
            return
        need(not self.padded, "twins on a core with features outside")
        features = places(record["features"], n)
        need(not set(features) & set(record["leaders"]), "the leader of a twin is a twin")
        factors = vector(record["factors"], len(features), -1)
        for i, leader, factor in zip(features, record["leaders"], factors, strict=True):
            need(0 <= leader < n and abs(factor) <= 1, "a twin")
            self.leader[i], self.factor[i] = leader, factor
        c, lead, old = self.factor, self.leader, self.A
        self.A = [[c[i] * c[j] * old[lead[i]][lead[j]] for j in range(n)] for i in range(n)]
        change = max(abs(self.A[i][j] - old[i][j]) for i in range(n) for j in range(n))
        self.t -= self.s * change

    def replaces(self, j: int, i: int) -> bool:
        """Whether j can take the place of its twin i in every support."""
        same = self.leader[i] == self.leader[j] and abs(self.factor[i]) <= abs(self.factor[j])
        signs = not self.nonnegative or self.factor[i] * self.factor[j] > 0
        equal = not self.listed or abs(self.factor[i]) == abs(self.factor[j])
        return same and signs and equal and self.prices[j] <= self.prices[i]

    def on_the_list(self, S) -> bool:
        """Whether a listed support contains S after exchanges of features that are the same."""
        kind = [(self.leader[i], abs(self.factor[i])) for i in range(len(self.A))]
        kind = [(i,) if i in self.root else k for i, k in enumerate(kind)]
        if self.nonnegative:
            kind = [(*k, self.factor[i] > 0) for i, k in enumerate(kind)]

        def counts(T) -> dict:
            return {k: sum(kind[i] == k for i in T) for k in map(kind.__getitem__, S)}

        return any(all(counts(T)[k] >= c for k, c in counts(S).items()) for T in self.listed)

    def split(self, place: int) -> tuple[Matrix, Matrix]:
        """The certificate at a place of the log."""
        if place not in self.splits:
            need(self.log[place]["step"] == "split", "no certificate there")
            self.splits[place] = pair_split(self.log[place], self.A, self.nonnegative)
        return self.splits[place]

    def matrix(self, split, alive, forced, j: int = -1, side: str = "") -> Matrix:
        """The matrix M of a node; with j in, or out of, every support."""
        rule = self.nonnegative, self.prices, self.pads
        return node_matrix(self.A, split, self.s, (alive, forced), rule, j=j, side=side)

    def fixed(self, split, alive, forced, features, side: str) -> bool:
        """Whether M <= tI with each of the features in, or out of, every support.

        Where this is many large matrices, features are taken together: each row is charged the
        most that it is with any of them. If that is too much, each half is looked at.
        """
        features = sorted(features)
        each = [self.matrix(split, alive, forced, j, side) for j in features]
        if len(alive) <= 40 or len(features) <= 1 or side == "out":
            return all(below(M, self.t) for M in each)
        M = self.matrix(split, alive, forced)
        for place in range(len(M)):
            M[place][place] = max(one[place][place] for one in each)
        half = len(features) // 2
        return below(M, self.t) or (
            self.fixed(split, alive, forced, features[:half], side)
            and self.fixed(split, alive, forced, features[half:], side)
        )

    def supports(self, alive, forced):
        """The supports of a node; of signed components without prices the largest are enough."""
        free = sorted(alive - forced)
        most = min(self.s - len(forced), len(free))
        few = 0 if self.nonnegative or any(self.prices) else most
        for size in range(few, most + 1):
            yield from (tuple(sorted(forced | set(T))) for T in combinations(free, size))

    def check(self) -> None:
        """Go through the nodes, then see that none of them was left open."""
        self.sets: dict[int, tuple[frozenset, frozenset]] = {}
        self.children: dict[int, list[int]] = {}
        nodes = [i for i, step in enumerate(self.log) if step["step"] == "node"]
        need(bool(nodes) or self.of_zeros(), "a log without nodes")
        after = {}
        for place in nodes:
            node = self.log[place]
            if place == nodes[0]:
                need(node["parent"] == -1 and node["side"] == "root", "the root")
                alive, forced = frozenset(range(len(self.A))), self.root
            else:
                need(node["parent"] in after, "a parent that does not come first")
                self.children.setdefault(node["parent"], []).append(place)
                alive, forced = self.child(node, *after[node["parent"]])
            self.sets[place] = (alive, forced)
            after[place] = self.passes(node, alive, forced)
        for place in reversed(nodes):
            self.settle(place, self.log[place], *after[place], nodes)

    def of_zeros(self) -> bool:
        """Whether the core is zero and the level needs no node for that."""
        lowest = min(self.prices, default=Fraction(0))
        zero = not any(map(any, self.A)) and not self.padded
        return zero and lowest >= 0 and self.t >= -lowest

    def child(self, node: dict, alive, forced):
        """What a node has of its parent's features."""
        moved = set(places(node["moved"], len(self.A)))
        need(moved <= alive, "a feature moved that is not alive")
        if node["side"] == "in":
            return alive, forced | moved
        need(node["side"] == "shrink" or not moved & forced, "a forced feature moved out")
        return alive - moved, forced - moved

    def passes(self, node: dict, alive, forced):
        """Fix features; each is tested on the sets that the round begins with."""
        for one in node["passes"]:
            if self.empty(alive, forced):
                break
            out, into = [set(places(one[side], len(self.A), 0)) for side in ("out", "in")]
            need(out | into <= alive - forced, "a feature fixed that is not free")
            split = self.split(one["split"])
            need(self.fixed(split, alive, forced, out, "in"), "features fixed out")
            need(self.fixed(split, alive, forced, into, "out"), "features fixed in")
            alive, forced = alive - out, forced | into
        return alive, forced

    def empty(self, alive, forced) -> bool:
        """Whether a node has no supports."""
        return not alive or len(forced) > self.s or not forced <= alive

    def settle(self, place: int, node: dict, alive, forced, nodes: list[int]) -> None:
        """Prove a node, given that all later ones are proved or will be."""
        children, end = self.children.get(place, []), node["end"]
        if self.empty(alive, forced):
            return
        if end == "closed":
            M = self.matrix(self.split(node["split"]), alive, forced)
            need(below(M, self.t), "a node is not closed")
        elif end in ("leaf", "alike"):
            if end == "alike":  # what pairs bound is bounded by each support of them, here few
                group = set(places(node["alike"], len(self.A)))
                need(group <= alive - forced and not self.listed, "a group that is not free")
            outside = self.padded and (end == "alike" or len(forced) < self.s)
            need(not outside, "a leaf with features outside")
            for S in self.supports(alive, forced):
                level = self.t + sum(self.prices[i] for i in S)
                settled = not S or self.on_the_list(S)
                need(settled or worth(self.A, S, level, self.nonnegative), "a support of a leaf")
        elif end == "branch":
            sides = {self.log[c]["side"]: self.log[c]["moved"] for c in children}
            need(len(children) == 2 and set(sides) == {"in", "out"}, "children of a branch")
            need(len(sides["in"]) == 1 and sides["in"][0] in sides["out"], "another feature")
            j = sides["in"][0]
            need(j not in forced, "a branch on a forced feature")
            need(all(i == j or self.replaces(j, i) for i in sides["out"]), "not a twin")
        elif end == "shrink":
            need(self.nonnegative and len(alive) <= self.s, "a support that cannot shrink")
            gone = sorted(self.log[c]["moved"] for c in children if self.log[c]["side"] == end)
            need(gone == [[i] for i in sorted(alive)], "children of a shrunk support")
            level = self.t + sum(self.prices[i] for i in alive)
            need(worth(self.A, sorted(alive), level, True), "a shrunk support")
        elif end == "same":
            need(node["node"] in nodes and node["node"] < place, "the same as a later node")
            need(self.sets[node["node"]] == (alive, forced), "another node")
        else:
            raise Refused(f"a node ends as {end} with supports left")


@bound("tree")
def prove_tree(data: dict, ask: Ask, level: Fraction) -> bool:
    """A log on all features, or on a core with a touch certificate."""
    need(ask.k == 1, "a tree is for one component")
    core = list(range(ask.p))
    if "touch" in data:
        core = places(data["touch"]["core"], ask.p)
        touch(data["touch"], ask, core, level)
    problem = data["log"][0]
    need(not {"prices", "pads", "listed"} & problem.keys(), "a log with prices")
    replayed(data, ask, core, level).check()
    return True


def replayed(data: dict, ask: Ask, core: list[int], level: Fraction) -> Tree:
    """The tree of a log on a core; what it forces at its root must be anchors."""
    tree = Tree(data["log"], block(ask.A, core), min(ask.s, len(core)), ask.nonnegative, level)
    need({core[i] for i in tree.root} <= ask.anchors, "a log forces what need not be used")
    return tree


def touch(data: dict, ask: Ask, core: list[int], t: Fraction) -> None:
    """Supports that leave the core; every covariance is known here, so that all count as near."""
    s, n, H = ask.s, len(core), block(ask.A, core)
    rest = sorted(set(range(ask.p)) - set(core))
    need(ask.anchors <= set(core), "an anchor outside the core")
    anchors = frozenset(core.index(j) for j in ask.anchors)
    split = pair_split(data["split"], H, ask.nonnegative)
    A, covered = counted(ask), []
    ranks = {j: nlargest(s - 1, [abs(A[j][i]) for i in rest if i != j]) for j in rest}
    squares = {j: [A[j][a] ** 2 for a in core] for j in rest}
    alone = anchors or all(A[j][j] + sum(ranks[j]) <= t for j in rest)
    need(bool(alone), "supports outside the core")
    last_tau = s - max(len(anchors), 1)
    free = ask.nonnegative, [Fraction(0)] * n, [Fraction(0)] * n
    for group in data["groups"]:
        first, last, pads = group["first"], group["last"], []
        covered += range(first, last + 1)
        for pad in group["pads"]:
            pi = [exact(pad["scale"]) * x for x in vector(pad["shape"], n)]
            need(first >= 1 and all(x > 0 for x in pi), "a pad that is not positive")
            M = node_matrix(H, split, s - first, (frozenset(range(n)), anchors), free)
            for a in range(n):
                M[a][a] += first * pi[a]
            need(below(M, t), "a pad is too large")
            pads.append(pi)
        for tau in range(first, min(last, last_tau) + 1):
            for j in rest:
                left = t - A[j][j] - sum(ranks[j][: tau - 1])
                need(
                    any(
                        largest([x / y for x, y in zip(squares[j], pi)], s - tau) * tau
                        <= left * first
                        for pi in pads
                    ),
                    f"feature {j} outside the core",
                )
    need(set(range(1, last_tau + 1)) <= set(covered), "a number of features outside is left out")
