"""Options in groups: `--help` shows each group under its heading."""

from __future__ import annotations

import difflib
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
RUN = ("The effort", "What comes out")  # of a run; the options of other headings belong to a model


class Option(click.Option):
    """This option stands under the heading `group`."""

    def __init__(self, *args: Any, group: str = ORDER[-1], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.group = group


class Command(click.Command):
    """This command lists its options by group, and says where an option belongs that it lacks."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            found = {name: _group(other, error.option_name) for name, other in _commands(ctx)}
            owners = [name for name, group in found.items() if group]
            near = difflib.get_close_matches(error.option_name, error.possibilities or (), 3, 0.75)
            if not owners or near:
                raise click.NoSuchOption(error.option_name, None, near, ctx) from error
            detail = f"it is one of {', '.join(owners)}"
            asked = found[owners[0]] not in RUN
            if asked and "model" in (parameter.name for parameter in self.params):
                detail = f"the model was made with it (sparcipal {owners[0]} {error.option_name})"
            raise click.UsageError(
                f"No such option {error.option_name!r} of {self.name}: {detail}", ctx
            ) from error

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


def _commands(ctx: click.Context) -> list[tuple[str, click.Command]]:
    root = ctx.find_root().command
    return list(root.commands.items()) if isinstance(root, click.Group) else []


def _group(command: click.Command, option: str) -> str:
    """Return the heading of an option of the command; empty where it has none of that name."""
    own = (parameter for parameter in command.params if option in parameter.opts)
    return next((getattr(parameter, "group", ORDER[-1]) for parameter in own), "")


def option(group: str, *names: str, **keywords: Any) -> Any:
    """Return a decorator that adds an option to a command, in a group."""
    return click.option(*names, cls=Option, group=group, **keywords)
