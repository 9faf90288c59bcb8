"""Charts of samples and paths, written as SVG, so that the report needs no plotting library.

Names of classes say what a shape is; page.css gives the colours of light and dark pages and larger
text on phones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from . import words
from .samples import Colouring, component_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..problem.result import Result
    from .samples import Samples

WIDTH, HEIGHT = 520, 420
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 12, 46
ARROWS = 10  # in one biplot
# A circle, triangles, a square, a diamond, a cross and a bar: told apart without colours.
MARKERS = (
    "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0Z",
    "M0-4.6L4.3 3.4L-4.3 3.4Z",
    "M-3.3-3.3H3.3V3.3H-3.3Z",
    "M0-4.8L4.2 0L0 4.8L-4.2 0Z",
    "M0 4.6L4.3-3.4L-4.3-3.4Z",
    "M-4.2-1.4H-1.4V-4.2H1.4V-1.4H4.2V1.4H1.4V4.2H-1.4V1.4H-4.2Z",
    "M-4.6-1.6H4.6V1.6H-4.6Z",
)


@dataclass(frozen=True)
class Scale:
    """Numbers from `low` to `high`, and the round ones among them that are marked."""

    low: float
    high: float

    @classmethod
    def of(cls, values: np.ndarray) -> Scale:
        low, high = float(np.min(values)), float(np.max(values))
        pad = 0.05 * (high - low) or 0.5 * (abs(low) or 1.0)
        return cls(low - pad, high + pad)

    def share(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)

    def ticks(self, about: int = 5) -> list[tuple[float, str]]:
        """Return round numbers with their text."""
        rough = (self.high - self.low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = power * next(m for m in (1.0, 2.0, 5.0, 10.0) if rough <= 1.0001 * m * power)
        first = math.ceil(self.low / step)
        found = [step * i for i in range(first, first + 2 * about) if step * i <= self.high]
        return [(value, f"{value:.6g}") for value in found]


def across(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def up(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def scatter(
    samples: Samples, result: Result, rows: np.ndarray, colours: Colouring, pair: tuple[int, int]
) -> str:
    """Draw the chosen rows by their scores on two components."""
    x, y = pair
    scales = Scale.of(samples.scores[:, x]), Scale.of(samples.scores[:, y])
    points = "\n".join(
        _point(
            across(scales[0].share(samples.scores[i, x])),
            up(scales[1].share(samples.scores[i, y])),
            colours,
            int(i),
        )
        for i in rows
    )
    names = component_name(result, x), component_name(result, y)
    body = f'{axes(scales, names)}<g class="points">\n{points}\n</g>'
    return picture(body, f"samples by their scores on components {x + 1} and {y + 1}", "scatter")


def strip(samples: Samples, result: Result, rows: np.ndarray, colours: Colouring) -> str:
    """Draw the chosen rows by their score on the only component, in a lane for each group."""
    scale = Scale.of(samples.scores[:, 0])
    lanes = max(len(colours.groups), 1)
    # The golden ratio spreads neighbours over the lane without any chance in it.
    jitter = (np.arange(rows.size) * 0.6180339887498949) % 1.0
    points = "\n".join(
        _point(
            across(scale.share(samples.scores[i, 0])),
            up(1.0 - (int(colours.group[i]) + 0.2 + 0.6 * float(off)) / lanes),
            colours,
            int(i),
        )
        for i, off in zip(rows, jitter)
    )
    body = f'{_across_axis(scale, component_name(result, 0))}<g class="points">\n{points}\n</g>'
    return picture(body, "samples by their score on the component", "scatter")


def _point(x: float, y: float, colours: Colouring, row: int) -> str:
    group = int(colours.group[row])
    look = f'class="p g{group}"'
    if colours.scaled:
        place = colours.place[row]
        look = f'class="p" fill="{ramp(float(place))}"' if np.isfinite(place) else 'class="p none"'
    return f'<path {look} d="{MARKERS[group]}" transform="translate({x:.1f} {y:.1f})"/>'


RAMP = ((53, 42, 134), (15, 120, 170), (54, 180, 125), (190, 190, 50), (240, 200, 20))


def ramp(place: float) -> str:
    """Return a colour along a scale from dark blue to yellow."""
    at = min(max(place, 0.0), 1.0) * (len(RAMP) - 1)
    i = min(int(at), len(RAMP) - 2)
    mixed = (round(a + (at - i) * (b - a)) for a, b in zip(RAMP[i], RAMP[i + 1]))
    return f"rgb({','.join(map(str, mixed))})"


def axes(scales: tuple[Scale, Scale], names: tuple[str, str]) -> str:
    """Draw both axes with ticks, grid lines and the names of the components."""
    lines = [_across_axis(scales[0], names[0])]
    marks = "".join(
        f'<path class="grid" d="M{LEFT} {up(scales[1].share(v)):.1f}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 6}" y="{up(scales[1].share(v)) + 4:.1f}" text-anchor="end">{text}</text>'
        for v, text in scales[1].ticks()
    )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    lines.append(
        f'<g class="ticks y">{marks}</g><text class="name y" text-anchor="middle" '
        f'transform="translate(13 {middle:.0f}) rotate(-90)">{escape(names[1])}</text>'
    )
    return "\n".join(lines)


def _across_axis(scale: Scale, name: str) -> str:
    marks = "".join(
        f'<path class="grid" d="M{across(scale.share(v)):.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
        f'<text x="{across(scale.share(v)):.1f}" y="{HEIGHT - BOTTOM + 17}" '
        f'text-anchor="middle">{text}</text>'
        for v, text in scale.ticks()
    )
    middle = (LEFT + WIDTH - RIGHT) / 2
    return (
        f'<g class="ticks x">{marks}</g><text class="name x" x="{middle:.0f}" y="{HEIGHT - 7}" '
        f'text-anchor="middle">{escape(name)}</text>'
    )


RADIUS = 165.0
CENTRE = (WIDTH / 2, 205.0)
BESIDE = 75  # a biplot is wider on both sides, for the names
LINE = 18.5  # from one name to the next
LETTER = 9.6  # about the width of one, on a phone
SHORTEST = 12  # letters: names in a column are not cut below


def biplot(
    samples: Samples, result: Result, rows: np.ndarray, pairs: Sequence[tuple[int, int]]
) -> str:
    """Draw features as arrows over the samples: where they point, samples have more of them."""
    cx, cy = CENTRE
    directions = samples.directions
    frame = (
        f'<circle class="grid" cx="{cx:.0f}" cy="{cy:.0f}" r="{RADIUS:.0f}"/>'
        f'<path class="grid" d="M{cx - RADIUS:.0f} {cy}H{cx + RADIUS:.0f}M{cx} {cy - RADIUS:.0f}'
        f'V{cy + RADIUS:.0f}"/>'
    )
    x, y = pairs[0]
    spread = centred(samples)[rows]
    cloud = "".join(f"M{cx + RADIUS * a:.1f} {cy - RADIUS * b:.1f}h0" for a, b in spread[:, [x, y]])
    groups = "\n".join(
        f'<g class="arrows" data-pair="{a}-{b}"{"" if i == 0 else " hidden"}>'
        f"{_arrows(samples, result, directions, (a, b))}</g>"
        for i, (a, b) in enumerate(pairs)
    )
    body = f'{frame}<path class="cloud" d="{cloud}"/>\n{groups}'
    label = "features as arrows, by their correlation with the two scores"
    return picture(body, label, "biplot", BESIDE)


def centred(samples: Samples) -> np.ndarray:
    """Return scores around their means, each component shrunk to fit between -1 and 1."""
    away = samples.scores - samples.scores.mean(axis=0)
    largest = np.abs(away).max(axis=0)
    return away / np.where(largest > 0, largest, 1.0)


def _arrows(samples: Samples, result: Result, directions: np.ndarray, pair: tuple[int, int]) -> str:
    """Draw the arrows of features that the two components use, and say how many have none."""
    x, y = pair
    own, chosen = _longest(samples, result, directions, pair)
    cx, cy = CENTRE
    ends = [(cx + RADIUS * directions[i, x], cy - RADIUS * directions[i, y]) for i in chosen]
    # Names stand in a column on either side, beyond the farthest arrow.
    columns = {True: max(x for x, _ in ends) + 10, False: min(x for x, _ in ends) - 10}
    arrows, names = [], []
    for i, (ex, ey), height in zip(chosen, ends, apart(ends)):
        kind = "a0" if samples.features[i] in result.supports[x] else "a1"
        arrows.append(
            f'<path class="arrow {kind}" d="M{cx:.0f} {cy:.0f}L{ex:.1f} {ey:.1f}{_head(ex, ey)}"/>'
        )
        name = words.plain(result.feature_name(int(samples.features[i])), 24)
        names.append(_name(name, (ex, ey), columns[ex >= cx], height))
    if chosen.size < own:
        names.append(
            f'<text class="halo few" x="{cx:.0f}" y="{HEIGHT - 4}" text-anchor="middle">'
            f"{chosen.size} of {own:,} have arrows</text>"
        )
    return "".join(arrows + names)


def _longest(
    samples: Samples, result: Result, directions: np.ndarray, pair: tuple[int, int]
) -> tuple[int, np.ndarray]:
    """Return how many features two components use, and those with the longest arrows: of either
    component in turn, so that each shows what it consists of."""
    places = [np.flatnonzero(np.isin(samples.features, result.supports[j])) for j in pair]
    turns: list[tuple[int, float, int]] = []
    for own in places:
        length = np.hypot(directions[own, pair[0]], directions[own, pair[1]])
        order = np.argsort(-length, kind="stable")
        turns += [(turn, -float(length[i]), int(own[i])) for turn, i in enumerate(order)]
    ordered = list(dict.fromkeys(feature for _, _, feature in sorted(turns)))
    return len(ordered), np.array(ordered[:ARROWS], dtype=np.intp)


def _name(name: str, end: tuple[float, float], column: float, height: float) -> str:
    """Write a name in its column, or at the edge of the picture if it is long, and lead to it."""
    side = 1 if end[0] >= CENTRE[0] else -1
    edge, width = (WIDTH + BESIDE if side > 0 else -BESIDE), LETTER * len(name)
    room = int(side * (edge - column) / LETTER)
    if SHORTEST <= room < len(name):
        name, width = words.plain(name, room), LETTER * room
    fits = side * (edge - column) >= width
    start = column if fits else edge
    anchor = "start" if fits == (side > 0) else "end"
    near = column - 3 * side if fits else edge - side * (width + 3)
    return (
        f'<path class="leader" d="M{end[0]:.1f} {end[1]:.1f}L{near:.1f} {height:.1f}"/>'
        f'<text class="halo" x="{start:.1f}" y="{height + 4:.1f}" text-anchor="{anchor}">'
        f"{escape(name)}</text>"
    )


def _head(ex: float, ey: float) -> str:
    """Return the two strokes of an arrow's head."""
    cx, cy = CENTRE
    angle = math.atan2(ey - cy, ex - cx)
    strokes = [(ex - 8 * math.cos(angle + t), ey - 8 * math.sin(angle + t)) for t in (0.4, -0.4)]
    return "".join(f"M{ex:.1f} {ey:.1f}L{a:.1f} {b:.1f}" for a, b in strokes)


