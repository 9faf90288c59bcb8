"""Show answers to questions as cards in notebooks.

Names are untrusted, so all that varies is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from . import words
from .answers import alternatives_html, stability_html
from .drawings import choice_map, proof_drawing
from .html import certificate_card, page_html
from .svg import path_chart

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..path import Path
    from ..problem.answers import Alternatives
    from ..problem.result import Result
    from ..questions.choice import Choice
    from ..questions.growth import Update
    from ..questions.resampling import Stability
    from ..questions.windows import Trends

# Colours are translucent or those of the text, so that cards suit light and dark pages.
STYLE = """.sparcipal table.spc-plain{font:inherit;color:inherit;border-collapse:collapse;
 background:none}
.sparcipal .spc-plain :is(th,td){text-align:left;vertical-align:top;padding:.2em 1.2em .2em 0;
 border-bottom:1px solid rgba(128,128,128,.4);background:none}
.sparcipal pre{font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;margin:.3em 0;
 background:none}
.sparcipal .part{display:inline-block;width:9em;height:.7em;border-radius:3px;overflow:hidden;
 background:rgba(128,128,128,.3)}
.sparcipal .part i{display:block;height:100%;background:rgb(30,136,200)}
.sparcipal svg{width:100%;max-width:40rem;height:auto;display:block}
.sparcipal svg text{fill:currentColor;font:12px system-ui,sans-serif}
.sparcipal svg .grid{stroke:rgba(128,128,128,.4);stroke-width:.8;fill:none}
.sparcipal svg .line{fill:none;stroke:rgb(30,136,200);stroke-width:2}
.sparcipal svg .value{fill:rgb(30,136,200)}
.sparcipal svg .room{fill:rgb(230,159,0);fill-opacity:.4;stroke:none}
"""


def choice_card(found: Choice) -> str:
    """Return the recommendation, and the map it comes from."""
    return _card(f"<p>{escape(words.visible(found.reason))}</p>\n{choice_map(found)}")


def stability_card(found: Stability) -> str:
    """Return how often features come back, with bars."""
    plain = stability_html(found).replace('class="often"', 'class="spc-plain"')
    return _card(plain)


def alternatives_card(found: Alternatives) -> str:
    """Return what is nearly as good, and what features cost."""
    return _card(alternatives_html(found).replace("<table>", '<table class="spc-plain">'))


def path_card(found: Path) -> str:
    """Return the curve of what is explained, and a line for each number of nonzeros."""
    results = list(found)
    curve = path_chart(results) if len(results) > 1 else ""
    head = ("nonzeros of each", "value", "bound", "gap", "of all variance")
    lines = [
        (
            f"{result.settings['n_nonzero_coefs'][0]}",
            *words.figures(result.value, result.bound),
            words.gap_percent(result.certificate.gap),
            words.share_percent(_share(result)),
        )
        for result in results
    ]
    return _card(f"{curve}\n{_table(head, lines)}")


def _share(result: Result) -> float:
    return result.value / result.total_variance if result.total_variance > 0 else float("nan")


def _table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    first = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>\n" for line in lines
    )
    return (
        f'<table class="spc-plain"><thead><tr>{first}</tr></thead>\n<tbody>{rows}</tbody></table>'
    )


def comparison_card(found: Comparison) -> str:
    """Return the table of methods."""
    return _text(str(found))


def trends_card(found: Trends) -> str:
    """Return the topics of each window."""
    return _text(str(found))


def update_card(found: Update) -> str:
    """Return what has changed, and what is proved now."""
    result = found.result
    proof = certificate_card(result.certificate, proof_drawing(result))
    return _card(f"<pre>{escape(str(found))}</pre>\n{proof}")


def _text(told: str) -> str:
    return _card(f"<pre>{escape(told)}</pre>")


def _card(body: str) -> str:
    return page_html(f"<style>\n{STYLE}</style>\n{body}")
