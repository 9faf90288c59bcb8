"""A running stage reports progress and receives stop signals through a Monitor."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from . import parameters


@dataclass(frozen=True)
class Progress:
    """What is known at one moment of a run; unknown figures are None."""

    stage: str
    seconds: float
    value: float | None = None
    bound: float | None = None
    nodes: int | None = None
    message: str = ""
    done: int | None = None  # bytes read so far, while a file is read,
    total: int | None = None  # and its size, when it has one

    @property
    def gap(self) -> float | None:
        if self.value is None or self.bound is None or self.value <= 0:
            return None
        return max(0.0, self.bound / self.value - 1.0)


def reporter(
    callback: Callable[[Progress], object] | None, verbose: Any
) -> Callable[[Progress], object] | None:
    """Return the callback and, with `verbose`, lines on stderr; None when neither is asked for."""
    level = parameters.integer("verbose", verbose, 0)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}")
    if not level:
        return callback
    from ..report.progress import ProgressLines

    lines = ProgressLines()

    def both(progress: Progress) -> object:
        lines(progress)
        return callback(progress) if callback is not None else None

    return both


PULSE = 1.0  # seconds without news after which the callback hears the last figures once more


class Meter:
    """Counts the work of one proof against a limit.

    A unit is about a nanosecond of one core, estimated from sizes and counts and never timed: the
    same question gets the same answer on any machine.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self.left = limit

    def spend(self, work: float) -> None:
        self.left = max(self.left - work, 0.0)


class Monitor:
    """Collects progress and answers whether to stop.

    `callback(progress)` is called at every update and, so that it can stop long steps as well,
    about once a second in between; returning True stops the run, which then gives the best answer
    so far with its valid bound.
    """

    def __init__(
        self,
        callback: Callable[[Progress], object] | None = None,
        time_limit: float | None = None,
        unit: float = 1.0,
    ) -> None:
        self._callback = callback
        self._start = time.monotonic()
        self._deadline = None if time_limit is None else self._start + time_limit
        self._user = threading.Event()
        self._unit = unit
        self._value: float | None = None
        self._bound: float | None = None
        self._latest: Progress | None = None
        self._heard = self._start
        self._thread = threading.get_ident()

    @property
    def stopped(self) -> str | None:
        """None while the run may go on, otherwise "user" or "time"."""
        self._pulse()
        if self._user.is_set():
            return "user"
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return "time"
        return None

    @property
    def limited(self) -> bool:
        """Whether a clock may stop the run."""
        return self._deadline is not None

    @property
    def overdue(self) -> float:
        """Seconds since the time limit ended; negative before."""
        return -float("inf") if self._deadline is None else time.monotonic() - self._deadline

    def begin_question(self) -> None:
        """Forget values and bounds of an earlier question: they do not speak of the next one."""
        self._value = self._bound = None

    def measure_in(self, unit: float) -> None:
        """Multiply later values and bounds by `unit` to report them in the user's units."""
        self._unit = unit

    def stop(self) -> None:
        self._user.set()

    def __reduce__(self) -> tuple[Any, ...]:
        """Send only the remaining time to another process, not the callback."""
        left = None if self._deadline is None else self._deadline - time.monotonic()
        return Monitor, (None, left, self._unit)

    def update(
        self,
        stage: str,
        *,
        value: float | None = None,
        bound: float | None = None,
        nodes: int | None = None,
        message: str = "",
        read: tuple[int | None, int | None] = (None, None),
    ) -> None:
        """Tell the callback; `read` are the bytes read so far and the size of the file."""
        if value is not None:
            value *= self._unit
            self._value = value if self._value is None else max(value, self._value)
        if bound is not None:
            bound *= self._unit
            self._bound = bound if self._bound is None else min(bound, self._bound)
        self._tell(Progress(stage, 0.0, None, None, nodes, message, *read))

    def _tell(self, news: Progress) -> None:
        if self._callback is None:
            return
        now = time.monotonic()
        self._latest, self._heard = news, now
        seconds, value, bound = now - self._start, self._value, self._bound
        answer = self._callback(replace(news, seconds=seconds, value=value, bound=bound))
        if answer is not None and bool(answer):
            self.stop()

    def _pulse(self) -> None:
        """Ask the callback once more when it has heard nothing for a while, in its own thread."""
        if self._latest is None or threading.get_ident() != self._thread or self._user.is_set():
            return
        if time.monotonic() - self._heard >= PULSE:
            self._tell(self._latest)

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """The first Ctrl-C stops the run with the best answer so far, the second raises as usual.

        Signals reach only the main thread; elsewhere, and where the caller has a handler of its
        own, nothing is changed.
        """
        main = threading.current_thread() is threading.main_thread()
        if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def handler(signum: int, frame: FrameType | None) -> None:
            if self._user.is_set():
                raise KeyboardInterrupt
            self.stop()
            # Acknowledges Ctrl-C at once, because the current step may take some time.
            self.update("stopping", message="as soon as possible; Ctrl-C again to quit at once")

        signal.signal(signal.SIGINT, handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class Quiet(Monitor):
    """A monitor that stops with an outer run and reports none of its own figures."""

    def __init__(self, outer: Monitor) -> None:
        super().__init__()
        self.outer = outer

    @property
    def stopped(self) -> str | None:
        return self.outer.stopped

    @property
    def limited(self) -> bool:
        return self.outer.limited

    def __reduce__(self) -> tuple[Any, ...]:
        return Quiet, (self.outer,)


class Partial(Quiet):
    """A monitor of a run on a part of the features: its values are reported, its bounds are not.

    A component among these features is one among all, so that a value holds for the question that
    was asked; an upper bound of a part does not.
    """

    def update(self, stage: str, *, bound: float | None = None, **figures: Any) -> None:
        self.outer.update(stage, **figures)

    def __reduce__(self) -> tuple[Any, ...]:
        return Partial, (self.outer,)


class Aside(Quiet):
    """A monitor of another question, asked on the way: neither values nor bounds are reported.

    One component alone, or one in another matrix, says nothing of what several explain.
    """

    def update(
        self, stage: str, *, value: float | None = None, bound: float | None = None, **news: Any
    ) -> None:
        self.outer.update(stage, **news)

    def __reduce__(self) -> tuple[Any, ...]:
        return Aside, (self.outer,)
