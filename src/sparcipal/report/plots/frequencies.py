"""This picture shows how often features come back when the rows change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import common

if TYPE_CHECKING:
    from ...questions.resampling import Stability

MOST = 20  # features per component


class StabilityDisplay:
    """Frequencies of features over resamples with their intervals, one panel per component.

    Parameters
    ----------
    stability : Stability

    Attributes
    ----------
    axes_ : list of Axes
    figure_ : Figure
    """

    def __init__(self, stability: Stability) -> None:
        self.stability = stability

    def plot(self, ax: Any = None) -> StabilityDisplay:
        often = self.stability.frequencies
        shown = [self._shown(j) for j in range(often.shape[0])]
        if ax is None:
            height = 1.3 + 0.24 * max(len(features) for features in shown)
            self.figure_, self.axes_ = common.grid(len(shown), 4.4, height, 2)
        else:
            self.figure_, self.axes_ = common.given_axes(ax, len(shown))
        for j, (panel, features) in enumerate(zip(self.axes_, shown)):
            self._panel(panel, j, features)
        drawn = {}
        for panel in self.axes_:
            drawn.update({name: artist for artist, name in zip(*panel.get_legend_handles_labels())})
        self.figure_.legend(
            list(drawn.values()), list(drawn), loc="outside lower center", ncols=len(drawn),
            frameon=False, fontsize="small",
        )  # fmt: skip
        return self

    def _shown(self, j: int) -> np.ndarray:
        """Return the features of the answer and the most frequent others, most frequent first."""
        often = self.stability.frequencies[j]
        support = self.stability.reference.supports[j]
        others = np.setdiff1d(np.flatnonzero(often >= 0.1), support)
        others = others[np.argsort(-often[others], kind="stable")][: max(0, MOST - support.size)]
        features = np.concatenate([support, others])
        return features[np.argsort(-often[features], kind="stable")]

    def _panel(self, ax: Any, j: int, features: np.ndarray) -> None:
        found = self.stability
        share, (low, high) = found.frequencies[j, features], found.intervals
        places = np.arange(features.size)[::-1]
        inside = np.isin(features, found.reference.supports[j])
        for mask, colour, hatch, name in (
            (inside, common.BLUE, None, "in the answer"),
            (~inside, common.GREY, "///", "not in the answer"),
        ):
            if mask.any():
                ax.barh(
                    places[mask], share[mask], color=colour if hatch is None else "none",
                    edgecolor=colour, hatch=hatch, height=0.7, alpha=0.85, label=name,
                )  # fmt: skip
        ax.hlines(places, low[j, features], high[j, features], color="black", linewidth=1.2)
        if found.threshold <= 1.0:
            ax.axvline(
                found.threshold, color=common.ORANGE, linestyle="--", linewidth=1.0,
                label="selected from here",
            )  # fmt: skip
        ax.set_yticks(
            places, [common.label(found.reference.feature_name(int(i))) for i in features]
        )
        ax.set_xlim(0.0, 1.02)
        ax.set_xlabel(f"share of {found.n_resamples} resamples")
        mean = float(found.jaccard[:, j].mean()) if found.n_resamples else float("nan")
        # two lines: beside long names a panel is narrow
        ax.set_title(f"component {j + 1}\nmean overlap {mean:.2f}", fontsize="medium", loc="left")
        common.plain_axes(ax)
