"""Blocks of features that vary less than the noise around them: are they found, and in what memory?

    python -m benchmarks.scale.planted [--limits 40 400 default] [--seed 0]

20,000 x 5,000 floats in a file of NumPy, eight blocks of ten features: the noise has twice their
variance, so that no order by variance finds them. Every figure comes from a process of its own; its
memory is anonymous, and counted above a process that has fitted a small table of the same kind.
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
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.child import _status, _watched

ROWS, COLUMNS = 20_000, 5_000
BLOCKS, FEATURES = 8, 10
FOLDER = Path(tempfile.gettempdir()) / "sparcipal-planted"


def table(rows: int, columns: int, seed: int) -> np.ndarray:
    """Noise of variances two to three, but for blocks of variance one whose features correlate."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) * np.sqrt(rng.uniform(2.0, 3.0, columns))
    for j, block in enumerate(planted(columns, seed)):
        share = 0.75 - 0.05 * j
        common = rng.standard_normal((rows, 1))
        own = rng.standard_normal((rows, FEATURES))
        X[:, block] = np.sqrt(share) * common + np.sqrt(1 - share) * own
    return X


def planted(columns: int, seed: int) -> np.ndarray:
    """The features of the blocks, one row each."""
    chosen = np.random.default_rng(seed + 1).permutation(columns)[: BLOCKS * FEATURES]
    return np.sort(chosen.reshape(BLOCKS, FEATURES), axis=1)


def child(limit: str, scale: bool, seed: int) -> None:
    from sparcipal import sparse_pca

    stages: dict[str, int] = {}

    def fit(rows: int, columns: int, watched: bool = False) -> Any:
        def seen(progress: Any) -> None:
            stages[progress.stage] = max(stages.get(progress.stage, 0), _status("RssAnon"))

        limited = {} if limit == "default" else {"memory_limit": int(float(limit) * 1e6)}
        return sparse_pca(
            np.load(FOLDER / f"{rows}x{columns}-{seed}.npy", mmap_mode="r"),
            n_components=BLOCKS,
            n_nonzero_coefs=FEATURES,
            scale=scale,
            callback=seen if watched else None,
            **limited,
        )

    fit(1000, 200)
    base, peaks = _status("RssAnon"), {}
    with _watched(peaks):
        cpu = time.process_time()
        result = fit(ROWS, COLUMNS, True)
        cpu = time.process_time() - cpu
    found = np.intersect1d(np.concatenate(result.supports), planted(COLUMNS, seed)).size
    answer = {
        "cpu": cpu,
        "above": peaks["anonymous"] - base,
        "found": int(found),
        "value": result.value,
        "gap": result.bound / result.value - 1,
        "kept": COLUMNS - int(result.certificate.screening.get("dropped", 0)),
        "stages": {name: size - base for name, size in stages.items()},
    }
    sys.stdout.write(json.dumps(answer) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.planted")
    parser.add_argument("--limits", nargs="*", default=["40", "400", "default"], help="in MB")
    parser.add_argument("--scales", nargs="*", type=int, default=[1, 0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.limits[0], bool(asked.scales[0]), asked.seed)
        return
    FOLDER.mkdir(exist_ok=True)
    for rows, columns in ((1000, 200), (ROWS, COLUMNS)):
        path = FOLDER / f"{rows}x{columns}-{asked.seed}.npy"
        if not path.exists():
            np.save(path, table(rows, columns, asked.seed))
    for scale in asked.scales:
        for limit in asked.limits:
            command = [sys.executable, "-m", "benchmarks.scale.planted", "--child"]
            command += ["--limits", limit, "--scales", str(scale), "--seed", str(asked.seed)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr)
            cost = json.loads(done.stdout.splitlines()[-1])
            sys.stdout.write(
                f"{'scaled' if scale else 'as it is':9s} limit {limit:>7s}: "
                f"{cost['found']} of {BLOCKS * FEATURES} found, value {cost['value']:.4f}, "
                f"gap {100 * cost['gap']:.2f} %, {cost['kept']} kept, {cost['cpu']:.1f} CPU s, "
                f"{cost['above'] / 1e6:.0f} MB above the start\n"
            )
            by_stage = sorted(cost["stages"].items(), key=lambda item: -item[1])
            told = ", ".join(f"{name} {size / 1e6:.0f}" for name, size in by_stage)
            sys.stdout.write(f"          MB by stage: {told}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
