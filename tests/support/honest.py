"""Does the checker refuse anything true? Results of all kinds, each verified against its data.

    python -m tests.support.honest [CASES [FIRST_SEED [SECONDS]]]

Tables of 3 to 13,000 features with fewer or more samples, in every container, centred, scaled,
weighted, sparse and read in passes, with missing entries, or a covariance; every method, every kind
of components and every option, anchors and excluded features, paths, alternatives, small budgets;
saved and loaded. Of tables of up to 60 features (12 where a proof looks at all cones or supports)
the second checker (second_checker) is asked as well.
Prints every refusal with its seed, then how many there were: the exit
code is 1 if there is one. It ends after so many SECONDS of processor time, if these are given.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sparcipal import Alternatives, Result, alternatives, read, sparse_path, sparse_pca, verify
from sparcipal.search.registry import METHODS

from .mode_cases import KINDS
from .second_checker import check, check_alternatives

BOTH, SLOW = "asked of both checkers", "the second checker was too slow"
PATIENCE = 20.0  # seconds of processor time that the second checker has for an answer
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
    beside: str = ""  # "path": other cardinalities too; "alternatives": those of the answer

    def __str__(self) -> str:
        shown = {k: v for k, v in self.options.items() if k != "sample_weight"}
        weighted = ", weighted" if "sample_weight" in self.options else ""
        kind = "covariance of" if self.given else self.container
        return (
            f"seed {self.seed}: {self.kind}, {kind} {self.X.shape} {self.X.dtype}{weighted}, "
            f"{shown}, verified with {self.against}{', saved' if self.saved else ''} {self.beside}"
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
    if kind != "float32" and not given and size == "small" and rng.random() < 0.15:
        X = X.astype(float)
        X[rng.random(X.shape) < 0.1] = np.nan
        options["missing"] = str(rng.choice(["rows", "mean", "median", "pairwise"]))
        container = against = "array"
    beside = str(rng.choice(["", "path", "alternatives"], p=[0.8, 0.1, 0.1]))
    if beside == "path":
        options.update(n_components=1, n_nonzero_coefs=_cardinalities(rng, p))
        options.pop("include", None)
    return Honest(seed, size, kind, container, against, X, given, options, saved, beside)


def _cardinalities(rng: np.random.Generator, p: int) -> list[int]:
    most = min(p, 12)
    return sorted({int(s) for s in rng.integers(1, most + 1, 4)})


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
    if rng.random() < 0.25:
        options.update(_kind(rng, options, s, k))
    elif rng.random() < 0.2:
        options.update(_constraints(rng, p, s, k))
    return options


def _kind(rng: np.random.Generator, options: dict[str, Any], s: int, k: int) -> dict[str, Any]:
    """Components that are orthogonal, of one set, uncorrelated, or by adjusted variances."""
    kind = str(rng.choice(list(KINDS)))
    options.pop("method", None), options.pop("rank", None)
    more: dict[str, Any] = dict(KINDS[kind])
    if kind not in ("free", "adjusted"):
        more["nonnegative"] = False
    if kind == "common":
        more["n_nonzero_coefs"] = max(s, k)
    elif isinstance(options["n_nonzero_coefs"], dict):
        more["n_nonzero_coefs"] = s
    return more


def _constraints(rng: np.random.Generator, p: int, s: int, k: int) -> dict[str, Any]:
    order = rng.permutation(p).tolist()
    more: dict[str, Any] = {}
    if rng.random() < 0.6:
        own = [[order.pop() for _ in range(int(rng.integers(0, s + 1)))] for _ in range(k)]
        more.update(supports="disjoint", method="auto", n_nonzero_coefs=s)
        more["include"] = own if k > 1 else own[0]
        if not any(own):
            more.pop("include")
    if len(order) > s * k and rng.random() < 0.7:
        more["exclude"] = [order.pop() for _ in range(int(rng.integers(1, len(order) - s * k + 1)))]
    return more


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


Answer = Result | Alternatives


def answered(case: Honest, folder: Path) -> tuple[list[Answer], dict[str, Any]] | None:
    """What a case gives and the data to verify it with; None if the question has no answer."""
    options = dict(case.options)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if case.given:
                A = np.cov(case.X.T.astype(float), bias=True).reshape(case.X.shape[1], -1)
                held = {"covariance": A}
            else:
                held = {"X": contained(case.X, case.container, folder)}
            if case.beside == "path":
                known = signature(sparse_path).parameters
                asked = {name: value for name, value in options.items() if name in known}
                found: list[Answer] = list(sparse_path(**held, **asked))
            else:
                found = [sparse_pca(**held, **options)]
    except (ValueError, TimeoutError):
        return None  # a question without an answer: constant features, an option of other methods
    if case.beside == "alternatives":
        weights = {k: v for k, v in options.items() if k == "sample_weight"}
        if not case.given:
            held = {"X": contained(case.X, case.against, folder)}
        with suppress(ValueError):  # there are none of some kinds of components
            found.append(alternatives(found[0], **held, **weights, within=0.1, time_limit=3.0))
    if case.saved:
        found = [_again(answer, folder) for answer in found]
    if case.given:
        return found, held
    again = contained(case.X, case.against, folder)
    return found, {"X": again, "sample_weight": options.get("sample_weight")}


def _again(answer: Answer, folder: Path) -> Answer:
    answer.save(folder / "result.json")
    return type(answer).load(folder / "result.json")


def refusal(case: Honest, folder: Path, proofs: Counter[str] | None = None) -> str | None:
    """Why what a case gives is not confirmed, "" if it is; None if there is nothing.

    `proofs` counts the bounds that were rechecked.
    """
    given = answered(case, folder)
    if given is None:
        return None
    found, data = given
    for answer in found:
        if proofs is not None:
            proofs.update(_named(answer))
        verdict = verify(answer, **data)
        if not verdict:
            return f"{type(answer).__name__} {verdict.verdict}: {verdict.reason}"
        if not small_enough(case, answer):
            continue
        # rows in memory, whatever held them
        plain = data if case.given else {"X": case.X, "sample_weight": data["sample_weight"]}
        second = check if isinstance(answer, Result) else check_alternatives
        said = _patiently(partial(second, answer.to_json(), **plain))
        if proofs is not None:
            proofs[SLOW if said is None else BOTH] += 1
        if said not in ("proved", None):
            return f"{type(answer).__name__} by the second checker: {said}"
    return ""


def _patiently(call: Callable[[], str]) -> str | None:
    """What a call returns, or None where it takes longer than PATIENCE: fractions of weights and
    scales grow without end."""

    def enough(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, enough)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        return call()
    except TimeoutError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _named(answer: Answer) -> list[str]:
    """The bounds of a result; alternatives count as one."""
    if isinstance(answer, Alternatives):
        return ["alternatives"]
    screened = bool(answer.certificate.screening)
    return [f"{bound.name}{' screened' * screened}" for bound in answer.certificate.bounds]


def small_enough(case: Honest, answer: Answer) -> bool:
    """Whether the second checker, which computes in fractions, is done in some seconds: cones, all
    supports and lists are many where features are, and so are those of a part."""
    p, many = case.X.shape[1], ("lowrank", "enumeration", "alternatives", "labels")
    names = _named(answer)
    if isinstance(answer, Result):
        names += [name for bound in answer.certificate.bounds for name in _within(bound.data)]
    return p <= 12 or (p <= 60 and not any(name.startswith(many) for name in names))


def _within(data: Any) -> Iterator[str]:
    """The bounds that the proof of another is made of, however deep: parts, a neighbour's."""
    if isinstance(data, dict):
        if isinstance(data.get("name"), str):
            yield data["name"]
        data = list(data.values())
    if isinstance(data, (list, tuple)):
        for entry in data:
            yield from _within(entry)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    limit = float(sys.argv[3]) if len(sys.argv) > 3 else float("inf")
    seen: Counter[str] = Counter()
    proofs: Counter[str] = Counter()
    refused = 0
    with tempfile.TemporaryDirectory() as name:
        for seed in range(first, first + count):
            if time.process_time() > limit:
                break
            case = honest(seed)
            reason = refusal(case, Path(name), proofs)
            seen["no result" if reason is None else case.size] += 1
            if reason:
                refused += 1
                print(f"{case}\n    {reason}", flush=True)
    asked = sum(seen.values())
    print(f"{asked - seen['no result']} results of {asked} calls: {refused} refused")
    for name in (BOTH, SLOW):
        print(f"{name}: {proofs.pop(name, 0)}")
    print("sizes:", ", ".join(f"{n} {size}" for size, n in seen.most_common()))
    print("bounds:", ", ".join(f"{n} {name}" for name, n in proofs.most_common()))
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
