"""Fixtures that the tests of the checker share."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.checker import arithmetic, configuration, dropped, packing
from tests.support.margins import E


@pytest.fixture
def coarse(monkeypatch):
    monkeypatch.setattr(arithmetic.Float, "eps", E)
    monkeypatch.setattr(arithmetic.Float, "step", E)
    for module in (configuration, dropped, packing):
        monkeypatch.setattr(module, "EPS", E)


@pytest.fixture
def factored(monkeypatch):
    """The matrices that were to be factored; all of them are."""
    seen: list[np.ndarray] = []
    for module in (arithmetic, packing):
        monkeypatch.setattr(module, "factorises", lambda M: seen.append(M) or True)
    return seen
