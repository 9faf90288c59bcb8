"""Progress on stderr: the bar of a file and the line of a proof."""

from __future__ import annotations

from types import SimpleNamespace

from sparcipal.cli import live
from sparcipal.problem.monitor import Progress


def test_bar_shows_share_and_escaped_name_once_reading_takes_long():
    progress = SimpleNamespace(done=5, total=20, seconds=3.0, message="[red]")
    shown = live._bar(progress)
    assert " 25 %" in shown
    assert r"\[red]" in shown
    assert live._bar(replace_seconds(progress, 0.1)) == r"reading \[red]"


def replace_seconds(progress: SimpleNamespace, seconds: float) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(progress), "seconds": seconds})


def test_line_shows_nodes_and_time_left():
    view = live._View(None, 60.0)
    progress = Progress("branch", 12.0, value=2.0, bound=3.0, nodes=17)
    line = view._line(progress)
    assert "17 nodes" in line
    assert "48 s left" in line
    assert "Ctrl-C" in line
    reading = Progress("read", 12.0, done=5, total=20, message="x.csv")
    assert "25 %" in view._line(reading)
