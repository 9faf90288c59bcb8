"""Numbers that float64 rounds, and what is no table of numbers, are refused as the solver does."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sparcipal import sparse_pca, verify
from sparcipal.checker.tables import matrix_of

LONG = 2**60 + np.arange(36).reshape(12, 3) % 7
EXTENDED = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps


def refused(given, match, arithmetic="float"):
    """Both the solver and the checker refuse these rows."""
    result = sparse_pca(np.random.default_rng(0).standard_normal((12, 3)), n_nonzero_coefs=1)
    with pytest.raises(ValueError, match=match):
        sparse_pca(given, n_nonzero_coefs=1)
    with pytest.raises(ValueError, match=match):
        verify(result, given, arithmetic=arithmetic)


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
@pytest.mark.parametrize(
    "given",
    [
        LONG,
        -LONG,
        LONG.astype(np.uint64),
        LONG.astype(object),
        sp.csr_array(LONG),
        pd.DataFrame(LONG, columns=list("abc")),
        pd.DataFrame({"a": LONG[:, 0], "b": np.linspace(0, 1, 12), "c": np.arange(12)}),
        pd.DataFrame(LONG, columns=list("abc")).astype("Int64"),
    ],
    ids=["int64", "negative", "uint64", "object", "sparse", "frame", "mixed", "nullable"],
)
def test_tables_refuse_integers_beyond_float64(given, arithmetic):
    if arithmetic == "exact":
        pytest.importorskip("flint")
    refused(given, r"beyond 2\*\*53", arithmetic)


@pytest.mark.skipif(not EXTENDED, reason="long doubles are doubles here")
def test_tables_take_long_doubles_only_when_float64_holds_them():
    exact = np.arange(36, dtype=np.longdouble).reshape(12, 3)
    refused(exact + np.longdouble(2) ** -60, "float64")
    assert matrix_of(exact).dtype == np.float64


def test_tables_refuse_masked_and_complex_entries():
    X = np.random.default_rng(0).standard_normal((12, 3))
    refused(np.ma.masked_array(X, mask=np.eye(12, 3, dtype=bool)), "masked")
    refused(X + 0j, "[Cc]omplex")
    result = sparse_pca(X, n_nonzero_coefs=1)
    assert verify(result, np.ma.masked_array(X))


def test_tables_take_numbers_of_python():
    given = np.array([[Decimal("0.5"), Fraction(1, 4)], [2**53, True]], dtype=object)
    assert matrix_of(given).tolist() == [[0.5, 0.25], [2.0**53, 1.0]]
    with pytest.raises(ValueError, match="not a real number"):
        matrix_of(np.array([["1", 2.0]], dtype=object))


C = np.cov(np.random.default_rng(0).standard_normal((12, 3)).T)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (np.ma.masked_array(C, mask=np.eye(3, dtype=bool)), "masked"),
        (C + 1j, "complex"),
        (C + np.triu(np.ones((3, 3)), 1), "symmetric"),
        (2**60 + np.eye(3, dtype=np.int64), "float64"),
    ],
    ids=["masked", "complex", "skew", "integers"],
)
def test_tables_refuse_covariances_that_are_none(given, match):
    result = sparse_pca(covariance=C, n_nonzero_coefs=1)
    with pytest.raises(ValueError, match=match):
        sparse_pca(covariance=given, n_nonzero_coefs=1)
    with pytest.raises(ValueError, match=match):
        verify(result, covariance=given)


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_tables_refuse_weights_whose_moments_underflow(arithmetic):
    if arithmetic == "exact":
        pytest.importorskip("flint")
    X = np.array([[1.0, 0, 1], [1, 1, 0], [1, 2, 5], [1 + 1e-15, 0, 1]])
    light = np.array([1.0, 1, 1, 1e-101])
    asked = {"n_components": 3, "n_nonzero_coefs": 1, "scale": True}
    with pytest.raises(ValueError, match="set such weights to zero"):
        sparse_pca(X, sample_weight=light, **asked)
    result = sparse_pca(X, sample_weight=10 * light + [1, 1, 1, 1e-99], **asked)
    with pytest.raises(ValueError, match="set them to zero"):
        verify(result, X, sample_weight=light, arithmetic=arithmetic)


@pytest.mark.parametrize("light", [1e-9, 1e-40, 1e-99])
@pytest.mark.parametrize("table", [np.array, sp.csr_array])
@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e300])
def test_a_column_that_varies_in_a_row_of_little_weight_has_its_exact_scale(light, table, unit):
    X = np.array([[0.1, 0, 1], [0.1, 1, 0], [0.1, 2, 5], [0.3, 0, 1]])
    weights = unit * np.array([1.0, 1.0, 1.0, light])
    asked = {"n_components": 3, "n_nonzero_coefs": 1, "scale": True}
    result = sparse_pca(table(X), sample_weight=weights, **asked)
    w, x = [Fraction(v) for v in weights], [Fraction(v) for v in X[:, 0]]
    mean = sum(a * b for a, b in zip(w, x)) / sum(w)
    variance = sum(a * (b - mean) ** 2 for a, b in zip(w, x)) / sum(w)
    assert result.scale[0] == pytest.approx(float(variance) ** 0.5, rel=1e-14)
    assert result.value == pytest.approx(3.0)
    assert verify(result, table(X), sample_weight=weights)


def test_verify_takes_every_container_that_the_solver_takes():
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    duplicated = sp.csc_array(
        (np.array([1.0, 2, 3, 5]), np.array([0, 0, 0, 1]), np.array([0, 2, 4])), shape=(2, 2)
    )
    tables = [
        pa.table({"a": [1.0, 2, 4], "b": [1.0, 0, 1]}),
        pd.DataFrame({"a": [1, 2, 5], "b": [True, False, True]}),
        pd.DataFrame({"a": [1, 2, 5], "b": [4, 4, 1]}, dtype="Int64"),
        np.array([[1, 2.0], [3, 5]], dtype=object),
        sp.lil_array(np.array([[1.0, 2], [3, 5]])),
        sp.dok_array(np.array([[1.0, 2], [3, 5]])),
        duplicated,
    ]
    for table in tables:
        result = sparse_pca(table, n_nonzero_coefs=1)
        verdict = verify(result, table)
        assert verdict, (type(table), verdict.reason)


def test_names_are_those_of_the_fit_where_labels_are_empty():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).standard_normal((20, 4))
    frame = pd.DataFrame(X, columns=["", "b", " ", "d"])
    result = sparse_pca(frame, n_nonzero_coefs=2)
    assert result.feature_names == ("column 1", "b", "column 3", "d")
    assert verify(result, frame)
