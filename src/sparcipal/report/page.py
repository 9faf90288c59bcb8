"""The report is one HTML file that needs no network and is readable on phones and on paper.

Everything that varies is escaped, and the page's content policy forbids it to load anything.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ..data.scores import scores, strongest_samples
from ..problem.result import Result
from ..problem.saving import write_atomically
from . import words
from .html import facts_table
from .svg import bounds_chart, variance_chart
from .text import ComponentRow, ComponentTable

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
TOP_SAMPLES = 5
VISIBLE_GAP = 1e-3  # a smaller gap is a fraction of a pixel in the chart


def write_report(result: Result, path: str | os.PathLike[str], *, table: Any = None) -> None:
    """Write the report of a result to a file; a Table of the data adds the strongest samples."""
    write_atomically(Path(path), report_html(result, table=table))


def report_html(result: Result, *, table: Any = None) -> str:
    """Return the report as a string of HTML."""
    rows = ComponentTable(result)
    samples = _strongest(result, table)
    title = f"{words.question(result)} | sparcipal"
    sections = [
        _head(result),
        _section("Components", _cards(rows, samples)),
        _section("What is proved, and how", _proof(result)),
        _section("All loadings", _loadings(rows)),
        _section("To do it again", _again(result)),
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_asset('page.css')}</style></head><body>",
            *sections,
            f"<script>\n{_asset('page.js')}</script>",
            "</body></html>\n",
        ]
    )


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n{body}\n</section>"


def _head(result: Result) -> str:
    certificate = result.certificate
    verdict = words.verdict(certificate)
    message = f"<p>{escape(certificate.message)}</p>" if certificate.message else ""
    note = f'<p class="soft">{escape(words.visible(result.note))}</p>' if result.note else ""
    return (
        f"<header><h1>{escape(words.question(result))}</h1>\n"
        f'<p class="soft">{escape(words.data(result))}</p>\n'
        f'<div class="verdict {verdict.tone}"><strong>{escape(verdict.headline)}</strong>: '
        f"{escape(verdict.sentence)}\n{facts_table(certificate)}{message}</div>{note}</header>"
    )


def _cards(rows: ComponentTable, samples: list[list[tuple[str, float]]]) -> str:
    cards = "\n".join(_card(row, samples[i] if samples else []) for i, row in enumerate(rows))
    return f'<div class="cards">\n{cards}\n</div>'


def _card(row: ComponentRow, samples: list[tuple[str, float]]) -> str:
    largest = max((abs(w) for w in row.weights), default=1.0) or 1.0
    loads = "\n".join(_load(name, w, largest) for name, w in zip(row.features, row.weights))
    title = ", ".join(words.plain(name) for name in row.features[:3])
    figures = f"variance {words.variance(row.variance)}, {words.share_percent(row.share)}"
    strongest = ""
    if samples:
        entries = "".join(
            f"<li>{escape(words.plain(name, 120))} ({words.rounded(score, 3)})</li>"
            for name, score in samples
        )
        strongest = f"<h4>samples that score highest</h4><ol>{entries}</ol>"
    return (
        f'<article class="card"><h3>{row.component}. {escape(title)}</h3>'
        f'<p class="soft">{figures}</p>\n{loads}\n{strongest}</article>'
    )


def _load(feature: str, weight: float, largest: float) -> str:
    name = escape(words.plain(feature, 200))
    negative = " negative" if weight < 0 else ""
    return (
        f'<div class="load"><span title="{name}">{name}</span><div><div class="bar{negative}" '
        f'style="width:{100 * abs(weight) / largest:.0f}%"></div></div><b>{weight:.3f}</b></div>'
    )


def _proof(result: Result) -> str:
    certificate = result.certificate
    visible = VISIBLE_GAP <= certificate.gap < float("inf")
    shaded = " The optimum lies in the shaded part of the first bar." if visible else ""
    parts = [
        "<p>The value is what the components above explain. Each bound below was proved to be at "
        "least what any components of this kind can explain; the smallest counts. With the saved "
        "proof, <code>sparcipal verify</code> recomputes all of it from the data.</p>",
        f"<figure>{bounds_chart(certificate)}<figcaption>The value, and how far above it "
        f"each proved bound lies.{shaded}</figcaption></figure>",
    ]
    if len(result.supports) > 1:
        parts.append(
            f"<figure>{variance_chart(result)}<figcaption>Variance explained by the first "
            "components together; shaded: what all of them could explain more at most."
            "</figcaption></figure>"
        )
    if certificate.eliminated:
        parts.append(
            f"<p>The solver reports that it set aside {certificate.eliminated} of "
            f"{result.n_features} features, as unnecessary or without variance; that is no part of "
            "the proof.</p>"
        )
    return "\n".join(parts)


def _loadings(rows: ComponentTable) -> str:
    options = "".join(
        f'<option value="{r.component}">component {r.component}</option>' for r in rows
    )
    heads = "".join(
        f'<th scope="col"{kind}><button type="button">{name}</button></th>'
        for name, kind in (
            ("component", ""),
            ("feature", ""),
            ("weight", ' class="number"'),
            ("variance", ' class="number"'),
        )
    )
    body = "\n".join(_loading(record) for record in rows.records())
    return (
        '<div class="tools"><input id="search" type="search" placeholder="search features" '
        'aria-label="search features">'
        '<select id="only" aria-label="component"><option value="">all components</option>'
        f'{options}</select><button id="copy" type="button">copy as CSV</button>'
        '<span id="count" class="soft" role="status"></span></div>\n'
        f'<div class="scroll"><table id="loadings"><thead><tr>{heads}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _loading(record: dict[str, Any]) -> str:
    component, weight, variance = record["component"], record["weight"], record["variance"]
    name, full = escape(words.plain(record["feature"], 200)), _attribute(record["feature"])
    return (
        f'<tr><td data-value="{component}">{component}</td><td data-name="{full}">{name}</td>'
        f'<td class="number" data-value="{weight!r}">{weight:.4f}</td>'
        f'<td class="number" data-value="{variance!r}">{words.variance(variance)}</td></tr>'
    )


def _attribute(text: str) -> str:
    """Escape text for an attribute; line ends become references, as a parser would change them.

    The references 128 to 159 mean other characters in HTML, so these are written as they are.
    """
    kept = (c if c.isprintable() or "\x80" <= c <= "\x9f" else f"&#{ord(c)};" for c in escape(text))
    return "".join(kept)


def _again(result: Result) -> str:
    """Return the settings and versions that are needed for the same answer."""
    asked = {k: v for k, v in result.settings.items() if v not in (None, {}, [])}
    lines = [f"  {json.dumps(name)}: {json.dumps(v, default=str)}" for name, v in asked.items()]
    settings = "{\n" + ",\n".join(lines) + "\n}"
    versions = "\n".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("sparcipal", "numpy", "scipy", "scikit-learn", "numba")
    )
    return (
        f"<pre>{escape(settings)}</pre>\n"
        f"<pre>{escape(versions)}\npython {escape(platform.python_version())}</pre>"
    )


def _strongest(result: Result, table: Any) -> list[list[tuple[str, float]]]:
    """Return for each component the names and scores of the samples that score highest."""
    if table is None or result.mean is None:
        return []
    values = scores(result, table.X)
    names = table.sample_names
    chosen: list[list[tuple[str, float]]] = []
    for j in range(values.shape[1]):
        best: np.ndarray = strongest_samples(values, j, TOP_SAMPLES)
        chosen.append(
            [(names[i] if names is not None else f"sample {i}", float(values[i, j])) for i in best]
        )
    return chosen
