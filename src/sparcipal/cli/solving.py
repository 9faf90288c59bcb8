"""This module holds the commands fit, topics, path and compare."""

from __future__ import annotations

import warnings
from typing import Any

import click

from ..search.registry import METHODS
from .help import Command, option
from .live import live
from .options import (
    EFFORT,
    OUTPUT,
    QUESTION,
    answer_options,
    column_options,
    complete_methods,
    constraints,
    covariance_option,
    data_keywords,
    distinct_files,
    document_options,
    keywords,
    or_error,
    question_options,
    source_options,
    text_options,
    with_reading,
)
from .output import note, print_csv, print_result, print_rows, save_model, save_report
from .phrases import in_the_shell
from .values import FILE, PICTURES, Memory, Model, Output, Range, Sizes

TOPICS = 5  # when their number is not given
DEFAULT_NONZERO = 10  # as in settings.py
FORMATS = click.Choice(["table", "json", "csv"])
nonzero = option(
    QUESTION,
    "-s",
    "--nonzero",
    type=Sizes(),
    help="At most so many nonzeros each; 10 if not given.",
)
total = option(
    QUESTION, "--nonzero-total", type=int, metavar="T",
    help="Instead of --nonzero: so many in all, shared out among the components.",
)  # fmt: skip
method = option(
    EFFORT,
    "--method",
    default="auto",
    show_default=True,
    shell_complete=complete_methods,
    metavar="NAME",
    help=f"How to search: {', '.join(METHODS)}. All but auto are there to compare with.",
)
memory = option(
    EFFORT, "--memory-limit", type=Memory(), metavar="SIZE",
    help="Data that take more, as 2GB or 2GiB, are read in passes; 1GiB if not given.",
)  # fmt: skip
out = option(
    OUTPUT,
    "-o",
    "--out",
    type=Model(),
    metavar="MODEL.JSON",
    help="Save the result and its proof.",
)
report = option(
    OUTPUT, "--report", type=Output(), metavar="REPORT.HTML", help="Write a report for the browser."
)
form = option(OUTPUT, "--format", "form", type=FORMATS, default="table", show_default=True)
table_or_csv = option(
    OUTPUT,
    "--format",
    "form",
    type=click.Choice(["table", "csv"]),
    default="table",
    show_default=True,
)
quiet = option(OUTPUT, "-q", "--quiet", is_flag=True, help="No progress.")


@click.command(cls=Command)
@click.argument("source", type=FILE)
@nonzero
@total
@question_options
@method
@memory
@column_options
@document_options
@source_options
@covariance_option
@out
@report
@form
@quiet
def fit(source: str, **options: Any) -> None:
    """Find sparse components of SOURCE and say how good they are.

    \b
    sparcipal fit wine.csv -k 3 -s 4 --scale            measurements in different units
    sparcipal fit cells.h5ad -k 10 -s 20 --nonnegative  gene sets
    sparcipal fit A.npy --covariance -s 5               a covariance matrix
    sparcipal fit X.npz -s 10 --certify full -o m.json  prove to the end, keep the proof
    sparcipal fit X.npz -k 4 --nonzero-total 30         30 features, shared out among four

    Exit code 0, whether proved optimal or not: the certificate says which. 1: an error, 2: a wrong
    option, 3: CSV of a run that was stopped. Ctrl-C once gives the best answer so far with its gap;
    twice, or before anything is known, it quits with 130.
    """
    result, data = _solve(source, options)
    _save(result, data, options)  # first: a pipe that closes early ends the printing
    print_result(result, options["form"])


@click.command(cls=Command, short_help="Find topics of documents, and the documents of each topic.")
@click.argument("source", type=FILE)
@nonzero
@total
@option(
    QUESTION, "-k", "--components", type=int, metavar="INTEGER",
    help=f"How many topics; {TOPICS} if not given.",
)  # fmt: skip
@answer_options
@method
@memory
@text_options
@source_options
@option(
    OUTPUT,
    "--documents", type=click.IntRange(min=0), metavar="INTEGER", default=3, show_default=True,
    help="Shown per topic; not in CSV.",
)  # fmt: skip
@out
@report
@form
@quiet
def topics(source: str, **options: Any) -> None:
    """Find topics: components of words, with the documents that load highest on each.

    SOURCE is a folder of text, a file with a document per line (.txt, .jsonl), a table with a
    column of text (.csv --text-field NAME) or a bag of words. Texts are weighted by tfidf and
    normalized, so that long documents and common words do not rule, unless options say otherwise;
    a bag of words is taken as it is.

    \b
    sparcipal topics texts/ -k 8 -s 10 --min-df 5
    sparcipal topics reviews.csv --text-field review --containing battery
    sparcipal topics docword.kos.txt.gz -k 5 -s 5 --nonnegative --report kos.html
    """
    options = for_texts(source, options)
    result, data = _solve(source, options)
    _save(result, data, options)
    if options["form"] == "json":
        print_result(_with_documents(result, data["X"], options["documents"]), "json")
    else:
        print_result(result, options["form"], feature="word")
    if options["form"] == "table" and options["documents"] > 0:
        _print_documents(result, data["X"], options["documents"])


