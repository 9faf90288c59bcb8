"""Bounds for all features of a screened table, against the best of all supports."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Result, Screened, sparse_pca, verify
from sparcipal.bounds.kyfan.certificate import KyFanMatrix
from sparcipal.bounds.outside import Outside
from sparcipal.problem.covariance import covariance_of
from tests.support.second_checker import check


def noisy(seed: int, n: int = 60, p: int = 14) -> np.ndarray:
    """A block of related features among others of larger variance, a twin and a constant."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(1.0, 1.5, p)
    X[:, 3:6] = 0.8 * rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, 3))
    X[:, 7] = X[:, 8]
    X[:, 12] = 4.0
    return X


def best_pairs(A: np.ndarray, k: int, s: int, nonnegative: bool) -> float:
    """The optimum over all disjoint supports of s features, k one or two."""
    values = {}
    for support in combinations(range(len(A)), s):
        B = A[np.ix_(support, support)]
        if nonnegative:
            parts = [c for m in range(1, s + 1) for c in combinations(range(s), m)]
            tops = (np.linalg.eigh(B[np.ix_(c, c)]) for c in parts)
            values[support] = max(
                w[-1] for w, q in tops if abs(q[:, -1].sum()) > 0.999 * abs(q[:, -1]).sum()
            )
        else:
            values[support] = float(np.linalg.eigvalsh(B)[-1])
    if k == 1:
        return max(values.values())
    return max(values[a] + values[b] for a, b in combinations(values, 2) if not set(a) & set(b))


SINGLE = [{}, {"scale": True}, {"nonnegative": True}, {"center": False}]
DOUBLE = [{"n_components": 2, "n_nonzero_coefs": 2, "scale": scale} for scale in (False, True)]
KINDS = ["dense", "sparse", "tiny", "huge", "weights"]
CASES = [(one, kind) for one in SINGLE for kind in KINDS] + [(two, "dense") for two in DOUBLE]


@pytest.mark.parametrize(("asked", "kind"), CASES, ids=str)
def test_rows_bound_every_choice(asked, kind):
    for seed in range(2 if kind == "dense" and asked in SINGLE else 1):
        X = noisy(seed)
        X = X * {"tiny": 1e-12, "huge": 1e12}.get(kind, 1.0)
        weights = (
            np.random.default_rng(seed).integers(0, 3, 60) + 0.0 if kind == "weights" else None
        )
        given = sp.csr_array(X) if kind == "sparse" else X
        own = {"n_nonzero_coefs": 3, "sample_weight": weights, **asked}
        result = sparse_pca([given[:25], given[25:]], memory_limit=2000, **own)
        Z = X - np.average(X, axis=0, weights=weights) * asked.get("center", True)
        A = (Z * (1.0 if weights is None else weights[:, None])).T @ Z
        A /= 60 if weights is None else weights.sum()
        if asked.get("scale"):
            deviation = np.sqrt(np.where(np.diag(A) > 1e-20 * np.diag(A).max(), np.diag(A), 1.0))
            A = A / np.outer(deviation, deviation)
            A[12], A[:, 12] = 0.0, 0.0
        best = best_pairs(
            A,
            asked.get("n_components", 1),
            own["n_nonzero_coefs"],
            asked.get("nonnegative", False),
        )
        assert result.bound >= best * (1 - 1e-12)
        verdict = verify(result, given, sample_weight=weights)
        assert verdict, verdict.reason


def screened_by_rows():
    X = np.delete(noisy(1, n=500), 7, axis=1)  # a dropped twin of a kept feature costs much
    result = sparse_pca([X[:200], X[200:]], n_nonzero_coefs=3, scale=True, memory_limit=2000)
    assert result.certificate.screening["rule"] == "rows"
    return X, result


def test_rows_hold_in_exact_arithmetic():
    pytest.importorskip("flint")
    X, result = screened_by_rows()
    verdict = verify(result, X, arithmetic="exact")
    assert verdict, verdict.reason


def test_rows_that_prove_less_are_refused():
    X, result = screened_by_rows()
    bound = result.certificate.bounds[0]
    own = bound.data["screened"]
    for change in ({"touching": own["touching"] * (1 - 1e-9)}, {"split": None}):
        data = {**bound.data, "screened": {**own, **change}}
        certificate = replace(result.certificate, bounds=(replace(bound, data=data),))
        verdict = verify(replace(result, certificate=certificate), X)
        assert verdict.verdict == "refused"


