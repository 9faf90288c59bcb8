"""Touch certificates and ellipsoids, honest and changed, before the checker in both arithmetics.

Whatever it accepts must hold for the covariance of the rows in fractions. The solver's own bounds
are held to the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sparcipal.bounds.ellipsoid import covering, ellipsoid_bound
from sparcipal.bounds.touch import Strata
from sparcipal.checker.arithmetic import Arithmetic
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.checker.family import Case, redone
from sparcipal.checker.gate import Record
from sparcipal.checker.records import NoTwins, Touch
from sparcipal.checker.records import Problem as Asked
from sparcipal.checker.touch import check_touch
from sparcipal.problem.components import refit
from sparcipal.problem.covariance import Covariance, covariance_of_data
from sparcipal.problem.problem import Component, Options, Problem

from .oracle import Matrix, exact_covariance, proves_below
from .replay import FLOAT
from .touch_cases import FACTORS, leaving, random_split

TOUCHES = 3  # levels and changes that are tried for one core
EXACTLY = 0.3  # share of the replays that are made in exact arithmetic, too


@dataclass(frozen=True)
class Rows:
    """A small table, its covariance to the solver and in fractions."""

    X: np.ndarray
    center: bool
    cov: Covariance
    exact: Matrix  # in the units of the solver

    @staticmethod
    def random(rng: np.random.Generator, most: int, *, few: bool) -> Rows:
        """Copies, multiples, constants, small variances, any scale; `few`: fewer rows than columns.

        Some columns vary so little that their variances alone clear them.
        """
        while True:
            p = int(rng.integers(2, most + 1))
            n = int(rng.integers(1, max(p, 2))) if few else int(rng.integers(2, 10))
            X = rng.standard_normal((n, p)) * rng.choice([1e-3, 0.05, 1.0, 3.0], p)
            if rng.random() < 0.5:
                X[:, rng.integers(p, size=3)] = X[:, [rng.integers(p)]]
            if rng.random() < 0.3:
                X[:, rng.integers(p)] = X[:, rng.integers(p)] * rng.choice([-1.0, 0.5, -2.0, 1 / 3])
            if rng.random() < 0.3:
                X += rng.standard_normal((n, 1)) * rng.choice([-1.0, 0.0, 1.0], p)
            X[:, rng.random(p) < 0.1] = 0.0
            X *= 2.0 ** rng.integers(-30, 31)
            center = bool(rng.random() < 0.5)
            cov = covariance_of_data(X, center=center)[0]
            if cov.diagonal.any():
                break
        unit = Fraction(cov.unit)
        whole = exact_covariance(X, center=center, scale=False, weights=None)
        return Rows(X, center, cov, [[entry / unit for entry in row] for row in whole])

    def cases(self, question: Question, rng: np.random.Generator) -> Iterator[Case]:
        """The checker's covariance in floating point, and now and then in exact arithmetic."""
        unit = self.cov.unit
        yield Case(
            checked_covariance_of_data(self.X, self.center, False, None, unit)[0],
            question, FLOAT, Budget(),
        )  # fmt: skip
        if rng.random() < EXACTLY:
            from sparcipal.checker.exact import Ball  # here: it needs python-flint
            from sparcipal.checker.exact_covariance import DataCovariance

            ball = Ball()
            with ball.running():
                yield Case(
                    DataCovariance(self.X, self.center, False, None, unit),
                    question, ball, Budget(),
                )  # fmt: skip

    def above(self, values: dict[tuple[int, ...], float], level: Any) -> list[str]:
        """The supports that explain more than the level, in fractions."""
        top = Fraction(float(level))
        return [
            f"{members} explains more than {float(level)!r}"
            for members, value in values.items()
            if value > float(level) * (1 - 1e-6) and not proves_below(self.exact, members, top)
        ]


def accepted(record: dict[str, Any], s: int, nonnegative: bool, case: Case) -> float | None:
    """What a touch certificate is worth to the checker; None where it is refused."""
    asked = Asked(s=s, nonnegative=nonnegative, bound=record["bound"], unit=1.0, twins=NoTwins())
    try:
        touch = Record(Touch).read(record, "touch", {"p": case.cov.p, "n": len(record["core"])})
        check_touch(touch, asked, case)
        return _upper(case.ar.number(touch.bound) + case.cov.rounding(s), case.ar)
    except Refused:
        return None


def _upper(x: Any, ar: Arithmetic) -> float:
    return float(np.nextafter(float(ar.upper(x)), np.inf))


