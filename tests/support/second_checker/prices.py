"""Prices and trees; docs/methods/configuration.rst."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from .algebra import Values, best_packing, block, worth
from .pairsplit import outside
from .proving import bound
from .question import Ask
from .reading import EPS, exact, need, places, vector
from .tree import Tree


@bound("configuration")
def prove_configuration(data: dict, ask: Ask, level: Fraction) -> bool:
    """All prices, and for each component what a tree proves of supports at these prices."""
    core = places(data.get("features", range(ask.p)), ask.p)
    price = vector(data["price"], len(core))
    used = sum(ask.sizes)
    full = len(core) == ask.p >= used and all(ask.A[i][i] >= 0 for i in range(ask.p))
    need(full or min(price) >= 0, "rewards where not every component can be full")
    paid = sum(sorted(price)[-used:] if full else price)
    bounds = {id(part): exact(part["log"][0]["bound"]) for part in data["parts"]}
    own = {id(part): {core[i] for i in part["log"][0].get("forced", ())} for part in data["parts"]}
    chosen = []
    for s, anchors in zip(ask.sizes, ask.include or ((),) * ask.k):
        fit = [part for part in data["parts"] if part["s"] >= s and own[id(part)] <= set(anchors)]
        need(bool(fit), "a component without a part")
        chosen.append(min(fit, key=lambda part: bounds[id(part)]))
    worths = [bounds[id(part)] for part in chosen]  # without anchors it may be empty
    worths = [x if own[id(part)] else max(x, Fraction(0)) for x, part in zip(worths, chosen)]
    target = exact(data["packing"]["target"]) if "packing" in data else None
    slack = (level - paid - sum(worths)) / ask.k
    need(slack >= 0 or target is not None, "prices and parts sum to more")
    slack = max(slack, abs(level) * EPS)
    for part in {id(part): part for part in chosen}.values():
        group = own[id(part)], ()
        prove_priced(part, ask, core, price, bounds[id(part)] + slack, group)
    if target is None or paid + sum(worths) + slack * ask.k <= level:
        return True
    need(len(set(ask.sizes)) == 1 and not ask.nonnegative and len(core) == ask.p, "a packing")
    need(target <= level and ask.m <= ask.p, "the target is above the bound")
    least = target - paid - sum(worths[1:]) - slack * (ask.k - 1)
    values, table = Values(ask.A, False), []
    for S in combinations(range(ask.p), ask.s):
        if not worth(ask.A, S, least + sum(price[i] for i in S), False):
            table.append((values.of(S), frozenset(S)))
    table.sort(key=lambda pair: -pair[0])
    best = best_packing([table] * ask.k) if len(table) >= ask.k else None
    return best is None or best <= level


def prove_priced(part: dict, ask: Ask, core, price, level: Fraction, group=None) -> None:
    """A tree with these prices on the core, and the rows outside it.

    Of the supports of a group, (forced, banned), only those count that contain the one and avoid
    the other. `price` is that of the core, or a dict of all features that have one.
    """
    problem, (forced, banned) = part["log"][0], group or ((), ())
    beta = price if isinstance(price, dict) else dict(zip(core, price))
    own = [beta.get(i, Fraction(0)) for i in core]
    need(vector(problem.get("prices", [0.0] * len(core)), len(core)) == own, "other prices")
    s = part.get("s", ask.s)
    tree = Tree(part["log"], block(ask.A, core), min(s, len(core)), ask.nonnegative, level)
    need(
        {core[i] for i in tree.root} <= set(forced) and not tree.listed, "a tree of other supports"
    )
    if len(core) + len(banned) < ask.p:
        need(tree.padded, "features outside the core, and no pads")
        pads = vector(problem["pads"], len(core), 0)
        rows = outside(ask, core, pads, beta, s, banned)
        need(all(x <= level for x in rows), "a feature outside is worth more")
    tree.check()
