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
    from ..questions.choice import Choice
    from .text import ComponentRow, ComponentTable

LEAST = 0.6  # percent of the width: what is thinner cannot be seen
SMALL = 20.0  # percent of all variance up to which what can be found is drawn enlarged
THIN = 2.0  # percent of the width below which what is still possible is drawn enlarged
NOTHING = 1e-7  # share of all variance: a room below it is not enlarged
ROUND = (1.0, 2.0, 5.0, 10.0)  # where an enlarged bar ends, times a power of ten


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
    """Draw how much of all variance was found, could still be found and is out of reach: to scale,
    and enlarged below where it is small."""
    certificate = result.certificate
    value, gap = certificate.value, certificate.gap
    known = math.isfinite(gap)
    if value <= 0:
        return ""
    open_end = not words.verdict(certificate).proved
    whole = max(result.total_variance, value)
    # a bound may lie above all the variance there is, which no components exceed
    bound = min(max(certificate.bound, value), whole) if known else whole
    keys = [("part", "found", _found(result))]
    if not known:
        keys.append(("room", "unknown", "nothing was proved about what lies beyond"))
    elif open_end:
        keys.append(("room", "still possible", _possible(gap, bound / whole)))
    if known and bound < (1 - LEAST / 100) * whole:
        keys.append(("out", "out of reach", "proved that nothing of this kind gets there"))
    legend = "".join(
        f'<li><i class="spc-{kind}"></i><span><b>{head}</b>: {escape(text)}</span></li>'
        for kind, head, text in keys
    )
    label = escape("; ".join(f"{head}: {text}" for _, head, text in keys))
    ends = [float(v) for v in np.cumsum(result.variances)]
    if not open_end:
        bound = ends[-1]  # what rounding leaves between them is not drawn
    windows = _windows(value, bound, whole, narrow=open_end and known)
    rows = "".join(
        _track(_pieces(ends, bound, whole, window), window, whole, i > 0)
        for i, window in enumerate(windows)
    )
    return (
        f'<div class="spc-proof"><div role="img" aria-label="{label}">{rows}</div>'
        f'<ul class="spc-keys">{legend}</ul></div>'
    )


def _windows(
    value: float, bound: float, whole: float, *, narrow: bool
) -> list[tuple[float, float]]:
    """Return the ranges of variance to draw: all, from 0 up to what can be found where that is
    little, and around what is still possible where that is `narrow` but not nothing."""
    windows = [(0.0, whole)]
    if 100 * bound < SMALL * whole:
        share = 1.1 * bound / whole
        power = 10.0 ** math.floor(math.log10(share))
        end = next(m * power for m in ROUND if share <= m * power)
        windows.append((0.0, end * whole))
    room, width = bound - value, windows[-1][1]
    if narrow and NOTHING * whole < room < THIN / 100 * width:
        windows.append((max(value - room, 0.0), min(bound + room, whole)))
    return windows


def _pieces(
    ends: list[float], bound: float, last: float, window: tuple[float, float]
) -> list[tuple[str, str, float, float]]:
    """Return what there is to draw in a range: kind, text, and where it begins and ends."""
    pieces = [
        ("part", f"{j + 1}", start, end) for j, (start, end) in enumerate(zip([0.0, *ends], ends))
    ]
    pieces += [("room", "", ends[-1], bound), ("out", "", bound, last)]
    low, high = window
    clipped = ((kind, text, max(a, low), min(b, high)) for kind, text, a, b in pieces)
    return [piece for piece in clipped if piece[3] > piece[2]]


def _track(
    pieces: list[tuple[str, str, float, float]],
    window: tuple[float, float],
    whole: float,
    enlarged: bool,
) -> str:
    """Draw a range of variance as a bar, with the shares of all variance where it begins and
    ends."""
    low, high = window
    spans = []
    for kind, text, start, end in pieces:
        width = 100 * (end - start) / (high - low)
        least = LEAST if kind == "room" else 0.0
        title = f' title="component {text}"' if text else ""
        shown = text if width > 4 else ""
        spans.append(
            f'<span class="spc-{kind}" style="width:{max(width, least):.2f}%"{title}>{shown}</span>'
        )
    name = "the same, enlarged" if enlarged else "all variance"
    first, last = (_place(end / whole, (high - low) / whole) for end in window)
    return (
        f'<div class="spc-track">{"".join(spans)}</div><div class="spc-ends"><span>{first}</span>'
        f"<span>{name}</span><span>{last}</span></div>"
    )


def _place(share: float, width: float) -> str:
    """Return a share in percent, with as many digits as a range of this width needs."""
    digits = max(0, 1 - math.floor(math.log10(100 * width)))
    return f"{100 * share:.{digits}f} %" if share > 0 else "0"


def _possible(gap: float, share: float) -> str:
    more, most = words.about_percent(gap), words.gap_percent(share)
    return f"at most {more} more than that, up to {most} of all variance"


def _found(result: Result) -> str:
    whole = result.total_variance
    share = f", {words.share_percent(result.value / whole)} of all variance" if whole > 0 else ""
    k, value = len(result.supports), words.at_least(result.value)
    if words.repeated(result):
        return f"{value}, the variances of {k} components added up{share}"
    by = "the component" if k == 1 else f"{k} components"
    return f"{value} by {by}{share}"


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
    return f'<td style="background:rgba({colour},{0.75 * abs(r):.2f})">{r:z.2f}</td>'


def choice_map(choice: Choice) -> str:
    """Draw the shares of held-out rows by numbers of components and nonzeros."""
    shares = 100 * choice.held_out
    known = shares[np.isfinite(shares)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    head = "".join(f'<th scope="col">{s}</th>' for s in choice.n_nonzero_coefs)
    lines = []
    for i, k in enumerate(choice.n_components):
        cells = "".join(
            _cell(float(shares[i, j]), low, high, best=(k, s) == choice.best)
            for j, s in enumerate(choice.n_nonzero_coefs)
        )
        lines.append(f'<tr><th scope="row">{k}</th>{cells}</tr>')
    return (
        '<div class="scroll"><table class="spc-map"><caption>variance of held-out rows that is '
        "explained, in percent; rows: components, columns: nonzeros of each; framed: recommended"
        f"</caption><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        "</div>"
    )


def _cell(share: float, low: float, high: float, *, best: bool) -> str:
    if not math.isfinite(share):
        return '<td class="spc-none"></td>'
    depth = 0.1 + 0.6 * (share - low) / ((high - low) or 1.0)
    mark = ' class="spc-best"' if best else ""
    return f'<td{mark} style="background:rgba(30,136,200,{depth:.2f})">{share:.1f}</td>'
