"""The scores of a model as SQL, as Python or as equations, for use where this package is not.

A score is the sum over the used features of (x - mean) / scale times the loading. In SQL and
Python numbers are written in full, so that the formulas give the scores of `transform` up to
rounding; equations are for a text, and have the digits that a score needs for about `CLOSE`.
"""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from . import words

if TYPE_CHECKING:
    from ..problem.result import Result

FORMS = ("sql", "python", "equation")
DIGITS = 4  # of a number in an equation, at least
CLOSE = 1e-3  # how far scores of equations may be off, in standard deviations
# Lines of a function that fills an entry, or a column of a pandas frame.
_FILLED = (
    "def filled(x, fill):",
    '    if hasattr(x, "fillna"):',
    "        return x.fillna(fill)",
    "    return fill if x is None or x != x else x",
    "",
    "",
)


class Term(NamedTuple):
    """What one feature adds to a score: weight * (x - center), with x the fill where it is
    missing."""

    name: str
    weight: float
    center: float
    fill: float | None


def formula(result: Result, form: str) -> str:
    """Return the scoring formulas of a result in the given form."""
    if form not in FORMS:
        raise ValueError(f"form={form!r} is unknown; choose one of {', '.join(FORMS)}")
    made = [list(_terms(result, j)) for j in range(len(result.supports))]
    _refuse_shared(result)
    if form == "equation":
        text, accuracy = _equation(made, _within(result)), "scores are right to about a"
        accuracy += " thousandth of their standard deviation in the fit"
    else:
        text, accuracy = {"sql": _sql, "python": _python}[form](made), ""
    mark = "--" if form == "sql" else "#"
    comments = [_weighting(result), _coded(result, form), _gaps(result, form, made), accuracy]
    comments += [_alike(result)] if form == "sql" else []
    return "\n".join([*(f"{mark} {told}" for told in comments if told), text])


def _coded(result: Result, form: str) -> str:
    """Say which entries stood for missing ones when the file was read; empty if none did."""
    read = result.settings.get("read")
    codes = read.get("na_values") if isinstance(read, dict) else None
    if codes is None or codes == []:
        return ""
    codes = codes if isinstance(codes, list | tuple) else [codes]
    none = {"sql": "make them NULL", "python": "make them None or nan"}.get(form, "leave them out")
    return f"entries of {', '.join(repr(code) for code in codes)} are missing ones: {none} before"


def _refuse_shared(result: Result) -> None:
    """Refuse names that several features have, as in results of earlier versions: a formula would
    take one column for another."""
    every = Counter(result.feature_names or ())
    shared = [words.plain(name) for name in _used(result) if every[name] > 1]
    if shared:
        raise ValueError(
            f"several features are called {', '.join(shared)}, so that no formula can tell them "
            "apart; fit again, which makes names distinct"
        )


def _alike(result: Result) -> str:
    """Say which names differ from a used one only in upper and lower case; empty if none do."""
    spelled: dict[str, list[str]] = {name.casefold(): [] for name in _used(result)}
    for name in result.feature_names or ():
        if name.casefold() in spelled:
            spelled[name.casefold()].append(words.visible(name))
    several = [" and ".join(names) for names in spelled.values() if len(names) > 1]
    if not several:
        return ""
    return (
        f"{'; '.join(several)} differ in upper and lower case only, which SQLite, DuckDB and "
        "others do not tell apart: rename one, in the table and here"
    )


def _used(result: Result) -> list[str]:
    return sorted({result.feature_name(int(j)) for support in result.supports for j in support})


def _gaps(result: Result, form: str, components: list[list[Term]]) -> str:
    """Say what a missing entry means for the scores; empty where the fit had no rule for it."""
    told = result.info.get("missing")
    rule = told.get("rule") if isinstance(told, dict) else None
    rule = result.settings.get("missing", rule)
    if rule in ("mean", "median"):
        if form != "equation":
            return f"a missing entry counts as the {rule} of its column in the fit"
        fills: dict[str, str] = {}
        for terms, within in zip(components, _within(result), strict=True):
            for t in terms:
                if t.fill is not None:
                    told = _near(t.fill, within / abs(t.weight) if t.weight else math.inf)
                    fills[t.name] = max(told, fills.get(t.name, ""), key=len)
        listed = ", ".join(f"{_bare(name)} = {fill}" for name, fill in fills.items())
        return f"a missing entry counts as the {rule} of its column in the fit: {listed}"
    if rule in ("rows", "pairwise"):
        return (
            "for rows without missing entries only: those with gaps need `sparcipal transform`, "
            "which estimates what is missing from the entries that are there"
        )
    return ""


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
    missing = result.info.get("missing")
    fill = missing.get("fill") if isinstance(missing, dict) else None
    if not (isinstance(fill, np.ndarray) and fill.shape == (result.n_features,)):
        fill = None
    for i in sorted(range(len(support)), key=lambda i: -abs(weights[i])):
        j = int(support[i])
        scale = 1.0 if result.scale is None else float(result.scale[j])
        center = 0.0 if result.mean is None else float(result.mean[j])
        own = None if fill is None else float(fill[j])
        yield Term(result.feature_name(j), float(weights[i]) / scale, center, own)


