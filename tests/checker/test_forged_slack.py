"""Forgeries that live on what a comparison lets pass: slack, names, units of other features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sparcipal import Status, alternatives, sparse_pca, verify
from tests.support.second_checker import check_alternatives


@pytest.fixture(scope="module")
def light():
    """A far row of little weight, read in passes: sums about it lose nearly all digits."""
    rng = np.random.default_rng(0)
    X = 1e-4 * rng.standard_normal((40, 6))
    X[0] = [1, -1, 1, 1, -1, 1]
    weights = np.ones(40)
    weights[0] = 1e-8
    data = {"X": lambda: iter([X[:20], X[20:]]), "sample_weight": weights}
    result = sparse_pca(**data, n_nonzero_coefs=2, scale=True, memory_limit=1)
    assert verify(result, **data)
    return result, data


@pytest.mark.parametrize("factor", [1 + 1e-7, 1 - 1e-7, 4.0])
def test_values_are_no_further_off_than_rounding_of_their_own_features(light, factor):
    result, data = light
    value = factor * result.value
    certificate = replace(result.certificate, value=value, rounding=value, status=Status.GAP)
    forged = replace(result, variances=np.array([value]), certificate=certificate)
    assert "explains" in verify(forged, **data).reason


def test_scales_and_totals_are_not_what_a_bad_sum_would_give(light):
    result, data = light
    assert not verify(replace(result, scale=result.scale * 1.001), **data)
    assert not verify(replace(result, total_variance=2.2), **data)


def test_variances_of_small_features_have_no_slack_of_large_ones():
    X = np.random.default_rng(0).standard_normal((40, 4)) * [1e7, 1e7, 1, 1]
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=1, include=[[0], [2]])
    assert verify(result, X)
    changed = result.variances * [1, 1 + 1e-6]
    assert "component 2" in verify(replace(result, variances=changed), X).reason


def test_value_above_the_bound_is_refused():
    X = np.random.default_rng(0).standard_normal((40, 5)) + 1e4
    result = sparse_pca(X, n_nonzero_coefs=2)
    low = np.nextafter(result.value, 0)
    lowered = (replace(result.certificate.bounds[0], value=low), *result.certificate.bounds[1:])
    certificate = replace(result.certificate, bound=low, bounds=lowered)
    assert "below the value" in verify(replace(result, certificate=certificate), X).reason


@pytest.mark.parametrize("names", [("age", "b", "c", "d"), None])
def test_names_of_pieces_are_those_of_the_result_or_of_the_first_piece(names):
    X = np.random.default_rng(0).standard_normal((40, 4)) * [1, 2, 3, 4]
    frame = pd.DataFrame(X, columns=list("abcd"))
    result = sparse_pca(frame, n_nonzero_coefs=2)
    halves = [frame[:20], frame[20:][list("dcba")]]
    assert verify(replace(result, feature_names=None), halves)
    if names is None:
        halves[1] = halves[1].rename(columns={"a": "zzz"})
    forged = replace(result, feature_names=names)
    for pieces in (halves, lambda: iter(halves)):
        assert "feature names differ" in verify(forged, pieces).reason


def test_given_matrices_are_covariances_without_what_is_excluded():
    A = np.diag([1e9, 4.0, 3.0, 1.0])
    result = sparse_pca(covariance=A, n_nonzero_coefs=2, exclude=[0])
    assert verify(result, covariance=A)
    A[1:, 1:] = [[-1, 5, 0], [5, -1, 0], [0, 0, -1]]
    assert "semidefinite" in verify(result, covariance=A).reason
    with pytest.raises(ValueError, match="without the excluded features"):
        sparse_pca(covariance=A, n_nonzero_coefs=2, exclude=[0])


def test_adjusted_variances_are_refused_beside_a_negative_variance():
    A = np.diag([4.0, 3.0, 2.0, -1e-12])
    asked = {"n_components": 2, "n_nonzero_coefs": [2, 1]}
    with pytest.raises(ValueError, match="negative variance"):
        sparse_pca(covariance=A, objective="adjusted", **asked)
    result = sparse_pca(covariance=A, **asked)
    assert verify(result, covariance=A)
    adjusted = {**result.settings, "objective": "adjusted"}
    assert "negative" in verify(replace(result, settings=adjusted), covariance=A).reason
    B = np.diag([4.0, 3.0, 2.0, 1.0])
    anchored = sparse_pca(covariance=B, include=[[0], [2]], **asked)
    adjusted = {**anchored.settings, "objective": "adjusted"}
    assert "anchors" in verify(replace(anchored, settings=adjusted), covariance=B).reason


def test_lists_are_not_padded_with_supports_that_explain_less():
    X = np.random.default_rng(0).standard_normal((40, 6))
    X[:, 2] += 1.5 * X[:, 0]
    found = alternatives(X, n_nonzero_coefs=2, within=0.02)
    near = found.components[0]
    A, S = np.cov(X.T, bias=True), np.array([3, 4])
    w, Q = np.linalg.eigh(A[np.ix_(S, S)])
    first, x = near.supports[0], Q[:, -1] / np.linalg.norm(Q[:, -1])
    padding = replace(first, support=S, weights=x, value=float(w[-1]), count=1)
    header = {**near.proof["log"][0], "listed": [*near.proof["log"][0]["listed"], S]}
    proof = {**near.proof, "log": [header, *near.proof["log"][1:]]}
    forged = replace(near, supports=(*near.supports, padding), proof=proof)
    claim = replace(found, components=(forged,))
    assert "less than was asked for" in verify(claim, X).reason
    assert check_alternatives(claim.to_json(), X) == "refused: a support that is not near"


@pytest.mark.parametrize("kind", ["Int64", "polars"])
def test_long_integers_beside_gaps_are_not_rounded(kind):
    a = [None, *(2**53 + j % 3 for j in range(12))]
    b = np.linspace(0, 1, 13)
    if kind == "polars":
        frame = pytest.importorskip("polars").DataFrame({"a": a, "b": b})
    else:
        frame = pd.DataFrame({"a": pd.array(a, dtype=kind), "b": b})
    small = pd.DataFrame({"a": [np.nan, *range(12)], "b": b})
    result = sparse_pca(small, n_nonzero_coefs=1, missing="rows")
    for ask in (
        lambda: sparse_pca(frame, n_nonzero_coefs=1, missing="rows"),
        lambda: verify(result, frame),
    ):
        with pytest.raises(ValueError, match="integers up to 900719925474099"):
            ask()


def test_answers_that_are_not_the_best_are_not_called_so():
    X = np.random.default_rng(0).standard_normal((40, 6))
    X[:, 2] += 1.5 * X[:, 0]
    best, S = sparse_pca(X, n_nonzero_coefs=2), np.array([3])
    value = float(X[:, 3].var())
    certificate = replace(best.certificate, value=value, status=Status.GAP)
    poor = replace(
        best, supports=(S,), weights=(np.ones(1),), variances=np.array([value]),
        certificate=certificate,
    )  # fmt: skip
    found = alternatives(poor, X, within=0.02)
    assert verify(found, X)
    assert "not the best answer" in str(found)
    assert "of the best" not in str(found)


@pytest.mark.parametrize("scale", [False, True])
def test_bounds_of_overlapping_components_are_of_their_kind_without_certify(scale):
    X = np.random.default_rng(0).standard_normal((50, 7))
    asked = {"n_components": 3, "n_nonzero_coefs": 1, "supports": "free", "method": "dspca"}
    assert verify(sparse_pca(X, certify=False, scale=scale, **asked), X)


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_scores_of_small_features_that_correlate_are_not_called_uncorrelated(arithmetic):
    if arithmetic == "exact":
        pytest.importorskip("flint")
    rng = np.random.default_rng(0)
    G = rng.standard_normal((50, 4))
    G = np.linalg.qr(G - G.mean(0))[0] * np.sqrt(50)
    mixed = 0.9 * G[:, 1] + np.sqrt(1 - 0.81) * G[:, 2]
    X = np.column_stack([1e7 * G[:, 0] + 1e9, G[:, 1], mixed, 0.5 * G[:, 3]])
    result = sparse_pca(X, n_components=3, n_nonzero_coefs=1)
    result = replace(result, settings={**result.settings, "uncorrelated": True})
    variances = np.cov(X.T, bias=True).diagonal()[:3].copy()
    forged = replace(
        result,
        supports=tuple(np.array([j]) for j in range(3)),
        weights=(np.ones(1),) * 3,
        variances=variances,
        certificate=replace(result.certificate, value=float(variances.sum())),
    )
    assert not verify(forged, X, arithmetic=arithmetic)


@pytest.mark.parametrize("shift", [1e4, 1e8])
def test_streams_that_begin_with_whole_numbers_have_true_scales(shift):
    Z = np.random.default_rng(0).integers(0, 100, (30, 5)).astype(float)
    Z[10:] += 0.5
    rows = lambda: iter([Z[:10] + shift, Z[10:] + shift])  # noqa: E731
    result = sparse_pca(rows, n_nonzero_coefs=2, memory_limit=1, scale=True)
    assert result.scale == pytest.approx(Z.std(axis=0), rel=1e-6)
    assert verify(result, rows)
