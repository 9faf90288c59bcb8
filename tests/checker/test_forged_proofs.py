"""What each family of proofs must hold, one refusal at a time: the checker says no, or infinity."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Result, Status, sparse_pca, verify
from sparcipal.bounds.kyfan import bound as kyfan
from sparcipal.bounds.tree.question import TreeQuestion
from sparcipal.bounds.tree.search import prove
from sparcipal.checker import kyfan as checked_kyfan
from sparcipal.checker import lowrank as sphere
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.checker.family import Case, redone
from sparcipal.problem import sketch
from sparcipal.problem.covariance import covariance_of
from sparcipal.problem.result import Bound
from sparcipal.search.joint import joint_search
from tests.support.brute import best_value, sparse_rows
from tests.support.replay import FLOAT, recheck, replay

A = np.cov(np.random.default_rng(0).standard_normal((30, 8)).T)
ONE = Question((2,), False, True, 0.0)
TWO = Question((2, 2), False, True, 0.0)


def given(matrix: np.ndarray = A):
    return checked_covariance(matrix, 1.0)


# --- the cheap bounds ---


def test_proofs_with_numbers_that_prove_nothing_are_refused():
    cov = given()
    for c in (np.nan, np.inf):
        assert recheck("frobenius", {"c": c}, cov, ONE) == np.inf
        assert recheck("clip", {"rho": c}, cov, ONE) == np.inf
    assert recheck("clip", {"rho": -0.1}, cov, ONE) == np.inf
    assert recheck("frobenius", {"c": 0.1}, cov, ONE) >= best_value(A, (2,))


def test_more_supports_than_are_looked_at_prove_nothing():
    wide = checked_covariance(np.eye(40), 1.0)
    assert recheck("enumeration", {}, wide, Question((9,), False, True, 0.0)) == np.inf
    assert recheck("enumeration", {}, wide, Question((2,), False, True, 0.0)) < 1.1


def test_matrices_that_overflow_have_no_proved_eigenvalues():
    """LAPACK may factor what is no number; that proves nothing."""
    huge = np.array([[1e308, 1e308], [1e308, 1e308]])
    with np.errstate(all="ignore"):
        assert FLOAT.ky_fan(huge, 1) == np.inf


def test_few_samples_have_a_small_matrix_with_the_same_eigenvalues(monkeypatch):
    monkeypatch.setattr("sparcipal.checker.covariance.SMALL", 0)
    X = np.random.default_rng(1).standard_normal((4, 9))
    cov = checked_covariance_of_data(X, True, False, None, 1.0)[0]
    values = np.linalg.eigvalsh(cov.gram())
    np.testing.assert_allclose(values, np.linalg.eigvalsh(cov.dense())[-4:], atol=1e-12)
    assert given().gram() is None
    sparse = checked_covariance_of_data(sp.csr_array(X), True, False, None, 1.0)[0]
    assert sparse.gram() is None


def test_verify_tells_sparse_tables_apart_without_centring():
    X = sparse_rows((30, 6), 0.4, 2)
    result = sparse_pca(X, n_nonzero_coefs=2, center=False)
    assert verify(result, X), verify(result, X).reason
    assert verify(result, X.toarray())
    moved = X.copy()
    moved.data[0] += 0.5
    assert verify(result, moved).verdict == "refused"


def test_a_unit_that_makes_the_covariance_infinite_is_refused():
    result = sparse_pca(covariance=A, n_nonzero_coefs=2)
    document = json.loads(result.to_json())
    document["certificate"]["unit"] = 2.0**-1073
    verdict = verify(Result.from_json(json.dumps(document)), covariance=A * 1e10)
    assert verdict.verdict == "refused"
    assert "the unit does not fit the covariance" in verdict.reason


def test_a_bound_by_parts_without_its_parts_is_not_proved():
    X = np.random.default_rng(3).standard_normal((30, 6))
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=2, supports="free")
    document = json.loads(result.to_json())
    claimed = document["certificate"]["bounds"]
    document["certificate"]["bounds"] = parts = [b for b in claimed if b["name"] == "parts"]
    document["certificate"]["bound"] = parts[0]["value"]
    parts[0]["data"] = {}
    verdict = verify(Result.from_json(json.dumps(document)), X)
    assert verdict.verdict == "not proved"
    assert "'parts' was not saved" in verdict.reason


# --- duals ---


@pytest.mark.parametrize(
    "change",
    [
        {"penalty": -1.0},
        {"penalty": np.nan},
        {"moved": np.full(28, np.inf)},
        {"core": np.array([], dtype=int), "moved": np.zeros(0)},
        {"core": np.zeros(8, dtype=int)},
        {"core": np.arange(1, 9)},
        {"core": np.arange(-1, 7)},
        {"core": np.arange(7), "moved": np.zeros(21)},
    ],
)
def test_dspca_duals_are_refused_when_infeasible(change):
    """Without one of these numbers the dual is feasible; with one it is none."""
    data = {"penalty": 0.1, "core": np.arange(8), "moved": np.zeros(28)}
    assert best_value(A, (2,)) <= recheck("dspca-dual", data, given(), ONE) < np.inf
    assert recheck("dspca-dual", {**data, **change}, given(), ONE) == np.inf


def test_duals_hold_for_supports_that_may_overlap():
    data = {"penalty": 0.1, "core": np.arange(8), "moved": np.zeros(28)}
    free = recheck("dspca-dual", data, given(), Question((2, 2), False, False, 0.0))
    assert 2 * best_value(A, (2,)) <= free
    assert recheck("dspca-dual", data, given(), TWO) <= free


@pytest.mark.parametrize(
    "change",
    [
        {"core": np.array([], dtype=int)},
        {"core": np.arange(1, 9)},
        {"core": np.zeros(8, dtype=int)},
        {"support": np.array([0, 8])},
        {"support": np.array([-1, 2])},
        {"weights": np.ones(3)},
        {"weights": np.zeros(2)},
        {"weights": np.array([0.6e-162, 0.8e-162])},
        {"weights": np.array([0.6e160, 0.8e160])},
        {"rho": 0.0},
        {"core": np.arange(7)},
    ],
)
def test_duals_of_the_greedy_method_prove_nothing_when_changed(change):
    data = {
        "rho": 0.01,
        "core": np.arange(8),
        "support": np.array([0, 2]),
        "weights": np.array([0.6, 0.8]),
    }
    with np.errstate(all="ignore"):
        assert best_value(A, (2,)) <= recheck("greedy-dual", data, given(), ONE) < np.inf
        assert recheck("greedy-dual", {**data, **change}, given(), ONE) == np.inf


# --- prices ---


def joint_proof(matrix: np.ndarray) -> dict:
    cov = covariance_of(matrix)
    supports = joint_search(cov.dense(), (2, 2))
    return kyfan.kyfan_bound(kyfan.JointQuestion(cov, (2, 2), supports, 1.0)).data


def test_features_outside_the_core_need_a_pad():
    data = joint_proof(A)
    core = data["features"][:-1]
    m = core.size
    part = {"features": core, "price": data["price"][:m], "pad": 0.0}
    part |= {"u": np.zeros(m * (m - 1) // 2), "r": np.zeros(m * (m - 1) // 2)}
    with pytest.raises(Refused, match="outside the core need a positive pad"):
        redone("kyfan", part, Case(given(), TWO, FLOAT, Budget()))
    assert recheck("kyfan", {**part, "pad": 0.5}, given(), TWO) >= best_value(A, (2, 2))


def test_features_outside_are_dismissed_by_variances_only_where_these_suffice():
    """Where variances are enough no row is formed; where they are not, the rows themselves are."""
    rng = np.random.default_rng(4)
    for spread in (1e-3, 1.0):
        X = rng.standard_normal((20, 9)) * np.r_[np.ones(5), np.full(4, spread)]
        cov = checked_covariance_of_data(X, True, False, None, 1.0)[0]
        a, core = cov.dense(), np.arange(5)
        pads, price = np.full(5, 0.5), np.full(5, 0.01)
        exact = []
        for j in range(5, 9):
            near = np.abs(np.delete(a[j, 5:], j - 5))
            charges = np.r_[a[j, :5] ** 2 / pads - price, near]
            exact.append(a[j, j] + max(np.sort(np.maximum(charges, 0.0))[-1], 0.0))
        level = 0.1
        of = checked_kyfan.Rows(core, pads, price, 2, False)
        rows = checked_kyfan.outside_rows(of, level, Case(cov, ONE, FLOAT, Budget()))
        assert (rows >= np.array(exact) * (1 - 1e-12)).all() or (rows == level).all()
        np.testing.assert_array_less(np.array(exact), np.maximum(rows, level) * (1 + 1e-12))
        assert (rows == level).all() == (spread < 1)


@pytest.fixture(scope="module")
def priced():
    """A proof at prices for both components: the best support at these prices is proved."""
    price = np.full(8, 0.05)
    log = prove(A, 2, TreeQuestion(prices=price)).log
    return {"price": price, "parts": [{"s": 2, "log": log}]}


def changed_header(data: dict, **change) -> dict:
    data = copy.deepcopy(data)
    data["parts"][0]["log"][0].update(change)
    return data


def test_a_proof_at_prices_holds_for_its_own_cardinality_only(priced):
    own = recheck("configuration", priced, given(), TWO)
    assert best_value(A, (2, 2)) <= own < np.inf
    # proved for two nonzeros, asked about three
    assert recheck("configuration", priced, given(), Question((3, 2), False, True, 0)) == np.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.arange(1, 9)}, "features"),
        ({"features": np.array([[0, 1]])}, "features"),
        ({"features": np.arange(8)[::-1]}, "features"),
        ({"features": np.array([0, 1, 2, 3, 4, 5, 6, 6])}, "features"),
        ({"price": np.full(8, 0.04)}, "other prices"),
    ],
)
def test_priced_proofs_are_refused_with_another_core(priced, change, message):
    with pytest.raises(Refused, match=message):
        redone("configuration", {**priced, **change}, Case(given(), TWO, FLOAT, Budget()))


def test_priced_proofs_are_refused_for_other_questions(priced):
    with pytest.raises(Refused, match="nonnegative components only"):
        redone(
            "configuration",
            changed_header(priced, nonnegative=True),
            Case(given(), TWO, FLOAT, Budget()),
        )
    packed = {"target": 1.0, "u": np.zeros(28), "r": np.zeros(28)}
    for question in (Question((2, 1), False, True, 0.0), Question((2, 2), True, True, 0.0)):
        with pytest.raises(Refused, match="equal cardinalities and signed components"):
            redone(
                "configuration",
                {**priced, "packing": packed},
                Case(given(), question, FLOAT, Budget()),
            )


def test_supports_are_packed_only_from_all_features():
    price = np.full(7, 0.05)
    log = prove(A[:7, :7], 2, TreeQuestion(prices=price, pads=np.full(7, 0.5))).log
    data = {"price": price, "features": np.arange(7), "parts": [{"s": 2, "log": log}]}
    assert best_value(A, (2, 2)) <= recheck("configuration", data, given(), TWO)
    packed = {"target": 1.0, "u": np.zeros(21), "r": np.zeros(21)}
    with pytest.raises(Refused, match="no feature is left out"):
        redone("configuration", {**data, "packing": packed}, Case(given(), TWO, FLOAT, Budget()))


# --- claims that hide in rounding, in overflow and in numbers that are none ---


def optimal(result: Result, bound: Bound, **changes) -> Result:
    """The same answer, or another, with this bound as its proof of optimality."""
    value = changes.pop("value", result.value)
    certificate = replace(
        result.certificate,
        value=value,
        rounding=changes.pop("rounding", result.certificate.rounding),
        bounds=(bound,),
        bound=bound.value,
        status=Status.OPTIMAL,
    )
    return replace(result, certificate=certificate, **changes)


@pytest.mark.parametrize("level", [1e300, 1e308, 1.7e308])
def test_duals_that_overflow_prove_nothing(level):
    """For nonnegative components the dual may move entries up as far as it likes."""
    X = np.random.default_rng(0).standard_normal((40, 8))
    asked = {"n_components": 2, "n_nonzero_coefs": 2, "supports": "free", "nonnegative": True}
    result = sparse_pca(X, **asked, certify=False, method_options={"effort": 0})
    moved = {"penalty": 0.01, "core": np.arange(8), "moved": np.full(28, level)}
    assert verify(optimal(result, Bound("dspca-dual", result.value, moved)), X).verdict == "refused"


def test_majorants_are_refused_when_entries_are_no_numbers():
    """One nonzero is not charged for its row, so that nothing else would notice."""
    X = np.random.default_rng(0).standard_normal((40, 8)) * np.r_[0.5, np.ones(7)]
    result = sparse_pca(X, n_nonzero_coefs=1)
    least = float(X[:, 0].var())
    unit = result.certificate.unit
    V = np.zeros((8, 1))
    V[0] = np.sqrt(least / unit)
    data = {"V": V, "s": 1, "level": least / unit, "shift": 1e-9, "nonnegative": False}
    data |= {"proof": "features", "clip": np.nan, "tree": np.array([-1], dtype=np.int8)}
    poor = {"supports": (np.array([0]),), "weights": (np.ones(1),), "variances": np.array([least])}
    forged = optimal(result, Bound("lowrank", least * (1 + 1e-7), data), value=least, **poor)
    assert result.value > 2 * least
    assert verify(forged, X).verdict == "refused"
    assert verify(Result.from_json(forged.to_json()), X).verdict == "refused"


def test_loadings_that_make_errors_grow_do_not_make_room_for_claims():
    """The difference of two features that are nearly the same comes first: any error grows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    X[:, 1] = X[:, 0] + 1e-7 * rng.standard_normal(40)
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=2, supports="free")
    W = np.zeros((8, 2))
    W[[0, 1], 0], W[5, 1] = [np.sqrt(0.5), -np.sqrt(0.5)], 1.0
    P = W.T @ np.cov(X.T, bias=True) @ W
    poor = {"supports": (np.array([0, 1]), np.array([5])), "weights": (W[:2, 0], np.ones(1))}
    bound = result.certificate.bounds[0]
    for rounding in (bound.value, 2 * bound.value, 3 * bound.value):
        claimed = np.array([P[0, 0], bound.value - P[0, 0]])
        forged = optimal(
            result, bound, value=bound.value, rounding=rounding, variances=claimed, **poor
        )
        assert verify(forged, X).verdict == "refused"


