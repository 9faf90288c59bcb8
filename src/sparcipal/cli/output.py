"""Write results to stdout as a table, JSON or CSV, and to files."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any

import click

from .phrases import said_in_the_shell

INCOMPLETE = "sparcipal.incomplete"  # in the meta of a context: a CSV holds less than was asked for


def print_result(result: Any, form: str, *, feature: str = "feature") -> None:
    """Print a result; a table has colours on a terminal and is plain text elsewhere."""
    if form == "json":
        click.echo(result.to_json(proof=False, plain=True))
    elif form == "csv":
        from ..report.words import visible

        records = result.table().records()
        if sys.stdout.isatty():  # names in a file are not escaped
            records = [{**r, "feature": visible(str(r["feature"]))} for r in records]
        print_csv(
            ("component", "feature", "index", "weight", "variance"),
            (tuple(record.values()) for record in records),
        )
        note_stop(result)
    elif sys.stdout.isatty():
        from rich.console import Console

        from ..report.terminal import result_view

        Console().print(result_view(said_in_the_shell(result), feature=feature))
    else:
        click.echo(str(said_in_the_shell(result)))


def save_model(result: Any, path: str) -> None:
    result.save(path)
    note(f"saved {path} and {path}.proof")


def save_report(result: Any, path: str, table: Any = None, **more: Any) -> None:
    """Write the report; `more` are the path or the choice that belong to the result."""
    from ..report.page import write_report

    write_report(said_in_the_shell(result), path, table=table, **more)
    note(f"wrote {path}")


def print_csv(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print CSV with numbers in full, so that reading them back gives the same ones; names too,
    but for a terminal, which would obey control characters."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in chain([head], rows):
        writer.writerow(map(_shown, row) if sys.stdout.isatty() else row)


def _shown(cell: Any) -> Any:
    from ..report.words import visible

    return visible(cell) if isinstance(cell, str) else cell


def print_rows(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print aligned columns, the first to the left and the others to the right."""
    lines = [head, *rows]
    widths = [max(len(line[j]) for line in lines) for j in range(len(head))]
    for line in lines:
        cells = [
            f"{cell:<{w}}" if j == 0 else f"{cell:>{w}}"
            for j, (cell, w) in enumerate(zip(line, widths))
        ]
        click.echo("  ".join(cells).rstrip())


def note_stop(result: Any) -> None:
    """Say beside a CSV that a run was stopped; the other forms say so themselves."""
    if result.status.value in ("interrupted", "time_limit"):
        note_incomplete(result.status.sentence)


def note_incomplete(sentence: str) -> None:
    """Say beside a CSV, which cannot, that it is incomplete; the exit code says so as well."""
    note(f"incomplete: {sentence}")
    click.get_current_context().meta[INCOMPLETE] = True


def note(sentence: str) -> None:
    """Write a sentence to stderr."""
    click.echo(sentence, err=True)
