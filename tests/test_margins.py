"""Bounds against their own formulas: never below them in exact arithmetic, and hardly above.

A margin that is dropped, halved or subtracted shows here: half of all sums round down.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from conftest import ROOT
from sparcipal import Screened, certify
from sparcipal.covariance import covariance_of, covariance_of_data
from sparcipal.problem import Problem
from sparcipal.proofs import packing
from sparcipal.proofs.pairsplit import prove_below
from sparcipal.search import enumerate as exhaustive
from sparcipal.search.base import Options
from sparcipal.verify import bounds as checked
from sparcipal.verify import configuration as checked_configuration
from sparcipal.verify import greedy as checked_greedy
from sparcipal.verify import kyfan as checked_kyfan
from sparcipal.verify import packing as checked_packing
from sparcipal.verify import proof, screened, sphere, split
from sparcipal.verify.data import Question
from sparcipal.verify.data import covariance_of as checked_covariance_of
from sparcipal.verify.data import covariance_of_data as checked_covariance_of_data

sys.path.insert(0, str(ROOT))

oracle = pytest.importorskip("benchmarks.soundness.oracle", reason="benchmarks are not installed")

NAMES = ("trace", "gershgorin", "clip", "frobenius", "eigenvalues")


def matrices(count: int, p: int = 6):
    """Covariances whose sums round; the largest entry lies between 1 and 2."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((p + 2, p)) * 2.0 ** rng.integers(-3, 2, p)
        A = X.T @ X
        A = (A + A.T) / 2
        yield A * 2.0 ** -np.floor(np.log2(np.abs(A).max())), rng


def charges(A: np.ndarray, s: int, nonnegative: bool) -> np.ndarray:
    """The s - 1 largest entries of each row that count, the largest first."""
    off = np.maximum(A, 0.0) if nonnegative else np.abs(A)
    off = off - np.diag(np.diagonal(off))
    return -np.sort(-off, axis=1)[:, : s - 1]


def formula(name: str, A: np.ndarray, sizes: tuple, nonnegative: bool, data: dict) -> float:
    """The bound as it is written in the documentation, in plain floating point."""
    s, k, m = max(sizes), len(sizes), sum(sizes)
    d = np.diagonal(A)
    if name == "trace":
        return float(np.sort(d)[::-1][:m].sum())
    if name == "eigenvalues":
        return float(np.linalg.eigvalsh(A)[-k:].sum())
    if name == "gershgorin":
        return float(np.sort(d + charges(A, s, nonnegative).sum(axis=1))[::-1][:k].sum())
    if name == "frobenius":
        rest = (charges(A, s, nonnegative) ** 2).sum(axis=1)
        rho = np.sort((d - data["c"]) ** 2 + rest)[::-1][:m].sum()
        return float(k * data["c"] + np.sqrt(k * rho))
    off = np.maximum(A, 0.0) if nonnegative else A
    off = off - np.diag(np.diagonal(off))
    moved = np.clip(off, -data["rho"], data["rho"])
    M = off - moved + np.diag(d + charges(moved, s, nonnegative).sum(axis=1))
    return float(np.linalg.eigvalsh(M)[-k:].sum())


def solver_bound(name: str, problem: Problem):
    if name in ("gershgorin", "frobenius"):
        largest = certify._largest_magnitudes(problem)
        return getattr(certify, f"{name}_bound")(problem, largest)
    function = certify.eigenvalue_bound if name == "eigenvalues" else None
    return (function or getattr(certify, f"{name}_bound"))(problem)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_bounds_are_their_formulas(name, nonnegative):
    for A, rng in matrices(12):
        sizes = tuple(int(rng.integers(1, 4)) for _ in range(int(rng.integers(1, 3))))
        cov = covariance_of(A)
        bound = solver_bound(name, Problem(cov, sizes, nonnegative))
        plain = formula(name, A / cov.unit, sizes, nonnegative, bound.data)
        again = getattr(checked, name)(
            bound.data,
            checked_covariance_of(A, cov.unit),
            Question(sizes, nonnegative, True, 0.0),
        )
        # the trace also allows for a matrix that is only nearly PSD
        assert plain * (1 - 1e-14) <= again <= bound.value * (1 + 1e-14) <= plain * (1 + 1e-11)


