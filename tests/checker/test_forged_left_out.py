"""Forgeries that live on what a proof leaves out: constant features, lost digits, other columns."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest

from sparcipal import Status, alternatives, sparse_pca, verify
from sparcipal.data.missing import means
from sparcipal.problem.result import Bound
from tests.support.second_checker import check_alternatives

ARITHMETICS = [
    "float",
    pytest.param(
        "exact",
        marks=pytest.mark.skipif(find_spec("flint") is None, reason="python-flint is missing"),
    ),
]

# the step of a tree that ends where it begins
ROOT_LEAF = {
    "step": "node",
    "parent": -1,
    "side": "root",
    "moved": np.array([], dtype=np.int32),
    "passes": [],
    "end": "leaf",
}


def refused(forged, arithmetic="float", X=None, **data):
    said = verify(forged, X, arithmetic=arithmetic, **data)
    return said.verdict == "refused"


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_orthogonal_components_may_lie_on_constant_features(arithmetic):
    """With more components than features kept, a negative maximum would lower the sum at will."""
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
        ROOT_LEAF,
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


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_rewards_count_for_components_that_lie_partly_on_constant_features(arithmetic):
    """Such a component is charged a part of a negative eigenvalue, and gets its rewards in full."""
    rng = np.random.default_rng(0)
    X = np.zeros((30, 6))
    X[:, :2] = rng.standard_normal((30, 2)) @ np.array([[1, 0.5], [0, 1]])
    result = sparse_pca(X, n_components=3, n_nonzero_coefs=2, supports="orthogonal")
    unit = result.certificate.unit
    A = np.cov(X.T, bias=True)[:2, :2] / unit
    less, reward = np.trace(A), 0.5 * np.trace(A)
    Z, shift = A + less * np.eye(2), 4 * less
    prices = np.array([-reward, 0.0])
    top = float((shift - less + reward) * (1 + 1e-9))  # of a support with the first feature
    problem = {"step": "problem", "s": 2, "nonnegative": False, "bound": top, "unit": 1.0,
               "twins": {}, "prices": prices}  # fmt: skip
    data = {
        "kept": np.array([0, 1]),
        "L": np.linalg.cholesky(Z),
        "beta": (np.diag(Z) + prices) * (1 + 1e-9),
        "shift": float(shift),
        "parts": [{"s": 2, "log": [problem, ROOT_LEAF]}],
    }
    paid = float(np.trace(Z) - reward)
    for sum_, verdict in ((paid, "refused"), (paid + 3 * reward, "proved")):
        value = sum_ * unit * (1 + 1e-6)
        margin = sum(b.margin for b in result.certificate.bounds if b.name == "orthogonal")
        every = {b.name: b.margin for b in result.certificate.bounds}
        bound = Bound("orthogonal", value, data, margin or every["parts"])
        bounds = (*result.certificate.bounds, bound)
        bounds = tuple(sorted(bounds, key=lambda bound: bound.value))
        forged = replace(result, certificate=replace(result.certificate, bounds=bounds))
        said = verify(forged, X, arithmetic=arithmetic)
        assert said.verdict == verdict, said.reason
        assert verdict == "proved" or "'orthogonal'" in said.reason


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_for_orthogonal_components_with_weight_on_constant_features(seed):
    """Two components on overlapping features that a constant column makes orthogonal."""
    rng = np.random.default_rng(seed)
    p, s = 4, 3
    X = np.zeros((20, p + 1))
    X[:, :p] = rng.standard_normal((20, 1)) * rng.uniform(0.5, 2, p) + 0.7 * rng.standard_normal(
        (20, p)
    )
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=s, supports="orthogonal")
    assert verify(result, X)
    A, best = np.cov(X.T, bias=True), 0.0
    for first, second in combinations_with_replacement(combinations(range(p), s - 1), 2):
        for angle in np.linspace(0.01, np.pi / 2, 40):
            x = np.zeros(p + 1)
            x[list(first)] = np.linalg.eigh(A[np.ix_(first, first)])[1][:, -1] * np.cos(angle)
            x[p] = np.sin(angle)
            own = [*second, p]
            q = x[own] / np.linalg.norm(x[own])
            rest = np.eye(s) - np.outer(q, q)
            best = max(best, x @ A @ x + np.linalg.eigvalsh(rest @ A[np.ix_(own, own)] @ rest)[-1])
    assert 0.0 < best <= result.bound


def test_pairwise_matrices_are_not_believed_where_means_hide_them():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((200, 1)) + 0.5 * rng.standard_normal((200, 5))
    Y[3, 2] = Y[7, 0] = np.nan
    result = sparse_pca(Y + 1e3, n_nonzero_coefs=3, missing="pairwise")
    assert verify(result, Y + 1e3).verdict == "proved"
    far = Y + 1e12
    with pytest.raises(ValueError, match="rounding of its mean hides covariances"):
        sparse_pca(far, n_nonzero_coefs=3, missing="pairwise")
    said = verify(replace(result, mean=means(far, None)), far)
    assert said.verdict == "refused"
    assert "rounding hides" in said.reason


@pytest.fixture(scope="module")
def near():
    X = np.random.default_rng(5).standard_normal((40, 6))
    X[:, 1] = X[:, 0]
    return X, alternatives(X, n_nonzero_coefs=2, within=0.3)


def test_verify_refuses_a_group_that_is_claimed_twice(near):
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


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("more", [6e-4, 1e-5])
def test_orthogonal_components_may_avoid_negative_eigenvalues(arithmetic, more):
    """The sum of all eigenvalues of a matrix that is not quite positive semidefinite is less than
    what a component on a constant feature, in place of the last one, leaves."""
    A = np.zeros((4, 4), dtype=np.float32)
    A[:2, :2] = 1.0
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "supports": "orthogonal"}
    result = sparse_pca(covariance=A, **asked)
    assert verify(result, covariance=A, arithmetic=arithmetic)
    A[0, 1] = A[1, 0] = 1.0 + more
    more = float(A[0, 1]) - 1.0
    certificate, h = result.certificate, np.sqrt(0.5)
    for trace in (2.0, 2.0 * (1 + 1e-12)):
        bound = replace(
            certificate.bounds[0], name="eigenvalues", value=trace, data={"kept": np.arange(2)}
        )
        forged = replace(
            result,
            supports=(np.arange(2),) * 2,
            weights=(np.array([h, h]), np.array([h, -h])),
            variances=np.array([2.0 + more, -more]),
            total_variance=2.0,
            certificate=replace(
                certificate,
                value=2.0,
                bound=trace,
                rounding=4 * 12 * 2.0**-52 * 8,
                bounds=(bound,),
                status=Status.OPTIMAL,
            ),
        )
        assert refused(forged, arithmetic, covariance=A)


def almost_twins():
    """Features 0 and 1 covary differently with 2 and 3, on which the best supports lie."""
    A, less = np.eye(6), 0.15
    for i, j, entry in (
        (0, 1, 1 - less),
        (0, 2, 0.7),
        (0, 3, 0.7),
        (1, 2, 0.7 + less),
        (1, 3, 0.7 + less),
        (2, 3, 1.0),
    ):
        A[i, j] = A[j, i] = entry
    A[4, 4] = A[5, 5] = 0.01
    return A


def a_leaf(s, bound, listed=(), twins=None):
    """The log of a tree that is one leaf."""
    return [
        {
            "step": "problem",
            "s": s,
            "nonnegative": False,
            "bound": bound,
            "unit": 1.0,
            "twins": twins or {},
            "listed": [np.array(support, dtype=np.int32) for support in listed],
        },
        ROOT_LEAF,
    ]


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_features_that_differ_are_no_twins_of_a_list(arithmetic):
    """Supports that hold the larger of two "twins" would be on the list of the smaller one."""
    A = almost_twins()
    result = sparse_pca(covariance=A, n_nonzero_coefs=3)
    found = alternatives(result, covariance=A, within=0.05)
    assert verify(found, covariance=A, arithmetic=arithmetic)
    near = found.components[0]

    def explained(support):
        w, Q = np.linalg.eigh(A[np.ix_(support, support)])
        return float(w[-1]), Q[:, -1] * np.sign(Q[:, -1].sum())

    def entry(support, count):
        value, weights = explained(support)
        return replace(
            near.supports[0],
            support=np.array(support),
            weights=weights,
            value=value,
            bound=value + 1e-9,
            count=count,
        )

    value, weights = explained([0, 2, 3])
    worse = replace(
        result,
        supports=(np.array([0, 2, 3]),),
        weights=(weights / np.linalg.norm(weights),),
        variances=np.array([value]),
        certificate=replace(result.certificate, value=value, status=Status.GAP),
    )
    assert verify(worse, covariance=A)
    listed = sorted(
        (entry([0, 2, 3], 2), entry([0, 1, 2], 1), entry([0, 1, 3], 1)), key=lambda e: -e.value
    )
    twins = {
        "features": np.array([1], dtype=np.int32),
        "leaders": np.array([0], dtype=np.int32),
        "factors": np.array([1.0]),
    }
    level, low = value - 1e-6, value + 2e-9
    assert low < explained([1, 2, 3])[0]
    log = a_leaf(3, level - 1e-9, [e.support for e in listed], twins)
    forged = replace(
        near,
        value=value,
        asked=value,
        level=level,
        supports=tuple(listed),
        groups=(np.array([0, 1]),),
        drops=(replace(near.drops[0], feature=0, value=value - 1e-9, bound=low, fit=None),),
        forces=(),
        outsiders=np.array([1]),
        leaving=np.array([0]),
        with_value=np.array([value]),
        with_bound=np.array([low]),
        proof={"log": log, "kept": np.arange(6)},
    )
    claim = replace(
        found, result=worse, within=0.0, components=(forged,), drops=(), status="complete"
    )
    assert refused(claim, arithmetic, covariance=A)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_excluded_features_are_no_outsiders(arithmetic):
    """An answer with a feature that the question excludes is none."""
    A = almost_twins()
    result = sparse_pca(covariance=A, n_nonzero_coefs=3, exclude=[1])
    found = alternatives(result, covariance=A, within=0.05)
    assert verify(found, covariance=A, arithmetic=arithmetic)
    forged = replace(
        found.components[0],
        level=3.0 + 1e-9,
        supports=(),
        groups=(),
        drops=(),
        forces=(),
        outsiders=np.array([1]),
        leaving=np.array([0]),
        with_value=np.array([2.8]),
        with_bound=np.array([3.1]),
        proof={"log": a_leaf(3, 3.0), "kept": np.arange(6)},
    )
    claim = replace(found, components=(forged,), status="more")
    assert refused(claim, arithmetic, covariance=A)


@pytest.mark.parametrize("exponent", [-560, -900])
def test_screened_squares_do_not_underflow(exponent):
    """Deviations whose squares are lost would leave a standardised table without covariances."""
    rng = np.random.default_rng(0)
    asked = {"n_nonzero_coefs": 3, "scale": True, "memory_limit": 1000}
    result = sparse_pca(rng.standard_normal((400, 8)), **asked)
    assert result.certificate.screening
    X = rng.standard_normal((400, 1)) + 0.1 * rng.standard_normal((400, 8))
    assert np.linalg.eigvalsh(np.corrcoef(X.T)[:3, :3])[-1] > 2.9
    X = np.ldexp(X, exponent)
    low = 1.0 + 1e-9
    said = {"rule": "nothing dropped", "inside": low, "touching": 0.0}
    bound = replace(
        result.certificate.bounds[0],
        name="eigenvalues",
        value=low,
        data={"screened": {**said, "kept": np.arange(8)}},
        margin=0.0,
    )
    screening = {
        **said,
        "kept": 8,
        "dropped": 0,
        "largest_dropped": 0.0,
        "support_unchanged": True,
        "bound_holds": True,
    }
    forged = replace(
        result,
        supports=(np.array([0]),),
        weights=(np.array([1.0]),),
        variances=np.array([1.0]),
        total_variance=8.0,
        mean=X.mean(axis=0),
        scale=np.ones(8),
        certificate=replace(
            result.certificate,
            value=1.0,
            bound=low,
            bounds=(bound,),
            status=Status.OPTIMAL,
            screening=screening,
            rounding=3e-14,
        ),
    )
    assert refused(forged, X=X)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("exponent", [-1074, -1072])
def test_bounds_among_denormal_numbers_are_rounded_up(arithmetic, exponent):
    """2 + sqrt(2) units of the least number are 3 of them only when rounded down."""
    B = np.array([[1.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
    result, least = sparse_pca(covariance=B, n_nonzero_coefs=2), 2.0**-1074
    bound = replace(
        result.certificate.bounds[0], name="enumeration", value=3 * least, data={}, margin=0.0
    )
    forged = replace(
        result,
        variances=np.array([3 * least]),
        total_variance=5 * least,
        certificate=replace(
            result.certificate,
            value=3 * least,
            bound=3 * least,
            bounds=(bound,),
            unit=2.0**exponent,
            rounding=0.0,
            status=Status.OPTIMAL,
        ),
    )
    assert refused(forged, arithmetic, covariance=B * least)


@pytest.mark.parametrize("given", [False, True])
def test_excluded_columns_set_neither_errors_nor_values(given):
    """However large they are, the answer is the same, and no error of theirs hides in a value."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1)) + rng.standard_normal((60, 8))
    known = []
    for size in (1.0, 2.0**100):
        X[:, 3] *= size
        data = {"covariance": np.cov(X.T)} if given else {"X": X}
        result = sparse_pca(**data, n_nonzero_coefs=3, exclude=[3])
        assert verify(result, **data)
        known.append((result.value, result.bound, result.certificate.rounding))
    assert known[0] == known[1]
    certificate = result.certificate
    more = 1e3 * certificate.rounding
    forged = replace(
        result,
        variances=result.variances + more,
        certificate=replace(certificate, value=certificate.value + more, rounding=2 * more),
    )
    assert refused(forged, **data)


