"""Alternatives to an answer, and how often its features come back, in text and HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import summary, words

if TYPE_CHECKING:
    from ..problem.answers import Alternatives, Cost, Listed, Nearby
    from ..questions.resampling import Stability

SHOWN = 10  # supports of a list and outsiders that are told one by one
NAMED = 20  # features that are named in one line
DEAREST = 5  # features of more than SHOWN whose costs are sentences of their own
NEXT = 5  # supports after the best one in the short form
OFTEN = 0.25  # features outside the answer that came back at least so often are shown
WIDTH = 100
NO_CHOICE = (
    "nothing to choose: the other components hold every other feature that may be used; ask for "
    "fewer nonzeros, or for free supports"
)
ENDS = {
    "more": "the list is full",
    "nodes": "the budget of the proof ended",
    "time_limit": "stopped by the time limit",
    "interrupted": "stopped by the user",
    "memory": "the proof grew too long",
    "dropped": "the data were read in passes, and features that were not kept may do as well; "
    "a larger memory_limit keeps more",
}

STOPS = ("time_limit", "interrupted")


class Best(NamedTuple):
    """What losses are shares of, and by how much rounding may have raised it."""

    value: float
    rounding: float

    def lost(self, value: float, bound: float) -> tuple[float, float]:
        """Return the share that is lost, at least (proved) and at most."""
        sure = self.value - self.rounding
        least = 1 - bound / sure if sure > 0 else 0.0
        return max(least, 0.0), 0.0 if self.reached_by(value) else 1 - value / self.value

    def reached_by(self, value: float) -> bool:
        """Return whether another value is as large, up to the rounding of both."""
        return value >= self.value - 2 * self.rounding


def best_of(found: Alternatives) -> Best:
    """Return the best of all components together."""
    return Best(found.result.value, found.result.certificate.rounding)


def alternatives_text(found: Alternatives) -> str:
    """Return the short form: some lines per component, figures beside names."""
    blocks = []
    for title, rows in parts(found):
        width = max((len(label) for label, _ in rows), default=0)
        lines = [
            textwrap.fill(
                text.replace(" %", "\0%"), WIDTH, initial_indent=f"  {label:<{width}}  ",
                subsequent_indent=" " * (width + 4), break_long_words=False, break_on_hyphens=False,
            ).replace("\0", " ")
            for label, text in rows
        ]  # fmt: skip
        blocks.append("\n".join([title, *lines]))
    return "\n".join(blocks)


def alternatives_html(found: Alternatives) -> str:
    """Return the same for a notebook and for the report. Names are untrusted, so all is escaped."""
    blocks = []
    for title, rows in parts(found):
        lines = "".join(
            f'<tr><th scope="row">{escape(label)}</th><td>{_unbroken(text)}</td></tr>\n'
            for label, text in rows
        )
        blocks.append(f"<h3>{escape(title)}</h3>\n<table>\n{lines}</table>")
    return '<div class="sparcipal">\n' + "\n".join(blocks) + "\n</div>"


def _unbroken(text: str) -> str:
    """Escape a text, its figures on one line with their percent signs."""
    return escape(text).replace(" %", "&nbsp;%")


def stability_html(found: Stability) -> str:
    """Return how often features come back: a table per component, the most frequent first."""
    stopped = f"<p>Stopped after {found.n_resamples} of {found.asked} resamples.</p>"
    blocks = [] if found.complete else [stopped]
    for j in range(len(found.reference.supports)):
        mean = f"{float(found.jaccard[:, j].mean()):.2f}" if found.n_resamples else "not known"
        lines = "".join(
            _frequency_row(record, found.threshold)
            for record in found.records()
            if record["component"] == j + 1
            and (record["in_answer"] or record["frequency"] >= OFTEN)
        )
        blocks.append(
            f'<h3>component {j + 1} <span class="soft">mean overlap {mean} (Jaccard)</span></h3>\n'
            '<table class="often"><thead><tr><th scope="col">feature</th><th scope="col">comes '
            f'back</th><th scope="col" class="number">{100 * found.level:g} % interval</th></tr>'
            f"</thead>\n<tbody>{lines}</tbody></table>"
        )
    how = "halves of the rows" if found.scheme == "halves" else "bootstrap samples"
    blocks.append(f"<p>{found.n_resamples} {how}. {escape(found.sentence)}</p>")
    return "\n".join(blocks)


def _frequency_row(record: dict[str, Any], threshold: float) -> str:
    told = [
        word
        for word, is_so in (
            ("in the answer", record["in_answer"]),
            (words.selected(record, threshold), record["selected"]),
        )
        if is_so
    ]
    name = escape(words.plain(record["feature"], 200))
    name = f"<strong>{name}</strong>" if record["in_answer"] else name
    often, low, high = (f"{100 * record[key]:.0f}" for key in ("frequency", "low", "high"))
    return (
        f'<tr><td>{name} <span class="soft">{", ".join(told)}</span></td>'
        f'<td><span class="part"><i style="width:{often}%"></i></span> {often} %</td>'
        f'<td class="number">{low} to {high} %</td></tr>\n'
    )


def parts(found: Alternatives) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return everything that is known in titles with rows of a label and a text; what is lost
    rounds down, and what may be lost at most rounds up."""
    out = []
    several = len(found.components) > 1
    for near in found.components:
        first, *rest = overview(found, near)
        title = f"component {near.component + 1}, the others as they are: {first}"
        out.append((title if several else first, list(_rows(found, near, rest))))
    if found.drops:
        rows = [("lost without", _lost(found, _figures(found.drops), best_of(found)))]
        out.append(("all components together, which is proved", rows))
    out += [(line, []) for line in nothing_to_spare(found)]
    if not found.components:
        out.append((unlisted(found), []))
    if not found.complete:
        out.append((f"incomplete: {ENDS.get(found.status, found.status)}", []))
    return out


