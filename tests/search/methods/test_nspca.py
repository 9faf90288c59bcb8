"""NSPCA as a method."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca

rng = np.random.default_rng(0)


X = rng.standard_normal((30, 8))


def test_nspca_refuses_wide_tables_and_no_coupling():
    wide = np.random.default_rng(1).standard_normal((4, 3001))
    with pytest.raises(ValueError, match="full matrix of up to 3000 features, got 3001"):
        sparse_pca(wide, n_nonzero_coefs=2, method="nspca", nonnegative=True)
    with pytest.raises(ValueError, match=r"coupling=0\.0 must be positive"):
        sparse_pca(
            X, n_nonzero_coefs=2, method="nspca", nonnegative=True, method_options={"coupling": 0.0}
        )
