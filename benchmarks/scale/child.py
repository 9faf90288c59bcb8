"""One task in a process of its own: what it cost, as a line of JSON.

    python -m benchmarks.scale.child TASK SMALL SOURCE [ARGUMENT ...]

The task runs on SMALL first, so that neither imports nor compilation are measured, then on SOURCE.
CPU time counts all threads; memory is sampled fifty times a second.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

K, S = 8, 10


def gunzip(source: str) -> dict[str, Any]:
    from sparcipal.data.files.bytes import open_bytes

    buffer, total = np.empty(1 << 20, dtype=np.uint8), 0
    with open_bytes(source) as stream:
        while count := stream.readinto(buffer.data):  # type: ignore[attr-defined]
            total += count
    return {"bytes": total}


def parse(source: str) -> dict[str, Any]:
    from sparcipal import read

    return _size(read(source, cache=False))


def _size(table: Any) -> dict[str, Any]:
    X = table.X
    return {
        "documents": X.shape[0],
        "words": X.shape[1],
        "entries": int(X.nnz),
        "csr": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
    }


def pandas(source: str) -> dict[str, Any]:
    import pandas as pd

    frame = pd.read_csv(
        source, sep=" ", header=None, skiprows=3, names=["d", "w", "c"], dtype=np.int32
    )
    return {"entries": len(frame)}


def polars(source: str) -> dict[str, Any]:
    import polars as pl

    frame = pl.read_csv(
        source,
        separator=" ",
        has_header=False,
        skip_rows=3,
        schema={"d": pl.Int32, "w": pl.Int32, "c": pl.Int32},
    )
    return {"entries": len(frame)}


def fit(source: str, kept: str, certify: str) -> dict[str, Any]:
    """The whole way from the file."""
    from sparcipal import read

    return _fit(read(source, cache=False), kept, certify)


def memory(source: str, kept: str, certify: str) -> dict[str, Any]:
    """The same in a process that has done nothing before: what it takes from its start on."""
    # NumPy and numba load these where they are: they come with the tools of the tests, not with us.
    sys.modules.update(dict.fromkeys(("cffi", "charset_normalizer", "coverage", "yaml")))
    from sparcipal import read, sparse_pca  # noqa: F401  both first, as a script has it

    return fit(source, kept, certify)


def whole(source: str, cache: str) -> dict[str, Any]:
    """From the file through the cache, which must be new, to certified topics, by default."""
    from sparcipal import read, sparse_pca

    start = time.process_time()
    table = read(source, cache=cache)
    parsed = time.process_time() - start
    result = sparse_pca(table, n_components=K, n_nonzero_coefs=S)
    return {**_size(table), "parse": parsed, "value": result.value, "bound": result.bound}


def keep(source: str, cache: str) -> dict[str, Any]:
    """Parse into the cache, or find it there."""
    from sparcipal import read

    return _size(read(source, cache=cache))


def mapped(source: str, kept: str, cache: str) -> dict[str, Any]:
    """From the arrays in the cache, mapped into memory; the products are summed anew."""
    from sparcipal import read

    return _fit(replace(read(source, cache=cache), kept=None), kept, "none")


def _fit(table: Any, kept: str, certify: str) -> dict[str, Any]:
    from sparcipal import sparse_pca

    # A limit under which just so many features can be kept.
    limit = 40 * int(kept) ** 2
    result = sparse_pca(
        table,
        n_components=K,
        n_nonzero_coefs=S,
        certify="fast" if certify == "fast" else False,
        memory_limit=limit,
    )
    return {
        **_size(table),
        "value": result.value,
        "bound": result.bound,
        "supports": [s.tolist() for s in result.supports],
        "screening": {k: str(v) for k, v in (result.certificate.screening or {}).items()},
    }


def svd(source: str) -> dict[str, Any]:
    """Truncated SVD on the counts in memory, and the S strongest words of each direction; only the
    SVD is timed."""
    from sklearn.decomposition import TruncatedSVD

    from sparcipal import read

    X = read(source, cache=False).X.astype(np.float64)
    start = time.process_time()
    model = TruncatedSVD(K, random_state=0).fit(X)
    seconds = time.process_time() - start
    used: set[int] = set()
    supports = []
    for row in model.components_:
        order = np.argsort(-np.abs(row))[: K * S]
        best = [int(i) for i in order if int(i) not in used][:S]
        used.update(best)
        supports.append(sorted(best))
    return {"svd": seconds, "supports": supports}


def judge(source: str, *answers: str) -> dict[str, Any]:
    """Variance on given supports, recomputed from the counts: the largest eigenvalue of each."""
    import scipy.sparse as sp

    from sparcipal import read

    X = sp.csc_array(read(source, cache=False).X)
    values = []
    for supports in map(json.loads, answers):
        total = 0.0
        for support in supports:
            rows = X[:, support].toarray().astype(np.float64)
            total += float(np.linalg.eigvalsh(np.cov(rows.T, bias=True))[-1])
        values.append(total)
    return {"values": values}


def dask(source: str, kept: str, cache: str, how: str) -> dict[str, Any]:
    """Both passes and the search on memory-mapped arrays: `alone`, on two `workers`, or with one
    worker `killed` in the middle of the passes. CPU time of the fit, in all processes; what it took
    to start the workers (interpreter, dask, imports, kernels) is apart."""
    from sparcipal import read

    # Nothing an earlier run has left is used: both passes are made.
    table = replace(read(source, cache=cache), moments=None, kept=None)
    if how == "alone":
        mine, wall = time.process_time(), time.monotonic()
        answer = _fit(table, kept, "none")
        cost = {"cpu": time.process_time() - mine, "wall": time.monotonic() - wall}
        return {**answer, **cost}
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(_warm)
        before = {pid: _cpu_of(pid) for pid in client.run(os.getpid).values()}
        dead: dict[int, float] = {}
        if how == "killed":
            threading.Thread(target=_kill, args=(min(before), dead)).start()
        mine, wall = time.process_time(), time.monotonic()
        answer = _fit(table, kept, "none")
        mine, wall = time.process_time() - mine, time.monotonic() - wall
        after = {pid: _cpu_of(pid) for pid in client.run(os.getpid).values()} | dead
        workers = [after[pid] - before.get(pid, 0.0) for pid in after]
        return {
            **answer,
            "cpu": mine + sum(workers),
            "wall": wall,
            "caller": mine,
            "workers": workers,
            "start": sum(before.values()),
            "died": len(dead),
        }


def _warm() -> None:
    """Kernels loaded before the clock starts, as in the other processes."""
    import scipy.sparse as sp

    from sparcipal import Moments

    block = sp.csr_array(np.eye(4, dtype=np.uint8))
    moments = Moments(4).add(block)
    moments.gram(np.arange(4)).add(block)


def _kill(pid: int, dead: dict[int, float]) -> None:
    """End a process after some work, and say what it has cost."""
    start = _cpu_of(pid)
    while _cpu_of(pid) < start + 1.0:
        time.sleep(0.01)
    dead[pid] = _cpu_of(pid)
    os.kill(pid, signal.SIGKILL)


def _cpu_of(pid: int) -> float:
    """CPU seconds of a process on this machine."""
    import psutil

    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def tree(source: str, how: str) -> dict[str, Any]:
    """A long branch and bound, on noise: `alone`, on two `threads`, or on two `workers`."""
    import contextlib
    import hashlib

    from sparcipal.bounds.tree.question import TreeQuestion
    from sparcipal.bounds.tree.search import prove
    from sparcipal.numerics.threads import one_blas_thread

    X = np.random.default_rng(0).standard_normal((1200, 120))
    A = X.T @ X / 1200
    with contextlib.ExitStack() as stack:
        pids: list[int] = []
        if how == "workers":
            import distributed
            import joblib

            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
                )
            )
            client = stack.enter_context(distributed.Client(cluster))
            client.run(_warm_tree)
            pids = list(client.run(os.getpid).values())
            stack.enter_context(joblib.parallel_config("dask"))
        _warm_tree()
        stack.enter_context(one_blas_thread)
        before = sum(map(_cpu_of, pids))
        mine, wall = time.process_time(), time.monotonic()
        proof = prove(A, 10, TreeQuestion(tol=1e-4, n_jobs=1 if how == "alone" else 2))
        cost = {"cpu": time.process_time() - mine, "wall": time.monotonic() - wall}
        cost["cpu"] += sum(map(_cpu_of, pids)) - before
    digest = hashlib.sha256()
    for part in _flat([proof.value, proof.bound, proof.support, proof.log]):
        digest.update(part)
    found = {"nodes": proof.nodes, "status": proof.status, "value": proof.value}
    return {**cost, **found, "proof": digest.hexdigest()}


def _flat(thing: Any) -> Iterator[bytes]:
    """All that is in nested lists, dictionaries and arrays."""
    if isinstance(thing, dict):
        for name, value in thing.items():
            yield name.encode()
            yield from _flat(value)
    elif isinstance(thing, list):
        for value in thing:
            yield from _flat(value)
    else:
        yield thing.tobytes() if isinstance(thing, np.ndarray) else repr(thing).encode()


def _warm_tree() -> None:
    from sparcipal.bounds.tree.search import prove

    prove(np.diag(np.arange(1.0, 9.0)) + 0.5, 3)


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    f.__name__: f
    for f in (
        gunzip,
        parse,
        pandas,
        polars,
        fit,
        memory,
        whole,
        keep,
        mapped,
        svd,
        judge,
        dask,
        tree,
    )
}


def _status(field: str) -> int:
    """Bytes, from /proc; 0 where there is none."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    found = [line.split()[1] for line in text.splitlines() if line.startswith(field + ":")]
    return int(found[0]) * 1024 if found else 0


@contextmanager
def _watched(peaks: dict[str, int]) -> Iterator[None]:
    """The largest memory of the process, all of it and without mapped files, while inside."""
    done = threading.Event()
    fields = {"rss": "VmRSS", "anonymous": "RssAnon"}

    def watch() -> None:
        while not done.is_set():
            for name, field in fields.items():
                peaks[name] = max(peaks.get(name, 0), _status(field))
            done.wait(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def main(name: str, small: str, source: str, *arguments: str) -> None:
    task = TASKS[name]
    if name not in ("judge", "tree", "memory"):
        task(small, *((*arguments[:-1], "alone") if name == "dask" else arguments))
    base = {"rss": _status("VmRSS"), "anonymous": _status("RssAnon")}
    peaks: dict[str, int] = {}
    # The system knows the largest memory of a fresh process; looking all the time would add to it.
    with nullcontext() if name == "memory" else _watched(peaks):
        wall, cpu = time.monotonic(), time.process_time()
        answer = task(source, *arguments)
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    cost = {"cpu": cpu, "wall": wall, "base": base, "peak": peaks}
    whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peaks.setdefault("rss", whole)
    sys.stdout.write(json.dumps({**cost, "maxrss": whole, **answer}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
