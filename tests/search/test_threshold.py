"""Thresholding, and the eigenvectors it starts from."""

from __future__ import annotations

import numpy as np


def spiked(p: int = 30) -> np.ndarray:
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((p, p)))[0]
    return (Q * np.r_[9.0, 5.0, np.linspace(1.0, 0.1, p - 2)]) @ Q.T


def test_leading_eigenvectors_are_found_when_lanczos_gives_up(monkeypatch):
    from scipy.sparse.linalg import ArpackNoConvergence

    from sparcipal.problem import sketch
    from sparcipal.problem.covariance import covariance_of
    from sparcipal.search.methods import threshold

    A = spiked()
    expected = np.linalg.eigh(A)[1][:, :-3:-1]

    def gives_up(operator, k, **options):
        raise ArpackNoConvergence("no convergence", np.empty(0), np.empty((30, 0)))

    monkeypatch.setattr(threshold, "DENSE_EIGEN", 5)
    monkeypatch.setattr(sketch, "DENSE_EIGEN", 5)
    monkeypatch.setattr(threshold.spla, "eigsh", gives_up)
    found = threshold.leading_eigenvectors(covariance_of(A), 2, np.random.default_rng(0))
    np.testing.assert_allclose(np.abs((found * expected).sum(axis=0)), 1.0, atol=1e-10)
    seen = sketch.spectrum(covariance_of(A), 2)
    # a covariance is scaled by a power of two
    np.testing.assert_allclose(seen.values / seen.trace, [9.0, 5.0] / np.trace(A), rtol=1e-6)


def test_leading_eigenvectors_of_zero_are_the_coordinates(monkeypatch):
    from sparcipal.problem.covariance import covariance_of
    from sparcipal.search.methods import threshold

    monkeypatch.setattr(threshold, "DENSE_EIGEN", 5)
    found = threshold.leading_eigenvectors(
        covariance_of(np.zeros((30, 30))), 2, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(found, np.eye(30, 2))
