"""Components of every kind: what they must be, and no larger choice has the smaller value."""

from __future__ import annotations

import itertools
from itertools import combinations, permutations

import numpy as np
import pytest

from sparcipal import sparse_pca, verify
from sparcipal.problem.components import best_order, variances
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.problem import Component, Problem
from sparcipal.search.ascent import _Ascent
from sparcipal.search.tied import _Weights

KINDS = {
    "common": {"supports": "common"},
    "orthogonal": {"supports": "orthogonal"},
    "free": {"supports": "free"},
    "disjoint": {"supports": "disjoint"},
    "adjusted": {"supports": "disjoint", "objective": "adjusted"},
    "uncorrelated": {"supports": "free", "uncorrelated": True},
    "both": {"supports": "disjoint", "uncorrelated": True},
}

SHORT = {"method_options": {"effort": 1}}  # one unit of search, a third of the default


def some_covariance(seed: int, features: tuple[int, int] = (6, 10)) -> np.ndarray:
    """Twins, low rank, a constant feature, and plain ones."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(*features))
    n = 3 if seed % 4 == 1 else 2 * p
    X = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    if seed % 4 == 2:
        X[:, 0] = -2 * X[:, 1]
    if seed % 4 == 3:
        X[:, 2] = 1.0
    return np.cov(X.T, bias=True)


def adjusted_variance(A: np.ndarray, V: np.ndarray) -> float:
    """Zou, Hastie and Tibshirani: the squared diagonal of R in the QR decomposition of scores."""
    w, Q = np.linalg.eigh(A)
    scores = (np.sqrt(np.maximum(w, 0.0)) * Q) @ Q.T @ V.T
    return float(np.square(np.diagonal(np.linalg.qr(scores)[1])).sum())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_components_are_of_the_kind_asked_for(kind: str, seed: int) -> None:
    A = some_covariance(seed)
    asked = {"n_components": 2 + seed % 2, "n_nonzero_coefs": 3, **KINDS[kind]}
    if asked["supports"] == "disjoint":
        asked["n_components"] = 2
    result = sparse_pca(covariance=A, certify=False, method_options={"effort": 0}, **asked)
    V = result.components
    products = V @ A @ V.T
    assert np.count_nonzero(V, axis=1).max() <= 3
    if kind in ("common", "orthogonal"):
        np.testing.assert_allclose(V @ V.T, np.eye(len(V)), atol=1e-13)
        assert result.value == pytest.approx(float(np.trace(products)), rel=1e-9)
    if kind == "common":
        assert np.count_nonzero(V.any(axis=0)) <= 3
    if asked["supports"] == "disjoint":
        assert np.count_nonzero(V, axis=0).max() == 1
    if asked.get("uncorrelated"):
        off = products - np.diag(np.diagonal(products))
        assert np.abs(off).max() <= 1e-9 * np.trace(A)
    if kind not in ("disjoint", "common", "orthogonal"):
        assert result.value == pytest.approx(adjusted_variance(A, V), rel=1e-6, abs=1e-9)
    assert result.value <= result.bound
    assert verify(result, covariance=A).verdict == "proved"


NESTED = {  # what contains what
    "orthogonal": ("disjoint", "common"),
    "adjusted": ("disjoint", "both"),
    "uncorrelated": ("both",),
    "free": ("adjusted", "orthogonal", "common", "uncorrelated", "disjoint"),
}


@pytest.mark.parametrize("seed", range(8))
def test_a_larger_choice_never_has_the_smaller_value(seed: int) -> None:
    A = some_covariance(seed, features=(4, 7))
    effort = {"method_options": {"effort": int(seed == 1)}}
    same = {"n_components": 2, "n_nonzero_coefs": 2, "certify": False, **effort}
    found = {kind: sparse_pca(covariance=A, **same, **asked) for kind, asked in KINDS.items()}
    for larger, smaller in NESTED.items():
        for kind in smaller:
            least = found[kind].value
            if larger in ("adjusted", "free") and kind in ("disjoint", "orthogonal"):
                least = adjusted_variance(A, found[kind].components)
            assert found[larger].value >= least * (1 - 1e-9), (larger, kind)


def test_sizes_in_another_order_give_the_same_value() -> None:
    X = np.random.default_rng(99).integers(-2, 3, (5, 5)).astype(float)
    asked = {"n_components": 2, "supports": "free", "certify": False}
    asked["method_options"] = {"effort": 0}
    values = [
        sparse_pca(covariance=X.T @ X, n_nonzero_coefs=sizes, **asked).value
        for sizes in ([1, 3], [3, 1])
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert values[0] > 27.3  # 26.7 if the shortest was always found first


def test_uncorrelated_components_among_parallel_features_keep_their_room() -> None:
    """The long support has less choice than a short one: three of its features are parallel."""
    A = np.array([[9.1, 1.5, 5.8], [1.5, 10.1, -2.0], [5.8, -2.0, 11.8]])
    parallel = [0, 0, 1, 2, 0]
    A = A[np.ix_(parallel, parallel)]
    asked = {"uncorrelated": True, "supports": "free", "certify": False, **SHORT}
    result = sparse_pca(covariance=A, n_components=3, n_nonzero_coefs=[1, 3, 4], **asked)
    assert result.value > 40.8  # 26.4 if the shortest were made uncorrelated first
    assert verify(result, covariance=A).verdict == "proved"


def best_uncorrelated_pair(A: np.ndarray, sizes: tuple[int, int]) -> float:
    """Every pair of disjoint supports, and for the first vector a fine grid of directions."""
    turn = np.random.default_rng(0).standard_normal((3000, sizes[0]))
    best = 0.0
    for S in combinations(range(len(A)), sizes[0]):
        for T in combinations(sorted(set(range(len(A))) - set(S)), sizes[1]):
            X = turn / np.linalg.norm(turn, axis=1)[:, None]
            C = X @ A[np.ix_(S, T)]
            C /= np.maximum(np.linalg.norm(C, axis=1), 1e-300)[:, None]
            off = np.eye(len(T)) - C[:, :, None] * C[:, None, :]
            second = np.linalg.eigvalsh(off @ A[np.ix_(T, T)] @ off)[:, -1]
            first = np.einsum("ij,jk,ik->i", X, A[np.ix_(S, S)], X)
            best = max(best, float((first + second).max()))
    return best


@pytest.mark.parametrize(("seed", "sizes"), [(1, (4, 2)), (3, (2, 3))])
def test_uncorrelated_components_of_few_features_are_the_best(seed, sizes) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3 if seed == 1 else 12, 6)) @ rng.standard_normal((6, 6))
    A = np.cov(X.T, bias=True)
    asked = {"n_components": 2, "n_nonzero_coefs": list(sizes), "uncorrelated": True, **SHORT}
    result = sparse_pca(covariance=A, certify=False, **asked)
    assert result.value >= best_uncorrelated_pair(A, sizes) * (1 - 1e-9)
    free = sparse_pca(covariance=A, supports="free", certify=False, **asked)
    assert free.value >= result.value * (1 - 1e-12)


def test_exchanges_find_what_all_supports_contain(monkeypatch: pytest.MonkeyPatch) -> None:
    A = some_covariance(4)
    same = {"n_components": 2, "n_nonzero_coefs": 3, "certify": False, **SHORT}
    asked = {**same, "uncorrelated": True}
    best = sparse_pca(covariance=A, **asked)
    monkeypatch.setattr("sparcipal.search.tied.EVERY", 0)
    assert sparse_pca(covariance=A, **asked).value >= best.value * (1 - 1e-6)


def test_features_of_others_make_components_uncorrelated() -> None:
    """Three factors whose samples correlate by chance: the best features of one keep what they
    have in common with those of another, unless one of these takes it away."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 60))
    for j, size in enumerate((1.6, 1.3, 1.1)):
        X[:, 12 * j : 12 * j + 12] += size * rng.standard_normal((60, 1))
    asked = {"n_components": 3, "n_nonzero_coefs": 5, "scale": True, "uncorrelated": True}
    asked |= {"certify": False, "method_options": {"effort": 0}}
    apart, free = sparse_pca(X, **asked), sparse_pca(X, supports="free", **asked)
    assert apart.value > 10.0  # 9.39 by exchanges for single components alone
    assert free.value > 10.2  # 9.94
    assert verify(free, X).verdict == "proved"


