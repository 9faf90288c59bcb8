"""Labelled bounds: no certificate, price or tree of cases gives less than the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparcipal.bounds.kyfan import JointQuestion
from sparcipal.bounds.kyfan import bound as kyfan
from sparcipal.bounds.kyfan.certificate import KyFanSplit
from sparcipal.bounds.labels import labels_bound
from sparcipal.bounds.labels.cases import cut_down
from sparcipal.bounds.labels.groups import Group, evaluated
from sparcipal.bounds.labels.proof import Label, Proof, including, without
from sparcipal.bounds.labels.rows import Rows
from sparcipal.bounds.labels.start import started
from sparcipal.bounds.labels.touch import touch_matrix
from sparcipal.bounds.pairsplit import Split
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.problem.covariance import covariance_of
from sparcipal.search.joint import joint_search
from tests.support.brute import best_value
from tests.support.label_cases import Values, certificate, grown, priced, some_prices
from tests.support.proof_cases import matrix
from tests.support.replay import recheck


def small(rng: np.random.Generator) -> tuple[np.ndarray, int, int]:
    while True:
        A = matrix(rng)
        if A.any():
            break
    p = A.shape[0]
    k = int(rng.integers(1, min(p, 3) + 1))
    return A, k, int(rng.integers(1, min(p, 3) + 1))


def field_of(rng: np.random.Generator, inside: np.ndarray) -> np.ndarray:
    """Some features that vary; others have no price and are in no core."""
    some = rng.permutation(np.flatnonzero(inside.diagonal() > 0))
    return np.sort(some[: rng.integers(1, some.size + 1)])


@pytest.mark.parametrize("seed", range(3))
def test_any_group_certificate_is_a_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(120):
        A, k, s = small(rng)
        cov, nonnegative = covariance_of(A), bool(rng.integers(2))
        inside = cov.dense()
        p = inside.shape[0]
        field = field_of(rng, inside)
        rows = Rows(cov, field, s, nonnegative)
        places = rng.permutation(field.size)
        forced = frozenset(int(j) for j in places[: rng.integers(0, min(s, field.size) + 1)])
        banned = frozenset(int(j) for j in places[len(forced) :][: rng.integers(0, 3)])
        if len(banned) == field.size:
            continue
        label = Label(1 if forced else k, forced, banned)
        price = some_prices(rng, rows)
        group = certificate(rng, rows, label, price, float(inside.diagonal().max()))
        full = np.zeros(p)
        full[field] = price
        best = Values(inside, s, nonnegative).best(
            label.count, frozenset(field[list(forced)]), frozenset(field[list(banned)]), full
        )
        bound = evaluated(group, rows, price).proved(label.count)
        assert bound >= best - 1e-13 * (abs(best) + full.sum())


def test_any_branch_and_bound_of_a_group_is_a_bound_wherever_it_ends() -> None:
    rng, touched = np.random.default_rng(7), 0
    for _ in range(150):
        A, _, s = small(rng)
        cov, nonnegative = covariance_of(A), bool(rng.integers(2))
        inside = cov.dense()
        field = field_of(rng, inside)
        rows = Rows(cov, field, s, nonnegative)
        places = rng.permutation(field.size)
        forced = frozenset(int(j) for j in places[: rng.integers(0, min(s, field.size) + 1)])
        banned = frozenset(int(j) for j in places[len(forced) :][: rng.integers(0, 3)])
        price = some_prices(rng, rows)
        if len(banned) == field.size:
            continue
        label = Label(1, forced, banned)
        found = priced(rng, rows, label, price, float(inside.diagonal().max()))
        if found is None:
            continue
        touched += found.touch is not None
        full = np.zeros(len(A))
        full[field] = price
        best = Values(inside, s, nonnegative).best(
            1, frozenset(field[list(forced)]), frozenset(field[list(banned)]), full
        )
        assert found.bound >= best - 1e-13 * (abs(best) + full.sum())
    assert touched >= 10


def test_rows_pay_for_an_outside_feature_beside_all_others_but_one() -> None:
    # ones(3), core {0, 1}: with the pad counted among the s - 1 largest, 2.5 < 3 would come out
    cov = covariance_of(np.ones((3, 3)))
    rows = Rows(cov, np.arange(3), 3, False)
    core = np.arange(2)
    split = Split.rounded(core, np.triu_indices(2, 1), np.array([1.0]), np.zeros(1))
    none = np.zeros(3, dtype=bool)
    group = Group(1, np.zeros(0, dtype=np.intp), none, split, np.full(2, 0.5))
    top = np.linalg.eigvalsh(touch_matrix(group, group.pad, rows, np.zeros(3)))[-1]
    rival = rows.heights(core, group.pad, np.zeros(3), none, -np.inf)[1].max()
    assert max(top, rival) * cov.unit >= 3.0


@pytest.mark.parametrize("seed", range(3))
def test_any_tree_of_cases_is_a_bound(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    for _ in range(25):
        A, k, s = small(rng)
        cov, nonnegative = covariance_of(A), bool(rng.integers(2))
        inside = cov.dense()
        rows = Rows(cov, field_of(rng, inside), s, nonnegative)
        proof, values = Proof(rows, k), Values(inside, s, nonnegative)
        for state, total in grown(rng, proof, float(inside.diagonal().max()), trees=0.3):
            there = tuple(
                Label(
                    label.count,
                    frozenset(rows.field[list(label.forced)]),
                    frozenset(rows.field[list(label.banned)]),
                )
                for label in state
            )
            best = values.best_of(there)
            assert total >= best - 1e-13 * abs(best) or best == -np.inf
        best = values.best_of((Label(k),))
        assert proof.bound >= best * (1 - 1e-13)
        question = Question((s,) * k, nonnegative, True, best)
        own = recheck("labels", proof.data(), checked_covariance(A, cov.unit), question)
        assert best * (1 - 1e-13) <= own <= proof.bound + 1e-12 * abs(proof.bound)


def group_of(A, s, forced, core, price, u, r, pad, banned=(), count=1):
    """The proved bound of one certificate, written out number by number, in the units of A."""
    cov = covariance_of(A)
    rows = Rows(cov, np.arange(len(A)), s, False)
    mask = np.zeros(len(A), dtype=bool)
    mask[list(banned)] = True
    core, unit = np.array(core), cov.unit
    split = Split.rounded(core, np.triu_indices(core.size, 1), np.array(u) / unit, np.array(r))
    group = Group(count, np.array(forced, dtype=np.intp), mask, split, np.array(pad) / unit)
    return evaluated(group, rows, np.array(price) / unit).proved(count) * unit


def test_theta_never_comes_from_what_forced_features_are_charged() -> None:
    # with theta_2 from W_21 this certificate would give 2.82
    bound = group_of(
        np.ones((3, 3)), 3, [0], [0, 1], np.zeros(3), [1.0], [np.log(0.55)], [1.0, 1e-6]
    )
    assert bound >= 3.0


def test_empty_components_of_a_free_group_count_as_zero() -> None:
    # prices above all variances: two empty components are worth more than any others
    bound = group_of(np.eye(2), 1, [], [0, 1], [3.0, 3.0], [0.0], [0.0], [0.0, 0.0], count=2)
    assert 0.0 <= bound <= 1e-12


def leaf_total(A, s, k, price, anchors, cores) -> float:
    """The sum of the leaf in which the first components contain one anchor each."""
    cov = covariance_of(A)
    rows = Rows(cov, np.arange(len(A)), s, False)
    proof, state = Proof(rows, k), (Label(k),)
    place = proof.room()
    for g, a in enumerate(anchors):
        for i in range(g):
            state = without(state, i, a)
        state = including(state, g, a)
    at = proof.add_prices(np.array(price) / cov.unit)
    groups = []
    for label, core in zip(state, cores):
        core, banned = np.array(core), np.zeros(len(A), dtype=bool)
        banned[list(label.banned)] = True
        upper = np.triu_indices(core.size, 1)
        u = rows.a[np.ix_(core, core)][upper]
        split = Split.rounded(core, upper, u, np.zeros(u.size))
        forced = np.array(sorted(label.forced), dtype=np.intp)
        group = Group(label.count, forced, banned, split, np.full(core.size, 0.5))
        groups.append(proof.add_group(group, at))
    return proof.leaf(place, state, groups) * cov.unit


def test_a_leaf_pays_for_features_outside_all_cores_and_for_those_one_group_bans() -> None:
    A = np.diag([4.0, 3.0, 2.0, 1.0])
    for price in ([0.0, 0.0, 9.0, 9.0], [9.0, 9.0, 0.0, 0.0]):
        total = leaf_total(A, 2, 2, price, [0, 1], [[0], [1]])
        assert total >= 7.0


def test_three_anchors_in_one_component_are_a_case_of_their_own() -> None:
    # a pair of anchors in one component, or each in its own: no case may be left out
    A = np.ones((3, 3)) + np.diag([0.5, 0.5, 0.0])
    values = Values(A, 3, False)
    alone = values.best_of(tuple(Label(1, frozenset({a})) for a in range(3)))
    pairs = [
        values.best_of((Label(1, frozenset({0, 1, 2}) - {a}), Label(1, frozenset({a})), Label(1)))
        for a in range(3)
    ]
    best = values.best_of((Label(3),))
    assert max(alone, *pairs) == pytest.approx(best) == 4.0
    cov, rng = covariance_of(A), np.random.default_rng(5)
    for _ in range(10):
        proof = Proof(Rows(cov, np.arange(3), 3, False), 3)
        for state, total in grown(rng, proof, 1.0):
            there = values.best_of(state)
            assert total * cov.unit >= there * (1 - 1e-13) or there == -np.inf
        assert proof.bound * cov.unit >= best * (1 - 1e-13)


@pytest.mark.parametrize("first", [0, 5])
def test_labels_of_a_ky_fan_split_bound_the_optimum(first: int, monkeypatch) -> None:
    """From rough Ky Fan splits on tiny cores, with wrong values and tolerances of all sizes."""
    better = 0
    for seed in range(first, first + 5):
        rng = np.random.default_rng(seed)
        A, k, s = spread(rng, seed % 4)
        cov, nonnegative = covariance_of(A), seed % 3 == 0
        inside, sizes = cov.dense(), (s,) * k
        best = best_value(inside, sizes, nonnegative)
        supports = joint_search(inside, sizes, nonnegative=nonnegative, effort=0)
        core = int(rng.integers(k * s, len(A) + 1))
        effort = kyfan.Effort(core, (0.1, 0.01, 1e-3), 12, (0.01, 1e-3), 12, 2, 0.03)
        monkeypatch.setitem(kyfan.EFFORTS, "test", effort)
        value = best * float(rng.choice([1.0, 1.0, 0.9, 0.5]))
        tol = float(rng.choice([1e-6, 1e-2, 5e-2]))
        question = JointQuestion(cov, sizes, supports, value, nonnegative, tol)
        start = kyfan.kyfan_bound(question, effort="test")
        found = labels_bound(question, start)
        if found is None:
            continue
        better += 1
        assert best * (1 - 1e-13) <= found.value <= start.value
        asked = Question(sizes, nonnegative, True, best)
        own = recheck("labels", found.data, checked_covariance(A, cov.unit), asked)
        assert best * (1 - 1e-13) <= own <= found.value * (1 + 1e-12)
    assert better >= 2


def spread(rng: np.random.Generator, kind: int) -> tuple[np.ndarray, int, int]:
    """Second moments whose components can be told apart, more or less."""
    p, k = int(rng.integers(7, 11)), int(rng.integers(2, 4))
    s = 2 if k == 3 else int(rng.integers(2, 4))
    X = rng.standard_normal((20, p))
    if kind == 1:
        X *= np.exp(rng.standard_normal(p))
    elif kind == 2:
        X = rng.standard_normal((20, 2)) @ rng.standard_normal((2, p)) + 0.3 * X
    elif kind == 3:
        X = rng.poisson(1.0, (30, p)) * np.where(np.arange(p) < 2, 3.0, 1.0)
        X[:, 2:4] += X[:, :2]
    return X.T @ X / len(X), k, s


def test_a_core_that_is_cut_down_pays_for_the_features_it_loses() -> None:
    # every feature is in the core of the Ky Fan split, whose rows have no pads
    rng = np.random.default_rng(4)
    X = rng.standard_normal((90, 80))
    cov, sizes = covariance_of(X.T @ X / 90), (3, 3)
    supports = joint_search(cov.dense(), sizes, effort=0)
    question = JointQuestion(cov, sizes, supports, 1.0)
    split = KyFanSplit.of(kyfan.kyfan_bound(question, effort="fast").data)
    assert split.pad == 0.0 or split.features.size < 80
    start = started(question, 1.0, split)
    group = replace(start.whole, count=1, pad=np.zeros(start.whole.core.size))
    part = cut_down(start, group, start.supports[0], start.price)
    assert part.core.size < 80
    assert (part.pad > 0.0).all()
