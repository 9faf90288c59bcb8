"""Forgeries that live on what a proof leaves out: constant features, lost digits, other columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparcipal import Status, alternatives, sparse_pca, verify


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_orthogonal_components_may_lie_on_constant_features(arithmetic):
    """With more components than features kept, a negative maximum would lower the sum at will."""
    if arithmetic == "exact":
        pytest.importorskip("flint")
    rng = np.random.default_rng(0)
    X = np.zeros((30, 6))
    X[:, :2] = rng.standard_normal((30, 2)) @ np.array([[1, 0.5], [0, 1]])
    result = sparse_pca(X, n_components=3, n_nonzero_coefs=2, supports="orthogonal")
    certificate = result.certificate
    A = np.cov(X.T, bias=True)[:2, :2] / certificate.unit
    less = 0.999 * np.trace(A)
    Z, shift = A + less * np.eye(2), 4 * less
    log = [
        {
            "step": "problem",
            "s": 2,
            "nonnegative": False,
            "bound": float((shift - less) * (1 + 1e-9)),
            "unit": 1.0,
            "twins": {},
        },
        {
            "step": "node",
            "parent": -1,
            "side": "root",
            "moved": np.array([], dtype=np.int32),
            "passes": [],
            "end": "leaf",
        },
    ]
    data = {
        "kept": np.array([0, 1]),
        "L": np.linalg.cholesky(Z),
        "beta": np.diag(Z) * (1 + 1e-10),
        "shift": float(shift),
        "parts": [{"s": 2, "log": log}],
    }
    low = 0.01 * result.value
    for honest in certificate.bounds:
        bound = replace(honest, name="orthogonal", value=low, data=data)
        forged = replace(
            result,
            supports=tuple(np.array([j]) for j in (2, 3, 4)),
            weights=(np.array([1.0]),) * 3,
            variances=np.zeros(3),
            certificate=replace(
                certificate, value=0.0, bound=low, bounds=(bound,), status=Status.GAP
            ),
        )
        assert verify(forged, X, arithmetic=arithmetic).verdict == "refused"


def test_pairwise_matrices_are_not_believed_where_means_hide_them():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((200, 1)) + 0.5 * rng.standard_normal((200, 5))
    Y[3, 2] = Y[7, 0] = np.nan
    for far, verdict in ((1e3, "proved"), (1e12, "refused")):
        result = sparse_pca(Y + far, n_nonzero_coefs=3, missing="pairwise")
        said = verify(result, Y + far)
        assert said.verdict == verdict
        assert verdict == "proved" or "rounding hides" in said.reason


@pytest.fixture(scope="module")
def near():
    X = np.random.default_rng(5).standard_normal((40, 6))
    X[:, 1] = X[:, 0]
    return X, alternatives(X, n_nonzero_coefs=2, within=0.3)


def test_groups_are_claimed_once(near):
    X, found = near
    assert verify(found, X)
    component = found.components[0]
    assert component.groups
    twice = replace(component, groups=component.groups * 2)
    assert verify(replace(found, components=(twice,)), X).verdict == "refused"


def test_a_fit_behind_a_cost_speaks_of_the_same_columns():
    pd = pytest.importorskip("pandas")
    values = np.random.default_rng(1).standard_normal((40, 10))
    values[:, 5:] *= 0.1
    frame = pd.DataFrame(values, columns=list("abcdefghij"))
    found = alternatives(frame[list("abcde")], n_nonzero_coefs=2, within=0.01)
    assert verify(found, frame)
    other = alternatives(frame[list("fghij")], n_nonzero_coefs=2, within=0.01).components[0]
    component = found.components[0]
    places = [
        (i, cost)
        for i, drop in enumerate(component.drops)
        for cost in other.drops
        if cost.fit is not None and cost.feature == drop.feature
    ] or [(0, replace(other.drops[0], feature=component.drops[0].feature))]
    for i, cost in places:
        drops = list(component.drops)
        drops[i] = cost
        forged = replace(found, components=(replace(component, drops=tuple(drops)),))
        assert verify(forged, frame).verdict == "refused"