def nothing_to_spare(found: Alternatives) -> Iterator[str]:
    """Yield why no feature has a joint cost, where all components together may use every
    feature."""
    told = found.result.settings
    free = found.result.n_features - len(told.get("exclude") or ())
    if found.drops or len(found.result.supports) < 2 or told["supports"] != "disjoint":
        return
    if (told.get("n_nonzero_total") or sum(told["n_nonzero_coefs"])) >= free:
        yield (
            f"all components together: they may use all {free} features, so that none can be left "
            "out; ask for fewer nonzeros to see what each is worth"
        )


def unlisted(found: Alternatives) -> str:
    """Return why there is no list of the supports near each component, and what has one."""
    settings = found.result.settings
    total = settings.get("n_nonzero_total")
    if total is not None:
        sizes = [support.size for support in found.result.supports]
        return (
            f"supports near each component are not listed, as all share {total} nonzeros; ask with "
            f"n_nonzero_coefs={sizes}, as they have them"
        )
    named = ("supports", "objective", "uncorrelated")
    asked = ", ".join(f"{name}={settings[name]!r}" for name in named)
    return (
        f"supports near each component are not listed ({asked}): what one adds depends on the "
        "others; ask for supports='disjoint' and objective='sum', or for one component"
    )


def _rows(found: Alternatives, near: Nearby, told: list[str]) -> Iterator[tuple[str, str]]:
    for line in told:
        label, _, text = line.partition(": ")
        yield label.removeprefix("the best one is "), text
    if near.drops:
        yield "lost without", _lost(found, _figures(near.drops), Best(near.value, near.rounding))
    if not told:  # not answered
        return
    order = np.argsort(-near.with_value, kind="stable")
    if order.size and near.value > 0:
        yield (
            "lost with",
            _lost(
                found,
                [(int(near.outsiders[i]), near.with_value[i], near.with_bound[i]) for i in order],
                Best(near.value, near.rounding),
                SHOWN // 2,
            ),
        )
    listed = ranked(found, near)
    for rank, entry in listed[:NEXT]:
        yield f"{rank}.", _less(found, near, entry)
    if len(listed) > NEXT:
        yield "", f"and {len(listed) - NEXT:,} more"


def ranked(found: Alternatives, near: Nearby) -> list[tuple[int, Listed]]:
    """Return the listed supports beside the component's own, with their ranks; its own is the first
    of those that explain as much."""
    seen = set(found.result.supports[near.component].tolist())
    own = next((e for e in near.supports if seen <= _closest(near, e, seen)), None)
    if own is not None and near.surpassed:
        return [(i, e) for i, e in enumerate(near.supports, start=1) if e is not own]
    return list(enumerate((e for e in near.supports if e is not own), start=2))


def _less(found: Alternatives, near: Nearby, entry: Listed) -> str:
    """Return by how much a support falls short of the component, or exceeds it, and how it
    differs."""
    if near.value <= 0:
        return _change(found, near, entry)
    share, best = 1 - entry.value / near.value, Best(near.value, near.rounding)
    equal = best.reached_by(entry.value)
    less = "as much" if equal else f"{_between(*best.lost(entry.value, entry.bound))} less"
    if share < -1e-9:
        less = f"{_percent(-share, down=True)} more"
    elif equal and near.spare:
        less = "the same component"
    return f"{less}: {_change(found, near, entry)}"


def _change(found: Alternatives, near: Nearby, entry: Listed) -> str:
    """Return how a support differs from the component."""
    first = set(found.result.supports[near.component].tolist())
    own = _closest(near, entry, first)
    new, gone = (_named(found, sorted(part)) for part in (own - first, first - own))
    times = f" ({entry.count:,} by exchanges)" if entry.count > 1 else ""
    if not new:
        return f"without {gone}{times}"
    return (f"{new} in place of {gone}" if gone else f"also {new}") + times


