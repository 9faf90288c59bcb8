"""Prices, redone: cores, pads and margins."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.checker import configuration
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question, covariance_of
from sparcipal.checker.family import Case
from sparcipal.checker.gate import parse
from sparcipal.checker.records import Problem
from tests.support.margins import LESS, E, from_data, one
from tests.support.replay import FLOAT, recheck

HEADER = {"s": 2, "nonnegative": False, "bound": 3.0, "unit": 1.0, "twins": {}}


def test_outside_needs_positive_pads():
    own = covariance_of(np.eye(4) + 0.25, 1.0)
    core, price = np.array([0, 1]), np.zeros(2)

    def outside(level, **more):
        problem = parse(Problem, {**HEADER, **more}, {"n": 2}, "log")
        case = Case(own, Question((2, 2), False, True, 0.0), FLOAT, Budget())
        return configuration._outside(problem, core, price, level, case)

    assert outside(0.0, pads=np.array([0.5, 0.5])) == pytest.approx(1.5)
    for more in ({"pads": np.array([0.5, 0.0])}, {}):
        with pytest.raises(Refused, match="positive pads"):
            outside(0.0, **more)
    rows = [outside(level, pads=np.array([0.5, 0.5])) for level in (1.4, 9.0)]
    assert rows == pytest.approx([1.5, 9.0]), "variances show that no row exceeds the second level"


@pytest.mark.usefixtures("coarse")
def test_recheck_of_a_configuration_keeps_its_margins(monkeypatch):
    cov = from_data(4)
    price = np.array([0.1, 0.2, 0.3, 0.4])
    header = {**HEADER, "prices": price, "step": "problem"}
    data = {"price": price, "parts": [{"s": 2, "log": [header]}]}
    given: list[np.ndarray] = []
    monkeypatch.setattr(configuration, "replay", lambda log, a, *_, **__: given.append(a) or 3.0)
    assert recheck("configuration", data, cov, one(2, 2)) >= 7.0 * (1 + 8 * E) * LESS
    assert np.allclose(given[0], cov.dense())
    monkeypatch.setattr(configuration, "replay", lambda *_, **__: -3.0)
    assert recheck("configuration", data, cov, one(2, 1)) >= 0.9, "three features are paid"
    packed = {**data, "packing": {"target": 5.0, "u": np.zeros(6), "r": np.zeros(6)}}
    matrix: list[np.ndarray] = []
    for best, least in ((4.0, 5.0), (6.0, 6.0)):
        monkeypatch.setattr(
            configuration, "largest_packing", lambda *given, b=best: matrix.append(given[1]) or b
        )
        assert recheck("configuration", packed, cov, one(2, 2)) >= least * (1 + 4 * E) * LESS
        assert np.allclose(matrix[0], cov.dense())
    cov.error_unit = 1e-3
    assert recheck("configuration", packed, cov, one(2, 2)) >= 6.0 + cov.rounding(4)
    monkeypatch.setattr(configuration, "replay", lambda *_, **__: 3.0)
    assert recheck("configuration", data, cov, one(2, 2)) >= 7.0 + 2 * cov.rounding(2)


def test_rewards_are_refused_where_not_every_component_can_be_full(monkeypatch):
    price = np.array([-9.0, -8.0, -7.0])
    header = {**HEADER, "prices": price, "step": "problem"}
    data = {"price": price, "parts": [{"s": 2, "log": [header]}]}
    monkeypatch.setattr(configuration, "replay", lambda *_, **__: 30.0)
    plain = covariance_of(np.diag([3.0, 2.0, 1.0]), 1.0)
    assert recheck("configuration", data, plain, one(2)) == pytest.approx(30.0 - 15.0)
    refused = [
        (plain, one(2, 2)),  # four nonzeros of three features
        (covariance_of(np.diag([3.0, 2.0, -1e-20]), 1.0), one(2)),  # emptiness is worth more
    ]
    for cov, question in refused:
        assert recheck("configuration", data, cov, question) == np.inf
    core = {**data, "features": np.array([0, 1, 2])}
    larger = covariance_of(np.diag([3.0, 2.0, 1.0, 0.5]), 1.0)
    assert recheck("configuration", core, larger, one(2)) == np.inf
