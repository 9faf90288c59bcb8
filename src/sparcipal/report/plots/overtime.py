"""This picture shows topics over time."""

from __future__ import annotations

import math
from typing import Any

from . import common

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6b6b6b")
STYLES = ("-", "--", "-.", ":")
MARKS = "os^Dv"


class TrendsDisplay:
    """The share of the variance of each thread of topics, window by window.

    Parameters
    ----------
    trends : Trends

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    lines_ : list of Line2D
    """

    def __init__(self, trends: Any) -> None:
        self.trends = trends

    @classmethod
    def from_trends(cls, trends: Any, *, ax: Any = None) -> TrendsDisplay:
        return cls(trends).plot(ax=ax)

    def plot(self, ax: Any = None) -> TrendsDisplay:
        ax, self.figure_ = common.axes_of(ax, figsize=(8.0, 4.2))
        windows = self.trends.windows
        self.lines_ = []
        for place, (thread, found) in enumerate(sorted(self.trends.threads().items())):
            strongest = max(found.values(), key=lambda topic: topic.share)
            span = range(min(found), max(found) + 1)
            words = ", ".join(common.label(word, 14) for word in strongest.words[:3])
            self.lines_ += ax.plot(
                list(span),
                # no line through a window in which the topic was not found
                [100 * found[i].share if i in found else math.nan for i in span],
                color=COLOURS[place % len(COLOURS)],
                linestyle=STYLES[place // len(COLOURS) % len(STYLES)],
                marker=MARKS[place % len(MARKS)],
                markersize=5,
                label=f"{thread + 1}  {words}",  # the number that the table has for it
            )
        ax.set_xticks(
            range(len(windows)),
            [common.label(window.first, 12) for window in windows],
            rotation=30 if len(windows) > 5 else 0,
            ha="right" if len(windows) > 5 else "center",
        )
        ax.set_xlim(-0.3, len(windows) - 0.7)
        ax.set_ylim(0.0, 1.05 * ax.dataLim.y1)  # the margin of what is drawn may be far less
        ax.set_xlabel("from")
        ax.set_ylabel("share of the variance, %")
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5))
        common.plain_axes(ax)
        self.ax_ = ax
        return self
