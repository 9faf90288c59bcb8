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

from . import svg, words
from .samples import Colouring, Samples, colouring, component_name, even_rows

if TYPE_CHECKING:
    from ..problem.result import Result

MOST = 1500  # samples that are drawn
CHOICE = 8  # components among which two are chosen
VALUES = 5  # features of a component whose entries are shown for a row


def samples_section(result: Result, samples: Samples) -> str:
    """Return both pictures, what controls them, and the data behind them."""
    if not len(samples):
        return ""
    rows = even_rows(len(samples), MOST)
    colours = colouring(samples.labels, len(samples))
    k = len(result.supports)
    pairs = list(combinations(range(min(k, CHOICE)), 2))
    if pairs:
        first = svg.scatter(samples, result, rows, colours, pairs[0])
        second = (
            f"<figure><h3>Features over samples</h3>{svg.biplot(samples, result, rows, pairs)}"
            "<figcaption>A biplot: an arrow points to the samples that have much of its feature; "
            "near the circle, two components tell nearly all about it.</figcaption></figure>"
        )
    else:
        first, second = svg.strip(samples, result, rows, colours), ""
    return (
        f"{_controls(result, pairs)}\n"
        f'<div class="pictures"><figure id="cloud"><h3>Samples</h3>{_legend(samples, colours)}'
        f'<div class="stage" tabindex="0" role="application" aria-label="samples: arrow keys go '
        f'from one to the next">{first}<div id="tip" role="status" hidden></div></div>'
        f"<figcaption>{escape(_caption(samples, rows, bool(pairs)))}</figcaption></figure>\n"
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


def _caption(samples: Samples, rows: np.ndarray, two: bool) -> str:
    what = "Every mark is a sample, placed by its scores"
    what += " on two components." if two else "; its height within a lane means nothing."
    if rows.size < len(samples):
        what += f" {rows.size:,} of {len(samples):,} are drawn, at even distances in the table."
    return what


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
