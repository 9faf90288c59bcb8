"""Two small charts are written directly as SVG, so that the report needs no plotting library."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from . import words

if TYPE_CHECKING:
    from ..problem.result import Certificate, Result

WIDTH, LEFT, RIGHT, ROW = 680, 170, 215, 26


def bounds_chart(certificate: Certificate, most: int = 6) -> str:
    """Draw a bar per bound, solid up to the value and shaded from there to the bound."""
    bounds = [b for b in certificate.bounds if math.isfinite(b.value)][:most]
    if not bounds or certificate.value <= 0:
        return _svg(ROW, '<text x="0" y="17">no bound was proved</text>', "no bound was proved")
    # A bound several times the value would shrink all other bars, so its bar is cut.
    longest = min(max(b.value for b in bounds), 2.5 * certificate.value)
    unit = (WIDTH - LEFT - RIGHT) / longest
    parts = []
    for i, bound in enumerate(bounds):
        y = 4 + i * ROW
        solid = certificate.value * unit
        room = max(0.0, min(bound.value, longest) - certificate.value) * unit
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(bound.name)}</text>',
            f'<rect class="value" x="{LEFT}" y="{y}" width="{solid:.1f}" height="{ROW - 8}"/>',
            f'<rect class="room" x="{LEFT + solid:.1f}" y="{y}" width="{room:.1f}" '
            f'height="{ROW - 8}"/>',
            f'<text x="{LEFT + solid + room + 6:.1f}" y="{y + 14}">'
            f"{words.at_most(bound.value)}</text>",
        ]
    label = f"value {words.at_least(certificate.value)}; bounds " + ", ".join(
        f"{b.name} {words.at_most(b.value)}" for b in bounds
    )
    return _svg(len(bounds) * ROW + 8, "\n".join(parts), label)


def variance_chart(result: Result) -> str:
    """Draw the cumulative variance of the components and the bound for all of them."""
    together = np.cumsum(result.variances)
    value, bound = float(together[-1]), result.bound
    longest = min(bound, 2.5 * value) if math.isfinite(bound) else value
    unit = (WIDTH - LEFT - RIGHT) / longest if longest > 0 else 0.0
    parts = []
    for i, total in enumerate(together):
        y = 4 + i * ROW
        before = (float(total) - float(result.variances[i])) * unit
        name = words.plain(result.names(i)[0], 16)
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{i + 1}. {escape(name)}</text>',
            f'<rect class="step" x="{LEFT}" y="{y}" width="{before:.1f}" height="{ROW - 8}"/>',
            f'<rect class="value" x="{LEFT + before:.1f}" y="{y}" '
            f'width="{float(result.variances[i]) * unit:.1f}" height="{ROW - 8}"/>',
        ]
        end = float(total) * unit
        figure = words.at_least(float(total))
        if i + 1 == len(together):
            room = max(0.0, longest - value) * unit
            parts.append(
                f'<rect class="room" x="{LEFT + end:.1f}" y="{y}" width="{room:.1f}" '
                f'height="{ROW - 8}"/>'
            )
            end += room
            figure += f", at most {words.at_most(bound)}"
        parts.append(f'<text x="{LEFT + end + 6:.1f}" y="{y + 14}">{figure}</text>')
    label = f"cumulative variance up to {words.at_least(value)}, at most {words.at_most(bound)}"
    return _svg(len(together) * ROW + 8, "\n".join(parts), label)


def _svg(height: int, body: str, label: str) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">'
    return f"{head}\n{body}\n</svg>"
