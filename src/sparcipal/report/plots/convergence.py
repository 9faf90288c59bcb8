"""This picture shows value and bound over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...problem.monitor import Progress
from . import common


class ConvergenceDisplay:
    """The best value and the smallest bound against the time, from the Progress of a run.

    Parameters
    ----------
    history : sequence of Progress
        Collect it with `callback=history.append`.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    value_, bound_ : Line2D or None
    """

    def __init__(self, history: Sequence[Progress]) -> None:
        if not any(p.value is not None or p.bound is not None for p in history):
            raise ValueError(
                "history holds no value and no bound; pass callback=history.append to the run"
            )
        self.history = tuple(history)

    @classmethod
    def from_history(cls, history: Sequence[Progress], *, ax: Any = None) -> ConvergenceDisplay:
        return cls(history).plot(ax=ax)

    def plot(self, ax: Any = None) -> ConvergenceDisplay:
        ax, self.figure_ = common.axes_of(ax, figsize=(6.0, 3.6))
        self.value_ = self._steps(ax, "value", common.BLUE, "o-")
        self.bound_ = self._steps(ax, "bound", common.GREEN, "s--")
        self._shade(ax)
        ax.set_xlim(left=0.0)
        ax.set_xlabel("seconds")
        ax.set_ylabel("variance explained")
        ax.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
        common.plain_axes(ax)
        self.ax_ = ax
        return self

    def _steps(self, ax: Any, name: str, colour: str, style: str) -> Any:
        known = [
            (p.seconds, getattr(p, name)) for p in self.history if getattr(p, name) is not None
        ]
        if not known:
            return None
        known.append((self.history[-1].seconds, known[-1][1]))
        seconds, figures = zip(*known)
        # Only changes get a marker, because a long proof reports the same figures many times.
        news = [i for i, y in enumerate(figures) if i == 0 or y != figures[i - 1]]
        return ax.step(
            seconds, figures, style, where="post", color=colour, markersize=4, markevery=news,
            label=name,
        )[0]  # fmt: skip

    def _shade(self, ax: Any) -> None:
        """Shade the region between value and bound, where the optimum lies."""
        both = [p for p in self.history if p.value is not None and p.bound is not None]
        if both:
            ax.fill_between(
                [p.seconds for p in both],
                [p.value for p in both],
                [p.bound for p in both],
                step="post",
                color=common.GREEN,
                alpha=0.12,
                linewidth=0,
            )
