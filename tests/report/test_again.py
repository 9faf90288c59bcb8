"""What a report says to type gives the same answer."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from click.testing import CliRunner

from sparcipal import Result, read, sparse_pca
from sparcipal.cli import main
from sparcipal.report import again

QUESTIONS = [
    ["-k", "2", "-s", "3,2", "--scale", "--certify", "none"],
    ["-s", "2", "--no-center", "--nonnegative", "--seed", "3", "--tol", "0.001"],
    ["-k", "2", "--nonzero-total", "5", "--exclude", "c", "--method", "auto"],
    ["-k", "2", "-s", "2", "--include", "a,b", "--include", "f"],
    ["-k", "2", "-s", "3", "--supports", "common", "--certify", "none"],
    ["-k", "2", "-s", "3", "--objective", "adjusted", "--certify", "none"],
]


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(30, 6)) * [3, 2, 2, 1, 1, 1]
    lines = ["a,b,c,d,e,f", *(",".join(map(repr, row)) for row in X.tolist())]
    (tmp_path / "my table.csv").write_text("\n".join(lines) + "\n")
    return "my table.csv"


def fitted(*options: str) -> Result:
    done = CliRunner().invoke(main, [*options, "--quiet", "--out", "model.json"])
    assert done.exit_code == 0, done.output
    return Result.load("model.json")


@pytest.mark.parametrize("options", QUESTIONS)
def test_the_command_and_the_lines_of_python_give_the_answer_again(table, options):
    result = fitted("fit", table, *options)
    name, *parts = shlex.split(again.command(result) or "")
    assert name == "sparcipal"
    assert fitted(*parts).to_json(proof=False) == result.to_json(proof=False)
    found: dict = {}
    exec(again.python_lines(result), found)
    assert found["result"].value == result.value
    assert found["result"].settings == result.settings


def test_features_are_named_in_both(table):
    result = sparse_pca(
        read(table), n_components=2, n_nonzero_coefs=2, include=[[0, 1], [5]], exclude=["c"]
    )
    assert "include=[['a', 'b'], ['f']], exclude=['c']" in again.python_lines(result)
    assert "--include a,b --include f --exclude c" in (again.command(result) or "")
    plain = sparse_pca(np.eye(4) * [4, 3, 2, 1], n_nonzero_coefs=2, exclude=[0])
    assert "exclude=[0]" in again.python_lines(plain)


def test_a_covariance_is_read_as_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", np.diag([3.0, 2.0, 1.0]))
    result = fitted("fit", "A.npy", "--covariance", "-s", "1")
    assert again.command(result) == "sparcipal fit A.npy --covariance -s 1"
    found: dict = {}
    exec(again.python_lines(result), found)
    assert found["result"].value == result.value


def test_what_only_python_can_ask_has_no_command(table):
    result = sparse_pca(read(table), n_nonzero_coefs=2, method_options={"effort": 0})
    assert again.command(result) is None
    assert "method_options={'effort': 0}" in again.python_lines(result)
    weighted = sparse_pca(read(table), n_nonzero_coefs=2, sample_weight=np.ones(30))
    assert again.command(weighted) is None
    assert "sample_weight=weights" in again.python_lines(weighted)


def test_how_documents_were_counted_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("red fox fox\nfox owl\nowl red cat\ncat cat red\n")
    result = fitted("fit", "t.txt", "-s", "2", "--ngrams", "2", "--stop-words", "none")
    assert "--ngrams 2" in (again.command(result) or "")
    found: dict = {}
    exec(again.python_lines(result), found)
    assert found["result"].value == result.value
