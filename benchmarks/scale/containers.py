"""The memory of a fit from every container that is larger than `memory_limit`.

    python -m benchmarks.scale.containers [KIND ...]

A table of floats is written in every form; each is read and fitted in a process of its own, after a
small one of the same form, so that imports and kernels are there. What counts is the largest
anonymous memory above that start: the limit, and what the interpreter needs for its own.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

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

from benchmarks.scale.child import _status, _watched

ROWS, COLUMNS = 200_000, 100
LIMIT = 40_000_000  # bytes; the numbers take four times as much
FOLDER = Path(tempfile.gettempdir()) / "sparcipal-containers"


def table(rows: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, COLUMNS))
    X[:, :10] += rng.standard_normal((rows, 1))
    return X.round(3)


def _frame(X: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.table({f"f{j}": X[:, j] for j in range(COLUMNS)})


def _parquet(path: Path, X: np.ndarray) -> None:
    import pyarrow.parquet as parquet

    parquet.write_table(_frame(X), path, row_group_size=20_000)


def _folder(path: Path, X: np.ndarray) -> None:
    path.mkdir()
    for number, part in enumerate(np.array_split(X, 5)):
        _parquet(path / f"{number}.parquet", part)


def _csv(path: Path, X: np.ndarray) -> None:
    import pyarrow.csv as csv

    csv.write_csv(_frame(X), path)


def _zarr(path: Path, X: np.ndarray) -> None:
    import zarr

    array = zarr.open(str(path), mode="w", shape=X.shape, chunks=(2000, COLUMNS), dtype="f8")
    array[:] = X


def _h5ad(path: Path, X: np.ndarray) -> None:
    import anndata

    anndata.AnnData(X).write_h5ad(path)


WRITERS: dict[str, tuple[str, Callable[[Path, np.ndarray], Any]]] = {
    "npy": ("x.npy", np.save),
    "npz": ("x.npz", lambda path, X: np.savez(path, X=X)),
    "npz, packed": ("packed.npz", lambda path, X: np.savez_compressed(path, X=X)),
    "npz, sparse": ("sparse.npz", lambda path, X: sp.save_npz(path, sp.csr_array(X * (X > 1)))),
    "csv": ("x.csv", _csv),
    "parquet": ("x.parquet", _parquet),
    "folder of parquet": ("parts", _folder),
    "zarr": ("x.zarr", _zarr),
    "h5ad": ("x.h5ad", _h5ad),
    "pyarrow dataset": ("parts", _folder),
    "polars scan": ("parts", _folder),
    "zarr array": ("x.zarr", _zarr),
    "function of blocks": ("x.npy", np.save),
}


def opened(kind: str, path: Path) -> Any:
    """What a user passes to the fit."""
    from sparcipal import read

    if kind == "pyarrow dataset":
        import pyarrow.dataset as dataset

        return dataset.dataset(str(path))
    if kind == "polars scan":
        import polars as pl

        return pl.scan_parquet(str(path / "*.parquet"))
    if kind == "zarr array":
        import zarr

        return zarr.open(str(path), mode="r")
    if kind == "function of blocks":
        X = np.load(path, mmap_mode="r")
        return lambda: (np.array(X[i : i + 5000]) for i in range(0, len(X), 5000))
    return read(path, cache=False, memory_limit=LIMIT)


def child(kind: str) -> None:
    from sparcipal import sparse_pca

    name, _ = WRITERS[kind]

    def fit(rows: int) -> None:
        place = FOLDER / str(rows)
        sparse_pca(
            opened(kind, place / name),
            n_components=3,
            n_nonzero_coefs=10,
            certify=False,
            memory_limit=LIMIT,
        )

    fit(2000)
    base, peaks = _status("RssAnon"), {}
    with _watched(peaks):
        cpu = time.process_time()
        fit(ROWS)
        cpu = time.process_time() - cpu
    sys.stdout.write(json.dumps({"base": base, "peak": peaks["anonymous"], "cpu": cpu}) + "\n")


def main(kinds: list[str]) -> None:
    say = sys.stdout.write
    say(f"{ROWS} x {COLUMNS} floats, {8 * ROWS * COLUMNS / 1e6:.0f} MB, ")
    say(f"memory_limit {LIMIT / 1e6:.0f} MB\n")
    for rows in (2000, ROWS):
        (FOLDER / str(rows)).mkdir(parents=True, exist_ok=True)
        X = None
        for name, write in dict(WRITERS.values()).items():
            if not (FOLDER / str(rows) / name).exists():
                X = table(rows) if X is None else X
                write(FOLDER / str(rows) / name, X)
    for kind in kinds or list(WRITERS):
        command = [sys.executable, "-m", "benchmarks.scale.containers", "--child", kind]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            say(f"{kind:20s} failed: {done.stderr.splitlines()[-1]}\n")
            continue
        cost = json.loads(done.stdout.splitlines()[-1])
        above = cost["peak"] - cost["base"]
        held = "holds" if above <= LIMIT else "DOES NOT HOLD"
        say(f"{kind:20s} {cost['cpu']:6.2f} CPU s, start {cost['base'] / 1e6:4.0f} MB, ")
        say(f"{above / 1e6:4.0f} MB above it: {held}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
    else:
        main(sys.argv[1:])
