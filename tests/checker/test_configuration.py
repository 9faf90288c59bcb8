"""Prices, redone: cores, pads and margins."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.checker import configuration
from sparcipal.checker.covariance import covariance_of
from tests.support.margins import LESS, E, from_data, one


def test_core_is_an_increasing_list_of_features():
    cov = covariance_of(np.eye(4), 1.0)
    assert configuration._core({}, cov).tolist() == [0, 1, 2, 3]
    assert configuration._core({"features": [1, 3]}, cov).tolist() == [1, 3]
    for core in ([], [-1, 2], [2, 4], [2, 2], [3, 1], [[0, 1]]):
        with pytest.raises(ValueError, match="core"):
            configuration._core({"features": core}, cov)


def test_outside_needs_positive_pads():
    own = covariance_of(np.eye(4) + 0.25, 1.0)
    core, price = np.array([0, 1]), np.zeros(2)
    header = {"s": 2, "nonnegative": False, "pads": [0.5, 0.5]}
    level = configuration._outside(header, core, price, 0.0, own)
    assert level == pytest.approx(1.5)
    for pads in ([0.5, 0.0], [0.5, -0.5], [0.5], [0.5, np.nan]):
        with pytest.raises(ValueError, match="positive pads"):
            configuration._outside({**header, "pads": pads}, core, price, 0.0, own)
    assert configuration._outside(header, core, price, 9.0, own) == 9.0


@pytest.mark.usefixtures("coarse")
def test_recheck_of_a_configuration_keeps_its_margins(monkeypatch):
    cov = from_data(4)
    price = np.array([0.1, 0.2, 0.3, 0.4])
    header = {"s": 2, "nonnegative": False, "prices": price, "step": "problem"}
    header |= {"bound": 3.0, "unit": 1.0, "twins": {}}
    data = {"price": price, "parts": [{"s": 2, "log": [header]}]}
    given: list[np.ndarray] = []
    monkeypatch.setattr(configuration, "replay", lambda log, a, *_: given.append(a) or 3.0)
    assert configuration.recheck(data, cov, one(2, 2)) >= 7.0 * (1 + 8 * E) * LESS
    assert np.allclose(given[0], cov.dense())
    monkeypatch.setattr(configuration, "replay", lambda *_: -3.0)
    assert configuration.recheck(data, cov, one(2, 1)) >= 1.0
    packed = {**data, "packing": {"target": 5.0, "u": [], "r": []}}
    matrix: list[np.ndarray] = []
    for best, least in ((4.0, 5.0), (6.0, 6.0)):
        monkeypatch.setattr(
            configuration, "largest_packing", lambda *given, b=best: matrix.append(given[0]) or b
        )
        assert configuration.recheck(packed, cov, one(2, 2)) >= least * (1 + 4 * E) * LESS
        assert np.allclose(matrix[0], cov.dense())
    cov.error_unit = 1e-3
    assert configuration.recheck(packed, cov, one(2, 2)) >= 6.0 + cov.rounding(4)
    monkeypatch.setattr(configuration, "replay", lambda *_: 3.0)
    assert configuration.recheck(data, cov, one(2, 2)) >= 7.0 + 2 * cov.rounding(2)
