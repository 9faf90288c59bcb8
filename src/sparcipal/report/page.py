"""The report is one HTML file that needs no network and is readable on phones and on paper.

Everything that varies is escaped, and the page's content policy forbids it to load anything.
"""

from __future__ import annotations

import json
import math
import os
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..data.samples import features_of
from ..data.scores import strongest_samples
from ..problem.result import Certificate, Result, answer_of
from ..problem.saving import write_atomically
from . import again, summary, words
from .answers import alternatives_html, stability_html
from .drawings import (
    asset,
    choice_map,
    correlation_table,
    proof_drawing,
    signed_bars,
    some_negative,
)
from .html import facts_table
from .samples import Samples, samples_of
from .scatter import samples_section
from .svg import path_chart
from .text import ComponentRow, ComponentTable

if TYPE_CHECKING:
    from ..problem.answers import Alternatives
    from ..questions.choice import Choice
    from ..questions.resampling import Stability

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
TOP_SAMPLES = 5
CORRELATED = 12  # components whose correlations are drawn
BOUNDS = 6


def write_report(
    result: Result,
    path: str | os.PathLike[str],
    *,
    table: Any = None,
    along: Any = None,
    choice: Choice | None = None,
    alternatives: Alternatives | None = None,
    stability: Stability | None = None,
) -> None:
    """Write the report of a result to a file.

    Parameters
    ----------
    result : Result, or a fitted SparsePCA
    path : str or path
    table : Table or anything `sparse_pca` takes, optional
        The data: adds pictures of the samples, and correlations between the components.
    along : Path or sequence of Result, optional
        Results for other numbers of nonzeros: adds a picture of them.
    choice : Choice, optional
        Adds the map over components and nonzeros, and its recommendation.
    alternatives : Alternatives, optional
        Adds what else is nearly as good, and what each feature is worth.
    stability : Stability, optional
        Adds how often features come back when the rows change.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path is a {type(path).__name__}; call write_report(result, path, table=table)"
        )
    more = {"alternatives": alternatives, "stability": stability}
    page = report_html(result, table=table, along=along, choice=choice, **more)
    write_atomically(Path(path), page)


def report_html(
    result: Result,
    *,
    table: Any = None,
    along: Any = None,
    choice: Choice | None = None,
    alternatives: Any = None,
    stability: Any = None,
) -> str:
    """Return the report as a string of HTML."""
    answer = answer_of(result)
    if answer is None:
        raise TypeError(
            f"result is a {type(result).__name__}; pass a Result or a fitted SparsePCA, and the "
            "data as table="
        )
    result = answer
    rows = ComponentTable(result)
    samples = None
    if table is not None and result.mean is not None:
        gaps = "missing" in result.info
        samples = samples_of(result, features_of(result, table, gaps=gaps))
    drawn = "" if samples is None else samples_section(result, samples)
    sections = [
        ("samples", f"The {summary.nouns(result)[0]}s", drawn),
        ("components", "The components", _cards(rows, samples)),
        ("correlations", "Do components say the same?", _correlations(result, samples)),
        ("choice", "How many?", _choice(along, choice)),
        ("alternatives", "Is it the only answer?", _nearby(result, alternatives)),
        ("stability", "Would other rows give the same?", _resampled(result, stability)),
        ("proof", "What is proved", _proof(result)),
        ("loadings", "All loadings", _loadings(rows)),
        ("again", "To do it again", _again(result)),
    ]
    shown = [section for section in sections if section[2]]
    title = f"{_title(result)} | sparcipal"
    links = "".join(f'<a href="#{name}">{escape(head)}</a>' for name, head, _ in shown)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{asset('drawings.css')}{asset('page.css')}</style></head><body>",
            _head(result, samples),
            f'<nav aria-label="sections">{links}</nav>\n<main>',
            *(
                f'<section id="{name}"><h2>{escape(head)}</h2>\n{body}\n</section>'
                for name, head, body in shown
            ),
            "</main>",
            _foot(),
            f"<script>\n{asset('page.js')}</script>",
            "</body></html>\n",
        ]
    )


def _title(result: Result) -> str:
    k = len(result.supports)
    source = again.source_of(result)
    of = "" if source is None or source == "-" else f" of {Path(source).name}"
    return words.visible(f"{summary.count(k).capitalize()} component{'s' * (k > 1)}{of}")


def _head(result: Result, samples: Samples | None) -> str:
    verdict = words.verdict(result.certificate)
    used = np.unique(np.concatenate(result.supports)).size
    whole = result.total_variance
    share = words.share_percent(result.value / whole) if whole > 0 else "unknown"
    k = len(result.supports)
    captured = "of the variance captured"
    if words.repeated(result):
        captured = "of the variance: the sum over components, which repeat each other"
    tiles = [
        ("", share, escape(captured)),
        (
            "",
            f"{used:,} of {result.n_features:,}",
            f"{summary.nouns(result)[1]}s used, in {k} component{'s' * (k > 1)}",
        ),
        (verdict.tone, _short(result.certificate), escape(_headline(result.certificate))),
    ]
    boxes = "".join(
        f'<li class="tile {tone}"><b>{escape(figure)}</b><span>{meaning}</span></li>'
        for tone, figure, meaning in tiles
    )
    text = " ".join(summary.sentences(result, samples))
    # How far components repeat each other is said with their correlations, if these are shown.
    later = [] if samples is None else words.redundancy(result)
    told = "".join(f"<li>{escape(n)}</li>" for n in words.notes(result) if n not in later)
    notes = f'<ul class="soft notes">{told}</ul>' if told else ""
    said = escape(words.NOTE + words.visible(result.note))
    note = f'<p class="soft">{said}</p>' if result.note else ""
    return (
        f"<header><h1>{escape(_title(result))}</h1>\n"
        f'<p class="soft">{escape(words.question(result))}; {escape(words.data(result))}</p>\n'
        f'<p class="lead">{escape(text)}</p>\n<ul class="tiles">{boxes}</ul>\n'
        f"{notes}{note}</header>"
    )


def _headline(certificate: Certificate) -> str:
    """Return the headline of the verdict, and to within what it holds."""
    verdict, gap = words.verdict(certificate), certificate.gap
    exactly = not verdict.proved or gap < words.SAME
    return verdict.headline + ("" if exactly else f", to within {words.about_percent(gap)}")


def _short(certificate: Certificate) -> str:
    """Return the verdict in a word or two."""
    if not math.isfinite(certificate.gap):
        return "unknown"
    if certificate.gap > words.FAR:
        return f"≥ {words.least_share(certificate.gap)}"
    if words.verdict(certificate).proved:
        return "the best"  # the headline below says to within what
    return f"≤ {words.about_percent(certificate.gap)} off"


def _cards(rows: ComponentTable, samples: Samples | None) -> str:
    both = some_negative(rows)
    cards = "\n".join(_card(rows.result, row, both, samples) for row in rows)
    signs = (
        '<p class="soft">Bars to the right raise the score, striped ones to the left lower it.</p>'
        if both
        else ""
    )
    return f'{signs}<div class="cards">\n{cards}\n</div>'


def _card(result: Result, row: ComponentRow, both: bool, samples: Samples | None) -> str:
    title = ", ".join(words.plain(name) for name in row.features[:3])
    more = len(row.features) - 3
    figures = f"{words.share_percent(row.share)} of the variance ({words.variance(row.variance)})"
    said = escape(summary.component(result, row.component - 1))
    strongest = "" if samples is None else _strongest(result, samples, row.component - 1)
    return (
        f'<article class="card"><h3>{row.component}. {escape(title)}{" …" if more > 0 else ""}</h3>'
        f'<p class="soft">{figures}</p>\n<p>{said}</p>\n{signed_bars(row, both=both)}\n{strongest}'
        "</article>"
    )


def _strongest(result: Result, samples: Samples, component: int) -> str:
    """List the samples that score highest."""
    best = strongest_samples(samples.scores, component, TOP_SAMPLES)
    entries = "".join(
        f"<li>{escape(words.plain(samples.name(int(i)), 120))}{_labelled(samples, int(i))} "
        f"({words.rounded(float(samples.scores[i, component]), 3)})</li>"
        for i in best
    )
    return f"<h4>{summary.nouns(result)[0]}s that score highest</h4><ol>{entries}</ol>"


def _labelled(samples: Samples, row: int) -> str:
    if samples.labels is None or len(set(samples.labels)) < 2:
        return ""
    return f", {escape(words.plain(samples.labels[row], 40))}"


def _correlations(result: Result, samples: Samples | None) -> str:
    k = len(result.supports)
    if samples is None or k < 2:
        return ""
    told = (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in words.redundancy(result))
    advice = escape(" ".join(told))
    shown = samples.correlations[:CORRELATED, :CORRELATED]
    first = f" The first {CORRELATED} are shown." if k > CORRELATED else ""
    together = "".join(f" {line}" for line in summary.together(result, samples.together))
    return (
        f"<p>{escape(summary.related(samples.correlations))}{first}{escape(together)}</p>\n"
        f'<div class="scroll">{correlation_table(shown)}</div>\n<p>{advice}</p>'
    )


def _choice(along: Any, choice: Choice | None) -> str:
    parts = []
    if choice is not None:
        parts += [f"<p>{escape(words.visible(choice.reason))}</p>", choice_map(choice)]
    results = [] if along is None else list(along)
    if len(results) > 1:
        parts.append(
            f"<figure>{path_chart(results)}<figcaption>What is explained with more and more "
            "nonzeros. The best possible lies between the line and the top of the shaded region: "
            "proved; where no region is seen, the line is the best possible.</figcaption></figure>"
        )
    return "\n".join(parts)


def _nearby(result: Result, found: Alternatives | None) -> str:
    if found is None:
        return ""
    _same(result, found.result, "alternatives")
    return f'<div class="scroll">{alternatives_html(found)}</div>'


def _resampled(result: Result, found: Stability | None) -> str:
    if found is None:
        return ""
    _same(result, found.reference, "stability")
    return stability_html(found)


def _same(result: Result, other: Result, name: str) -> None:
    """Refuse what belongs to another answer."""
    if [s.tolist() for s in result.supports] != [s.tolist() for s in other.supports]:
        raise ValueError(f"{name} belongs to another answer; ask with the result of this report")


def _proof(result: Result) -> str:
    certificate = result.certificate
    verdict = words.verdict(certificate)
    message = f"<p>{escape(words.visible(certificate.message))}</p>" if certificate.message else ""
    parts = [
        f'<div class="verdict {verdict.tone}"><strong>{escape(verdict.headline)}</strong>: '
        f"{escape(verdict.sentence)}\n{proof_drawing(result)}{facts_table(certificate)}{message}"
        "</div>",
        "<p>Anyone can check this without trusting the program that found it: with the saved "
        "proof, <code>sparcipal verify</code> recomputes all of it from the data, by other code."
        "</p>",
        _bounds(certificate),
    ]
    if certificate.eliminated:
        parts.append(
            f"<p>The solver reports that it set aside {certificate.eliminated} of "
            f"{result.n_features} features, as unnecessary or without variance; that is no part of "
            "the proof.</p>"
        )
    return "\n".join(parts)


def _bounds(certificate: Certificate) -> str:
    """Return the bounds that were proved, with how far above the value each is."""
    proved = [b for b in certificate.bounds if math.isfinite(b.value)][:BOUNDS]
    if not proved or certificate.value <= 0:
        return "<p>No bound was proved.</p>"
    lines = "".join(
        f"<tr><td>{escape(words.visible(words.bound_name(b.name)))}</td>"
        f'<td class="number">{escape(words.at_most(b.value))}</td>'
        f'<td class="number">{escape(_above(b.value, certificate.value))}</td></tr>'
        for b in proved
    )
    return (
        "<details><summary>Every bound that was proved</summary><p>Each of them is at least what "
        "any components of this kind explain; the smallest counts.</p>"
        '<div class="scroll"><table><thead><tr><th scope="col">proved by</th><th scope="col" '
        'class="number">bound</th><th scope="col" class="number">above the value</th></tr></thead>'
        f"<tbody>{lines}</tbody></table></div></details>"
    )


def _above(bound: float, value: float) -> str:
    return words.gap_percent(max(0.0, (bound - value) / value))


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
        f'<div class="scroll"><table id="table"><thead><tr>{heads}</tr></thead>\n'
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
    """Return source, versions, and what to type for the same answer."""
    shell = again.command(result)
    blocks = []
    if shell is not None:
        blocks.append(_code("In a shell", shell))
    blocks.append(_code("In Python", again.python_lines(result)))
    asked = {k: v for k, v in result.settings.items() if v not in (None, {}, [])}
    lines = [f"  {json.dumps(name)}: {json.dumps(v, default=str)}" for name, v in asked.items()]
    settings = "{\n" + ",\n".join(lines) + "\n}"
    facts = [*_source(result), *again.versions()]
    told = "".join(f"<dt>{escape(a)}</dt><dd>{escape(words.visible(b))}</dd>" for a, b in facts)
    return (
        "\n".join(blocks)
        + f'\n<dl class="facts">{told}</dl>\n<details><summary>All settings</summary>'
        f"<pre>{escape(settings)}</pre></details>"
    )


def _code(title: str, text: str) -> str:
    return (
        f'<div class="code"><h3>{title}</h3><button type="button" class="take">copy</button>'
        f'<pre tabindex="0">{escape(words_of(text))}</pre></div>'
    )


def words_of(text: str) -> str:
    """Return lines with control characters spelled out."""
    return "\n".join(words.visible(line) for line in text.split("\n"))


def _source(result: Result) -> list[tuple[str, str]]:
    source = again.source_of(result)
    if source is None or source == "-":
        return []
    try:
        seen = os.stat(source)
    except (OSError, ValueError):
        return [("source", source)]
    changed = datetime.fromtimestamp(seen.st_mtime, UTC)
    return [("source", f"{source} ({seen.st_size:,} bytes, changed {changed:%Y-%m-%d %H:%M} UTC)")]


def _foot() -> str:
    now = datetime.now(UTC)
    return (
        f'<footer class="soft">Written on <time datetime="{now:%Y-%m-%dT%H:%MZ}">'
        f"{now:%Y-%m-%d %H:%M} UTC</time> by sparcipal {escape(__version__)}. "
        "This page is one file; it loads nothing and sends nothing.</footer>"
    )
