"""The documents are executed: examples print what they say, and the reference is that of --help."""

from __future__ import annotations

import doctest
import importlib

import pytest
from click.testing import CliRunner

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
    for command in ([], *([name] for name in main.commands)):
        outcome = CliRunner().invoke(
            main, [*command, "--help"], prog_name="sparcipal", terminal_width=90
        )
        title = " ".join(["sparcipal", *command])
        parts += [title, "-" * len(title), "", ".. code-block:: text", ""]
        parts += [f"   {line}".rstrip() for line in outcome.stdout.splitlines()]
        parts.append("")
    return "\n".join(parts)


def test_the_command_reference_is_that_of_help(request):
    path = ROOT / "docs" / "cli.rst"
    text = command_reference()
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, "run pytest tests/test_docs.py --update-golden"
