"""The documents are executed: examples print what they say, and the reference is that of --help."""

from __future__ import annotations

import csv
import doctest
import importlib.metadata
import importlib.util
import io
import re
import shutil
import subprocess
import textwrap
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from sparcipal.checker.family import FAMILIES
from sparcipal.cli import main
from tests.support.places import ROOT, data_file

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.rst") if not {"_build", "gallery"} & set(path.parts))
MODULES = [
    "comparison", "data.inputs", "estimator", "fit", "path", "questions.choice",
    "questions.explanation", "questions.nearby", "questions.resampling", "questions.windows",
]  # fmt: skip
RENEW = "run pytest tests/properties/test_docs.py --update-golden"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def needs(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip, with the reason, a page whose data or packages are not there."""
    if page == "cells":
        pytest.importorskip("anndata")
    if page == "relaxations":
        pytest.importorskip("cvxpy")
    if page in ("coming_from", "five_minutes", "nonzeros", "returns"):
        pytest.importorskip("pandas")
    if page == "topics" and not np.__version__.startswith("2.4."):
        pytest.skip("the page shows the docstrings of NumPy 2.4")
    if page == "published":
        folder = data_file("benchmark_correlations.npz").resolve().parent
        monkeypatch.setenv("SPARCIPAL_DATA", str(folder))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_print_what_they_say(path, monkeypatch, tmp_path):
    needs(path.stem, monkeypatch)
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=FLAGS)
    assert failed == 0


def as_rows(source: str, number: str) -> str:
    """A table of a Markdown file as the rows of a csv-table."""
    text = (ROOT / source).read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    lines = tables[int(number) - 1].splitlines()
    rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "---" not in line)
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return textwrap.indent(out.getvalue().replace("`", "``"), "   ")


def rows_now(shown: re.Match[str], renew: bool) -> str:
    """The rows of the source; measured tables, which no two runs share, only to renew them."""
    measured = shown[1].startswith("benchmarks/results/")
    stale = not measured or (renew and (ROOT / shown[1]).exists())
    return as_rows(shown[1], shown[2]) if stale else shown[4]


def test_the_comparison_shows_what_the_benchmarks_wrote(request):
    path = DOCS / "comparison.rst"
    renew = request.config.getoption("--update-golden")
    text = path.read_text(encoding="utf-8")
    block = r'(?<=\.\. from )(\S+), table (\d)(.*?\n\n\.\. csv-table::\n.*?\n\n)((?:   ".*\n)+)'
    renewed, count = re.subn(
        block, lambda m: f"{m[1]}, table {m[2]}{m[3]}{rows_now(m, renew)}", text
    )
    assert count == text.count("csv-table::")
    if renew:
        path.write_text(renewed, encoding="utf-8")
        text = renewed
    assert text == renewed, RENEW


def test_every_bound_that_can_be_rechecked_has_a_page():
    text = (DOCS / "methods" / "index.rst").read_text(encoding="utf-8")
    explained = set(re.findall(r"^``([\w -]+)``", text, flags=re.MULTILINE))
    assert explained == set(FAMILIES)


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
        "Data go to stdout, words and progress to stderr. Commands, options, methods and names of",
        "files are completed by the shell after one of these, best kept in its start-up file:",
        "",
        ".. code-block:: console",
        "",
        '   $ eval "$(_SPARCIPAL_COMPLETE=bash_source sparcipal)"    # bash, from 4.4 on',
        '   $ eval "$(_SPARCIPAL_COMPLETE=zsh_source sparcipal)"     # zsh',
        "   $ _SPARCIPAL_COMPLETE=fish_source sparcipal | source     # fish",
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
    if importlib.metadata.version("click").startswith("8.1."):
        pytest.skip("click 8.1 puts choices into two pairs of brackets")
    path = DOCS / "cli.rst"
    text = command_reference()
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, (
        "run pytest tests/properties/test_docs.py --update-golden"
    )


def test_every_command_that_pages_name_is_there():
    for path in PAGES:
        named = re.findall(r"^ +\$ sparcipal ([a-z]+)", path.read_text("utf-8"), flags=re.MULTILINE)
        assert set(named) <= set(main.commands), path.name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_formulas_are_ones_that_the_pages_can_show(path):
    convert = pytest.importorskip("docutils.utils.math.latex2mathml").tex2mathml
    text = path.read_text(encoding="utf-8")
    for formula in re.findall(r":math:`([^`]+)`", text):
        convert(formula)
    for block in re.findall(r"\.\. math::\n\n((?:   .*\n|\n)+)", text):
        convert(block, as_block=True)


def program(name: str) -> Any:
    """A program of the documents as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_format_of_proofs_is_that_of_the_schema(request):
    made, path = program("proof_format").page(), DOCS / "proof_format.rst"
    if request.config.getoption("--update-golden"):
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made, RENEW
    for name in FAMILIES:
        assert re.search(rf"^Bound .*``{name}``", made, flags=re.MULTILINE), name


def test_the_page_of_printed_figures_is_that_of_what_was_measured(request):
    made, path = program("printed").page(), DOCS / "printed.rst"
    if request.config.getoption("--update-golden"):
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made, RENEW


def test_manual_pages_say_what_help_says():
    manual = program("manual")
    pages = manual.pages()
    assert set(pages) == {"sparcipal", *(f"sparcipal-{name}" for name in main.commands)}
    for name, text in pages.items():
        assert text.startswith(f'.TH "{name.upper()}" "1"')
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"):
            assert text.count(f".SH {section}\n") == 1
    assert "\\-\\-nonzero\\-total T" in pages["sparcipal-fit"]
    assert manual.roff(".so /etc/passwd") == "\\&.so /etc/passwd"
    troff = shutil.which("groff")
    for text in pages.values() if troff else ():
        command = [troff, "-man", "-Tutf8", "-ww", "-z"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        assert done.stderr == ""
