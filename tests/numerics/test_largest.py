"""The largest entries of rows, at the limits of their count."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.numerics.largest import magnitudes, row_tops


@pytest.mark.parametrize(("count", "expected"), [(0, []), (2, [2.0, 3.0]), (5, [1.0, 2.0, 3.0])])
def test_row_tops_holds_at_the_limits_of_the_count(count, expected):
    assert sorted(row_tops(np.array([[3.0, 1.0, 2.0]]), count)[0]) == expected


def test_magnitudes_count_only_positive_entries_for_nonnegative_weights():
    entries = np.array([-2.0, 3.0])
    assert magnitudes(entries, False).tolist() == [2.0, 3.0]
    assert magnitudes(entries, True).tolist() == [0.0, 3.0]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_row_tops_of_long_rows_are_those_of_a_sort(kind):
    rng = np.random.default_rng(0)
    for count in (1, 2, 7, 12):
        rows = rng.integers(-3, 4, (5, 500)) * rng.standard_normal((5, 500))  # many ties at zero
        rows[0], rows[1, 3] = -1.0, np.inf
        rows = np.asfortranarray(rows, dtype=kind)
        found = row_tops(rows, count)
        assert found.dtype == kind
        np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(rows, axis=1)[:, -count:])
