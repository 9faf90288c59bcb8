"""These pictures show loadings as bars per component, or as a map of components by features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..text import ComponentTable
from . import common

if TYPE_CHECKING:
    from ...problem.result import Result


class LoadingsDisplay:
    """The weights of each component as bars, the strongest on top.

    Parameters
    ----------
    result : Result

    Attributes
    ----------
    axes_ : list of Axes, one per component
    figure_ : Figure
    bars_ : list of BarContainer, one per component
    """

    def __init__(self, result: Result) -> None:
        self.result = result

    @classmethod
    def from_result(cls, result: Result, *, ax: Any = None) -> LoadingsDisplay:
        return cls(result).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> LoadingsDisplay:
        return cls(common.result_of(estimator)).plot(ax=ax)

    def plot(self, ax: Any = None) -> LoadingsDisplay:
        """Draw into new axes, or into those given, one per component."""
        rows = ComponentTable(self.result).rows
        if ax is None:
            tallest = max(len(row.weights) for row in rows)
            self.figure_, axes = common.grid(len(rows), 3.2, 0.6 + 0.22 * tallest, columns=4)
        else:
            self.figure_, axes = common.given_axes(ax, len(rows))
        self.axes_ = axes
        self.bars_ = []
        for axis, row in zip(axes, rows):
            names = [common.label(name) for name in row.features]
            places = np.arange(len(names))
            bars = axis.barh(
                places,
                row.weights,
                color=[common.BLUE if w >= 0 else common.ORANGE for w in row.weights],
                hatch=["" if w >= 0 else "///" for w in row.weights],
                edgecolor="white",
            )
            axis.set_yticks(places, names)
            axis.invert_yaxis()
            axis.axvline(0.0, color=common.GREY, linewidth=0.8)
            share = f"{100 * row.share:.1f} %" if np.isfinite(row.share) else ""
            axis.set_title(f"component {row.component}   {share}", fontsize="medium")
            common.plain_axes(axis)
            self.bars_.append(bars)
        return self


class HeatmapDisplay:
    """Components by the features that some component uses; empty cells are exact zeros.

    Parameters
    ----------
    result : Result

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    image_ : AxesImage
    features_ : ndarray
        The features shown, in the order of the columns.
    """

    def __init__(self, result: Result) -> None:
        self.result = result

    @classmethod
    def from_result(cls, result: Result, *, ax: Any = None) -> HeatmapDisplay:
        return cls(result).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> HeatmapDisplay:
        return cls(common.result_of(estimator)).plot(ax=ax)

    def plot(self, ax: Any = None) -> HeatmapDisplay:
        rows = ComponentTable(self.result).rows
        # The order by component, then by strength, makes disjoint supports visible as blocks.
        self.features_ = np.array(list(dict.fromkeys(i for row in rows for i in row.indices)))
        shown = self.result.components[:, self.features_]
        names = [common.label(self.result.feature_name(int(i))) for i in self.features_]
        width = min(max(1.8 + 0.34 * len(names), 3.6), 24.0)
        height = 0.8 + 0.36 * len(rows) + 0.085 * max(map(len, names))  # names stand below
        ax, self.figure_ = common.axes_of(ax, figsize=(width, height))
        largest = float(np.abs(shown).max())
        image = ax.imshow(
            np.ma.masked_equal(shown, 0.0),
            cmap="RdBu",
            vmin=-largest,
            vmax=largest,
            aspect="auto",
            interpolation="nearest",
        )
        ax.set_xticks(np.arange(len(names)), names, rotation=90, fontsize="small")
        ax.set_yticks(np.arange(len(rows)), [str(row.component) for row in rows])
        ax.set_ylabel("component")
        self.figure_.colorbar(image, ax=ax, label="weight")
        self.ax_, self.image_ = ax, image
        return self
