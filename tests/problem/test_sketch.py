"""Sketches: what they miss is proved, by each of three proofs, and rechecked."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sparcipal.checker import covariance as checked
from sparcipal.checker import lowrank as checker
from sparcipal.problem import sketch as sketches
from sparcipal.problem.covariance import covariance_of, covariance_of_data
from tests.support.replay import FLOAT, majorant_of


def both(kind, n, p, seed=0, center=True):
    """A covariance and the checker's own version of it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.geomspace(3, 0.1, p) + 1
    if kind == "matrix":
        A = np.cov(X.T, bias=True)
        mine = covariance_of(A)
        return mine, checked.covariance_of(A, mine.unit)
    if kind == "sparse":
        X = sp.csr_matrix(X * (rng.random((n, p)) < 0.2))
    mine = covariance_of_data(X, center=center)[0]
    return mine, checked.covariance_of_data(X, center, False, None, mine.unit)[0]


CASES = [
    ("dense", 50, 30),
    ("dense", 20, 100),
    ("sparse", 40, 90),
    ("sparse", 90, 40),
    ("matrix", 60, 12),
    ("dense", 2, 9),
]


@pytest.mark.parametrize(("kind", "n", "p"), CASES)
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("how", ["majorant", *sketches.KINDS])
def test_tail_is_proved_and_sharp(kind, n, p, rank, how):
    mine, theirs = both(kind, n, p)
    if how == "majorant":
        made = sketches.majorant(mine, sketches.spectrum(mine, rank + 1), rank)
    else:
        made = sketches.sketch(mine, rank, kind=how)
    A = mine.dense()
    missed = np.linalg.eigvalsh(A - made.V @ made.V.T)[-1]
    trace = np.trace(A)
    assert missed - 1e-14 * trace <= made.tail <= missed + 1e-4 * max(missed, 0) + 1e-6 * trace
    own = majorant_of(theirs, made.V, made.proof, made.shift, None, 3, False)
    assert missed - 1e-14 * trace <= own <= made.tail


def test_majorant_is_never_worse_than_the_plain_sketch():
    mine, _ = both("dense", 60, 25)
    values = np.linalg.eigvalsh(mine.dense())[::-1]
    made = sketches.majorant(mine, sketches.spectrum(mine, 4), 3)
    assert made.tail == pytest.approx(values[3], rel=1e-9)
    assert (made.V**2).sum(axis=0) == pytest.approx(values[:3] - values[3], rel=1e-9)


@pytest.mark.parametrize(("kind", "n", "p"), [("dense", 30, 60), ("sparse", 60, 30)])
def test_sketch_is_proved_by_its_trace(kind, n, p, monkeypatch):
    monkeypatch.setattr(sketches, "FACTOR_LIMIT", 5)
    monkeypatch.setattr(checker, "FACTOR_LIMIT", 5)
    mine, theirs = both(kind, n, p)
    made = sketches.sketch(mine, 3)
    assert made.proof == "trace"
    missed = np.linalg.eigvalsh(mine.dense() - made.V @ made.V.T)[-1]
    own = majorant_of(theirs, made.V, made.proof, made.shift, None, 3, False)
    assert missed <= own <= made.tail
    rest = np.linalg.eigvalsh(mine.dense())[:-3].sum()
    assert made.tail == pytest.approx(rest, rel=1e-6)


def test_samples_proof_refuses_a_lie(monkeypatch):
    mine, theirs = both("dense", 20, 100)
    made = sketches.sketch(mine, 3)
    assert made.proof == "samples"
    missed = np.linalg.eigvalsh(mine.dense() - made.V @ made.V.T)[-1]
    for proof in ("samples", "features"):
        assert majorant_of(theirs, made.V, proof, 0.99 * missed, None, 3, False) == np.inf


@pytest.mark.parametrize("rho", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("one_sign", [False, True])
def test_clipped_matrix_dominates_on_sparse_vectors(rho, one_sign):
    from sparcipal.bounds.lowrank.bound import clipped

    rng = np.random.default_rng(1)
    A = np.corrcoef(rng.standard_normal((30, 12)), rowvar=False)
    B = clipped(A, rho, 4, one_sign)
    assert pytest.approx(checker._clipped(A, rho, 4, one_sign, FLOAT), rel=1e-13) == B
    for _ in range(300):
        x = np.zeros(12)
        x[rng.permutation(12)[:4]] = rng.standard_normal(4)
        x = np.abs(x) if one_sign else x
        assert x @ A @ x <= x @ B @ x + 1e-12


def test_rank_is_reduced_with_a_note():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 15))
    cov = covariance_of_data(X)[0]
    made = sketches.sketch(cov, 6)
    assert made.rank == 3
    assert made.note == "rank=6 reduced to 3, the rank of the covariance"
    assert made.tail <= 1e-12 * np.trace(cov.dense()) or made.proof == "samples"