def test_the_rows_that_matter_are_enough(monkeypatch):
    """Gershgorin from some rows only: no row that is left out could be among the largest."""
    monkeypatch.setattr(certify, "ROW_BUDGET", 600)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((12, 700)) * np.geomspace(3, 0.1, 700)
    X[:, 300] = X[:, 0] * 0.4
    cov = covariance_of_data(X)[0]
    A = cov.submatrix(np.arange(700))
    for sizes in ((4,), (3, 2, 3)):
        for nonnegative in (False, True):
            bound = certify.gershgorin_bound(Problem(cov, sizes, nonnegative))
            plain = formula("gershgorin", A, sizes, nonnegative, {})
            assert plain * (1 - 1e-14) <= bound.value <= plain * (1 + 1e-9)
            question = Question(sizes, nonnegative, True, 0.0)
            own = checked_covariance_of_data(X, True, False, None, cov.unit)[0]
            again = checked.gershgorin({}, own, question)
            assert plain * (1 - 1e-12) <= again <= bound.value


def exact_formula(name: str, A: list, sizes: tuple, c: Fraction) -> Fraction:
    """Trace and Gershgorin in fractions; of the Frobenius bound the square of its root."""
    p, s, k, m = len(A), max(sizes), len(sizes), sum(sizes)
    if name == "trace":
        return sum(sorted((A[i][i] for i in range(p)), reverse=True)[:m], Fraction(0))
    power = 2 if name == "frobenius" else 1
    rows = []
    for i in range(p):
        others = sorted((abs(A[i][j]) ** power for j in range(p) if j != i), reverse=True)
        own = A[i][i] if power == 1 else (A[i][i] - c) ** 2
        rows.append(own + sum(others[: s - 1], Fraction(0)))
    rows.sort(reverse=True)
    return sum(rows[:k] if power == 1 else rows[:m], Fraction(0)) * (1 if power == 1 else k)


@pytest.mark.parametrize("name", ["trace", "gershgorin", "frobenius"])
def test_no_sum_rounds_below_its_formula(name):
    for A, rng in matrices(60):
        sizes = ((2,), (3, 2), (4,), (1, 1, 2))[int(rng.integers(4))]
        cov = covariance_of(A)
        bound = solver_bound(name, Problem(cov, sizes, False))
        exact = oracle.exact_matrix(A / cov.unit)
        question = Question(sizes, False, True, 0.0)
        own = checked_covariance_of(A, cov.unit)
        again = getattr(checked, name)(bound.data, own, question)
        shift = sum(sizes) * checked.psd_shift(own) if name == "trace" else 0.0
        for value, extra in ((bound.value, sum(sizes) * cov.psd_shift), (again, shift)):
            c = Fraction(bound.data.get("c", 0.0))
            needed = exact_formula(name, exact, sizes, c)
            if name == "frobenius":
                assert (Fraction(value) - len(sizes) * c) ** 2 >= needed
            else:
                # what is added for a matrix that is not quite PSD must not hide a missing margin
                less = Fraction(extra) * (1 - Fraction(1, 10**6)) if name == "trace" else 0
                assert Fraction(value) - less >= needed


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_rounding_of_the_covariance_is_in_every_bound(layout):
    """Against the covariance in fractions: what is computed is below it half of the time."""
    import scipy.sparse as sp

    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.random((40, 4)) + rng.choice([0.0, 30.0])
        data = X if layout == "dense" else sp.csr_array(X)
        cov = covariance_of_data(data)[0]
        exact = oracle.exact_covariance(X, center=True, scale=False, weights=None)
        unit = Fraction(cov.unit)
        largest = max(exact[i][i] for i in range(4)) / unit
        own = checked_covariance_of_data(data, True, False, None, cov.unit)[0]
        question = Question((1,), False, True, 0.0)
        problem = Problem(cov, (1,))
        claims = [bound.value for bound in certify.cheap_bounds(problem)]
        claims += [checked.trace({}, own, question), checked.gershgorin({}, own, question)]
        claims.append(checked.clip({"rho": 0.0}, own, question))
        claims.append(checked.frobenius({"c": 0.0}, own, question))
        assert min(Fraction(claim) for claim in claims) >= largest
        top = certify.eigenvalue_bound(problem)
        for claim in (top.value, checked.eigenvalues({}, own, question)):
            scaled = [[entry / unit for entry in row] for row in exact]
            assert oracle.proves_below(scaled, range(4), Fraction(claim))


