"""The cost of each answer after a fit relative to that fit, on public data.

python -m benchmarks.answers [NAME ...]    CPU seconds at ten nonzeros

list and costs: `alternatives` without and with the cost of each feature; verify: of costs.
stability: 20 halves of the rows; choose: 1 to 3 components x 5, 10, 15 nonzeros; both need rows.
path: `sparse_path` of 3 components x 5, 10, 15 nonzeros, one of the three paths of choose.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import data
from sparcipal import (
    alternatives,
    choose,
    explain,
    read,
    sparse_path,
    sparse_pca,
    stability,
    verify,
)

S = 10
NAMES = ("communities", "arrhythmia", "mll", "kos", "nips")


def sources(names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in names:
        if name in ("communities", "arrhythmia"):
            yield name, {"covariance": np.load(data.path("benchmark_correlations.npz"))[name]}
        elif name == "mll":
            yield name, {"X": np.load(data.path("mll.npz"))["X"].astype(float)}
        else:
            yield name, {"X": read(data.path(f"docword.{name}.txt.gz"))}


def timed(run: Callable[..., Any], *args: Any, **keywords: Any) -> tuple[float, Any]:
    start = time.process_time()
    found = run(*args, **keywords)
    return time.process_time() - start, found


def main() -> None:
    head = (
        "fit",
        "include",
        "exclude",
        "list",
        "costs",
        "verify",
        "explain",
        "stability",
        "path",
        "choose",
    )
    print(f"{'data':<12}", *(f"{word:>8}" for word in head))
    for name, given in sources(sys.argv[1:] or list(NAMES)):
        asked = {**given, "n_nonzero_coefs": S}
        sparse_pca(**asked)  # compiles what is not compiled yet
        fit, result = timed(sparse_pca, **asked)
        used = result.supports[0]
        outsider = int(np.setdiff1d(np.arange(result.n_features), used)[0])
        anchored, _ = timed(sparse_pca, **asked, include=[outsider])
        without, _ = timed(sparse_pca, **asked, exclude=[int(used[0])])
        listing, _ = timed(alternatives, result, **given, drop=False, force=0)
        costs, found = timed(alternatives, result, **given)
        check, verdict = timed(verify, found, **given)
        assert verdict, verdict.reason
        page, _ = timed(explain, result, **given)
        sizes = (5, 10, 15)
        path, _ = timed(sparse_path, **given, n_components=3, n_nonzero_coefs=sizes)
        again = grid = float("nan")
        if "X" in given:
            again, _ = timed(stability, **asked, n_resamples=20)
            grid, _ = timed(choose, **given, n_components=range(1, 4), n_nonzero_coefs=sizes)
        seconds = (fit, anchored, without, listing, costs, check, page, again, path, grid)
        print(f"{name:<12}", *(f"{took:8.2f}" for took in seconds), end="   ")
        print(f"{found.components[0].count} supports, {found.status}", flush=True)


if __name__ == "__main__":
    main()
