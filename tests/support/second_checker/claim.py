"""The components, the value and the list of bounds of a document."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import wraps
from itertools import permutations

from .algebra import largest
from .dropped import check_screening, prove_screened
from .proving import prove
from .question import Ask, question
from .reading import EPS, Refused, decode, exact, need, places, vector


def told(check):
    """Say "proved" where a check passes, or "refused: " with the reason."""

    @wraps(check)
    def said(*arguments, **keywords) -> str:
        try:
            check(*arguments, **keywords)
        except Refused as reason:
            return f"refused: {reason}"
        except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
            return f"refused: malformed, {type(error).__name__} {error}"
        return "proved"

    return said


# The methods that papers speak of, and whether of nonnegative components.
PAPERS = {
    "Papailiopoulos et al. 2013": {("spannogram", False)},
    "Asteris et al. 2014": {("spannogram", True)},
    "Asteris et al. 2015": {("bipartite", False), ("bipartite", True)},
}


@told
def check(text: str, X=None, *, covariance=None, sample_weight=None) -> None:
    """Refuse a saved result whose claim does not follow from its data."""
    check_document(decode(json.loads(text)), X, covariance, sample_weight)


def check_document(document: dict, X, covariance, sample_weight) -> Ask:
    """Refuse a result whose claim is not proved."""
    ask = question(document, X, covariance, sample_weight)
    check_components(document, ask)
    check_redundancy(document, ask)
    check_bounds(document["certificate"], ask)
    for name in document["certificate"]["guarantees"]:
        own = document["settings"].get("method"), ask.nonnegative
        need(own in PAPERS[name.split(",")[0]], "a promise about another method")
    return ask


def check_components(document: dict, ask: Ask) -> None:
    """Loadings of the kind asked for, that explain the value less its rounding."""
    certificate = document["certificate"]
    supports = [places(S, ask.p) for S in document["supports"]]
    weights = [vector(w, len(S)) for w, S in zip(document["weights"], supports)]
    need(len(supports) == len(document["weights"]) == ask.k, "the number of components")
    need(not ask.nonnegative or all(x >= 0 for w in weights for x in w), "a negative loading")
    need(all(abs(sum(x * x for x in w) - 1) <= 64 * ask.p * EPS for w in weights), "not unit")
    vectors = [dict(zip(S, w)) for S, w in zip(supports, weights)]
    check_features(vectors, ask)
    A, k = ask.A, ask.k
    G = [
        [sum(x * y * A[i][j] for i, x in a.items() for j, y in b.items()) for b in vectors]
        for a in vectors
    ]
    sizes = [A[i][i] * ask.unit for i in range(ask.p)]
    if ask.uncorrelated:
        parallel = [sum(abs(x) * root_of(A[i][i]) for i, x in x.items()) for x in vectors]
        for i in range(k):
            for j in range(i):
                near = Fraction(1, 10**9) * parallel[i] * parallel[j]
                need(abs(G[i][j]) <= near, "scores are correlated")
    explained, growth = [], Fraction(k)
    for j in range(k):
        explained.append(G[j][j] * ask.unit / sum(x * x for x in weights[j]))
        for i in range(j + 1, k if ask.adjusted and G[j][j] > 0 else 0):
            factor = G[i][j] / G[j][j]
            growth += (1 + abs(factor)) ** 2 * k
            for b in range(j + 1, k):
                G[i][b] -= factor * G[j][b]
    value, rounding = exact(certificate["value"]), exact(certificate["rounding"])
    need(rounding >= 0, "a negative rounding")
    need(value - rounding <= sum(explained), "the components explain less than the value")
    need(value + rounding >= sum(explained), "the components explain more than the value")
    for said, true in zip(vector(document["variances"], k), explained):
        need(abs(said - true) <= rounding, "the variance of a component")
    used = [i for S in supports for i in S]
    limit = 4 * (len(used) + 8) * EPS * sum(sizes[i] for i in used) * (k if ask.overlapping else 1)
    terms = 24 * ask.n + 400 if certificate["screening"] else 8 * ask.n + 40
    # a given matrix may be indefinite by the rounding of its largest entries
    terms = 16 * ask.p if ask.given else terms
    reach = sizes if ask.given else reached(document, ask)
    limit += terms * EPS * largest(reach, ask.p if ask.given else sum(ask.sizes))
    need(rounding <= 8 * limit * (growth**2 if ask.adjusted else k), "the rounding is too large")


def check_redundancy(document: dict, ask: Ask) -> None:
    """How far components repeat each other, to the digits that are printed."""
    told = document["info"].get("redundancy")
    if told is None or ask.k == 1 or 6 < ask.k <= 8:  # orders of up to eight are too many here
        return
    vectors = [dict(zip(S, w)) for S, w in zip(document["supports"], document["weights"])]
    vectors = [{int(i): exact(float(x)) for i, x in x.items()} for x in vectors]
    span = range(ask.k)
    G = [
        [sum(x * y * ask.A[i][j] for i, x in a.items() for j, y in b.items()) for b in vectors]
        for a in vectors
    ]
    parallel = [sum(abs(x) * root_of(ask.A[i][i]) for i, x in x.items()) ** 2 for x in vectors]
    clear = [G[i][i] > parallel[i] / 10**8 for i in span]
    if not all(clear):
        return  # scores that hardly vary: rounding decides
    apart = [abs(G[i][j]) / root_of(G[i][i] * G[j][j]) for i in span for j in range(i)]
    need(abs(exact(told["correlation"]) - max(apart)) <= Fraction(1, 10**5), "the correlation")
    orders = permutations(span) if ask.k <= 8 else [tuple(span)]
    best = max(eliminated(G, order, parallel) for order in orders) * ask.unit
    need(abs(exact(told["adjusted"]) - best) <= best / 10**4, "the adjusted variance")


def eliminated(G: list, order: tuple[int, ...], parallel: list) -> Fraction:
    """What components explain in an order, each beyond those before it; rounding is left out."""
    G, total = [row.copy() for row in G], Fraction(0)
    for n, j in enumerate(order):
        if G[j][j] <= parallel[j] / 10**12:
            continue
        total += G[j][j]
        for i in order[n + 1 :]:
            factor = G[i][j] / G[j][j]
            for b in order[n:]:
                G[i][b] -= factor * G[j][b]
    return total


def reached(document: dict, ask: Ask) -> list[Fraction]:
    """What errors are relative to: variances, or second moments where the table came sparse."""
    sizes = [ask.A[i][i] * ask.unit for i in range(ask.p)]
    by = [exact(x) ** 2 if ask.scaled else size for x, size in zip(document["scale"], sizes)]
    more = [min(m / v, 1000) if v else Fraction(1) for m, v in zip(ask.moments, by)]
    return [
        size * max(ratio, 1) ** (2 if ask.scaled else 1) for size, ratio in zip(sizes, more)
    ] or sizes


def root_of(x: Fraction) -> Fraction:
    """An approximate square root, for tolerances."""
    return Fraction(math.sqrt(max(x, 0)))


def check_features(vectors: list[dict[int, Fraction]], ask: Ask) -> None:
    """How many features components have, and what they may share; anchors count as features."""
    nonzero = [{i for i, x in vector.items() if x} for vector in vectors]
    own = [S | A for S, A in zip(nonzero, ask.include)] if ask.include else nonzero
    counts, sizes = [len(S) for S in own], list(ask.sizes)
    if not ask.include:
        counts, sizes = sorted(counts, reverse=True), sorted(sizes, reverse=True)
    need(all(c <= s for c, s in zip(counts, sizes)), "too many nonzeros")
    everything = set().union(*own)
    need(not everything & ask.exclude, "an excluded feature is used")
    need(ask.total is None or sum(counts) <= ask.total, "too many nonzeros in all")
    need(ask.supports != "common" or len(everything) <= ask.s, "the common set is too large")
    apart = ask.supports != "disjoint" or len(everything) == sum(counts)
    need(apart, "components share a feature")
    if ask.supports in ("orthogonal", "common"):
        for a, x in enumerate(vectors):
            for y in vectors[:a]:
                inner = sum(x[i] * y[i] for i in x.keys() & y.keys())
                need(abs(inner) <= 4 * (sum(ask.sizes) + 8) * EPS, "components not orthogonal")


def check_bounds(certificate: dict, ask: Ask) -> None:
    """Every bound of the list; the first is the bound of the claim, and the status follows."""
    values = [exact(b["value"]) for b in certificate["bounds"] if b["value"] != math.inf]
    bound, value = exact(certificate["bound"]), exact(certificate["value"])
    need(bool(values) and bound == values[0] and values == sorted(values), "order of the bounds")
    least = value - exact(certificate["rounding"])
    need(bound >= least, "the bound is below the value")
    for part in certificate["guarantees"].values():
        need(0 <= part <= 1 and exact(part) * bound <= least, "a promise that is not kept")
    optimal = bound - value <= exact(certificate["tol"]) * value
    need(certificate["status"] != "optimal" or optimal, "the gap is not within tol")
    check_screening(certificate, ask)
    for claimed in certificate["bounds"]:
        if claimed["value"] != math.inf:
            level, data = exact(claimed["value"]) / ask.unit, claimed["data"]
            if "screened" in data:
                prove_screened(claimed["name"], data, ask, level)
            else:
                prove(claimed["name"], data, ask, ask.strict(level))
