"""Variance against the number of nonzeros, x >= 0: the three figures of Asteris et al. (2014)."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.lowrank.search import say
from sparcipal import Result, sparse_pca, verify

# What the paper says it proves, for one of its cardinalities.
PRINTED = {"CBCL faces": "58 % at s=180", "Leukemia": "44.6 % at s=50", "LRS": "86 % at s=20"}


def figures() -> None:
    folder = Path(os.environ.get("SPARCIPAL_FIGURES", tempfile.mkdtemp(prefix="lowrank-")))
    lrs = np.load(data.path("lrs.npz"))["X"].astype(float)
    draw(folder, "LRS", lrs, [2, 5, 10, 20, 40, 60, 90])
    leukemia = np.load(data.path("mll.npz"))["X"].astype(float)
    draw(folder, "Leukemia", leukemia, [5, 10, 25, 50, 100])
    faces = np.load(data.path("cbcl_faces_raw.npz"))["train"].astype(float)
    faces = faces.reshape(len(faces), -1) / 255
    draw(folder, "CBCL faces", faces, [5, 10, 20, 40, 60, 80, 120, 180])


def draw(folder: Path, name: str, X: np.ndarray, sizes: list[int]) -> None:
    from sparcipal.report.plots import PathDisplay

    say(f"{name} {X.shape[0]} x {X.shape[1]}, x >= 0; the paper proves {PRINTED[name]}")
    say("     s  variance/leading  proved: papers' rank 3   rank 4 only     all   recheck   CPU s")
    ours, em, papers = [], [], []
    leading = np.linalg.norm(X - X.mean(axis=0), 2) ** 2 / len(X)
    for s in sizes:
        start = time.process_time()
        third = solve(X, s, method="spannogram", rank=3, certify=False)
        fourth = solve(X, s, method="spannogram", rank=4, certify=False)
        best = solve(X, s, method="spannogram", rank=7, certify="fast")
        spent = time.process_time() - start
        papers.append(third.info["rank_bound"])
        low_rank = next(b.value for b in fourth.certificate.bounds if b.name == "low-rank")
        ours.append(best)
        em.append(solve(X, s, method="em", certify=False))
        say(
            f"  {s:4d} {best.value / leading:12.4f} {100 * third.value / papers[-1]:18.1f} % "
            f"{100 * fourth.value / low_rank:15.2f} % {100 * best.value / best.bound:9.3f} % "
            f"{verify(best, X).verdict:>9s} {spent:8.1f}"
        )
    display = PathDisplay.from_results(
        ours,
        others={"EM (Sigg & Buhmann 2008)": em},
        bounds={"bound of the papers, rank 3": papers},
        leading=leading,
    )
    display.ax_.set_title(name, loc="left")
    target = folder / f"{name.lower().replace(' ', '-')}.png"
    display.figure_.savefig(target, dpi=130)
    say(f"  drawn: {target}")


def solve(X: np.ndarray, s: int, **settings: Any) -> Result:
    return sparse_pca(X, n_components=1, n_nonzero_coefs=s, nonnegative=True, **settings)
