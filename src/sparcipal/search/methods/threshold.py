"""Thresholding (Cadima & Jolliffe 1995) keeps the s largest loadings of a principal component."""

from __future__ import annotations

import numpy as np

from ...numerics.eigen import leading_eigenpairs
from ...numerics.largest import magnitudes
from ...problem.covariance import Covariance
from ...problem.problem import Component, Options, Problem
from ..deflation import deflate
from ..method import Found, Method


def one(problem: Problem, rng: np.random.Generator) -> Component:
    """Return the leading eigenvector cut to s entries (nonnegative: of the better sign)."""
    cov, s = problem.covariance, problem.s_max
    u = leading_eigenpairs(cov, 1, rng)[1][:, 0]
    if not problem.nonnegative:
        return Component.from_vector(truncate(u[:, None], s, False)[:, 0])
    both = truncate(np.column_stack([u, -u]), s, True)
    return Component.from_vector(both[:, int(np.argmax(quadratic_forms(cov, both)))])


def run(problem: Problem, options: Options, *, deflation: str = "auto") -> Found:
    return deflate(problem, options, one, deflation=deflation)


def truncate(Y: np.ndarray, s: int, nonnegative: bool) -> np.ndarray:
    """Cut each column of Y (p x m) to its s largest entries and normalise it.

    These are the largest by size, or the largest positive ones when `nonnegative`. A column with
    nothing to keep becomes the unit vector of its largest entry, so that all columns are unit
    vectors.
    """
    p, m = Y.shape
    score = magnitudes(Y, nonnegative)
    out = np.zeros((p, m))
    if s < p:
        rows = np.argpartition(score, p - s, axis=0)[p - s :]  # (s, m)
        kept = np.take_along_axis(score if nonnegative else Y, rows, axis=0)
        np.put_along_axis(out, rows, kept, axis=0)
    else:
        out[:] = score if nonnegative else Y
    # Scaling by the largest entry first keeps the norm from underflowing.
    size = np.abs(out).max(axis=0)
    empty = size == 0
    out /= np.where(empty, 1.0, size)
    out[np.argmax(Y[:, empty], axis=0), np.flatnonzero(empty)] = 1.0
    return out / np.linalg.norm(out, axis=0)


def quadratic_forms(cov: Covariance, X: np.ndarray) -> np.ndarray:
    """Return x'Ax for every column x of X."""
    return np.einsum("ij,ij->j", X, cov.matmat(X))


METHOD = Method("threshold", "Cadima & Jolliffe 1995", run)
