"""The spannogram of a rank-2 approximation: one curve per feature, and the support that wins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import common

ANGLES = 1441
# So many of the winning curves are named; more names would cover each other.
NAMED = 12


class SpannogramDisplay:
    """The curves v_i.c of Papailiopoulos et al. (2013), c = (sin f, cos f), against the angle f.

    At every angle the s highest curves are the best support for that direction; the sum of
    their squares, drawn below, is what it explains on the rank-2 approximation. Its maximum is
    the answer.

    Parameters
    ----------
    V : array of shape (p, 2)
        The approximation is V V'.
    n_nonzero_coefs : int
    nonnegative : bool
        Curves keep their sign, and the angle goes all the way round (Asteris et al. 2014).
    feature_names : sequence of str, optional

    Attributes
    ----------
    ax_ : array of two Axes
    figure_ : Figure
    support_ : ndarray
        The features that win.
    angle_ : float
        Where they win, in degrees.
    winners_ : list of Line2D
    """

    def __init__(
        self,
        V: Any,
        n_nonzero_coefs: int,
        *,
        nonnegative: bool = False,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        V = np.asarray(V, dtype=np.float64)
        if V.ndim != 2 or V.shape[1] != 2:
            raise ValueError(f"V must have two columns, a rank-2 factor; got shape {V.shape}")
        if not 1 <= n_nonzero_coefs <= len(V):
            raise ValueError(
                f"n_nonzero_coefs must be from 1 to {len(V)}, the number of features; got "
                f"{n_nonzero_coefs}"
            )
        self.V = V
        self.n_nonzero_coefs = int(n_nonzero_coefs)
        self.nonnegative = nonnegative
        self.feature_names = feature_names

    @classmethod
    def from_factor(
        cls, V: Any, n_nonzero_coefs: int, *, ax: Any = None, **options: Any
    ) -> SpannogramDisplay:
        return cls(V, n_nonzero_coefs, **options).plot(ax=ax)

    @classmethod
    def from_covariance(
        cls, covariance: Any, n_nonzero_coefs: int, *, ax: Any = None, **options: Any
    ) -> SpannogramDisplay:
        """The two leading eigenvectors, scaled by the roots of their eigenvalues."""
        w, Q = np.linalg.eigh(np.asarray(covariance, dtype=np.float64))
        V = Q[:, :-3:-1] * np.sqrt(np.maximum(w[:-3:-1], 0.0))
        return cls(V, n_nonzero_coefs, **options).plot(ax=ax)

    def plot(self, ax: Any = None) -> SpannogramDisplay:
        """Draw into two axes, curves above and explained variance below; new ones by default."""
        self._solve()
        if ax is None:
            self.figure_, axes = common.stacked(2, 7.2, 5.6, (3, 1.2))
        else:
            axes = list(np.ravel(ax))
            if len(axes) != 2:
                raise ValueError(f"ax must hold two axes, one above the other, got {len(axes)}")
            self.figure_ = axes[0].figure
        self._draw_curves(axes[0])
        self._draw_value(axes[1])
        self.ax_ = np.array(axes)
        return self

    def _solve(self) -> None:
        from ...bounds.lowrank.sphere import sphere_search

        found = sphere_search(self.V, self.n_nonzero_coefs, nonnegative=self.nonnegative)
        span = 180.0 if self.nonnegative else 90.0
        self.degrees = np.linspace(-span, span, ANGLES)
        turn = np.deg2rad(self.degrees)
        heights = np.column_stack([np.sin(turn), np.cos(turn)]) @ self.V.T
        self.heights = heights if self.nonnegative else np.abs(heights)
        best = np.sort(np.maximum(self.heights, 0.0), axis=1)[:, ::-1][:, : self.n_nonzero_coefs]
        self.explained = (best * best).sum(axis=1)
        self.support_, self.value = found.support, found.value
        angle = float(np.rad2deg(np.arctan2(found.c[0], found.c[1])))
        if not self.nonnegative:
            angle = (angle + 90.0) % 180.0 - 90.0
        self.angle_ = angle

    def _draw_curves(self, ax: Any) -> None:
        wins = np.isin(np.arange(len(self.V)), self.support_)
        others = np.flatnonzero(~wins)
        # Thousands of curves are a grey band whose upper edge says all there is to say.
        tallest = others[np.argsort(-self.heights[:, others].max(axis=0), kind="stable")][:200]
        for i in tallest:
            ax.plot(self.degrees, self.heights[:, i], color="#b5b5b5", linewidth=0.7, zorder=1)
        self.winners_ = [
            ax.plot(self.degrees, self.heights[:, i], color=common.BLUE, linewidth=1.8, zorder=3)[0]
            for i in self.support_
        ]
        handles = [self.winners_[0]] if self.winners_ else []
        names = [f"the {len(self.support_)} features that win"] if self.winners_ else []
        if len(tallest):
            handles.append(ax.lines[0])
            names.append("all others" if len(tallest) == len(others) else "the 200 highest others")
        self._name_winners(ax)
        ax.axvline(self.angle_, color=common.ORANGE, linestyle="--", linewidth=1.3, zorder=2)
        ax.legend(
            handles, names, frameon=False, fontsize="small", ncols=2, loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
        )  # fmt: skip
        ax.set_ylabel("height of the curve" if self.nonnegative else "|height| of the curve")
        if self.nonnegative:
            ax.axhline(0.0, color=common.GREY, linewidth=0.8)
        else:
            ax.set_ylim(bottom=0.0)
        ax.set_xlim(self.degrees[0], self.degrees[-1])
        ax.tick_params(labelbottom=False)
        common.plain_axes(ax)

    def _name_winners(self, ax: Any) -> None:
        """Names in the margin, where the curves leave the picture, pushed apart."""
        here, ends = self.heights[np.argmin(np.abs(self.degrees - self.angle_))], self.heights[-1]
        strongest = self.support_[np.argsort(-here[self.support_], kind="stable")][:NAMED]
        order = strongest[np.argsort(-ends[strongest], kind="stable")]
        top, bottom = float(self.heights.max()), min(0.0, float(self.heights.min()))
        more = len(self.support_) > NAMED
        places = _apart(ends[order], 0.066 * (top - bottom), bottom, top, extra=int(more))
        for i, height in zip(order, places):
            name = self.feature_names[i] if self.feature_names is not None else f"x{i}"
            ax.annotate(
                common.label(str(name), 18), (self.degrees[-1], ends[i]), xytext=(1.035, height),
                textcoords=("axes fraction", "data"), fontsize="small", va="center",
                color=common.BLUE, annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": common.BLUE, "lw": 0.6, "shrinkA": 1,
                            "shrinkB": 0, "relpos": (0, 0.5)},
            )  # fmt: skip
        if more:
            ax.annotate(
                f"and {len(self.support_) - NAMED} more", (1.035, places[len(order)]),
                xycoords=("axes fraction", "data"), fontsize="small", va="center",
                color=common.GREY, annotation_clip=False,
            )  # fmt: skip

    def _draw_value(self, ax: Any) -> None:
        ax.plot(self.degrees, self.explained, color="black", linewidth=1.4)
        ax.plot([self.angle_], [self.value], "o", color=common.ORANGE, zorder=3)
        ax.axvline(self.angle_, color=common.ORANGE, linestyle="--", linewidth=1.3)
        right = self.angle_ > 0.3 * self.degrees[-1]
        ax.annotate(
            f"{self.value:.4g} at {self.angle_:.1f}°", (self.angle_, 0.07),
            xycoords=("data", "axes fraction"), xytext=(-6 if right else 6, 0),
            textcoords="offset points", ha="right" if right else "left", fontsize="small",
        )  # fmt: skip
        ax.set_ylim(0.0, 1.1 * self.value if self.value > 0 else 1.0)
        ax.set_xlim(self.degrees[0], self.degrees[-1])
        ax.set_xlabel("angle in degrees")
        ax.set_ylabel("explained by\nthe best support")
        common.plain_axes(ax)


def _apart(heights: np.ndarray, step: float, low: float, high: float, extra: int) -> np.ndarray:
    """Decreasing heights moved as little as needed to be `step` apart and inside; `extra` below."""
    places = np.append(heights, np.full(extra, heights[-1] if heights.size else low))
    for i in range(1, places.size):
        places[i] = min(places[i], places[i - 1] - step)
    # What was pushed below the picture pushes the others up again.
    if places.size:
        places[-1] = max(places[-1], low)
    for i in range(places.size - 2, -1, -1):
        places[i] = max(places[i], places[i + 1] + step)
    return places
