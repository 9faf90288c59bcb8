"""These pictures show samples by their scores, alone or with the features as arrows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..samples import Colouring, Samples, colouring, component_name, samples_of
from . import common

if TYPE_CHECKING:
    from ...problem.result import Result

# Groups differ in colour and in marker (Okabe and Ito 2008, with purple for yellow).
LOOKS = (
    (common.BLUE, "o"),
    (common.ORANGE, "^"),
    (common.GREEN, "s"),
    ("#AA3377", "D"),
    ("#B58900", "v"),
    ("#4A4E99", "P"),
    (common.GREY, "X"),
)


class _OfSamples(ABC):
    """What both pictures are made of: a result, and samples with their labels."""

    def __init__(
        self,
        result: Result,
        samples: Samples,
        components: tuple[int, int] = (0, 1),
    ) -> None:
        k = len(result.supports)
        if k == 1:
            raise ValueError(
                "samples are drawn on two components, and the result has one; fit n_components=2, "
                "or draw its loadings with LoadingsDisplay"
            )
        wrong = [j for j in components if not 0 <= j < k]
        if len(components) != 2 or wrong:
            raise ValueError(
                f"components={components!r} are not two of the {k} that there are; count from 0"
            )
        self.result = result
        self.samples = samples
        self.components = components

    @classmethod
    def from_result(
        cls,
        result: Result,
        X: Any,
        *,
        labels: Any = None,
        label_name: str = "",
        components: tuple[int, int] = (0, 1),
        ax: Any = None,
    ) -> Self:
        """Score the rows of X and draw them.

        Parameters
        ----------
        result : Result
        X : what `fit` takes, in memory
        labels : sequence, optional
            One per row: groups, or numbers. A Table brings its own.
        label_name : str, optional
        components : (int, int)
            Which two, counted from 0.
        ax : Axes, optional
        """
        samples = samples_of(result, common.table(X), labels, label_name)
        return cls(result, samples, components).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **options: Any) -> Self:
        """Return the same for a fitted SparsePCA; options are those of `from_result`."""
        return cls.from_result(common.result_of(estimator), X, ax=ax, **options)

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw the samples."""

    def _name_axes(self, ax: Any) -> None:
        x, y = (common.label(component_name(self.result, j), 40) for j in self.components)
        ax.set_xlabel(f"component {x}")
        ax.set_ylabel(f"component {y}")


class ScoresDisplay(_OfSamples):
    """Samples by their scores on two components, coloured by a label.

    Parameters
    ----------
    result : Result
    samples : Samples
    components : (int, int)
        Which two, counted from 0.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    points_ : list of PathCollection
        One per group, or one for a scale of numbers.
    """

    def plot(self, ax: Any = None) -> Self:
        ax, self.figure_ = common.axes_of(ax, figsize=(5.6, 4.4))
        colours = colouring(self.samples.labels, len(self.samples))
        places = self.samples.scores[:, list(self.components)]
        self.points_ = _points(ax, places, colours, size=_size(len(self.samples)))
        if not colours.plain:
            name = common.label(self.samples.label_name, 40)
            if colours.scaled:
                self.figure_.colorbar(self.points_[0], ax=ax, label=name)
            else:
                ax.legend(title=name, frameon=False, fontsize="small", title_fontsize="small")
        self._name_axes(ax)
        common.plain_axes(ax)
        self.ax_ = ax
        return self


