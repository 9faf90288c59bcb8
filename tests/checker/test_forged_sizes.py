"""Claims of a few bytes that name large computations: what they cost is known beforehand."""

from __future__ import annotations

import tracemalloc
from math import comb

import numpy as np
import pytest

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


def test_batches_are_charged():
    with pytest.raises(Refused, match="GiB"):
        enumerated(40, 3, budget=Budget(memory=1e6))
