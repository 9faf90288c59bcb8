"""Proofs as the solver hands them out, replayed as the checker would after its gate."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question
from sparcipal.checker.family import Case, redone
from sparcipal.checker.lowrank import majorant, sphere
from sparcipal.checker.packing import Charges, largest_packing
from sparcipal.checker.records import LOG, LowRank, Packing
from sparcipal.checker.tree import Prover
from sparcipal.checker.tree import replay as replay_steps

FLOAT = Float()


def parsed(log: list[dict[str, Any]], n: int) -> tuple[Any, ...]:
    """The steps of a log about n features as typed records."""
    return LOG.read(log, "log", {"n": n, "p": n})


def replay(log: list[dict[str, Any]], A: np.ndarray) -> float:
    """The bound that the log proves about A; Refused if it proves none."""
    return replay_steps(parsed(log, A.shape[0]), A, FLOAT, Budget())


def recheck(name: str, data: dict[str, Any], cov: Any, question: Any) -> float:
    """What the data of a bound prove; infinity where they are refused."""
    try:
        return redone(name, data, Case(cov, question, FLOAT, Budget()))
    except Refused:
        return np.inf


def prover(log: list[dict[str, Any]], A: np.ndarray) -> Prover:
    """What checks the claims of a log."""
    return Prover(parsed(log, A.shape[0])[0], A, FLOAT)


def level_of(
    V: np.ndarray, s: int, one_sign: bool, prices: np.ndarray, level: float, tree: np.ndarray
) -> float:
    """What a tree of cones proves of the s largest (v_i.c)^2 less prices."""
    record = LowRank(
        V=V, proof="features", shift=0.0, s=s, nonnegative=one_sign, level=level, tree=tree,
        clip=None, prices=prices,
    )  # fmt: skip
    return sphere(record, prices, s, FLOAT, Budget())


def majorant_of(
    cov: Any, V: np.ndarray, proof: str, shift: float, clip: float | None, s: int, one_sign: bool
) -> float:
    """The t, near the shift, for which the covariance is proved to be at most t I + VV'."""
    none = np.zeros(0, dtype=np.int8)
    record = LowRank(
        V=V, proof=proof, shift=shift, s=s, nonnegative=one_sign, level=0.0, tree=none, clip=clip,
        prices=None,
    )  # fmt: skip
    return majorant(record, Case(cov, Question((s,), one_sign, True, 0.0), FLOAT, Budget()))


def charges_of(A: np.ndarray, s: int, price: np.ndarray, u: np.ndarray, r: np.ndarray) -> Charges:
    """The pair-split bound with which supports that could be packed are found."""
    return Charges(Packing(target=0.0, u=u, r=r), A, s, price, FLOAT, Budget())


def packing_of(
    A: np.ndarray,
    sizes: tuple[int, ...],
    price: np.ndarray,
    pi: float,
    packing: dict[str, Any],
    budget: float = 1e12,
) -> float:
    """The largest packing, if above the target; infinity where it costs more than the budget."""
    question = Question(sizes, False, True, 0.0)
    try:
        record = Packing(**packing)
        case = Case(None, question, FLOAT, Budget(budget))
        return largest_packing(record, A, price, price.sum(), pi, case)
    except Refused:
        return np.inf
