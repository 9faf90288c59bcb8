"""The checker's sums, charges and prices against the same in fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sparcipal import Screened
from sparcipal.checker import cheap as checked
from sparcipal.checker import configuration as checked_configuration
from sparcipal.checker import core as extension
from sparcipal.checker import dropped as screened
from sparcipal.checker import greedy as checked_greedy
from sparcipal.checker import kyfan as checked_kyfan
from sparcipal.checker import lowrank as sphere
from sparcipal.checker import pairsplit as split
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance_of
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from tests.support import oracle
from tests.support.margins import charges, matrices


def screened_sources(X: np.ndarray):
    import scipy.sparse as sp

    yield X
    yield sp.csr_array(X)
    yield lambda: iter([X[:5], sp.csr_array(X[5:])])


@pytest.mark.parametrize("kind", ["floats", "offset", "integers", "wide", "weights"])
@pytest.mark.parametrize(("center", "scale"), [(True, False), (False, False), (True, True)])
def test_the_checkers_sums_over_rows(kind, center, scale):
    """Every entry is as near to the covariance in fractions as its error term says."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((11, 5)) * [3.0, 2.0, 1.0, 0.5, 0.1]
        X[:, 3] = 4.0 if seed else X[:, 3]
        weights = rng.integers(0, 4, 11).astype(float) + 1e-3 if kind == "weights" else None
        if kind == "offset":
            X += 100.0
        elif kind in ("integers", "wide"):
            X = np.rint(40 * X).astype(np.int64) + (2**40 if kind == "wide" else 0)
        exact = oracle.exact_covariance(X, center=center, scale=scale, weights=weights)
        kept = np.array([0, 2, 3])
        for source in screened_sources(X):
            cov, mean, spread, n = screened.of_data(source, kept, center, scale, weights, 1.0)
            assert n == 11
            inner, error = cov.inner, np.sqrt(cov.inner.error_unit * cov.inner.weights)
            A = inner.submatrix(np.arange(3))
            for a, i in enumerate(kept):
                assert Fraction(cov.upper[i]) >= exact[i][i] * (1 - Fraction(1, 10**15))
                for b, j in enumerate(kept):
                    assert abs(Fraction(A[a, b]) - exact[i][j]) <= Fraction(error[a] * error[b])
            for i in (1, 4):
                off = abs(Fraction(cov.diagonal[i]) - exact[i][i])
                assert off <= Fraction(cov.upper[i] - cov.diagonal[i])
                assert cov.upper[i] <= cov.diagonal[i] * (1 + 1e-9) + 1e-10 * X.max() ** 2
            assert np.allclose(mean, np.average(X, axis=0, weights=weights) * center, rtol=1e-12)
            good = np.sqrt([float(v) for v in np.diagonal(np.array(exact, dtype=float))])
            assert scale or (spread == 1).all()
            assert not scale or np.allclose(good, 1.0 * (cov.diagonal > 0))
            assert np.count_nonzero(cov.others) == 2
            assert error.max() <= 1e-4 * max(float(X.max()), 1.0) * (1e-2 if center else 1.0)


