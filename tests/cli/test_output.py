"""Results on stdout."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from sparcipal import Result, sparse_pca
from sparcipal.cli import output

X = np.random.default_rng(0).standard_normal((20, 5))


@pytest.fixture(scope="module")
def result() -> Result:
    return sparse_pca(X, n_nonzero_coefs=2)


def test_print_result_has_colours_on_a_terminal_only(result, monkeypatch, capsys):
    output.print_result(result, "table")
    plain = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output.print_result(result, "table")
    drawn = capsys.readouterr().out
    for name in result.names(0):
        assert name in plain
        assert name in drawn
    assert plain != drawn