def _closest(near: Nearby, entry: Listed, seen: set[int]) -> set[int]:
    """Return the support, after exchanges, that has the most of the features seen."""
    own = set(entry.support.tolist())
    for group in near.groups:
        members = group.tolist()
        order = sorted(members, key=lambda f: (f not in seen, f not in own, f))
        own = own.difference(members) | set(order[: len(own.intersection(members))])
    return own


def _figures(costs: Iterable[Cost]) -> list[tuple[int, float, float]]:
    """Return features with value and bound of the best answer, the dearest first."""
    dearest = sorted(costs, key=lambda cost: cost.value)
    return [(cost.feature, cost.value, cost.bound) for cost in dearest]


def _lost(
    found: Alternatives, costs: list[tuple[int, float, float]], best: Best, shown: int = NAMED
) -> str:
    """Return the share of the variance that each feature costs, at least (proved) and at most."""
    if best.value <= 0:
        return "nothing, because nothing is explained"
    said = []
    for feature, value, bound in costs[:shown]:
        said.append(f"{_name(found, feature)} {_between(*best.lost(value, bound))}")
    more = len(costs) - shown
    return ", ".join(said) + (f" and {more:,} more" if more > 0 else "")


def _between(least: float, most: float) -> str:
    """Return a share that lies between two, as one figure where they agree in all digits shown."""
    low = _percent(least, down=True)
    alike = low == _percent(most, down=True)
    return low if alike else f"{low.removesuffix(' %')} to {_percent(most)}"


def overview(found: Alternatives, near: Nearby) -> Iterator[str]:
    """Yield how many supports are near a component, and which features they use."""
    known = near.level < near.sure  # of all supports above some level
    if not known and len(near.supports) < 2 and found.status in STOPS:
        yield "not answered yet"
        return
    best = near.value
    reach = _percent(max(1 - near.level / near.sure, 0.0), down=True) if near.sure > 0 else "0 %"
    many = f"{near.count:,} support" + ("s" if near.count != 1 else "")
    whose = "the best"
    if near.surpassed:
        whose = "this answer"
        more = _percent(near.supports[0].value / best - 1, down=True) if best > 0 else "more"
        yield f"not the best answer: one explains {more} more, and what follows is beside this one"
    if near.complete:
        reach = f"within {_percent(found.within)} of {whose}" + " or above" * near.surpassed
        yield f"{many} {reach}: proved, none is missing"
    elif known:
        yield f"at least {many}; above {words.at_most(near.level)} ({reach} below) none is missing"
    else:
        yield f"at least {many}; what else there is, is not known"
    alone = near.everything and len(found.components) > 1
    if alone or not near.surpassed:  # whether a better answer is unique says nothing of this one
        yield NO_CHOICE if alone else _unique(found, near)
    if not near.complete and (needed := near.indispensable()):
        reach = f"within {_percent(found.within)} of {whose}" + " or above" * near.surpassed
        yield f"in every one: {_named(found, needed)}, which is proved of all {reach}"
    # while nothing is known of all supports, those that were found are told as such
    sure = near.known or near.everything
    told = (near.always(), near.sometimes()) if sure else near.shared()
    for label, features in zip(_labels(found, near), told):
        if features:
            yield f"{label}: {_named(found, features)}"
    used = {feature for entry in near.supports for feature in near.reached(entry)}
    left = found.result.n_features - len(used)
    if near.complete and left and not alone:
        yield "in none: the other " + (
            f"{left:,} {_column(found)}s" if left > 1 else _column(found)
        )
    for group in near.groups:
        # where one alone is used; not where no support has any of them, or all have them all
        if used.issuperset(group.tolist()) and not set(near.always()).issuperset(group.tolist()):
            yield f"can be exchanged: {_named(found, group.tolist())}"


def _labels(found: Alternatives, near: Nearby) -> tuple[str, str]:
    """Return what features in all supports of a list are called, and what those in some are."""
    if near.everything:  # one support is listed, and others are parts of it
        return "in every one", f"left out by some within {_percent(found.within)}"
    if near.complete:
        return "in every one", "in some"
    known = f"all {near.count:,}" if near.count > 1 else "the one"
    return f"in {known} found so far", "in some of them"


def using(found: Alternatives, near: Nearby, i: int) -> str:
    """Return what it costs to use an outsider."""
    low, high = float(near.with_value[i]), float(near.with_bound[i])
    shares = Best(near.value, near.rounding).lost(low, high)
    least, most = _percent(shares[0], down=True), _percent(shares[1])
    name = _name(found, int(near.outsiders[i]))
    if int(near.outsiders[i]) in near.spare:
        return f"using {name} costs nothing, at a weight of zero"
    return f"using {name} costs at least {least} (proved) and at most {most}"