@pytest.mark.parametrize("seed", [1, 3])
def test_trades_among_uncorrelated_components_leave_supports_apart(seed: int) -> None:
    """A trade may put components into other places, from which the next one must take them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 10)) @ rng.standard_normal((10, 10))
    problem = Problem(covariance_of(X.T @ X), (3, 3, 4), objective="adjusted", uncorrelated=True)
    ascent = _Ascent(problem, lambda cov, s: np.arange(s))
    parts = np.split(rng.permutation(10), [3, 6])
    even = tuple(Component(np.sort(part), np.full(part.size, part.size**-0.5)) for part in parts)
    start = list(ascent.admitted(even))
    traded, _ = ascent._traded(start, ascent.value(start))
    assert sorted(np.concatenate([c.support for c in traded])) == list(range(10))


@pytest.mark.parametrize("kind", ["free", "orthogonal"])
def test_more_effort_never_finds_less(kind: str) -> None:
    A = some_covariance(6)
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "certify": False, **KINDS[kind]}
    values = [
        sparse_pca(covariance=A, method_options={"effort": effort}, **asked).value
        for effort in (0, 1)
    ]
    assert all(more >= less * (1 - 1e-12) for less, more in itertools.pairwise(values))


@pytest.mark.parametrize("uncorrelated", [False, True])
def test_the_gradient_of_tied_components_is_that_of_differences(uncorrelated: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 9))
    kind = {"objective": "adjusted"} if uncorrelated else {"supports": "orthogonal"}
    problem = Problem(covariance_of(X.T @ X), (2, 3, 4), uncorrelated=uncorrelated, **kind)
    weights = _Weights(problem, [np.array(s) for s in ([0, 1], [1, 3, 4], [2, 3, 5, 8])])
    y = rng.standard_normal(9)
    steps = 1e-6 * np.eye(9)
    slopes = [(weights.evaluate(y + h)[0] - weights.evaluate(y - h)[0]) / 2e-6 for h in steps]
    np.testing.assert_allclose(weights.evaluate(y)[1], slopes, atol=1e-7)
    made = weights.components(y)
    W = np.column_stack([c.vector(9) for c in made])
    products = W.T @ (problem.covariance.dense() if uncorrelated else np.eye(9)) @ W
    assert np.abs(products[~np.eye(3, dtype=bool)]).max() < 1e-14


def test_the_bound_of_adjusted_variances_counts_the_rank_only() -> None:
    a = np.random.default_rng(0).standard_normal(8)
    asked = {"n_components": 3, "n_nonzero_coefs": 2, "supports": "free"}
    result = sparse_pca(covariance=np.outer(a, a), **asked)
    assert result.gap < 1e-5
    assert verify(result, covariance=np.outer(a, a), arithmetic="exact").verdict == "proved"


def test_all_features_give_the_principal_components() -> None:
    X = np.random.default_rng(0).standard_normal((30, 6)) * np.arange(1, 7)
    largest = np.linalg.eigvalsh(np.cov(X.T, bias=True))[-3:].sum()
    for supports in ("orthogonal", "free", "common"):
        result = sparse_pca(X, n_components=3, n_nonzero_coefs=6, supports=supports)
        assert result.value == pytest.approx(largest, rel=1e-7)
        assert result.status.value == "optimal"


def test_orthogonal_components_leave_a_support_that_is_full():
    """Two features have room for two orthogonal components, not for a third one."""
    result = sparse_pca(
        covariance=np.diag([5.0, 4.0, 0.1, 0.05]),
        n_components=3,
        n_nonzero_coefs=2,
        supports="orthogonal",
        certify=False,
    )
    W = result.components
    np.testing.assert_allclose(W @ W.T, np.eye(3), atol=1e-9)
    assert result.value == pytest.approx(9.1)


def test_components_with_denormal_loadings_are_made_orthogonal_without_overflow() -> None:
    A = np.full((5, 5), 3e-311) * (1.0 - np.eye(5))
    A[:3, :3] = [[0.9, -0.11, 0.13], [-0.11, 0.84, -0.25], [0.13, -0.25, 1.36]]
    asked = {"n_components": 2, "n_nonzero_coefs": 3, "supports": "orthogonal", "certify": False}
    result = sparse_pca(covariance=A, **asked)
    assert result.value == pytest.approx(np.linalg.eigvalsh(A)[-2:].sum())


def test_newcomers_are_predicted_where_covariances_are_denormal() -> None:
    A = np.zeros((6, 6))
    A[0], A[2] = 2e-301, 6e-301
    A = A + A.T
    own = np.ix_([1, 3, 4], [1, 3, 4])
    A[own] = [[0.18, 0.22, 0.10], [0.22, 1.02, 0.28], [0.10, 0.28, 0.67]]
    A[[0, 2], [0, 2]] = 0.0
    asked = {"n_components": 3, "n_nonzero_coefs": [2, 3, 4], "supports": "free"}
    result = sparse_pca(covariance=A, **asked)
    assert np.linalg.eigvalsh(A)[-1] <= result.value <= result.bound <= np.trace(A) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_no_order_of_few_components_explains_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 7))
    problem = Problem(covariance_of(X.T @ X), (3,) * 4, supports="free", objective="adjusted")
    components = [
        Component(np.sort(rng.choice(7, 3, replace=False)), rng.standard_normal(3))
        for _ in range(4)
    ]
    components = [Component(c.support, c.weights / np.linalg.norm(c.weights)) for c in components]
    components[3] = components[0] if seed == 4 else components[3]
    ordered = best_order(problem, tuple(components))
    every = [variances(problem, order).sum() for order in permutations(components)]
    assert variances(problem, ordered).sum() == pytest.approx(max(every), rel=1e-12)


@pytest.mark.parametrize("method", ["threshold", "gpower"])
@pytest.mark.parametrize("kind", ["common", "orthogonal", "uncorrelated", "both"])
def test_every_method_returns_the_kind_asked_for(kind: str, method: str) -> None:
    A = some_covariance(0)
    asked = {"n_components": 2, "n_nonzero_coefs": 3, **KINDS[kind]}
    result = sparse_pca(covariance=A, method=method, certify=False, **asked)
    assert verify(result, covariance=A).verdict == "proved"


def test_components_that_count_first_have_features_they_would_not_want_beside_others() -> None:
    """A feature of another component explains nothing beyond it, and much before it."""
    A = np.array(
        [
            [1.0, 0.0877, 0.1397, 0.5],
            [0.0877, 0.0515, 0.0482, 0.0438],
            [0.1397, 0.0482, 0.0577, 0.0698],
            [0.5, 0.0438, 0.0698, 0.25],
        ]
    )
    asked = {"supports": "free", "nonnegative": True, "certify": False}
    A += 1e-6 * np.eye(4)
    result = sparse_pca(covariance=A, n_components=3, n_nonzero_coefs=[1, 4, 1], **asked)
    assert result.value > 1.3295  # 1.3024 without them


def test_scores_of_nothing_but_rounding_are_uncorrelated_with_all_others() -> None:
    x = np.array([0.3248, 0.3526, -0.4945, -1.0])
    asked = {"uncorrelated": True, "certify": False}
    result = sparse_pca(covariance=np.outer(x, x), n_components=2, n_nonzero_coefs=2, **asked)
    assert result.value == pytest.approx(x[2] ** 2 + 1, rel=1e-9)


def test_nonnegative_adjusted_components_that_are_filled_up_stay_disjoint() -> None:
    X = np.random.default_rng(23).integers(-2, 3, (21, 7)).astype(float)
    covariance = covariance_of(np.cov(X.T, bias=True))
    problem = Problem(covariance, (2, 2, 2), True, objective="adjusted")
    ascent = _Ascent(problem, lambda cov, s: np.arange(s))
    lean = [Component(np.array([j, 6 - j]), np.array([1.0, 0.0])) for j in range(3)]
    used = np.concatenate([c.support for c in ascent._polished(lean)])
    assert np.unique(used).size == used.size
    shared = [Component(np.array([j, 6]), np.array([0.6, 0.8])) for j in range(3)]
    assert ascent.value(shared) == -np.inf


def test_covariances_that_are_rounding_tie_no_uncorrelated_components() -> None:
    a, b = np.array([3.0, -3.0, 3.0, -3.0]), np.array([3.0, -3.0, -3.0, 3.0])
    X = np.column_stack([a, 0.9 * b, 0.8 * b])
    asked = {"supports": "free", "uncorrelated": True, "certify": False, **SHORT}
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=[1, 2], **asked)
    assert result.value == pytest.approx(9.0 * (1 + 0.9**2 + 0.8**2))


def in_units(scale: float) -> np.ndarray:
    units = np.array([1 / scale, scale**-0.5, 1.0, scale**0.5, scale])
    return np.random.default_rng(0).standard_normal((11, 5)) * units


@pytest.mark.parametrize("supports", ["disjoint", "free"])
@pytest.mark.parametrize("scale", [1e12, 1e30, 1e50])
def test_uncorrelated_components_are_found_and_proved_in_units_far_apart(scale, supports) -> None:
    X = in_units(scale)
    asked = {"supports": supports, "uncorrelated": True, "certify": False, **SHORT}
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=[3, 2], **asked)
    scores = result.transform(X)
    assert abs(np.corrcoef((scores / np.abs(scores).max(axis=0)).T)[0, 1]) < 1e-12
    assert result.value >= X[:, 4].var() * (1 - 1e-9)
    assert verify(result, X).verdict == "proved"


def test_uncorrelated_components_that_correlate_are_refused_with_the_remedy() -> None:
    asked = {"uncorrelated": True, "certify": False, "n_components": 2, **SHORT}
    with pytest.raises(ValueError, match=r"differ by a factor of 5.*scale=True"):
        sparse_pca(in_units(1e100), n_nonzero_coefs=[3, 2], **asked)
    scaled = sparse_pca(in_units(1e100), n_nonzero_coefs=[3, 2], scale=True, **asked)
    assert scaled.largest_correlation < 1e-12


def test_orthogonal_components_exchange_features_with_all_weights_moving() -> None:
    """Four copies of a feature: no change of one component alone leads on from two long ones."""
    A = np.array([[0.93, -0.01, -0.86], [-0.01, 1.34, -0.93], [-0.86, -0.93, 3.07]])
    copies = [0, 1, 0, 2, 0, 0]
    A = A[np.ix_(copies, copies)]
    result = sparse_pca(
        covariance=A, n_components=2, n_nonzero_coefs=4, supports="orthogonal", certify=False
    )
    assert result.value > 7.19  # 6.67 without these exchanges