def _sql(components: list[list[Term]]) -> str:
    """Return one select with a column per component; names are quoted as standard SQL quotes
    them."""
    columns = []
    for number, terms in enumerate(components, start=1):
        parts = [f"{t.weight!r} * ({_entry(t)} - {_signed(t.center)})" for t in terms]
        columns.append("    " + "\n  + ".join(parts) + f" AS component{number}")
    return "SELECT\n" + ",\n".join(columns) + "\nFROM data;"


def _entry(term: Term) -> str:
    """Return a column in SQL, filled where that was asked for."""
    quoted = _quoted(term.name)
    return quoted if term.fill is None else f"COALESCE({quoted}, {term.fill!r})"


def _quoted(name: str) -> str:
    """Return a name as standard SQL quotes it, line breaks and tabs included; another name would be
    taken for a text by some databases."""
    if words.visible(re.sub(r"[\n\t]", "", name)) != re.sub(r"[\n\t]", "", name):
        raise ValueError(
            f"the feature {words.plain(name)!r} has a control character in its name, which is not "
            "printed; rename it, or take --as python, which spells it out"
        )
    return '"' + name.replace('"', '""') + '"'


def _signed(number: float) -> str:
    return f"({number!r})" if number < 0 else repr(number)


def _python(components: list[list[Term]]) -> str:
    """Return a function of a row: a dict, or a frame with these columns."""
    filled = any(t.fill is not None for terms in components for t in terms)
    lines = [
        *(_FILLED if filled else ()),
        "def scores(row):",
        '    """Scores of a row (a dict, or a frame) on the components."""',
    ]
    for number, terms in enumerate(components, start=1):
        entries = (
            f"row[{t.name!r}]" if t.fill is None else f"filled(row[{t.name!r}], {t.fill!r})"
            for t in terms
        )
        parts = [
            f"{t.weight!r} * ({x} - {_signed(t.center)})"
            for t, x in zip(terms, entries, strict=True)
        ]
        lines.append(
            f"    component{number} = (\n        " + "\n        + ".join(parts) + "\n    )"
        )
    names = ", ".join(f"component{number}" for number in range(1, len(components) + 1))
    return "\n".join([*lines, f"    return ({names},)"])


def _within(result: Result) -> list[float]:
    """Return how far a constant of each score may be off."""
    variances = np.maximum(result.variances, 0.0)
    return [CLOSE / 4 * float(spread) for spread in np.sqrt(variances)]


def _near(number: float, within: float) -> str:
    """Return a number in few digits, and in more where they do not bring it near enough."""
    told = (f"{number:.{digits}g}" for digits in range(DIGITS, 17))
    return next((text for text in told if abs(float(text) - number) <= within), repr(number))


def _equation(components: list[list[Term]], within: list[float]) -> str:
    """Return a line per component in few digits, for a text, with its constant gathered.

    The constant belongs to the weights as they are written, so that their rounding counts by
    deviations from the means alone, however large the means are.
    """
    lines = []
    for number, (terms, near) in enumerate(zip(components, within, strict=True), start=1):
        weights = [f"{abs(t.weight):.{DIGITS}g}" for t in terms]
        written = (math.copysign(float(w), t.weight) for t, w in zip(terms, weights, strict=True))
        constant = -sum(w * t.center for t, w in zip(terms, written, strict=True))
        parts = [
            f"{_sign(t.weight)} {w} {_bare(t.name)}" for t, w in zip(terms, weights, strict=True)
        ]
        if constant:
            parts.append(f"{_sign(constant)} {_near(abs(constant), near)}")
        lines.append(f"component{number} = " + " ".join(parts).removeprefix("+ "))
    return "\n".join(lines)


def _sign(number: float) -> str:
    return "-" if number < 0 else "+"


def _bare(name: str) -> str:
    """Return a name as it stands if it is one word, otherwise in brackets."""
    one = re.fullmatch(r"[^\W\d]\w*", name) and not keyword.iskeyword(name)
    return name if one else f"[{words.visible(name)}]"
