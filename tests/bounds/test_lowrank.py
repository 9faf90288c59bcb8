"""Several components of a low-rank matrix: prices and the sphere, against enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparcipal import Result, sparse_pca, verify
from sparcipal.bounds.lowrank.prices import leading_direction, priced_sphere
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.sketch import gaussian_projection
from sparcipal.search.joint import joint_search
from sparcipal.search.promises import entry_error
from tests.support.brute import best_value


def factor(rng: np.random.Generator, p: int, r: int) -> np.ndarray:
    V = rng.standard_normal((p, r)) * rng.uniform(0.3, 2.0, (p, 1))
    kind = rng.integers(5)
    if kind == 1:
        V[0] = V[-1]
        V[1] = -V[2]
    elif kind == 2:
        V[: p // 2] = 0.0
    elif kind == 3:
        V = rng.integers(-1, 2, (p, r)).astype(float)
    elif kind == 4:
        V[:, 1:] *= 1e-3
    return V


@pytest.mark.parametrize("nonnegative", [False, True])
def test_low_rank_bound_is_never_below_the_optimum(nonnegative: bool) -> None:
    rng = np.random.default_rng(int(nonnegative))
    gaps = []
    for _ in range(12):
        p, r, k = int(rng.integers(4, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        s = int(rng.integers(1, p // k + 1))
        V = factor(rng, p, r) * 10.0 ** rng.integers(-6, 7)
        A = V @ V.T
        best = best_value(A, (s,) * k, nonnegative)
        supports = joint_search(A / max(A.max(), 1e-300), (s,) * k, nonnegative=nonnegative)
        found = priced_sphere(V, s, supports, best, nonnegative=nonnegative)
        assert found.bound >= best * (1 - 1e-12)
        assert (found.prices >= 0).all()
        gaps.append(found.bound / best - 1 if best > 0 else 0.0)
    # The best prices themselves leave a gap on some of these.
    assert np.median(gaps) < 1e-4
    assert max(gaps) < 0.1


def test_a_poor_answer_gives_a_valid_bound() -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        V = factor(rng, 8, 2)
        poor = [np.array([0, 1]), np.array([2, 3])]
        best = best_value(V @ V.T, (2, 2))
        for value in (0.0, 0.3 * best, 3.0 * best):
            assert priced_sphere(V, 2, poor, value).bound >= best * (1 - 1e-12)


def test_prices_close_what_one_component_leaves_open() -> None:
    """k times the best component is far off; prices come to a thousandth."""
    rng = np.random.default_rng(0)
    V = rng.standard_normal((150, 3)) * 0.7 ** np.arange(3)
    A = V @ V.T
    asked = {"covariance": A, "n_components": 4, "n_nonzero_coefs": 8}
    result = sparse_pca(**asked, certify=False)
    alone = sparse_pca(covariance=A, n_nonzero_coefs=8, certify=False)
    found = priced_sphere(V, 8, result.supports, result.value)
    assert result.value <= found.bound <= 1.002 * result.value
    assert 4 * alone.value > 1.05 * result.value


@pytest.mark.parametrize("center", [True, False])
def test_certificate_is_within_five_percent_for_data_of_low_rank(center: bool) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 36))
    result = sparse_pca(
        X, n_components=3, n_nonzero_coefs=6, method="bipartite", rank=3, center=center
    )
    bound = next(b for b in result.certificate.bounds if b.name == "lowrank")
    assert result.value <= bound.value <= 1.05 * result.value
    assert bound.value == pytest.approx(result.info["rank_optimum_at_most"], rel=1e-3)
    checked = verify(Result.from_json(result.to_json()), X)
    assert checked, checked.reason


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_bipartite_bound_holds_for_small_matrices(nonnegative: bool, scale: float) -> None:
    rng = np.random.default_rng(2)
    for sizes in [(2, 2), (3, 1), (2, 3), (1, 1, 1)]:
        V = factor(rng, 7, 2)
        A = scale * (V @ V.T + 1e-9 * np.eye(7))
        best = best_value(A, sizes, nonnegative)
        result = sparse_pca(
            covariance=A, n_components=len(sizes), n_nonzero_coefs=list(sizes), rank=2,
            nonnegative=nonnegative, method="bipartite", method_options={"max_samples": 256},
            certify=False,
        )  # fmt: skip
        assert result.value <= best * (1 + 1e-9)
        assert all(b.value >= best * (1 - 1e-12) for b in result.certificate.bounds)
        assert result.info["rank_optimum_at_most"] >= result.info["rank_value"] * (1 - 1e-9)
        checked = verify(result, covariance=A)
        assert checked, checked.reason


def test_forged_prices_are_refused() -> None:
    rng = np.random.default_rng(3)
    V = rng.standard_normal((30, 2))
    A = V @ V.T
    result = sparse_pca(
        covariance=A, n_components=2, n_nonzero_coefs=4, method="bipartite", rank=2, certify=False
    )
    bound = next(b for b in result.certificate.bounds if b.name == "lowrank")
    assert verify(result, covariance=A)
    honest = bound.data["prices"]
    for forged in (honest * 0.5, -honest, honest[:-1]):
        bound.data["prices"] = forged
        assert verify(result, covariance=A).verdict == "refused"


def test_promise_of_theorem_3_holds_for_the_entries() -> None:
    """The promised accuracy of the entries holds; a promise of nothing is not printed."""
    assert entry_error(100, 10) == math.inf
    assert entry_error(100, 2000) > entry_error(100, 8000) > 0.0
    rng = np.random.default_rng(4)
    B = rng.standard_normal((12, 12))
    A = B @ B.T
    cov = covariance_of(A)
    inside = cov.dense()
    size = np.sqrt(np.outer(np.diagonal(inside), np.diagonal(inside)))
    for rank in (600, 2000):
        V = gaussian_projection(cov, rank, rng)
        assert (np.abs(V @ V.T - inside) / size).max() <= entry_error(12, rank)
    options = {"points": "net", "sketch": "gaussian", "eps": 0.5}
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "method": "bipartite", "rank": 2}
    result = sparse_pca(covariance=A, method_options=options, **asked)
    (name,) = result.info["guarantees"]
    assert "Theorem 3" in name
    assert 0.0 <= result.info["guarantees"][name] <= result.value / best_value(A, (2, 2))
    assert not result.certificate.guarantees, "at this rank nothing is promised"


def test_leading_direction_of_no_rows_is_an_axis():
    assert leading_direction(np.zeros((0, 3))).tolist() == [1.0, 0.0, 0.0]
    np.testing.assert_allclose(np.abs(leading_direction(np.array([[0.0, 2.0]]))), [0.0, 1.0])