def test_columns_that_a_result_does_not_name_are_mentioned():
    """A frame may have more columns than a result names, and larger ones."""
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).standard_normal((50, 6)) * np.array([1, 1, 1, 1, 9, 9])
    frame = pd.DataFrame(X, columns=list("abcdef"))
    result = sparse_pca(frame[list("abcd")], n_nonzero_coefs=2)
    assert "set aside" not in verify(result, frame[list("abcd")]).reason
    assert "; 2 columns of X that the result does not name were set aside" in (
        verify(result, frame).reason
    )


@pytest.fixture(scope="module")
def exchanges():
    x = np.array([1, 1, 1, 0.8, 0.1, 0.1])
    A = np.outer(x, x) + np.diag([0, 0, 0, 0.05, 0.05, 0.06])
    result = sparse_pca(covariance=A, n_nonzero_coefs=2)
    return A, alternatives(result, covariance=A, within=0.02)


def with_more(found, support, weights, value):
    """The same list with one support more, in the claim and in its log."""
    near = found.components[0]
    log = near.proof["log"]
    header = {**log[0], "listed": [*log[0]["listed"], np.array(support)]}
    entry = near.supports[0]
    more = replace(entry, support=np.array(support), weights=weights, value=value)
    if value < entry.value:
        more = replace(more, bound=value + 1e-6, count=1)
    return replace(
        found,
        components=(
            replace(
                near,
                supports=(entry, more, *near.supports[1:]),
                proof={**near.proof, "log": [header, *log[1:]]},
            ),
        ),
    )


