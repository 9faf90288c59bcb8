"""What many small chunks of a dask array cost: 1,000 against 40, and what they leave behind.

    python -m benchmarks.scale.chunks [--chunks 40 1000] [--certify none fast] [--rows 100000]

100,000 x 300 floats that the workers draw themselves, eight components of ten features, two workers
of one thread. CPU seconds are those of the client and of both workers; the first fit, of a small
table, is not counted. The answer must be the same up to rounding, and no key may stay behind.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import time
from typing import Any

import numpy as np

from benchmarks.scale.child import K, S, _cpu_of

COLUMNS, PIECE = 300, 100  # a table of the same numbers, however it is cut
MEMORY = 50_000_000


def _drawn(rows: np.ndarray) -> np.ndarray:
    """Some rows of the table, drawn in pieces with a seed each."""
    loadings = (
        np.random.default_rng(0).standard_normal((20, COLUMNS)) * np.geomspace(1, 0.2, 20)[:, None]
    )
    parts = []
    for piece in range(rows[0] // PIECE, rows[-1] // PIECE + 1):
        rng = np.random.default_rng(piece + 1)
        parts.append(rng.standard_normal((PIECE, 20)) @ loadings)
        parts[-1] += rng.standard_normal((PIECE, COLUMNS))
    return np.concatenate(parts)


def table(rows: int, chunks: int) -> Any:
    import dask.array as da

    numbers = da.arange(rows, chunks=rows // chunks)
    return numbers.map_blocks(
        _drawn, dtype=float, new_axis=1, chunks=(numbers.chunks[0], (COLUMNS,))
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.chunks")
    parser.add_argument("--chunks", nargs="*", type=int, default=[40, 1000])
    parser.add_argument("--certify", nargs="*", default=["none", "fast"], choices=["none", "fast"])
    parser.add_argument("--rows", type=int, default=100_000)
    asked = parser.parse_args()

    import distributed

    from sparcipal import sparse_pca

    def fit(rows: int, chunks: int, certify: str) -> Any:
        return sparse_pca(
            table(rows, chunks),
            n_components=K,
            n_nonzero_coefs=S,
            certify="fast" if certify == "fast" else False,
            memory_limit=MEMORY,
        )

    workers = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
    )
    with workers as cluster, distributed.Client(cluster) as client:
        pids = [os.getpid(), *client.run(os.getpid).values()]
        fit(40_000, 20, "none")
        for certify in asked.certify:
            first = None
            for chunks in asked.chunks:
                start, wall = sum(map(_cpu_of, pids)), time.monotonic()
                result = fit(asked.rows, chunks, certify)
                cpu, wall = sum(map(_cpu_of, pids)) - start, time.monotonic() - wall
                left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
                first = (cpu, result.value) if first is None else first
                sys.stdout.write(
                    f"certify {certify:4s} {chunks:5d} chunks: {cpu:6.1f} CPU s, "
                    f"{cpu / first[0]:.2f} times the first, {wall:5.1f} s, value off by "
                    f"{abs(result.value / first[1] - 1):.1e}, {left} keys left\n"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main()
