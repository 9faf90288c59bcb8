"""The best nonnegative weights on a support."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.problem import nonnegative


def test_nonnegative_leading_climbs_to_the_best_part_when_there_are_many(monkeypatch):
    """The climb reaches what enumeration of all parts finds."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        Y = rng.standard_normal((12, 8))
        A = Y.T @ Y
        best = nonnegative._best_part(A)
        with monkeypatch.context() as patch:
            patch.setattr(nonnegative, "EXHAUSTIVE", 3)
            x = nonnegative.nonnegative_leading(A, np.full(8, 8**-0.5))
        assert (x >= 0).all()
        assert np.linalg.norm(x) == pytest.approx(1.0)
        assert x @ A @ x == pytest.approx(best @ A @ best, rel=1e-6)


def test_no_weights_near_those_of_a_climb_are_better():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        F = rng.standard_normal((7, 15)) + 0.3
        A = F.T @ F
        x = nonnegative.nonnegative_leading(A)
        value = float(x @ A @ x)
        rest = A @ x - value * x
        assert np.linalg.norm(np.where(x > 0, rest, np.maximum(rest, 0.0))) <= 1e-13 * value
