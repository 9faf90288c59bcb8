"""This module holds the commands verify, transform, show, demo and doctor."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from .help import Command
from .live import live
from .options import (
    F,
    as_for_the_fit,
    data_keywords,
    distinct_files,
    document_options,
    or_error,
    read_table,
    row_options,
    source_options,
)
from .output import note, note_incomplete, print_csv, print_result, save_model, save_report
from .phrases import in_the_shell
from .values import FILE, PICTURES, Model, Output

EXIT = {"proved": 0, "not proved": 3, "refused": 1}


@click.command(cls=Command, short_help="Recheck a saved MODEL against the data of SOURCE.")
@click.argument("model", type=FILE)
@click.argument("source", type=FILE)
@row_options
@document_options
@source_options
@click.option(
    "--exact", is_flag=True, help="Decide every inequality without rounding; needs python-flint."
)
def verify(model: str, source: str, exact: bool, **options: Any) -> None:
    """Recheck the saved MODEL against the data of SOURCE, sharing no code with the solver.

    \b
    sparcipal verify wine.json wine.csv
    sparcipal verify topics.json texts/    read as it was for the fit, unless options say otherwise

    Exit code 0: proved. 3: nothing is wrong, but the proof is not there. 1: refused.
    """
    from ..checker import verify as recheck
    from ..problem.saving import proof_path
    from ..report.words import visible

    claim = _claim(model, source)
    result = getattr(claim, "result", claim)
    options = as_for_the_fit(result, source, options)
    data = data_of(result, source, options)
    data.pop("feature_names", None)
    verification = recheck(claim, arithmetic="exact" if exact else "float", **data)
    reason, proof = verification.reason, proof_path(Path(model))
    if verification.verdict == "not proved" and not proof.exists():
        reason = f"there is no {proof}, which holds the proof; put it beside {model}"
    click.echo(f"{verification.verdict}: {visible(reason)}")
    if verification.not_rechecked:
        told = ", ".join(verification.not_rechecked)
        note(f"not rechecked, as no part of the proof, is what the solver reports: {told}")
    sys.exit(EXIT[verification.verdict])


@click.command(
    cls=Command, short_help="What else is nearly as good as MODEL on the data of SOURCE."
)
@click.argument("model", type=FILE)
@click.argument("source", type=FILE)
@click.option(
    "--within",
    type=float,
    default=0.01,
    show_default=True,
    help="The share by which others may fall short of the best.",
)
@click.option(
    "--most",
    type=int,
    default=1000,
    show_default=True,
    help="The list ends once it has more supports than this.",
)
@click.option(
    "--costs/--no-costs",
    default=True,
    show_default=True,
    help="Also prove what is lost without each feature.",
)
@click.option(
    "--force",
    type=int,
    default=10,
    show_default=True,
    help="Also prove what is lost with each of so many outsiders.",
)
@click.option(
    "--time-limit", type=float, metavar="SECONDS", help="Stop then, with what is known so far."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
)
@click.option(
    "-o",
    "--out",
    type=Output((".json",)),
    metavar="FILE.JSON",
    help="Save it with its proof, for verify.",
)
@click.option(
    "--report",
    type=Output(),
    metavar="REPORT.HTML",
    help="Write a report of the answer, with what is nearly as good.",
)
@click.option(
    "--plot",
    type=Output(PICTURES),
    metavar="PICTURE",
    help="Draw the list, as .png, .svg or .pdf; of several components one picture each.",
)
@click.option("-j", "--jobs", type=int, help="Threads; -1 is every core.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@row_options
@document_options
@source_options
def alternatives(model: str, source: str, **options: Any) -> None:
    """List all supports that are nearly as good as the saved MODEL, and what features are worth.

    \b
    sparcipal alternatives wine.json wine.csv
    sparcipal alternatives wine.json wine.csv --within 0.05 -o near.json
    sparcipal verify near.json wine.csv

    Nothing is missing from a list that is said to be complete: that is proved, and verify rechecks
    it.
    """
    from ..questions.nearby import alternatives as run

    distinct_files(source, options, model=model)
    picture_first(options)
    result = loaded(model, source)
    options = as_for_the_fit(result, source, options)
    data = or_error(data_of, result, source, options)
    with live(options["time_limit"], options["quiet"]) as (_, update):
        found = run(
            result,
            **data,
            n_jobs=options["jobs"],
            within=options["within"],
            most=options["most"],
            drop=options["costs"],
            force=options["force"],
            time_limit=options["time_limit"],
            callback=update,
        )
    if options["out"]:
        found.save(options["out"])
        note(f"saved {options['out']}")
    if options["report"]:
        save_report(result, options["report"], data.get("X"), alternatives=found)
    if options["plot"]:
        _draw(found, Path(options["plot"]))
    _print_alternatives(found, options["form"])


def _print_alternatives(found: Any, form: str) -> None:
    if form == "json":
        click.echo(found.to_json())
    elif form == "csv":
        head = ("component", "rank", "features", "value", "bound", "count")
        records = [{**r, "features": " ".join(r["features"])} for r in found.records()]
        print_csv(head, ([record[name] for name in head] for record in records))
        if not found.complete:  # the other forms say so themselves
            from ..report.answers import ENDS

            note_incomplete(in_the_shell(ENDS.get(found.status, found.status)))
    else:
        click.echo(str(found) if found.components else in_the_shell(str(found)))


def picture_first(options: dict[str, Any]) -> None:
    """Raise the error of a missing matplotlib before the work, not after it."""
    if options["plot"]:
        from ..report.plots.common import pyplot

        pyplot()


def _draw(found: Any, path: Path) -> None:
    """Draw one picture for each list, numbered where there are several components."""
    from ..report.plots import AlternativesDisplay

    if not found.components:
        note("no picture was drawn: there are no lists of supports")
    for j in range(len(found.components)):
        several = len(found.components) > 1
        own = path.with_stem(f"{path.stem}-{j + 1}") if several else path
        AlternativesDisplay.from_alternatives(found, j).figure_.savefig(own, dpi=150)
        note(f"wrote {own}")


@click.command(
    cls=Command, short_help="Scores of the samples of SOURCE on the components of MODEL."
)
@click.argument("model", type=FILE)
@click.argument("source", type=FILE)
@row_options
@document_options
@source_options
@click.option(
    "-o", "--out", type=Output((".npy",)), metavar="FILE.NPY", help="Instead of CSV on stdout."
)
def transform(model: str, source: str, **options: Any) -> None:
    """Scores of the samples of SOURCE on the components of MODEL.

    \b
    sparcipal transform wine.json wine.csv > scores.csv
    sparcipal transform topics.json new.txt -o scores.npy    counted with the words of the model

    SOURCE is read as that of the fit was (--stop-words, --ngrams and so on), unless options say
    otherwise.
    """
    distinct_files(source, options, model=model)
    import numpy as np

    from ..data.scores import scores

    result = loaded(model, source, proof=False)
    table = new_samples(result, source, options, every_row=True)
    values = scores(result, table.X)
    if options["out"]:
        np.save(options["out"], values)
        note(f"wrote {options['out']}")
        return
    beside = {"sample": table.sample_names, table.label_name or "label": table.labels}
    kept = {name: entries for name, entries in beside.items() if entries is not None}
    head = [*kept, *(f"component{j + 1}" for j in range(values.shape[1]))]
    print_csv(head, ((*row[:-1], *row[-1]) for row in zip(*kept.values(), values.tolist())))


@click.command(cls=Command)
@click.argument("model", type=FILE)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table",
    show_default=True,
)  # fmt: skip
@click.option(
    "--as",
    "formula",
    type=click.Choice(["sql", "python", "equation"]),
    help="Print the formula of the scores instead, for use elsewhere.",
)
@click.option(
    "--report", type=Output(), metavar="REPORT.HTML", help="Write a report for the browser."
)
def show(model: str, form: str, formula: str | None, report: str | None) -> None:
    """Print a saved MODEL: its components and its certificate; or saved alternatives: the list.

    \b
    sparcipal show wine.json
    sparcipal show wine.json --format csv > loadings.csv
    sparcipal show wine.json --as sql > scores.sql
    sparcipal show wine.json --report wine.html
    sparcipal show near.json                 what `alternatives -o` has saved
    """
    distinct_files(None, {"report": report}, model=model)
    claim = _claim(model, model, proof=False)
    result = getattr(claim, "result", claim)
    if claim is not result and not formula:
        _print_alternatives(claim, form)
    elif formula:
        from ..report import formulas

        click.echo(formulas.formula(result, formula))
    else:
        print_result(result, form)
        if form == "table" and result.info.get("notes"):
            note("what was noted when the data were read is the solver's word, and never rechecked")
    if form == "table" and not formula:
        note(f"as the file says; `sparcipal verify {model} SOURCE` rechecks it against the data")
    if report:
        save_report(result, report, **({} if claim is result else {"alternatives": claim}))


@click.command(cls=Command, short_help="Topics of the installed packages' docstrings, certified.")
@click.option("-j", "--jobs", type=int, default=-1, show_default=True, help="Threads.")
@click.option(
    "-o", "--out", type=Model(), metavar="MODEL.JSON", help="Save the result and its proof."
)
@click.option(
    "--report", type=Output(), metavar="REPORT.HTML", help="Write a report for the browser."
)
@click.option(
    "--certify",
    type=click.Choice(["fast", "full"]),
    default="fast",
    show_default=True,
    help="How hard to prove: a few seconds, or to the end.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def demo(jobs: int, out: str | None, report: str | None, certify: str, quiet: bool) -> None:
    """Topics of the docstrings of NumPy, SciPy and scikit-learn: real data, no download.

    \b
    sparcipal demo
    sparcipal demo --report demo.html
    """
    distinct_files(None, {"out": out, "report": report})
    from .. import demo as job
    from ..report import words

    with live(quiet=quiet) as (say, update):
        found = job.run(say, update, jobs, certify)
    joint, single = found.joint, found.one_at_a_time
    print_result(joint, "table", feature="word")
    click.echo(
        f"\njointly {words.at_least(joint.value)}, one at a time {words.at_least(single.value)}: "
        f"the joint search explains {words.share_percent(found.gain)} more"
    )
    click.echo(
        f"{found.set_aside} of {joint.n_features} words were set aside by safe tests: the proof "
        f"works on the other {joint.n_features - found.set_aside}, and its bound holds for all"
    )
    if out:
        save_model(joint, out)
    if report:
        save_report(joint, report, found.table)


@click.command(cls=Command, short_help="Versions, threads, kernels, and what is missing.")
def doctor() -> None:
    """Versions, threads, kernels, and what is missing for which feature.

    \b
    sparcipal doctor

    Exit code 0: everything that is needed works. 1: something is broken or missing.
    """
    from .doctor import examine

    rows, healthy = examine()
    width = max(len(name) for name, _ in rows)
    for name, state in rows:
        click.echo(f"{name:<{width}}  {state}")
    sys.exit(0 if healthy else 1)


def loaded(model: str, source: str, *, proof: bool = True) -> Any:
    """Load the saved result; if SOURCE is one and MODEL is not, the error says so."""
    from ..problem.result import Result

    try:
        return Result.load(model, proof=proof)
    except ValueError as error:
        if _is_model(source) and not _is_model(model):
            raise ValueError(
                f"{model} is not a saved result, but {source} is; are MODEL and SOURCE swapped?"
            ) from error
        raise


def _claim(model: str, source: str, *, proof: bool = True) -> Any:
    """Load a saved result, or alternatives to one."""
    from ..problem.answers import Alternatives, Unreadable

    try:
        return Alternatives.load(model)
    except Unreadable as error:
        raise ValueError(f"{model}: {error}") from error
    except ValueError:
        return loaded(model, source, proof=proof)


def _is_model(path: str) -> bool:
    """Return whether a file begins as a saved result does."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return stream.read(64).lstrip().startswith(b'{"sparcipal"')


