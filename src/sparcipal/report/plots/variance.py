"""This picture compares the cumulative variance of joint components with others and the bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from . import common

if TYPE_CHECKING:
    from ...problem.result import Result


class VarianceDisplay:
    """Variance explained by the first components together.

    Parameters
    ----------
    result : Result
    other : Result, optional
        To compare with, for instance the same question answered by deflation.
    labels : (str, str)

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    lines_ : list of Line2D
    bound_ : Line2D or None
        What no components of this kind exceed.
    """

    def __init__(
        self,
        result: Result,
        other: Result | None = None,
        labels: tuple[str, str] = ("joint", "one at a time"),
    ) -> None:
        self.result = result
        self.other = other
        self.labels = labels

    @classmethod
    def from_result(
        cls, result: Result, other: Result | None = None, *, ax: Any = None, **options: Any
    ) -> VarianceDisplay:
        return cls(result, other, **options).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, other: Any = None, *, ax: Any = None, **options: Any
    ) -> VarianceDisplay:
        second = None if other is None else common.result_of(other)
        return cls(common.result_of(estimator), second, **options).plot(ax=ax)

    def plot(self, ax: Any = None) -> VarianceDisplay:
        ax, self.figure_ = common.axes_of(ax, figsize=(6.0, 3.8))
        self.lines_ = [self._curve(ax, self.result, self.labels[0], common.BLUE, "o-")]
        if self.other is not None:
            self.lines_.append(self._curve(ax, self.other, self.labels[1], common.ORANGE, "s--"))
        self.bound_ = None
        bound = self.result.bound
        if math.isfinite(bound):
            k = len(self.result.variances)
            self.bound_ = ax.plot(
                [k - 0.3, k + 0.3], [bound, bound], color=common.GREEN, linewidth=2.5,
                label="proven bound for all",
            )[0]  # fmt: skip
            # The optimum for all components lies on this line.
            ax.vlines(k, self.result.value, bound, color=common.GREEN, linestyle=":")
        ax.set_xlabel("components")
        ax.set_ylabel("variance explained together")
        ax.set_ylim(bottom=0.0)
        ax.set_xticks(np.arange(1, len(self.result.variances) + 1))
        ax.legend(frameon=False, loc="lower right")
        common.plain_axes(ax)
        self.ax_ = ax
        return self

    @staticmethod
    def _curve(ax: Any, result: Result, name: str, colour: str, style: str) -> Any:
        together = np.cumsum(result.variances)
        places = np.arange(1, together.size + 1)
        return ax.plot(places, together, style, color=colour, label=name)[0]
