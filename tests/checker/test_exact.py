"""Exact arithmetic is the judge of the replay in floating point.

What is accepted with rounding terms is accepted without them, and a claim below the optimum is
refused however close it is.
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets

from sparcipal import read, sparse_pca, verify
from sparcipal.problem.result import Bound, Status
from tests.support import oracle
from tests.support.honest import honest
from tests.support.places import data_file

flint = pytest.importorskip("flint")

from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.exact import Ball
from sparcipal.checker.exact_covariance import DataCovariance, GivenCovariance

BALL, FLOAT = Ball(), Float()
arb = flint.arb


@pytest.fixture
def balls():
    with BALL.running():
        yield BALL


def ball(fraction: Fraction):
    return arb(flint.fmpq(fraction.numerator, fraction.denominator))


# --- balls ---


def test_precision_is_raised_only_while_numbers_are_computed_with():
    before = flint.ctx.prec
    with BALL.running():
        assert flint.ctx.prec == 128
    assert flint.ctx.prec == before


@pytest.mark.usefixtures("balls")
def test_comparisons_are_true_only_if_proved():
    third = arb(1) / 3
    assert BALL.at_most(third, third + arb(2) ** -100)
    assert not BALL.at_most(third, third)  # of two balls that overlap nothing is known
    assert BALL.at_most(BALL.array([1.0, 2.0]), 2.0)
    assert not BALL.at_most(BALL.array([1.0, 3.0]), 2.0)
    assert not BALL.at_most(arb("nan"), 1.0)


@pytest.mark.usefixtures("balls")
def test_upper_is_the_next_float():
    for x in (arb(1) / 3, -arb(1) / 3, arb(2).sqrt(), arb(1), arb(10) ** 40 / 7, arb(0)):
        top = BALL.upper(x)
        assert x <= top
        assert not x <= np.nextafter(top, -np.inf)
    assert BALL.upper(np.inf) == np.inf


@pytest.mark.usefixtures("balls")
def test_the_largest_are_enclosed_when_balls_overlap():
    wide = arb(1, 0.5)  # 1 +- 0.5
    values = np.array([wide, arb(1.2), arb(0.1), arb(1.4)], dtype=object)
    first, second = BALL.top(values, 2)
    assert first.contains(1.4)
    assert first.contains(1.5)
    assert not first.contains(1.3)
    assert second.contains(1.2)
    assert second.contains(1.4)
    assert BALL.top_sum(values, 2).upper() >= 2.9
    rng = np.random.default_rng(0)
    for _ in range(50):
        table = rng.integers(-4, 5, (3, 6)) / 3.0
        q = int(rng.integers(0, 8))
        found = BALL.floats(BALL.top(BALL.array(table), q))
        assert (found == FLOAT.top(table, q)).all()


@pytest.mark.usefixtures("balls")
def test_square_roots_of_balls_around_zero_hold_them():
    around = arb(0, 1e-30)
    root = BALL.sqrt(around)
    assert root.contains(0)
    assert root.contains(1e-15)
    assert BALL.sqrt(arb(4)) == 2
    assert BALL.sqrt(arb(-1)).contains(0)


@pytest.mark.usefixtures("balls")
def test_exact_arithmetic_tells_definite_matrices_near_the_edge():
    """Near the edge, by exact elimination; a singular matrix is not proved, nor is one below."""
    yes = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 7))
        B = rng.integers(-4, 5, (n + 1, n)).astype(float)
        A = B.T @ B
        low = float(np.linalg.eigvalsh(A)[0])
        for shift in (low * (1 - 1e-9), low * (1 + 1e-9), low - 1e-13, low + 1e-13, -1e-9):
            told = BALL.psd(BALL.array(A), shift)
            rows = [[Fraction(v) for v in row] for row in A]
            for i in range(n):
                rows[i][i] -= Fraction(shift)
            minus = [[-v for v in row] for row in rows]
            truth = oracle.proves_below(minus, range(n), Fraction(0))
            assert not told or truth
            yes += told
        assert BALL.psd(BALL.array(A + np.eye(n)))
        assert not BALL.psd(BALL.array(A), low + 1e-6)
    assert yes > 60
    assert BALL.psd(BALL.zeros(0, 0))
    assert not BALL.psd(np.array([[arb("nan")]], dtype=object))
    # a float factorisation cannot tell these apart, an elimination of balls can
    edge = BALL.array([[1.0, 1.0], [1.0, 1.0]])
    assert BALL.psd(edge, -(2.0**-80))
    assert not BALL.psd(edge, 2.0**-80)


@pytest.mark.usefixtures("balls")
def test_sums_of_eigenvalues_are_at_most_those_in_floating_point():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 12))
        A = np.cov(rng.standard_normal((n + 3, n)).T).reshape(n, n)
        A = (A + A.T) / 2
        others = rng.random(int(rng.integers(0, 4)))
        for k in (1, 2, n, n + 2):
            plain = np.sort(np.append(np.linalg.eigvalsh(A), others))[::-1][:k].sum()
            exact = BALL.upper(BALL.ky_fan(BALL.array(A), k, others))
            assert plain * (1 - 1e-13) <= exact <= FLOAT.ky_fan(A, k, others)


# --- the covariance ---

KINDS = ("normal", "counts", "long integers", "sizes", "float32")


def table(rng: np.random.Generator, kind: str):
    n, p = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-8, 9, p)
    if kind == "counts":
        X = rng.integers(-5, 6, (n, p))
    elif kind == "long integers":
        X = rng.integers(-(2**62), 2**62, (n, p))
    elif kind == "sizes":
        X = X * 10.0 ** rng.integers(-20, 20, (n, p))
    elif kind == "float32":
        X = X.astype(np.float32)
    return X


@pytest.mark.usefixtures("balls")
@pytest.mark.parametrize("kind", KINDS)
def test_entries_hold_the_exact_covariance(kind):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = table(rng, kind)
        n, p = X.shape
        weights = rng.random(n) * (rng.random(n) < 0.8) if rng.random() < 0.5 else None
        weights = None if weights is None or not weights.any() else weights
        center, scale = bool(rng.integers(2)), bool(rng.integers(2))
        sparse = bool(rng.integers(2))
        X = X * (rng.random((n, p)) < 0.6).astype(X.dtype) if sparse else X
        cov = DataCovariance(
            sp.csc_array(X) if sparse else X, center, scale, weights, 1.0 if scale else 0.25
        )
        share = [Fraction(1)] * n if weights is None else [Fraction(w) for w in weights]
        rows = [[Fraction(v) for v in row] for row in X.tolist()]
        total = sum(share)
        mean = [sum(w * r[j] for w, r in zip(share, rows)) / total * center for j in range(p)]
        A, entries = cov.submatrix(np.arange(p)), np.empty((p, p), dtype=object)
        for i, j in itertools.product(range(p), repeat=2):
            terms = (w * (r[i] - mean[i]) * (r[j] - mean[j]) for w, r in zip(share, rows))
            entries[i, j] = sum(terms, Fraction(0)) / total
        for i, j in itertools.product(range(p), repeat=2):
            both = entries[i, i] * entries[j, j]
            due = ball(entries[i, j]) * 4
            if scale:
                due = ball(entries[i, j]) / ball(both).sqrt() if both else arb(0)
            assert A[i, j].overlaps(due)
            assert A[i, j].rad() <= abs(due).upper() * 1e-30 + cov.diagonal[i].upper() * 1e-30
        assert all(cov.inert == (np.diagonal(entries) == 0))
        if cov.inert.all():
            continue
        rest = cov.restrict(np.flatnonzero(~cov.inert))
        assert all(x.overlaps(y) for x, y in zip(rest.diagonal, cov.diagonal[~cov.inert]))
        V = BALL.array(rng.standard_normal((p, 2)))
        for x, y in zip(cov.times(V).flat, BALL.matmul(A, V).flat):
            assert x.overlaps(y)
        gram, XW, W = cov.by_samples(V)
        assert W.shape == (p, 3)
        assert XW.shape == (len(gram), 3)
        second = np.trace(gram) - (W[:, 2] * W[:, 2]).sum()
        assert second.overlaps(cov.diagonal.sum())


@pytest.mark.usefixtures("balls")
def test_given_matrices_are_symmetrised_exactly():
    A = np.array([[1.0, 0.1], [0.3, 2.0]])
    cov = GivenCovariance.of(A, 4.0)
    exact = (Fraction(0.1) + Fraction(0.3)) / 8
    assert all(cov.submatrix([0, 1])[i, 1 - i].contains(ball(exact)) for i in (0, 1))
    assert cov.given
    zero = GivenCovariance.of(np.diag([1.0, 0.0]), 1.0)
    assert zero.inert.tolist() == [False, True]
    assert zero.restrict(np.array([0])).p == 1
    with pytest.raises(Refused, match="left out"):
        zero.restrict(np.array([1]))


# --- the judge ---


def case(seed: int):
    """A small result and its data, or None for a question that has no answer."""
    asked = honest(seed)
    options = {**asked.options, "memory_limit": 1 << 30}
    if asked.size != "small" or asked.X.shape[1] > 14:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if asked.given:
                A = np.cov(asked.X.T.astype(float), bias=True)
                return sparse_pca(covariance=A, **options), {"covariance": A}
            data = {"X": asked.X, "sample_weight": options.get("sample_weight")}
            return sparse_pca(asked.X, **options), data
        except ValueError:
            return None


@pytest.mark.parametrize("start", range(0, 300, 100))
def test_what_floats_accept_balls_accept(start):
    seen = 0
    for seed in range(20_000 + start, 20_050 + start):
        found = case(seed)
        if found is None:
            continue
        result, data = found
        assert verify(result, **data), (seed, verify(result, **data).reason)
        verdict = verify(result, **data, arithmetic="exact")
        assert verdict, (seed, verdict.reason)
        seen += 1
    assert seen >= 7


@pytest.mark.parametrize("distance", [1e-9, 1e-13, 2.0**-52])
def test_bounds_below_the_optimum_are_refused(distance):
    """One signed component of integers: the optimum is known without rounding."""
    refused = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        B = rng.integers(-3, 4, (8, 6)).astype(float)
        A = B.T @ B
        result = sparse_pca(covariance=A, n_nonzero_coefs=3, certify="full", tol=1e-9)
        exact = oracle.Oracle(oracle.exact_matrix(A), False)
        assert verify(result, covariance=A, arithmetic="exact")
        for bound in result.certificate.bounds:
            low = result.value * (1 - distance)
            if oracle.worst_support(exact, 3, Fraction(low)) is None:
                continue  # not below the optimum
            forged = replace(bound, value=low)
            certificate = replace(
                result.certificate, bounds=(forged,), bound=low, value=low, rounding=0.0,
                status=Status.OPTIMAL,
            )  # fmt: skip
            claim = replace(result, certificate=certificate, variances=np.array([low]))
            assert not verify(claim, covariance=A, arithmetic="exact")
            refused += 1
    assert refused > 60


def test_a_bound_of_exactly_the_optimum_is_a_proof_and_one_less_is_none():
    """Variances 3, 2 and 1 without covariances: the trace bound has nothing to round."""
    A = np.diag([3.0, 2.0, 1.0])
    result = sparse_pca(covariance=A, n_nonzero_coefs=1, certify=False, tol=0.0)
    trace = next(b for b in result.certificate.bounds if b.name == "trace")

    def claimed(value: float):
        bounds = (replace(trace, value=value),)
        certificate = replace(result.certificate, bounds=bounds, bound=value)
        status = Status.OPTIMAL if certificate.gap <= 0.0 else Status.GAP
        return replace(result, certificate=replace(certificate, status=status))

    for value, arithmetic, told in (
        (np.nextafter(3.0, 0.0), "exact", False),
        (np.nextafter(3.0, 0.0), "float", False),
        (3.0 + 1e-12, "exact", True),
    ):
        assert bool(verify(claimed(value), covariance=A, arithmetic=arithmetic)) is told


def test_values_above_the_loadings_are_refused():
    X = np.random.default_rng(0).standard_normal((30, 6))
    result = sparse_pca(X, n_nonzero_coefs=2)
    assert verify(result, X, arithmetic="exact")
    forged = replace(result, certificate=replace(result.certificate, rounding=0.0))
    assert not verify(forged, X, arithmetic="exact")


def test_verify_refuses_an_unknown_arithmetic():
    X = np.random.default_rng(0).standard_normal((9, 4))
    with pytest.raises(ValueError, match="'float' or 'exact'"):
        verify(sparse_pca(X, n_nonzero_coefs=2), X, arithmetic="double")


def test_unknown_proofs_are_told_apart_from_wrong_ones():
    X = np.random.default_rng(0).standard_normal((9, 4))
    result = sparse_pca(X, n_nonzero_coefs=2)
    bare = replace(
        result.certificate,
        bounds=tuple(Bound(b.name, b.value, {}) for b in result.certificate.bounds),
    )
    assert verify(replace(result, certificate=bare), X, arithmetic="exact").verdict == "not proved"


# --- real data; docs/trust.rst states the times ---


@pytest.mark.parametrize(("name", "s"), [("wine", 4), ("breast_cancer", 5)], ids=str)
def test_exact_arithmetic_confirms_joint_proofs_of_standardised_tables(name, s):
    X = getattr(datasets, f"load_{name}")().data
    asked = {"n_components": 3, "n_nonzero_coefs": s, "method_options": {"effort": 0}}
    result = sparse_pca(X, scale=True, certify="full", **asked)
    assert result.status is Status.OPTIMAL
    verdict = verify(result, X, arithmetic="exact")
    assert verdict, verdict.reason


def test_exact_replay_confirms_communities_with_twenty_nonzeros():
    A = np.load(data_file("benchmark_correlations.npz"))["communities"]
    result = sparse_pca(covariance=A, n_nonzero_coefs=20)
    assert result.status is Status.OPTIMAL
    verdict = verify(result, covariance=A, arithmetic="exact")
    assert verdict, verdict.reason


def test_exact_replay_confirms_all_words_of_kos():
    table = read(data_file("docword.kos.txt.gz"), cache=False)
    result = sparse_pca(table, n_nonzero_coefs=3)
    assert result.status is Status.OPTIMAL
    assert result.n_features == 6906
    verdict = verify(result, table, arithmetic="exact")
    assert verdict, verdict.reason


# --- what it costs ---


def spread_out(n: int, p: int) -> np.ndarray:
    """Numbers whose columns take many digits."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-60, 60, (n, p))


