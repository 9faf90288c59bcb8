"""One corpus by every road: is it as quick, as close and as small?

    python -m benchmarks.scale.roads [--roads docword mtx npz blocks dask csr] [--limits 50 default]

150,000 x 50,000, 13.7 million entries, eight components of ten words, default proof, no cache.
Every figure comes from a process of its own; its memory is anonymous, and counted above a process
that has fitted a small corpus by the same road.
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

from benchmarks.scale import corpus
from benchmarks.scale.child import K, S, _status, _watched

SMALL, LARGE = corpus.Size(2_000, 3_000, 60.0), corpus.Size(150_000, 50_000, 109.0)
FOLDER = Path(tempfile.gettempdir()) / "sparcipal-roads"
BLOCKS = 40


def prepare(size: corpus.Size) -> Path:
    """The folder of a corpus in every form."""
    import scipy.io

    from sparcipal import read

    path = corpus.at(FOLDER, size)
    home = path.parent
    if not (home / "done").exists():
        X = sp.csr_array(read(path, cache=False).X)
        sp.save_npz(home / "X.npz", X, compressed=False)
        scipy.io.mmwrite(home / "X.mtx", sp.coo_array(X), field="integer")
        for number, rows in enumerate(np.array_split(np.arange(X.shape[0]), BLOCKS)):
            part = X[rows[0] : rows[-1] + 1]
            sp.save_npz(home / f"part-{number:02d}.npz", part, compressed=False)
        (home / "done").touch()
    return home


def _parts(home: Path) -> list[Path]:
    return sorted(home.glob("part-*.npz"))


def _dask(home: Path) -> Any:
    import dask.array as da
    from dask import delayed

    words = sp.load_npz(_parts(home)[0]).shape[1]
    blocks = [
        da.from_delayed(delayed(sp.load_npz)(path), (np.nan, words), dtype=np.int64)
        for path in _parts(home)
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _read(home: Path, name: str, limited: dict[str, Any]) -> Any:
    from sparcipal import read

    return read(home / name, cache=False, **limited)


ROADS: dict[str, Callable[[Path, dict[str, Any]], Any]] = {
    "docword": lambda home, limited: _read(home, "docword.txt.gz", limited),
    "mtx": lambda home, limited: _read(home, "X.mtx", limited),
    "npz": lambda home, limited: _read(home, "X.npz", limited),
    "blocks": lambda home, limited: lambda: (sp.load_npz(path) for path in _parts(home)),
    "dask": lambda home, limited: _dask(home),
    "csr": lambda home, limited: sp.load_npz(home / "X.npz"),
}


def child(road: str, limit: str) -> None:
    from sparcipal import sparse_pca

    limited = {} if limit == "default" else {"memory_limit": int(float(limit) * 1e6)}

    def fit(size: corpus.Size) -> Any:
        X = ROADS[road](prepare(size), limited)
        return sparse_pca(X, n_components=K, n_nonzero_coefs=S, **limited)

    fit(SMALL)
    base, peaks = _status("RssAnon"), {}
    with _watched(peaks):
        cpu = time.process_time()
        result = fit(LARGE)
        cpu = time.process_time() - cpu
    answer = {
        "cpu": cpu,
        "above": peaks["anonymous"] - base,
        "gap": result.bound / result.value - 1,
        "value": result.value,
        "kept": int(result.certificate.screening.get("kept", LARGE.words)),
    }
    sys.stdout.write(json.dumps(answer) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.roads")
    parser.add_argument("--roads", nargs="*", default=list(ROADS), choices=list(ROADS))
    parser.add_argument("--limits", nargs="*", default=["50", "default"], help="in MB")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.roads[0], asked.limits[0])
        return
    prepare(SMALL)
    prepare(LARGE)
    for road in asked.roads:
        for limit in asked.limits:
            command = [sys.executable, "-m", "benchmarks.scale.roads", "--child"]
            command += ["--roads", road, "--limits", limit]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr)
            cost = json.loads(done.stdout.splitlines()[-1])
            sys.stdout.write(
                f"{road:8s} limit {limit:>7s}: {cost['cpu']:.2f} CPU s, "
                f"gap {100 * cost['gap']:.2f} %, value {cost['value']!r}, {cost['kept']} kept, "
                f"{cost['above'] / 1e6:.0f} MB above the start\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
