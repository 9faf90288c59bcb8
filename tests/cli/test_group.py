"""Errors of the command line in one sentence."""

from __future__ import annotations

from click.testing import CliRunner

from sparcipal.cli import group
from sparcipal.cli.group import _sentence, main
from sparcipal.data.files import formats


def test_sentence_names_file_and_remedy_of_system_errors():
    missing = FileNotFoundError(2, "No such file or directory", "x.csv")
    assert _sentence(missing) == "x.csv: No such file or directory"
    assert _sentence(MemoryError("3 GB")) == (
        "not enough memory (3 GB); use fewer features or a machine with more"
    )
    assert _sentence(RuntimeError()) == "RuntimeError"


def test_ctrl_c_says_what_was_interrupted(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,5\n4,4\n")

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(formats, "open_source", interrupted)
    done = CliRunner().invoke(main, ["fit", str(tmp_path / "x.csv"), "-s", "1"])
    assert done.exit_code == 130
    assert "Aborted" not in done.stderr
    assert f"stopped while {tmp_path / 'x.csv'} was read" in done.stderr
    monkeypatch.setattr(group.click.Group, "invoke", interrupted)
    assert "stopped before there was an answer" in CliRunner().invoke(main, ["doctor"]).stderr
