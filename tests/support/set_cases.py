"""Random logs of common sets, honest and changed, before the checker in both arithmetics, judged by
every set."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from sparcipal.bounds.common.branching import Question, Search
from sparcipal.checker.arithmetic import Arithmetic
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import CheckedCovariance, Precision
from sparcipal.checker.covariance import Question as Asked
from sparcipal.checker.exact import Ball
from sparcipal.checker.exact_covariance import GivenCovariance
from sparcipal.checker.family import Case, redone
from sparcipal.problem.monitor import Monitor

from .mode_cases import random_covariance
from .replay import FLOAT

EXACTLY = 0.3  # share of the replays that are made in exact arithmetic, too


def given(A: np.ndarray, ar: Arithmetic) -> CheckedCovariance:
    """A matrix as the checker's covariance, without errors."""
    p = len(A)
    if ar.exact:
        return GivenCovariance(ar.array(A), 1.0, 0.0, np.zeros(p))
    return CheckedCovariance(A, None, np.zeros(p, dtype=bool), Precision(1.0, 0.0, np.zeros(p)))


def best_of_sets(A: np.ndarray, k: int, s: int) -> float:
    """The most that a set is worth; eigenvalues below zero count nothing."""
    sets = np.array(list(combinations(range(len(A)), min(s, len(A)))))
    values = np.linalg.eigvalsh(A[sets[:, :, None], sets[:, None, :]])[:, -k:]
    return float(np.maximum(values, 0.0).sum(axis=1).max())


def random_log(seed: int) -> tuple[np.ndarray, int, int, dict[str, Any]]:
    """A covariance of about unit size, k, s, and the proof of a search of any length on any
    core."""
    rng = np.random.default_rng([seed, 31])
    p = int(rng.integers(3, 11))
    A = random_covariance(rng, p)
    A = A / max(float(np.diagonal(A).max()), 1e-300)
    s = int(rng.integers(1, p))
    k = int(rng.integers(1, min(s, 4) + 1))
    core = np.arange(p)
    if rng.random() < 0.5:
        core = np.sort(rng.choice(p, int(rng.integers(max(s, 2), p + 1)), replace=False))
    pads = np.zeros(s * (core.size < p))
    others = np.sort(np.delete(np.diagonal(A), core))[::-1][:s]
    pads[: others.size] = others + 1e-12
    first = np.sort(rng.choice(core.size, s, replace=False))
    block = A[np.ix_(core[first], core[first])]
    question = Question(
        a=A[np.ix_(core, core)],
        k=k,
        s=s,
        pads=pads,
        best=first,
        value=max(float(np.linalg.eigvalsh(block)[-k:].sum()), 1e-12),
        tol=float(rng.choice([1e-6, 1e-3, 0.1])),
        work=float(rng.choice([0.0, 1e7, 1e9])),
        max_nodes=None,
        monitor=Monitor(),
        leaf=int(rng.choice([1, 5, 300])),
    )
    log = Search(question).run().log
    return A, k, s, {"log": log} if core.size == p else {"core": core, "log": log}


def accepted(data: dict[str, Any], A: np.ndarray, k: int, s: int, ar: Arithmetic) -> float | None:
    """What the checker says that the data prove; None if they prove nothing."""
    asked = Asked((s,) * k, False, k == 1, 0.0, shared="common")
    try:
        with ar.running():
            case = Case(given(A, ar), asked, ar, Budget())
            return float(ar.upper(redone("common", data, case)))
    except Refused:
        return None


def changed(rng: np.random.Generator, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same with one step left out or altered."""
    log, steps = data["log"], len(data["log"])
    for _ in range(4):
        i = int(rng.integers(1, steps))
        step, other = log[i], dict(log[i])
        if step["step"] == "split":
            other["L"] = step["L"] * np.float32(rng.choice([0.0, 0.5, -1.0, 0.999, 1.5]))
        elif step["passes"] and rng.random() < 0.5:
            fixed = dict(step["passes"][0])
            fixed["out"], fixed["in"] = fixed["in"], fixed["out"]
            other["passes"] = [fixed, *step["passes"][1:]]
        else:
            other["end"] = rng.choice(["closed", "leaf", "empty", "branch"])
        yield {**data, "log": [*log[:i], other, *log[i + 1 :]]}
        if steps > 2:
            yield {**data, "log": [*log[:i], *log[i + 1 :]]}


def one_set_case(seed: int) -> list[str]:
    """What is wrong: an honest log that is refused, or an accepted one below the best set."""
    A, k, s, data = random_log(seed)
    rng = np.random.default_rng([seed, 32])
    best, wrong = best_of_sets(A, k, s), []
    arithmetics = [FLOAT, Ball()] if rng.random() < EXACTLY else [FLOAT]
    for ar in arithmetics:
        proved = accepted(data, A, k, s, ar)
        if proved is None:
            wrong.append(f"an honest log is refused (exact: {ar.exact})")
        elif proved < best * (1 - 1e-12):
            wrong.append(f"a bound {proved} below {best}")
        problem = {**data["log"][0], "bound": best * (1 - float(rng.choice([1e-9, 1e-3, 0.5])))}
        lower = {**data, "log": [problem, *data["log"][1:]]}
        for forged in (lower, *changed(rng, lower)):
            if best > 1e-9 and accepted(forged, A, k, s, ar) is not None:
                wrong.append(f"a level below the best set is accepted (exact: {ar.exact})")
    return wrong
