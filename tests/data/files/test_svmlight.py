"""svmlight files in blocks of lines."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import read
from sparcipal.data.files import bytes as source
from sparcipal.data.files import spill
from sparcipal.data.rows import memory_map


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(source, "LINES", 20)
    monkeypatch.setattr(spill, "CHUNK", 4)


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.usefixtures("small_blocks")
def test_svmlight_lines_may_be_longer_than_a_block(tmp_path):
    """A line may be longer than what is read together; the last one need not end."""
    long = "1 " + " ".join(f"{j}:{j}.5" for j in range(1, 12))
    path = written(tmp_path / "x.svmlight", f"0 1:2\n{long}\n0 3:4")
    whole, parts = read(path, cache=False), read(path, cache=tmp_path / "kept")
    assert memory_map(parts.X) is not None
    np.testing.assert_array_equal(parts.X.toarray(), whole.X.toarray())
    assert whole.X[1, 10] == 11.5
    assert whole.X[2, 2] == 4.0


@pytest.mark.usefixtures("small_blocks")
def test_svmlight_counts_samples_without_entries_and_skips_comments(tmp_path):
    path = written(tmp_path / "x.svmlight", "0\n0\n0\n0\n0\n1 2:3\n" + "# nothing here\n" * 5)
    whole, parts = read(path, cache=False), read(path, cache=tmp_path / "kept")
    np.testing.assert_array_equal(parts.X.toarray(), whole.X.toarray())
    assert whole.shape == (6, 2)


@pytest.mark.usefixtures("small_blocks")
def test_svmlight_takes_names_and_refuses_widths_that_are_too_small(tmp_path):
    path = written(tmp_path / "x.svmlight", "0 1:2 3:1\n1 2:1\n")
    named = read(path, cache=tmp_path / "kept", feature_names=["a", "b", "c", "d"])
    assert named.shape == (2, 4)
    assert named.feature_names == ("a", "b", "c", "d")
    for folder in (False, tmp_path / "kept"):
        with pytest.raises(ValueError, match=r"n_features(=| was set to )2"):
            read(path, cache=folder, n_features=2)
    empty = written(tmp_path / "empty.svmlight", "# nothing\n# at all\n")
    with pytest.raises(ValueError, match="0 sample"):
        read(empty, cache=tmp_path / "kept")
