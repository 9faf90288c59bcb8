"""Show results as HTML cards in notebooks. Names are untrusted, so all that varies is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from . import words
from .drawings import asset, proof_drawing, signed_bars, some_negative

if TYPE_CHECKING:
    from ..problem.result import Certificate, Result
    from .text import ComponentRow, ComponentTable

# Colours are translucent, so that cards suit light and dark pages. An optimum or a
# small gap has a solid border and a large gap a dashed one, so that they differ in grey print, too.
STYLE = """.sparcipal{font:14px/1.45 system-ui,sans-serif;max-width:72em}
.sparcipal .spc-cards{display:grid;gap:.8em;margin:.8em 0;
 grid-template-columns:repeat(auto-fit,minmax(min(100%,24em),1fr))}
.sparcipal .spc-card{border:1px solid rgba(128,128,128,.45);border-radius:6px;padding:.6em .8em;
 max-width:44em}
.sparcipal .spc-card h4{margin:0 0 .4em;font-size:1em}
.sparcipal .spc-card h4 small{font-weight:normal;opacity:.75;float:right}
.sparcipal .spc-verdict{border-radius:6px;padding:.6em .8em;margin:.8em 0}
.sparcipal .spc-proved{border:2px solid rgb(0,158,115)}
.sparcipal .spc-near{border:2px solid rgb(30,136,200)}
.sparcipal .spc-open{border:2px dashed rgb(213,94,0)}
.sparcipal .spc-verdict table{font:inherit;color:inherit;
 border-collapse:collapse;margin:.4em 0 0;background:none}
.sparcipal .spc-verdict td{text-align:left;vertical-align:top;padding:.1em 1.2em .1em 0;
 background:none;border:0}
.sparcipal .spc-verdict td:nth-child(2){font-variant-numeric:tabular-nums;white-space:nowrap}
.sparcipal .spc-verdict td:last-child{opacity:.75}
.sparcipal p{margin:.3em 0}
"""


def certificate_html(certificate: Certificate) -> str:
    return page_html(certificate_card(certificate))


def table_html(table: ComponentTable) -> str:
    return page_html(component_cards(table))


def result_html(result: Result) -> str:
    """Return the question, the components as cards, and what is proved about them."""
    parts = [
        f"<p><strong>{escape(words.question(result))}</strong><br>{escape(words.data(result))}</p>",
        component_cards(result.table()),
        certificate_card(result.certificate, proof_drawing(result)),
    ]
    if result.note:
        parts.append(f"<p>{words.NOTE}{escape(words.visible(result.note))}</p>")
    return page_html("\n".join(parts))


def component_cards(table: ComponentTable) -> str:
    both = some_negative(table)
    cards = "\n".join(_card(row, both) for row in table)
    return f'<div class="spc-cards">\n{cards}\n</div>'


def certificate_card(certificate: Certificate, drawing: str = "") -> str:
    """Return a card with the verdict, a drawing of it, and the figures behind it."""
    verdict = words.verdict(certificate)
    message = (
        f"\n<p>{escape(words.visible(certificate.message))}</p>" if certificate.message else ""
    )
    return (
        f'<div class="spc-verdict spc-{verdict.tone}">\n'
        f"<strong>{escape(verdict.headline)}</strong>: {escape(verdict.sentence)}\n"
        f"{drawing}{facts_table(certificate)}{message}\n</div>"
    )


def facts_table(certificate: Certificate) -> str:
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in fact) + "</tr>"
        for fact in words.facts(certificate)
    )
    return f"<table>\n{rows}\n</table>"


def _card(row: ComponentRow, both: bool) -> str:
    figure = f"{words.variance(row.variance)} · {words.share_percent(row.share)}"
    return (
        f'<div class="spc-card"><h4>Component {row.component} <small>{figure}</small></h4>\n'
        f"{signed_bars(row, both=both)}\n</div>"
    )


def page_html(body: str) -> str:
    """Return a body with the style of cards and drawings."""
    return (
        f'<style>\n{STYLE}{asset("drawings.css")}</style>\n<div class="sparcipal">\n{body}\n</div>'
    )
