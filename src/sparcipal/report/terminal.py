"""Show results on a terminal that has colours; text.py makes the plain text for other places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from . import words
from .text import ComponentRow, ComponentTable

if TYPE_CHECKING:
    from ..problem.result import Certificate, Result


COLOURS = {"proved": "green", "near": "cyan", "open": "yellow"}


def result_view(result: Result, *, feature: str = "feature") -> RenderableType:
    """Return the question, the components, and what is proved about them."""
    head = Text(f"{words.question(result)}\n", style="bold")
    head.append(words.data(result), style="not bold dim")
    parts: list[RenderableType] = [
        head,
        *map(_note, words.notes(result)),
        components_view(result, feature),
        certificate_view(result.certificate),
    ]
    if result.note:
        parts.append(_note(words.NOTE + words.visible(result.note)))
    return Group(*parts)


def _note(sentence: str) -> Padding:
    """Indent a sentence, so that no line of a long one looks like a headline."""
    return Padding(Text(sentence, style="yellow"), (0, 0, 0, 2))


def components_view(result: Result, feature: str = "feature") -> Table:
    """Return a table with a row per component; strong weights are bright."""
    rows = ComponentTable(result)
    table = Table(box=box.SIMPLE_HEAD, show_footer=len(rows) > 1, pad_edge=False)
    total = float(result.variances.sum())
    table.add_column("", justify="right", style="bold")
    table.add_column("variance", justify="right", footer=words.at_least(total))
    share = total / result.total_variance if result.total_variance > 0 else float("nan")
    table.add_column("share", justify="right", footer=words.share_percent(share))
    table.add_column(f"{feature}s and weights, the strongest first", overflow="fold")
    for row in rows:
        table.add_row(
            str(row.component),
            words.variance(row.variance),
            words.share_percent(row.share),
            _Loadings(row),
        )
    return table


def certificate_view(certificate: Certificate) -> Panel:
    """Frame the certificate: green if the optimum is proved, blue if the gap is small, yellow and
    without sides if it is large."""
    verdict = words.verdict(certificate)
    colour = COLOURS[verdict.tone]
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="dim")
    facts.add_column(style="bold")
    facts.add_column(style="dim")
    for fact in words.facts(certificate):
        facts.add_row(*(Text(cell) for cell in fact))
    head = Text(verdict.headline, style=f"bold {colour}")
    parts: list[RenderableType] = [head, Text(verdict.sentence, style=colour), facts]
    if certificate.message:
        parts.append(Text(words.visible(certificate.message)))
    return Panel(
        Group(*parts),
        border_style=colour,
        box=box.HORIZONTALS if verdict.tone == "open" else box.ROUNDED,
        expand=False,
    )


class _Loadings:
    """This renders names with their weights; lines break only between pairs."""

    def __init__(self, row: ComponentRow) -> None:
        strongest = max((abs(w) for w in row.weights), default=1.0)
        self._pairs = [
            Text.assemble(
                (words.plain(name), "bold cyan" if abs(w) >= 0.5 * strongest else "cyan"),
                (f" {w:.2f}", "magenta" if w < 0 else "dim"),
            )
            for name, w in zip(row.features, row.weights)
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = Text()
        for pair in self._pairs:
            if line.cell_len and line.cell_len + 2 + pair.cell_len > options.max_width:
                yield line
                line = Text()
            line.append("  " if line.cell_len else "")
            line.append_text(pair)
        yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [pair.cell_len for pair in self._pairs]
        return Measurement(max(widths, default=0), sum(widths) + 2 * len(widths))
