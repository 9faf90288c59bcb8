"""Opening files: times in words, names, pipes and paths that are not there."""

from __future__ import annotations

import os
import threading

import pytest

from sparcipal import read
from sparcipal.data.files import bytes as source
from sparcipal.data.files.bytes import read_names


def test_time_words_choose_the_unit():
    assert [source.time_words(s) for s in (3, 600, 7200)] == ["3 s", "10 min", "2.0 h"]


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_read_refuses_a_path_that_is_not_there(tmp_path):
    for format in (None, "csv"):
        with pytest.raises(ValueError, match="no such file or folder"):
            read(tmp_path / "nothing.csv", format=format)


def test_read_names_end_with_the_last_that_is_not_empty(tmp_path):
    path = written(tmp_path / "names.txt", "a\n\nb\n\n\n")
    assert read_names(path) == ("a", "", "b")


def test_progress_of_a_pipe_has_no_total(tmp_path, monkeypatch):
    """How much is still to come is unknown; what has come is told."""
    monkeypatch.setattr(source, "TELL", 0.0)
    fifo = tmp_path / "x.csv"
    os.mkfifo(fifo)
    content = b"a,b\n" + b"1,2\n3,5\n" * 50
    writer = threading.Thread(target=lambda: fifo.write_bytes(content))
    writer.start()
    told = []
    table = read(fifo, format="csv", callback=lambda progress: told.append(progress))
    writer.join()
    assert table.X.sum() == 550.0
    assert told[-1].total is None
    assert told[-1].done == len(content)
    assert told[-1].message == "x.csv: 404 bytes"
