"""Cheap bounds: never below their formulas in exact arithmetic, and hardly above."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse.linalg

from sparcipal.bounds import cheap as certify
from sparcipal.bounds.cheap import _minimise
from sparcipal.checker import cheap as checked
from sparcipal.checker.budget import Budget
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance_of
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.checker.enumeration import proved_tops
from sparcipal.checker.family import Case
from sparcipal.numerics import margins
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.problem import Problem
from tests.support import oracle
from tests.support.margins import charges, matrices
from tests.support.replay import FLOAT, recheck


def test_minimise_works_at_its_limits():
    assert _minimise(lambda x: x * x, 2.0, 2.0) == 2.0
    assert _minimise(lambda x: (x - 0.3) ** 2, 0.0, 1.0) == pytest.approx(0.3, abs=1e-2)


NAMES = ("trace", "gershgorin", "clip", "frobenius", "eigenvalues")


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
        if name == "frobenius":
            return certify.frobenius_bound(problem, largest)
        sums = problem.covariance.diagonal + largest.sum(axis=1)
        return certify.gershgorin_bound(problem, sums)
    function = certify.eigenvalue_bound if name == "eigenvalues" else None
    return (function or getattr(certify, f"{name}_bound"))(problem)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_cheap_bounds_equal_their_formulas(name, nonnegative):
    for A, rng in matrices(12):
        sizes = tuple(int(rng.integers(1, 4)) for _ in range(int(rng.integers(1, 3))))
        cov = covariance_of(A)
        bound = solver_bound(name, Problem(cov, sizes, nonnegative))
        plain = formula(name, A / cov.unit, sizes, nonnegative, bound.data)
        again = recheck(
            name,
            bound.data,
            checked_covariance_of(A, cov.unit),
            Question(sizes, nonnegative, True, 0.0),
        )
        # the trace also allows for a matrix that is only nearly PSD
        assert plain * (1 - 1e-14) <= again <= bound.value * (1 + 1e-14) <= plain * (1 + 1e-11)


@pytest.mark.parametrize(
    "turns", [((600, None),), ((600, 400),), ((5, None), (600, 50), (9, None))]
)
def test_gershgorin_bound_from_some_rows_is_that_of_all(monkeypatch, turns):
    """Gershgorin from some rows only: no row that is left out could be among the largest. Entries
    that are not read are bounded by variances."""
    monkeypatch.setattr(certify, "TURNS", turns)
    monkeypatch.setattr(certify, "BLOCK", 1000)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((12, 700)) * np.geomspace(3, 0.1, 700)
    X[:, 300] = X[:, 0] * 0.4
    cov = covariance_of_data(X)[0]
    A = cov.submatrix(np.arange(700))
    for sizes in ((4,), (3, 2, 3)):
        for nonnegative in (False, True):
            problem = Problem(cov, sizes, nonnegative)
            bound = certify.gershgorin_bound(problem, certify._row_sums(problem, np.inf))
            plain = formula("gershgorin", A, sizes, nonnegative, {})
            assert plain * (1 - 1e-14) <= bound.value <= plain * (1 + 1e-9)
            question = Question(sizes, nonnegative, True, 0.0)
            own = checked_covariance_of_data(X, True, False, None, cov.unit)[0]
            again = recheck("gershgorin", {}, own, question)
            assert plain * (1 - 1e-12) <= again <= bound.value


def test_row_sums_that_cannot_beat_the_trace_are_not_formed(monkeypatch):
    """Equal variances: whatever rows are read, the others may reach the trace."""
    monkeypatch.setattr(certify, "TURNS", ((20, 10),))
    X = np.random.default_rng(0).standard_normal((50, 30))
    cov = covariance_of_data(X / X.std(axis=0))[0]
    monkeypatch.setattr(type(cov), "submatrix", None)
    problem = Problem(cov, (3,))
    assert certify._row_sums(problem, certify.trace_bound(problem).value * (1 - 1e-9)) is None


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
def test_cheap_bounds_never_round_below_their_formulas_in_fractions(name):
    for A, rng in matrices(60):
        sizes = ((2,), (3, 2), (4,), (1, 1, 2))[int(rng.integers(4))]
        cov = covariance_of(A)
        bound = solver_bound(name, Problem(cov, sizes, False))
        exact = oracle.exact_matrix(A / cov.unit)
        question = Question(sizes, False, True, 0.0)
        own = checked_covariance_of(A, cov.unit)
        again = recheck(name, bound.data, own, question)
        shift = (
            sum(sizes) * checked.psd_shift(Case(own, None, FLOAT, Budget()))
            if name == "trace"
            else 0.0
        )
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
def test_cheap_bounds_hold_for_the_covariance_in_fractions(layout):
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
        claims += [recheck("trace", {}, own, question), recheck("gershgorin", {}, own, question)]
        claims.append(recheck("clip", {"rho": 0.0}, own, question))
        claims.append(recheck("frobenius", {"c": 0.0}, own, question))
        assert min(Fraction(claim) for claim in claims) >= largest
        top = certify.eigenvalue_bound(problem)
        for claim in (top.value, recheck("eigenvalues", {}, own, question)):
            scaled = [[entry / unit for entry in row] for row in exact]
            assert oracle.proves_below(scaled, range(4), Fraction(claim))


def test_cheap_bounds_of_overlapping_components_are_sums_of_parts_and_the_trace():
    A, _ = next(iter(matrices(1)))
    cov = covariance_of(A)
    problem = Problem(cov, (2, 3, 2), supports="free", objective="adjusted")
    by_name = {bound.name: bound for bound in certify.cheap_bounds(problem)}
    total, most = by_name["parts"], by_name["trace"].value
    parts = [min(b.value for b in certify.cheap_bounds(Problem(cov, (s,)))) for s in (2, 3, 2)]
    assert most >= np.sort(cov.diagonal)[-7:].sum()
    assert most <= np.sort(cov.diagonal)[-7:].sum() * (1 + 1e-12) + 7 * cov.psd_shift
    assert sum(map(Fraction, parts)) <= Fraction(total.value)
    assert total.value <= sum(parts) * (1 + 1e-14)
    values = [bound.value for bound in certify.cheap_bounds(Problem(cov, (3,)))]
    assert values == sorted(values)
    assert len(values) == 4


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", [(3,), (2, 2)])
def test_cheap_bounds_add_the_rounding_of_the_covariance(name, sizes):
    """With errors of the entries that are large enough to be seen."""
    X = np.random.default_rng(5).standard_normal((50, 6))
    cov = covariance_of_data(X)[0]
    own = checked_covariance_of_data(X, True, False, None, cov.unit)[0]
    cov.error_unit = own.error_unit = 1e-6
    A, k, m = cov.submatrix(np.arange(6)), len(sizes), sum(sizes)
    bound = solver_bound(name, Problem(cov, sizes))
    again = recheck(name, bound.data, own, Question(sizes, False, True, 0.0))
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
    assert certify.SAFETY == 2


@pytest.mark.parametrize("name", ["gershgorin", "frobenius", "clip"])
def test_cheap_bounds_equal_their_formulas_over_several_blocks_of_rows(name):
    A, _ = next(iter(matrices(1, p=140)))
    cov = covariance_of(A)
    for nonnegative in (False, True):
        bound = solver_bound(name, Problem(cov, (4, 3), nonnegative))
        plain = formula(name, A / cov.unit, (4, 3), nonnegative, bound.data)
        assert plain * (1 - 1e-13) <= bound.value <= plain * (1 + 1e-9)


def test_row_sums_and_trace_hold_for_matrices_that_are_not_psd():
    """Entries may be larger than variances allow: what is missing is added to these first."""
    A = np.array([[1.0, 1.0 + 1e-10], [1.0 + 1e-10, 1.0]])
    cov = covariance_of(A)
    sums = certify._row_sums(Problem(cov, (2,)), np.inf)
    assert (sums * cov.unit >= 2.0 + 1e-10).all()
    assert certify.trace_bound(Problem(cov, (2,))).value * cov.unit >= 2.0 + 1e-10


def test_clip_bound_rounds_its_charges_up(monkeypatch):
    unit = 2.0**-20
    monkeypatch.setattr(margins, "EPS", unit)
    monkeypatch.setattr(certify, "proved_eigenvalue_sum", lambda M, k: float(np.trace(M)))
    for A, _ in matrices(4):
        cov = covariance_of(A)
        for s in (2, 4):
            bound = certify.clip_bound(Problem(cov, (s,)))
            off = np.clip(A / cov.unit, -bound.data["rho"], bound.data["rho"])
            paid = charges(off, s, False).sum() * (1 + (s + 8) * unit)
            assert bound.value >= (np.trace(A) / cov.unit + paid) * (1 - 1e-9)


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


def test_proved_eigenvalue_sums_of_integers_are_exact():
    for M, eigenvalues in spectra():
        for k in (1, 2, 3, 5, 9, 10):
            exact = sum(eigenvalues[:k])
            for proved in (certify.proved_eigenvalue_sum(M, k), FLOAT.ky_fan(M, k)):
                assert exact <= proved <= exact + 1e-10 * max(eigenvalues) * k


def test_proved_largest_eigenvalues_hold_by_exact_elimination():
    for A, _ in matrices(40):
        exact = oracle.exact_matrix(A)
        top = float(np.linalg.eigvalsh(A)[-1])
        for proved in (certify.proved_eigenvalue_sum(A, 1), FLOAT.ky_fan(A, 1)):
            assert oracle.proves_below(exact, range(6), Fraction(proved))
            assert proved <= top * (1 + 1e-12)


def test_proved_eigenvalue_sum_notices_wrong_eigenpairs(monkeypatch):
    """The solver of eigenvalues may be wrong: the factorisation notices."""
    A = np.diag([5.0, 3.0, 2.0, 1.0])
    wrong = np.array([2.0, 3.0]), np.eye(4)[:, [2, 1]]
    monkeypatch.setattr(certify, "_leading_eigenpairs", lambda M, k: wrong)
    assert certify.proved_eigenvalue_sum(A, 2) == pytest.approx(8.0)
    assert certify.proved_eigenvalue_sum(A, 2) >= 8.0
    monkeypatch.setattr(certify, "largest_eigenpairs", lambda M, k: wrong)
    with pytest.raises(ArithmeticError, match="could not be certified"):
        certify.proved_eigenvalue_sum(A, 2)


def test_proved_margins_of_small_matrices_hold_by_exact_elimination():
    for A, _ in matrices(10):
        supports = list(combinations(range(6), 3))
        blocks = np.array([A[np.ix_(S, S)] for S in supports])
        tops = np.linalg.eigvalsh(blocks)[:, -1]
        margins = certify.proved_margins(blocks, tops)
        proved = proved_tops(blocks, tops, FLOAT)
        assert (proved <= (tops + margins) * (1 + 1e-15)).all()
        exact = oracle.exact_matrix(A)
        for S, top, margin, own in zip(supports, tops, margins, proved):
            assert oracle.proves_below(exact, S, Fraction(own))
            assert 0 < margin <= 1e-12 * top
            assert Fraction(top) + Fraction(margin) >= Fraction(own) * (1 - Fraction(1, 10**15))
        # guesses that are too small are not believed
        low = certify.proved_margins(blocks, tops * (1 - 1e-6))
        assert (tops * (1 - 1e-6) + low >= tops).all()
        assert (proved_tops(blocks, tops * (1 - 1e-6), FLOAT) >= tops).all()


@pytest.mark.parametrize("k", [1, 3])
def test_eigenvalue_bound_from_few_samples_is_that_of_the_features(k, monkeypatch):
    """The n x n matrix stands for the p x p one, with its own rounding."""
    monkeypatch.setattr(certify, "DENSE_LIMIT", 20)
    X = np.random.default_rng(1).standard_normal((6, 40)) * np.geomspace(2, 0.1, 40)
    cov = covariance_of_data(X)[0]
    bound = certify.eigenvalue_bound(Problem(cov, (2,) * k))
    A = cov.submatrix(np.arange(40))
    plain = float(np.linalg.eigvalsh(A)[-k:].sum())
    assert plain * (1 + 1e-14) <= bound.value <= plain * (1 + 1e-10)
    gram = cov.factor() @ cov.factor().T
    due = k * (42 * 2.0**-52 * float(np.trace(gram)) + cov.rounding(40))
    assert bound.value - certify.proved_eigenvalue_sum(gram, k) >= 1.99 * due
    monkeypatch.setattr(checked, "FACTOR_LIMIT", 20)
    own = checked_covariance_of_data(X, True, False, None, cov.unit)[0]
    again = recheck("eigenvalues", bound.data, own, Question((2,) * k, False, True, 0.0))
    assert again - FLOAT.ky_fan(own.gram(), k) >= 0.99 * due / 2
    assert plain * (1 + 1e-14) <= again <= bound.value
    monkeypatch.setattr(certify, "DENSE_LIMIT", 5)
    assert certify.eigenvalue_bound(Problem(cov, (2,) * k)) is None
    monkeypatch.setattr(checked, "FACTOR_LIMIT", 5)
    assert recheck("eigenvalues", bound.data, own, Question((2,) * k, False, True, 0.0)) == np.inf


def test_eigenvalue_bound_takes_the_smaller_matrix_of_the_two():
    X = np.random.default_rng(1).standard_normal((40, 60))
    wide, high = (covariance_of_data(table)[0] for table in (X, X.T))
    bounds = [certify.eigenvalue_bound(Problem(cov, (3,))) for cov in (wide, high)]
    assert [bound.data.get("matrix") for bound in bounds] == ["samples", None]
    own = checked_covariance_of_data(scipy.sparse.csr_array(X), True, False, None, wide.unit)[0]
    again = recheck("eigenvalues", bounds[0].data, own, Question((3,), False, True, 0.0))
    assert again <= bounds[0].value  # sparse rows have only the matrix of features at hand


def test_proved_eigenvalue_sum_holds_with_and_without_lanczos(monkeypatch):
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.standard_normal((210, 210)))[0]
    M = (Q * np.append(np.linspace(0, 1, 205), [2.0, 3.0, 3.0, 4.0, 5.0])) @ Q.T
    M = (M + M.T) / 2
    for k, plain in ((1, 5.0), (2, 9.0), (4, 15.0)):
        assert plain * (1 - 1e-14) <= certify.proved_eigenvalue_sum(M, k) <= plain * (1 + 1e-7)
    assert certify._largest_eigenvalues(M, 2).sum() == pytest.approx(9.0, rel=1e-2)

    def fails(*arguments, **options):
        raise scipy.sparse.linalg.ArpackError(-9999)

    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", fails)
    assert certify.proved_eigenvalue_sum(M, 2) == pytest.approx(9.0, rel=1e-9)


def test_gershgorin_bound_cuts_no_row_of_parallel_features():
    """No row of features that are nearly parallel may be cut below what it has."""
    A = 4.0 * (0.9 + 0.1 * np.eye(6))
    cov = covariance_of(A)
    problem = Problem(cov, (4,))
    sums = certify._row_sums(problem, np.inf)
    bound = certify.gershgorin_bound(problem, sums).value * cov.unit
    assert 14.8 <= bound <= 14.8 * (1 + 1e-9)


def test_eigenvalue_bound_counts_the_rounding_of_the_matrix_of_samples(monkeypatch):
    """Eigenvalues from n x n: forming that matrix rounds by (p + 2) eps of its trace."""
    X = 30.0 * np.random.default_rng(0).standard_normal((5, 2000))
    cov = covariance_of_data(X)[0]
    truth = float(np.linalg.eigvalsh(cov.factor() @ cov.factor().T)[-2:].sum())
    monkeypatch.setattr(certify, "DENSE_LIMIT", 20)
    monkeypatch.setattr(margins, "EPS", 1e-9)
    slack = 2 * 2002 * 1e-9 * float(cov.diagonal.sum())
    bound = certify.eigenvalue_bound(Problem(cov, (3, 3)))
    assert bound.value >= truth + certify.SAFETY * slack * (1 - 1e-6)
