"""One page on an answer: text, HTML and JSON have the same sentences."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from . import answers, summary, words
from .html import STYLE, certificate_html, table_html

if TYPE_CHECKING:
    from ..problem.answers import Alternatives, Cost, Nearby
    from ..questions.choice import Choice
    from ..questions.explanation import Explanation
    from ..questions.resampling import Stability

WIDTH = 100
ABOUT = re.compile(r"component \d+: |all together: ")
FOUND = "What was found"
SURE = "How sure each feature is"
ELSE = "What else could be in"
TOGETHER = "How much is explained together"
ROWS = "What other rows would give"
MANY = "How many components and nonzeros"


def sections(page: Explanation) -> dict[str, list[str]]:
    """Return the sentences under their headings; a part without any is left out."""
    parts = {
        FOUND: _found(page),
        SURE: _sure(page),
        ELSE: _else(page),
        TOGETHER: _together(page),
        ROWS: _rows(page),
        MANY: _many(page),
    }
    told = {title: list(lines) for title, lines in parts.items()}
    return {title: lines for title, lines in told.items() if lines}


def explanation_text(page: Explanation) -> str:
    blocks = []
    for title, lines in page.sections.items():
        wrapped = [
            textwrap.fill(
                line, WIDTH, initial_indent="  ", subsequent_indent="      ",
                break_long_words=False, break_on_hyphens=False,
            )
            for line in lines
        ]  # fmt: skip
        blocks.append("\n".join([title, *wrapped]))
    return "\n\n".join(blocks)


def explanation_html(page: Explanation) -> str:
    """Return the page for a notebook. Names are untrusted, so all that varies is escaped."""
    parts = []
    for title, lines in page.sections.items():
        parts.append(f"<h3>{escape(title)}</h3>\n<ul>\n{_items(lines)}</ul>")
    body = "\n".join(parts)
    return f'<style>\n{STYLE}</style>\n<div class="sparcipal">\n{body}\n</div>'


def _items(lines: list[str]) -> str:
    """Put sentences on the same component one after the other, under its name."""
    items = []
    for about, group in groupby(lines, _about):
        told = list(group)
        if about and len(told) > 1:
            inner = "".join(f"<li>{escape(line[len(about) :])}</li>\n" for line in told)
            items.append(f"<li>{about.removesuffix(': ')}\n<ul>\n{inner}</ul></li>\n")
        else:
            items += [f"<li>{escape(line)}</li>\n" for line in told]
    return "".join(items)


def _about(line: str) -> str:
    found = ABOUT.match(line)
    return found.group() if found else ""


def explanation_page(page: Explanation) -> str:
    result = page.result
    title, source = escape(words.question(result)), result.info.get("source")
    cards = table_html(result.table()) + certificate_html(result.certificate)
    told = f"<p>{escape(words.plain(source, 200))}</p>\n" if isinstance(source, str) else ""
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n"
        "<style>h3{break-after:avoid}body{max-width:60em;margin:1.5em auto;padding:0 1em;"
        "font:16px/1.45 system-ui,sans-serif}h1{font-size:1.5em}</style>\n"
        f"<body>\n<h1>{title}</h1>\n{told}{cards}\n"
        f"{explanation_html(page)}\n</body>\n</html>\n"
    )


def explanation_json(page: Explanation) -> str:
    """Return the same sentences, and the figures behind them in full."""
    result, near = page.result, page.alternatives
    document = {
        "explanation": page.sections,
        "complete": page.complete,
        "unanswered": page.unanswered or None,
        "unchecked": page.unchecked or None,
        "certificate": {
            "value": _known(result.value),
            "bound": _known(result.bound),
            "gap": _known(result.certificate.gap),
            "status": result.certificate.status.value,
        },
        "within": None if near is None else near.within,
        "components": [_component(page, j) for j in range(len(result.supports))],
        "without": [] if near is None else _joint_costs(near),
        "share": _known(page.share),
        "correlations": None if page.correlations is None else page.correlations.tolist(),
        "stability": None if page.stability is None else page.stability.records(),
        "choice": None if page.choice is None else _map(page.choice),
        "uncompared": page.uncompared or None,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)


def _map(found: Choice) -> dict[str, Any]:
    cells = [
        {name: _known(v) if isinstance(v, float) else v for name, v in record.items()}
        for record in found.records()
    ]
    return {"recommended": list(found.best), "reason": found.reason, "cells": cells}


def _known(figure: float) -> float | None:
    return float(figure) if math.isfinite(figure) else None


def _component(page: Explanation, j: int) -> dict[str, Any]:
    result, found = page.result, page.alternatives
    own: dict[str, Any] = {
        "features": result.names(j),
        "variance": _known(float(result.variances[j])),
    }
    if found is None or not found.components:
        return own
    near = found.components[j]
    return {
        **own,
        "nearby": near.count,
        "nothing_missing": near.complete,
        "unique": near.unique,
        "at_zero_weight": [result.feature_name(i) for i in near.spare],
        "in_every": [result.feature_name(i) for i in near.always()],
        "in_some": [result.feature_name(i) for i in near.sometimes()],
        "without": [_cost(found, cost, _best(near)) for cost in near.drops],
        "using": [_cost(found, cost, _best(near)) for cost in near.forces],
    }


def _joint_costs(found: Alternatives) -> list[dict[str, Any]]:
    return [_cost(found, cost, answers.best_of(found)) for cost in found.drops]


def _best(near: Nearby) -> answers.Best:
    return answers.Best(near.value, near.rounding)


def _cost(found: Alternatives, cost: Cost, best: answers.Best) -> dict[str, Any]:
    """Return the share that is lost, at least (proved) and at most."""
    name = found.result.feature_name(cost.feature)
    if best.value <= 0:
        return {"feature": name, "at_least": 0.0, "at_most": 0.0}
    least, most = best.lost(cost.value, cost.bound)
    return {"feature": name, "at_least": _known(least), "at_most": _known(most)}


# --- the sections ---


def _found(page: Explanation) -> Iterator[str]:
    result = page.result
    yield f"{words.question(result)}; {words.data(result)}"
    for j in range(len(result.supports)):
        names = ", ".join(words.plain(name) for name in result.names(j))
        yield f"component {j + 1}: {names}"
    yield from words.told(result)
    yield from summary.sentences(result)[1:]
    if page.unchecked:
        why = words.visible(page.unchecked)
        yield f"That it is proved is what the result says, not rechecked: {why}."
    if not page.complete:
        yield "This page is incomplete: a part below says what was not finished."


def _sure(page: Explanation) -> Iterator[str]:
    found = page.alternatives
    if page.unanswered:
        yield f"Not known: {words.visible(page.unanswered)}."
    if found is None:
        return
    several = len(found.components) > 1
    # while the gap is open the best answer is not known: shares are of this one
    best = "the best" if words.is_best(page.result.certificate) else "this answer"
    joint = {cost.feature for cost in found.drops}
    if several:
        yield "Each component is compared with others in its place, while its neighbours stay."
    told = [list(answers.overview(found, near)) for near in found.components]
    if any(answers.NO_CHOICE in lines for lines in told):  # once for all of them
        yield answers.NO_CHOICE
    for near, own in zip(found.components, told):
        own = [line for line in own if line != answers.NO_CHOICE]
        yield from _prefixed(iter(own), near, several)
        # what all components lose together says more than what one loses beside the others
        costs = [cost for cost in near.drops if cost.feature not in joint]
        known = best == "the best" or (near.complete and not near.surpassed)
        whose = "this component" if several else "the best" if known else best
        lines = answers.withouts(found, costs, _best(near), whose)
        yield from _prefixed(lines, near, several)
    for line in answers.withouts(found, found.drops, answers.best_of(found), best):
        yield f"all together: {line}"
    yield from answers.nothing_to_spare(found)
    if not found.complete:
        yield f"Incomplete: {answers.ENDS.get(found.status, found.status)}."


def _prefixed(lines: Iterator[str], near: Nearby, several: bool) -> Iterator[str]:
    label = f"component {near.component + 1}: " if several else ""
    return (label + line for line in lines)


def _else(page: Explanation) -> Iterator[str]:
    found = page.alternatives
    if found is None:
        return
    several = len(found.components) > 1
    for near in found.components:
        if near.value > 0:
            yield from _prefixed(answers.others(found, near), near, several)
            places = [int(np.flatnonzero(near.outsiders == c.feature)[0]) for c in near.forces]
            lines = (answers.using(found, near, i) for i in places)
            yield from _prefixed(lines, near, several)
            yield from _prefixed(answers.using_others(found, near), near, several)


def _together(page: Explanation) -> Iterator[str]:
    result = page.result
    alone = len(result.supports) == 1
    yield from summary.together(result, page.share)
    if alone:
        return
    if page.correlations is not None:
        yield summary.related(page.correlations)
        off = np.abs(page.correlations - np.eye(len(result.supports))).max()
        if abs(off - result.largest_correlation) > 0.01:  # what a model says is printed to 0.01
            yield "What the model says of correlations does not fit these data; verify it."
            return
    yield from words.redundancy(result)


def _rows(page: Explanation) -> Iterator[str]:
    if not page.resamples:
        return
    found = page.stability
    if found is None or not found.n_resamples:
        yield "Incomplete: the run was stopped before the first half of the rows."
        return
    if not found.complete:
        yield f"Incomplete: stopped after {found.n_resamples} of {found.asked} halves of the rows."
    often = found.frequencies
    low, high = found.intervals
    for j, support in enumerate(found.reference.supports):
        order = support[np.argsort(-often[j, support], kind="stable")]
        names = (
            f"{words.plain(found.reference.feature_name(int(i)))} {100 * often[j, i]:.0f} % "
            f"[{100 * low[j, i]:.0f}, {100 * high[j, i]:.0f}]"
            for i in order
        )
        yield (
            f"component {j + 1} comes back in {found.n_resamples} halves of the rows with a mean "
            f"overlap of {float(found.jaccard[:, j].mean()):.2f}; its features in: "
            f"{', '.join(names)}"
        )
        yield from _newcomers(found, j, often[j], support)
    yield f"In brackets: intervals of {100 * found.level:g} %. {found.sentence}"


def _many(page: Explanation) -> Iterator[str]:
    found = page.choice
    if page.uncompared:
        yield f"Not known: {page.uncompared}."
    if found is None:
        if page.stopped and not page.resamples:
            yield "Incomplete: the run was stopped before other numbers were compared."
        return
    if not found.complete:
        yield "Incomplete: the run was stopped before all numbers were compared."
    k, s = len(page.result.supports), max(page.result.settings["n_nonzero_coefs"])
    share = float(found.held_out[found.n_components.index(k), found.n_nonzero_coefs.index(s)])
    if math.isfinite(share):
        yield f"{k} x {s}, as asked, explains {100 * share:.1f} % of the variance of held-out rows."
    tried = [
        f"{cell['components']} x {cell['nonzeros']} {100 * cell['held_out']:.1f} %"
        for cell in found.records()
        if math.isfinite(cell["held_out"])
    ]
    if tried:
        yield f"Tried, with the share of held-out rows that each explains: {', '.join(tried)}."
    yield words.visible(found.reason)


def _newcomers(found: Stability, j: int, often: np.ndarray, support: np.ndarray) -> Iterator[str]:
    """Yield features outside the answer that half of the resamples or more have in a component."""
    others = np.setdiff1d(np.flatnonzero(often >= 0.5), support)
    if others.size:
        names = ", ".join(
            f"{words.plain(found.reference.feature_name(int(i)))} {100 * often[i]:.0f} %"
            for i in others
        )
        yield f"component {j + 1} often has others instead: {names}"