def test_an_optimum_is_not_one_beyond_what_rounding_hides():
    """Two components that are one, up to rounding: what the second adds is not known."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 4)) * [1e-8, 1.0, 0.1, 0.1]
    X[:, 1] += 1e8 * X[:, 0]
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=1, supports="free", center=False)
    swapped = {"supports": (np.array([0]), np.array([1])), "weights": (np.ones(1), np.ones(1))}
    A = X.T @ X / 40
    left = A[1, 1] - A[0, 1] ** 2 / A[0, 0]
    forged = optimal(
        result,
        Bound("eigenvalues", float(left), {}),
        value=A[0, 0] + left,
        rounding=1e3,
        variances=np.array([A[0, 0], left]),
        **swapped,
    )
    assert verify(forged, X).verdict == "refused"


def test_traces_count_what_a_matrix_lacks_of_being_psd():
    """Negative eigenvalues, allowed up to rounding of the input, lower a trace."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    matrix = (Q * np.r_[1.0, 0.9, 1e-7, np.full(57, -1e-8)]) @ Q.T
    matrix = (matrix + matrix.T) / 2
    cov = covariance_of(matrix)
    guess = sketch.lowered(sketch.spectrum(cov, 2), 2, 0.0)
    missed = float(np.linalg.eigvalsh(matrix / cov.unit - guess.V @ guess.V.T)[-1])
    claimed = sketch._prove_by_trace(cov, guess).tail
    theirs = checked_covariance(matrix, cov.unit)
    own = sphere._by_trace(guess.V, Case(theirs, ONE, FLOAT, Budget()))
    assert missed <= own <= claimed