def test_flat_spectrum_is_recognised():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((30, 3))
    assert sketches.spectrum(covariance_of(2 * np.eye(30) + W @ W.T), 6).flat_from() == 3
    assert sketches.spectrum(covariance_of(W @ W.T), 6).flat_from() == 3
    A = np.diag([3.0, 2.0, 1.0, 0.9, 0.9])
    assert sketches.spectrum(covariance_of(A), 3).flat_from() is None
    assert sketches.spectrum(covariance_of(A), 5).flat_from() == 3


def test_large_spectrum_agrees_with_a_complete_one():
    mine, _ = both("dense", 700, 600)
    few, all_of_them = sketches.spectrum(mine, 5), np.linalg.eigvalsh(mine.dense())[::-1]
    assert few.values == pytest.approx(all_of_them[:5], rel=1e-10)
    assert few.vectors.T @ few.vectors == pytest.approx(np.eye(5), abs=1e-10)


def test_gaussian_projection_is_right_on_average():
    for kind in ("dense", "sparse", "matrix"):
        mine, _ = both(kind, 40, 6)
        draws = [
            sketches.gaussian_projection(mine, 4, np.random.default_rng(seed))
            for seed in range(400)
        ]
        mean = sum(V @ V.T for V in draws) / len(draws)
        A = mine.dense()
        assert np.abs(mean - A).max() <= 0.12 * np.abs(A).max()


def test_sketch_refuses_an_unknown_name():
    mine, _ = both("dense", 10, 5)
    with pytest.raises(ValueError, match="'randomized'"):
        sketches.sketch(mine, 2, kind="magic")


def test_a_condition_number_is_proved_not_believed(monkeypatch):
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((9, 6))
    M = Y.T @ Y
    truth = np.linalg.eigvalsh(M)
    assert truth[-1] / truth[0] <= sketches._proved_condition(M) <= 12 * truth[-1] / truth[0]
    monkeypatch.setattr(np.linalg, "eigvalsh", lambda _: 4 * truth)
    assert sketches._proved_condition(M) == np.inf


def spiked(p: int = 30) -> np.ndarray:
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((p, p)))[0]
    return (Q * np.r_[9.0, 5.0, np.linspace(1.0, 0.1, p - 2)]) @ Q.T


def test_largest_eigenvalue_of_a_large_matrix_is_that_of_lanczos(monkeypatch):
    from sparcipal.problem import sketch

    monkeypatch.setattr(sketch, "DENSE_EIGEN", 5)
    assert sketch._largest_eigenvalue(spiked()) == pytest.approx(9.0, rel=1e-9)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_sketch_proves_what_it_misses_when_samples_are_few(layout, monkeypatch):
    """Proved by a factorisation of order n; the level is found by bisection where none is known."""
    table = np.random.default_rng(3).standard_normal((6, 30))
    cov = covariance_of_data(layout(table))[0]
    A = cov.dense()
    for kind in ("gaussian", "randomized", "eigen"):
        made = sketches.sketch(cov, 3, kind=kind)
        missed = float(np.linalg.eigvalsh(A - made.V @ made.V.T)[-1])
        assert made.proof == ("features" if missed < 1e-6 else "samples")
        assert missed <= made.tail <= missed * 1.01 + 1e-6
    monkeypatch.setattr(sketches, "FACTOR_LIMIT", 20)
    made = sketches.sketch(cov, 3, kind="gaussian")
    assert made.proof == "samples"
    monkeypatch.setattr(sketches, "FACTOR_LIMIT", 5)
    pairs = sketches.spectrum(cov, 4)
    by_trace = sketches.majorant(cov, pairs, 3)
    assert by_trace.proof == "trace"
    missed = float(np.linalg.eigvalsh(A - by_trace.V @ by_trace.V.T)[-1])
    assert missed <= by_trace.tail < np.trace(A)


def test_prove_gives_up_in_directions_without_variance(monkeypatch):
    """The trace of the residual needs variance in every direction of the sketch."""
    monkeypatch.setattr(sketches, "FACTOR_LIMIT", 1)
    A = np.diag([2.0, 1.0, 0.0])
    cov = covariance_of(A)
    guess = sketches.Sketch(np.eye(3)[:, 1:], np.inf, 0.0, "none", "eigen")
    assert sketches.prove(cov, guess, None).tail == np.inf


@pytest.mark.parametrize("kind", ["dense", "sparse", "matrix"])
def test_frequent_directions_stay_below_the_matrix_and_close_to_it(kind):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 12)) * np.geomspace(3, 0.1, 12) + 1.0
    X[rng.random(X.shape) < 0.5] = 0.0
    table = sp.csr_matrix(X) if kind == "sparse" else X
    cov = covariance_of_data(table)[0]
    if kind == "matrix":
        cov = covariance_of(np.cov(X.T, bias=True))
    low = sketches.sketch(cov, 4, kind="frequent")
    A = cov.dense()
    missed = np.linalg.eigvalsh(A - low.V @ low.V.T)
    assert missed[0] >= -1e-12 * np.trace(A), "the sketch never exceeds the matrix"
    assert missed[-1] <= low.tail
    # 2 r rows that are shrunk lose at most the tail of the spectrum over r, and r of them are kept
    rest = np.linalg.eigvalsh(A)[::-1]
    assert missed[-1] <= rest[4:].sum() / 4 + rest[4] + 1e-12