def test_rows_of_other_data_are_refused():
    X, result = screened_by_rows()
    other = X.copy()
    other[:, 9] = other[::-1, 0] * other[:, 9].std() / other[:, 0].std()
    assert not verify(result, other)
    calls = []

    def changing():
        calls.append(1)
        return iter([X if len(calls) == 1 else other])

    assert not verify(result, changing)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_price_of_every_feature_comes_off_variances_and_charges(nonnegative):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 12))
    covariance, s, floor, core = covariance_of(X.T @ X / 30), 4, 0.07, np.arange(5)
    charged = KyFanMatrix(np.zeros((5, 5)), rng.uniform(0.1, 0.2, 5), rng.uniform(0.0, 0.1, 5))
    A = covariance.dense()
    outside = Outside(covariance, core, charged, s, nonnegative, floor)
    features, heights = outside.violators(-np.inf, block_rows=3)
    assert set(features) == set(range(5, 12))
    for j, height in zip(features, heights):
        size = np.maximum(A[j], 0.0) if nonnegative else np.abs(A[j])
        charges = list(size[core] ** 2 / charged.theta - charged.price)
        charges += [size[i] for i in range(5, 12) if i != j]
        net = sorted((max(charge - floor, 0.0) for charge in charges), reverse=True)
        assert height == pytest.approx(A[j, j] - floor + sum(net[: s - 1]), rel=1e-12)


@pytest.mark.parametrize("seed", [3, 6])
def test_later_rounds_never_prove_less(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 24)) * rng.uniform(1.0, 1.6, 24)
    X[:, 3:6] = 0.9 * rng.standard_normal((60, 1)) + 0.5 * rng.standard_normal((60, 3))
    X[:, 10:14] = rng.standard_normal((60, 1)) + 0.6 * rng.standard_normal((60, 4))
    bounds = []
    result = sparse_pca(
        [X[:25], X[25:]], n_components=2, n_nonzero_coefs=2, memory_limit=3000,
        callback=lambda progress: bounds.append(progress.bound),
    )  # fmt: skip
    assert result.bound <= min(b for b in bounds if b is not None) * (1 + 1e-12)
    assert verify(result, X)


# --- components of other kinds ---


