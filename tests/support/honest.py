"""Does the checker refuse anything true? Results of all kinds, each verified against its data.

    python -m tests.support.honest [CASES [FIRST_SEED [SECONDS]]]

Tables of 3 to 13,000 features with fewer or more samples, in every container, centred, scaled,
weighted, sparse and read in passes, or a covariance; every method with every option and small
budgets; saved and loaded. Of small tables the second checker (second_checker.py) is asked as well.
Prints every refusal with its seed, then how many there were: the exit
code is 1 if there is one. It ends after so many SECONDS of processor time, if these are given.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparcipal import Result, read, sparse_pca, verify
from sparcipal.search.registry import METHODS

from .second_checker import check

# How often a size is drawn, its features and its samples.
SIZES = {
    "small": (0.60, (3, 25), (4, 60)),
    "many samples": (0.12, (3, 12), (300, 3000)),
    "medium": (0.18, (40, 300), (20, 200)),
    "wide": (0.08, (400, 1500), (10, 60)),
    "wider": (0.015, (3001, 3999), (10, 60)),
    "widest": (0.005, (8000, 13000), (10, 40)),
}
CONTAINERS = (
    "array", "fortran", "csr", "csc", "coo", "blocks", "sparse blocks", "mixed blocks", "Table",
    "pandas", "polars", "pyarrow", "memmap", "dask",
)  # fmt: skip


@dataclass(frozen=True)
class Honest:
    """One call of `sparse_pca`, and one of `verify` with the same data."""

    seed: int
    size: str
    kind: str
    container: str
    against: str
    X: np.ndarray
    given: bool
    options: dict[str, Any]
    saved: bool

    def __str__(self) -> str:
        shown = {k: v for k, v in self.options.items() if k != "sample_weight"}
        weighted = ", weighted" if "sample_weight" in self.options else ""
        kind = "covariance of" if self.given else self.container
        return (
            f"seed {self.seed}: {self.kind}, {kind} {self.X.shape} {self.X.dtype}{weighted}, "
            f"{shown}, verified with {self.against}{', saved' if self.saved else ''}"
        )


def honest(seed: int) -> Honest:
    """A case by its number."""
    rng = np.random.default_rng([7, seed])
    size = str(rng.choice(list(SIZES), p=[share for share, *_ in SIZES.values()]))
    _, features, samples = SIZES[size]
    p, n = int(rng.integers(*features)), int(rng.integers(*samples))
    kind, X = _table(rng, n, p)
    options = _options(rng, size, p)
    given = size in ("small", "medium") and bool(rng.random() < 0.12)
    if given:
        options.pop("scale"), options.pop("center"), options.pop("memory_limit")
    elif rng.random() < 0.25:
        options["sample_weight"] = _weights(rng, n)
    containers = CONTAINERS if size in ("small", "many samples") else CONTAINERS[:4]
    container = str(rng.choice(containers))
    against = str(rng.choice([container, container, "array"]))
    saved = bool(rng.random() < 0.5)
    return Honest(seed, size, kind, container, against, X, given, options, saved)


def _table(rng: np.random.Generator, n: int, p: int) -> tuple[str, np.ndarray]:
    rank = int(rng.integers(1, 6))
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    X += rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal((n, p))
    kind = str(
        rng.choice(
            ["plain", "counts", "gaps", "far", "sizes", "centred", "standardised", "odd", "float32"]
        )
    )
    if kind == "counts":
        X = rng.poisson(np.exp(0.7 * X - 0.5).clip(0, 50))
    elif kind == "gaps":
        X = np.where(rng.random((n, p)) < rng.choice([0.1, 0.5, 0.95]), X + rng.normal(), 0.0)
    elif kind == "far":
        X = X + 10.0 ** rng.uniform(0, 8, p)
    elif kind == "sizes":
        X = X * 10.0 ** rng.uniform(-6, 6, p)
    elif kind in ("centred", "standardised"):
        X = X - X.mean(axis=0)
        if kind == "standardised":
            X = X / np.maximum(X.std(axis=0), 1e-12)
    elif kind == "odd":
        X[:, rng.integers(p)] = rng.choice([0.0, 3.0])
        X[:, rng.integers(p)] = X[:, 0]
        X[:, rng.integers(p)] = -2 * X[:, 0]
    elif kind == "float32":
        X = X.astype(np.float32)
    return kind, X


def _weights(rng: np.random.Generator, n: int) -> np.ndarray:
    weights = rng.random(n) + 0.01
    kind = rng.integers(3)
    if kind == 1:
        weights = 10.0 ** rng.uniform(-12, 0, n)
    elif kind == 2:
        weights[rng.random(n) < 0.3] = 0.0
        weights[:2] = 1.0
    return weights


def _options(rng: np.random.Generator, size: str, p: int) -> dict[str, Any]:
    large = size.startswith("wide")
    k = int(rng.choice([1, 1, 1, 2, 3])) if p >= 6 else 1
    s = int(rng.integers(1, max(2, min(p // k, 5 if size == "small" else 8) + 1)))
    coefs: Any = s
    supports = str(rng.choice(["disjoint", "disjoint", "free"]))
    if k > 1 and rng.random() < 0.2:
        coefs = [max(1, s - j) for j in range(k)]
    elif k > 1 and supports == "disjoint" and rng.random() < 0.2:
        coefs = {"total": max(k, k * s - 1)}
    certify: Any = rng.choice(["fast", "full", "none"], p=[0.6, 0.25, 0.15])
    if large and certify == "full":
        certify = "fast"
    options: dict[str, Any] = {
        "n_components": k,
        "n_nonzero_coefs": coefs,
        "supports": supports,
        "nonnegative": bool(rng.random() < 0.25),
        "certify": False if certify == "none" else str(certify),
        "center": bool(rng.random() < 0.8),
        "scale": bool(rng.random() < 0.35),
        "tol": float(rng.choice([0.0, 1e-6, 1e-3])),
        "memory_limit": 1 << 30,
        "time_limit": 3.0,
    }
    if certify == "full" or rng.random() < 0.3:
        options["max_nodes"] = int(rng.choice([0, 5, 50]))
    if rng.random() < 0.5:
        options["method"] = str(rng.choice(["spannogram", "bipartite", *METHODS]))
    if options.get("method") in ("spannogram", "bipartite") and rng.random() < 0.6:
        options["rank"] = int(rng.integers(1, 4))
    if rng.random() < 0.35:
        options["memory_limit"] = int(rng.choice([1, 20_000]))
    return options


def contained(X: np.ndarray, container: str, folder: Path) -> Any:
    """The same numbers, held in another way."""
    half = len(X) // 2
    if container == "fortran":
        return np.asfortranarray(X)
    if container in ("csr", "csc", "coo"):
        return sp.coo_array(X).asformat(container)
    if container == "blocks":
        return lambda: iter(np.array_split(X, min(len(X), 3)))
    if container == "sparse blocks":
        return lambda: iter([sp.csr_array(X[:half]), sp.csr_array(X[half:])])
    if container == "mixed blocks":
        return lambda: iter([sp.csr_array(X[:half]), X[half:]])
    if container == "Table":
        return read(X, feature_names=[f"f{j}" for j in range(X.shape[1])])
    if container == "memmap":
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r")
    if container == "dask":
        import dask.array

        return dask.array.from_array(X, chunks=(max(1, half), X.shape[1]))
    if container in ("pandas", "polars", "pyarrow"):
        columns = {f"{'X' * (j == 0)}{j}": X[:, j] for j in range(X.shape[1])}
        if container == "pandas":
            import pandas

            return pandas.DataFrame(columns)
        if container == "polars":
            import polars

            return polars.DataFrame(columns)
        import pyarrow

        return pyarrow.table(columns)
    return X


def answered(case: Honest, folder: Path) -> tuple[Result, dict[str, Any]] | None:
    """The result of a case and the data to verify it with; None if there is no such result."""
    options = dict(case.options)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if case.given:
                A = np.cov(case.X.T.astype(float), bias=True).reshape(case.X.shape[1], -1)
                result = sparse_pca(covariance=A, **options)
            else:
                held = contained(case.X, case.container, folder)
                result = sparse_pca(held, **options)
    except (ValueError, TimeoutError):
        return None  # a question without an answer: constant features, an option of other methods
    if case.saved:
        result.save(folder / "result.json")
        result = Result.load(folder / "result.json")
    if case.given:
        return result, {"covariance": A}
    held = contained(case.X, case.against, folder)
    return result, {"X": held, "sample_weight": options.get("sample_weight")}


def refusal(case: Honest, folder: Path) -> str | None:
    """Why the result of a case is not confirmed, "" if it is; None if there is no such result."""
    found = answered(case, folder)
    if found is None:
        return None
    result, data = found
    verdict = verify(result, **data)
    if not verdict:
        return f"{verdict.verdict}: {verdict.reason}"
    if not small_enough(case):
        return ""
    # rows in memory, whatever held them
    plain = data if case.given else {"X": case.X, "sample_weight": data["sample_weight"]}
    said = check(result.to_json(), **plain)
    return "" if said == "proved" else f"by the second checker: {said}"


def small_enough(case: Honest) -> bool:
    """Whether the second checker, which computes in fractions, is done in a second or so."""
    n, p = case.X.shape
    return p <= 10 and n <= 30


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    limit = float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
    seen: Counter[str] = Counter()
    refused = twice = 0
    with tempfile.TemporaryDirectory() as name:
        for seed in range(first, first + count):
            if time.process_time() > limit:
                break
            case = honest(seed)
            reason = refusal(case, Path(name))
            seen["no result" if reason is None else case.size] += 1
            twice += reason is not None and small_enough(case)
            if reason:
                refused += 1
                print(f"{case}\n    {reason}", flush=True)
    asked = sum(seen.values())
    print(f"{asked - seen['no result']} results of {asked} calls: {refused} refused")
    print(f"asked of both checkers: {twice}")
    print("sizes:", ", ".join(f"{n} {size}" for size, n in seen.most_common()))
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
