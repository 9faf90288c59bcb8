"""Topics over time: the same question in one window of time after the other.

Each window begins its search with the answer of the one before it. Topics of neighbouring windows
are matched by the words they share, and what is left with the topics of windows further back, so
that what is new, what fades and what returns can be said.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..data.inputs import Door, resolved
from ..data.notes import tell
from ..data.table import Table, as_table
from ..fit import fitted
from ..numerics.threads import one_blas_thread
from ..problem.parameters import integer
from ..problem.result import Result
from ..report.words import ending, gap_percent, plain, share_percent
from ..settings import Settings

# Of the words of two topics together, those that must be common for one to go on in the other. Of
# two topics of s words these are two fifths of s; one word is enough where s is one or two.
SAME = 0.25
FEW = 4  # words of a topic that fades
SPANS = {"year": 4, "month": 7, "day": 10}  # characters of an ISO date
LEAST = 2  # documents of a window
_ISO = re.compile(r"\d{4}(-\d{2}(-\d{2}.*)?)?")


@dataclass(frozen=True)
class Topic:
    """A topic in one window.

    Attributes
    ----------
    thread : int
        The same for a topic and those that it goes on or returns in, from 0.
    words : tuple of str
        The strongest first.
    share : float
        Of the variance of the window.
    came, went : tuple of str
        Words that the topic has gained and lost since it was last found; `came` is empty for a new
        topic.
    new : bool
        Whether no topic of any window before goes on or returns in it.
    returns : bool
        Whether it was found before, but not in the window before.
    """

    thread: int
    words: tuple[str, ...]
    share: float
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    new: bool = False
    returns: bool = False


@dataclass(frozen=True)
class Window:
    """A span of time: its first and last label, its documents, its topics, and those that end.

    Attributes
    ----------
    first, last : str
    n_samples : int
    topics : tuple of Topic
    faded : tuple of Topic
        Topics of the window before that are not among the largest of this one, as many as were
        asked for; smaller ones may be there, and return.
    result : Result
    """

    first: str
    last: str
    n_samples: int
    topics: tuple[Topic, ...]
    faded: tuple[Topic, ...]
    result: Result = field(repr=False)


@dataclass(frozen=True)
class Trends:
    """What `trends` returns: one Window after the other; prints as text, `plot` draws it."""

    windows: tuple[Window, ...]

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, position: int) -> Window:
        return self.windows[position]

    def threads(self) -> dict[int, dict[int, Topic]]:
        """Return the topics of each thread, by window."""
        out: dict[int, dict[int, Topic]] = {}
        for position, window in enumerate(self.windows):
            for topic in window.topics:
                out.setdefault(topic.thread, {})[position] = topic
        return out

    def records(self) -> list[dict[str, Any]]:
        """Return one record per topic and window, as a data frame wants them."""
        return [
            {
                "window": position + 1,
                "first": window.first,
                "last": window.last,
                "documents": window.n_samples,
                "thread": topic.thread + 1,
                "new": topic.new,
                "returns": topic.returns,
                "share": topic.share,
                "words": " ".join(topic.words),
                "came": " ".join(topic.came),
                "went": " ".join(topic.went),
                "gap": window.result.gap,
                "status": window.result.status.value,
            }
            for position, window in enumerate(self.windows)
            for topic in window.topics
        ]

    def __str__(self) -> str:
        lines: list[str] = []
        width = 7 if any(t.returns for window in self.windows for t in window.topics) else 3
        for window in self.windows:
            span = (
                window.first if window.first == window.last else f"{window.first} to {window.last}"
            )
            documents = f"{window.n_samples} documents; {_proved(window.result)}"
            lines += ["", f"{plain(span, 60)}: {documents}"]
            for topic in window.topics:
                mark = "new" if topic.new else "returns" if topic.returns else ""
                words = ", ".join(
                    ("+" if word in topic.came else "") + plain(word) for word in topic.words
                )
                share = share_percent(topic.share)
                head = f"  {topic.thread + 1:>3}  {share:>7}  {mark:<{width}}  "
                lines += textwrap.wrap(
                    words, 100, initial_indent=head, subsequent_indent=" " * len(head)
                )
            for topic in window.faded:
                gone = ", ".join([*map(plain, topic.words[:FEW]), *["…"][: len(topic.words) > FEW]])
                lines.append(f"  {topic.thread + 1:>3}  fades: {gone}")
        if any(window.faded for window in self.windows):
            most = max(len(window.topics) for window in self.windows)
            said = (
                f"new: among the {most} largest of a window for the first time; fades: no longer "
                "among them, it may return"
            )
            lines += ["", *textwrap.wrap(said, 100)]
        return "\n".join(lines[1:])

    def _repr_html_(self) -> str:
        from ..report.cards import trends_card

        return trends_card(self)

    def plot(self, ax: Any = None) -> Any:
        """Return the share of every thread of topics in every window."""
        from ..report.plots import TrendsDisplay

        return TrendsDisplay(self).plot(ax=ax)


def trends(
    X: Any,
    times: Sequence[Any] | None = None,
    *,
    windows: int | str = 6,
    n_components: int = 5,
    n_nonzero_coefs: int = 10,
    **question: Any,
) -> Trends:
    """Find topics in one window of time after the other, and what is new and what fades.

    A topic goes on in one of the next window if at least a quarter of the words of both together
    are common: four of ten words each, two of five, one of two. Topics are paired so that these
    shares add up to most; those without a partner are new, or fade.

    Parameters
    ----------
    X : Table, array, sparse matrix or frame
        Documents in rows, as `read` counts them.
    times : sequence, optional
        A date (ISO, as 2024-01-31), a year or a number for each row; the labels of the Table if
        not given: `read(..., label_field="date")`, or the dates of the files of a folder.
    windows : int, "year", "month" or "day"
        So many windows of equal length, or one per year, month or day.
    n_components, n_nonzero_coefs : int
        Topics of a window, and words of a topic.
    **question
        What `sparse_pca` takes: nonnegative, center, certify, n_jobs, ...

    Returns
    -------
    Trends

    Examples
    --------
    >>> from sparcipal import read, trends
    >>> animals = ["cat dog", "cat dog dog", "dog cat cat"]
    >>> texts = [*animals, "star moon", "moon star star", "moon moon star"]
    >>> years = [2001, 2001, 2001, 2002, 2002, 2002]
    >>> found = trends(read(texts), years, windows="year", n_components=1, n_nonzero_coefs=2)
    >>> [sorted(window.topics[0].words) for window in found.windows]
    [['cat', 'dog'], ['moon', 'star']]
    >>> found[1].topics[0].new
    True
    """
    table = as_table(X)
    if table.notes and not isinstance(X, Table):
        tell(table.notes)
    if times is None:
        times = table.labels
    if times is None:
        raise ValueError(
            "the documents have no times; pass times=..., or read them with label_field='date'"
        )
    if len(times) != table.shape[0]:
        raise ValueError(f"times has {len(times)} entries for {table.shape[0]} documents")
    asked = {**question, "n_components": n_components, "n_nonzero_coefs": n_nonzero_coefs}
    labels = [str(entry) for entry in times]
    out: list[Window] = []
    for rows in _cut([_moment(label) for label in labels], labels, windows):
        part = Table(table.X[rows], table.feature_names)
        init: dict[str, Any] = (
            {} if not out else {"init": [s.tolist() for s in out[-1].result.supports]}
        )
        settings = Settings.of(**asked, **init)
        monitor = settings.monitor()
        with monitor.interruptible(), one_blas_thread:
            given = resolved(part, door=Door(settings.memory_limit, monitor))
            # without warnings: many words do not occur in every window
            result = fitted(given, settings, monitor)
        some = sorted((labels[i] for i in rows), key=_moment)
        out.append(_window(result, out, (some[0], some[-1])))
    return Trends(tuple(out))


def _window(result: Result, before: Sequence[Window], span: tuple[str, str]) -> Window:
    """Return the topics of a window, each in the thread of the one it continues: one of the window
    before, or the last of a thread that was found further back."""
    own = [tuple(result.names(j)) for j in range(len(result.supports))]
    last = {topic.thread: topic for window in before for topic in window.topics}
    recent = before[-1].topics if before else ()
    older = [t for t in last.values() if t not in recent]
    goes_on = _continued(recent, own)
    left = [j for j in range(len(own)) if j not in goes_on]
    found = _continued(older, [own[j] for j in left])
    returns = {left[i]: topic for i, topic in found.items()}
    topics = []
    fresh = len(last)
    for j, words in enumerate(own):
        share = float(result.variances[j] / result.total_variance)
        old = goes_on.get(j) or returns.get(j)
        if old is None:
            topics.append(Topic(fresh, words, share, new=bool(before)))
            fresh += 1
        else:
            came = tuple(word for word in words if word not in old.words)
            went = tuple(word for word in old.words if word not in words)
            topics.append(Topic(old.thread, words, share, came, went, returns=j in returns))
    going = {topic.thread for topic in goes_on.values()}
    faded = tuple(topic for topic in recent if topic.thread not in going)
    assert result.n_samples is not None
    return Window(*span, result.n_samples, tuple(topics), faded, result)


def _proved(result: Result) -> str:
    """Return how good the topics of a window are proved to be, in a few words."""
    how = ending(result.certificate)[0]
    if how == "optimal" or how.startswith("within"):
        return how
    gap = f"gap {gap_percent(result.gap)}"
    return gap if how == "gap" else f"{how}, {gap}"


def _continued(before: Sequence[Topic], now: Sequence[Sequence[str]]) -> dict[int, Topic]:
    """Return, for each of these lists of words that goes on, the topic that it continues."""
    if not before or not now:
        return {}
    return {j: before[i] for j, i in matched([t.words for t in before], now).items()}


def matched(before: Sequence[Sequence[str]], now: Sequence[Sequence[str]]) -> dict[int, int]:
    """Return, for each topic or component that goes on, which one before it continues."""
    common = np.array([[len({*a} & {*b}) / len({*a} | {*b}) for b in before] for a in now])
    common[common < SAME] = 0.0  # such pairs would take partners from those that go on
    rows, columns = linear_sum_assignment(-common)
    return {int(i): int(j) for i, j in zip(rows, columns) if common[i, j] > 0.0}


def _moment(label: str) -> float:
    """Return a date or a number as a number; years and dates are days."""
    text = label.strip()
    if _ISO.fullmatch(text):
        parts = [int(part) for part in text[:10].split("-")] + [1, 1]
        try:
            return float(date(*parts[:3]).toordinal()) + _clock(text)
        except ValueError:
            pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"times has {label!r}, neither a date as 2024-01-31 nor a number; write it so"
        ) from None


def _clock(text: str) -> float:
    """Return the part of the day in a date with a time."""
    if len(text) <= 10:
        return 0.0
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment.hour + moment.minute / 60) / 24


def _cut(moments: list[float], labels: list[str], windows: int | str) -> list[np.ndarray]:
    """Return the rows of each window with documents, in order."""
    if isinstance(windows, str):
        if windows not in SPANS:
            raise ValueError(f"windows={windows!r} is unknown; pass a number, {', '.join(SPANS)}")
        if not all(_ISO.fullmatch(label.strip()) for label in labels):
            raise ValueError(
                f"windows={windows!r} needs dates as 2024-01-31; pass a number instead"
            )
        groups = [label.strip()[: SPANS[windows]] for label in labels]
        cut = [np.flatnonzero(np.array(groups) == group) for group in sorted(set(groups))]
    else:
        count = integer("windows", windows, 1)
        times = np.array(moments)
        edges = np.linspace(times.min(), times.max(), count + 1)
        place = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, count - 1)
        cut = [np.flatnonzero(place == i) for i in range(count)]
    cut = [rows for rows in cut if rows.size]
    small = [rows.size for rows in cut if rows.size < LEAST]
    if small:
        raise ValueError(
            f"windows={windows!r} gives {len(small)} window(s) with fewer than {LEAST} documents; "
            "ask for fewer or longer windows"
        )
    return cut
