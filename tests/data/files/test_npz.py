"""Archives of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import read
from sparcipal.data.files import bytes as source


def test_npz_refuses_archives_that_unpack_to_much_more(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "LARGE", 1000)
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((1000, 100)))
    with pytest.raises(ValueError, match=r"more than \d+ times their size"):
        read(tmp_path / "x.npz")


@pytest.mark.parametrize("names", [["a"], [1.0, 2.0], [["a", "b"]]])
def test_npz_names_are_none_when_they_do_not_fit(tmp_path, names):
    X = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "x.npz", X=X, feature_names=np.array(names))
    assert read(tmp_path / "x.npz").feature_names is None
    np.savez(tmp_path / "y.npz", X=X, feature_names=np.array(["a", "b"]))
    assert read(tmp_path / "y.npz").feature_names == ("a", "b")
