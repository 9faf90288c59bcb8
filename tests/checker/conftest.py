"""Fixtures that the tests of the checker share."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.checker import cheap as bounds
from sparcipal.checker import configuration, dspca, greedy, kyfan, packing
from sparcipal.checker import dropped as screened
from sparcipal.checker import lowrank as sphere
from sparcipal.checker import pairsplit as split
from tests.support.margins import E

MODULES = (
    bounds, configuration, dspca, greedy, kyfan, packing, screened, sphere, split
)  # fmt: skip


@pytest.fixture
def coarse(monkeypatch):
    for module in MODULES:
        monkeypatch.setattr(module, "EPS", E)


@pytest.fixture
def factored(monkeypatch):
    """The matrices that were to be factored; all of them are."""
    seen: list[np.ndarray] = []
    for module in (bounds, kyfan, packing, sphere, split):
        monkeypatch.setattr(module, "factorises", lambda M: seen.append(M) or True)
    return seen