@click.command(cls=Command, short_help="Variance and its proven region against the nonzeros.")
@click.argument("source", type=FILE)
@option(
    QUESTION, "-s", "--nonzero", type=Range(), required=True, help="Sizes: 1:30, 5:50:5 or 2,5,10."
)
@question_options
@method
@memory
@column_options
@document_options
@source_options
@covariance_option
@option(
    OUTPUT,
    "--plot",
    type=Output(PICTURES),
    metavar="PICTURE",
    help="Draw the region, as .png, .svg or .pdf.",
)
@option(
    OUTPUT,
    "--report",
    type=Output(),
    metavar="REPORT.HTML",
    help="Write a report of the last size, with the path.",
)
@table_or_csv
@quiet
def path(source: str, **options: Any) -> None:
    """Variance against the number of nonzeros, with the region in which the optimum must lie.

    \b
    sparcipal path wine.csv -s 1:13 --scale --plot path.svg
    sparcipal path docword.kos.txt.gz -s 5:50:5 --format csv
    """
    distinct_files(source, options)
    if options["plot"]:
        from ..report.plots.common import pyplot

        pyplot()  # a missing matplotlib is an error before the work, not after it
    with live(options["time_limit"], options["quiet"]) as (say, update):
        data = or_error(data_keywords, source, options, update)
        rows = _path_rows(data, options, say, update)
    _print_path(rows, options["form"])
    if options["plot"]:
        from ..report.plots import PathDisplay

        PathDisplay([result for _, result in rows]).plot().figure_.savefig(options["plot"], dpi=150)
        note(f"wrote {options['plot']}")
    if options["report"] and rows:
        results = [result for _, result in rows]
        last = with_reading(results[-1], source, options)
        save_report(last, options["report"], data.get("X"), along=results)


def _print_path(rows: list[tuple[int, Any]], form: str) -> None:
    from ..report import words

    if form == "csv":
        print_csv(
            ("nonzeros", "value", "bound", "gap", "share", "status"),
            (
                (s, r.value, r.bound, r.gap, r.value / r.total_variance, r.status.value)
                for s, r in rows
            ),
        )
        return
    print_rows(
        ("nonzeros", "value", "bound", "gap", "share", "status"),
        [
            (
                str(s),
                words.at_least(r.value),
                words.at_most(r.bound),
                words.gap_percent(r.gap),
                words.share_percent(r.value / r.total_variance),
                words.ending(r.certificate)[0],
            )
            for s, r in rows
        ],
    )


@click.command(cls=Command, short_help="Several methods, judged by the same bound.")
@click.argument("source", type=FILE)
@nonzero
@total
@question_options
@option(
    EFFORT,
    "--methods",
    default="auto,tpower,gpower,em,threshold",
    show_default=True,
    shell_complete=complete_methods,
    metavar="NAME,NAME,...",
    help=f"Of {', '.join(METHODS)}.",
)
@column_options
@document_options
@source_options
@covariance_option
@table_or_csv
@quiet
def compare(source: str, **options: Any) -> None:
    """Run several methods on the same question and judge them by the same bound.

    \b
    sparcipal compare wine.csv -s 4 --scale --methods auto,greedy,dspca
    """
    from ..comparison import compare as run

    names = [name.strip() for name in options["methods"].split(",") if name.strip()]
    data = or_error(data_keywords, source, options)
    asked = keywords(options) | {"n_nonzero_coefs": _sizes(options)} | constraints(options, data)
    with live(options["time_limit"], options["quiet"]) as (say, update):
        say(", ".join(names))
        comparison = run(methods=names, callback=update, **data, **asked)
    if options["form"] == "csv":
        records = comparison.records()
        print_csv(
            (*records[0], "bound"),
            ((*_flat(record), comparison.bound) for record in records),
        )
    else:
        click.echo(in_the_shell(str(comparison)))


