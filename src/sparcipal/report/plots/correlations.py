"""This picture shows which components say nearly the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..samples import component_name, samples_of
from ..summary import SAME
from . import common

if TYPE_CHECKING:
    from ...problem.result import Result

MOST = 20  # pairs, those that correlate most


class CorrelationsDisplay:
    """A strip of bars: the correlations between the scores of components, the largest on top.

    Parameters
    ----------
    result : Result
        Of several components.
    correlations : ndarray of shape (n_components, n_components)

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    bars_ : BarContainer
    pairs_ : list of (int, int)
        The components of each bar, counted from 0.
    """

    def __init__(self, result: Result, correlations: np.ndarray) -> None:
        if len(result.supports) < 2:
            raise ValueError("one component has no other to correlate with; ask for two or more")
        self.result = result
        self.correlations = np.asarray(correlations)

    @classmethod
    def from_result(cls, result: Result, X: Any, *, ax: Any = None) -> CorrelationsDisplay:
        """Score the rows of X, as `fit` takes them, and draw how the scores correlate."""
        found = samples_of(result, common.table(X)).correlations
        return cls(result, found).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None) -> CorrelationsDisplay:
        return cls.from_result(common.result_of(estimator), X, ax=ax)

    def plot(self, ax: Any = None) -> CorrelationsDisplay:
        k = len(self.correlations)
        pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
        pairs.sort(key=lambda pair: -abs(self.correlations[pair]))
        self.pairs_ = pairs[:MOST]
        ax, self.figure_ = common.axes_of(ax, figsize=(6.4, 0.9 + 0.3 * len(self.pairs_)))
        heights = np.array([self.correlations[pair] for pair in self.pairs_])
        places = np.arange(heights.size)
        self.bars_ = ax.barh(
            places,
            heights,
            color=[common.BLUE if r >= 0 else common.ORANGE for r in heights],
            hatch=["" if r >= 0 else "///" for r in heights],
            edgecolor="white",
        )
        ax.bar_label(self.bars_, fmt="{:z.2f}", padding=3, fontsize="small")
        names = [component_name(self.result, j) for j in range(k)]
        ax.set_yticks(places, [common.label(f"{names[i]}, {names[j]}", 60) for i, j in self.pairs_])
        ax.invert_yaxis()
        for line in (-SAME, SAME):
            ax.axvline(line, color=common.GREY, linestyle=":", linewidth=1.0)
        ax.axvline(0.0, color=common.GREY, linewidth=0.8)
        ax.set_xlim(-1.15, 1.15)
        ax.set_xlabel(f"correlation of the scores (dotted: {SAME}, nearly the same)")
        common.plain_axes(ax)
        self.ax_ = ax
        return self