def apart(ends: Sequence[tuple[float, float]]) -> list[float]:
    """Return a height for the name of each arrow: near its end, a line apart on either side."""
    heights = [y for _, y in ends]
    for side in (False, True):
        own = [i for i, (x, _) in enumerate(ends) if (x >= CENTRE[0]) == side]
        own.sort(key=lambda i: ends[i][1])
        for _ in range(60):  # names that are too close push each other away, a little at a time
            for above, below in pairwise(own):
                close = (LINE - (heights[below] - heights[above])) / 2
                if close > 0:
                    heights[above] -= close
                    heights[below] += close
        least = LINE / 2
        for i in own:  # none above the picture
            heights[i] = max(heights[i], least)
            least = heights[i] + LINE
        most = HEIGHT - LINE / 2
        for i in reversed(own):  # and none below
            heights[i] = min(heights[i], most)
            most = heights[i] - LINE
    return heights


def path_chart(results: Sequence[Result]) -> str:
    """Draw the variance against the nonzeros, and the region up to the proved bound."""
    sizes = np.array([int(r.settings["n_nonzero_coefs"][0]) for r in results], dtype=float)
    whole = results[0].total_variance or 1.0
    found = 100 * np.array([r.value for r in results]) / whole
    limit = 100 * np.array([r.bound for r in results]) / whole
    limit = np.where(np.isfinite(limit), limit, found)
    top = 1.05 * float(limit.max())
    scales = Scale.of(sizes), Scale(0.0, top or 1.0)
    x = [across(scales[0].share(s)) for s in sizes]
    low = [up(scales[1].share(v)) for v in found]
    high = [up(scales[1].share(v)) for v in limit]
    there = "".join(f"{'L' if i else 'M'}{a:.1f} {b:.1f}" for i, (a, b) in enumerate(zip(x, high)))
    back = "".join(f"L{a:.1f} {b:.1f}" for a, b in zip(reversed(x), reversed(low)))
    line = "".join(f"{'L' if i else 'M'}{a:.1f} {b:.1f}" for i, (a, b) in enumerate(zip(x, low)))
    dots = "".join(
        f'<circle class="value" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>' for a, b in zip(x, low)
    )
    body = (
        f"{axes(scales, ('nonzeros of each component', '% of the variance'))}"
        f'<path class="room" d="{there}{back}Z"/><path class="line" d="{line}"/>{dots}'
    )
    return picture(body, "explained variance against the number of nonzeros", "path")


def picture(body: str, label: str, kind: str, beside: int = 0) -> str:
    return (
        f'<svg class="{kind}" viewBox="{-beside} 0 {WIDTH + 2 * beside} {HEIGHT}" role="img" '
        f'aria-label="{escape(label)}">\n{body}\n</svg>'
    )
