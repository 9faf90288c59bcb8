"""Questions about tables that are read in passes: blocks, memory maps, dask, sums made elsewhere.

Only the features that vary most are kept, so that what is proved of them must be extended to all:
how many are kept is drawn at random, and half of the tables have a strong group of features that
makes the extension by prices worth trying.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

from sparcipal import Gram, Moments, Screened
from sparcipal.data.passes import Stream
from sparcipal.data.sources import as_rows

from . import families
from .cases import ROADS, Case, on_road, question, treatment

SOURCES = ("array", "csr", "blocks", "mixed blocks", "rows", "map", "screened", "plain", "dask")
KINDS = ("uint8", "int8", "int16", "int64", "bool", "float32", "float64", "float64", "float64")
METHODS = ("auto", "auto", "auto", "threshold", "tpower")


def streamed(seed: int) -> Case:
    """The same seed is the same case; consecutive seeds go through all sources."""
    source = SOURCES[seed % len(SOURCES)]
    rng = np.random.default_rng([seed, 4242])
    name, X = _table(rng)
    X = _far(_typed(X, source, rng), source, np.random.default_rng([seed, 17]))
    p = X.shape[1]
    options = question(p, rng) | treatment(X.shape[0], rng)
    if p >= 4 and rng.random() < 0.8:
        # few nonzeros, so that features can be dropped at all, and partners to pay for
        k = int(rng.choice([1, 1, 2]))
        sizes = [int(rng.integers(2, max(3, (p - 1) // k))) for _ in range(k)]
        options |= {"n_components": k, "n_nonzero_coefs": sizes, "supports": "disjoint"}
    options["method"] = METHODS[int(rng.integers(len(METHODS)))]
    if isinstance(options["n_nonzero_coefs"], dict):
        options["method"] = "auto"
    if options["method"] == "auto" and options["n_components"] > 1:
        options["method_options"] = {"effort": 0}  # it is the proof that is on trial
    if not options["certify"] and rng.random() < 0.7:
        options["certify"] = "fast"
    if rng.random() < 0.2:
        options["max_nodes"] = int(rng.integers(0, 6))
    if source in ("screened", "plain"):
        options.pop("sample_weight", None)
    if source == "plain":
        options["scale"] = False
    needed = _needed(options)
    keep = min(int(rng.integers(min(needed, p), max(needed, p - 1) + 1)), p)
    options["memory_limit"] = 1
    stop_after = int(rng.integers(1, 12)) if rng.random() < 0.1 else None
    first = int(rng.integers(1, keep + 1))
    cut = int(rng.integers(1, X.shape[0] + 1))
    road = ("usual", *ROADS, "small core")[seed // len(SOURCES) % (len(ROADS) + 2)]
    return Case(
        seed, name, road, "sparse_pca", X, False, options, stop_after, source, (keep, first, cut)
    )


def _needed(options: dict[str, Any]) -> int:
    sizes, k = options["n_nonzero_coefs"], options["n_components"]
    if isinstance(sizes, dict):
        return int(sizes["total"])
    return sum([sizes] * k if isinstance(sizes, int) else sizes)


def _table(rng: np.random.Generator) -> tuple[str, np.ndarray]:
    if rng.random() < 0.6:
        return "topic", topic(rng, int(rng.integers(6, 25)), int(rng.integers(4, 9)))
    # entries whose squares underflow are refused when they are read in passes
    names = [name for name in families.FAMILIES if name not in ("wild units", "denormals")]
    name = names[int(rng.integers(len(names)))]
    X = families.table(name, rng, least=3)
    return name, X * 10.0 ** rng.integers(-60, 61) if rng.random() < 0.2 else X


def topic(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Words of one topic that go together, and others that vary less and less."""
    group = int(rng.integers(2, max(3, p - 1)))
    spread = np.geomspace(1.0, 10.0 ** rng.uniform(-2, 0), p) * 10.0 ** rng.uniform(-1, 1)
    X = rng.standard_normal((n, p)) * spread
    shared = 10.0 ** rng.uniform(-0.2, 1.0) * spread[0]
    X[:, :group] += shared * rng.standard_normal((n, 1)) * rng.choice([-1.0, 1.0, 1.0], group)
    if rng.random() < 0.3:
        X[:, int(rng.integers(p))] = X[:, int(rng.integers(p))]
    return X[:, rng.permutation(p)]


