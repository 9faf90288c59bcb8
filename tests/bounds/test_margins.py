"""Cheap bounds against their own formulas: never below them in exact arithmetic, and hardly above.

A margin that is dropped, halved or subtracted shows here: half of all sums round down.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sparcipal.bounds import cheap as certify
from sparcipal.checker import cheap as checked
from sparcipal.checker.covariance import Question
from sparcipal.checker.covariance import covariance_of as checked_covariance_of
from sparcipal.checker.covariance import covariance_of_data as checked_covariance_of_data
from sparcipal.numerics import margins
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from sparcipal.problem.problem import Problem
from tests.support import oracle
from tests.support.margins import charges, matrices

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


def test_one_bound_per_component():
    A, _ = next(iter(matrices(1)))
    cov = covariance_of(A)
    problem = Problem(cov, (2, 3, 2), disjoint=False)
    (total,) = certify.cheap_bounds(problem)
    parts = [min(b.value for b in certify.cheap_bounds(Problem(cov, (s,)))) for s in (2, 3, 2)]
    assert total.name == "parts"
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


def test_rows_of_matrices_that_are_not_psd():
    """Entries may be larger than variances allow: what is missing is added to these first."""
    A = np.array([[1.0, 1.0 + 1e-10], [1.0 + 1e-10, 1.0]])
    cov = covariance_of(A)
    sums = certify._row_sums(Problem(cov, (2,)))
    assert (sums * cov.unit >= 2.0 + 1e-10).all()
    assert certify.trace_bound(Problem(cov, (2,))).value * cov.unit >= 2.0 + 1e-10


def test_charges_of_a_clipped_matrix_are_rounded_up(monkeypatch):
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
