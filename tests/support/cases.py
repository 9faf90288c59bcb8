"""Questions: every family with every method in turn, all other options by chance.

Small problems would all be solved by the first proof that comes along, so a case also chooses a
road: limits of the library are lowered so that what is meant for large problems runs on small ones.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

from sparcipal.search.registry import METHODS

from . import families

# Names of limits in the library, and what they are lowered to.
ROADS: dict[str, dict[str, Any]] = {
    "usual": {},
    "no enumeration": {"EXHAUSTIBLE": {"fast": 0, "full": 0}},
    "core": {"EXHAUSTIBLE": {"fast": 0, "full": 0}, "WHOLE": 2, "CORE": 1},
    "low rank": {"EXHAUSTIBLE": {"fast": 0, "full": 0}, "WIDE": -1.0},
    "large": {"EXHAUSTIBLE": {"fast": 0, "full": 0}, "WHOLE": 2, "DENSE_LIMIT": 2},
}
CONTAINERS = ("array", "array", "fortran", "float32", "integers", "csr", "csc")


@dataclass(frozen=True)
class Case:
    """One call; `data` is a table or, if `given`, a covariance, in the container it comes in."""

    seed: int
    family: str
    road: str
    entry: str
    data: Any
    given: bool
    options: dict[str, Any]
    stop_after: int | None
    source: str = "memory"  # or how the rows are read (streams.py)
    kept: tuple[int, ...] = ()  # features at most, features at first, rows of a block

    def __str__(self) -> str:
        said = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        kind = f"{'covariance' if self.given else 'X'} {type(self.data).__name__}"
        stop = "" if self.stop_after is None else f", stopped after {self.stop_after} calls back"
        if self.source != "memory":
            kind += f" as {self.source} {self.kept}"
        return (
            f"seed {self.seed}: {self.family}, {kind} {self.data.shape} of {self.data.dtype}, "
            f"{self.road} road, {self.entry}({said}){stop}"
        )


def case(seed: int) -> Case:
    """The same seed is the same case; consecutive seeds go through all families and methods."""
    names, methods = list(families.FAMILIES), list(METHODS)
    family = names[seed % len(names)]
    method = methods[seed // len(names) % len(methods)]
    rng = np.random.default_rng([seed, 20261116])
    given = rng.random() < 0.4
    dense = families.matrix(family, rng) if given else families.table(family, rng)
    data = _contained(dense, given, rng)
    options = question(data.shape[1], rng) | _budget(rng)
    entry = "sparse_pca" if rng.random() < 0.9 else "sparse_path"
    if entry == "sparse_path":
        options = {key: options[key] for key in options if key not in ("n_components", "supports")}
        options["n_nonzero_coefs"] = sorted({int(rng.integers(1, data.shape[1] + 1)), 1})
    else:
        total = isinstance(options["n_nonzero_coefs"], dict)
        options["method"] = "auto" if total and method != "bipartite" else method
        # what a method cannot do is refused; half of it is not even asked for
        if method == "nspca":
            options["nonnegative"] = True
        if method in ("bipartite", "enumerate"):
            options["supports"] = "disjoint"
        if method in ("spannogram", "bipartite") or rng.random() < 0.1:
            options["rank"] = int(rng.integers(1, 4))
    if not given:
        options |= treatment(data.shape[0], rng)
    if options.get("supports") == "disjoint":
        options = _fitting(options, data.shape[1])
    stop_after = int(rng.integers(1, 12)) if rng.random() < 0.2 else None
    road = list(ROADS)[int(rng.integers(len(ROADS)))]
    return Case(seed, family, road, entry, data, given, options, stop_after)


def _contained(dense: np.ndarray, given: bool, rng: np.random.Generator) -> Any:
    kind = CONTAINERS[int(rng.integers(len(CONTAINERS)))]
    size = np.abs(dense[dense != 0])
    if kind == "float32" and size.size and size.max() < 1e30 and size.min() > 1e-30:
        return dense.astype(np.float32)
    if kind == "integers" and (dense == np.rint(dense)).all() and size.max(initial=0) < 2**31:
        return dense.astype(rng.choice([np.int32, np.int64]))
    if kind in ("csr", "csc") and not given:
        return sp.csr_array(dense) if kind == "csr" else sp.csc_array(dense)
    return np.asfortranarray(dense) if kind == "fortran" else dense


def question(p: int, rng: np.random.Generator) -> dict[str, Any]:
    k = int(rng.integers(1, min(3, p) + 1))
    supports = "free" if rng.random() < 0.3 else "disjoint"
    most = p // k if supports == "disjoint" else p
    sizes: Any = [int(rng.integers(1, most + 1)) for _ in range(k)]
    shape = rng.integers(4)
    if shape == 0 and supports == "disjoint":
        sizes = {"total": int(rng.integers(k, p + 1))}
    elif shape == 1:
        sizes = sizes[0]
    return {
        "n_components": k,
        "n_nonzero_coefs": sizes,
        "supports": supports,
        "nonnegative": bool(rng.random() < 0.4),
        "certify": ("fast", "full", False)[int(rng.integers(3))],
        "tol": float(rng.choice([1e-6, 1e-6, 1e-6, 0.0, 1e-9, 1e-2, 0.3])),
        "n_jobs": (None, 1, 2)[int(rng.integers(3))],
        "random_state": int(rng.integers(100)),
    }


def _budget(rng: np.random.Generator) -> dict[str, Any]:
    """Budgets that stop a run anywhere."""
    found: dict[str, Any] = {}
    if rng.random() < 0.3:
        found["max_nodes"] = int(rng.integers(0, 6))
    if rng.random() < 0.15:
        found["time_limit"] = float(10.0 ** rng.uniform(-9, -1))
    return found


def treatment(n: int, rng: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = {"center": bool(rng.random() < 0.7), "scale": bool(rng.random() < 0.3)}
    if rng.random() < 0.25:
        weights = rng.random(n) * 10.0 ** rng.integers(-3, 4, n)
        weights[rng.random(n) < 0.2] = 0.0
        weights[int(rng.integers(n))] = 1.0
        weights[int(rng.integers(n))] = 1.0
        found["sample_weight"] = weights
    return found


def _fitting(options: dict[str, Any], p: int) -> dict[str, Any]:
    """Disjoint supports need as many features as they name."""
    sizes, k = options["n_nonzero_coefs"], options["n_components"]
    if isinstance(sizes, int):
        return options | {"n_nonzero_coefs": min(sizes, p // k)}
    if isinstance(sizes, list):
        return options | {"n_nonzero_coefs": [min(s, p // k) for s in sizes]}
    return options


@contextlib.contextmanager
def on_road(road: str) -> Iterator[None]:
    """Lower the limits wherever the library holds them."""

    with contextlib.ExitStack() as stack:
        for name, value in ROADS[road].items():
            holders = [
                module
                for key, module in sorted(sys.modules.items())
                if key.startswith("sparcipal.") and hasattr(module, name)
            ]
            assert holders, f"no module has a limit {name}"
            for module in holders:
                stack.enter_context(mock.patch.object(module, name, value))
        yield