def spectra():
    """Matrices of integers with known eigenvalues: 3 and 1, 9 and 1, 5 and -1."""
    blocks = {(3, 1): [[2, 1], [1, 2]], (9, 1): [[5, 4], [4, 5]], (5, -1): [[2, 3], [3, 2]]}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        chosen = [list(blocks)[i] for i in rng.integers(0, 3, 5)]
        M = np.zeros((10, 10))
        for i, eigenvalues in enumerate(chosen):
            M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = blocks[eigenvalues]
        order = rng.permutation(10)
        yield M[np.ix_(order, order)], sorted((v for pair in chosen for v in pair), reverse=True)


def test_sums_of_eigenvalues():
    for M, eigenvalues in spectra():
        for k in (1, 2, 3, 5, 9, 10):
            exact = sum(eigenvalues[:k])
            for proved in (certify.proved_eigenvalue_sum(M, k), checked.ky_fan(M, k)):
                assert exact <= proved <= exact + 1e-10 * max(eigenvalues) * k


def test_largest_eigenvalues_by_exact_elimination():
    for A, _ in matrices(40):
        exact = oracle.exact_matrix(A)
        top = float(np.linalg.eigvalsh(A)[-1])
        for proved in (certify.proved_eigenvalue_sum(A, 1), checked.ky_fan(A, 1)):
            assert oracle.proves_below(exact, range(6), Fraction(proved))
            assert proved <= top * (1 + 1e-12)


def test_wrong_eigenpairs_prove_nothing_false(monkeypatch):
    """The solver of eigenvalues may be wrong: the factorisation notices."""
    A = np.diag([5.0, 3.0, 2.0, 1.0])
    wrong = np.array([2.0, 3.0]), np.eye(4)[:, [2, 1]]
    monkeypatch.setattr(certify, "_leading_eigenpairs", lambda M, k: wrong)
    assert certify.proved_eigenvalue_sum(A, 2) == pytest.approx(8.0)
    assert certify.proved_eigenvalue_sum(A, 2) >= 8.0
    monkeypatch.setattr(certify, "largest_eigenpairs", lambda M, k: wrong)
    with pytest.raises(ArithmeticError, match="could not be certified"):
        certify.proved_eigenvalue_sum(A, 2)


def test_margins_of_many_small_matrices():
    for A, _ in matrices(10):
        supports = list(combinations(range(6), 3))
        blocks = np.array([A[np.ix_(S, S)] for S in supports])
        tops = np.linalg.eigvalsh(blocks)[:, -1]
        margins = certify.proved_margins(blocks, tops)
        proved = checked._proved_tops(blocks, tops)
        assert (proved <= (tops + margins) * (1 + 1e-15)).all()
        exact = oracle.exact_matrix(A)
        for S, top, margin, own in zip(supports, tops, margins, proved):
            assert oracle.proves_below(exact, S, Fraction(own))
            assert 0 < margin <= 1e-12 * top
            assert Fraction(top) + Fraction(margin) >= Fraction(own) * (1 - Fraction(1, 10**15))
        # guesses that are too small are not believed
        low = certify.proved_margins(blocks, tops * (1 - 1e-6))
        assert (tops * (1 - 1e-6) + low >= tops).all()
        assert (checked._proved_tops(blocks, tops * (1 - 1e-6)) >= tops).all()


