"""Results of screened tables, redone: sums over rows, variances of dropped features, margins."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal import Screened, sparse_pca, verify
from sparcipal.checker import dropped as screened
from sparcipal.checker import sums, tables
from sparcipal.checker.arithmetic import Float
from sparcipal.checker.budget import Budget, Refused
from sparcipal.checker.cheap import psd_shift
from sparcipal.checker.covariance import Question, covariance_of, covariance_of_data
from sparcipal.checker.family import Case
from sparcipal.checker.records import Dropped, DroppedPart, KyFan, Parts
from tests.support import oracle
from tests.support.margins import LESS, E, one


def of_data(source, kept, center, scale, weights, unit):
    """The checker's sums, with the means that a result would bring."""
    rows = tables.source_of(source).whole()
    rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=float)
    about = np.average(rows, axis=0, weights=weights) * center
    return screened.of_data(
        source, kept, screened.Prepared(center, scale, weights, unit), about, len(rows)
    )


def screened_sources(X: np.ndarray):
    import scipy.sparse as sp

    yield X
    yield sp.csr_array(X)
    yield lambda: iter([X[:5], sp.csr_array(X[5:])])


@pytest.mark.parametrize("kind", ["floats", "offset", "integers", "wide", "weights", "late"])
@pytest.mark.parametrize(("center", "scale"), [(True, False), (False, False), (True, True)])
def test_sums_over_rows_are_as_close_to_fractions_as_they_say(kind, center, scale):
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
        elif kind == "late":  # integers, and other numbers after them
            X[:5] = np.rint(X[:5]) + 1000
            X[5:] += 1000
        exact = oracle.exact_covariance(X, center=center, scale=scale, weights=weights)
        kept = np.array([0, 2, 3])
        for source in screened_sources(X):
            cov, mean, spread, n, *_ = of_data(source, kept, center, scale, weights, 1.0)
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


def touching(inside: float, cov, question: Question) -> float:
    rule = DroppedPart(s=question.s_max, inside=inside, rule="variances")
    return screened.touching(rule, inside, Case(cov, question, Float(), Budget()))


