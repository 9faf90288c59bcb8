"""Manual pages from the command line's own help: python docs/manual.py FOLDER"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import click

from sparcipal import __version__
from sparcipal.cli import main


def pages() -> dict[str, str]:
    """Name -> page in the language of man(7), of the program and of each command."""
    top = click.Context(main, info_name="sparcipal")
    names = [f"sparcipal-{name}" for name in main.commands]
    made = {"sparcipal": page(main, top, "sparcipal", [f"{name}(1)" for name in names])}
    for name, command in main.commands.items():
        context = click.Context(command, info_name=name, parent=top)
        made[f"sparcipal-{name}"] = page(command, context, f"sparcipal-{name}", ["sparcipal(1)"])
    return made


def page(command: click.Command, context: click.Context, name: str, related: list[str]) -> str:
    short = command.get_short_help_str(200).rstrip(".")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f'.TH "{name.upper()}" "1" "" "sparcipal {__version__}" "User commands"']
    lines += [".SH NAME", f"{roff(name)} \\- {roff(short)}"]
    lines += [".SH SYNOPSIS", f".B {roff(context.command_path)}", roff(usage)]
    lines += [".SH DESCRIPTION", *description(command.help or "")]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for child in command.list_commands(context):
            help_text = command.commands[child].get_short_help_str(200)
            lines += [".TP", f".B {roff(child)}", roff(help_text)]
    lines.append(".SH OPTIONS")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and not isinstance(parameter, click.Argument):
            lines += [".TP", f".B {roff(record[0])}", roff(record[1])]
    lines += [".SH SEE ALSO", roff(", ".join(related))]
    return "\n".join(lines) + "\n"


def description(text: str) -> list[str]:
    """Paragraphs; those after click's \\b keep their lines."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            rows = [roff(row) for row in paragraph.splitlines()[1:]]
            lines += [".PP", ".nf", *rows, ".fi"]
        else:
            lines += [".PP", roff(" ".join(paragraph.split()))]
    return lines[1:]  # the section's heading starts its first paragraph


def roff(text: str) -> str:
    """Text as it is: no character of it is a command."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / f"{name}.1").write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(main.commands) + 1} pages; read one with: man {folder}/sparcipal.1\n")
