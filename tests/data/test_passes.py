"""Tables that do not fit in memory: what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca

X = np.random.default_rng(0).standard_normal((20, 5))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X[:1], "centring leaves nothing"),
        (X * 1e151, "whose square overflows"),
        (X * 1e-150, "variances underflow"),
    ],
)
def test_fit_in_passes_refuses_values_without_usable_variance(rows, message):
    with pytest.raises(ValueError, match=message):
        sparse_pca(lambda: iter([rows]), n_nonzero_coefs=1, memory_limit=1)
