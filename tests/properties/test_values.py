"""Optima known by full enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from tests.support.places import data_file

PITPROPS = dict(
    enumerate(
        [
            1.954,
            2.4753313532,
            2.9374789467,
            3.4061549468,
            3.7709595523,
            3.9961896449,
            4.0686073272,
            4.1386469071,
            4.1726376616,
            4.2082759543,
            4.2182451865,
        ],
        start=2,
    )
)
WINE = {5: 3.4397787195, 10: 4.5942934260}
WINE_NONNEGATIVE = {5: 3.4366317375, 7: 3.8022497602, 9: 3.9157838739, 12: 3.9157838739}
JOINT = [
    ("pitprops", 2, 5, 5.7103580547),
    ("pitprops", 4, 3, 8.3326755277),
    ("pitprops", 6, 2, 9.74),
    ("wine", 4, 3, 8.1155280849),
    ("wine", 5, 2, 8.0479900000),
]


def matrix(name: str) -> np.ndarray:
    if name == "pitprops":
        rows = data_file("pitprops.csv").read_text().splitlines()
        cells = [row.split(",") for row in rows]
        numbers = [[float(c) for c in row[-13:]] for row in cells if _numeric(row[-1])]
        return np.array(numbers)
    return np.load(data_file("benchmark_correlations.npz"))[name]


def _numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("s", PITPROPS)
def test_pitprops_has_its_known_optima(s):
    A = matrix("pitprops")
    for method in ("auto", "enumerate"):
        result = sparse_pca(covariance=A, n_nonzero_coefs=s, method=method)
        assert result.value == pytest.approx(PITPROPS[s], abs=1e-9)
        assert result.status == "optimal"
        assert verify(result, covariance=A)


@pytest.mark.parametrize("s", range(2, 13))
def test_pitprops_has_its_known_nonnegative_optima(s):
    A = matrix("pitprops")
    result = sparse_pca(covariance=A, n_nonzero_coefs=s, nonnegative=True)
    expected = PITPROPS[s] if s <= 9 else 4.1441106786
    assert result.value == pytest.approx(expected, abs=1e-9)
    assert (result.components >= 0).all()
    assert result.bound >= result.value


@pytest.mark.parametrize("s", WINE)
def test_wine_has_its_known_optima(s):
    result = sparse_pca(covariance=matrix("wine"), n_nonzero_coefs=s)
    assert result.value == pytest.approx(WINE[s], abs=1e-9)
    assert result.status == "optimal"


@pytest.mark.parametrize("s", WINE_NONNEGATIVE)
def test_wine_has_its_known_nonnegative_optima(s):
    result = sparse_pca(covariance=matrix("wine"), n_nonzero_coefs=s, nonnegative=True)
    assert result.value == pytest.approx(WINE_NONNEGATIVE[s], abs=1e-9)


@pytest.mark.parametrize(("name", "k", "s", "value"), JOINT)
def test_joint_optima_have_their_known_values(name, k, s, value):
    A = matrix(name)
    result = sparse_pca(covariance=A, n_components=k, n_nonzero_coefs=s)
    assert result.value == pytest.approx(value, abs=1e-9)
    assert result.status == "optimal"
    assert verify(result, covariance=A)
