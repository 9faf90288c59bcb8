"""Options of the command line: places to write to, and completion."""

from __future__ import annotations

import pytest

from sparcipal.cli import options


def test_output_option_refuses_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    import click

    monkeypatch.setattr(options.os, "access", lambda path, mode: False)
    with pytest.raises(click.BadParameter, match="cannot be written; choose another place"):
        options.Output().convert(str(tmp_path / "m.json"), None, None)


def test_completion_offers_the_words_that_fit():
    assert options.complete_cache(None, None, "b") == ["beside"]
    assert options.complete_methods(None, None, "auto,tpo") == ["auto,tpower"]
