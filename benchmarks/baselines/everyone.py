"""Every method on every data set: is `auto` ever beaten?

The judge checks the rules of each answer and recomputes its value from the data. A method gets
SPARCIPAL_CAP CPU seconds per problem (default: 120; `auto` is not stopped); one that needs more is
reported as stopped, without a value.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import data
from benchmarks.baselines.sets import SETS
from sparcipal import Result, sparse_pca

CAP = float(os.environ.get("SPARCIPAL_CAP", "120"))
Asked = tuple[str, dict[str, Any]]
SIGNED: tuple[Asked, ...] = (
    ("auto", {}),
    ("threshold", {}),
    ("tpower", {}),
    ("tpower", {"restarts": 20}),
    ("em", {}),
    ("em", {"thresholding": "soft"}),
    ("gpower", {}),
    ("gpower", {"norm": "l0"}),
    ("greedy", {"test": False}),
    ("spca", {}),
    ("dspca", {}),
    ("spannogram", {}),
    ("bipartite", {"max_samples": 1000}),
)
NONNEGATIVE: tuple[Asked, ...] = (
    ("auto", {}),
    ("threshold", {}),
    ("tpower", {"restarts": 20}),
    ("em", {}),
    ("gpower", {}),
    ("greedy", {"test": False}),
    ("spca", {}),
    ("dspca", {}),
    ("nspca", {}),
    ("spannogram", {}),
    ("bipartite", {"max_samples": 1000}),
)


@dataclass(frozen=True)
class Question:
    """A data set or a correlation matrix, and what is asked about it."""

    name: str
    k: int
    s: int
    nonnegative: bool = False

    @property
    def label(self) -> str:
        sign = " (x >= 0)" if self.nonnegative else ""
        return f"{self.name} {self.k} x {self.s}{sign}"

    def load(self) -> tuple[Any, bool, bool]:
        """The matrix, whether it is a covariance, and whether data are centred."""
        if self.name in SETS:
            return SETS[self.name].load(), False, SETS[self.name].center
        if self.name == "Pitprops":
            return np.loadtxt(data.path("pitprops.csv"), delimiter=",", ndmin=2), True, False
        return np.load(data.path("benchmark_correlations.npz"))[self.name], True, False


# Components x nonzeros: the questions of the papers, then smaller ones.
QUESTIONS = [
    Question("BoW:KOS", 8, 15),
    Question("BoW:NIPS", 8, 10),
    Question("Leukemia", 5, 40),
    Question("Arcene Train", 5, 40),
    Question("Isolet-5", 5, 40),
    Question("Mfeat Pix", 5, 40),
    Question("CBCL Face Train", 5, 40),
    Question("LRS", 3, 10),
    Question("Colon", 3, 20),
    Question("PBMC 3k", 5, 10),
    Question("20 newsgroups", 5, 10),
    Question("Pitprops", 3, 4),
    Question("wine", 3, 4),
    Question("miniboone", 3, 10),
    Question("communities", 3, 10),
    Question("arrhythmia", 3, 10),
    Question("CBCL Face Train", 3, 40, nonnegative=True),
    Question("LRS", 3, 10, nonnegative=True),
    Question("BoW:KOS", 1, 15),
    Question("Leukemia", 1, 50),
    Question("Colon", 1, 20),
    Question("Isolet-5", 1, 40),
    Question("arrhythmia", 1, 20),
    Question("Leukemia", 1, 50, nonnegative=True),
]


class Stopped(Exception):
    """The CPU time of a method is used up."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """CPU time of this process, so that a busy machine changes nothing."""

    def stop(*_: Any) -> None:
        raise Stopped

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def judged(question: Question, matrix: Any, given: bool, center: bool, found: Result) -> float:
    """The variance of the components, from the matrix itself; nan if they break a rule."""
    total = 0.0
    for support, weights in zip(found.supports, found.weights):
        if support.size > question.s or abs(np.linalg.norm(weights) - 1) > 1e-9:
            return math.nan
        if question.nonnegative and weights.min() < 0:
            return math.nan
        if given:
            total += float(weights @ matrix[np.ix_(support, support)] @ weights)
            continue
        part = matrix[:, support]
        part = part.toarray() if sp.issparse(part) else np.asarray(part, dtype=float)
        scores = (part - part.mean(axis=0) if center else part) @ weights
        total += float(scores @ scores) / len(scores)
    used = np.concatenate(found.supports)
    legal = len(found.supports) == question.k and np.unique(used).size == used.size
    return total if legal and abs(total / found.value - 1) < 1e-8 else math.nan


def everyone() -> Iterator[str]:
    """One table per problem, best method first; SPARCIPAL_SETS selects by how names begin."""
    chosen = os.environ.get("SPARCIPAL_SETS", "").split(",")
    asked = [q for q in QUESTIONS if any(q.label.startswith(name) for name in chosen)]
    beaten = stopped = 0
    for question in asked:
        rows = answers(question)
        values = [value for _, value, _, _ in rows if not math.isnan(value)]
        lost = not rows[0][1] >= max(values) * (1 - 1e-9)
        beaten += lost
        stopped += sum(note == "stopped" for *_, note in rows)
        verdict = "auto is BEATEN" if lost else "auto is best"
        yield f"\n{question.label}: {verdict}\n"
        yield "| method | value (recomputed) | of the best | CPU s | note |"
        yield "| --- | --- | --- | --- | --- |"
        for label, value, seconds, note in sorted(rows, key=lambda row: -np.nan_to_num(row[1])):
            if math.isnan(value):
                yield f"| {label} | - | - | {seconds:.2f} | {note or 'BREAKS A RULE'} |"
            else:
                share = 100 * value / max(values)
                yield f"| {label} | {value:.8g} | {share:.3f} % | {seconds:.2f} | {note} |"
    yield f"\nauto was beaten on {beaten} of {len(asked)} problems; {stopped} runs were stopped"


def answers(question: Question) -> list[tuple[str, float, float, str]]:
    """(label, judged value, CPU seconds, note) of every method, auto first."""
    matrix, given, center = question.load()
    ask: dict[str, Any] = {"covariance": matrix} if given else {"X": matrix, "center": center}
    ask.update(n_components=question.k, n_nonzero_coefs=question.s)
    rows = []
    for method, own in NONNEGATIVE if question.nonnegative else SIGNED:
        options = ", ".join(f"{key}={value}" for key, value in own.items() if value is not False)
        label = f"{method} ({options})" if options else method
        start = time.process_time()
        try:
            with at_most(1e6 if method == "auto" else CAP):
                found = sparse_pca(
                    method=method,
                    method_options=own,
                    nonnegative=question.nonnegative,
                    certify=False,
                    **ask,
                )
            value, note = judged(question, matrix, given, center, found), found.note[:90]
        except Stopped:
            value, note = math.nan, "stopped"
        except ValueError as refusal:
            value, note = math.nan, f"refused: {refusal}"[:90]
        rows.append((label, value, time.process_time() - start, note.replace("|", "/")))
        sys.stderr.write(f"{question.label}: {label} {value:.8g} {rows[-1][2]:.1f} s\n")
    return rows
