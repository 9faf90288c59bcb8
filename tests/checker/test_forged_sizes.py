"""Claims of a few bytes that name large computations: what they cost is known beforehand."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from math import comb

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.checker import enumeration
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question, covariance_of
from sparcipal.checker.family import Case, redone
from tests.support.replay import FLOAT


def enumerated(p: int, *sizes: int, nonnegative: bool = False, budget: Budget) -> float:
    cov = covariance_of(np.diag(np.linspace(1.0, 2.0, p)), 1.0)
    question = Question(sizes, nonnegative, True, 0.0)
    return redone("enumeration", {}, Case(cov, question, FLOAT, budget))


@pytest.mark.parametrize("nonnegative", [False, True])
def test_supports_of_one_component_are_not_kept(monkeypatch, nonnegative):
    """Batch by batch, the answer is that of all at once."""
    whole = enumerated(40, 3, nonnegative=nonnegative, budget=Budget())
    monkeypatch.setattr(enumeration, "BATCH", 500)
    tracemalloc.start()
    found = enumerated(40, 3, nonnegative=nonnegative, budget=Budget())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == whole
    assert found == pytest.approx(2.0)
    assert peak < 100 * comb(40, 3)
    assert enumerated(40, 3, nonnegative=nonnegative, budget=Budget(memory=1e6)) == whole


def test_supports_of_several_components_are_charged():
    assert enumerated(20, 2, 2, budget=Budget()) < 4.0
    with pytest.raises(Refused, match="GiB"):
        enumerated(20, 2, 2, budget=Budget(memory=5e4))
    with pytest.raises(Refused, match="GiB"):
        enumerated(400, 3, 3, budget=Budget())


def test_batches_of_an_enumeration_are_charged_before_they_are_formed():
    with pytest.raises(Refused, match="GiB"):
        enumerated(40, 3, budget=Budget(memory=1e6))


def test_the_matrix_of_a_short_tree_is_charged_before_it_is_formed():
    X = np.random.default_rng(0).standard_normal((5, 3000))
    result = sparse_pca(X, n_nonzero_coefs=1, certify=False)
    log = [
        {
            "step": "problem",
            "s": 1,
            "nonnegative": False,
            "bound": 1e3,
            "unit": 1.0,
            "twins": {},
        },
        {"step": "split", "clip": 0.0},
        {
            "step": "node",
            "parent": -1,
            "side": "root",
            "moved": np.zeros(0, dtype=int),
            "passes": [],
            "end": "closed",
            "split": 1,
        },
    ]
    certificate = result.certificate
    tree = replace(certificate.bounds[0], name="tree", value=1e4, data={"log": log})
    first = replace(certificate.bounds[0], name="trace", data={})
    forged = replace(
        result, certificate=replace(certificate, bounds=(first, tree), bound=first.value)
    )
    said = verify(forged, X, budget=Budget(memory=50 * 2**20))
    assert "3000 x 3000 covariances: the replay needs" in said.reason


def test_thousands_of_components_are_charged():
    X = np.random.default_rng(0).standard_normal((100, 20))
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=1, supports="free")
    k = 3000
    forged = replace(
        result,
        supports=tuple(np.array([j % 20]) for j in range(k)),
        weights=(np.ones(1),) * k,
        variances=np.zeros(k),
        settings={**result.settings, "n_components": k, "n_nonzero_coefs": [1] * k},
    )
    assert "3000 components" in verify(forged, X, budget=Budget(memory=50 * 2**20)).reason


def test_supports_without_number_are_not_counted_first():
    """Binomial coefficients of thousands of digits would take longer than the budget allows."""
    with pytest.raises(Refused, match="all supports: the replay takes inf operations"):
        enumerated(4000, 2000, nonnegative=True, budget=Budget(memory=1e12))
