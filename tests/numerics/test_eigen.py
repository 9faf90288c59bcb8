"""Leading eigenpairs: by LAPACK, by Lanczos, and where Lanczos gives up."""

from __future__ import annotations

import numpy as np
import scipy.sparse.linalg as spla

from sparcipal.numerics import eigen
from sparcipal.numerics.eigen import factorises, is_definite, leading_eigenpairs
from sparcipal.problem.covariance import covariance_of, covariance_of_data


def spiked(p: int = 30) -> np.ndarray:
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((p, p)))[0]
    return (Q * np.r_[9.0, 5.0, np.linspace(1.0, 0.1, p - 2)]) @ Q.T


def test_leading_eigenpairs_of_a_large_matrix_are_those_of_lapack():
    X = np.random.default_rng(0).standard_normal((50, eigen.DENSE_EIGEN + 20))
    cov, _, _ = covariance_of_data(X)
    values, vectors = leading_eigenpairs(cov, 3, np.random.default_rng(0))
    exact, Q = (part[..., ::-1] for part in np.linalg.eigh(cov.dense()))
    np.testing.assert_allclose(values, exact[:3], rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(vectors * Q[:, :3], axis=0)), 1, atol=1e-10)


def test_leading_eigenpairs_are_found_when_lanczos_gives_up(monkeypatch):
    def gives_up(operator, k, **options):
        raise spla.ArpackNoConvergence("no convergence", np.empty(0), np.empty((30, 0)))

    A = spiked()
    cov = covariance_of(A)
    monkeypatch.setattr(eigen, "DENSE_EIGEN", 5)
    monkeypatch.setattr(spla, "eigsh", gives_up)
    values, vectors = leading_eigenpairs(cov, 2, np.random.default_rng(0))
    expected = np.linalg.eigh(A)[1][:, :-3:-1]
    np.testing.assert_allclose(np.abs((vectors * expected).sum(axis=0)), 1.0, atol=1e-10)
    np.testing.assert_allclose(values * cov.unit, [9.0, 5.0], rtol=1e-6)


def test_leading_eigenvectors_of_zero_are_the_coordinates(monkeypatch):
    monkeypatch.setattr(eigen, "DENSE_EIGEN", 5)
    cov = covariance_of(np.zeros((30, 30)))
    values, vectors = leading_eigenpairs(cov, 2, np.random.default_rng(0))
    np.testing.assert_array_equal(values, np.zeros(2))
    np.testing.assert_array_equal(vectors, np.eye(30, 2))


def test_factorisations_tell_definite_from_indefinite():
    for shift, expected in ((0.0, True), (-0.2, False)):
        A = spiked() + shift * np.eye(30)
        assert is_definite(A) is expected
        np.testing.assert_array_equal(A, spiked() + shift * np.eye(30))
        assert factorises(A) is expected  # last: it works in the place of the matrix
