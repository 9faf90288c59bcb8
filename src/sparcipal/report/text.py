"""Write results as plain text: strong features come first, and what is unproved says so."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from . import words

if TYPE_CHECKING:
    from ..problem.result import Certificate, Result

WIDTH = 100


@dataclass(frozen=True)
class ComponentRow:
    """A row holds a component's variance, its share of the total, and its features by strength."""

    component: int  # from 1
    variance: float
    share: float
    features: tuple[str, ...]
    indices: tuple[int, ...]
    weights: tuple[float, ...]


class ComponentTable:
    """Component, variance, features and weights; prints as text and shows as cards in a notebook.

    Attributes
    ----------
    rows : list of ComponentRow
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        self.rows = [_row(result, j) for j in range(len(result.supports))]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ComponentRow]:
        return iter(self.rows)

    def records(self) -> list[dict[str, object]]:
        """Return one record per nonzero weight, as a data frame wants them."""
        return [
            {
                "component": row.component,
                "feature": feature,
                "index": index,
                "weight": weight,
                "variance": row.variance,
            }
            for row in self.rows
            for feature, index, weight in zip(row.features, row.indices, row.weights)
        ]

    def __str__(self) -> str:
        return "\n".join(_table_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .html import table_html

        return table_html(self)


def certificate_text(certificate: Certificate) -> str:
    """Return the certificate as a few aligned lines under its verdict."""
    verdict = words.verdict(certificate)
    lines = [f"{verdict.headline}: {verdict.sentence}"]
    facts = words.facts(certificate)
    width = max(len(name) for name, _, _ in facts)
    figures = max(len(figure) for _, figure, _ in facts)
    for name, figure, meaning in facts:
        lines.append(f"  {name:<{width}}  {figure:<{figures}}  {meaning}")
    if certificate.message:
        lines += textwrap.wrap(
            words.visible(certificate.message), WIDTH, initial_indent="  ", subsequent_indent="  "
        )
    return "\n".join(lines)


def result_text(result: Result) -> str:
    """Return the question, the components, and what is proved about them."""
    lines = [words.question(result), words.data(result)]
    for sentence in words.notes(result):
        lines += textwrap.wrap(sentence, WIDTH, subsequent_indent="  ")
    lines.append("")
    lines += _table_lines(ComponentTable(result))
    lines += ["", certificate_text(result.certificate)]
    if result.note:
        lines += textwrap.wrap(
            words.visible(result.note), WIDTH, initial_indent=words.NOTE, subsequent_indent="  "
        )
    return "\n".join(lines)


def _row(result: Result, j: int) -> ComponentRow:
    support, weights = result.supports[j], result.weights[j]
    order = np.argsort(-np.abs(weights), kind="stable")
    variance = float(result.variances[j])
    return ComponentRow(
        component=j + 1,
        variance=variance,
        share=_share(variance, result),
        features=tuple(result.feature_name(int(support[i])) for i in order),
        indices=tuple(int(support[i]) for i in order),
        weights=tuple(float(weights[i]) for i in order),
    )


def _share(variance: float, result: Result) -> float:
    return variance / result.total_variance if result.total_variance > 0 else float("nan")


def _table_lines(table: ComponentTable) -> list[str]:
    result = table.result
    heads = [("component", "variance", "share")]
    heads += [
        (str(row.component), words.variance(row.variance), words.share_percent(row.share))
        for row in table
    ]
    total = float(np.sum(result.variances))
    heads.append(("sum", words.at_least(total), words.share_percent(_share(total, result))))
    widths = [max(len(head[i]) for head in heads) for i in range(3)]
    starts = ["  ".join(f"{part:>{w}}" for part, w in zip(head, widths)) + "  " for head in heads]
    lines = [f"{starts[0]}features and weights, the strongest first"]
    for row, start in zip(table, starts[1:]):
        pairs = [f"{words.plain(f)} {w:.3f}" for f, w in zip(row.features, row.weights)]
        lines += _wrapped(pairs, start)
    if len(table) > 1:
        lines.append(starts[-1].rstrip())
    return lines


def _wrapped(pairs: list[str], start: str) -> list[str]:
    """Wrap comma-separated pairs under a hanging indent, without breaking a pair."""
    lines, line = [], start
    for i, pair in enumerate(pairs):
        piece = pair + (", " if i + 1 < len(pairs) else "")
        if len(line) + len(piece.rstrip()) > WIDTH and len(line) > len(start):
            lines.append(line.rstrip())
            line = " " * len(start)
        line += piece
    return [*lines, line.rstrip()]
