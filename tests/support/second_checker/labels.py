"""Components told apart; docs/methods/labels.rst."""

from __future__ import annotations

from fractions import Fraction

from .algebra import block, fan_value
from .pairsplit import outside, pair_split
from .prices import prove_priced
from .proving import bound
from .question import Ask
from .reading import exact, need, places, vector

Group = tuple[int, frozenset, frozenset]  # how many components, what they contain, what they avoid


@bound("labels")
def prove_labels(data: dict, ask: Ask, level: Fraction) -> bool:
    """Every leaf of the tree of cases, by the bounds of its groups at common prices."""
    prices = []
    for record in data["prices"]:
        features = places(record["features"], ask.p, 0)
        prices.append(dict(zip(features, vector(record["price"], len(features), 0))))
    room: dict[int, Fraction] = {}  # how much more than its bound each tree may prove
    found: dict[tuple[int, int], Fraction] = {}
    for state, chosen in leaves(data["nodes"], ask.k):
        if any(len(forced) > ask.s or forced & banned for _, forced, banned in state):
            continue
        need(len(chosen) == len(state), "a group without a certificate")
        at = {data["groups"][i]["prices"] for i in chosen}
        need(len(at) == 1, "groups at different prices")
        beta = prices[at.pop()]
        barred = frozenset.intersection(*[banned for _, _, banned in state])
        total = sum((x for b, x in beta.items() if b not in barred), Fraction(0))
        shares = {}
        for i in set(chosen):
            record = data["groups"][i]
            own = [group for group, used in zip(state, chosen) if used == i]
            count, forced = sum(group[0] for group in own), set(record["forced"])
            for _, F, B in own:
                need(forced <= F and set(record["banned"]) <= B, "supports left out")
            need(count == 1 or not forced, "several components with one feature")
            if "log" in record:
                tau = exact(record["log"][0]["bound"])
                total += tau if forced else count * max(tau, Fraction(0))
                shares[i] = count
            elif (i, count) not in found:
                need(count <= record["count"], "more components than the certificate is for")
                found[i, count] = group_value(record, ask, beta, count)
            total += found.get((i, count), Fraction(0))
        need(total <= level, "a leaf is worth more")
        for i in shares:
            more = (level - total) / sum(shares.values())
            room[i] = min(more, room.get(i, more))
    for i, more in room.items():
        record = data["groups"][i]
        core, forced, banned = sets(record, ask)
        tau, beta = exact(record["log"][0]["bound"]) + more, prices[record["prices"]]
        if "touch" in record:
            leaving = {**record, **record["touch"]}
            need(ask.s > 1 and touch_value(leaving, ask, beta) <= tau, "supports leave the core")
            banned = frozenset(range(ask.p)) - set(core)
        prove_priced(record, ask, core, beta, tau, (forced, banned))
    return True


def leaves(nodes: list[dict], k: int):
    """The groups of each leaf, with the places of their certificates; every case is met once."""
    waiting: list[tuple[int, list[Group]]] = [(0, [(k, frozenset(), frozenset())])]
    seen = set()
    while waiting:
        place, state = waiting.pop()
        need(place not in seen and 0 <= place < len(nodes), "a case that is named twice")
        seen.add(place)
        node = nodes[place]
        if "feature" not in node:
            yield state, node["groups"]
            continue
        b, g = {node["feature"]}, node["group"]
        need(0 <= g < len(state), "no such group")
        count, F, B = state[g]
        out = [(r, f, v | b if i == g else v) for i, (r, f, v) in enumerate(state)]
        into = [(r, f, v | b) for r, f, v in state]
        others = [(count - 1, frozenset(), B | b)] if count > 1 else []
        into[g : g + 1] = [(1, F | b, B), *others]
        waiting += [(node["out"], out), (node["in"], into)]
    need(len(seen) == len(nodes), "a case that is not named")


def sets(record: dict, ask: Ask) -> tuple[list[int], frozenset, frozenset]:
    """The core of a certificate, what is forced and what is banned."""
    core = places(record["core"], ask.p)
    forced, banned = (frozenset(places(record[name], ask.p, 0)) for name in ("forced", "banned"))
    need(forced <= set(core) and not banned & set(core), "a core of other features")
    return core, forced, banned


def group_value(record: dict, ask: Ask, beta: dict[int, Fraction], count: int) -> Fraction:
    """What so many components of a group are worth at most, prices subtracted."""
    core, forced, banned = sets(record, ask)
    M, theta, _ = group_matrix(record, ask, beta, ask.s)
    others = outside(ask, core, theta, beta, ask.s, banned)
    return fan_value(M, count, others + ([] if forced else [Fraction(0)] * count))


def touch_value(record: dict, ask: Ask, beta: dict[int, Fraction]) -> Fraction:
    """What a support of a group that leaves the core is worth at most, prices subtracted."""
    core, _, banned = sets(record, ask)
    M, _, pads = group_matrix(record, ask, beta, ask.s - 1)
    for a, pad in enumerate(pads):
        M[a][a] += pad
    return fan_value(M, 1, outside(ask, core, pads, beta, ask.s, banned))


def group_matrix(record: dict, ask: Ask, beta: dict[int, Fraction], s: int):
    """M, what its rows pay for a feature outside, and their pads."""
    core, forced, _ = sets(record, ask)
    pads, A = vector(record["pads"], len(core), 0), block(ask.A, core)
    U, V = pair_split({**record, "features": range(len(core))}, A, ask.nonnegative)
    span, price = range(len(core)), [beta.get(a, Fraction(0)) for a in core]
    sure = [core[a] in forced for a in span]
    M, theta = [[A[a][b] - (0 if sure[a] and sure[b] else U[a][b]) for b in span] for a in span], []
    for a in span:
        rows = {b: (0 if sure[a] and sure[b] else V[a][b]) - price[b] for b in span if b != a}
        count_free = max(s - len(forced) - (not sure[a]), 0)
        free = [rows[b] for b in rows if not sure[b]] + [pads[a]] * count_free
        paid = sorted(free, reverse=True)[:count_free]
        M[a][a] += sum(paid) + sum(rows[b] for b in rows if sure[b]) - price[a]
        theta.append(paid[-1] if paid else pads[a])
    return M, theta, pads
