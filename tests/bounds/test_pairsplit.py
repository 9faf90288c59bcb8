"""The pair-split bound: kernels against NumPy, gradients, and bounds against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sparcipal.bounds.pairsplit import (
    Optimiser,
    Part,
    best_start,
    prove_below,
    proven_bound,
    split_matrix,
)
from sparcipal.bounds.pairsplit.certificate import Split
from sparcipal.bounds.pairsplit.starts import clipped, rank_one
from sparcipal.bounds.tree.fixing import fix
from sparcipal.checker.arithmetic import factorises
from sparcipal.kernels.pairsplit import smoothed_gradient, smoothed_matrix
from tests.support import oracle
from tests.support.margins import matrices
from tests.support.replay import FLOAT


def part_of(rng, n=7, s=3, nonnegative=False, priced=False, forced=0):
    X = rng.standard_normal((2 * n, n))
    price = rng.random(n) * priced
    fixed = np.arange(n) < forced
    return Part(np.arange(n), X.T @ X / n, fixed, price, s, nonnegative, np.zeros(n))


def random_split(rng, n):
    upper = np.triu_indices(n, 1)
    size = upper[0].size
    return Split.rounded(
        np.arange(n), upper, rng.standard_normal(size), 0.5 * rng.standard_normal(size)
    )


def numpy_smoothed(part, u, r, eps, tau):
    """The smoothed matrix, written with arrays and a sorted threshold search."""
    n, upper = part.n, np.triu_indices(part.n, 1)
    U, R = np.zeros((n, n)), np.zeros((n, n))
    U[upper], R[upper] = u, r
    U, R = U + U.T, R - R.T
    both = np.outer(part.forced, part.forced)
    size = np.sqrt(U * U + eps * eps)
    if part.nonnegative:
        size = 0.5 * (U + size) + 0.25 * eps
    V = np.where(both, 0.0, size * np.exp(R))
    U = np.where(both, np.minimum(U, 0.0) if part.nonnegative else 0.0, U)
    M = part.a - U
    for i in range(n):
        free = ~part.forced & (np.arange(n) != i)
        in_force = part.forced & (np.arange(n) != i)
        q = part.s - part.n_forced - (not part.forced[i])
        w = np.append(V[i, free] - part.price[free], np.full(q, part.pad[i]))
        total = lambda theta: np.clip((w - theta) / tau, 0, 1).sum()  # noqa: B023, E731
        theta = 0.0
        if total(0.0) > q:
            low, high = 0.0, w.max() + tau
            for _ in range(200):
                theta = 0.5 * (low + high)
                low, high = (theta, high) if total(theta) > q else (low, theta)
        choice = np.clip((w - theta) / tau, 0, 1) if q > 0 else np.zeros_like(w)
        d = (choice * w - 0.5 * tau * choice**2).sum()
        M[i, i] += d + (V[i, in_force] - part.price[in_force]).sum() - part.price[i]
    return M


def kernel_matrix(part, u, r, eps, tau):
    n = part.n
    charge, select, matrix = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    smoothed_matrix(
        part.a,
        u,
        r,
        part.forced,
        part.price,
        part.pad,
        part.s,
        eps,
        tau,
        part.nonnegative,
        charge,
        select,
        matrix,
        np.zeros(n),
    )
    return matrix, charge, select


@pytest.mark.kernels
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("forced", [0, 2])
@pytest.mark.parametrize("pad", [0.0, 0.3])
def test_pairsplit_kernel_matches_numpy(nonnegative, forced, pad):
    rng = np.random.default_rng(forced)
    part = part_of(rng, nonnegative=nonnegative, priced=True, forced=forced)
    part.pad[:] = pad
    u, r = rng.standard_normal(21), rng.standard_normal(21)
    matrix, _, _ = kernel_matrix(part, u, r, 0.1, 0.2)
    np.testing.assert_allclose(matrix, numpy_smoothed(part, u, r, 0.1, 0.2), atol=1e-7)


@pytest.mark.kernels
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("forced", [0, 2])
def test_pairsplit_gradient_matches_differences(nonnegative, forced):
    rng = np.random.default_rng(3)
    part = part_of(rng, nonnegative=nonnegative, priced=True, forced=forced)
    y, mu, eps, tau = rng.standard_normal(42), 0.5, 0.1, 0.2

    def value(y):
        w = np.linalg.eigvalsh(kernel_matrix(part, y[:21], y[21:], eps, tau)[0])
        return w[-1] + mu * np.log(np.exp((w - w[-1]) / mu).sum())

    matrix, charge, select = kernel_matrix(part, y[:21], y[21:], eps, tau)
    w, q = np.linalg.eigh(matrix)
    weight = np.exp((w - w[-1]) / mu)
    density = (q * (weight / weight.sum())) @ q.T
    grad = np.empty(42)
    smoothed_gradient(
        y[:21], part.forced, eps, nonnegative, charge, select, density, grad[:21], grad[21:]
    )
    step = 1e-6
    for i in range(42):
        e = np.eye(42)[i] * step
        assert (value(y + e) - value(y - e)) / (2 * step) == pytest.approx(grad[i], abs=1e-5)


def values(part):
    """Value of every admissible support."""
    free, base = np.flatnonzero(~part.forced), np.flatnonzero(part.forced)
    for size in range(part.s - base.size + 1):
        for chosen in combinations(free, size):
            support = np.append(base, np.array(chosen, dtype=int))
            if support.size:
                block = part.a[np.ix_(support, support)]
                yield support, np.linalg.eigvalsh(block)[-1] - part.price[support].sum()


@pytest.mark.parametrize("seed", range(20))
def test_any_split_bounds_every_support(seed):
    rng = np.random.default_rng(seed)
    part = part_of(rng, s=4, priced=seed % 2 == 1, forced=seed % 3)
    split = random_split(rng, part.n)
    top = np.linalg.eigvalsh(split_matrix(part, split).matrix)[-1]
    assert all(value <= top + 1e-12 for _, value in values(part))


@pytest.mark.parametrize("seed", range(20))
def test_fixing_agrees_with_enumeration(seed):
    rng = np.random.default_rng(100 + seed)
    part = part_of(rng, s=3, priced=seed % 2 == 1, forced=seed % 2)
    found = list(values(part))
    best = max(value for _, value in found)
    optimiser = Optimiser(part, best_start(part)[0])
    optimiser.run(0.01 * best if best > 0 else 0.01, 60, -np.inf)
    for t in (best * (1 - 0.2 * np.sign(best)), best + 1e-9, best + 0.1):
        result = fix(part, split_matrix(part, optimiser.split()), t)
        better = [set(support) for support, value in found if value > t]
        if result.closed:
            assert not better
        for j in np.flatnonzero(result.out):
            assert all(j not in support for support in better)
        for j in np.flatnonzero(result.into):
            assert all(j in support for support in better)


def test_optimising_tightens_the_bound():
    rng = np.random.default_rng(5)
    part = part_of(rng, n=20, s=4)
    start = best_start(part)[0]
    before = np.linalg.eigvalsh(split_matrix(part, start).matrix)[-1]
    optimiser = Optimiser(part, start)
    for mu in (1e-2, 1e-3, 1e-4):
        optimiser.run(mu * before, 200, -np.inf)
    after = np.linalg.eigvalsh(split_matrix(part, optimiser.split()).matrix)[-1]
    best = max(value for _, value in values(part))
    assert best <= after < before
    assert after - best < 0.5 * (before - best)


def test_starts_are_certificates_and_restrict():
    rng = np.random.default_rng(6)
    part = part_of(rng)
    w, q = np.linalg.eigh(part.a)
    keep = np.arange(part.n) != 2
    smaller = part.restrict(keep, part.forced)
    for split in (clipped(part, 0.3), rank_one(part, w[-1], q[:, -1], 0.8)):
        best = max(value for _, value in values(part))
        assert np.linalg.eigvalsh(split_matrix(part, split).matrix)[-1] >= best - 1e-12
        inner = split.on(smaller.features)
        np.testing.assert_array_equal(inner.u, split.u[np.ix_(keep, keep)])


def test_cholesky_proves_only_what_is_true():
    rng = np.random.default_rng(7)
    for n in (1, 2, 10, 60):
        X = rng.standard_normal((n, n))
        A = X + X.T
        top = np.linalg.eigvalsh(A)[-1]
        assert prove_below(A, top + 1e-9)
        assert not prove_below(A, top - 1e-12)
        assert not prove_below(A, top)
        assert top < proven_bound(A, top, 1.0) < top + 1e-8


def test_below_is_never_claimed_wrongly_by_exact_elimination():
    """Around the largest eigenvalue, in steps of rounding errors; exact elimination judges."""
    accepted = 0
    for A, _ in matrices(25):
        exact, top = oracle.exact_matrix(A), float(np.linalg.eigvalsh(A)[-1])
        for step in (-40, -3, -1, 0, 1, 2, 5, 20, 60, 100, 300):
            t = top * (1 + step * 2.0**-52)
            for test in (prove_below, FLOAT.below):
                if test(A, t):
                    accepted += 1
                    assert oracle.proves_below(exact, range(6), Fraction(t))
        for test in (prove_below, FLOAT.below):
            assert test(A, top * (1 + 1e-12))
            assert not test(A, top * (1 - 1e-12))
    assert accepted > 25
    assert not factorises(np.array([[np.nan]]))
    assert not factorises(np.diag([1.0, 0.0]))


def test_below_keeps_a_distance_from_the_largest_eigenvalue():
    """A margin, not luck: twice the rounding errors of a factorisation lie in between."""
    for A, _ in matrices(8):
        top = float(np.linalg.eigvalsh(A)[-1])
        trace = 6 * top - float(np.trace(A))
        for test in (prove_below, FLOAT.below):
            step = next(j for j in range(1, 10**5) if test(A, top + j * 2.0**-53))
            assert step * 2.0**-53 >= 8 * 2.0**-52 * trace


def test_splits_are_optimised_in_units_that_do_not_overflow_where_variances_are_denormal():
    n = 3
    a = np.full((n, n), 0.1)
    a[np.diag_indices(n)] = 3e-311
    part = Part(np.arange(n), a, np.zeros(n, bool), np.zeros(n), 2, False, np.zeros(n))
    assert np.isfinite(Optimiser(part, clipped(part, 0.05)).point).all()
