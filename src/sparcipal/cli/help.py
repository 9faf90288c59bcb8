"""Options in groups: `--help` shows each group under its heading."""

from __future__ import annotations

from typing import Any

import click

ORDER = (
    "The question",
    "The effort",
    "Columns of a table",
    "Texts",
    "Other files",
    "What comes out",
)


class Option(click.Option):
    """This option stands under the heading `group`."""

    def __init__(self, *args: Any, group: str = ORDER[-1], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.group = group


class Command(click.Command):
    """This command lists its options by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        by_group: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                group = getattr(parameter, "group", ORDER[-1])
                by_group.setdefault(group, []).append(record)
        if len(by_group) == 1:
            by_group = {"Options": next(iter(by_group.values()))}
        for group in sorted(by_group, key=lambda name: (*ORDER, name).index(name)):
            with formatter.section(group):
                formatter.write_dl(by_group[group])


def option(group: str, *names: str, **keywords: Any) -> Any:
    """Return a decorator that adds an option to a command, in a group."""
    return click.option(*names, cls=Option, group=group, **keywords)