@pytest.mark.parametrize("nonnegative", [False, True])
def test_enumeration_is_proved(nonnegative):
    for A, rng in matrices(25, p=5):
        sizes = ((2,), (3,), (2, 2), (1, 3))[int(rng.integers(4))]
        A = A * rng.choice([-1.0, 1.0], 5)[:, None]
        A = A * np.sign(np.diagonal(A))[None, :] if not (np.diagonal(A) > 0).all() else A
        cov = covariance_of(A)
        problem = Problem(cov, sizes, nonnegative)
        _, bound, _ = exhaustive.exhaust(problem, Options(), 10**6)
        exact = oracle.exact_matrix(A / cov.unit)
        best = oracle.Oracle(exact, nonnegative).optimum(sizes, None)
        question = Question(sizes, nonnegative, True, 0.0)
        again = checked.enumeration({}, checked_covariance_of(A, cov.unit), question)
        assert best <= Fraction(again) <= Fraction(bound.value)
        assert bound.value <= float(best) * (1 + 1e-11)
        if len(sizes) == 1 and not nonnegative:
            assert (
                oracle.worst_support(oracle.Oracle(exact, False), sizes[0], Fraction(again)) is None
            )


def test_supports_that_are_passed_over_are_paid_for():
    """A vector of both signs that is no eigenvector: what it lacks is added."""
    A = np.array([[2.0, -0.5], [-0.5, 2.0]])
    blocks, vector = A[None], np.array([[0.8, -0.6]])
    exact = Fraction(2) + Fraction(48, 100)
    for quotient in (exhaustive._quotients(blocks, vector), checked._rayleigh(blocks, vector)):
        assert float(exact) * (1 - 1e-13) <= quotient[0]
        assert Fraction(float(quotient[0])) <= exact


def test_matrices_that_are_not_quite_psd():
    A = np.diag([1.0, 1e-3, 0.5])
    A[1, 1] = -1e-9
    own = checked_covariance_of(A, 1.0)
    shift = checked.psd_shift(own)
    assert 1e-9 <= shift <= 4e-9
    assert checked.psd_shift(checked_covariance_of(np.diag([1.0, -1e6]), 1.0)) >= 1e6
    assert checked.psd_shift(checked_covariance_of(np.eye(3), 1.0)) <= 1e-13


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


def test_factorisations_never_say_yes_wrongly():
    """Around the largest eigenvalue, in steps of rounding errors; exact elimination judges."""
    accepted = 0
    for A, _ in matrices(25):
        exact, top = oracle.exact_matrix(A), float(np.linalg.eigvalsh(A)[-1])
        for step in (-40, -3, -1, 0, 1, 2, 5, 20, 60, 100, 300):
            t = top * (1 + step * 2.0**-52)
            for test in (prove_below, split.below):
                if test(A, t):
                    accepted += 1
                    assert oracle.proves_below(exact, range(6), Fraction(t))
        for test in (prove_below, split.below):
            assert test(A, top * (1 + 1e-12))
            assert not test(A, top * (1 - 1e-12))
    assert accepted > 25
    assert not split.factorises(np.array([[np.nan]]))
    assert not split.factorises(np.diag([1.0, 0.0]))


def test_the_smallest_level_that_is_accepted_keeps_its_distance():
    """A margin, not luck: twice the rounding errors of a factorisation lie in between."""
    for A, _ in matrices(8):
        top = float(np.linalg.eigvalsh(A)[-1])
        trace = 6 * top - float(np.trace(A))
        for test in (prove_below, split.below):
            step = next(j for j in range(1, 10**5) if test(A, top + j * 2.0**-53))
            assert step * 2.0**-53 >= 8 * 2.0**-52 * trace


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


def test_values_of_packed_supports():
    for A, _ in matrices(20, p=4):
        exact, top = oracle.exact_matrix(A), float(np.linalg.eigvalsh(A)[-1])
        for proved in (packing._proved_value(A), checked_packing._proved_value(A)):
            assert oracle.proves_below(exact, range(4), Fraction(proved))
            assert proved <= top * (1 + 1e-12)


