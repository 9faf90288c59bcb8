"""Show progress on stderr: a line per improvement and a moving one; silent without a terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def live(
    time_limit: float | None = None, quiet: bool = False
) -> Iterator[tuple[Callable[[str], None], Callable[[Any], None]]]:
    """Yield two callables: one takes sentences, one the solver's Progress."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield (lambda sentence: None), (lambda progress: None)
        return
    view = _View(console, time_limit)
    with console.status("starting", spinner="dots") as status:
        view.status = status
        yield view.say, view.update


class _View:
    def __init__(self, console: Any, time_limit: float | None) -> None:
        self.console = console
        self.status: Any = None
        self._limit = time_limit
        self._start = time.monotonic()
        self._best: float | None = None
        self._drawn = 0.0
        self._stopping = False

    def say(self, sentence: str) -> None:
        from rich.text import Text

        seconds = Text(f"{time.monotonic() - self._start:6.1f} s  ", style="dim")
        self.console.print(seconds.append(sentence, style="not dim"))
        self.status.update(Text(sentence))

    def update(self, progress: Any) -> None:
        from ..report import words

        better = progress.value is not None and (
            self._best is None or progress.value > self._best * (1 + 1e-9)
        )
        if better:
            self._best = progress.value
            self.say(f"value {words.at_least(progress.value)} ({progress.stage})")
        now = time.monotonic()
        if progress.stage == "stopping" and not self._stopping:
            self._stopping = better = True
        if better or now - self._drawn > 0.1:
            self._drawn = now
            self.status.update(self._line(progress))

    def _line(self, progress: Any) -> str:
        from rich.markup import escape

        from ..report import words

        if progress.done is not None:
            return _bar(progress)
        parts = [progress.stage]
        if progress.value is not None:
            parts.append(f"value {words.at_least(progress.value)}")
        if progress.bound is not None:
            parts.append(f"bound {words.at_most(progress.bound)}")
        if progress.gap is not None:
            parts.append(f"gap {words.gap_percent(progress.gap)}")
        if progress.nodes is not None:
            parts.append(f"{progress.nodes} nodes")
        if self._limit is not None:
            parts.append(f"{max(0.0, self._limit - progress.seconds):.0f} s left")
        else:
            parts.append(f"{progress.seconds:.0f} s")
        if progress.message:
            parts.append(progress.message)
        keys = "stopping; Ctrl-C again: quit" if self._stopping else "Ctrl-C: stop here"
        return escape("  ".join(parts)) + f"  [dim]({keys})[/dim]"


def _bar(progress: Any, width: int = 24) -> str:
    """Return how much of a file is read; the bar appears only after a second."""
    from rich.markup import escape

    if not progress.total or progress.seconds < 1.0:
        return f"reading {escape(progress.message)}"
    share = min(progress.done / progress.total, 1.0)
    full = round(width * share)
    bar = f"[green]{'━' * full}[/green][dim]{'━' * (width - full)}[/dim]"
    return f"reading {bar} {100 * share:3.0f} %  {escape(progress.message)}"
