"""How the pictures look: one colour and one marker per method, ticks at the sizes measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Colours that remain distinct without red or green (Okabe & Ito).
STYLES: dict[str, dict[str, Any]] = {
    "threshold": {"color": "#999999", "marker": "v"},
    "tpower": {"color": "#e69f00", "marker": "s"},
    "em": {"color": "#cc79a7", "marker": "D"},
    "greedy": {"color": "#009e73", "marker": "^"},
    "spannogram": {"color": "#d55e00", "marker": "o"},
    "bipartite": {"color": "#56b4e9", "marker": "P"},
    # Drawn below the others, wide enough to be seen where they agree.
    "auto": {"color": "#0072b2", "marker": "", "linewidth": 4, "alpha": 0.55, "zorder": 1},
}
SHAPE = {"markerfacecolor": "none", "markersize": 6, "linewidth": 1.2}
BOUND = {"color": "black", "linestyle": ":", "linewidth": 1.2, "label": "proved bound"}


def pyplot() -> Any:
    """matplotlib.pyplot without a display."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    return plt


def draw(ax: Any, xs: Sequence[float], ys: Any, method: str) -> None:
    ax.plot(xs, ys, label=method, **{**SHAPE, **STYLES[method]})


def ticks(ax: Any, places: Sequence[int]) -> None:
    """Ticks at these numbers and nowhere else; a logarithmic axis would write powers of ten."""
    ax.set_xticks(list(places), labels=[str(place) for place in places])
    ax.minorticks_off()
