"""Cheap bounds: never below their formulas in exact arithmetic, and hardly above."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.cheap import _minimise, _row_tops


def test_minimise_and_row_tops_work_at_their_limits():
    assert _minimise(lambda x: x * x, 2.0, 2.0) == 2.0
    assert _minimise(lambda x: (x - 0.3) ** 2, 0.0, 1.0) == pytest.approx(0.3, abs=1e-2)
    rows = np.array([[3.0, 1.0, 2.0]])
    assert sorted(_row_tops(rows, 5)[0]) == [1.0, 2.0, 3.0]
    assert sorted(_row_tops(rows, 2)[0]) == [2.0, 3.0]
