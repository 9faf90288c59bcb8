"""EM as a method."""

from __future__ import annotations

import numpy as np

from sparcipal.search.methods.em import soft_truncate


def test_soft_truncate_keeps_everything_when_there_is_room():
    Y = np.array([[3.0], [-1.0], [2.0]])
    np.testing.assert_allclose(soft_truncate(Y, 3, False), Y / np.linalg.norm(Y))
    cut = soft_truncate(Y, 2, False)
    np.testing.assert_allclose(cut[:, 0] / np.linalg.norm(cut), [2 / 5**0.5, 0.0, 1 / 5**0.5])
