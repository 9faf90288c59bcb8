"""Factorisations and eigenvalues against exact elimination: they prove what is true, not less."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sparcipal.bounds import cheap as certify
from sparcipal.bounds import enumeration as exhaustive
from sparcipal.bounds.configuration import packing
from sparcipal.bounds.pairsplit import prove_below
from sparcipal.checker import cheap as checked
from sparcipal.checker import lowrank as sphere
from sparcipal.checker import packing as checked_packing
from sparcipal.checker import pairsplit as split
from sparcipal.checker import tree as proof
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance_of
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.numerics import margins
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.problem import Options, Problem
from tests.support import oracle
from tests.support.margins import matrices


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
        sizes = ((2,), (3,), (2, 2), (1, 3), (1, 2, 2), (1, 1, 1))[int(rng.integers(6))]
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


def test_rows_reach_as_far_as_their_features_can():
    """No row of features that are nearly parallel may be cut below what it has."""
    A = 4.0 * (0.9 + 0.1 * np.eye(6))
    cov = covariance_of(A)
    bound = certify.gershgorin_bound(Problem(cov, (4,))).value * cov.unit
    assert 14.8 <= bound <= 14.8 * (1 + 1e-9)


def test_rounding_of_the_matrix_of_samples_counts(monkeypatch):
    """Eigenvalues from n x n: forming that matrix rounds by (p + 2) eps of its trace."""
    X = 30.0 * np.random.default_rng(0).standard_normal((5, 2000))
    cov = covariance_of_data(X)[0]
    truth = float(np.linalg.eigvalsh(cov.gram())[-2:].sum())
    monkeypatch.setattr(certify, "DENSE_LIMIT", 20)
    monkeypatch.setattr(margins, "EPS", 1e-9)
    slack = 2 * 2002 * 1e-9 * float(cov.diagonal.sum())
    bound = certify.eigenvalue_bound(Problem(cov, (3, 3)))
    assert bound.value >= truth + certify.SAFETY * slack * (1 - 1e-6)
