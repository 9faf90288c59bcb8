"""The section of the report that shows the samples: their picture, the biplot, and their data.

The pictures are there without the script. With it, two other components can be chosen, groups can
be hidden, and the row under the pointer, or the one that the arrow keys have reached, is shown.
"""

from __future__ import annotations

import json
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from . import summary, svg, words
from .samples import Colouring, Samples, colouring, component_name, even_rows

if TYPE_CHECKING:
    from ..problem.result import Result

MOST = 1500  # samples that are drawn
CHOICE = 8  # components among which two are chosen
CROWDED = 0.05  # share of the samples at one place from which on a caption says so
VALUES = 5  # features of a component whose entries are shown for a row


def samples_section(result: Result, samples: Samples) -> str:
    """Return both pictures, what controls them, and the data behind them."""
    if not len(samples):
        return ""
    rows = even_rows(len(samples), MOST)
    row, column = summary.nouns(result)
    colours = colouring(samples.labels, len(samples))
    k = len(result.supports)
    pairs = list(combinations(range(min(k, CHOICE)), 2))
    if pairs:
        first = svg.scatter(samples, result, rows, colours, pairs[0])
        sizes = sorted(np.size(support) for support in result.supports[:CHOICE])
        few = (
            f" Only {svg.ARROWS} have one, the longest of either component."
            if sum(sizes[-2:]) > svg.ARROWS
            else ""
        )
        second = (
            f"<figure><h3>{column.capitalize()}s over {row}s</h3>"
            f"{svg.biplot(samples, result, rows, pairs)}"
            f"<figcaption>A biplot: an arrow points to the {row}s that have much of its {column}; "
            f"near the circle, two components tell nearly all about it.{few}</figcaption></figure>"
        )
    else:
        first, second = svg.strip(samples, result, rows, colours), ""
    return (
        f"{_controls(result, pairs)}\n"
        f'<div class="pictures"><figure id="cloud"><h3>{row.capitalize()}s</h3>'
        f"{_legend(samples, colours)}"
        f'<div class="stage" tabindex="0" role="application" aria-label="{row}s: arrow keys go '
        f'from one to the next">{first}<div id="tip" role="status" hidden></div></div>'
        f"<figcaption>{escape(_caption(row, samples, rows, pairs))}</figcaption></figure>\n"
        f"{second}</div>\n{_data(result, samples, rows, colours)}"
    )


def _controls(result: Result, pairs: list[tuple[int, int]]) -> str:
    if len(pairs) < 2:
        return ""
    options = "".join(
        f'<option value="{a}-{b}">{escape(component_name(result, a))} and '
        f"{escape(component_name(result, b))}</option>"
        for a, b in pairs
    )
    return (
        '<div class="tools"><label for="pair">components</label>'
        f'<select id="pair">{options}</select></div>'
    )


def _legend(samples: Samples, colours: Colouring) -> str:
    if colours.plain:
        return ""
    name = escape(words.plain(samples.label_name or "label", 60))
    if colours.scaled:
        low, high = (words.rounded(end, 4) for end in colours.ends)
        return f'<p class="legend">{name}: {low} <i class="ramp"></i> {high}</p>'
    keys = "".join(
        f'<button type="button" class="key" data-group="{i}" aria-pressed="true">'
        f'<svg viewBox="-6 -6 12 12" aria-hidden="true"><path class="p g{i}" '
        f'd="{svg.MARKERS[i]}"/></svg>{escape(words.plain(group, 40))}</button>'
        for i, group in enumerate(colours.groups)
    )
    return f'<p class="legend"><span>{name}</span>{keys}</p>'


def _caption(noun: str, samples: Samples, rows: np.ndarray, pairs: list[tuple[int, int]]) -> str:
    what = f"Every mark is a {noun}, placed by its scores"
    what += " on two components." if pairs else "; its height within a lane means nothing."
    if rows.size < len(samples):
        what += f" {rows.size:,} of {len(samples):,} are drawn, at even distances in the table."
    crowd = max((_crowd(samples.scores[rows][:, pair]) for pair in pairs), default=0)
    if crowd > CROWDED * rows.size:
        what += f" Marks hide others: up to {crowd:,} lie at one place."
    return what


def _crowd(places: np.ndarray) -> int:
    """Return how many of the places (n, 2) are the same as nearly as a picture shows."""
    spread = np.ptp(places, axis=0)
    grid = np.round(places / np.where(spread > 0, spread, 1.0) * svg.WIDTH)
    return int(np.unique(grid, axis=0, return_counts=True)[1].max())


def _data(result: Result, samples: Samples, rows: np.ndarray, colours: Colouring) -> str:
    """Return what the script needs: scores, names, labels and entries of the rows drawn."""
    k = min(len(result.supports), CHOICE)
    place = {int(feature): i for i, feature in enumerate(samples.features)}
    own = [_strongest_features(result, j) for j in range(k)]
    shown = sorted({i for features in own for i in features})
    spread = svg.centred(samples)
    document: dict[str, Any] = {
        "frame": [svg.LEFT, svg.WIDTH - svg.RIGHT, svg.HEIGHT - svg.BOTTOM, svg.TOP],
        "circle": [*svg.CENTRE, svg.RADIUS],
        "axes": [_axis(result, samples, j) for j in range(k)],
        "scores": [[_short(v) for v in samples.scores[i, :k]] for i in rows],
        "spread": [[round(float(v), 3) for v in spread[i, :k]] for i in rows] if k > 1 else [],
        "names": [words.plain(samples.name(int(i)), 120) for i in rows],
        "group": [int(g) for g in colours.group[rows]],
        "features": [words.plain(result.feature_name(i), 60) for i in shown],
        "own": [[shown.index(i) for i in features] for features in own],
        "values": [[_short(samples.columns[i, place[f]]) for f in shown] for i in rows],
    }
    if samples.labels is not None:
        document["label"] = words.plain(samples.label_name or "label", 60)
        document["labels"] = [words.plain(samples.labels[int(i)], 60) for i in rows]
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    # Inside a script nothing is escaped, so that no name may hold the end of one.
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="samples-data">{safe}</script>'


def _strongest_features(result: Result, j: int) -> list[int]:
    order = np.argsort(-np.abs(result.weights[j]), kind="stable")[:VALUES]
    return [int(i) for i in result.supports[j][order]]


def _axis(result: Result, samples: Samples, j: int) -> dict[str, Any]:
    scale = svg.Scale.of(samples.scores[:, j])
    return {
        "name": component_name(result, j),
        "low": scale.low,
        "high": scale.high,
        "ticks": scale.ticks(),
    }


def _short(value: float) -> float | None:
    """Round to what a reader needs; JSON has no nan, which is an entry that is missing."""
    return float(f"{value:.5g}") if np.isfinite(value) else None
