"""The cones at work: real data, many rows, and against the enumeration they replace."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, svds
from tests.support.replay import level_of
from tests.support.spannogram import best_direction, spannogram

from benchmarks import data
from sparcipal.bounds.lowrank import cones as lowrank_cones
from sparcipal.bounds.lowrank.sphere import Effort, SphereResult, sphere_search
from sparcipal.problem.problem import Options


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    answer = function()
    return time.process_time() - start, answer


def kos() -> sp.csr_matrix:
    t = np.loadtxt(data.path("docword.kos.txt.gz"), skiprows=3, dtype=np.int64)
    return sp.csr_matrix((t[:, 2].astype(float), (t[:, 0] - 1, t[:, 1] - 1)))


def factor(X: Any, rank: int) -> np.ndarray:
    """V with V V' the best approximation of the centred covariance."""
    n, p = X.shape
    mean = np.asarray(X.mean(axis=0)).ravel()
    centred = LinearOperator(
        (n, p),
        matvec=lambda x: (X @ np.ravel(x) - mean @ np.ravel(x)) / np.sqrt(n),
        rmatvec=lambda y: (X.T @ np.ravel(y) - mean * np.sum(y)) / np.sqrt(n),
        dtype=float,
    )
    _, values, Vt = svds(centred, k=rank, v0=np.ones(min(n, p)))
    order = np.argsort(-values)
    return np.ascontiguousarray(Vt[order].T * values[order])


def judge(V: np.ndarray, s: int, nonnegative: bool, found: SphereResult) -> str:
    """The value from its support, the bound from its cones; nothing is taken on trust."""
    rows = V[found.support]
    c = best_direction(rows) if nonnegative and V.shape[1] < 5 else found.c
    heights = rows @ c
    value = float((np.maximum(heights, 0.0) ** 2).sum() if nonnegative else (heights**2).sum())
    seconds, bound = timed(
        lambda: level_of(V, s, nonnegative, np.zeros(len(V)), found.level, found.tree)
    )
    good = abs(value / found.value - 1) < 1e-9 and value <= bound <= found.bound
    return f"{'confirmed' if good else 'NOT CONFIRMED'} in {seconds:.2f} s"


def cones() -> None:
    say("Exact search on V V', eps = 1e-6")
    say("  set            r   sign         value    calls    cones   CPU s   gap      recheck")
    sphere_search(np.eye(3), 1)  # compiled before the clock starts
    sets = [
        ("KOS 6906 s=15", factor(kos(), 7), 15),
        ("Leukemia 12582 s=50", factor(np.load(data.path("mll.npz"))["X"].astype(float), 7), 50),
    ]
    for name, V, s in sets:
        for nonnegative in (False, True):
            for r in (4, 5, 6, 7):
                part = np.ascontiguousarray(V[:, :r])
                seconds, found = timed(
                    lambda part=part, s=s, sign=nonnegative: sphere_search(
                        part, s, nonnegative=sign
                    )
                )
                say(
                    f"  {name:20s} {r} {'x >= 0' if nonnegative else 'any   '} {found.value:14.8g} "
                    f"{found.oracle_calls:8d} {found.cones:8d} {seconds:7.2f}   {found.gap:.1e}  "
                    f"{judge(part, s, nonnegative, found)}"
                )


def scaling() -> None:
    """Rows beyond those that can matter cost one pass, not a search."""
    say("Row norms decaying as i^-1/2, s = 15, eps = 1e-6")
    rng = np.random.default_rng(0)
    sphere_search(np.eye(3), 1)
    for r in (4, 5, 6):
        V = rng.standard_normal((100_000, r)) * np.arange(1, 100_001)[:, None] ** -0.5
        few, small = timed(lambda V=V: sphere_search(V[:10_000], 15))
        many, large = timed(lambda V=V: sphere_search(V, 15))
        good = many <= 4 * few + 0.2 and small.value <= large.value
        say(
            f"  r={r}: p=10,000 {few:.3f} s ({small.cones} cones), p=100,000 {many:.3f} s "
            f"({large.cones} cones): {'holds' if good else 'DOES NOT HOLD'} (claim: a few times)"
        )


