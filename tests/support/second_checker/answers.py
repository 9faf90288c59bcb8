"""Alternatives to an answer; docs/methods/listing.rst and docs/proof_format.rst, "Alternatives"."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from .algebra import largest, root, worth
from .claim import check_document, told
from .dropped import dropped, reach, renumbered
from .question import Ask
from .reading import EPS, decode, exact, need, places, vector
from .tree import replayed, touch


@told
def check_alternatives(text: str, X=None, *, covariance=None, sample_weight=None) -> None:
    """Refuse a document of alternatives unless the result and all that is said beside it hold."""
    document, given = decode(json.loads(text)), (X, covariance, sample_weight)
    result = document["result"]
    ask = check_document({"sparcipal": document["sparcipal"], **result}, *given)
    lists = ask.k
    if ask.k > 1 and (ask.kinds != {"disjoint", "orthogonal"} or ask.total):
        lists = 0  # of other kinds there are joint costs only
    need(0 <= document["within"] <= 1 and len(document["components"]) == lists, "the lists")
    need(result["settings"].get("missing") != "pairwise", "covariances of pairs")
    answer = Answer(document, ask, given)
    complete = [answer.near(j).check() for j in range(lists)]
    need(document["status"] != "complete" or all(complete), "a list that is not complete")
    need(ask.k > 1 or not document["drops"], "joint costs of one component")
    for cost in document["drops"]:
        without = ask.exclude | {cost["feature"]}
        fit = answer.fit(cost["fit"], ask.sizes, ask.include, without, ask)
        least = min(fit["bound"], exact(result["certificate"]["bound"]))
        need(exact(cost["value"]) <= fit["value"] and exact(cost["bound"]) >= least, "a joint cost")


@dataclass(frozen=True)
class Answer:
    """The answer, whose own claim holds, and its data."""

    document: dict
    ask: Ask
    given: tuple

    def fit(
        self, fit: dict | None, sizes, include, exclude, like: Ask | None = None
    ) -> dict[str, Fraction]:
        """Value and bound of another result, which is proved to answer this question: one of the
        kind of `like`, or of a component alone."""
        need(fit is not None, "a cost without an answer behind it")
        own = check_document({"sparcipal": self.document["sparcipal"], **fit}, *self.given)
        wanted = (tuple(sizes), tuple(map(frozenset, include)), frozenset(exclude))
        found = own.sizes, own.include or (frozenset(),) * own.k, own.exclude
        need(found == (wanted[0], wanted[1] or found[1], wanted[2]), "another question")
        for name in ("nonnegative", "center", "scale", "sample_weight", "missing"):
            same = fit["settings"].get(name) == self.document["result"]["settings"].get(name)
            need(same, "another question")
        kind = like or self.ask.alone(1)
        for name in ("supports", "adjusted", "uncorrelated", "total"):
            need(getattr(own, name) == getattr(kind, name), "another question")
        return {name: exact(fit["certificate"][name]) for name in ("value", "bound")}

    def near(self, j: int) -> Near:
        """The list of a component."""
        result, ask = self.document["result"], self.ask
        include = ask.include or (frozenset(),) * ask.k
        own = [set(S) | A for S, A in zip(result["supports"], include)]
        sizes = dict(enumerate(ask.sizes))
        if not ask.include:  # the largest components have the largest sizes
            order = sorted(range(ask.k), key=lambda i: -len(result["supports"][i]))
            sizes = dict(zip(order, sorted(ask.sizes, reverse=True)))
        others = set().union(*(S for i, S in enumerate(own) if i != j))
        one = replace(ask.alone(sizes[j], include[j]), exclude=ask.exclude | others)
        return Near(self, one, self.document["components"][j], j, own[j])


@dataclass(frozen=True)
class Near:
    """One component beside the others."""

    answer: Answer
    ask: Ask  # for this component alone; features of the others are excluded
    told: dict
    j: int
    used: set[int]

    def check(self) -> bool:
        """Refuse a list that does not follow; say whether it is complete at the level asked for."""
        told, result = self.told, self.answer.document["result"]
        value, level = exact(told["value"]), exact(told["level"])
        need(told["component"] == self.j, "another component")
        need(value == exact(result["variances"][self.j]), "another value")
        sure = value - exact(told["rounding"])
        need(sure <= value, "a negative rounding")
        explained = self.explained(result["supports"][self.j], result["weights"][self.j])
        need(sure <= explained, "the component explains less")
        asked = (1 - exact(self.answer.document["within"])) * sure
        need(abs(exact(told["asked"]) - asked) <= 8 * EPS * asked, "another level")
        screened = result["certificate"]["bounds"][0]["data"].get("screened")
        known = list(range(self.ask.p)) if screened is None else list(screened["kept"])
        kept = [known[i] for i in places(told["proof"].get("kept", range(len(known))), len(known))]
        left = set(known) - set(kept) - self.ask.exclude
        need(not any(self.ask.A[i][i] for i in left), "a feature left out")
        need(not self.ask.exclude & set(kept), "a feature that is not free")
        need(("screened" in told["proof"]) == (screened is not None), "a screened table")
        inside = level if screened is None else self.bounded(known, level)
        self.check_list(kept, min(level, inside))
        groups = [set(group) for group in told["groups"]]
        values = [exact(entry["value"]) for entry in told["supports"]]
        need(values == sorted(values, reverse=True), "the order of the list")
        for entry in told["supports"]:
            self.check_entry(entry, groups)
        self.check_holders(result["supports"][self.j], value, groups)
        for cost in told["drops"]:
            self.check_drop(cost, kept, groups, level)
        self.check_outsiders(kept, groups, level)
        return level <= exact(told["asked"])

    def bounded(self, known: list[int], level: Fraction) -> Fraction:
        """What is said to bound the listed supports and all others of kept features; no support
        with a dropped feature is above the level."""
        record, unit = self.told["proof"]["screened"], self.ask.unit
        need(list(record["kept"]) == known, "other kept features")
        inside = exact(record["inside"])
        listed = [exact(entry["bound"]) for entry in self.told["supports"]]
        need(all(bound <= inside * unit for bound in listed), "the bound on kept features")
        one = replace(self.ask, exclude=frozenset())
        rest = dropped(record, self.ask)
        reached = reach(renumbered(record), inside, one.among(known), rest, one)
        need(reached * unit <= one.strict(level), "a dropped feature may add more")
        return inside * unit

    def check_list(self, kept: list[int], level: Fraction) -> None:
        """Replay the log; its list and its twins are those that are told."""
        proof, ask = self.told["proof"], replace(self.ask.among(kept), exclude=frozenset())
        core, t = list(range(ask.p)), level / ask.unit
        if "touch" in proof:
            core = places(proof["touch"]["core"], ask.p)
            touch(proof["touch"], ask, core, t)
        tree = replayed(proof, ask, core, t)
        need(not tree.padded and not any(tree.prices), "a log with prices")
        tree.check()
        names = [kept[i] for i in core]
        listed = sorted(sorted(names[i] for i in S) for S in tree.listed)
        need(listed == sorted(list(S["support"]) for S in self.told["supports"]), "another list")
        equal = {1} if ask.nonnegative else {1, -1}
        need(set(tree.factor) <= equal, "multiples that are not equal")
        groups: dict[int, list[int]] = {}
        for i, leader in enumerate(tree.leader):
            groups.setdefault(leader, []).append(names[i])
        several = sorted(group for group in groups.values() if len(group) > 1)
        need(several == sorted(list(group) for group in self.told["groups"]), "other groups")
        need(not self.ask.anchors.intersection(*[set().union(*several)]), "an anchor is exchanged")
        self.check_equal(ask, core, tree.leader, tree.factor)

    def check_equal(self, ask: Ask, core: list[int], leader: list[int], sign: list) -> None:
        """Rows of features that are exchanged are the same but for signs, and for rounding in the
        units of the two features of an entry."""
        slack = (Fraction(2, 10**13) + (16 * (ask.n or 0) + 200) * EPS) ** 2
        A = [[ask.A[i][j] for j in core] for i in core]
        size_of = [max(abs(A[i][i]), abs(A[first][first])) for i, first in enumerate(leader)]
        for i in (i for i, first in enumerate(leader) if first != i or leader.count(i) > 1):
            for j in range(len(core)):
                other = A[leader[i]][leader[j]] * sign[i] * sign[j]
                size = size_of[i] * size_of[j]
                need((A[i][j] - other) ** 2 <= slack * size, "features that differ are exchanged")

    def check_entry(self, entry: dict, groups: list[set[int]]) -> None:
        """A vector on a support, its value, and what no other vector exceeds."""
        ask, S = self.ask, places(entry["support"], self.ask.p)
        x = vector(entry["weights"], len(S))
        need(len(self.ask.anchors.union(S)) <= ask.s and not ask.exclude & set(S), "a support")
        need(not ask.nonnegative or all(y >= 0 for y in x), "a negative weight")
        need(abs(sum(y * y for y in x) - 1) <= 64 * ask.p * EPS, "weights of no unit")
        form = sum(a * b * ask.A[i][j] for a, i in zip(x, S) for b, j in zip(x, S)) * ask.unit
        need(abs(exact(entry["value"]) - form) <= self.rounding(S), "the value of a support")
        sure = exact(entry["value"]) - exact(self.told["rounding"])
        need(sure <= self.explained(S, entry["weights"]), "a support explains less")
        size = max(exact(self.told["value"]), *(ask.A[i][i] * ask.unit for i in range(ask.p)))
        low = exact(self.told["asked"]) - size / 10**5
        need(low <= exact(entry["value"]) <= exact(entry["bound"]), "a support that is not near")
        need(
            worth(ask.A, S, exact(entry["bound"]) / ask.unit, ask.nonnegative), "a support's bound"
        )
        slack, part = self.rounding(S), Fraction(1, 10**9)
        image = [sum(ask.A[i][j] * ask.unit * b for b, j in zip(x, S)) for i in S]
        rest = [y - form * a for y, a in zip(image, x)]
        if ask.nonnegative:
            rest = [r if a else max(r, 0) for r, a in zip(rest, x)]
            slack += part * abs(form)
        else:
            most = (part + 32 * len(S) ** 2 * EPS) * size + 4 * slack
            need(exact(entry["bound"]) - exact(entry["value"]) <= most, "weights not the best")
        need(sum(r * r for r in rest) <= slack**2, "weights that others near them surpass")
        ways = math.prod(math.comb(len(G), len(G & set(S))) for G in groups)
        need(entry["count"] == ways, "how many supports are the same")

    def check_holders(self, own, value: Fraction, groups: list[set[int]]) -> None:
        """A listed support that holds the component, after exchanges, explains no less."""

        def counts(S) -> dict[int, int]:
            leaders = [min([min(G) for G in groups if i in G], default=i) for i in S]
            return {i: leaders.count(i) for i in leaders}

        for entry in self.told["supports"]:
            there = counts(entry["support"])
            if all(there.get(i, 0) >= many for i, many in counts(own).items()):
                least = value - 4 * self.rounding(own)
                need(exact(entry["value"]) >= least, "the component explains more")

    def explained(self, S, weights) -> Fraction:
        """What weights on a support explain, at unit length."""
        x, A = vector(weights, len(S)), self.ask.A
        form = sum(a * b * A[i][j] for a, i in zip(x, S) for b, j in zip(x, S))
        return form * self.ask.unit / sum(a * a for a in x)

    def rounding(self, S) -> Fraction:
        """By how much a computed value of a support may differ from the exact one."""
        ask = self.ask
        variances = [ask.A[i][i] for i in range(ask.p)]
        own = sum(abs(ask.A[i][j]) for i in S for j in S)
        return (
            (32 * (ask.s + 8) * own + (12 * ask.n + 160) * largest(variances, ask.s))
            * EPS
            * (ask.unit)
        )

    def check_drop(self, cost: dict, kept, groups: list[set[int]], level: Fraction) -> None:
        """The best answer without a feature: on the list, or a fit."""
        j, ask = cost["feature"], self.ask
        need(j in self.used and j not in ask.anchors, "a feature that is not used")
        others = []
        for entry in self.told["supports"]:
            S = set(entry["support"])
            needed = S - set().union(*(G for G in groups if not G <= S))
            others += [entry] if j not in needed else []
        values = [exact(entry["value"]) for entry in others]
        bounds = [max([level, *(exact(entry["bound"]) for entry in others)])]
        if len(kept) <= ask.s:
            bounds = []  # smaller supports are on no list
        if cost["fit"] is not None:
            left = ask.p - len(ask.exclude | {j})  # a support has no more features than are left
            sizes = (min(ask.s, left),)
            fit = self.answer.fit(cost["fit"], sizes, ask.include, ask.exclude | {j})
            values, bounds = [*values, fit["value"]], [*bounds, fit["bound"]]
        need(bool(values) and exact(cost["value"]) <= max(values), "no answer without a feature")
        need(bool(bounds) and exact(cost["bound"]) >= min(bounds), "a cost that is too large")

    def check_outsiders(self, kept, groups: list[set[int]], level: Fraction) -> None:
        """What an answer with each other feature explains, at least and at most."""
        told, ask = self.told, self.ask
        forced = {}
        for cost in told["forces"]:
            include = [ask.anchors | {cost["feature"]}]
            fit = self.answer.fit(cost["fit"], ask.sizes, include, ask.exclude)
            need(exact(cost["value"]) <= fit["value"], "no answer with a feature")
            need(exact(cost["bound"]) >= fit["bound"], "a cost that is too small")
            forced[cost["feature"]] = cost
        outsiders = places(told["outsiders"], ask.p, 0)
        support = set(self.answer.document["result"]["supports"][self.j])
        place = len(self.used) < ask.s or support - ask.anchors
        others = set(kept) - self.used if place else set()
        need(set(forced) <= set(outsiders) == others, "an outsider that is none, or is missing")
        values, bounds = (
            vector(told[name], len(outsiders)) for name in ("with_value", "with_bound")
        )
        for o, leaving, value, most in zip(outsiders, told["leaving"], values, bounds, strict=True):
            near = [
                entry
                for entry in told["supports"]
                if o in entry["support"]
                or any(o in G and G & set(entry["support"]) for G in groups)
            ]
            known = [exact(entry["value"]) for entry in near]
            limits = [max([level, *(exact(entry["bound"]) for entry in near)])]
            if o in forced:
                known.append(exact(forced[o]["value"]))
                limits.append(exact(forced[o]["bound"]))
            swapped = self.swapped(o, leaving)
            best = max(map(partial(self.top, o), self.may_leave(o)))
            rounding = 4 * self.rounding(sorted(self.used | {o}))
            need(self.top(o, leaving) >= best - rounding, "another member makes more room")
            slack = self.rounding(swapped)
            explains = any(value <= x for x in known) or not worth(
                ask.A, swapped, (value - slack) / ask.unit, ask.nonnegative
            )
            need(explains, "an outsider adds less")
            need(most >= min(limits), "an outsider may add more")

    def swapped(self, outsider: int, leaving: int) -> list[int]:
        """The support with an outsider in the place of a member, or beside all where is room."""
        need(leaving in self.may_leave(outsider), "a member that must stay")
        return sorted(self.used - {leaving} | {outsider})

    def may_leave(self, outsider: int) -> list[int]:
        """The members that may make room; itself where there is room."""
        support = self.answer.document["result"]["supports"][self.j]
        room = len(self.used) < self.ask.s
        return [outsider] if room else sorted(set(support) - self.ask.anchors)

    def top(self, outsider: int, leaving: int) -> Fraction:
        """What the outsider and the others with their weights explain together."""
        result, A = self.answer.document["result"], self.ask.A
        S, w = result["supports"][self.j], result["weights"][self.j]
        x = {i: a for i, a in zip(S, vector(w, len(S))) if i != leaving}
        norm = sum(a * a for a in x.values())
        if not norm:
            return A[outsider][outsider] * self.ask.unit
        own = sum(a * b * A[i][j] for i, a in x.items() for j, b in x.items()) / norm
        link = sum(a * A[i][outsider] for i, a in x.items())
        link = max(link, Fraction(0)) if self.ask.nonnegative else link
        half = (own - A[outsider][outsider]) / 2
        return (own - half + root(half * half + link * link / norm)) * self.ask.unit