def _counts_words(source: str, options: dict[str, Any]) -> bool:
    from ..data.files.formats import format_of, reader_of

    return reader_of(options.get("input_format") or format_of(source)).counts_words


def data_of(
    result: Any, source: str, options: dict[str, Any], callback: F | None = None
) -> dict[str, Any]:
    """Return the data that a model came from, as `verify` and its kin take them."""
    data = data_keywords(source, {**options, "covariance": result.n_samples is None}, callback)
    if "X" in data:
        data["X"] = aligned(result, data["X"])
    return data


def new_samples(
    result: Any, source: str, options: dict[str, Any], *, every_row: bool = False
) -> Any:
    """Read other samples as those of the fit were read: the same columns, or the same words.
    Lines of a table without text are left out, as for a fit, unless each should have a score."""
    options = as_for_the_fit(result, source, options)
    if options["names"] is None and _counts_words(source, options) and result.feature_names:
        # New documents are counted with the words of the model.
        from ..data.files.formats import reader_of

        told = result.info.get("texts")
        idf = told.get("idf") if isinstance(told, dict) else None
        recorded = {**options.get("recorded", {}), **({} if idf is None else {"idf": idf})}
        for name in ("min_df", "max_df", "min_count", "containing"):
            recorded.pop(name, None)  # the words are given
        if every_row and "empty" in reader_of(options["input_format"]).options:
            recorded["empty"] = True
        options = {**options, "names": list(result.feature_names), "recorded": recorded}
    table = aligned(result, read_table(source, options))
    _check_names(result, table)
    return table


def aligned(result: Any, table: Any) -> Any:
    """Return the table with the columns of the model in its order."""
    from ..data.samples import aligned as in_order

    return in_order(result.feature_names, table, result.settings.get("read", {}).get("one_hot"))


def _check_names(result: Any, table: Any) -> None:
    """Refuse other columns or another order, because the scores would be meaningless."""
    if result.feature_names is None or table.feature_names is None:
        return
    if tuple(result.feature_names) != tuple(table.feature_names):
        pairs = zip(result.feature_names, table.feature_names)
        first = next(((a, b) for a, b in pairs if a != b), None)
        detail = f"{first[1]!r} where {first[0]!r} was" if first else "their number differs"
        raise ValueError(
            f"the feature names differ from those of the model: {detail}; transform a SOURCE with "
            "the features of the fit, in the same order"
        )