def factors(p: int = 14) -> np.ndarray:
    """Two factors that share features, and features that hardly vary."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, p)) * 0.5
    X[:, :5] += 2.0 * rng.standard_normal((60, 1))
    X[:, 3:8] += 1.5 * rng.standard_normal((60, 1))
    X[:, 9:] *= 0.4
    return X


def screened_kind(kind: dict) -> tuple[np.ndarray, Result]:
    X = factors()
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "method_options": {"effort": 0}, **kind}
    return X, sparse_pca([X[:25], X[25:]], memory_limit=2000, **asked)


@pytest.mark.parametrize(
    "kind",
    [
        {"supports": "free"},
        {"objective": "adjusted", "n_nonzero_coefs": [4, 2]},
        {"supports": "free", "nonnegative": True},
    ],
    ids=str,
)
def test_adjusted_variances_are_extended_in_their_own_matrix(kind):
    X, result = screened_kind(kind)
    bound = result.certificate.bounds[0]
    assert bound.name == "adjusted"
    parts = bound.data["screened"]["parts"]
    assert result.certificate.screening["dropped"] > 0
    assert result.gap < 0.1  # one bound for each component leaves more than a quarter
    assert verify(result, X).verdict == "proved"
    assert check(result.to_json(), X) == "proved"
    unit, best = result.certificate.unit, {**bound.data["screened"]}
    for change in (
        {"touching": best["touching"] * (1 - 1e-6)},
        {"inside": best["inside"] * (1 - 1e-6)},
        {"parts": None, "touching": best["inside"]},
        {"parts": parts[:-1]},
        {"parts": [{**part, "rule": "nothing dropped"} for part in parts], "touching": 0.0},
        {"parts": [{**part, "s": part["s"] + 1} for part in parts]},
    ):
        data = {**bound.data, "screened": {**best, **change}}
        screening = {
            **result.certificate.screening,
            **{name: data["screened"][name] * unit for name in ("inside", "touching")},
        }
        forged = replace(
            result.certificate, bounds=(replace(bound, data=data),), screening=screening
        )
        assert not verify(replace(result, certificate=forged), X), change


def test_common_sets_with_dropped_features_explain_no_more_than_is_said():
    X, result = screened_kind({"supports": "common"})
    A = np.cov(X.T, bias=True)
    sets = combinations(range(14), 3)
    best = max(np.linalg.eigvalsh(A[np.ix_(T, T)])[-2:].sum() for T in sets)
    assert best <= result.bound * (1 + 1e-12) <= best * 1.001
    assert verify(result, X).verdict == "proved"
    assert check(result.to_json(), X) == "proved"
    for rule in ("prices", "rows"):  # which count features, and roundings, once for all components
        (bound,) = result.certificate.bounds
        data = {**bound.data, "screened": {**bound.data["screened"], "rule": rule}}
        screening = {**result.certificate.screening, "rule": rule}
        forged = replace(
            result.certificate, bounds=(replace(bound, data=data),), screening=screening
        )
        forged = replace(result, certificate=forged)
        assert "are for disjoint components" in verify(forged, X).reason
        assert "components that overlap" in check(forged.to_json(), X)


def test_fewer_kept_features_than_components_are_refused():
    A = np.diag([3.0, 2.0, 1.0])
    given = Screened(A[:1, :1], np.array([0]), np.diag(A).copy())
    with pytest.raises(ValueError, match=r"1 features are kept, 2 needed; keep more"):
        sparse_pca(covariance=given, n_components=2, n_nonzero_coefs=1, supports="free")


OVERLAPPING = [
    {"supports": "free"},
    {"supports": "orthogonal"},
    {"supports": "free", "nonnegative": True},
]


@pytest.mark.parametrize("certify", ["fast", False])
@pytest.mark.parametrize("kind", OVERLAPPING, ids=str)
def test_overlapping_components_of_screened_tables_explain_no_more_than_the_variances(
    kind, certify
):
    X = factors()
    X /= X.std(axis=0)  # all vary alike: the worst that there is for dropped features
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "method": "threshold", "certify": certify}
    result = sparse_pca([X[:25], X[25:]], memory_limit=1000, **asked, **kind)
    assert result.certificate.screening["dropped"] > 0
    assert result.bound <= 6 * (1 + 1e-9)  # six nonzeros, each of variance one
    assert verify(result, X).verdict == "proved"
    assert check(result.to_json(), X) == "proved"


@pytest.mark.parametrize("kind", OVERLAPPING, ids=str)
def test_bounds_of_a_table_that_is_kept_whole_are_those_of_the_table_in_memory(kind):
    X = factors()[:, :6]
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "method": "threshold", **kind}
    whole, passed = (
        sparse_pca(given, memory_limit=limit, **asked)
        for given, limit in ((X, 10**9), ([X[:25], X[25:]], 2000))
    )
    assert passed.certificate.screening["rule"] == "nothing dropped"
    assert passed.bound == pytest.approx(whole.bound, rel=1e-6)
    assert "keep more" not in passed.certificate.message
    assert verify(passed, X).verdict == "proved"
    assert check(passed.to_json(), X) == "proved"


def test_rows_bound_orthogonal_components_without_prices():
    X = noisy(1, n=200)[:, :9]
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "method": "threshold", "scale": True}
    result = sparse_pca([X[:25], X[25:]], memory_limit=400, supports="orthogonal", **asked)
    (bound,) = result.certificate.bounds
    told = bound.data["screened"]
    assert (bound.name, told["rule"]) == ("orthogonal", "rows")
    assert result.gap < 0.002  # the variances leave 7 %
    for arithmetic in ("float", "exact"):
        assert verify(result, X, arithmetic=arithmetic).verdict == "proved"
    assert check(result.to_json(), X) == "proved"
    price = np.full(len(told["split"]["features"]), 0.01)
    for change in (
        {"touching": told["touching"] * (1 - 1e-6)},
        {"split": {**told["split"], "price": price}},
        {"rule": "variances", "touching": told["inside"]},
    ):
        data = {**bound.data, "screened": {**told, **change}}
        screening = dict(result.certificate.screening)
        screening["touching"] = data["screened"]["touching"] * result.certificate.unit
        screening["rule"] = data["screened"]["rule"]
        certificate = replace(
            result.certificate, bounds=(replace(bound, data=data),), screening=screening
        )
        forged = replace(result, certificate=certificate)
        assert verify(forged, X).verdict == "refused", change
        assert check(forged.to_json(), X) != "proved", change