def _flat(record: dict[str, Any]) -> list[Any]:
    """Return one cell per value: lists joined by spaces, lists of lists by semicolons."""

    def cell(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        nested = value and isinstance(value[0], list)
        return ("; " if nested else " ").join(str(cell(part)) for part in value)

    return [cell(value) for value in record.values()]


def _path_rows(
    data: dict[str, Any], options: dict[str, Any], say: Any, update: Any
) -> list[tuple[int, Any]]:
    """Return sizes and results; components by `auto` grow from size to size."""
    from ..fit import sparse_pca
    from ..path import sparse_path

    asked = {**keywords(options), **memory_keyword(options), **constraints(options, data)}
    if options["method"] == "auto" and options["rank"] is None:
        del asked["rank"]
        path = sparse_path(**data, **asked, n_nonzero_coefs=options["nonzero"], callback=update)
        return [(int(s), result) for s, result in zip(path.n_nonzero_coefs, path)]
    asked["method"] = options["method"]
    given = _for_sizes(data, asked, options["nonzero"], update)
    rows = []
    for s in options["nonzero"]:
        say(f"{s} nonzeros")
        result = sparse_pca(given, **asked, n_nonzero_coefs=s, callback=update)
        rows.append((s, result))
        if result.status.value == "interrupted":
            note("stopped by the user; the sizes after this one are missing")
            break
    return rows


def _for_sizes(data: dict[str, Any], asked: dict[str, Any], sizes: list[int], update: Any) -> Any:
    """Return the data, once the smallest and the largest size are known to fit them."""
    from ..data.inputs import resolved
    from ..problem.parameters import Complaints
    from ..settings import Settings

    with Complaints() as check:
        least, most = (
            Settings.noted(check, **asked, n_nonzero_coefs=s, callback=update)
            for s in (min(sizes), max(sizes))
        )

        def fit(columns: Any, n_samples: int | None) -> None:
            with Complaints() as more:
                more(least.question, columns)
                more(most.question, columns)

        return resolved(**{"X": None, **data}, door=most.door(most.monitor(), check, fit))


def _solve(source: str, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    distinct_files(source, options)
    sizes = _sizes(options)
    options = {**options, "told": options["form"] == "table"}
    with live(options["time_limit"], options["quiet"]) as (say, update), warnings.catch_warnings():
        if options["told"]:  # the result says it
            warnings.simplefilter("ignore", UserWarning)
        say(f"reading {source}")
        data = or_error(data_keywords, source, options, update)
        from ..fit import sparse_pca

        if options["components"] is None:
            options = {**options, "components": _topics(data["X"], sizes)}
        result = sparse_pca(
            **data,
            **keywords(options),
            **constraints(options, data),
            n_nonzero_coefs=sizes,
            method=options["method"],
            callback=update,
            **memory_keyword(options),
        )
    return with_reading(result, source, options), data


def _topics(table: Any, sizes: Any) -> int:
    """Return how many topics to look for when that was not said: fewer where words are few."""
    if isinstance(sizes, list):
        return len(sizes)
    words = table.shape[1] if hasattr(table, "shape") else 0
    each = sizes if isinstance(sizes, int) else DEFAULT_NONZERO
    return max(1, min(TOPICS, words // each))


def for_texts(source: str, options: dict[str, Any]) -> dict[str, Any]:
    """Complete the options of `topics`; a table without a column of text is refused."""
    from ..data.files.formats import reader_for

    given = {"text_field": options["text_field"]} if options["text_field"] else {}
    reader = reader_for(source, options["input_format"], given)
    if reader.tabular:
        from ..data.files.csv import head_of

        head = head_of(source, options["encoding"] or "utf-8") if reader.name != "parquet" else []
        columns = f" (its columns: {', '.join(map(repr, head[:12]))})" if head else ""
        raise ValueError(
            f"{source} is a table, and topics need texts; name its column of text with "
            f"--text-field{columns}, or use fit"
        )
    if not reader.counts_words:
        return options
    weighting = options["weighting"] or "tfidf"
    normalize = options["normalize"] if options["normalize"] is not None else True
    return {**options, "weighting": weighting, "normalize": normalize}


def memory_keyword(options: dict[str, Any]) -> dict[str, Any]:
    """Return --memory-limit as the functions take it, if it is given."""
    given = options["memory_limit"]
    return {} if given is None else {"memory_limit": given}


def _save(result: Any, data: dict[str, Any], options: dict[str, Any]) -> None:
    if options["out"]:
        save_model(result, options["out"])
    if options["report"]:
        save_report(result, options["report"], data.get("X"))


def _sizes(options: dict[str, Any]) -> Any:
    """Return --nonzero or --nonzero-total as `n_nonzero_coefs` takes it."""
    if options["nonzero_total"] is None:
        return options["nonzero"]
    if options["nonzero"] is not None:
        raise click.UsageError("--nonzero and --nonzero-total exclude each other; give one of them")
    return {"total": options["nonzero_total"]}


def _documents(result: Any, table: Any, count: int) -> list[list[dict[str, Any]]]:
    """Return for each topic the documents that load highest, with their scores."""
    from ..data.scores import scores, strongest_samples

    values, names = scores(result, table.X), table.sample_names
    labels = table.labels
    return [
        [
            {
                "document": str(names[i]) if names is not None else f"document {i + 1}",
                **({} if labels is None else {table.label_name or "label": str(labels[i])}),
                "score": float(values[i, j]),
            }
            for i in strongest_samples(values, j, count)
        ]
        for j in range(values.shape[1])
    ]


def _with_documents(result: Any, table: Any, count: int) -> Any:
    from dataclasses import replace

    info = {**result.info, "documents": _documents(result, table, count)} if count else result.info
    return replace(result, info=info)


def _print_documents(result: Any, table: Any, count: int) -> None:
    from ..report import words

    click.echo("\ndocuments that load highest")
    for j, documents in enumerate(_documents(result, table, count)):
        label = ", ".join(words.plain(name) for name in result.names(j)[:3])
        click.echo(f"{j + 1:>3}  {label}")
        for found in documents:
            labels = [v for key, v in found.items() if key not in ("document", "score")]
            beside = "".join(f"{words.plain(label, 20)}  " for label in labels)
            click.echo(f"     {found['score']:8.2f}  {beside}{words.plain(found['document'], 80)}")