def changed(rng: np.random.Generator, record: dict[str, Any], true: float) -> dict[str, Any]:
    """A touch certificate that claims more than it may, in one of several ways."""
    out, kind = dict(record), int(rng.integers(6))
    groups = [{**g, "pads": [dict(pad) for pad in g["pads"]]} for g in record["groups"]]
    if kind == 0:
        out["bound"] = true * (1 - float(10.0 ** -rng.integers(1, 13)))
    elif kind == 1:
        out["near"] = record["near"][:0]
    elif kind == 2 and len(record["near"]):
        out["near"] = np.delete(record["near"], rng.integers(len(record["near"])))
    elif kind == 3 and groups:
        pad = groups[rng.integers(len(groups))]["pads"][0]
        pad["scale"] *= 1 + float(10.0 ** -rng.integers(0, 13))
    elif kind == 4 and len(groups) > 1:
        groups[-2]["last"] = groups[-1]["last"]
        groups = groups[:-1]
    elif kind == 5 and groups:
        pad = groups[0]["pads"][0]
        pad["shape"] = (pad["shape"] * rng.uniform(0.5, 2.0, len(pad["shape"]))).astype(np.float32)
    return {**out, "groups": groups}


def one_touch_replay(seed: int) -> list[str]:
    """What is wrong with what the checker says of touch certificates of a random core."""
    rng = np.random.default_rng([seed, 1])
    rows = Rows.random(rng, 7, few=False)
    p, nonnegative = rows.cov.n_features, bool(rng.random() < 0.4)
    s = int(rng.integers(1, p + 1))
    core = np.sort(rng.choice(p, size=int(rng.integers(1, p)), replace=False))
    A = rows.cov.dense()
    A = (A + A.T) / 2
    strata = Strata(rows.cov, s, nonnegative, core, random_split(rng, A[np.ix_(core, core)]))
    values = leaving(A, s, set(core.tolist()), set(), nonnegative)
    true, wrong = max(values.values(), default=0.0), []
    question = Question((s,), nonnegative, True, 0.0)
    for factor in rng.permutation(FACTORS)[:TOUCHES].tolist():
        found = strata.attempt(factor * max(true, 1e-9), float(rng.choice([0.0, np.inf]))).touch
        if found is None:
            continue
        record = {**found.record(), "bound": found.level}
        if rng.random() < 0.6:
            record = changed(rng, record, true)
        for case in rows.cases(question, rng):
            level = accepted(record, s, nonnegative, case)
            wrong += [] if level is None else rows.above(values, level)
    return wrong


def random_cover(rng: np.random.Generator, F: np.ndarray) -> dict[str, Any]:
    """Any ellipsoid with any directions, made to cover all features, or changed after that."""
    n, size = len(F), float(np.square(F).sum(axis=0).max())
    G = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-3, 0, n)
    T = size * float(10.0 ** rng.uniform(-3, 1)) * (G @ G.T + 1e-6 * np.eye(n))
    record = covering(F, T, rng.standard_normal(F.shape) * rng.choice([0.0, 1.0])).record()
    kind = int(rng.integers(4))
    if kind == 0:
        record["T"] = record["T"] * float(rng.choice([0.5, 0.99, 1 - 1e-9]))
    elif kind == 1:
        record["W"] = (record["W"] * np.float32(rng.choice([0.0, 0.5, 0.999]))).astype(np.float32)
    elif kind == 2 and len(record["features"]):
        kept = np.delete(np.arange(len(record["features"])), rng.integers(len(record["features"])))
        record["features"], record["W"] = record["features"][kept], record["W"][kept]
    return record


def one_ellipsoid_case(seed: int) -> list[str]:
    """What is wrong with ellipsoids of the solver, from any incumbent, and of no one."""
    rng = np.random.default_rng([seed, 2])
    rows = Rows.random(rng, 8, few=True)
    p, F = rows.cov.n_features, rows.cov.factor()
    s = int(rng.integers(1, p + 1))
    A = rows.cov.dense()
    values = leaving((A + A.T) / 2, s, set(), set(), False)
    problem, wrong = Problem(rows.cov, (s,)), []
    support = np.sort(rng.choice(p, size=int(rng.integers(1, s + 1)), replace=False))
    some = refit(problem, (Component(support, np.full(support.size, support.size**-0.5)),))
    found = ellipsoid_bound(problem, some, Options(), "fast") if rng.random() < 0.3 else None
    if found is not None:
        wrong += rows.above(values, found.value)
    record = random_cover(rng, F) if found is None else found.data
    for case in rows.cases(Question((s,), False, True, 0.0), rng):
        try:
            proved = _upper(redone("ellipsoid", record, case), case.ar)
        except Refused:
            continue
        wrong += [f"accepted: {reason}" for reason in rows.above(values, proved)]
        if found is not None and proved > found.value * (1 + 1e-12):
            wrong.append(f"{proved!r} is proved of the solver's bound {found.value!r}")
    return wrong