@pytest.mark.parametrize("exponent", [1023, 200, -200, -1022])
def test_logs_in_the_unit_of_another_matrix_are_refused(exponent):
    log = prove(A, 3).log
    assert replay(log, A) < np.inf
    log[0]["unit"] = 2.0**exponent
    with pytest.raises(Refused, match="unit that does not fit"):
        replay(log, A)


# --- proofs of something else ---


def first_three(X: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray, float]:
    """The covariance in the proof's units, and what features 0, 1, 2 explain: not the optimum."""
    matrix = checked_covariance_of_data(X, True, False, None, unit)[0].dense()
    x = np.linalg.eigh(matrix[:3, :3])[1][:, -1]
    return matrix, x, float(x @ matrix[:3, :3] @ x) * unit


def test_logs_with_prices_bound_less_than_the_value():
    """What a support is worth beyond its price says nothing about what it is worth."""
    X = np.random.default_rng(0).standard_normal((40, 8))
    result = sparse_pca(X, n_nonzero_coefs=3)
    unit = result.certificate.unit
    matrix, x, poor = first_three(X, unit)
    assert poor < 0.9 * result.value
    for price in (0.2, 0.3, 0.5):
        data = prove(matrix, 3, TreeQuestion(prices=np.full(8, price * float(matrix.max())))).data()
        forged = optimal(
            result,
            Bound("tree", poor * (1 + 5e-7), data),
            value=poor,
            supports=(np.arange(3),),
            weights=(x,),
            variances=np.array([poor]),
        )
        assert verify(forged, X).verdict == "refused"
        question = Question((3,), False, True, 0.0)
        assert recheck("tree", data, checked_covariance(matrix, 1.0), question) == np.inf