def using_others(found: Alternatives, near: Nearby) -> Iterator[str]:
    """Yield what it costs at least to use an outsider that has no cost of its own."""
    named = [cost.feature for cost in near.forces]
    others = near.with_bound[~np.isin(near.outsiders, named)]
    least, _ = Best(near.value, near.rounding).lost(0.0, float(others.max(initial=0.0)))
    if others.size and least > 0:
        share = _percent(least, down=True)
        yield f"using any other {_column(found)} costs at least {share} (proved)"


def others(found: Alternatives, near: Nearby) -> Iterator[str]:
    """Yield the first supports of the list, as changes to the component."""
    listed = ranked(found, near)
    for _, entry in listed[:SHOWN]:
        yield _less(found, near, entry)
    if len(listed) > SHOWN:
        yield f"and {len(listed) - SHOWN:,} more"


def _unique(found: Alternatives, near: Nearby) -> str:
    if spare := near.spare:
        many = sum(entry.count for entry in near.ties)
        more = "" if near.complete else "; whether others explain as much is not known"
        return (
            f"the best one is in {many:,} of them: {_named(found, spare)} can be exchanged or left "
            f"out, as their weight in it is zero{more}"
        )
    if near.filled:
        return "nothing to choose: the required features fill every place"
    if near.unique is None and near.everything:
        return "unique or not: it may use every feature there is for it, which does not say"
    if near.unique is None:
        sure = near.supports[0].value - near.rounding if near.supports else 0.0
        close = near.known and any(entry.bound >= sure for entry in near.supports[1:])
        why = ", as others are too close to tell" if close else ""
        return f"unique or not: that is not known{why}"
    if not near.unique:
        return "the best one is not unique: others explain as much"
    if near.everything:
        most = max(cost.bound for cost in near.drops if cost.feature in near.loaded())
        gap = _percent(1 - most / (near.supports[0].value - near.rounding), down=True)
        own = f"any of its {_column(found)}s"
        return f"the best one is unique: without {own} at least {gap} is lost"
    sure = near.supports[0].value - near.rounding
    most = max((entry.bound for entry in near.supports[1:]), default=near.level)
    if most <= near.level:  # others that are not listed may explain more than those that are
        gap = _percent(max(1 - near.level / sure, 0.0), down=True)
        return f"the best one is unique: all others explain at least {gap} less"
    gap = _percent(1 - most / sure, down=True)
    shown = _percent(1 - near.supports[1].value / near.supports[0].value, down=True)
    least = "" if gap == shown else "at least "  # the list shows what was found, not what is proved
    return f"the best one is unique: the next one explains {least}{gap} less"


def without(found: Alternatives, cost: Cost, best: Best, whose: str = "the best") -> str:
    """Return what it costs to do without a feature, as a share of what `whose` names."""
    name = _name(found, cost.feature)
    if best.value <= 0:
        return f"without {name}: nothing is explained anyway"
    least, most = best.lost(cost.value, cost.bound)
    if least <= 0:
        return f"without {name} the best answer is at most {_percent(most)} short of {whose}"
    return (
        f"no answer without {name} comes within {_percent(least, down=True)} of {whose}: proved "
        f"(the best one found is {_percent(most)} short)"
    )


def withouts(found: Alternatives, costs: Iterable[Cost], best: Best, whose: str) -> Iterator[str]:
    """Yield what it costs to do without each of some features, the dearest first: a sentence for
    each of a few, and one for the rest where there are many."""
    dearest = sorted(costs, key=lambda cost: cost.bound)
    few = len(dearest) if len(dearest) <= SHOWN else DEAREST
    for cost in dearest[:few]:
        yield without(found, cost, best, whose)
    rest = dearest[few:]
    if rest:
        figures = [(cost.feature, cost.value, cost.bound) for cost in rest]
        told = _lost(found, figures, best)
        if len(rest) > NAMED and best.value > 0:
            told += f", the last {_between(*best.lost(rest[-1].value, rest[-1].bound))}"
        which = "proved; from least to most where these differ"
        yield f"without one of the others {whose} loses ({which}): {told}"


def _column(found: Alternatives) -> str:
    """Return what a feature of the table is called."""
    return summary.nouns(found.result)[1]


def _named(found: Alternatives, features: list[int]) -> str:
    """Return names in a row, the first NAMED of them."""
    more = len(features) - NAMED
    names = ", ".join(_name(found, j) for j in features[:NAMED])
    return names + (f" and {more:,} more" if more > 0 else "")


def _name(found: Alternatives, feature: int) -> str:
    return words.plain(found.result.feature_name(feature))


def _percent(share: float, down: bool = False) -> str:
    return f"{words.rounded(100 * share, 3, ROUND_FLOOR if down else ROUND_CEILING)} %"
