"""This module holds the commands choose, stability, trends and explain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .help import Command, option
from .inspecting import data_of, loaded, new_samples, picture_first
from .live import live
from .options import (
    EFFORT,
    OUTPUT,
    QUESTION,
    answer_options,
    as_for_the_fit,
    column_options,
    constraints,
    data_keywords,
    distinct_files,
    document_options,
    grid_options,
    keywords,
    or_error,
    question_options,
    row_options,
    source_options,
    text_options,
    with_reading,
)
from .output import note, note_incomplete, note_stop, print_csv, save_report
from .phrases import in_the_shell, said_in_the_shell
from .solving import for_texts, memory, memory_keyword, nonzero, quiet
from .values import FILE, PICTURES, Model, Output, Range

FORMATS = click.Choice(["table", "csv"])
form = option(OUTPUT, "--format", "form", type=FORMATS, default="table", show_default=True)
plot = option(
    OUTPUT,
    "--plot",
    type=Output(PICTURES),
    metavar="PICTURE",
    help="Draw it, as .png, .svg or .pdf.",
)


@click.command(cls=Command, short_help="How many components and nonzeros, judged on held-out rows.")
@click.argument("source", type=FILE)
@option(
    QUESTION,
    "-k", "--components", "-K", "--try-components", "try_components", type=Range(),
    show_default="1:5, those that fit", metavar="RANGE",
    help="Numbers of components to try: 1:6 or 2,4,8.",
)  # fmt: skip
@option(
    QUESTION,
    "-s", "--nonzero", "-S", "--try-nonzeros", "try_nonzeros", type=Range(),
    show_default="2,3,5,8,12,20, those that fit", metavar="RANGE",
    help="Numbers of nonzeros to try: 2:10:2 or 5,10,20.",
)  # fmt: skip
@option(QUESTION, "--folds", type=int, default=5, show_default=True, help="Parts held out in turn.")
@option(
    QUESTION,
    "--permutations",
    type=int,
    default=5,
    show_default=True,
    help="Tables of noise to compare with.",
)
@grid_options
@memory
@column_options
@document_options
@source_options
@plot
@option(
    OUTPUT,
    "--report",
    type=Output(),
    metavar="REPORT.HTML",
    help="Write a report of the recommended answer, with the map.",
)
@form
@quiet
def choose(source: str, **options: Any) -> None:
    """Choose the numbers of components and of nonzeros by the variance of held-out rows.

    \b
    sparcipal choose wine.csv --scale -k 1:5 -s 2,3 --plot choice.svg
    """
    from ..questions.choice import choose as run

    distinct_files(source, options)
    picture_first(options)
    _on_counts(source, options)
    options = {**_told(options), "components": 1}
    asked = {**keywords(options), **memory_keyword(options)}
    del asked["n_components"]
    with live(options["time_limit"], options["quiet"]) as (_, update):
        data = or_error(data_keywords, source, options, update)
        found = run(
            **data,
            **asked,
            **constraints(options, data),
            n_components=options["try_components"],
            n_nonzero_coefs=options["try_nonzeros"],
            folds=options["folds"],
            permutations=options["permutations"],
            callback=update,
        )
    shown = tuple(tuple(r and said_in_the_shell(r) for r in row) for row in found.results)
    _show(replace(found, results=shown), options)
    if options["report"] and found.result is not None:
        result = with_reading(found.result, source, options)
        save_report(result, options["report"], data.get("X"), choice=found)


@click.command(cls=Command, short_help="How often features come back when the rows change.")
@click.argument("source", type=FILE)
@nonzero
@option(
    QUESTION,
    "--scheme",
    type=click.Choice(["halves", "bootstrap"]),
    default="halves",
    show_default=True,
)
@option(QUESTION, "--resamples", type=int, default=50, show_default=True)
@option(
    QUESTION,
    "--false-selections", type=float, default=1.0, show_default=True, metavar="NUMBER",
    help="False features to allow, on average, among the selected.",
)  # fmt: skip
@question_options
@memory
@column_options
@document_options
@source_options
@plot
@option(
    OUTPUT, "--report", type=Output(), metavar="REPORT.HTML",
    help="Write a report of the answer, with the frequencies.",
)  # fmt: skip
@form
@quiet
def stability(source: str, **options: Any) -> None:
    """Ask the same question of many resamples of the rows, and count what comes back.

    \b
    sparcipal stability wine.csv -k 2 -s 3 --scale --plot stability.svg
    """
    from ..questions.resampling import stability as run

    distinct_files(source, options)
    picture_first(options)
    _on_counts(source, options)
    options = _told(options)
    with live(options["time_limit"], options["quiet"]) as (_, update):
        data = or_error(data_keywords, source, options, update)
        found = run(
            **data,
            **keywords(options),
            **memory_keyword(options),
            **constraints(options, data),
            n_nonzero_coefs=options["nonzero"],
            scheme=options["scheme"],
            n_resamples=options["resamples"],
            false_selections=options["false_selections"],
            callback=update,
        )
    _show(replace(found, reference=said_in_the_shell(found.reference)), options)
    if options["report"]:
        result = with_reading(found.reference, source, options)
        save_report(result, options["report"], data.get("X"), stability=found)


@click.command(cls=Command, short_help="Topics over time: what is new and what fades.")
@click.argument("source", type=FILE)
@option(
    QUESTION, "--windows", default="6", show_default=True, metavar="NUMBER|year|month|day",
    help="So many windows of equal length, or one per year, month or day.",
)  # fmt: skip
@option(QUESTION, "-k", "--components", type=int, default=5, show_default=True,
        help="How many topics in each window.")  # fmt: skip
@nonzero
@answer_options
@text_options
@source_options
@plot
@form
@quiet
def trends(source: str, **options: Any) -> None:
    """Find topics in one window of time after the other, and say what is new and what fades.

    The time of a document is its date: --label-field of a .jsonl or .csv file, or the date in the
    name of a file of a folder, or that of its last change.

    \b
    sparcipal trends news/ --windows month -k 6 -s 8 --plot trends.svg
    sparcipal trends posts.csv --text-field post --label-field date --windows year
    """
    from ..questions.windows import trends as run

    distinct_files(source, options)
    picture_first(options)
    options = for_texts(source, options)
    asked = keywords(options)
    asked.pop("missing")
    with live(options["time_limit"], options["quiet"]) as (_, update):
        data = data_keywords(source, options, update)
        windows = options["windows"]
        found = run(
            **data,
            **asked,
            **constraints(options, data),
            n_nonzero_coefs=options["nonzero"] or 10,
            windows=int(windows) if windows.isdecimal() else windows,
            callback=update,
        )
    _show(found, options)


PAGES = {".json": "json", ".html": "html", ".htm": "html"}


@click.command(cls=Command, short_help="What is known of MODEL and the data of SOURCE, on a page.")
@click.argument("model", type=FILE)
@click.argument("source", type=FILE)
@option(
    QUESTION, "--within", type=float, default=0.01, show_default=True,
    help="The share by which others may fall short of the best.",
)  # fmt: skip
@option(
    QUESTION, "--stability", type=click.IntRange(min=2), metavar="N",
    help="Also ask N halves of the rows.",
)  # fmt: skip
@option(
    QUESTION, "--choice", is_flag=True,
    help="Also compare other numbers of components and nonzeros, on held-out rows.",
)  # fmt: skip
@option(
    EFFORT, "--time-limit", type=float, metavar="SECONDS",
    help="Stop then, with what is known so far.",
)  # fmt: skip
@option(EFFORT, "-j", "--jobs", type=int, help="Threads; -1 is every core.")
@memory
@row_options
@document_options
@source_options
@option(
    OUTPUT, "--format", "form", type=click.Choice(["text", "json", "html"]),
    help="Of the page; what the name of --out says, or text.",
)  # fmt: skip
@option(
    OUTPUT, "-o", "--out", type=Output((".txt", *PAGES)), metavar="FILE",
    help="Write the page to a file: .txt, .html or .json.",
)  # fmt: skip
@quiet
def explain(model: str, source: str, **options: Any) -> None:
    """Explain the saved MODEL in plain words: what is proved, how sure each feature is, what else
    is nearly as good, and whether components repeat each other.

    \b
    sparcipal explain wine.json wine.csv
    sparcipal explain wine.json wine.csv --within 0.05 --stability 50 -o wine.html
    """
    from ..questions.explanation import explain as run

    distinct_files(source, options, model=model)
    result = loaded(model, source)
    options = as_for_the_fit(result, source, options)
    with live(options["time_limit"], options["quiet"]) as (_, update):
        data = or_error(data_of, result, source, options, update)
        page = run(
            result,
            **data,
            **memory_keyword(options),
            within=options["within"],
            stability=options["stability"] or 0,
            choice=options["choice"],
            time_limit=options["time_limit"],
            n_jobs=options["jobs"],
            callback=update,
        )
    told = said_in_the_shell(page.result)
    page = replace(page, result=told, unanswered=in_the_shell(page.unanswered))
    out = options["out"]
    form = options["form"] or PAGES.get(Path(out or "").suffix.lower(), "text")
    made = {"text": page.__str__, "json": page.to_json, "html": page.to_html}
    text = made[form]().rstrip()
    if not out:
        click.echo(text)
        return
    from ..problem.saving import write_atomically

    write_atomically(Path(out), text + "\n")
    note(f"wrote {out}")


def _on_counts(source: str, options: dict[str, Any]) -> None:
    """Say that texts are counted as `fit` does, where another weighting was not asked for."""
    from ..data.files.formats import reader_for

    given = {"text_field": options["text_field"]} if options["text_field"] else {}
    texts = reader_for(source, options["input_format"], given).counts_words
    if texts and options["weighting"] is None:
        note("words are counted, as by fit; --weighting tfidf --normalize weights them as topics")


def _told(options: dict[str, Any]) -> dict[str, Any]:
    """Say what was set aside once: a table that is printed says it."""
    return {**options, "told": options["form"] == "table"}


def _show(found: Any, options: dict[str, Any]) -> None:
    if options["form"] == "csv":
        records = found.records()
        print_csv(tuple(records[0]) if records else (), (tuple(r.values()) for r in records))
        if not getattr(found, "complete", True):  # the text says so itself
            many = f" after {found.n_resamples} of {found.asked}" if hasattr(found, "asked") else ""
            note_incomplete(f"stopped{many}; the lines hold what is known so far")
    else:
        click.echo(str(found))
    if options["plot"]:
        found.plot().figure_.savefig(options["plot"], dpi=150)
        note(f"wrote {options['plot']}")


@click.command(cls=Command, short_help="The answer of MODEL once rows have come or gone.")
@click.argument("model", type=FILE)
@click.argument("source", type=FILE)
@option(
    QUESTION,
    "--data",
    type=FILE,
    metavar="OLD",
    help="The rows of MODEL, where MODEL.sums is not beside it.",
)
@option(
    QUESTION,
    "--without",
    type=FILE,
    metavar="GONE",
    help="Rows to take away, counted before; exact, for integers only.",
)
@option(EFFORT, "--time-limit", type=float, metavar="SECONDS", help="Stop then with the best.")
@row_options
@document_options
@source_options
@option(
    OUTPUT,
    "-o",
    "--out",
    type=Model(),
    metavar="MODEL.JSON",
    help="Save the result, its proof, and its sums for the next update; may be MODEL itself.",
)
@form
@quiet
def update(model: str, source: str, **options: Any) -> None:
    """Answer the question of MODEL again with the rows of SOURCE added, and say what has changed.

    \b
    sparcipal update model.json may.csv --data april.csv -o model.json    the first time
    sparcipal update model.json june.csv -o model.json                    from the sums beside it
    sparcipal update model.json june.csv --without april.csv -o model.json

    Rows are not read again: sums over them are kept in MODEL.sums. The search begins with the
    answer before it, and the new one has its own certificate.
    """
    from ..data.sums import Sums
    from ..problem.saving import sums_path
    from ..questions.growth import update as run

    if options["out"] != model:
        distinct_files(source, options, model=model)
    before = loaded(model, source, proof=False)
    kept = sums_path(Path(model))
    if options["data"] is None and not kept.exists():
        raise ValueError(f"there is no {kept}; name the rows of {model} with --data")
    with live(options["time_limit"], options["quiet"]) as (say, told):
        say(f"reading {source}")
        asked: dict[str, Any] = {"time_limit": options["time_limit"], "callback": told}
        if options["data"] is None:
            asked["sums"] = Sums.load(kept)
        else:
            asked["X"] = new_samples(before, options["data"], options)
        if options["without"]:
            asked["without"] = new_samples(before, options["without"], options)
        found = run(before, new_samples(before, source, options), **asked)
    if options["out"]:
        reading = {"read": before.settings["read"]} if "read" in before.settings else {}
        result = replace(found.result, settings={**found.result.settings, **reading})
        result.save(options["out"])
        found.sums.save(sums_path(Path(options["out"])))
        note(f"saved {options['out']}, its proof and its sums")
    if options["form"] == "table":
        click.echo(str(found))
        return
    head = ("component", "before", "came", "went", "variance", "variance_before")
    records = (
        {
            **vars(c),
            "component": c.component + 1,
            "before": None if c.before is None else c.before + 1,
            "came": " ".join(c.came),
            "went": " ".join(c.went),
        }
        for c in found.changes
    )
    print_csv(head, ([record[name] for name in head] for record in records))
    note_stop(found.result)
