"""Supports that leave the core of a tree: what the checker accepts holds, forgeries do not pass."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from sparcipal.bounds.touch import Strata, groups_of
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.checker.family import Case
from sparcipal.checker.gate import parse
from sparcipal.checker.records import Problem, Touch
from sparcipal.checker.touch import check_touch
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from tests.bounds.test_touch import largest_outside, random_split, random_table
from tests.support.replay import FLOAT


def accepts(raw, s, nonnegative, cov, ar=FLOAT):
    header = {"s": s, "nonnegative": nonnegative, "bound": 0.0, "unit": 1.0, "twins": {}}
    problem = parse(Problem, header, {"n": cov.p})
    try:
        case = Case(cov, None, ar, Budget())
        check_touch(parse(Touch, raw, {"p": cov.p}), problem, case)
    except Refused:
        return False
    return True


def certified(seed, s=3, nonnegative=False, given=False):
    """A record that holds, the checker's covariance, and the largest value outside the core."""
    rng = np.random.default_rng(seed)
    X = random_table(rng, 8)
    own = covariance_of_data(X)[0]
    if given:
        own = covariance_of(np.cov(X.T, bias=True))
        checked = checked_covariance(np.cov(X.T, bias=True), own.unit)
    else:
        checked = checked_covariance_of_data(X, True, False, None, own.unit)[0]
    A = own.dense()
    core = np.sort(rng.choice(8, size=int(rng.integers(2, 7)), replace=False))
    strata = Strata(own, s, nonnegative, core, random_split(rng, A, core, nonnegative))
    true = largest_outside(A, s, core, nonnegative)
    level = true
    while (found := strata.attempt(level).touch) is None:
        level *= 1.05
    raw = {**found.record(), "bound": found.level * (1 + 1e-9)}
    return raw, checked, true


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("s", [1, 2, 3, 5])
def test_what_the_solver_certifies_is_accepted(s, nonnegative, given):
    for seed in range(10):
        raw, cov, _ = certified(seed, s, nonnegative, given)
        assert accepts(raw, s, nonnegative, cov)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_no_level_below_the_truth_is_accepted_whatever_the_pads(nonnegative):
    rng = np.random.default_rng(5)
    for seed in range(36):
        raw, cov, true = certified(seed, 3, nonnegative, given=bool(seed % 2))
        for _ in range(12):
            forged = copy.deepcopy(raw)
            forged["bound"] = true * (1 - 10.0 ** rng.uniform(-9, -1))
            for group in forged["groups"]:
                for pad in group["pads"]:
                    pad["scale"] *= float(10.0 ** rng.uniform(-2, 2))
            assert not accepts(forged, 3, nonnegative, cov)


def test_every_number_of_features_outside_is_asked_for():
    """Copies outside the core explain more together than any of them with the core."""
    A = np.zeros((5, 5))
    A[0, 0], A[1:, 1:] = 1.2, 1.0
    cov = checked_covariance(A, 1.0)
    pads = [{"shape": np.ones(1), "scale": 1e-3}]
    whole = [{"first": first, "last": last, "pads": pads} for first, last in groups_of(4)]
    raw = {"core": np.array([0]), "split": {"clip": 0.0}, "near": np.arange(1, 5)}
    raw |= {"groups": whole, "bound": 4.0 + 1e-9}
    assert accepts(raw, 4, False, cov)
    for bound in (1.5, 2.5, 3.5):
        for groups in (whole, whole[:1], whole[1:], whole[:1] + whole[2:], []):
            assert not accepts({**raw, "groups": groups, "bound": bound}, 4, False, cov)
    for groups in (whole[:-1], whole[1:], [], whole[::-1], [whole[0], *whole], [*whole, whole[-1]]):
        assert not accepts({**raw, "groups": groups}, 4, False, cov), "a number is left out"
    wide = [{"first": 1, "last": 9, "pads": pads}]
    assert not accepts({**raw, "groups": wide}, 4, False, cov)