def test_touching_by_variances_equals_its_formula():
    """B_(n - t) + v_1 + ... + v_t, written out."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 6)) * [3.0, 2.5, 2.0, 1.5, 1.2, 0.4]
    kept = np.array([0, 1, 2])
    cov = of_data(X, kept, True, False, None, 1.0)[0]
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
            found = touching(inside, cov, question)
            assert plain * (1 - 1e-14) <= found <= plain * (1 + 1e-11)


def test_of_given_rounds_variances_up():
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
    with pytest.raises(Refused, match="other features"):
        screened.of_given(given, np.array([0, 1]), 1.0)
    # this matrix is not promised to be PSD
    assert cov.inner.given
    assert cov.inner.restrict(np.arange(2)).given
    assert not of_data(X, kept, True, False, None, 1.0)[0].inner.given


RNG = np.random.default_rng(0)


X = RNG.standard_normal((30, 6)) * [2.0, 1.8, 1.5, 1.2, 1.0, 0.8] + RNG.standard_normal((30, 1))


def test_inert_features_are_those_that_do_not_vary():
    """Zeros and ones are no constant, centred or not."""
    table = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 3.0], [1.0, 1.0, 0.0, 2.0]])
    for data in (table, sp.csr_array(table)):
        for center, inert in ((True, [1, 2]), (False, [2])):
            cov = covariance_of_data(data, center, False, None, 1.0)[0]
            assert np.flatnonzero(cov.inert).tolist() == inert
            assert cov.restrict(np.setdiff1d(np.arange(4), inert)).p == 4 - len(inert)
            with pytest.raises(Refused, match="varies"):
                cov.restrict(np.array([1, 2, 3]))
            kept = np.array([0, 3])
            own = of_data(data, kept, center, False, None, 1.0)[0]
            assert np.flatnonzero(own.inert).tolist() == inert
    given = covariance_of(np.diag([1.0, 0.0, 2.0]), 1.0)
    assert given.inert.tolist() == [False, True, False]


def test_of_data_tells_integers_apart_that_differ_by_one():
    table = np.array([[2**52, 1, 5], [2**52 + 1, 1, 7], [2**52, 0, 5], [2**52 + 1, 1, 6]])
    for data in (table, sp.csr_array(table)):
        cov = of_data(data, np.array([0, 2]), True, False, None, 1.0)[0]
        assert not cov.inert.any()
        assert cov.diagonal[0] == 0.25
        assert cov.inner.dense()[0, 0] == 0.25


def test_of_data_reads_every_block(monkeypatch):
    monkeypatch.setattr(tables, "ENTRIES", 12)
    for data in (X, sp.csr_array(X)):
        cov, mean, _, n, *_ = of_data(data, np.array([0, 1]), True, False, None, 1.0)
        assert n == 30
        assert np.allclose(mean, X.mean(axis=0))
        assert np.allclose(cov.diagonal, X.var(axis=0))
        assert len(list(tables.source_of(data).blocks())) == 15


def test_of_data_has_errors_that_grow_with_the_rows(monkeypatch):
    """In single steps of a coarse unit of rounding: one for every row that is added to others,
    and one for every sum of rows."""
    unit = 2.0**-30
    monkeypatch.setattr(sums, "EPS", unit)
    for n in (10, 40):
        rows = np.random.default_rng(n).standard_normal((n, 4)) * 4.0 + 3.0
        second = (rows**2).mean(axis=0)
        for center, mass in ((True, rows.var(axis=0)), (False, second)):
            cov = of_data(rows, np.array([0, 1]), center, False, None, 1.0)[0]
            added = math.isqrt(n) + 1
            error = (6 * (added + math.ceil(n / added) + 8) + 40) * unit
            assert cov.inner.error_unit >= error
            assert (cov.inner.weights >= mass[:2] * (1 - 1e-9)).all()
            assert (cov.upper - cov.diagonal >= error * mass * (1 - 1e-6)).all()


@pytest.mark.usefixtures("coarse")
def test_touching_and_by_parts_keep_their_margins():
    X = np.random.default_rng(4).standard_normal((30, 6)) * [3.0, 2.5, 2.0, 1.5, 1.2, 0.4]
    cov = of_data(X, np.array([0, 1, 2]), True, False, None, 1.0)[0]
    assert (cov.upper - cov.diagonal >= 2 * E * cov.diagonal * LESS).all()
    cov.upper = cov.diagonal
    cov.inner.error_unit = 0.0
    v = np.sort(cov.diagonal)[::-1]
    plain = (v[:2].sum() * (1 + 3 * E) + v[3]) * (1 + 7 * E)
    assert touching(100.0, cov, one(3)) >= plain * LESS
    given = one(2, 2)
    parts = (DroppedPart(s=2, inside=1.0, rule="variances"),)
    record = Dropped(kept=cov.kept, rule="variances", inside=1.0, touching=1.0, parts=parts)
    case = Case(cov, given, Float(), Budget())
    touch, total = screened.by_parts(
        record, {2: 1.0}, screened.seen(Parts(parts=()), case, cov.inner)
    )
    alone = touching(1.0, cov, one(2))
    assert min(touch, total) >= 2 * max(alone, 1.0) * (1 + 2 * E) * LESS


def test_touching_adds_the_errors_of_screened_features():
    X = np.random.default_rng(8).standard_normal((30, 4)) * [3.0, 2.5, 0.3, 0.2]
    cov = of_data(X, np.arange(2), True, False, None, 1.0)[0]
    question = Question((3,), False, True, 0.0)
    plain = touching(99.0, cov, question)
    cov.inner.error_unit = 1e-3
    more = touching(99.0, cov, question)
    assert more - plain >= 1e-3 * cov.inner.weights.sum() * (1 - 1e-6)


@pytest.mark.usefixtures("coarse")
def test_touching_by_prices_equals_its_formula(monkeypatch):
    """A component may lie outside the kept features, and prices are rounded up."""
    asked = []

    def spectrum(record, case, floor, empty=False):
        asked.append((floor, empty))
        return 1.0, np.array([0.5, 0.25])

    monkeypatch.setattr(screened.kyfan, "spectrum", spectrum)
    X = np.random.default_rng(6).standard_normal((30, 6)) * [3.0, 2.5, 2.0, 1.5, 0.3, 0.2]
    cov = of_data(X, np.arange(4), True, False, None, 1.0)[0]
    cov.inner.error_unit = 0.0
    v = np.sort(np.delete(cov.upper, np.arange(4)))[::-1]
    none = np.zeros(0)
    split = KyFan(features=np.arange(1), u=none, r=none, price=np.zeros(1), pad=0.5)
    record = DroppedPart(s=3, inside=100.0, rule="prices", price=0.125, split=split)
    question, budget = Question((3,), False, True, 0.0), Budget()
    found = screened.touching(record, 100.0, Case(cov, question, Float(), budget))
    one = 1.0 + (0.5 + 0.25) * (1 + 3 * E) + v[0]
    two = 1.0 + 0.5 * (1 + 3 * E) + v[:2].sum()
    assert asked == [(0.125, True)]
    assert max(one, two) * (1 + 7 * E) * (1 - 1e-9) <= found <= max(one, two) * (1 + 1e-4)
    cov.inner.error_unit = 1e-3
    more = screened.touching(record, 100.0, Case(cov, question, Float(), budget))
    assert more - found >= cov.inner.rounding(3) * (1 - 1e-6)


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_verify_opens_a_function_of_blocks_once(counts, arithmetic):
    """Screened tables of integers and of other numbers, redone in both arithmetics."""
    if arithmetic == "exact":
        pytest.importorskip("flint")
    rows = np.random.default_rng(0).standard_normal((60, 20)) * np.linspace(3, 0.1, 20)
    rows = np.rint(5 * rows).astype(int) if counts else rows
    opened = []

    def blocks():
        opened.append(0)
        for start in range(0, 60, 20):
            opened[-1] += 1
            yield rows[start : start + 20]

    free = {"n_components": 2, "supports": "free", "method_options": {"effort": 0}}
    for asked in ({}, {"scale": True}, free):
        result = sparse_pca(blocks, n_nonzero_coefs=3, memory_limit=1, **asked)
        assert result.certificate.screening
        opened.clear()
        assert verify(result, blocks, arithmetic=arithmetic)
        again = result.certificate.screening["rule"] == "rows" and arithmetic == "float"
        assert opened == [3] * (1 + again)  # rows of all features are read once more
        lower = replace(result.certificate.bounds[0], value=result.value * (1 - 1e-9))
        certificate = replace(result.certificate, bound=lower.value, bounds=(lower,))
        assert not verify(replace(result, certificate=certificate), blocks, arithmetic=arithmetic)


def indefinite(lacking: float, **errors) -> Screened:
    """Two features with a covariance above their variances, and one that was dropped."""
    A = np.array([[1.0, 1.0 + lacking], [1.0 + lacking, 1.0]])
    errors = {"error_unit": 0.0, "error_weights": np.ones(2), **errors}
    return Screened(A, np.arange(2), np.array([1.0, 1.0, 0.5]), 10, **errors)


def test_a_screened_with_errors_of_its_own_is_not_taken_for_positive_semidefinite():
    with pytest.raises(ValueError, match="positive semidefinite"):
        sparse_pca(covariance=indefinite(1e-3), n_nonzero_coefs=2)
    given = indefinite(1e-9)
    assert (
        psd_shift(Case(screened.of_given(given, np.arange(2), 1.0).inner, None, Float(), Budget()))
        >= 1e-9
    )
    result = sparse_pca(covariance=given, n_nonzero_coefs=2, certify=False)
    assert result.certificate.bound >= 2.0 + 1e-9
    assert verify(result, covariance=given)
    assert verify(result, covariance=indefinite(1e-3)).verdict == "refused"


@pytest.mark.parametrize(
    "change",
    [
        {"error_unit": -1.0},
        {"error_unit": np.nan},
        {"error_weights": -np.ones(2)},
        {"errors": -np.ones(3)},
        {"errors": np.full(3, np.inf)},
    ],
)
def test_errors_that_would_lower_a_bound_are_no_errors(change):
    result = sparse_pca(covariance=indefinite(0.0), n_nonzero_coefs=2, certify=False)
    with pytest.raises(ValueError, match="finite and not negative"):
        verify(result, covariance=indefinite(0.0, **change))