@pytest.mark.parametrize("support", [[0, 2], [1, 2]])
def test_a_support_and_its_exchange_are_not_both_counted(exchanges, support):
    A, found = exchanges
    assert found.components[0].count == 3
    first = found.components[0].supports[0]
    forged = with_more(found, support, first.weights, first.value)
    assert "exchange" in verify(forged, covariance=A).reason


def test_supports_that_explain_too_little_are_not_counted(exchanges):
    A, found = exchanges
    w, Q = np.linalg.eigh(A[3:5, 3:5])
    weights = Q[:, -1] / np.linalg.norm(Q[:, -1])
    forged = with_more(found, [3, 4], weights, float(w[-1]))
    assert "less than was asked for" in verify(forged, covariance=A).reason


def test_a_feature_and_its_negative_are_not_exchanged_in_nonnegative_components():
    """The log of the signed list proves its level of nonnegative components as well."""
    x = np.array([1, -1, 1.5, 0.4])
    A = np.outer(x, x) + np.diag([0, 0, 0.3, 0.2])
    signed, own = (
        alternatives(
            sparse_pca(covariance=A, n_nonzero_coefs=2, nonnegative=one_sign),
            covariance=A,
            within=0.5,
        )
        for one_sign in (False, True)
    )
    taken = ("proof", "groups", "supports", "level")
    near = signed.components[0]
    assert near.groups
    forged = replace(own.components[0], **{name: getattr(near, name) for name in taken})
    claim = replace(own, components=(forged,))
    assert "differ cannot be exchanged" in verify(claim, covariance=A).reason
    said = check_alternatives(claim.to_json(), covariance=A)
    assert said == "refused: multiples that are not equal"
