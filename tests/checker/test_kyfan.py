"""The joint bound for disjoint supports, redone: charges, prices, rows outside, margins."""

from __future__ import annotations

import numpy as np
import pytest

from sparcipal.checker import kyfan
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.covariance import Question, covariance_of, covariance_of_data
from sparcipal.checker.family import Case, redone
from sparcipal.checker.gate import parse
from sparcipal.checker.records import KyFan
from tests.support.margins import LESS, E, from_data, one
from tests.support.replay import FLOAT, recheck


def spectrum(data, cov, question, floor=0.0, empty=False):
    record = parse(KyFan, data, {"p": cov.p}, "kyfan")
    return kyfan.spectrum(record, Case(cov, question, FLOAT, Budget()), floor, empty)


def outside_rows(cov, level, *of):
    return kyfan.outside_rows(kyfan.Rows(*of), level, Case(cov, None, FLOAT, Budget()))


@pytest.mark.parametrize("prices", [[0.1, -0.1], [0.1], [0.1, np.nan], [0.1, np.inf]])
def test_joint_bounds_refuse_prices_that_are_none(prices):
    own = covariance_of(np.eye(2), 1.0)
    joint = {"features": np.arange(2), "u": np.zeros(1), "r": np.zeros(1)}
    joint |= {"price": np.array(prices), "pad": 0.5}
    question = Question((1,), False, True, 0.0)
    assert recheck("kyfan", joint, own, question) == np.inf
    priced = {"price": np.array(prices), "parts": []}
    if prices == [0.1, -0.1]:  # a reward, of which tests/checker/test_configuration.py speaks
        return
    with pytest.raises(Refused, match="price"):
        redone("configuration", priced, Case(own, question, FLOAT, Budget()))


@pytest.mark.parametrize("k", [2, 3])
def test_joint_bounds_refuse_overlapping_supports(k):
    own = covariance_of(np.eye(4), 1.0)
    free = Question((1,) * k, False, False, 0.0)
    for name in ("kyfan", "configuration"):
        with pytest.raises(Refused, match="overlapping"):
            redone(name, {}, Case(own, free, FLOAT, Budget()))
    dual = {"rho": 0.5, "core": np.arange(4), "support": np.arange(1), "weights": np.ones(1)}
    assert recheck("greedy-dual", dual, own, Question((1,), False, True, 0.0)) < 2.0
    assert recheck("greedy-dual", dual, own, free) == np.inf
    assert recheck("greedy-dual", dual, own, Question((1,) * k, False, True, 0.0)) == np.inf


def test_spectrum_refuses_floors_that_the_pads_do_not_cover():
    own = covariance_of(np.eye(3) + 0.5, 1.0)
    question = Question((2,), False, True, 0.0)
    split_data = {
        "features": np.arange(3),
        "u": np.full(3, 0.5),
        "r": np.zeros(3),
        "price": np.zeros(3),
        "pad": 0.25,
    }
    plain = spectrum(split_data, own, question)[0]
    # U takes all entries off; each row pays for one partner
    assert 2.0 <= plain <= 2.0 + 1e-12
    lower, price = spectrum(split_data, own, question, 0.25)
    assert 1.5 <= lower <= 1.5 + 1e-12
    assert (price == 0.25).all()
    for floor in (0.2500001, -1e-9):
        with pytest.raises(Refused, match="pads"):
            spectrum(split_data, own, question, floor)
    # a component with no feature here explains 0, not less
    bare = {**split_data, "pad": 4.0, "u": np.zeros(3)}
    below = spectrum(bare, own, question, 4.0)[0]
    assert below < -1.0
    assert 0.0 <= spectrum(bare, own, question, 4.0, empty=True)[0] <= 1e-12


