"""One component: Papailiopoulos et al. 2013 and Asteris et al. 2014."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.baselines.sets import SETS
from benchmarks.lowrank import experiments, figures
from sparcipal import sparse_pca


def _captured(function: Callable[[], None]) -> Iterator[str]:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        function()
    yield "\n```"
    yield from text.getvalue().splitlines()
    yield "```"


def spiked(folder: Path) -> Iterator[str]:
    os.environ.setdefault("SPARCIPAL_REPEATS", "40")
    yield "# Papailiopoulos et al. 2013, section 4.1: recovery of two sparse spikes"
    yield "\nThe paper repeats 5000 times; SPARCIPAL_REPEATS says how often here."
    yield from _captured(experiments.spiked)


def genes(folder: Path) -> Iterator[str]:
    """Figure 2: variance over the leading eigenvalue against s, with the outer bound."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield "# Papailiopoulos et al. 2013, figure 2: gene expression (colon; Leukemia for lymphoma)"
    methods = ("threshold", "tpower", "greedy", "spannogram", "auto")
    for name in ("Colon", "Leukemia"):
        X = SETS[name].load()
        X = np.log(X) if name == "Colon" else X
        centred = X - X.mean(axis=0)
        leading = np.linalg.norm(centred, 2) ** 2 / len(X)
        sizes = (2, 5, 10, 20, 40, 80)
        figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
        yield f"\n{name}: variance of one component over the leading eigenvalue\n"
        yield "| method | " + " | ".join(f"s={s}" for s in sizes) + " |"
        yield "| --- " * (len(sizes) + 1) + "|"
        for method in methods:
            shares, bounds = [], []
            for s in sizes:
                certify = "fast" if method == "auto" else False
                own = {"test": False} if method == "greedy" else {}
                rank = 3 if method == "spannogram" else None
                result = sparse_pca(
                    X,
                    n_nonzero_coefs=s,
                    method=method,
                    method_options=own,
                    rank=rank,
                    certify=certify,
                )
                shares.append(SETS[name].variances(X, result.supports)[0] / leading)
                bounds.append(result.bound / leading)
            ax.plot(sizes, shares, marker="o", label=method)
            yield f"| {method} | " + " | ".join(f"{share:.4f}" for share in shares) + " |"
        ax.plot(sizes, bounds, "k--", label="proved bound")
        yield "| proved bound | " + " | ".join(f"{bound:.4f}" for bound in bounds) + " |"
        ax.set(xlabel="nonzeros", ylabel="variance / leading eigenvalue", xscale="log", title=name)
        ax.legend(fontsize=8)
        target = folder / f"genes-{name.lower()}.png"
        figure.savefig(target, dpi=130)
        plt.close(figure)
        yield f"\n![{name}]({target.name})"


def nonnegative(folder: Path) -> Iterator[str]:
    """Figures 4 to 6, and NSPCA on the faces."""
    os.environ["SPARCIPAL_FIGURES"] = str(folder)
    yield "# Asteris et al. 2014, figures 4 to 6: nonnegative components"
    yield from _captured(figures.figures)
    for name in ("cbcl-faces", "leukemia", "lrs"):
        yield f"\n![{name}]({name}.png)"
    yield "\nCBCL faces, the methods of figure 4: variance over the leading eigenvalue\n"
    X = SETS["CBCL Face Train"].load()
    leading = np.linalg.norm(X - X.mean(axis=0), 2) ** 2 / len(X)
    sizes = (10, 40, 80)
    yield "| method | " + " | ".join(f"s={s}" for s in sizes) + " | note |"
    yield "| --- " * (len(sizes) + 2) + "|"
    for method in ("nspca", "em", "spannogram", "auto"):
        shares, notes = [], []
        for s in sizes:
            rank = 3 if method == "spannogram" else None
            result = sparse_pca(
                X, n_nonzero_coefs=s, nonnegative=True, method=method, rank=rank, certify=False
            )
            part = X[:, result.supports[0]] - X[:, result.supports[0]].mean(axis=0)
            scores = part @ result.weights[0]
            shares.append(float(scores @ scores) / len(X) / leading)
            notes.append(result.note)
        said = "; ".join(note for note in notes if note)
        yield f"| {method} | " + " | ".join(f"{share:.4f}" for share in shares) + f" | {said} |"