@pytest.mark.parametrize("k", [1, 3])
def test_eigenvalues_of_many_features_from_few_samples(k, monkeypatch):
    """The n x n matrix stands for the p x p one, with its own rounding."""
    monkeypatch.setattr(certify, "DENSE_LIMIT", 20)
    X = np.random.default_rng(1).standard_normal((6, 40)) * np.geomspace(2, 0.1, 40)
    cov = covariance_of_data(X)[0]
    bound = certify.eigenvalue_bound(Problem(cov, (2,) * k))
    A = cov.submatrix(np.arange(40))
    plain = float(np.linalg.eigvalsh(A)[-k:].sum())
    assert plain * (1 + 1e-14) <= bound.value <= plain * (1 + 1e-10)
    gram = cov.gram()
    due = k * (42 * 2.0**-52 * float(np.trace(gram)) + cov.rounding(40))
    assert bound.value - certify.proved_eigenvalue_sum(gram, k) >= 3.99 * due
    monkeypatch.setattr(checked, "FACTOR_LIMIT", 20)
    own = checked_covariance_of_data(X, True, False, None, cov.unit)[0]
    again = checked.eigenvalues({}, own, Question((2,) * k, False, True, 0.0))
    assert again - checked.ky_fan(own.gram(), k) >= 0.99 * due / 2
    assert plain * (1 + 1e-14) <= again <= bound.value
    monkeypatch.setattr(certify, "DENSE_LIMIT", 5)
    assert certify.eigenvalue_bound(Problem(cov, (2,) * k)) is None
    monkeypatch.setattr(checked, "FACTOR_LIMIT", 5)
    assert checked.eigenvalues({}, own, Question((2,) * k, False, True, 0.0)) == np.inf


def test_eigenvalues_from_an_iterative_solver(monkeypatch):
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.standard_normal((210, 210)))[0]
    M = (Q * np.append(np.linspace(0, 1, 205), [2.0, 3.0, 3.0, 4.0, 5.0])) @ Q.T
    M = (M + M.T) / 2
    for k, plain in ((1, 5.0), (2, 9.0), (4, 15.0)):
        assert plain * (1 - 1e-14) <= certify.proved_eigenvalue_sum(M, k) <= plain * (1 + 1e-7)
    assert certify._largest_eigenvalues(M, 2).sum() == pytest.approx(9.0, rel=1e-2)

    def fails(*arguments, **options):
        raise certify.scipy.sparse.linalg.ArpackError(-9999)

    monkeypatch.setattr(certify.scipy.sparse.linalg, "eigsh", fails)
    assert certify.proved_eigenvalue_sum(M, 2) == pytest.approx(9.0, rel=1e-9)


def test_one_bound_per_component():
    A, _ = next(iter(matrices(1)))
    cov = covariance_of(A)
    problem = Problem(cov, (2, 3, 2), disjoint=False)
    (total,) = certify.cheap_bounds(problem)
    parts = [min(b.value for b in certify.cheap_bounds(Problem(cov, (s,)))) for s in (2, 3, 2)]
    assert total.name == "one by one"
    assert sum(map(Fraction, parts)) <= Fraction(total.value)
    assert total.value <= sum(parts) * (1 + 1e-14)
    values = [bound.value for bound in certify.cheap_bounds(Problem(cov, (3,)))]
    assert values == sorted(values)
    assert len(values) == 4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", [(3,), (2, 2)])
def test_every_bound_adds_the_rounding_of_the_covariance(name, sizes):
    """With errors of the entries that are large enough to be seen."""
    X = np.random.default_rng(5).standard_normal((50, 6))
    cov = covariance_of_data(X)[0]
    own = checked_covariance_of_data(X, True, False, None, cov.unit)[0]
    cov.error_unit = own.error_unit = 1e-6
    A, k, m = cov.submatrix(np.arange(6)), len(sizes), sum(sizes)
    bound = solver_bound(name, Problem(cov, sizes))
    again = getattr(checked, name)(bound.data, own, Question(sizes, False, True, 0.0))
    plain = formula(name, A, sizes, False, bound.data)
    for value, margin, unit, weights, safety in (
        (bound.value, cov.rounding, cov.error_unit, cov.error_weights, certify.SAFETY),
        (again, own.rounding, own.error_unit, own.weights, 1.0),
    ):
        due = k * margin(6) if name == "eigenvalues" else margin(m)
        if name == "gershgorin":
            roots = np.sort(np.sqrt(weights))[::-1]
            due += k * unit * roots[0] * roots[: max(sizes)].sum()
        assert due > 1e-9 * plain
        assert 0.99 * safety * due <= value - plain <= 1.01 * safety * due + 1e-9 * plain
    assert certify.SAFETY >= 4