def outside_formula(A, core, theta, price, s, nonnegative):
    """m_j, the largest sum of charges of a row outside the core, one by one."""
    rest = np.setdiff1d(np.arange(len(A)), core)
    out = []
    for j in rest:
        size = np.maximum(A[j], 0.0) if nonnegative else np.abs(A[j])
        terms = [size[a] ** 2 / t - b for a, t, b in zip(core, theta, price)]
        terms += [size[i] for i in rest if i != j]
        out.append(A[j, j] + sum(sorted((max(v, 0.0) for v in terms), reverse=True)[: s - 1]))
    return rest, np.array(out)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_outside_rows_equal_their_formula_above_the_level(nonnegative, monkeypatch):
    monkeypatch.setattr(kyfan, "CHUNK", 3)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 9)) * np.geomspace(3, 0.3, 9) + rng.standard_normal((12, 1))
        own = covariance_of_data(X, True, False, None, 1.0)[0]
        A = own.dense()
        core = np.sort(rng.permutation(9)[:4])
        theta, price = rng.uniform(0.05, 2.0, 4), rng.random(4) * 0.3
        for cov in (own, covariance_of(A, 1.0)):
            for s in (1, 2, 4):
                _, plain = outside_formula(A, core, theta, price, s, nonnegative)
                for level in (-np.inf, float(np.median(plain)), float(plain.max()) * 1.5):
                    found = outside_rows(cov, level, core, theta, price, s, nonnegative)
                    assert (found >= np.minimum(plain, found.max()) * (1 - 1e-15)).all()
                    assert (found >= plain * (1 - 1e-14))[plain > level].all()
                    exact = np.isclose(found, plain, rtol=1e-9)
                    assert (exact | (found == level)).all()


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("nonnegative", [False, True])
def test_spectrum_and_recheck_keep_their_margins(nonnegative, monkeypatch):
    seen = {}
    monkeypatch.setattr(Float, "ky_fan", lambda ar, M, *rest: seen.update(M=M) or 0.0)
    cov = from_data(6)
    rng = np.random.default_rng(3)
    u, r = rng.standard_normal(15) * 0.1, rng.standard_normal(15)
    price, pad, s = rng.random(6) * 0.1, 0.01, 3
    data = {"features": np.arange(6), "u": u, "r": r, "price": price, "pad": pad}
    full, turn = np.zeros((6, 6)), np.zeros((6, 6))
    full[np.triu_indices(6, 1)], turn[np.triu_indices(6, 1)] = u, r
    full, turn = full + full.T, turn - turn.T
    v = np.maximum(full, 0.0) if nonnegative else np.abs(full)
    gain = np.maximum(v * np.exp(turn) * (1 + 6 * E) - price, pad)
    floor = 0.005
    question = one(s, 2, nonnegative=nonnegative)
    total, prices = spectrum(data, cov, question, floor)
    assert total >= 4 * 2 * s * E * floor * LESS
    assert np.allclose(prices, price + floor, atol=0)
    for i in range(6):
        charge = np.sort(np.delete(gain[i], i))[::-1][: s - 1].sum()
        charge += (s + 7) * E * charge + 8 * s * E * price.max()
        due = cov.dense()[i, i] + charge - price[i] - s * floor
        assert seen["M"][i, i] >= due - 1e-12
        assert seen["M"][i, i] <= due + 1e-3
    paid = np.sort(price)[::-1][:5].sum()
    assert recheck("kyfan", data, cov, question) >= paid * (1 + 6 * E) * LESS


ONE = Question((2,), False, True, 0.0)


def test_outside_rows_of_given_matrices_are_not_dismissed_by_variances(monkeypatch):
    """Where a PSD matrix is not promised, a small variance may stand beside a large entry."""
    A = np.diag([1.0, 1.0, 1e-3, 1e-3])
    A[0, 2] = A[2, 0] = 0.9
    core, theta, price = np.array([0, 1]), np.full(2, 0.5), np.zeros(2)
    found = outside_rows(covariance_of(A, 1.0), 1.0, core, theta, price, 2, False)
    assert found[0] >= 1e-3 + 0.81 / 0.5
    seen = []
    top_sum = lambda ar, charges, q: seen.append(charges) or np.zeros(2)  # noqa: E731
    monkeypatch.setattr(Float, "top_sum", top_sum)
    X = np.random.default_rng(2).standard_normal((9, 4))
    own = covariance_of_data(X, True, False, None, 1.0)[0]
    own.error_unit = 0.05
    outside_rows(own, 9.0, core, theta, price, 2, False)
    variance = own.diagonal + 0.05 * own.weights
    assert (seen[0][:, :2] >= np.outer(variance[2:], variance[:2]) / 0.5 * (1 - 1e-12)).all()
    assert (seen[0][:, 2] >= np.sqrt(variance[2:] * variance[2:].max()) * (1 - 1e-12)).all()


def test_joint_bounds_add_the_errors_of_the_covariance():
    X = np.random.default_rng(5).standard_normal((9, 4))
    own = covariance_of_data(X, True, False, None, 1.0)[0]
    split_data = {"features": np.arange(4), "u": np.full(6, 0.1), "r": np.zeros(6)}
    split_data |= {"price": np.zeros(4), "pad": 0.1}
    plain = [recheck("kyfan", split_data, own, ONE), recheck("enumeration", {}, own, ONE)]
    own.error_unit += 1e-3
    more = [recheck("kyfan", split_data, own, ONE), recheck("enumeration", {}, own, ONE)]
    due = 1e-3 * np.sort(own.weights)[::-1][:2].sum()
    assert np.allclose(np.array(more) - plain, due, rtol=1e-6)


def test_spectrum_charges_rows_outside_the_smallest_charge_paid_anyway(monkeypatch):
    """A feature outside takes the smallest charge that a row of the core pays anyway."""
    seen = []
    outside = lambda of, *rest: seen.append(of.theta) or np.zeros(2)  # noqa: E731
    monkeypatch.setattr(kyfan, "outside_rows", outside)
    data = {"features": np.arange(3), "u": np.array([0.3, 0.2, 0.1]), "r": np.zeros(3)}
    data |= {"price": np.zeros(3), "pad": 0.15}
    cov = covariance_of(np.eye(5), 1.0)
    spectrum(data, cov, Question((2,), False, True, 0.0))
    spectrum(data, cov, Question((3,), False, True, 0.0))
    assert np.allclose(seen[0], [0.3, 0.3, 0.2])
    assert np.allclose(seen[1], [0.2, 0.15, 0.15])
