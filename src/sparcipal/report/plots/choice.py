"""This picture shows the share of held-out variance for all numbers of components and nonzeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import common

if TYPE_CHECKING:
    from ...questions.choice import Choice


class ChoiceDisplay:
    """A map over components and nonzeros, and curves at the recommended number of nonzeros.

    Parameters
    ----------
    choice : Choice

    Attributes
    ----------
    axes_ : list of Axes
        The map and the curves.
    figure_ : Figure
    image_ : AxesImage
    """

    def __init__(self, choice: Choice) -> None:
        self.choice = choice

    def plot(self, axes: Any = None) -> ChoiceDisplay:
        if axes is None:
            self.figure_, self.axes_ = common.grid(2, 5.2, 3.8, 2)
        else:
            self.figure_, self.axes_ = common.given_axes(axes, 2)
        self._map(self.axes_[0])
        self._curves(self.axes_[1])
        return self

    def _map(self, ax: Any) -> None:
        choice = self.choice
        shares = 100.0 * choice.held_out
        self.image_ = ax.imshow(shares, cmap="Blues", aspect="auto", origin="lower")
        ax.set_xticks(np.arange(len(choice.n_nonzero_coefs)), choice.n_nonzero_coefs)
        ax.set_yticks(np.arange(len(choice.n_components)), choice.n_components)
        ax.set_xlabel("nonzeros of each component")
        ax.set_ylabel("components")
        ax.set_title("held-out variance explained, %", fontsize="medium", loc="left")
        middle = (np.nanmin(shares) + np.nanmax(shares)) / 2 if np.isfinite(shares).any() else 0.0
        for (i, j), share in np.ndenumerate(shares):
            if np.isnan(share):
                continue
            best = (choice.n_components[i], choice.n_nonzero_coefs[j]) == choice.best
            ax.text(
                j, i, f"{share:.1f}", ha="center", va="center",
                color="white" if share > middle else "black",
                fontweight="bold" if best else "normal",
            )  # fmt: skip
            if best:
                self._frame(ax, i, j)

    @staticmethod
    def _frame(ax: Any, i: int, j: int) -> None:
        corners_x, corners_y = np.array([-1, 1, 1, -1, -1]), np.array([-1, -1, 1, 1, -1])
        ax.plot(j + 0.46 * corners_x, i + 0.46 * corners_y, color=common.ORANGE, linewidth=2.2)

    def _curves(self, ax: Any) -> None:
        choice = self.choice
        column = choice.n_nonzero_coefs.index(choice.best[1])
        k = np.array(choice.n_components)
        held = choice.held_out[:, column]
        ax.errorbar(
            k, held, yerr=choice.error[:, column], color=common.BLUE, marker="o", capsize=3,
            label="held out, by regression on the scores",
        )  # fmt: skip
        ax.fill_between(
            k, choice.in_sample[:, column], choice.bound[:, column], color=common.GREEN,
            alpha=0.35, linewidth=0,
        )  # fmt: skip
        ax.plot(
            k, choice.in_sample[:, column], "^:", color=common.GREEN, markersize=5,
            label="sum of variances in sample, up to its bound",
        )  # fmt: skip
        if not np.isnan(choice.noise[:, column]).all():
            ax.errorbar(
                k, choice.noise[:, column], yerr=choice.noise_spread[:, column], fmt="s--",
                color=common.GREY, capsize=3, markersize=4, label="held out, noise",
            )  # fmt: skip
        measured = np.isfinite(held) | np.isfinite(choice.in_sample[:, column])
        ax.set_xticks(k[measured])  # a tick without a point would widen the axis
        room = 1.5  # for the legend
        ax.set_ylim(0.0, room * ax.get_ylim()[1])
        ax.axvline(
            choice.best[0], ymax=1 / room, color=common.ORANGE, linewidth=1.0, label="recommended"
        )
        ax.set_xlabel(f"components of {choice.best[1]} nonzeros")
        ax.set_ylabel("share of the variance")
        ax.legend(frameon=False, loc="upper left", fontsize="small")
        common.plain_axes(ax)
