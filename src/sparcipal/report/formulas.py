"""The scores of a model as SQL, as Python or as equations, for use where this package is not.

A score is the sum over the used features of (x - mean) / scale times the loading. Numbers are
written in full, so that the formulas give the scores of `transform` up to rounding.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from . import words

if TYPE_CHECKING:
    from ..problem.result import Result

FORMS = ("sql", "python", "equation")


class Term(NamedTuple):
    """What one feature adds to a score: weight * (x - center)."""

    name: str
    weight: float
    center: float


def formula(result: Result, form: str) -> str:
    """Return the scoring formulas of a result in the given form."""
    if form not in FORMS:
        raise ValueError(f"form={form!r} is unknown; choose one of {', '.join(FORMS)}")
    made = [list(_terms(result, j)) for j in range(len(result.supports))]
    text = {"sql": _sql, "python": _python, "equation": _equation}[form](made)
    told = _weighting(result)
    return f"{'--' if form == 'sql' else '#'} {told}\n{text}" if told else text


def _weighting(result: Result) -> str:
    """Say what the columns hold where they are words; empty where they are not."""
    told = result.info.get("texts")
    options = told.get("options") if isinstance(told, dict) else None
    if not isinstance(options, dict):
        return ""
    column = {
        "presence": "1 where the word occurs, else 0",
        "log": "ln(1 + the count of the word)",
        "tfidf": "the count of the word times its idf (info['texts'] of the saved model)",
    }.get(str(options.get("weighting")), "the count of the word")
    length = ", divided by the length of the document's vector" if options.get("normalize") else ""
    return f"a column holds {column} in a document{length}"


def _terms(result: Result, component: int) -> Iterator[Term]:
    """Yield the terms of a component, the strongest first."""
    support, weights = result.supports[component], result.weights[component]
    for i in sorted(range(len(support)), key=lambda i: -abs(weights[i])):
        j = int(support[i])
        scale = 1.0 if result.scale is None else float(result.scale[j])
        center = 0.0 if result.mean is None else float(result.mean[j])
        yield Term(result.feature_name(j), float(weights[i]) / scale, center)


def _sql(components: list[list[Term]]) -> str:
    """One select with a column per component; names are quoted as standard SQL quotes them."""
    columns = []
    for number, terms in enumerate(components, start=1):
        parts = [f"{t.weight!r} * ({_quoted(t.name)} - {_signed(t.center)})" for t in terms]
        columns.append("    " + "\n  + ".join(parts) + f" AS component{number}")
    return "SELECT\n" + ",\n".join(columns) + "\nFROM data;"


def _quoted(name: str) -> str:
    return '"' + words.visible(name).replace('"', '""') + '"'


def _signed(number: float) -> str:
    return f"({number!r})" if number < 0 else repr(number)


def _python(components: list[list[Term]]) -> str:
    """A function of a row: a dict, or a frame with these columns."""
    lines = [
        "def scores(row):",
        '    """Scores of a row (a dict, or a frame) on the components."""',
    ]
    for number, terms in enumerate(components, start=1):
        parts = [f"{t.weight!r} * (row[{t.name!r}] - {_signed(t.center)})" for t in terms]
        lines.append(
            f"    component{number} = (\n        " + "\n        + ".join(parts) + "\n    )"
        )
    names = ", ".join(f"component{number}" for number in range(1, len(components) + 1))
    return "\n".join([*lines, f"    return ({names},)"])


def _equation(components: list[list[Term]]) -> str:
    """A line per component in few digits, for a text, with its constant gathered."""
    lines = []
    for number, terms in enumerate(components, start=1):
        constant = -sum(t.weight * t.center for t in terms)
        parts = [f"{_sign(t.weight)} {abs(t.weight):.4g} {_bare(t.name)}" for t in terms]
        if constant:
            parts.append(f"{_sign(constant)} {abs(constant):.4g}")
        lines.append(f"component{number} = " + " ".join(parts).removeprefix("+ "))
    return "\n".join(lines)


def _sign(number: float) -> str:
    return "-" if number < 0 else "+"


def _bare(name: str) -> str:
    """A name as it stands if it is one word, otherwise in brackets."""
    one = re.fullmatch(r"[^\W\d]\w*", name) and not keyword.iskeyword(name)
    return name if one else f"[{words.visible(name)}]"
