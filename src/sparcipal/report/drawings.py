"""Drawings of HTML boxes that notebooks and the report share; their style is drawings.css.

Boxes grow with the page and their text does not shrink on a phone. Names are untrusted, so all that
varies is escaped.
"""

from __future__ import annotations

import math
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from . import words

if TYPE_CHECKING:
    from ..problem.result import Result
    from .text import ComponentRow, ComponentTable

FOUND = 72.0  # percent of the width of the drawing up to the bound, so that something is beyond it
LEAST = 0.6  # percent: what is thinner cannot be seen


def asset(name: str) -> str:
    """Return the text of a file that lies beside this one."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def signed_bars(row: ComponentRow, *, both: bool) -> str:
    """Draw the weights of a component: to the right, and to the left of a middle line if `both`."""
    largest = max((abs(w) for w in row.weights), default=1.0) or 1.0
    return "\n".join(
        _bar(feature, weight, abs(weight) / largest, both)
        for feature, weight in zip(row.features, row.weights)
    )


def some_negative(table: ComponentTable) -> bool:
    return any(weight < 0 for row in table for weight in row.weights)


def _bar(feature: str, weight: float, length: float, both: bool) -> str:
    name = escape(words.plain(feature, 200))
    kind, width = ("neg" if weight < 0 else "pos"), 100 * length * (0.5 if both else 1.0)
    sides = " spc-both" if both else ""
    return (
        f'<div class="spc-load"><span class="spc-name" title="{name}">{name}</span>'
        f'<span class="spc-lane{sides}"><span class="spc-bar spc-{kind}" '
        f'style="width:{width:.0f}%"></span></span><b>{weight:.3f}</b></div>'
    )


def proof_drawing(result: Result) -> str:
    """Draw what was found, what could still be found, and what is proved to be out of reach."""
    certificate = result.certificate
    value, gap = certificate.value, certificate.gap
    known = math.isfinite(gap)
    if value <= 0:
        return ""
    unit = FOUND / (max(certificate.bound, value) if known else 1.3 * value)
    parts = [
        f'<span class="spc-part" style="width:{float(v) * unit:.2f}%" '
        f'title="component {j + 1}">{_number(j, float(v) * unit)}</span>'
        for j, v in enumerate(result.variances)
    ]
    room = (certificate.bound - value) * unit if known else 100 - value * unit
    open_end = not words.verdict(certificate).proved
    if open_end:
        parts.append(f'<span class="spc-room" style="width:{max(room, LEAST):.2f}%"></span>')
    if known:
        parts.append('<span class="spc-out"></span>')
    keys = [("part", "found", _found(result))]
    if not known:
        keys.append(("room", "unknown", "nothing was proved about what lies beyond"))
    elif open_end:
        thin = "" if room >= LEAST else ", too thin to be seen here"
        keys.append(("room", "still possible", f"at most {words.gap_percent(gap)} more{thin}"))
    if known:
        keys.append(("out", "out of reach", "proved that nothing of this kind gets there"))
    legend = "".join(
        f'<li><i class="spc-{kind}"></i><span><b>{head}</b>: {escape(text)}</span></li>'
        for kind, head, text in keys
    )
    label = escape("; ".join(f"{head}: {text}" for _, head, text in keys))
    return (
        f'<div class="spc-proof"><div class="spc-track" role="img" aria-label="{label}">'
        f'{"".join(parts)}</div><ul class="spc-keys">{legend}</ul></div>'
    )


def _number(j: int, width: float) -> str:
    return f"{j + 1}" if width > 4 else ""


def _found(result: Result) -> str:
    whole = result.total_variance
    share = f", {words.share_percent(result.value / whole)} of all variance" if whole > 0 else ""
    by = "the component" if len(result.supports) == 1 else f"{len(result.supports)} components"
    return f"{words.at_least(result.value)} by {by}{share}"


def correlation_table(found: np.ndarray) -> str:
    """Draw correlations between components as a coloured triangle of figures."""
    k = len(found)
    head = "".join(f'<th scope="col">{j + 1}</th>' for j in range(k - 1))
    lines = []
    for i in range(1, k):
        cells = "".join(
            _shade(float(found[i, j])) if j < i else '<td class="spc-none"></td>'
            for j in range(k - 1)
        )
        lines.append(f'<tr><th scope="row">{i + 1}</th>{cells}</tr>')
    return (
        '<table class="spc-map"><caption>correlations between the scores of components</caption>'
        f"<thead><tr><td></td>{head}</tr></thead>\n<tbody>{''.join(lines)}</tbody></table>"
    )


def _shade(r: float) -> str:
    colour = "30,136,200" if r >= 0 else "213,94,0"
    return f'<td style="background:rgba({colour},{0.75 * abs(r):.2f})">{r:.2f}</td>'
