"""The documents are executed: examples print what they say, and the reference is that of --help."""

from __future__ import annotations

import doctest
import importlib

import click
import pytest

from conftest import ROOT
from sparcipal.cli import main

PAGES = sorted((ROOT / "docs").glob("*.rst"))
MODULES = ["compare", "estimator", "pipeline", "read"]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_print_what_they_say(path):
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS)
    assert failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_print_what_they_say(name):
    module = importlib.import_module(f"sparcipal.{name}")
    failed, tried = doctest.testmod(module, optionflags=FLAGS)
    assert tried > 0
    assert failed == 0


def command_reference() -> str:
    """The pages of --help, one after the other."""
    parts = [
        "Command line",
        "============",
        "",
        "Data go to stdout, words and progress to stderr. Completion in bash, zsh or fish:",
        '``eval "$(_SPARCIPAL_COMPLETE=bash_source sparcipal)"``.',
        "",
    ]
    pages: list[tuple[str, click.Command]] = [("sparcipal", main)]
    pages += [(f"sparcipal {name}", command) for name, command in main.commands.items()]
    for title, command in pages:
        context = click.Context(command, info_name=title, terminal_width=90, max_content_width=90)
        parts += [title, "-" * len(title), "", ".. code-block:: text", ""]
        parts += [f"   {line}".rstrip() for line in command.get_help(context).splitlines()]
        parts.append("")
    return "\n".join(parts)


def test_the_command_reference_is_that_of_help(request):
    path = ROOT / "docs" / "cli.rst"
    text = command_reference()
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "run pytest tests/test_docs.py --update-golden"
