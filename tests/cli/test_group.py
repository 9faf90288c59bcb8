"""Errors of the command line in one sentence."""

from __future__ import annotations

from sparcipal.cli.group import _sentence


def test_sentence_names_file_and_remedy_of_system_errors():
    missing = FileNotFoundError(2, "No such file or directory", "x.csv")
    assert _sentence(missing) == "x.csv: No such file or directory"
    assert _sentence(MemoryError("3 GB")) == (
        "not enough memory (3 GB); use fewer features or a machine with more"
    )
    assert _sentence(RuntimeError()) == "RuntimeError"
