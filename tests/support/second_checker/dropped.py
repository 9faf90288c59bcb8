"""Features that were dropped; docs/methods/dropped.rst."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from .algebra import defect, fan_value, largest
from .pairsplit import ky_fan_matrix
from .proving import prove, zeros
from .question import Ask
from .reading import EPS, exact, need, places
from .shared import lowered


def check_screening(certificate: dict, ask: Ask) -> None:
    """What the certificate says of dropped features follows from its bounds."""
    told = certificate["screening"]
    named = [bound["data"].get("screened") for bound in certificate["bounds"]]
    need(all((record is None) == (not told) for record in named), "screened bounds beside others")
    for record in named if told else ():
        rest = dropped(record, ask)
        need(told["kept"] == len(record["kept"]) and told["dropped"] == len(rest), "screening")
        need(told["rule"] == record["rule"], "the rule of the dropped features")
        near = abs(exact(told["largest_dropped"]) - max(rest, default=Fraction(0)) * ask.unit)
        most = max([*ask.moments, 1 if ask.scaled else 0])
        # a figure that is shown: an upper end, with the error of sums in passes
        need(near <= (1000 * ask.n + 4000) * EPS * most, "the largest dropped variance")
        for name in ("inside", "touching"):
            need(exact(told[name]) == exact(record[name]) * ask.unit, f"screening: {name}")
        touching, sure = exact(told["touching"]), exact(certificate["value"])
        sure -= exact(certificate["rounding"])
        need(told["support_unchanged"] is (touching < sure), "support_unchanged")
        need(told["bound_holds"] is (touching <= exact(told["inside"])), "bound_holds")


def dropped(record: dict, ask: Ask) -> list[Fraction]:
    """The variances of the dropped features that may be used, the largest first."""
    rest = set(range(ask.p)) - set(places(record["kept"], ask.p)) - ask.exclude
    return sorted((ask.A[j][j] for j in rest if ask.A[j][j]), reverse=True)


def prove_screened(name: str, data: dict, ask: Ask, level: Fraction) -> None:
    """The bound on the kept features, and what a choice with dropped ones explains."""
    told, own = data["screened"], {key: x for key, x in data.items() if key != "screened"}
    rest, kept = dropped(told, ask), ask.among(places(told["kept"], ask.p))
    inside, touching = exact(told["inside"]), exact(told["touching"])
    told = renumbered(told)
    prove(name, own, kept, ask.strict(inside))
    if "parts" not in told:
        union = not ask.overlapping or ask.supports == "common" or name in ("trace", "eigenvalues")
        paid = ("prices",) if ask.supports == "orthogonal" else ("prices", "rows")
        apart = not ask.overlapping or told["rule"] not in paid
        need(apart, "prices and rows of components that overlap")
        most = reach(told, inside if union else None, kept, rest, ask)
        need(most <= ask.strict(touching), "a dropped feature may add more")
        need(max(inside, touching) <= level, f"{name} is not proved")
        return
    need(name in ("parts", "adjusted"), "parts of dropped features")
    among, heights = kept, [Fraction(1)] * ask.k
    if name == "adjusted":
        need("ridge" not in own["matrix"], "eigenvalues of all features")
        among = kept.among(places(own["kept"], kept.p)) if "kept" in own else kept
        H, found = lowered(own["matrix"], among.A, defect(among.A) if ask.given else Fraction(0))
        among, heights = Ask(H, ask.sizes, nonnegative=ask.nonnegative), heights + found
        rest = [x + exact(own["matrix"]["shift"]) for x in rest]
    alone = {}
    for part in own["parts"]:
        alone[part["s"]] = max(exact(part["value"]), alone.get(part["s"], Fraction(0)))
    parts = {part["s"]: part for part in told["parts"]}
    need(set(parts) == set(alone), "parts of dropped features")
    reached = {s: reach(parts[s], alone[s], among.alone(s), rest, ask.alone(s)) for s in alone}
    heights = sorted(heights, reverse=True)[: ask.k]

    def counted(bounds: list[Fraction]) -> Fraction:
        return sum(a * b for a, b in zip(sorted(bounds, reverse=True), heights))

    highest = [max(reached[s], alone[s]) for s in ask.sizes]
    most = max(
        counted([reached[s], *highest[:j], *highest[j + 1 :]]) for j, s in enumerate(ask.sizes)
    )
    need(
        most <= ask.strict(touching) and max(counted(highest), inside) <= level,
        "a dropped feature may add more",
    )


def renumbered(told: dict) -> dict:
    """The record with the cores of rule ``rows`` numbered as the features of the data are."""
    kept, found = told["kept"], dict(told)
    if "parts" in told:
        found["parts"] = [{**renumbered({**part, "kept": kept})} for part in told["parts"]]
    if told["rule"] == "rows" and "split" in told:
        core = places(told["split"]["features"], len(kept))
        found["split"] = {**told["split"], "features": [kept[i] for i in core]}
    return found


def without(ask: Ask) -> Ask:
    """The same question where features that may not be used are zero."""
    zero, barred = Fraction(0), ask.exclude
    A = [[zero if {i, j} & barred else x for j, x in enumerate(row)] for i, row in enumerate(ask.A)]
    return replace(ask, A=A) if barred else ask


def reach(
    record: dict, inside: Fraction | None, kept: Ask, rest: list[Fraction], ask: Ask
) -> Fraction:
    """A number that no choice with a dropped feature exceeds; `ask` is about all features, and
    `inside` bounds what is left of a choice without its dropped features."""
    need((record["rule"] == "nothing dropped") == (not rest), "the rule of the dropped features")
    if not rest:
        return Fraction(0)
    if record["rule"] == "rows":
        M, others, prices = ky_fan_matrix(record["split"], without(ask))
        need(not (ask.overlapping and any(prices)), "prices of features that serve twice")
        return fan_value(M, ask.k, others + zeros(ask)) + largest(prices, ask.m - 1)
    variances = [kept.A[i][i] for i in range(kept.p)]
    stays = {n: largest(variances, n) for n in range(kept.m)}
    if inside is not None:
        stays = {n: min(inside, stay) for n, stay in stays.items()}
    if record["rule"] == "prices":
        split, price = record["split"], exact(record["price"])
        need(0 <= price <= exact(split["pad"]), "a price that the pad does not cover")
        M, others, prices = ky_fan_matrix(split, kept, price)
        for i in range(len(M)):
            M[i][i] -= kept.s * price
        most = fan_value(M, kept.k, others + [Fraction(0)] * kept.k)
        prices = [x + price for x in prices] + [price] * len(others)
        stays = {n: min(stay, most + largest(prices, n)) for n, stay in stays.items()}
    gains = [sum(rest[:t]) for t in range(len(rest) + 1)]
    return max(stays[kept.m - t] + gains[t] for t in range(1, min(len(rest), kept.m) + 1))
