"""What the checker leaves over of supports of features that are alike, in both arithmetics."""

from __future__ import annotations

import copy
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import prove
from sparcipal.checker.alike import left_over
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.tree import State, bits
from tests.bounds.tree.test_alike import tied
from tests.support.alike_cases import AlikeCase, alike_case
from tests.support.replay import replay


def left(case: AlikeCase, ar, budget: Budget | None = None) -> list[list[int]] | None:
    """What is left over; None where the level is too low for that."""
    with ar.running():
        prover = SimpleNamespace(
            ar=ar, a=ar.array(case.a), price=ar.array(case.price), t=ar.number(case.level),
            s=case.s, p=len(case.a), costly=case.costly, padded=False, listed=None, each=4e4,
        )  # fmt: skip
        state = State((1 << len(case.a)) - 1, bits(case.forced))
        try:
            return list(left_over(prover, state, case.group, budget or Budget()))
        except Refused as refused:
            if "budget" in str(refused):
                raise
            return None


@pytest.mark.parametrize("seed", range(4))
def test_left_over_has_every_support_that_is_worth_more(seed):
    rng = np.random.default_rng([7, seed])
    known = 0
    for _ in range(150):
        case = alike_case(rng)
        found = left(case, Float())
        if found is not None:
            assert not case.missing(found)
            known += 1
    assert known > 90


@pytest.mark.parametrize("seed", range(3))
def test_left_over_knows_how_rewards_beside_the_group_are_rounded(seed):
    """Levels and rewards cancel: digits are lost that decide between supports."""
    rng = np.random.default_rng([9, seed])
    found = 0
    for _ in range(60):
        X = rng.standard_normal((3, 1)) + 1e-3 * rng.standard_normal((3, 7))
        a, price, own = X.T @ X, -(1 + rng.random(7)), np.arange(3)
        price[:3] *= 2.0**40
        supports = [(*own, *P) for P in combinations(range(3, 7), 2)]
        value = [Fraction(np.linalg.eigvalsh(a[np.ix_(S, S)])[-1]) for S in supports]
        paid = [sum(Fraction(x) for x in price[list(S)]) for S in supports]
        best = max(v - beta for v, beta in zip(value, paid))
        level = float(best) - rng.integers(0, 3) * 2.0**-9
        case = AlikeCase(a, price, 5, own, np.arange(0), np.arange(3, 7), level)
        if (told := left(case, Float())) is not None:
            surely = [S for S, v, beta in zip(supports, value, paid) if v - beta > level + 1e-9]
            assert {*surely} <= {tuple(sorted(S)) for S in told}
            found += len(surely)
    assert found > 20


def test_left_over_is_nearly_the_same_in_exact_arithmetic():
    """Balls have no margins: they leave no more, and what is worth more is left by both."""
    exact = pytest.importorskip("sparcipal.checker.exact").Ball()
    rng = np.random.default_rng(8)
    for _ in range(12):
        case = alike_case(rng)
        found, told = left(case, exact), left(case, Float())
        if found is not None and told is not None:
            assert not case.missing(found)
            assert {tuple(sorted(S)) for S in found} <= {tuple(sorted(S)) for S in told}


def proved():
    """A log of one node that ends alike, and the matrix."""
    a, price = tied(3, 14, 2)
    log = prove(a, 7, TreeQuestion(prices=price)).log
    place = next(i for i, step in enumerate(log) if step.get("end") == "alike")
    replay(log, a)
    return a, log, place


def test_replay_refuses_a_node_of_features_alike_at_a_lower_level():
    a, log, _ = proved()
    log = copy.deepcopy(log)
    log[0]["bound"] -= 1e-4
    with pytest.raises(Refused):
        replay(log, a)


def test_replay_refuses_groups_that_are_none():
    """Features that are not in the node, no group at all, and too many features beside it."""
    a, log, place = proved()
    for group in ([15, 99], [], None):
        forged = copy.deepcopy(log)
        forged[place]["alike"] = None if group is None else np.array(group, dtype=np.int32)
        with pytest.raises(Refused):
            replay(forged, a)
    b = np.eye(24) * 0.5 + 0.5
    many = prove(b, 3, TreeQuestion(keep_log=True)).log
    node = next(i for i, step in enumerate(many) if step.get("parent") == -1)
    many[node].update(passes=[], end="alike", alike=np.arange(3, dtype=np.int32))
    with pytest.raises(Refused, match="too many features"):
        replay(many[: node + 1], b)


def test_replay_of_features_alike_is_charged():
    """A file cannot ask for days: sets are counted before they are looked at."""
    case = AlikeCase(
        np.ones((60, 60)) + 0.2 * np.eye(60), np.zeros(60), 20,
        np.arange(0), np.arange(0), np.arange(60), 20.19,
    )  # fmt: skip
    with pytest.raises(Refused, match="budget"):
        left(case, Float(), Budget(1e9))


def apart(n: int, g: int) -> AlikeCase:
    """Features that have nothing in common: pairs settle none of their supports."""
    none = np.arange(0)
    return AlikeCase(np.eye(n), np.zeros(n), g, none, none, np.arange(n), 1.0001)


def test_supports_that_pairs_leave_are_charged_before_they_are_looked_at():
    """A file of one step names ten billion supports, each of which is fine and takes a while."""
    budget = Budget(1e9)
    with pytest.raises(Refused, match="budget"):
        left(apart(50, 10), Float(), budget)
    assert budget.spent < 1.1e9


@pytest.mark.parametrize(("n", "g", "memory"), [(150, 60, 1e7), (60, 8, 1e7)])
def test_memory_of_features_alike_is_counted(n, g, memory):
    """What is known of each place, of order n n g, and the sets that wait."""
    with pytest.raises(Refused, match="GiB"):
        left(apart(n, g), Float(), Budget(memory=memory))