@pytest.mark.parametrize("c", [-1e16, -1e20, -1e30, -1.0])
def test_frobenius_bounds_about_a_negative_number_keep_their_margin(c):
    """k c + sqrt(k rho) is the difference of two large numbers there, and rounding is all of it."""
    X = np.random.default_rng(0).standard_normal((40, 8)) * np.r_[0.5, np.ones(7)]
    result = sparse_pca(X, n_nonzero_coefs=1)
    least = float(X[:, 0].var())
    poor = {"supports": (np.array([0]),), "weights": (np.ones(1),), "variances": np.array([least])}
    bound = Bound("frobenius", least * (1 + 1e-7), {"c": c})
    assert verify(optimal(result, bound, value=least, **poor), X).verdict == "refused"


def test_a_total_is_for_components_of_any_size():
    """A bound for one nonzero each is none for five nonzeros in all."""
    X = np.random.default_rng(0).standard_normal((40, 8))
    X[:, 3] += X[:, 1]
    total = sparse_pca(X, n_components=2, n_nonzero_coefs={"total": 5})
    assert verify(total, X)
    single = sparse_pca(X, n_components=2, n_nonzero_coefs=1)
    assert single.value < 0.9 * total.value
    bound = next(b for b in single.certificate.bounds if b.name == "gershgorin")
    settings = {**single.settings, "n_nonzero_total": 5}
    forged = replace(optimal(single, bound), settings=settings)
    verdict = verify(forged, X)
    assert verdict.verdict == "refused"
    assert "no total of nonzeros" in verdict.reason


