"""One question with less and more memory: is more memory ever slower, or looser?

    python -m benchmarks.scale.limits [TABLE ...] [--limits 2 4 8 16 32 64 128 256 default]

Every figure comes from a process of its own that has fitted a small table of the same kind before.
A row says CPU seconds, the gap and the value. At the end stands what more memory made worse: a
larger gap or a lower value than with less memory, or more time (by a tenth and 0.3 s) for a gap
that is no smaller. A gap of 1.5 %, with which the default is content where features are left out,
counts as small.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.scale import corpus, planted, roads
from sparcipal.bounds.dropped import ROUGH

FOLDER = Path(tempfile.gettempdir()) / "sparcipal-limits"
LIMITS = ["2", "4", "8", "16", "32", "64", "128", "256", "default"]
SLOWER, SECONDS, LOOSER = 1.1, 0.3, 1e-6
QUESTIONS = {
    "8x10": {"n_components": 8, "n_nonzero_coefs": 10},
    "1x10": {"n_components": 1, "n_nonzero_coefs": 10},
    "3x20": {"n_components": 3, "n_nonzero_coefs": 20},
}


def _factors(rows: int, columns: int) -> np.ndarray:
    """Twenty factors with heavy loadings on some features each, and noise of many sizes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns)) * rng.lognormal(0.0, 0.5, columns)
    for _ in range(20):
        some = rng.choice(columns, min(columns // 4, 60), replace=False)
        X[:, some] += rng.standard_normal((rows, 1)) * rng.exponential(1.0, some.size)
    return X


def _genes(rows: int, columns: int) -> np.ndarray:
    return np.log1p(np.exp(_factors(rows, columns)))


def _corpus(size: corpus.Size) -> Any:
    return sp.load_npz(roads.prepare(size) / "X.npz")


TABLES: dict[str, Callable[[bool], Any]] = {
    "corpus": lambda small: _corpus(roads.SMALL if small else roads.LARGE),
    "short corpus": lambda small: _corpus(roads.SMALL if small else SHORT),
    "tall": lambda small: _factors(*((500, 120) if small else (100_000, 300))),
    "wide": lambda small: _genes(*((50, 200) if small else (400, 12_000))),
    "planted": lambda small: planted.table(*((1000, 200) if small else (20_000, 2_000)), 0),
}
SHORT = corpus.Size(10_000, 12_000, 80.0)


def child(name: str, question: str, limit: str, scale: bool) -> None:
    from sparcipal import sparse_pca

    limited = {} if limit == "default" else {"memory_limit": int(float(limit) * 1e6)}

    def fit(small: bool) -> Any:
        X = held[small]
        return sparse_pca(X, **QUESTIONS[question], scale=scale, **limited)

    held = {small: TABLES[name](small) for small in (True, False)}
    fit(True)
    cpu = time.process_time()
    result = fit(False)
    cpu = time.process_time() - cpu
    kept = result.certificate.screening
    answer = {
        "cpu": cpu,
        "gap": result.bound / result.value - 1,
        "value": result.value,
        "kept": int(kept["kept"]) if kept else "all",
    }
    sys.stdout.write(json.dumps(answer) + "\n")


def _asked(name: str, question: str, limit: str, scale: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale.limits", name, "--child"]
    command += ["--questions", question, "--limits", limit, *(["--scale"] if scale else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _worse(less: dict[str, Any], more: dict[str, Any]) -> list[str]:
    """Say what more memory made worse."""
    found = []
    closer = more["gap"] < less["gap"] - LOOSER
    content = max(less["gap"], ROUGH)
    if more["cpu"] > SLOWER * less["cpu"] + SECONDS and not closer:
        found.append(f"{more['cpu'] / less['cpu']:.2f} times the time")
    if more["gap"] > content + LOOSER:
        found.append(f"gap {100 * more['gap']:.3f} for {100 * less['gap']:.3f} %")
    if more["value"] < less["value"] * (1 - LOOSER) and more["gap"] > content:
        found.append(f"value {more['value'] / less['value']:.6f} times")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.limits")
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--questions", nargs="*", default=list(QUESTIONS), choices=list(QUESTIONS))
    parser.add_argument("--limits", nargs="*", default=LIMITS, help="in MB")
    parser.add_argument("--scale", action="store_true", help="standardise")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.tables[0], asked.questions[0], asked.limits[0], asked.scale)
        return
    complaints = []
    for name in asked.tables:
        for question in asked.questions:
            costs = {}
            sys.stdout.write(f"{name}, {question}\n")
            for limit in asked.limits:
                cost = costs[limit] = _asked(name, question, limit, asked.scale)
                sys.stdout.write(
                    f"  limit {limit:>7s}: {cost['cpu']:6.2f} CPU s, gap {100 * cost['gap']:7.3f} %"
                    f", value {cost['value']:.8g}, {cost['kept']} kept\n"
                )
                sys.stdout.flush()
            for a, less in enumerate(asked.limits):
                for more in asked.limits[a + 1 :]:
                    worse = _worse(costs[less], costs[more])
                    if worse:
                        complaints.append(
                            f"{name}, {question}: {more} after {less}: {'; '.join(worse)}"
                        )
    sys.stdout.write("\n".join(complaints or ["more memory was never worse"]) + "\n")


if __name__ == "__main__":
    main()
