"""With rounding errors that count 2^16 times as much, on both sides, honest results still pass.

A margin of the solver that is narrower than the checker's shows here; so does one that is missing.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import sparcipal
from sparcipal import sparse_pca, verify
from sparcipal.bounds import cheap as certify
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance_of
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.problem import Problem
from tests.support.margins import matrices
from tests.support.replay import recheck

COARSE = 2.0**-36


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    for folder in ("bounds", "checker", "search"):
        package = importlib.import_module(f"sparcipal.{folder}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    touched = 0
    for name, module in list(sys.modules.items()):
        if name.startswith(sparcipal.__name__) and getattr(module, "EPS", None) == 2.0**-52:
            monkeypatch.setattr(module, "EPS", COARSE)
            touched += 1
    assert touched > 5
    for name in ("eps", "step"):
        monkeypatch.setattr(Float, name, COARSE)


def table(seed: int, n: int = 24, p: int = 9) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.geomspace(2, 0.5, p)
    return X + rng.standard_normal((n, 1)) * (seed % 2)


LAZY = {"method_options": {"effort": 0}}  # of the search: the checker is on trial
QUESTIONS = [
    {"n_nonzero_coefs": 3, "certify": "full"},
    {"n_nonzero_coefs": 4, "certify": "full", "nonnegative": True},
    {"n_nonzero_coefs": 3, "method": "greedy"},
    {"n_nonzero_coefs": 3, "method": "dspca"},
    {"n_components": 2, "n_nonzero_coefs": 3, "certify": "full", **LAZY},
    {"n_components": 2, "n_nonzero_coefs": [3, 2], "certify": "fast", "nonnegative": True, **LAZY},
    {"n_components": 3, "n_nonzero_coefs": {"total": 6}, "certify": "fast", **LAZY},
    {"n_components": 2, "n_nonzero_coefs": 3, "supports": "free", "certify": "fast", **LAZY},
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: "-".join(map(str, q.values())))
def test_verify_accepts_honest_results_when_rounding_is_coarse(question):
    X, given = sp.csr_array(table(1)), np.cov(table(0).T)
    verdict = verify(sparse_pca(X, tol=0.0, scale=True, **question), X)
    assert verdict, verdict.reason
    verdict = verify(sparse_pca(covariance=given, tol=0.0, **question), covariance=given)
    assert verdict, verdict.reason


@pytest.mark.parametrize("supports", ["disjoint", "free"])
def test_verify_accepts_results_in_passes_when_rounding_is_coarse(supports, monkeypatch):
    from sparcipal.data.passes import Stream

    monkeypatch.setattr(Stream, "most", lambda self, needed: 6)
    X = table(1)
    parts = [X[:5], sp.csr_array(X[5:])]
    for data in (X, lambda: iter(parts)):
        asked = {"n_components": 2, "n_nonzero_coefs": 2, "supports": supports}
        result = sparse_pca(data, memory_limit=1, **asked, **LAZY)
        assert result.certificate.screening["dropped"]
        verdict = verify(result, data)
        assert verdict, verdict.reason


def test_cheap_bounds_are_wider_than_the_checkers_when_rounding_is_coarse():
    for A, rng in matrices(10):
        sizes = ((3,), (2, 2), (1, 2, 2))[int(rng.integers(3))]
        X = rng.standard_normal((9, 6))
        given, rows = covariance_of(A), covariance_of_data(X)[0]
        both = [(given, checked_covariance_of(A, given.unit))]
        both.append((rows, checked_covariance_of_data(X, True, False, None, rows.unit)[0]))
        for nonnegative in (False, True):
            question = Question(sizes, nonnegative, True, 0.0)
            for cov, own in both:
                problem = Problem(cov, sizes, nonnegative)
                found = [*certify.cheap_bounds(problem), certify.eigenvalue_bound(problem)]
                for bound in found:
                    again = recheck(bound.name, bound.data, own, question)
                    assert again <= bound.value * (1 + 1e-14)
                    assert bound.value <= again * (1 + 1e-6)


def test_proved_eigenvalue_sums_factor_below_their_claim_by_the_whole_margin(monkeypatch):
    """The level that is factored lies below the one that is claimed, by the whole margin."""
    seen = []
    monkeypatch.setattr(certify, "factorises", lambda B: seen.append(B.copy()) or True)
    for A, _ in matrices(5):
        w, Q = np.linalg.eigh(A)
        for k in (1, 2, 4):
            claim = certify._ky_fan_by_cholesky(A, k, w[6 - k :], Q[:, 6 - k :])
            lift = w[6 - k :] - w[6 - k]
            Z = (Q[:, 6 - k :] * lift) @ Q[:, 6 - k :].T
            level = (seen[-1] + A - Z)[0, 0]
            size = np.abs(np.diagonal(Z - A)).sum() + 6 * abs(w[6 - k]) + lift.sum() + lift.max()
            delta = 2 * (6 + k + 4) * COARSE * size
            due = k * (level + (1 + certify.SAFETY) * delta)
            due += lift.sum() * (1 + (6 + k) * COARSE)
            assert claim >= due * (1 - 1e-13)
            assert level >= w[6 - k] + 2 * delta * (1 - 1e-3)
        whole = certify.proved_eigenvalue_sum(A, 6)
        assert whole >= np.trace(A) * (1 + 24 * COARSE * (1 - 1e-3))
        blocks = A[None, :3, :3]
        tops = np.linalg.eigvalsh(blocks)[:, -1]
        size = np.trace(A[:3, :3]) + 4 * tops
        assert certify.proved_margins(blocks, tops) >= 3 * 2 * 7 * COARSE * size * (1 - 1e-9)
