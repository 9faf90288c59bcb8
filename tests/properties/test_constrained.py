"""Answers with anchors and excluded features against enumeration, and their proofs rechecked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sparcipal.bounds.joint as joint
import sparcipal.bounds.strategy as strategy
from sparcipal import sparse_pca, verify
from sparcipal.bounds.tree.core import prove_large
from tests.support.constrained import constrained


def check(case, result, verdict) -> None:
    best = case.optimum()
    slack = 1e-9 * abs(best) + 1e-13
    assert verdict, verdict.reason
    assert result.value <= best + slack
    assert result.bound >= best - 1e-12 * abs(best)
    used = np.concatenate(result.supports)
    assert not np.isin(used, case.exclude).any()
    if any(case.include):
        taken = [np.union1d(s, own) for s, own in zip(result.supports, case.include)]
        assert all(t.size <= s for t, s in zip(taken, case.sizes))
        assert np.unique(np.concatenate(taken)).size == sum(t.size for t in taken)


@pytest.mark.parametrize("seed", range(40))
def test_one_component_with_constraints_lies_between_value_and_bound(seed):
    case = constrained(seed)
    method = "enumerate" if seed % 5 == 0 else "auto"
    data = {"covariance": case.covariance} if seed % 2 else {"X": case.X}
    result = sparse_pca(**data, **case.keywords, method=method)
    check(case, result, verify(result, **data))
    assert result.value >= case.optimum() * (1 - 1e-6) - 1e-12
    if seed % 20 == 0:
        assert verify(result, **data, arithmetic="exact")


@pytest.mark.parametrize("seed", range(15))
def test_components_with_constraints_are_optimal_and_rechecked(seed):
    case = constrained(seed, k=2)
    result = sparse_pca(case.X, **case.keywords, certify="full" if seed % 5 == 0 else "fast")
    check(case, result, verify(result, case.X))
    assert result.status.value == "optimal"


@pytest.mark.parametrize("seed", range(12))
def test_a_proof_by_prices_holds_for_its_own_anchors_only(seed, monkeypatch):
    monkeypatch.setattr(joint, "EXHAUSTIBLE", {"fast": 0, "full": 0})
    case = constrained(seed + 2000, k=2)
    result = sparse_pca(case.X, **case.keywords)
    check(case, result, verify(result, case.X, arithmetic="exact" if seed % 4 == 0 else "float"))
    if result.certificate.proved_by == "configuration" and any(case.include):
        # the same proof does not hold where other features are the anchors
        other = [[own[0] + 1 if own[0] + 1 < case.X.shape[1] else 0] for own in case.include if own]
        asked = {**result.settings, "include": other + [[]] * (2 - len(other))}
        assert not verify(replace(result, settings=asked), case.X)


@pytest.mark.parametrize("seed", range(24))
def test_a_core_of_few_features_proves_components_with_anchors(seed, monkeypatch):
    monkeypatch.setattr(strategy, "WHOLE", 5)
    small = lambda cov, s, question: prove_large(cov, s, question, first_core=4)  # noqa: E731
    monkeypatch.setattr(strategy, "prove_large", small)
    case = constrained(seed + 1000)
    case = replace(case, X=np.random.default_rng(seed).standard_normal((20, case.X.shape[1])))
    result = sparse_pca(case.X, **case.keywords, certify="full")
    check(case, result, verify(result, case.X))
    assert result.status.value == "optimal"


def test_forged_constraints_are_refused():
    X = np.random.default_rng(3).standard_normal((30, 9)) * np.arange(1, 10)
    plain = sparse_pca(X, n_nonzero_coefs=3, certify="full")
    anchored = sparse_pca(X, n_nonzero_coefs=3, certify="full", include=[0])
    without = sparse_pca(X, n_nonzero_coefs=3, certify="full", exclude=[8])
    assert verify(anchored, X)
    assert verify(without, X)
    assert anchored.value < plain.value
    assert without.value < plain.value

    def said(result, **changes):
        settings = {**result.settings, **changes}
        asked = {name: value for name, value in settings.items() if name not in dropped}
        verdict = verify(replace(result, settings=asked), X)
        assert not verdict
        return verdict.reason

    dropped = ("include", "exclude")
    assert "forces a feature that is free" in said(anchored)
    assert "was left out" in said(without)
    dropped = ()
    member = int(anchored.supports[0][1])
    assert "forces a feature that is free" in said(anchored, include=[[member]])
    assert "excluded" in said(plain, exclude=[8])
    assert "more nonzeros" in said(plain, include=[[0]])
    assert "not there" in said(plain, exclude=[9])
    assert "one list of anchors" in said(plain, include=[[0], [1]])


def test_a_joint_proof_with_anchors_survives_saving(tmp_path):
    from sparcipal import Result

    X = np.random.default_rng(4).standard_normal((50, 12)) @ np.diag(np.linspace(1, 3, 12))
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=[2, 4], include=[[0], [1, 2]])
    assert np.isin(0, result.supports[0])
    result.save(tmp_path / "model.json")
    back = Result.load(tmp_path / "model.json")
    assert back.settings["include"] == [[0], [1, 2]]
    assert verify(back, X)
