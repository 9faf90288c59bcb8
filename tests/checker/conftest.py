"""Fixtures that the tests of the checker share."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from sparcipal.checker import arithmetic, dropped
from tests.support import forgeries
from tests.support.margins import E


@pytest.fixture(scope="session")
def subjects():
    """Results of the solver; mutation testing of the checker has them ready in a file."""
    saved = os.environ.get("SPARCIPAL_SUBJECTS")
    if saved:
        return pickle.loads(Path(saved).read_bytes())
    return forgeries.subjects()


@pytest.fixture
def coarse(monkeypatch):
    monkeypatch.setattr(arithmetic.Float, "eps", E)
    monkeypatch.setattr(arithmetic.Float, "step", E)
    monkeypatch.setattr(dropped, "EPS", E)


@pytest.fixture
def factored(monkeypatch):
    """The matrices that were to be factored; all of them are."""
    seen: list[np.ndarray] = []
    monkeypatch.setattr(arithmetic, "factorises", lambda M: seen.append(M) or True)
    return seen
