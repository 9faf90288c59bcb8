"""This picture shows the supports that are nearly as good as the best one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers import unlisted
from . import common

if TYPE_CHECKING:
    from ...problem.answers import Alternatives, Nearby

MOST = 25  # supports that are drawn
FEATURES = 30  # and features, those in most of them


class AlternativesDisplay:
    """A row per support within reach of the best, a column per feature, and what each falls short.

    Parameters
    ----------
    alternatives : Alternatives
    component : int
        Which one, counted from 0.

    Attributes
    ----------
    axes_ : list of Axes
        The supports, and the bars beside them.
    figure_ : Figure
    image_ : AxesImage
    features_ : ndarray
        The features of the columns.
    """

    def __init__(self, alternatives: Alternatives, component: int = 0) -> None:
        from ...problem.answers import Alternatives

        if not isinstance(alternatives, Alternatives):
            raise TypeError(
                f"alternatives is a {type(alternatives).__name__}; pass what "
                "sparcipal.alternatives(result, X) returns"
            )
        count = len(alternatives.components)
        if count == 0:
            raise ValueError(unlisted(alternatives))
        if not 0 <= component < count:
            raise ValueError(
                f"component={component} is not one of the {count} that there are; count from 0"
            )
        self.alternatives = alternatives
        self.component = component

    @classmethod
    def from_alternatives(
        cls, alternatives: Alternatives, component: int = 0, *, ax: Any = None
    ) -> AlternativesDisplay:
        return cls(alternatives, component).plot(ax=ax)

    def plot(self, ax: Any = None) -> AlternativesDisplay:
        """Draw into new axes, or into the two given."""
        near = self.alternatives.components[self.component]
        listed = near.supports[:MOST]
        if not listed:
            raise ValueError("the list of supports is empty; raise within=")
        self.features_ = _columns(near)
        if ax is None:
            self.figure_, drawn = common.pyplot().subplots(
                1, 2, sharey=True, layout="constrained", width_ratios=(3, 1),
                figsize=(max(5.0, 3.2 + 0.32 * self.features_.size), 2.2 + 0.26 * len(listed)),
            )  # fmt: skip
            self.axes_ = list(drawn)
        else:
            self.figure_, self.axes_ = common.given_axes(ax, 2)
        self._supports(self.axes_[0], near)
        self._shortfalls(self.axes_[1], near)
        return self

    def _supports(self, ax: Any, near: Nearby) -> None:
        used = np.array([np.isin(self.features_, e.support) for e in near.supports[:MOST]])
        usual = np.isin(self.features_, near.supports[0].support)
        # 0: not used, 1: used, as in the best, 2: used instead.
        kinds = np.where(used, np.where(usual, 1, 2), 0)
        colours = common.pyplot().matplotlib.colors.ListedColormap(
            ["#eef1f4", common.BLUE, common.ORANGE]
        )
        self.image_ = ax.imshow(kinds, cmap=colours, vmin=0, vmax=2, aspect="auto")
        ax.set_xticks(np.arange(self.features_.size), self._names(), rotation=60, ha="right",
                      rotation_mode="anchor", fontsize="small")  # fmt: skip
        ax.set_yticks(np.arange(len(kinds)), np.arange(1, len(kinds) + 1))
        ax.set_xticks(np.arange(1, self.features_.size) - 0.5, minor=True)
        ax.set_yticks(np.arange(1, len(kinds)) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1.5)
        ax.tick_params(which="both", length=0)
        ax.spines[:].set_visible(False)
        shown = f", the first {len(kinds)}" if len(kinds) < len(near.supports) else ""
        supports = "support" if near.count == 1 else "supports"
        complete = "none is missing" if near.complete else "there may be more"
        within = f"{100 * self.alternatives.within:.3g} %"
        several = len(self.alternatives.components) > 1
        whose = f"component {near.component + 1}, the others as they are\n" if several else ""
        ax.set_title(
            f"{whose}{near.count} {supports} within {within}{shown}; {complete}",
            fontsize="medium", loc="left",
        )  # fmt: skip
        ax.set_ylabel("support")

    def _names(self) -> list[str]:
        return [common.label(self.alternatives.result.feature_name(int(i))) for i in self.features_]

    def _shortfalls(self, ax: Any, near: Nearby) -> None:
        best = near.supports[0].value
        short = [100 * max(0.0, 1 - e.value / best) for e in near.supports[:MOST]]
        bars = ax.barh(np.arange(len(short)), short, color=common.GREY, height=0.6)
        ax.bar_label(bars, fmt="%.2g", padding=3, fontsize="small")
        ax.set_xlim(0.0, 1.3 * (max(short) or 100 * self.alternatives.within or 1.0))
        ax.set_xlabel("% below\nthe best")  # beside few features the axis is narrow
        ax.tick_params(axis="y", length=0)
        common.plain_axes(ax)


def _columns(near: Nearby) -> np.ndarray:
    """Return the features to show: those of the best support first, then those in most others."""
    first = near.supports[0].support
    often: dict[int, int] = {}
    for entry in near.supports:
        for feature in entry.support.tolist():
            often[feature] = often.get(feature, 0) + 1
    others = sorted(set(often) - set(first.tolist()), key=lambda i: (-often[i], i))
    own = sorted(first.tolist(), key=lambda i: (-often[i], i))
    return np.array([*own, *others][:FEATURES], dtype=int)