@pytest.mark.parametrize("name", ["gershgorin", "frobenius", "clip"])
def test_bounds_of_more_rows_than_are_looked_at_together(name):
    A, _ = next(iter(matrices(1, p=140)))
    cov = covariance_of(A)
    for nonnegative in (False, True):
        bound = solver_bound(name, Problem(cov, (4, 3), nonnegative))
        plain = formula(name, A / cov.unit, (4, 3), nonnegative, bound.data)
        assert plain * (1 - 1e-13) <= bound.value <= plain * (1 + 1e-9)


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


def test_majorants_leave_room_for_their_own_rounding(monkeypatch):
    asked = []
    monkeypatch.setattr(proof, "below", lambda M, t: asked.append(t) or split.below(M, t))
    for A, _ in matrices(5, p=8):
        factor, low = proof._majorant(A, float(np.linalg.eigvalsh(A)[-1]) * 0.9)
        due = 4 * (factor.shape[1] + 2) * 2.0**-52 * float((factor**2).sum())
        assert 0.9 * due <= low - asked[-1] <= 1.1 * due + 1e-15
        rest = oracle.exact_matrix(A)
        B = oracle.exact_matrix(factor)
        for i in range(8):
            for j in range(8):
                rest[i][j] -= sum((B[i][r] * B[j][r] for r in range(len(B[0]))), Fraction(0))
        assert oracle.proves_below(rest, range(8), Fraction(low))


def test_small_tests_never_say_yes_wrongly():
    """I - B' Diag(1 / (room + D)) B: by exact elimination, around the room that is just enough."""
    yes = 0
    for A, rng in matrices(12, p=5):
        factor, drop = np.linalg.cholesky(A)[:, :3], rng.random(5) * 0.1
        scaled = factor.T @ factor
        top = float(np.linalg.eigvalsh(scaled)[-1])
        for room in top * np.array([0.5, 0.9, 0.95, 1 - 1e-12, 1.0, 1 + 1e-12, 1.1]):
            if not proof._small_test(factor, float(room), drop):
                continue
            yes += 1
            B = oracle.exact_matrix(factor)
            inverse = [1 / (Fraction(room) + Fraction(d)) for d in drop]
            G = [
                [
                    sum((B[i][a] * B[i][b] * inverse[i] for i in range(5)), Fraction(0))
                    for b in (0, 1, 2)
                ]
                for a in (0, 1, 2)
            ]
            assert oracle.proves_below(G, range(3), Fraction(1))
    assert yes >= 12


def test_majorants_by_samples():
    """A <= t I + VV' by an n x n factorisation: as good as the one by features, and no better."""
    X = np.random.default_rng(6).standard_normal((8, 20)) * np.geomspace(3, 0.2, 20)
    for center in (True, False):
        own = checked_covariance_of_data(X, center, False, None, 1.0)[0]
        w, Q = np.linalg.eigh(own.dense())
        V = np.ascontiguousarray(Q[:, -2:] * np.sqrt(w[-2:] - w[-3]))
        for proved in (sphere._factored_by_samples(own, V, w[-3]),
                       sphere._factored(own.dense(), V, w[-3], own)):  # fmt: skip
            assert w[-3] < proved <= w[-3] * (1 + 1e-9)
        for shift in (0.999 * w[-3], 0.1 * w[-3], -1.0):
            assert sphere._factored_by_samples(own, V, shift) == np.inf
            assert sphere._factored(own.dense(), V, shift, own) == np.inf


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
