"""The solver's progress is a table on stderr with a line per stage and per improvement."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from . import words

if TYPE_CHECKING:
    from ..problem.monitor import Progress

HEAD = f"{'seconds':>8}  {'stage':<10}  {'value':>12}  {'bound':>12}  {'gap':>9}  {'nodes':>8}"

SILENCE = 10.0  # seconds after which the last figures are written once more


def progress_line(progress: Progress) -> str:
    """Return the figures of one moment, aligned under HEAD; an unknown figure is a dash."""
    value = "-" if progress.value is None else words.at_least(progress.value)
    bound = "-" if progress.bound is None else words.at_most(progress.bound)
    gap = "-" if progress.gap is None else words.gap_percent(progress.gap)
    nodes = "-" if progress.nodes is None else str(progress.nodes)
    line = (
        f"{progress.seconds:8.1f}  {progress.stage:<10}  {value:>12}  {bound:>12}  {gap:>9}  "
        f"{nodes:>8}  {progress.message}"
    )
    return line.rstrip()


class ProgressLines:
    """This callback writes a line whenever the stage, the value or the bound has changed, for every
    tenth of a file that is read, and where nothing changes for a while."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._last: tuple[object, ...] | None = None
        self._at = 0.0

    def __call__(self, progress: Progress) -> None:
        stream = sys.stderr if self._stream is None else self._stream
        tenths = 10 * progress.done // progress.total if progress.done and progress.total else None
        now = (progress.stage, progress.value, progress.bound, tenths)
        if now == self._last and progress.seconds < self._at + SILENCE:
            return
        self._at = progress.seconds
        if self._last is None:
            stream.write(HEAD + "\n")
        self._last = now
        stream.write(progress_line(progress) + "\n")
        stream.flush()
