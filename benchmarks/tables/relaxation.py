"""Zhang & El Ghaoui 2011: figure 1 (cost), figure 2 (variances), tables 1 and 2 (topics)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.baselines import relaxations
from benchmarks.baselines.sets import SETS
from benchmarks.tables import pictures


def relaxation(folder: Path) -> Iterator[str]:
    yield "# Zhang & El Ghaoui 2011, figure 2, tables 1 and 2: DSPCA on text"
    yield from _variances(folder)
    yield "\n## Tables 1 and 2: topics (KOS and NIPS instead of NYTimes and PubMed)"
    yield from relaxations.topics()


def cost(folder: Path, model: str) -> Iterator[str]:
    plt = pictures.pyplot()
    yield f"# Zhang & El Ghaoui 2011, figure 1: ascent against first order, {model} covariances"
    yield "\nThe ascent is that of the paper, without the steps that `dspca` adds to it."
    costs = relaxations.compare_solvers(model)
    yield from relaxations.describe(model, costs)
    n = [c.n for c in costs]
    figure, ax = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    slow = [c.first_order for c in costs]
    ax.loglog(n, slow, marker="s", color="#d55e00", label="first order")
    ax.loglog(n, [c.ascent for c in costs], marker="o", color="#0072b2", label="ascent")
    # A line of slope three through the largest ascent, to hold the others against.
    last = costs[-1]
    cubic = [last.ascent * (size / last.n) ** 3 for size in n]
    ax.loglog(n, cubic, color="black", linestyle=":", linewidth=1, label="n cubed")
    pictures.ticks(ax, n)
    ax.set(xlabel="features", ylabel="CPU seconds", title=f"{model} covariances")
    ax.legend(fontsize=8, frameon=False)
    target = folder / f"cost-{model.lower()}.png"
    figure.savefig(target, dpi=130)
    plt.close(figure)
    yield f"\n![cost]({target.name})"


def _variances(folder: Path) -> Iterator[str]:
    plt = pictures.pyplot()
    yield "\n## Figure 2 (KOS and NIPS instead of NYTimes and PubMed): sorted variances of words"
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for ax, name in zip(axes, ("BoW:KOS", "BoW:NIPS")):
        X = SETS[name].load().tocsc()
        mean = np.asarray(X.mean(axis=0)).ravel()
        second = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        ranked = np.sort(second - mean**2)[::-1]
        ax.semilogy(np.arange(1, ranked.size + 1), ranked, color="#0072b2")
        ax.set(xlabel="word, by variance", ylabel="variance", title=name)
        yield (
            f"\n{name}: the 500th of {ranked.size} words has {100 * ranked[499] / ranked[0]:.2g} % "
            "of the largest variance."
        )
    figure.savefig(folder / "variances.png", dpi=130)
    plt.close(figure)
    yield "\n![variances](variances.png)"