def _typed(X: np.ndarray, source: str, rng: np.random.Generator) -> np.ndarray:
    """The table in a type that can hold it; small integers where the numbers are to be exact."""
    kind = np.dtype(KINDS[int(rng.integers(len(KINDS)))])
    if source == "plain":
        # eight rows of small integers: every sum and mean of them is a short binary fraction
        X, kind = np.resize(X, (8, X.shape[1])), np.dtype("int16")
    if kind.kind == "f":
        small = kind.itemsize == 8 or 1e-15 < np.abs(X).max() < 1e15
        return X.astype(kind if small else np.float64)
    size = float(np.abs(X).max()) or 1.0
    if kind.name == "int64" and rng.random() < 0.2:  # beyond what words can square
        return np.rint(X / size * 9).astype(kind) + 2 ** int(rng.integers(30, 53)) - 10
    most = {"uint8": 200, "int8": 100, "bool": 1, "int64": 2**31}.get(kind.name, 500)
    whole = np.rint(X / size * rng.choice([3, most]) if most > 3 else X / size * 2)
    return np.clip(whole, 0 if kind.kind in "ub" else -most, most).astype(kind)


def _far(X: np.ndarray, source: str, rng: np.random.Generator) -> np.ndarray:
    """Some columns far from zero, now and then: sums of squares about zero lose their variances."""
    if X.dtype.kind != "f" or source == "plain" or rng.random() < 0.9:
        return X
    size = float(np.abs(X).max())
    far = size * 10.0 ** rng.uniform(2, 10) * rng.choice([0.0, 1.0, -0.3], X.shape[1])
    return np.asarray(X + far).astype(X.dtype)


@contextlib.contextmanager
def small_core() -> Iterator[None]:
    """Joint bounds begin with the fewest features they can, so that others stay outside."""
    from sparcipal.bounds.kyfan import bound as kyfan

    few = {name: replace(effort, core=1, rounds=0) for name, effort in kyfan.EFFORTS.items()}
    with on_road("no enumeration"), mock.patch.object(kyfan, "EFFORTS", few):
        yield


# --- how a table is handed over ---


@contextlib.contextmanager
def handed(case: Case) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """What `sparse_pca` and what `verify` are given."""
    keep, first, cut = case.kept
    options, X = case.options, case.data

    def most(self: Stream, needed: int) -> int:
        return min(max(keep, needed), self._varying(needed))

    def begin(self: Stream, needed: int, rough: bool) -> int:
        return min(self.most(needed), max(first, needed))

    with contextlib.ExitStack() as stack:
        if case.road == "small core":
            stack.enter_context(small_core())
        elif case.road != "usual":
            stack.enter_context(on_road(case.road))
        stack.enter_context(mock.patch.object(Stream, "most", most))
        stack.enter_context(mock.patch.object(Stream, "first", begin))
        if case.source in ("screened", "plain"):
            own = _screened(case, keep, cut)
            again = {"covariance": own} if case.source == "plain" else {"X": X}
            yield {"covariance": own}, again
            return
        if case.source == "dask":
            import dask

            stack.enter_context(dask.config.set(scheduler="threads", num_workers=2))
        if case.source == "map":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            path = Path(folder) / "x.npy"
            np.save(path, X)
            X = np.load(path, mmap_mode="r")
        given = _given(X, case.source, cut)
        weights = {k: options[k] for k in ("sample_weight",) if k in options}
        again = {"X": case.data if case.source == "dask" else given, **weights}
        yield {"X": given, **weights}, again


def _given(X: Any, source: str, cut: int) -> Any:
    parts = [X[i : i + cut] for i in range(0, X.shape[0], cut)]
    if source == "csr":
        return sp.csr_array(X)
    if source == "mixed blocks":
        mixed = [sp.csr_array(part) if i % 2 else part for i, part in enumerate(parts)]
        return lambda: iter(mixed)
    if source == "blocks":
        return lambda: iter(parts)
    if source == "rows":
        return as_rows(lambda: iter(parts))
    if source == "dask":
        import dask.array as da

        return da.from_array(X, chunks=(cut, max(1, X.shape[1] // 2)))
    return X


def _screened(case: Case, keep: int, cut: int) -> Screened:
    """Sums that somebody else has made, in two parts and in the other order."""
    X, center, scale = case.data, case.options["center"], case.options["scale"]
    p = X.shape[1]
    moments = Moments(p).add(X[cut:]).merge(Moments(p).add(X[:cut]))
    kept = moments.screen(keep)
    if case.seed % 2:  # any features may be kept
        kept = np.sort(np.random.default_rng(case.seed).permutation(p)[:keep])
    if case.source == "screened":
        gram: Gram = moments.gram(kept)
        gram.merge(moments.gram(kept).add(X[:cut])).merge(moments.gram(kept).add(X[cut:]))
        return Screened.of(moments, gram, center=center, scale=scale)
    Y = X.astype(np.float64)
    Y = Y - Y.mean(axis=0) * center
    A = Y.T @ Y / Y.shape[0]
    return Screened(A[np.ix_(kept, kept)], kept, np.diagonal(A).copy(), center=center)
