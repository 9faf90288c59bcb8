"""Saves results of one version, and compares them to the last bit with those of another.

    python -m benchmarks.identical save FOLDER       with the version before a change
    python -m benchmarks.identical compare FOLDER    with the version after it

Results are compared as documents: every number of the answer, the certificate and its proofs.
What a proof's fields are called does not count, what they hold does.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sparcipal import SparsePCA, read, sparse_path, sparse_pca
from sparcipal.demo import docstring_table

from . import data
from .exact.sets import correlation, table


def questions() -> Iterator[tuple[str, Callable[[], Any]]]:
    """A name and the call that answers it."""
    communities = correlation("communities")
    for k, s, more in (
        (1, 20, {}),
        (3, 5, {}),
        (3, 5, {"certify": "full"}),
        (3, {"total": 15}, {}),
        (2, (5, 8), {"nonnegative": True}),
        (2, 5, {"supports": "free"}),
        (1, 10, {"certify": False}),
        (1, 8, {"tol": 0.0, "max_nodes": 20}),
    ):
        name = f"communities {k} {s} {more}"
        yield name, _asked(communities, k, s, more)
    for method in (
        "bipartite", "threshold", "tpower", "em", "gpower", "greedy", "nspca", "spca", "dspca",
        "spannogram",
    ):  # fmt: skip
        more = {"method": method, "nonnegative": method == "nspca"}
        yield f"communities {method}", _asked(communities, 2, 5, more)
    kos, counts = (
        data.path("docword.kos.txt.gz"),
        read(data.path("docword.kos.txt.gz"), cache=False),
    )
    yield "kos 1 15", _asked({"X": counts}, 1, 15, {})
    yield "kos 1 15 not centred", _asked({"X": counts}, 1, 15, {"center": False})
    yield "kos 8 15", _asked({"X": counts}, 8, 15, {"center": False})
    yield "kos scaled", _asked({"X": counts}, 1, 5, {"scale": True})
    yield "kos spannogram", _asked({"X": counts}, 1, 10, {"method": "spannogram", "rank": 3})
    yield "kos bipartite", _asked({"X": counts}, 3, 10, {"method": "bipartite", "center": False})
    yield "kos dspca", _asked({"X": counts}, 2, 5, {"method": "dspca"})
    small = {"memory_limit": 3_000_000}
    yield "kos screened", _asked({"X": counts}, 2, 5, small)
    yield "kos screened free", _asked({"X": counts}, 2, 5, {**small, "supports": "free"})
    yield "kos file", lambda: sparse_pca(read(kos), n_components=2, n_nonzero_coefs=5)
    leukemia = table("leukemia")
    yield "leukemia 1 40", _asked(leukemia, 1, 40, {})
    yield "leukemia 1 60", _asked(leukemia, 1, 60, {})
    yield "leukemia 5 40", _asked(leukemia, 5, 40, {})
    yield "leukemia nonnegative", _asked(leukemia, 1, 20, {"nonnegative": True})
    X = np.random.default_rng(0).standard_normal((300, 400)) @ np.diag(np.linspace(1, 3, 400))
    yield "blocks", _asked({"X": _Blocks(X)}, 2, 4, {"memory_limit": 400_000})
    yield "estimator", lambda: SparsePCA(3, 4, scale=True).fit(X[:, :40]).result_
    yield "weights", _asked({"X": X[:, :60], "sample_weight": np.arange(300.0)}, 2, 4, {})
    yield "path", lambda: sparse_path(n_nonzero_coefs=range(1, 13), **communities)
    yield "demo", _demo


class _Blocks:
    """A function of blocks of rows."""

    def __init__(self, X: np.ndarray) -> None:
        self._X = X

    def __call__(self) -> Iterator[np.ndarray]:
        yield from np.array_split(self._X, 7)


def _asked(given: dict[str, Any], k: int, s: Any, more: dict[str, Any]) -> Callable[[], Any]:
    return lambda: sparse_pca(**given, n_components=k, n_nonzero_coefs=s, **more)


def _demo() -> Any:
    return (
        SparsePCA(n_components=8, n_nonzero_coefs=10, center=False).fit(docstring_table()).result_
    )


def leaves(document: Any) -> Iterator[str]:
    """Every number, text and array of a document; what they are called does not count."""
    if isinstance(document, dict) and not {"dtype", "shape"} <= set(document):
        for value in document.values():
            yield from leaves(value)
    elif isinstance(document, list):
        for value in document:
            yield from leaves(value)
    else:
        yield json.dumps(document, sort_keys=True)


def parts(document: dict[str, Any]) -> dict[str, Counter[str]]:
    """What the document says, by its first key; those of the certificate stand beside them."""
    flat = {**document, **document.get("certificate", {})}
    flat.pop("certificate", None)
    return {key: Counter(leaves(value)) for key, value in flat.items()}


def main() -> int:
    command, folder = sys.argv[1], Path(sys.argv[2])
    wanted = sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    different = 0
    for name, answer in questions():
        if wanted and not any(name.startswith(word) for word in wanted):
            continue
        made = answer()
        results = list(made.results) if hasattr(made, "results") else [made]
        text = json.dumps([json.loads(result.to_json()) for result in results])
        file = folder / f"{name.replace(' ', '_').replace('/', '_')}.json"
        if command == "save":
            file.write_text(text, encoding="utf-8")
            print(name, flush=True)
            continue
        before = json.loads(file.read_text(encoding="utf-8"))
        after = json.loads(text)
        wrong = [] if len(before) == len(after) else ["number of results"]
        for old, new in zip(before, after):
            old, new = parts(old), parts(new)
            wrong += [
                f"{key}: {list(old.get(key, Counter()) - new.get(key, Counter()))[:3]} -> "
                f"{list(new.get(key, Counter()) - old.get(key, Counter()))[:3]}"[:400]
                for key in sorted({*old, *new})
                if old.get(key) != new.get(key)
            ]
        different += bool(wrong)
        print(f"{name}: {wrong or 'same'}", flush=True)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