def test_pads_must_fit_below_the_level():
    for seed in range(20):
        raw, cov, _ = certified(seed, 4)
        for group in raw["groups"]:
            group["pads"] = [{**pad, "scale": pad["scale"] * 1e6} for pad in group["pads"]]
        assert not accepts(raw, 4, False, cov)


def test_certificates_of_nonnegative_components_say_nothing_of_signed_ones():
    refused = 0
    for seed in range(30):
        raw, cov, _ = certified(seed, 3, nonnegative=True)
        signed = largest_outside(cov.dense(), 3, raw["core"], False)
        if signed > raw["bound"]:
            refused += 1
            assert not accepts(raw, 3, False, cov)
    assert refused > 0


def test_features_are_not_dismissed_unless_their_variance_clears_them():
    dismissed = 0
    for seed in range(30):
        raw, cov, _ = certified(seed, 3)
        if not raw["near"].size:
            continue
        dismissed += 1
        assert not accepts({**raw, "near": np.append(raw["near"], raw["core"][:1])}, 3, False, cov)
        lower = {**raw, "near": raw["near"][:0], "bound": raw["bound"] * 0.99}
        assert not accepts(lower, 3, False, cov)
    assert dismissed > 0


class Coarse(Float):
    """Rounding terms that can be seen."""

    eps = 2.0**-20


def test_rounding_terms_are_added_to_rows_and_pads():
    """A level that holds with the true precision by less than a coarse one is refused there."""
    A = np.diag([2.0, 1.0])
    cov = checked_covariance(A, 1.0)
    raw = {"core": np.array([0]), "split": {"clip": 0.0}, "near": np.array([1])}
    raw |= {"groups": [], "bound": 1.0 + 1e-9}
    assert accepts(raw, 1, False, cov)
    assert not accepts(raw, 1, False, cov, Coarse())


PLAIN = {
    "core": np.arange(2),
    "split": {"clip": 0.0},
    "near": np.array([2]),
    "groups": [{"first": 1, "last": 1, "pads": [{"shape": np.ones(2), "scale": 0.5}]}],
    "bound": 2.0,
}


@pytest.mark.parametrize(
    "wrong",
    [
        *({"core": np.array(core)} for core in ([1, 1], [2, 1], [-1, 0], [0, 4], [[0, 1]])),
        {"core": np.array([], dtype=int)},
        {"core": np.array([0.0, 1.0])},
        {"near": np.array([4])},
        {"near": np.array([-1])},
        {"near": np.array([2, 2])},
        {"bound": np.nan},
        {"split": {}},
        {"split": {"clip": 0.0, "u": np.zeros(1)}},
        {"groups": None},
        {"groups": [{"first": 1, "last": 1, "pads": []}]},
        {"groups": [{"first": 1.0, "last": 1, "pads": PLAIN["groups"][0]["pads"]}]},
        {"groups": [{"first": 1, "last": 1, "pads": [{"shape": np.ones(3), "scale": 0.5}]}]},
        *(
            {"groups": [{"first": 1, "last": 1, "pads": [{"shape": shape, "scale": scale}]}]}
            for shape, scale in (
                (np.array([1.0, 0.0]), 0.5),
                (np.array([1.0, -1.0]), 0.5),
                (np.array([1.0, np.nan]), 0.5),
                (np.array([1, 1]), 0.5),
                (np.ones((1, 2)), 0.5),
                (np.ones(2), 0.0),
                (np.ones(2), -1.0),
                (np.ones(2), np.inf),
                (np.ones(2), None),
            )
        ),
        {"more": 1},
    ],
    ids=str,
)
def test_records_that_are_none_are_refused_at_the_gate(wrong):
    parse(Touch, PLAIN, {"p": 4})
    with pytest.raises(Refused):
        parse(Touch, {**PLAIN, **wrong}, {"p": 4})
