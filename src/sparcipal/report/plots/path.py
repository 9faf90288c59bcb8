"""This picture shows variance against nonzeros and the region in which the optimum must lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import common

if TYPE_CHECKING:
    from ...problem.result import Result

# Lines of other methods differ in dash and marker as well as in colour.
STYLES = (("s--", common.ORANGE), ("^:", common.GREEN), ("d-.", common.GREY), ("v--", "#CC79A7"))


class PathDisplay:
    """Explained variance, as a share of the leading eigenvalue, for a path of cardinalities.

    The figure of Asteris et al. (2014): the optimum lies in the shaded region, provably.

    Parameters
    ----------
    results : sequence of Result
        Equally many components each, for different numbers of nonzeros; any order.
    others : dict of str to sequence of Result, optional
        Answers of other methods to the same questions: drawn as lines.
    bounds : dict of str to sequence of float, optional
        Other upper bounds, in the units of the data, in the order of `results`: thin lines.
    leading : float, optional
        The leading eigenvalue; taken from the results of one component if absent. Otherwise
        shares of the total variance are drawn.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    region_ : PolyCollection
        Between the variance found and the bound.
    lines_ : list of Line2D
    """

    def __init__(
        self,
        results: Iterable[Result],
        others: Mapping[str, Sequence[Result]] | None = None,
        bounds: Mapping[str, Sequence[float]] | None = None,
        leading: float | None = None,
    ) -> None:
        given = list(results)
        if not given:
            raise ValueError("results is empty; pass one Result per number of nonzeros")
        counts = {len(result.supports) for result in given}
        if len(counts) > 1:
            raise ValueError(f"results have {sorted(counts)} components; pass those of one path")
        order = sorted(range(len(given)), key=lambda i: _allowed(given[i]))
        self.results = [given[i] for i in order]
        self.others = {name: sorted(path, key=_allowed) for name, path in (others or {}).items()}
        self.bounds = {name: [path[i] for i in order] for name, path in (bounds or {}).items()}
        if leading is None and counts == {1}:
            leading = _leading(self.results)
        self.leading = None if leading is None else float(leading)
        self._whole = self.results[0].total_variance if self.leading is None else self.leading

    @classmethod
    def from_results(
        cls, results: Iterable[Result], *, ax: Any = None, **options: Any
    ) -> PathDisplay:
        return cls(results, **options).plot(ax=ax)

    @classmethod
    def from_data(
        cls, X: Any, n_nonzero_coefs: Sequence[int], *, ax: Any = None, **settings: Any
    ) -> PathDisplay:
        """Solve for every number of nonzeros and draw; `settings` go to `sparse_pca`."""
        from ...fit import sparse_pca

        results = [
            sparse_pca(X, n_components=1, n_nonzero_coefs=int(s), **settings)
            for s in n_nonzero_coefs
        ]
        shared = {name: settings[name] for name in ("center", "scale") if name in settings}
        # At rank one this method also computes the leading eigenvalue.
        whole = sparse_pca(
            X, n_nonzero_coefs=1, method="spannogram", rank=1, certify=False, **shared
        )
        return cls(results, leading=whole.info["leading_eigenvalue"]).plot(ax=ax)

    def plot(self, ax: Any = None) -> PathDisplay:
        ax, self.figure_ = common.axes_of(ax, figsize=(6.4, 4.2))
        s = np.array([_allowed(result) for result in self.results])
        value = np.array([result.value for result in self.results]) / self._whole
        bound = np.array([result.bound for result in self.results]) / self._whole
        self.region_ = ax.fill_between(
            s, value, bound, color=common.BLUE, alpha=0.22, linewidth=0,
            label=f"the optimum lies here, proved ({self._widest()})",
        )  # fmt: skip
        ax.plot(s, bound, color=common.BLUE, linewidth=0.8)
        self.lines_ = ax.plot(
            s, value, "o-", color=common.BLUE, markersize=3.5, label="found", zorder=4
        )
        for (name, path), (style, colour) in zip(self.others.items(), STYLES):
            places = [_allowed(result) for result in path]
            heights = [result.value / self._whole for result in path]
            self.lines_ += ax.plot(
                places, heights, style, color=colour, markersize=6.5, markerfacecolor="none",
                label=common.label(name, 60),
            )  # fmt: skip
        for name, heights in self.bounds.items():
            self.lines_ += ax.plot(
                s, np.array(heights) / self._whole, linestyle=(0, (1, 1.5)), color="black",
                linewidth=1.3, label=common.label(name, 60),
            )  # fmt: skip
        self._decorate(ax, float(bound.max()))
        self.ax_ = ax
        return self

    def _widest(self) -> str:
        gap = 100 * max(result.gap for result in self.results)
        if gap < 0.001:
            return "gap below 0.001 %"
        return f"gap at most {gap:.2g} %" if gap < 10 else f"gap at most {gap:.0f} %"

    def _decorate(self, ax: Any, highest: float) -> None:
        drawn = max([highest, *(float(np.max(line.get_ydata())) for line in self.lines_)])
        near = self.leading is not None and drawn >= 0.7
        ax.set_ylim(0.0, max(1.05 * drawn, 1.08 if near else 0.0))
        if near:
            ax.axhline(1.0, color=common.GREY, linewidth=0.8)
            ax.annotate(
                "leading eigenvalue", (0.0, 1.0), xycoords=("axes fraction", "data"),
                xytext=(4, 3), textcoords="offset points", ha="left", fontsize="small",
                color=common.GREY,
            )  # fmt: skip
        ax.locator_params(axis="x", integer=True)  # half a nonzero is none
        k = len(self.results[0].supports)
        ax.set_xlabel("nonzeros allowed" + (f" in each of {k} components" if k > 1 else ""))
        whole = "total variance" if self.leading is None else "leading eigenvalue"
        ax.set_ylabel(f"explained variance / {whole}")
        ax.legend(frameon=False, loc="lower right", fontsize="small")
        common.plain_axes(ax)


def _allowed(result: Result) -> int:
    return int(result.settings["n_nonzero_coefs"][0])


def _leading(results: list[Result]) -> float | None:
    """Return the leading eigenvalue that a method computed, or the best bound on it, or None."""
    for result in results:
        if "leading_eigenvalue" in result.info:
            return float(result.info["leading_eigenvalue"])
    bounds = [bound for result in results for bound in result.certificate.bounds]
    return min((bound.value for bound in bounds if bound.name == "eigenvalues"), default=None)
