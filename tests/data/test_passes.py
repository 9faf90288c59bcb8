"""Tables that do not fit in memory: what is refused, and when blocks are the table."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import sparse_pca
from sparcipal.data.passes import source_of
from sparcipal.problem.monitor import Monitor

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


def test_source_of_sparse_blocks_that_fit_is_the_table():
    S = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    table = source_of(lambda: iter([S[:9], S[9:]]), None, 1 << 20, Monitor())
    np.testing.assert_array_equal(table.X.toarray(), S.toarray())
    whole = sparse_pca(S, n_nonzero_coefs=2)
    blocks = sparse_pca(lambda: iter([S[:9], S[9:].toarray()]), n_nonzero_coefs=2)
    assert blocks.value == pytest.approx(whole.value, rel=1e-12)
