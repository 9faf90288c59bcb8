"""Forgeries about given matrices: variances and eigenvalues below zero, names, gaps."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from sparcipal import Screened, Status, alternatives, sparse_pca, verify

ARITHMETICS = [
    "float",
    pytest.param(
        "exact",
        marks=pytest.mark.skipif(find_spec("flint") is None, reason="python-flint is missing"),
    ),
]


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("dropped", [0.0, 1e-11])
def test_negative_variances_of_kept_features_are_refused_beside_dropped_ones(arithmetic, dropped):
    """The sum of both kept variances is less than what the first one and a dropped one explain."""
    variances = np.array([1.0, 1e-4, 1e-5, 1e-5])
    honest = Screened(np.diag(variances[:2]), np.arange(2), variances)
    result = sparse_pca(covariance=honest, n_components=2, n_nonzero_coefs=1)
    assert verify(result, covariance=honest, arithmetic=arithmetic)
    matrix, variances = np.diag([1.0, -9e-10]), np.array([1.0, 0.0, dropped, dropped])
    with pytest.raises(ValueError, match="feature 1 has the variance -9e-10"):
        Screened(matrix, np.arange(2), variances)
    data = SimpleNamespace(**{**vars(honest), "matrix": matrix, "variances": variances})
    certificate, value = result.certificate, float(np.trace(matrix))
    inside = value * (1 + 1e-12)
    touching = (inside + 2 * dropped) * (1 + 1e-12) if dropped else 0.0
    rule = "variances" if dropped else "nothing dropped"
    told = {"rule": rule, "inside": inside, "touching": touching}
    high = max(inside, touching) * (1 + 1e-12)
    assert high < 1.0 + dropped
    screened = {**told, "kept": np.arange(2)}
    bound = replace(
        certificate.bounds[0],
        name="clip",
        value=high,
        data={"rho": 0.0, "screened": screened},
        margin=0.0,
    )
    screening = {
        **told,
        "kept": 2,
        "dropped": int(np.count_nonzero(variances[2:])),
        "largest_dropped": dropped,
        "support_unchanged": touching < value - 2e-14,
        "bound_holds": touching <= inside,
    }
    forged = replace(
        result,
        supports=(np.array([0]), np.array([1])),
        weights=(np.ones(1), np.ones(1)),
        variances=np.diagonal(matrix).copy(),
        total_variance=float(variances.sum()),
        certificate=replace(
            certificate,
            value=value,
            bound=high,
            bounds=(bound,),
            rounding=2e-14,
            screening=screening,
            status=Status.OPTIMAL,
        ),
    )
    assert verify(forged, covariance=data, arithmetic=arithmetic).verdict == "refused"


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_an_eigenvalue_just_below_zero_counts(arithmetic):
    """The trace is less by 5e-14 than the larger eigenvalue, which a component on the feature that
    is left out leaves alone."""
    small, less = 1e-7, 5e-14
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "supports": "orthogonal"}
    result = sparse_pca(covariance=np.diag([1.0, small, 0.0]), **asked)
    certificate, value = result.certificate, 1.0 + small
    A = np.diag([1.0, small, 0.0])
    A[0, 1] = A[1, 0] = np.sqrt(small + less)
    high = value * (1 + 1e-15)
    assert high < value + less
    bound = replace(
        certificate.bounds[0],
        name="eigenvalues",
        value=high,
        data={"kept": np.arange(2)},
        margin=0.0,
    )
    forged = replace(
        result,
        supports=(np.array([0]), np.array([1])),
        weights=(np.ones(1), np.ones(1)),
        variances=np.array([1.0, small]),
        total_variance=value,
        certificate=replace(
            certificate,
            value=value,
            bound=high,
            bounds=(bound,),
            rounding=5e-14,
            status=Status.OPTIMAL,
        ),
    )
    assert verify(forged, covariance=A, arithmetic=arithmetic).verdict == "refused"


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_an_outsider_alone_explains_its_variance(arithmetic):
    A = np.diag([1.0, 0.5, -3e-9])
    found = alternatives(
        sparse_pca(covariance=A, n_nonzero_coefs=1), covariance=A, within=0.2, force=0
    )
    assert verify(found, covariance=A, arithmetic=arithmetic)
    near = found.components[0]
    assert near.with_value[near.outsiders == 2] == -3e-9
    raised = np.where(near.outsiders == 2, 0.0, near.with_value)
    forged = replace(found, components=(replace(near, with_value=raised),))
    assert verify(forged, covariance=A, arithmetic=arithmetic).verdict == "refused"


def test_names_of_a_covariance_are_compared():
    pd = pytest.importorskip("pandas")
    A = np.cov(np.random.default_rng(0).standard_normal((5, 50)))
    frame = pd.DataFrame(A, columns=list("abcde"), index=list("abcde"))
    result = sparse_pca(covariance=frame, n_nonzero_coefs=2)
    assert verify(result, covariance=frame)
    assert verify(result, covariance=A)
    for names in ("edcba", "vwxyz"):
        forged = replace(result, feature_names=tuple(names))
        assert "feature names" in verify(forged, covariance=frame).reason


@pytest.mark.parametrize(
    ("missing", "repair"),
    [
        ("pairwise", {"moved": 123.0, "relative": 0.0, "matrix": np.eye(5)}),
        ("pairwise", {"garbage": "x"}),
        ("pairwise", {}),
        ("median", {}),
    ],
)
def test_a_covariance_has_no_gaps(missing, repair):
    A = np.cov(np.random.default_rng(0).standard_normal((5, 50)))
    result = sparse_pca(covariance=A, n_nonzero_coefs=2)
    forged = replace(
        result,
        settings={**result.settings, "missing": missing},
        certificate=replace(result.certificate, repair=repair),
    )
    assert "missing entries" in verify(forged, covariance=A).reason


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_a_feature_that_may_vary_by_its_error_is_not_left_out(arithmetic):
    A, variances = np.diag([1.0, 0.5, 0.0]), np.array([1.0, 0.5, 0.0, 1e-3])
    weights, errors = np.array([0.0, 0.0, 200.0]), np.array([0.0, 0.0, 2.0, 0.0])
    doubtful = Screened(
        A, np.arange(3), variances, error_unit=1e-2, error_weights=weights, errors=errors
    )
    honest = sparse_pca(covariance=doubtful, n_nonzero_coefs=1)
    assert honest.bound > 2.0
    assert verify(honest, covariance=doubtful, arithmetic=arithmetic)
    sure = Screened(A, np.arange(3), variances)
    result = sparse_pca(covariance=sure, n_nonzero_coefs=1)
    certificate = result.certificate
    bound = certificate.bounds[0]
    assert np.array_equal(bound.data["kept"], [0, 1])
    screened = {**bound.data["screened"], "touching": 1.002}
    told = {"touching": 1.002, "support_unchanged": False, "bound_holds": False}
    forged = replace(
        result,
        certificate=replace(
            certificate,
            rounding=2.1,
            bound=1.003,
            status=Status.GAP,
            screening={**certificate.screening, **told},
            bounds=(
                replace(bound, value=1.003, data={**bound.data, "screened": screened}, margin=2.1),
            ),
        ),
    )
    said = verify(forged, covariance=doubtful, arithmetic=arithmetic)
    assert said.reason == "a feature that varies was left out"
