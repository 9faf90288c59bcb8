"""Parquet files."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import read


def test_parquet_is_read_whole_when_rows_have_labels(tmp_path):
    """Labels of rows are not in the blocks: such a file is read whole."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]}, index=["x", "y", "z"])
    frame.to_parquet(tmp_path / "x.parquet")
    table = read(tmp_path / "x.parquet", cache=tmp_path / "kept", memory_limit=10)
    np.testing.assert_array_equal(table.X, frame.to_numpy())
    assert table.sample_names == ("x", "y", "z")
    assert table.feature_names == ("a", "b")
