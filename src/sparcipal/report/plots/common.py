"""The pictures share these axes, colours and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import words

if TYPE_CHECKING:
    from ...problem.result import Result

# Colour-blind readers can distinguish these colours (Okabe and Ito 2008).
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#6b6b6b"


def axes_of(ax: Any, **options: Any) -> tuple[Any, Any]:
    """Return the given axes and their figure, or new ones."""
    if ax is not None:
        return ax, ax.figure
    figure, ax = pyplot().subplots(layout="constrained", **options)
    return ax, figure


def pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib; pip install 'sparcipal[plot]'") from error
    return plt


def grid(count: int, width: float, height: float, columns: int) -> tuple[Any, list[Any]]:
    """Return a figure and its `count` axes, in rows of at most `columns`."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, axes = pyplot().subplots(
        rows,
        columns,
        figsize=(width * columns, height * rows),
        squeeze=False,
        layout="constrained",
    )
    flat = list(axes.ravel())
    for ax in flat[count:]:
        ax.set_axis_off()
    return figure, flat[:count]


def given_axes(ax: Any, count: int) -> tuple[Any, list[Any]]:
    """Return the figure and the list of the caller's axes, one per component."""
    axes = list(np.atleast_1d(np.asarray(ax, dtype=object)).ravel())
    if len(axes) != count:
        raise ValueError(
            f"ax has {len(axes)} axes for {count} components; pass one per component: "
            f"figure, ax = plt.subplots(1, {count})"
        )
    return axes[0].figure, axes


def result_of(estimator: Any) -> Result:
    """Return the Result of a fitted SparsePCA."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "result_")
    result: Result = estimator.result_
    return result


def table(X: Any) -> Any:
    """Return data in memory as a Table; entries may be missing."""
    from ...data.table import untangled

    return untangled(X)._check_but_for_gaps()


def label(name: str, limit: int = 30) -> str:
    """Return a name as plain text, because matplotlib would read dollars as mathematics."""
    return words.plain(name, limit).replace("$", r"\$")


def plain_axes(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
