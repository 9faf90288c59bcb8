"""The bound "adjusted", redone: the checker needs no more room than the solver has left."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.bounds.adjusted.bound import proved_eigenvalues
from sparcipal.checker.adjusted import eigenvalues_one_by_one
from tests.support.replay import FLOAT


@pytest.mark.parametrize("n", [5, 60, 500])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_eigenvalues_are_proved_within_what_was_claimed(n, rank):
    """Also where one eigenvalue is most of the trace, so that n of it are many traces."""
    rng = np.random.default_rng(n + rank)
    Y = rng.standard_normal((n, rank)) * np.geomspace(3, 1, rank)
    A, k = Y @ Y.T, min(rank + 1, 3)
    claimed, own = proved_eigenvalues(A, k), eigenvalues_one_by_one(A, k, FLOAT)
    true = np.linalg.eigvalsh(A)[::-1][:k]
    assert claimed is not None
    assert (np.array(own) <= claimed).all()
    assert (np.array(own) >= true).all()
    assert np.array(own)[0] <= true[0] * (1 + 1e-8)