def test_budget_counts_an_operation_of_balls_for_twenty_of_floats():
    X = np.random.default_rng(0).standard_normal((30, 8))
    result = sparse_pca(X, n_nonzero_coefs=2)
    plain, exact = Budget(), Budget()
    assert verify(result, X, budget=plain)
    assert verify(result, X, arithmetic="exact", budget=exact)
    assert exact.spent > 15 * plain.spent
    assert verify(result, X, budget=2 * plain.spent)
    refused = verify(result, X, arithmetic="exact", budget=2 * plain.spent)
    assert refused.verdict == "refused"
    assert "budget=" in refused.reason


@pytest.mark.usefixtures("balls")
def test_budget_counts_the_digits_of_a_covariance_before_it_is_formed():
    even, odd = Budget(), Budget()
    rows = np.random.default_rng(0).standard_normal((50, 20))
    for X, budget in ((rows, even), (spread_out(50, 20), odd)):
        cov = DataCovariance(X, True, False, budget=budget)
        before = budget.spent
        cov.charge(budget, 20, 20)
        assert budget.spent > before > 0
    assert odd.spent > 5 * even.spent
    with pytest.raises(Refused, match="operations or more"):
        DataCovariance(spread_out(50, 20), True, False, budget=Budget(work=1e3))
    with pytest.raises(Refused, match=r"columns of \d+ digits: the replay needs .* GiB"):
        DataCovariance(spread_out(50, 20), True, False, budget=Budget(memory=1e5))


