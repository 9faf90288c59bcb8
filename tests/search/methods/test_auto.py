"""The portfolio."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.monitor import Monitor
from sparcipal.problem.problem import Options, Problem
from sparcipal.search.methods import auto

rng = np.random.default_rng(0)


X = rng.standard_normal((30, 8))


A = X.T @ X / 30


def test_without_empty_gives_every_component_a_feature():
    cov = covariance_of(np.diag([3.0, 2.0, 1.0]))
    made = auto._without_empty([np.array([0, 2]), np.array([], dtype=int)], cov)
    assert [part.tolist() for part in made] == [[0], [2]]


@pytest.mark.parametrize("nonnegative", [False, True])
def test_auto_takes_in_features_from_outside_its_working_set(nonnegative, monkeypatch):
    """A working set of few features is widened until no exchange promises a gain."""
    monkeypatch.setattr(auto, "ALL_FEATURES", 20)
    monkeypatch.setattr(auto, "WORKING_SET", 12)
    table = np.random.default_rng(4).standard_normal((30, 30))
    table[:, 20:24] += 1.2 * np.random.default_rng(5).standard_normal((30, 1))
    whole = {"n_components": 2, "n_nonzero_coefs": 3, "nonnegative": nonnegative, "certify": False}
    whole["method_options"] = {"effort": 1}
    narrow = sparse_pca(table, **whole)
    monkeypatch.undo()
    assert narrow.value >= 0.97 * sparse_pca(table, **whole).value


def test_auto_shares_a_total_in_a_working_set(monkeypatch):
    monkeypatch.setattr(auto, "ALL_FEATURES", 20)
    monkeypatch.setattr(auto, "WORKING_SET", 10)
    table = np.random.default_rng(6).standard_normal((30, 26))
    few = sparse_pca(table, n_components=2, n_nonzero_coefs={"total": 5}, certify=False)
    assert sum(s.size for s in few.supports) <= 5
    monkeypatch.undo()
    full = sparse_pca(table, n_components=2, n_nonzero_coefs={"total": 5}, certify=False)
    assert few.value >= 0.9 * full.value


def test_auto_returns_what_it_has_when_it_is_stopped():
    stopped = Monitor(callback=lambda progress: True)
    stopped.update("search")
    options = Options(monitor=stopped)
    problem = Problem(covariance_of(A), (3, 3), supports="free", objective="adjusted")
    found = auto.run(problem, options)
    assert len(found.components) == 2
