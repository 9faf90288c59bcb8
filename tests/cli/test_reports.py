"""Commands that write a report put into it what they have computed."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from sparcipal.cli import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(30, 5)) * [3, 2, 2, 1, 1]
    kinds = ("<b>old</b>", "new")
    rows = (f"{','.join(map(repr, row))},{kinds[i % 2]}" for i, row in enumerate(X.tolist()))
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,e,kind", *rows]) + "\n")
    return tmp_path


def page(folder, *words: str) -> str:
    done = CliRunner().invoke(main, [*words, "-q", "--certify", "none", "--report", "r.html"])
    assert done.exit_code == 0, done.output
    return (folder / "r.html").read_text(encoding="utf-8")


def test_fit_command_reports_samples_by_label_and_source(folder):
    text = page(folder, "fit", "t.csv", "-k", "2", "-s", "2", "--label", "kind")
    assert "Two components of t.csv" in text
    assert "&lt;b&gt;old&lt;/b&gt;</button>" in text
    assert "sparcipal fit t.csv -k 2 -s 2 --certify none --label kind" in text
    assert "read(&#x27;t.csv&#x27;, label=&#x27;kind&#x27;)" in text
    assert "bytes, changed 20" in text


def test_path_command_reports_the_path(folder):
    text = page(folder, "path", "t.csv", "-s", "1:3")
    assert '<svg class="path"' in text
    assert "at most 3 nonzeros" in text


def test_choose_command_reports_the_map(folder):
    few = ["--folds", "2", "--permutations", "0"]
    text = page(folder, "choose", "t.csv", "-K", "1:2", "-S", "1:2", *few)
    assert 'class="spc-best"' in text