def test_memory_of_balls_is_counted_before_a_given_matrix_becomes_some():
    result = sparse_pca(covariance=np.eye(60), n_nonzero_coefs=1)
    small = Budget(memory=1e6)  # 29 kB of floats, 2.5 MB of balls
    assert verify(result, covariance=np.eye(60), budget=small)
    refused = verify(result, covariance=np.eye(60), arithmetic="exact", budget=small)
    assert "the covariance that was given: the replay needs" in refused.reason


# --- numbers of very different size ---


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("scales", [(1e300, 1.0, 1e-300), (1e200, 1e-200, 1e-220)])
def test_features_too_small_for_the_unit_are_not_left_out_of_a_given_matrix(scales, k):
    A = np.diag(scales)
    result = sparse_pca(covariance=A, n_nonzero_coefs=1, n_components=k)
    for arithmetic in ("float", "exact"):
        assert verify(result, covariance=A, arithmetic=arithmetic), arithmetic


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_columns_too_small_for_the_unit_are_not_left_out(layout):
    X = layout(np.random.default_rng(0).standard_normal((12, 3)) * [1e100, 1e-230, 1e-10])
    result = sparse_pca(X, n_nonzero_coefs=2)
    for arithmetic in ("float", "exact"):
        assert verify(result, X, arithmetic=arithmetic), arithmetic