def test_full_supports_need_enough_features():
    """Where there are none, the best of none is no bound: smaller supports are what is left."""
    X = np.random.default_rng(0).standard_normal((40, 5))
    X[:, 2:] = 1.0
    result = sparse_pca(X, n_nonzero_coefs=3)
    assert verify(result, X)
    least = int(np.argmin(X[:, :2].var(axis=0)))
    value = float(X[:, least].var())
    poor = {"supports": (np.array([least]),), "weights": (np.ones(1),)}
    bound = Bound("enumeration", value * (1 + 1e-7), {"kept": np.array([0, 1])})
    forged = optimal(result, bound, value=value, variances=np.array([value]), **poor)
    assert verify(forged, X).verdict == "refused"
    cov, three = checked_covariance(A[:5, :5], 1.0), Question((3, 3), False, True, 0.0)
    assert recheck("enumeration", {}, cov, three) == np.inf
    # nonnegative components: supports of every size are looked at
    best = best_value(A[:5, :5], (3, 2), True)
    positive = Question((3, 3), True, True, 0.0)
    assert recheck("enumeration", {}, cov, positive) >= best * (1 - 1e-12)


def test_prices_that_only_empty_components_would_pay_are_refused():
    """With fewer features than components, prices on one feature would be paid by empty ones."""
    X = np.random.default_rng(0).standard_normal((40, 5))
    X[:, 1:] = 1.0
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=1)
    unit = result.certificate.unit
    only = float(X[:, 0].var()) / unit
    data = {"features": np.array([0]), "price": np.array([1.9 * only]), "pad": 0.0}
    data |= {"u": np.zeros(0), "r": np.zeros(0), "kept": np.array([0])}
    low = Bound("kyfan", 0.1 * only * unit * (1 + 1e-5), data)
    certificate = replace(
        result.certificate,
        value=0.0,
        rounding=1e-13,
        bounds=(low,),
        bound=low.value,
        status=Status.GAP,
    )
    nothing = {"supports": (np.array([1]), np.array([2])), "weights": (np.ones(1), np.ones(1))}
    forged = replace(result, certificate=certificate, variances=np.zeros(2), info={}, **nothing)
    assert verify(result, X)
    assert "fewer features than there are nonzeros" in verify(forged, X).reason


@pytest.mark.parametrize("sizes", [[3, 3], [5, 5]])
def test_disjoint_supports_need_as_many_features(sizes):
    X = np.random.default_rng(0).standard_normal((40, 5))
    result = sparse_pca(X, n_components=2, n_nonzero_coefs=[3, 2])
    more = replace(result, settings={**result.settings, "n_nonzero_coefs": sizes})
    assert "fewer features than there are nonzeros" in verify(more, X).reason
