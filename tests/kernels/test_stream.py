"""Sums over stored entries, and indices outside the table."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.kernels import stream

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize(("indices", "where"), [([0, 1, 3], 2), ([0, -1, 1], 1), ([2, 1, 0], -1)])
def test_add_entries_stops_at_an_index_outside_the_table(indices, where):
    table = np.zeros((3, 5))
    found = stream.add_entries(np.array(indices), np.ones(3), table, 1.0)
    assert found == where
    assert table[:, 0].sum() == (3.0 if where < 0 else float(where))