class BiplotDisplay(_OfSamples):
    """Samples on two components, and the features as arrows: their correlations with the scores.

    Scores are shrunk to the unit circle; where an arrow points, samples have much of its feature,
    and near the circle the two components tell nearly all about it.

    Parameters
    ----------
    result : Result
    samples : Samples
    components : (int, int)
        Which two, counted from 0.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    points_ : list of PathCollection
    arrows_ : dict of int to Annotation
        By feature.
    """

    MOST = 12  # features, those with the longest arrows

    def plot(self, ax: Any = None) -> Self:
        x, y = self.components
        features, ends = self._longest()
        left, right = self._room(features, ends)
        unit = 2.05  # inches
        ax, self.figure_ = common.axes_of(ax, figsize=(unit * (left + right) + 0.4, 4.7))
        plt = common.pyplot()
        colours = colouring(self.samples.labels, len(self.samples))
        away = self.samples.scores[:, [x, y]] - self.samples.scores[:, [x, y]].mean(axis=0)
        largest = np.abs(away).max(axis=0)
        places = away / np.where(largest > 0, largest, 1.0)
        size = 0.6 * _size(len(self.samples))
        self.points_ = _points(ax, places, colours, size=size, alpha=0.35)
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, color=common.GREY, linewidth=0.7))
        self._arrows(ax, features, ends)
        if not (colours.plain or colours.scaled):
            name = common.label(self.samples.label_name, 40)
            ax.legend(
                title=name, frameon=False, fontsize="small", title_fontsize="small",
                loc="lower left",
            )  # fmt: skip
        ax.set(xlim=(-left, right), ylim=(-1.05, 1.05), xticks=[], yticks=[], aspect="equal")
        for line in ([-1, 1], [0, 0]), ([0, 0], [-1, 1]):
            ax.plot(*line, color=common.GREY, linewidth=0.4, zorder=0)
        ax.spines[:].set_visible(False)
        self._name_axes(ax)
        self.ax_ = ax
        return self

    def _longest(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of both components with the longest arrows, and where these end."""
        x, y = self.components
        own = np.concatenate([self.result.supports[x], self.result.supports[y]])
        here = np.flatnonzero(np.isin(self.samples.features, own))
        ends = self.samples.directions[here][:, [x, y]]
        longest = np.argsort(-np.hypot(*ends.T), kind="stable")[: self.MOST]
        return self.samples.features[here[longest]], ends[longest]

    def _room(self, features: np.ndarray, ends: np.ndarray) -> tuple[float, float]:
        """Return how far the picture reaches to the left and to the right: names stand there."""
        lengths = np.array([len(self._name(int(i))) for i in features])
        sides = (lengths[ends[:, 0] < 0], lengths[ends[:, 0] >= 0])
        left, right = (max(1.25, 1.12 + 0.036 * side.max(initial=0)) for side in sides)
        return left, right

    def _name(self, feature: int) -> str:
        return common.label(self.result.feature_name(feature))

    def _arrows(self, ax: Any, features: np.ndarray, ends: np.ndarray) -> None:
        x = self.components[0]
        heights = _apart(ends)
        self.arrows_ = {}
        for feature, (a, b), height in zip(features.tolist(), ends, heights):
            colour = common.BLUE if feature in self.result.supports[x] else common.ORANGE
            side = 1 if a >= 0 else -1
            self.arrows_[feature] = ax.annotate(
                "", (a, b), (0, 0),
                arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.4,
                            "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip
            ax.annotate(
                self._name(feature), (a, b), (side * 1.08, height), va="center",
                ha="left" if side > 0 else "right", fontsize="small", color=colour,
                arrowprops={"arrowstyle": "-", "color": common.GREY, "linewidth": 0.4},
            )  # fmt: skip


def _points(
    ax: Any, places: np.ndarray, colours: Colouring, *, size: float, alpha: float = 0.8
) -> list[Any]:
    """Draw points by group, or along a scale."""
    shared = {"s": size, "alpha": alpha, "linewidths": 0.3, "edgecolors": "white"}
    if colours.scaled:
        return [ax.scatter(*places.T, c=_on_scale(colours), cmap="viridis", **shared)]
    drawn = []
    for group, name in enumerate(colours.groups):
        colour, marker = LOOKS[group]
        own = places[colours.group == group]
        label = common.label(name, 40)
        drawn.append(ax.scatter(*own.T, color=colour, marker=marker, label=label, **shared))
    return drawn


def _on_scale(colours: Colouring) -> np.ndarray:
    low, high = colours.ends
    return low + colours.place * (high - low)


def _size(count: int) -> float:
    """Return the area of a mark: smaller where there are many."""
    return float(np.clip(3e4 / max(count, 1), 4.0, 30.0))


def _apart(ends: np.ndarray, line: float = 0.11) -> np.ndarray:
    """Return heights for names: near their arrows, a line apart on either side."""
    heights = ends[:, 1].copy()
    for side in (False, True):
        own = np.flatnonzero((ends[:, 0] >= 0) == side)
        own = own[np.argsort(ends[own, 1], kind="stable")]
        for _ in range(60):
            for below, above in pairwise(own):
                close = (line - (heights[above] - heights[below])) / 2
                if close > 0:
                    heights[below] -= close
                    heights[above] += close
        if own.size:
            over = max(0.0, heights[own[-1]] - 1.05)
            heights[own] -= over
    return heights
