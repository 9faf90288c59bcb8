"""CSV files."""

from __future__ import annotations

import threading

import pytest

from sparcipal import read


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_csv_tells_decimal_commas_from_separators(tmp_path):
    path = written(tmp_path / "x.csv", "a;b\n1,5;2\n3;4,25\n")
    with pytest.raises(ValueError, match="line 2: '1,5', column 1 has a decimal comma"):
        read(path)
    plain = written(tmp_path / "y.csv", "a;x,b\n1,2\n3,4\n")
    assert read(plain).feature_names == ("a;x", "b")


def test_csv_read_in_threads_gives_the_same(tmp_path):
    path = written(tmp_path / "x.csv", "a,b\n" + "1,2\n3,5\n" * 50)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(read(path, cache=tmp_path / "kept").X.sum()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [550.0] * 4