def test_what_dropped_features_add_by_their_variances():
    """B_(n - t) + v_1 + ... + v_t, written out."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 6)) * [3.0, 2.5, 2.0, 1.5, 1.2, 0.4]
    kept = np.array([0, 1, 2])
    cov = screened.of_data(X, kept, True, False, None, 1.0)[0]
    v = X.var(axis=0)
    for sizes in ((3,), (2, 2), (5,)):
        n = sum(sizes)
        question = Question(sizes, False, True, 0.0)
        heavy = np.sort(v[kept])[::-1]
        for inside in (5.0, 14.0, 100.0):
            plain = max(
                min(inside, heavy[: n - t].sum()) + np.sort(v[3:])[::-1][:t].sum()
                for t in range(1, min(n, 3) + 1)
            )
            found = screened.touching({"rule": "variances"}, inside, cov, question)
            assert plain * (1 - 1e-14) <= found <= plain * (1 + 1e-11)
    with pytest.raises(ValueError, match="no rule"):
        screened.touching({"rule": "hearsay"}, 1.0, cov, question)


def test_variances_that_were_handed_over_are_rounded_up():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((9, 4))
    A = np.cov(X.T, bias=True)
    kept = np.array([0, 2])
    given = Screened(A[np.ix_(kept, kept)], kept, np.diagonal(A).copy())
    cov = screened.of_given(given, kept, 1.0)
    assert (cov.upper > np.diagonal(A)).all()
    assert (cov.upper <= np.diagonal(A) * (1 + 1e-14)).all()
    unsure = replace(given, errors=np.full(4, 0.5))
    assert (screened.of_given(unsure, kept, 0.25).upper >= 4 * np.diagonal(A) + 2).all()
    with pytest.raises(KeyError, match="other features"):
        screened.of_given(given, np.array([0, 1]), 1.0)
    # nobody has promised that this matrix is PSD
    assert cov.inner.given
    assert cov.inner.restrict(np.arange(2)).given
    assert not screened.of_data(X, kept, True, False, None, 1.0)[0].inner.given


@pytest.mark.parametrize("prices", [[0.1, -0.1], [0.1], [0.1, np.nan], [0.1, np.inf]])
def test_prices_are_not_negative(prices):
    own = checked_covariance_of(np.eye(2), 1.0)
    joint = {"features": [0, 1], "u": [0.0], "r": [0.0], "price": prices, "pad": 0.5}
    question = Question((1,), False, True, 0.0)
    with pytest.raises(ValueError, match="prices"):
        checked_kyfan.recheck(joint, own, question)
    with pytest.raises(ValueError, match="prices"):
        checked_configuration.recheck({"price": prices, "parts": []}, own, question)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_pairs_are_paid_for(nonnegative):
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-6):
        u = np.triu(rng.standard_normal((7, 7)) * scale, 1).astype(np.float32).astype(float)
        r = np.triu(rng.uniform(-20, 20, (7, 7)), 1).astype(np.float32).astype(float)
        u, r = u + u.T, r - r.T
        v = split.pair_charges(u, r, nonnegative)
        for i, j in combinations(range(7), 2):
            due = Fraction(u[i, j]) ** 2 if u[i, j] > 0 or not nonnegative else Fraction(0)
            paid = Fraction(v[i, j]) * Fraction(v[j, i])
            assert due <= paid <= due * (1 + Fraction(1, 10**13))
    with pytest.raises(split.Unproved):
        split.pair_charges(np.full((2, 2), np.nan), np.zeros((2, 2)), False)


def test_charges_of_rows_are_the_largest_of_all_supports():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, s = 5, int(rng.integers(1, 6))
        v = rng.random((n, n))
        price = rng.random(n) * rng.choice([0.0, 0.5])
        forced = np.zeros(n, dtype=bool)
        forced[: int(rng.integers(0, s))] = True
        pad = rng.random(n) * rng.choice([0.0, 0.2])
        d, level, after = split.largest_sums(v - price, v, forced, price, s, pad)
        for i in range(n):
            held = [j for j in range(n) if forced[j] and j != i]
            free = [j for j in range(n) if not forced[j] and j != i]
            room = s - int(forced.sum()) - (not forced[i])
            gains = [Fraction(v[i, j]) - Fraction(price[j]) for j in free]
            gains = sorted((max(g, Fraction(pad[i])) for g in gains), reverse=True)
            gains += [Fraction(pad[i])] * (n + 1)
            exact = sum((Fraction(v[i, j]) - Fraction(price[j]) for j in held), Fraction(0))
            exact += sum(gains[: max(room, 0)], Fraction(0)) - Fraction(price[i])
            if room < 0:
                continue  # no support holds it
            assert exact <= Fraction(d[i]) <= exact + Fraction(1, 10**12)
            if room > 0:
                assert level[i] == pytest.approx(float(gains[room - 1]), abs=1e-15)
                assert after[i] == pytest.approx(float(gains[room]), abs=1e-15)


@pytest.mark.parametrize("k", [2, 3])
def test_joint_bounds_are_for_disjoint_supports(k):
    own = checked_covariance_of(np.eye(4), 1.0)
    free = Question((1,) * k, False, False, 0.0)
    for family in (checked_kyfan, checked_configuration):
        with pytest.raises(ValueError, match="disjoint"):
            family.recheck({}, own, free)
    dual = {"rho": 0.5, "core": [0, 1, 2, 3], "support": [0], "weights": [1.0]}
    assert checked_greedy.recheck(dual, own, Question((1,), False, True, 0.0)) < 2.0
    assert checked_greedy.recheck(dual, own, free) == np.inf
    assert checked_greedy.recheck(dual, own, Question((1,) * k, False, True, 0.0)) == np.inf


def test_prices_that_the_pads_do_not_cover():
    own = checked_covariance_of(np.eye(3) + 0.5, 1.0)
    question = Question((2,), False, True, 0.0)
    split_data = {
        "features": np.arange(3),
        "u": np.full(3, 0.5),
        "r": np.zeros(3),
        "price": np.zeros(3),
        "pad": 0.25,
    }
    plain = checked_kyfan.spectrum(split_data, own, question)[0]
    # U takes all entries off; each row pays for one partner
    assert 2.0 <= plain <= 2.0 + 1e-12
    lower, price = checked_kyfan.spectrum(split_data, own, question, 0.25)
    assert 1.5 <= lower <= 1.5 + 1e-12
    assert (price == 0.25).all()
    for floor in (0.2500001, -1e-9):
        with pytest.raises(ValueError, match="pads"):
            checked_kyfan.spectrum(split_data, own, question, floor)
    # a component with no feature here explains 0, not less
    bare = {**split_data, "pad": 4.0, "u": np.zeros(3)}
    below = checked_kyfan.spectrum(bare, own, question, 4.0)[0]
    assert below < -1.0
    assert 0.0 <= checked_kyfan.spectrum(bare, own, question, 4.0, empty=True)[0] <= 1e-12


@pytest.mark.parametrize("nonnegative", [False, True])
def test_clipped_matrices_of_low_rank_bounds(nonnegative):
    """x'Ax <= x'Bx for every x of s nonzeros, and no row pays more than s - 1 entries."""
    for A, rng in matrices(10):
        s, rho = int(rng.integers(1, 7)), 0.2
        B = sphere.clipped(A, rho, s, nonnegative)
        moved = np.clip(A - np.diag(np.diagonal(A)), -np.inf if nonnegative else -rho, rho)
        plain = A - moved + np.diag(charges(moved, s, nonnegative).sum(axis=1))
        assert np.allclose(B, plain, rtol=0, atol=1e-14)
        for _ in range(20):
            x = np.zeros(6)
            x[rng.permutation(6)[:s]] = rng.standard_normal(s)
            x = np.abs(x) if nonnegative else x
            assert x @ A @ x <= x @ B @ x + 1e-14


def test_scores_of_the_greedy_dual_know_their_error():
    X = np.random.default_rng(8).standard_normal((30, 5)) * [2.0, 1.5, 1.0, 0.5, 0.2]
    own = checked_covariance_of_data(X, True, False, None, 1.0)[0]
    support, x = np.array([0, 2]), np.array([0.8, 0.6])
    A, d = own.dense(), np.sqrt(own.diagonal)
    value = x @ A[np.ix_(support, support)] @ x
    for unit in (0.0, 1e-6):
        own.error_unit = unit
        g, lost = checked_greedy._scores(own, support, x, 0.0)
        assert np.allclose(g, A[:, support] @ x / np.sqrt(value), rtol=1e-12)
        root = np.sqrt(unit * own.weights)
        due = root * (x @ root[support]) + 80 * 2.0**-52 * (x @ d[support]) * d
        assert np.allclose(lost, due / np.sqrt(value), rtol=1e-9, atol=0)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("center", [True, False])
def test_units_and_rounding_of_the_covariance(layout, center):
    """Entries in any unit, and the s largest weights in the margin."""
    import scipy.sparse as sp

    X = np.random.default_rng(3).standard_normal((15, 4)) * [0.1, 3.0, 1.0, 2.0] + 0.5
    X[:3, 2] = 0.0
    data = X if layout == "dense" else sp.csc_array(X)
    plain = X.T @ X / 15 - np.outer(X.mean(axis=0), X.mean(axis=0)) * center
    for unit in (2.0**-8, 1.0, 2.0**5):
        cov, mean, _ = checked_covariance_of_data(data, center, False, None, unit)
        assert np.allclose(cov.dense() * unit, plain, rtol=1e-12, atol=1e-14)
        assert np.allclose(cov.diagonal * unit, np.diagonal(plain), rtol=1e-12)
        assert np.allclose(mean, X.mean(axis=0) * center, rtol=1e-12)
        weights = np.sort(cov.weights)[::-1]
        assert (cov.weights * unit >= np.diagonal(plain) * (1 - 1e-12)).all()
        assert cov.error_unit >= (4 * 15 + 40) * 2.0**-52
        for s in (1, 2, 4):
            assert cov.rounding(s) == pytest.approx(cov.error_unit * weights[:s].sum(), rel=1e-12)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("scale", [False, True])
def test_columns_far_from_zero_are_centred_twice(layout, scale):
    import scipy.sparse as sp

    X = np.random.default_rng(4).standard_normal((25, 3)) * [1.0, 2.0, 0.5] + 3e12
    data = X if layout == "dense" else sp.csr_array(X)
    cov = checked_covariance_of_data(data, True, scale, None, 1.0)[0]
    exact = oracle.exact_covariance(X, center=True, scale=scale, weights=None)
    A, root = cov.dense(), np.sqrt(cov.error_unit * cov.weights)
    for i in range(3):
        for j in range(3):
            assert abs(Fraction(A[i, j]) - exact[i][j]) <= Fraction(root[i] * root[j])
    assert root.max() < 1e-6


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
def test_rows_outside_a_core(nonnegative, monkeypatch):
    monkeypatch.setattr(checked_kyfan, "CHUNK", 3)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 9)) * np.geomspace(3, 0.3, 9) + rng.standard_normal((12, 1))
        own = checked_covariance_of_data(X, True, False, None, 1.0)[0]
        A = own.dense()
        core = np.sort(rng.permutation(9)[:4])
        theta, price = rng.uniform(0.05, 2.0, 4), rng.random(4) * 0.3
        for cov in (own, checked_covariance_of(A, 1.0)):
            for s in (1, 2, 4):
                _, plain = outside_formula(A, core, theta, price, s, nonnegative)
                for level in (-np.inf, float(np.median(plain)), float(plain.max()) * 1.5):
                    given = (core, theta, price, s, nonnegative, level)
                    found = checked_kyfan.outside_rows(cov, *given)
                    assert (found >= np.minimum(plain, found.max()) * (1 - 1e-15)).all()
                    assert (found >= plain * (1 - 1e-14))[plain > level].all()
                    exact = np.isclose(found, plain, rtol=1e-9)
                    assert (exact | (found == level)).all()


@pytest.mark.parametrize("nonnegative", [False, True])
def test_features_outside_the_core_of_a_proof(nonnegative):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((12, 9)) * np.geomspace(3, 0.3, 9) + rng.standard_normal((12, 1))
        X = X * (1.0 if seed % 2 else 0.2)
        own = checked_covariance_of_data(X, True, False, None, 1.0)[0]
        A, pad = own.dense(), float(rng.uniform(0.2, 2.0)) * own.diagonal.mean()
        core = np.sort(rng.permutation(9)[:4])
        for cov in (own, checked_covariance_of(A, 1.0)):
            for s in (2, 4):
                given = (core, np.full(4, pad), np.zeros(4), s, nonnegative)
                rest, plain = outside_formula(A, *given)
                most = float(plain.max())
                extension._check_rest(rest, core, s, pad, most * (1 + 1e-9), nonnegative, cov)
                with pytest.raises(split.Unproved, match="outside"):
                    extension._check_rest(rest, core, s, pad, most * (1 - 1e-9), nonnegative, cov)


def test_variances_outside_the_core_are_rounded_up():
    """Entries that are off by more than their variances show must not be dismissed."""
    X = np.random.default_rng(0).standard_normal((12, 6))
    own = checked_covariance_of_data(X, True, False, None, 1.0)[0]
    own.error_unit = 0.05
    core, rest = np.array([0, 1]), np.array([2, 3, 4, 5])
    v = own.diagonal + 4 * own.error_unit * own.weights
    seen = []
    cov_rows = lambda features, t, q, diagonal, terms: seen.append(terms(features)) or rest  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extension, "_above", cov_rows)
        with pytest.raises(split.Unproved):
            extension._check_rest(rest, core, 2, 0.5, 1.0, False, own)
    assert np.allclose(seen[0][:, 0], v[rest] * v[core].max() / 0.5)
    assert np.allclose(seen[0][:, 1], np.sqrt(v[rest] * v[rest].max()))


def test_pads_of_a_configuration():
    own = checked_covariance_of(np.eye(4) + 0.25, 1.0)
    core, price = np.array([0, 1]), np.zeros(2)
    header = {"s": 2, "nonnegative": False, "pads": [0.5, 0.5]}
    level = checked_configuration._outside(header, core, price, 0.0, own)
    assert level == pytest.approx(1.5)
    for pads in ([0.5, 0.0], [0.5, -0.5], [0.5], [0.5, np.nan]):
        with pytest.raises(ValueError, match="positive pads"):
            checked_configuration._outside({**header, "pads": pads}, core, price, 0.0, own)
    assert checked_configuration._outside(header, core, price, 9.0, own) == 9.0


@pytest.mark.parametrize("nonnegative", [False, True])
def test_sums_of_pairs_of_generators(nonnegative, monkeypatch):
    """All rows one by one; short rows are left out only where they cannot be chosen."""
    rng = np.random.default_rng(5)
    p, r, s = 900, 3, 2
    V = rng.standard_normal((p, r)) * rng.permutation(np.geomspace(1, 0.3, p))[:, None]
    V = V[np.argsort(-(V * V).sum(axis=1))]
    points = np.vstack([np.eye(r), rng.random((5, r))])  # of one orthant, as in a cone
    pairs = np.array([(i, j) for i in range(8) for j in range(i, 8)])
    for prices in (np.zeros(p), rng.random(p) * 0.2):
        found = sphere.pair_sums(V, (V * V).sum(axis=1), prices, s, nonnegative, points, pairs)
        for (i, j), value in zip(pairs, found):
            x, y = V @ points[i], V @ points[j]
            gain = np.maximum(x, 0) * np.maximum(y, 0) if nonnegative else x * y
            gain = gain - prices * (points[i] @ points[j])
            plain = np.maximum(np.sort(gain)[::-1][:s], 0.0).sum()
            assert value == pytest.approx(plain, rel=1e-12, abs=1e-14)


def test_units_of_cones():
    """Long and short rows are brought to one size; the bound comes back in theirs."""
    V = np.array([[0.5, 0.1], [0.2, -0.4], [0.1, 0.3]])
    for size in (2.0**-30, 1.0, 2.0**20):
        top = float(np.sort((V * V).sum(axis=1))[::-1][:2].sum())
        for price in (0.0, 0.05):
            prices, tree = np.full(3, price * size**2), np.zeros(0, dtype=np.int8)
            due = float(np.sort((V * V).sum(axis=1) - price)[::-1][:2].sum())
            level = due * size**2 * (1 + 1e-9)
            found = sphere.sphere(V * size, 2, False, prices, level, tree)
            assert due * size**2 <= found <= level * (1 + 1e-12)
        with pytest.raises(ValueError, match="malformed"):  # no tree, and the rows are too long
            sphere.sphere(V * size, 2, False, np.zeros(3), 0.9 * top * size**2, tree)


def test_majorants_by_traces_of_given_matrices():
    """What is missing to a PSD matrix is added before anything is split off."""
    A = np.diag([4.0, 3.0, 0.5, 0.25]) + 0.1
    A[3, 3] = -0.2
    own = checked_covariance_of(A, 1.0)
    shift = checked.psd_shift(own)
    B = A + shift * np.eye(4)
    V = B[:, :2] * 0.5
    Q = np.linalg.qr(V)[0]
    split_off = B @ Q @ np.linalg.inv(Q.T @ B @ Q) @ Q.T @ B
    apart = np.linalg.norm(split_off - V @ V.T)
    found = sphere._by_trace(own, V)
    assert found == pytest.approx(np.trace(B - split_off) + apart, rel=1e-9)
