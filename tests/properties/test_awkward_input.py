"""Input that once broke something: wild units, ties, zero weights, odd containers, forgeries."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Result, SparsePCA, Status, sparse_pca, verify
from tests.support.brute import best_value

rng = np.random.default_rng(0)
a = rng.standard_normal(20)
b = a + 0.1 * rng.standard_normal(20)


@pytest.mark.parametrize("units", [(1, 1e-170), (1e100, 1e-100), (1e12, 1e-150), (1e-310, 1e-310)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_scaled_columns_may_have_any_units(units, make):
    X = make(np.c_[a * units[0], b * units[1]])
    result = sparse_pca(X, n_nonzero_coefs=2, scale=True)
    # The smallest unit has few digits left: its own rounding is in the data.
    if units[0] != 1e-310:
        optimum = 1 + abs(np.corrcoef(a, b)[0, 1])
        assert result.value == pytest.approx(optimum, rel=1e-9)
    assert result.bound > 1.99
    verdict = verify(result, X)
    assert verdict, verdict.reason


@pytest.mark.parametrize(
    ("A", "k", "s"),
    [(np.ones((31, 31)), 2, 4), (np.eye(20) * 0.5 + 0.5, 4, 3), (np.eye(24), 3, 2)],
)
def test_ties_everywhere(A, k, s):
    result = sparse_pca(covariance=A, n_components=k, n_nonzero_coefs=s)
    assert result.status is Status.OPTIMAL
    assert verify(result, covariance=A)


@pytest.mark.parametrize("copies", [6, 13, 20])
def test_copies_of_one_column(copies):
    X = np.repeat(rng.standard_normal((30, 1)), copies, axis=1)
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=3)
    assert result.value == pytest.approx(6 * X[:, 0].var())
    assert verify(result, X)


def test_packings_do_not_outlast_the_limits():
    noise = np.random.default_rng(0).standard_normal((200, 16))
    result = sparse_pca(noise, n_components=4, n_nonzero_coefs=4, time_limit=0.5)
    assert result.status is Status.TIME_LIMIT
    assert verify(result, noise)
    few = {"max_packings": 10}
    stopped = sparse_pca(
        noise,
        n_components=4,
        n_nonzero_coefs=4,
        method="enumerate",
        method_options=few,
        certify=False,
    )
    assert "may not be optimal" in stopped.note
    assert stopped.certificate.proved_by != "enumeration"


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scale", [False, True])
def test_samples_of_weight_zero_are_not_there(make, scale):
    X = np.array([[0.1, 1.0, 3.0], [0.1, 2.0, 1.0], [0.1, 7.0, 2.0], [5.0, 3.0, 9.0]])
    weights = np.array([0.3, 0.6, 0.123, 0.0])
    result = sparse_pca(make(X), sample_weight=weights, n_nonzero_coefs=2, scale=scale)
    without = sparse_pca(make(X[:3]), sample_weight=weights[:3], n_nonzero_coefs=2, scale=scale)
    assert result.value == pytest.approx(without.value, rel=1e-12)
    verdict = verify(result, make(X), sample_weight=weights)
    assert verdict, verdict.reason


def test_weights_may_be_huge():
    X = np.array([[0.0, 1.0], [2.0, 5.0], [1.0, 1.0]])
    huge = sparse_pca(X, sample_weight=np.array([1e308, 1e308, 1e308]), n_nonzero_coefs=1)
    assert huge.value == pytest.approx(sparse_pca(X, n_nonzero_coefs=1).value)


@pytest.mark.parametrize("digits", [None, 9])
def test_slightly_indefinite_matrices_verify(digits):
    for seed in range(4):
        X = np.random.default_rng(seed).standard_normal((5, 8))
        C = np.cov(X.T).astype(np.float32) if digits is None else np.round(np.corrcoef(X.T), digits)
        for k in (1, 2):
            result = sparse_pca(covariance=C, n_components=k, n_nonzero_coefs=3)
            verdict = verify(result, covariance=C)
            assert verdict, verdict.reason
            assert result.bound >= best_value(np.asarray(C, dtype=float), (3,) * k)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("offset", [1e6, 1e12, 1e15])
def test_scaling_after_a_large_offset(make, offset):
    X = np.round(np.c_[a, b] * 8) + offset
    result = sparse_pca(make(X), n_nonzero_coefs=2, scale=True)
    verdict = verify(result, make(X))
    assert verdict, verdict.reason
    assert result.value == pytest.approx(1 + abs(np.corrcoef((X - offset).T)[0, 1]), rel=1e-9)


def test_containers_that_the_solver_takes_verify_too():
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


def test_what_floating_point_cannot_hold_is_refused():
    with pytest.raises(ValueError, match=r"2\*\*53"):
        sparse_pca(2**60 + np.arange(20).reshape(10, 2))
    for size in (1e-310, 1e305):
        with pytest.raises(ValueError, match="end of floating point"):
            sparse_pca(covariance=np.array([[2.0, 1], [1, 2]]) * size)


def test_the_estimator_refuses_what_the_function_refuses():
    masked = np.ma.array([[1.0, 2], [3, 5], [999, 999]], mask=[[0, 0], [0, 0], [1, 1]])
    pd = pytest.importorskip("pandas")
    for X in (masked, pd.DataFrame({"a": pd.Categorical(["1", "2"]), "b": [1.0, 2.0]})):
        for call in (sparse_pca, SparsePCA().fit):
            with pytest.raises((ValueError, TypeError)):
                call(X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_nonzero_coefs": np.array(3)}, "n_nonzero_coefs"),
        ({"feature_names": 3}, "feature_names"),
        ({"supports": np.array(["free", "a"])}, "supports"),
        ({"certify": np.array([1, 2])}, "certify"),
        ({"method_options": {"effort": "x"}}, "effort"),
        ({"method_options": {"effort": None}}, "effort"),
    ],
)
def test_odd_parameters_are_named(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        sparse_pca(np.c_[a, b, a * b], **options)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["certificate"].update(tol=0.5, status="optimal"),
        lambda d: (
            d["certificate"].update(tol=5.0, status="optimal"),
            d["settings"].update(tol=5.0),
        ),
        lambda d: d["settings"].update(center="x"),
        lambda d: d["settings"].update(n_nonzero_coefs=[10**6]),
        lambda d: d["certificate"].update(unit=3.0),
        lambda d: d["certificate"].update(value=10**400),
        lambda d: d["certificate"].update(guarantees=[1]),
        lambda d: d.update(total_variance=None),
        lambda d: d.update(settings=None),
        lambda d: d.update(n_features=25.0),
    ],
)
def test_forged_documents_are_refused(change):
    noise = np.random.default_rng(0).standard_normal((60, 25))
    result = sparse_pca(noise, n_nonzero_coefs=9, certify=False)
    document = json.loads(result.to_json())
    change(document)
    try:
        forged = Result.from_json(json.dumps(document))
    except ValueError:
        return
    assert verify(forged, noise).verdict == "refused"


def test_a_bound_under_another_name_ends_soon():
    X = np.random.default_rng(1).standard_normal((60, 14))
    result = sparse_pca(X, n_components=3, n_nonzero_coefs=3, certify=False)
    document = json.loads(result.to_json())
    document["certificate"]["bounds"][0]["name"] = "enumeration"
    assert verify(Result.from_json(json.dumps(document)), X).verdict == "refused"
