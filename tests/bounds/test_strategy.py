"""Which bounds are tried, and in which order."""

from __future__ import annotations

import numpy as np

from sparcipal import sparse_pca, verify
from sparcipal.bounds import joint, strategy


def test_few_samples_and_many_nonzeros_are_proved_without_a_core():
    X = np.random.default_rng(0).standard_normal((4, 500))
    result = sparse_pca(X, n_nonzero_coefs=60)
    names = [bound.name for bound in result.certificate.bounds]
    assert result.status == "optimal"
    assert "lowrank" in names
    assert "tree" not in names
    assert verify(result, X).verdict == "proved"


def test_few_samples_and_few_nonzeros_are_proved_by_a_tree():
    X = np.random.default_rng(0).standard_normal((4, 500))
    names = [bound.name for bound in sparse_pca(X, n_nonzero_coefs=3).certificate.bounds]
    assert "tree" in names


def test_one_component_is_clipped_by_its_tree_alone_unless_there_is_none():
    X = np.random.default_rng(0).standard_normal((30, 9))
    for certify, more in (("fast", "tree"), (False, "clip")):
        bounds = sparse_pca(X, n_nonzero_coefs=3, certify=certify).certificate.bounds
        assert {bound.name for bound in bounds} & {"tree", "clip"} == {more}


def test_no_bound_is_tried_after_one_that_closes_the_gap():
    result = sparse_pca(covariance=np.diag([3.0, 2.0, 1.0]), n_nonzero_coefs=2)
    assert result.status == "optimal"
    assert "eigenvalues" not in [bound.name for bound in result.certificate.bounds]


def test_a_full_proof_against_a_clock_begins_with_what_the_default_proves():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 46)) @ rng.standard_normal((46, 46))
    asked = {"n_components": 2, "n_nonzero_coefs": 21, "tol": 0.06, "method_options": {"effort": 0}}
    default = sparse_pca(X, **asked)
    assert default.status == "optimal"
    limited = sparse_pca(X, **asked, certify="full", time_limit=1000)
    assert limited.bound == default.bound
    assert sparse_pca(X, **asked, certify="full").bound != default.bound


def test_one_meter_limits_all_parts_of_the_default_proof(monkeypatch):
    X = np.random.default_rng(0).standard_normal((20, 410))
    names = []
    for work in (1e6, 6e8):
        monkeypatch.setattr(strategy, "WORK", work)
        result = sparse_pca(X, n_nonzero_coefs=31)
        assert verify(result, X)
        names.append({bound.name for bound in result.certificate.bounds})
    assert "lowrank" not in names[0]
    assert names[1] & {"lowrank", "ellipsoid"}


def test_after_a_stop_only_bounds_of_a_moment_are_tried(monkeypatch):
    X = np.random.default_rng(0).standard_normal((30, 60))
    X[:, :20] += np.random.default_rng(1).standard_normal((30, 1))
    asked = {"n_components": 2, "n_nonzero_coefs": 6, "callback": lambda progress: True}

    def tried():
        result = sparse_pca(X, **asked)
        assert result.status == "interrupted"
        assert verify(result, X).verdict == "proved"
        return {bound.name for bound in result.certificate.bounds}

    assert "kyfan" in tried()
    monkeypatch.setattr(joint, "HASTY", 11)
    assert "kyfan" not in tried()


def test_prices_get_what_the_account_of_the_default_leaves(monkeypatch):
    X = np.random.default_rng(3).standard_normal((50, 30))
    X[:, :15] += np.random.default_rng(1).standard_normal((50, 1))
    asked = {"n_components": 3, "n_nonzero_coefs": 7, "method_options": {"effort": 0}}
    works = []

    def configuration_bound(question, start, *, again, work, monitor, n_jobs):
        works.append(work)

    monkeypatch.setattr(joint, "configuration_bound", configuration_bound)
    for account in (joint.WORK, 0.3 * joint.WORK, 0.0):
        monkeypatch.setattr(joint, "WORK", account)
        sparse_pca(X, **asked)
    assert works[0] == joint.BRANCHING[1] > works[1] > joint.BRANCHING[0]
    assert len(works) == 2


def test_one_component_among_features_that_are_alike_is_bounded_by_all_their_rows(monkeypatch):
    """No core of a tree is small enough there; rows of all features prove something."""
    X = np.random.default_rng(0).standard_normal((60, 900))
    monkeypatch.setattr(strategy, "HARDLY", 1e-3)
    monkeypatch.setattr(strategy, "_prove_one", lambda problem, proved, *more: proved)
    result = sparse_pca(X, n_nonzero_coefs=3)
    best = min(result.certificate.bounds, key=lambda bound: bound.value)
    assert best.name == "kyfan"
    assert verify(result, X).verdict == "proved"


def test_bounds_of_large_matrices_are_not_tried_where_there_is_no_room(monkeypatch):
    """The sketch holds four matrices of all features, the ellipsoid six of the table."""
    X = np.random.default_rng(0).standard_normal((60, 500))
    held = X.nbytes + 8 * 500**2
    monkeypatch.setattr(strategy, "_prove_one", lambda problem, proved, *more: proved)
    tried = {}
    for limit in (X.nbytes + held, 10 * held):
        asked = tried[limit] = set()
        for name in ("low_rank_bound", "ellipsoid_bound"):
            monkeypatch.setattr(strategy, name, lambda *a, n=name, own=asked, **k: own.add(n))
        result = sparse_pca(X, n_nonzero_coefs=3, memory_limit=limit)
        assert not result.certificate.screening
    assert list(tried.values()) == [set(), {"low_rank_bound", "ellipsoid_bound"}]