def enumeration() -> None:
    """The papers' algorithm to the letter, and the cones, on the same V."""
    say("Against the enumeration of the papers (claim: 1000 times faster, the same optimum)")
    rng = np.random.default_rng(0)
    sphere_search(np.eye(3), 1)
    for p, r, s in ((40, 3, 5), (1000, 2, 10)):
        V = rng.standard_normal((p, r)) * np.sqrt(np.linspace(1, 0.3, r))
        slow, listed = timed(lambda V=V, s=s: spannogram(V, s))
        runs = [timed(lambda V=V, s=s: sphere_search(V, s)) for _ in range(5)]
        fast, found = min(run[0] for run in runs), runs[0][1]
        same = abs(listed.value / found.value - 1) < 1e-8
        good = same and slow / fast >= 1000
        say(
            f"  p={p} r={r} s={s}: enumeration {slow:.1f} s ({listed.candidates} supports), cones "
            f"{fast * 1e3:.2f} ms, {slow / fast:.0f} times, optimum "
            f"{'the same' if same else 'DIFFERS'}: {'holds' if good else 'DOES NOT HOLD'}"
        )


def threads() -> None:
    """Long searches on one and on two threads: the same bytes, and what of the clock is left.

    The clock says little on a busy machine. The last two columns have the CPU seconds of a run over
    those of its longest thread, if the tasks of each round are dealt to two and four in turn.
    """
    say("| problem | cones | finished | bytes | CPU s | clock: 1 / 2 threads | 2 | 4 |")
    say("| --- | --- | --- | --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(0)
    problems = {
        "KOS, rank 7, s = 15": (factor(kos(), 7), 15, 1e-6),
        "Gaussian, 300 x 6, s = 20": (rng.standard_normal((300, 6)), 20, 1e-4),
        "Gaussian, 400 x 7, s = 30": (rng.standard_normal((400, 7)), 30, 1e-2),
    }
    for name, (V, s, eps) in problems.items():
        runs, effort = [], Effort(eps, max_cones=500_000)
        for jobs in (1, 2):
            start = time.perf_counter()
            found = sphere_search(V, s, effort=effort, options=Options(n_jobs=jobs))
            runs.append((time.perf_counter() - start, found))
        (alone, one), (together, two) = runs
        same = one.tree.tobytes() == two.tree.tobytes() and one.bound == two.bound
        spent, rounds = _tasks(V, s, effort)
        paths = [
            spent - sum(map(sum, rounds)) + sum(_longest(tasks, threads) for tasks in rounds)
            for threads in (2, 4)
        ]
        say(
            f"| {name} | {one.cones:,} | {'yes' if one.finished else 'no'} "
            f"| {'equal' if same and one.value == two.value else 'DIFFERENT'} | {spent:.2f} "
            f"| {alone / together:.2f} | {spent / paths[0]:.2f} | {spent / paths[1]:.2f} |"
        )


def _tasks(V: np.ndarray, s: int, effort: Effort) -> tuple[float, list[list[float]]]:
    """The CPU seconds of a search, and of each task of each of its rounds."""
    rounds: list[list[float]] = []

    @contextlib.contextmanager
    def one_by_one(n_jobs: int) -> Iterator[Callable[..., Iterator[Any]]]:
        def submit(function: Callable[[Any], Any], items: list[Any]) -> Iterator[Any]:
            rounds.append([])
            for item in items:
                spent, out = timed(functools.partial(function, item))
                rounds[-1].append(spent)
                yield out

        yield submit

    usual = lowrank_cones.ordered_map
    lowrank_cones.ordered_map = one_by_one
    try:
        spent, _ = timed(lambda: sphere_search(V, s, effort=effort))
    finally:
        lowrank_cones.ordered_map = usual
    return spent, rounds


def _longest(tasks: list[float], threads: int) -> float:
    """What the busiest thread does, if each task goes to the one that is free first."""
    busy = [0.0] * threads
    for spent in tasks:
        busy[busy.index(min(busy))] += spent
    return max(busy)
