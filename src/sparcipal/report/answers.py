"""Alternatives to an answer in sentences: text, HTML and the command line share them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR
from html import escape
from typing import TYPE_CHECKING

from . import words

if TYPE_CHECKING:
    from ..problem.answers import Alternatives, Cost, Nearby

SHOWN = 10  # supports of a list and outsiders that are shown
ENDS = {
    "more": "the list is full",
    "nodes": "the budget of the proof ended",
    "time_limit": "stopped by the time limit",
    "interrupted": "stopped by the user",
    "memory": "the proof grew too long",
}


def alternatives_text(found: Alternatives) -> str:
    return "\n".join(sentences(found))


def alternatives_html(found: Alternatives) -> str:
    lines = "".join(f"<p>{escape(line)}</p>" for line in sentences(found))
    return f'<div class="sparcipal">{lines}</div>'


def sentences(found: Alternatives) -> list[str]:
    """Everything that is known, in plain words; values round down, bounds up."""
    out: list[str] = []
    for near in found.components:
        if len(found.components) > 1:
            out.append(f"component {near.component + 1}, the others as they are:")
        out += _component(found, near)
    for cost in found.drops:
        out.append(f"all components together: {without(found, cost, found.result.value)}")
    if not found.complete:
        out.append(f"incomplete: {ENDS.get(found.status, found.status)}")
    return out


def _component(found: Alternatives, near: Nearby) -> Iterator[str]:
    yield from overview(found, near)
    for cost in sorted(near.drops, key=lambda c: c.bound):
        yield without(found, cost, near.value)
    yield from supports(found, near)
    order = sorted(range(near.outsiders.size), key=lambda i: -float(near.with_value[i]))
    for i in order[:SHOWN] if near.value > 0 else ():
        yield using(found, near, i)


def overview(found: Alternatives, near: Nearby) -> Iterator[str]:
    """How many supports are near a component, and which features they use."""
    best = near.value
    reach = _percent(max(1 - near.level / best, 0.0), down=True) if best > 0 else "0 %"
    many = f"{near.count:,} support" + ("s" if near.count != 1 else "")
    if near.complete:
        yield f"{many} within {_percent(found.within)} of the best: proved, none is missing"
    else:
        yield f"at least {many}; above {words.at_most(near.level)} ({reach} below) none is missing"
    yield _unique(near)
    for label, features in (("in every one", near.always()), ("in some", near.sometimes())):
        if features:
            yield f"{label}: {', '.join(_name(found, j) for j in features)}"
    used = len({*near.always(), *near.sometimes()})
    if near.complete and found.result.n_features > used:
        yield f"in none: the other {found.result.n_features - used:,} features"
    for group in near.groups:
        yield "can be exchanged: " + ", ".join(_name(found, int(j)) for j in group)


def using(found: Alternatives, near: Nearby, i: int) -> str:
    """What it costs to use an outsider."""
    low, high = float(near.with_value[i]), float(near.with_bound[i])
    least = _percent(max(1 - high / near.value, 0.0), down=True)
    most = _percent(max(1 - low / near.value, 0.0))
    name = _name(found, int(near.outsiders[i]))
    return f"using {name} costs at least {least} (proved) and at most {most}"


def supports(found: Alternatives, near: Nearby) -> Iterator[str]:
    """The first supports of the list, as changes to the best one."""
    if not near.supports:
        return
    first = set(near.supports[0].support.tolist())
    for rank, entry in enumerate(near.supports[:SHOWN], start=1):
        own = set(entry.support.tolist())
        change = [f"+ {_name(found, j)}" for j in sorted(own - first)]
        change += [f"- {_name(found, j)}" for j in sorted(first - own)]
        said = ", ".join(change or [_name(found, j) for j in sorted(first)])
        times = f" ({entry.count:,} by exchanges)" if entry.count > 1 else ""
        yield f"{rank:>3}  {words.at_least(entry.value)}  {said}{times}"
    if len(near.supports) > SHOWN:
        yield f"     and {len(near.supports) - SHOWN:,} more"


def _unique(near: Nearby) -> str:
    if near.unique is None:
        return "whether the best one is unique is not known"
    if not near.unique:
        return "the best one is not unique: others explain as much"
    if len(near.supports) < 2:
        gap = _percent(max(1 - near.level / near.value, 0.0), down=True)
        return f"the best one is unique: all others explain at least {gap} less"
    gap = _percent(1 - near.supports[1].bound / near.supports[0].value, down=True)
    return f"the best one is unique: the next one explains {gap} less"


def without(found: Alternatives, cost: Cost, best: float) -> str:
    """What it costs to do without a feature."""
    name = _name(found, cost.feature)
    if best <= 0:
        return f"without {name}: nothing is explained anyway"
    least, most = max(1 - cost.bound / best, 0.0), max(1 - cost.value / best, 0.0)
    if least <= 0:
        return f"without {name} the best answer is at most {_percent(most)} short"
    return (
        f"no answer without {name} comes within {_percent(least, down=True)} of the best: proved "
        f"(the best one found is {_percent(most)} short)"
    )


def _name(found: Alternatives, feature: int) -> str:
    return words.plain(found.result.feature_name(feature))


def _percent(share: float, down: bool = False) -> str:
    return f"{words.rounded(100 * share, 3, ROUND_FLOOR if down else ROUND_CEILING)} %"
