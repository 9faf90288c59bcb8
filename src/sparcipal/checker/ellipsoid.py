"""Bound "ellipsoid"; statement and proof: docs/methods/ellipsoid.rst.

With A = F'F and f_i f_i' <= stretch (T + w_i w_i') for every column f_i of F, supports of s
features explain at most stretch times lambda_max(s T + sum w_i w_i'). The stretch is found here:
for any matrix C with |C T C' - I| <= rho < 1, any number a and u = f - a w,

    f'(T + w w')^-1 f <= (|C u|^2 + a^2) / (1 - rho).

LAPACK's guesses serve for C and a.
"""

from __future__ import annotations

import numpy as np

from .arithmetic import LEAST, Arithmetic, Numbers
from .budget import Refused, require
from .family import Case, Family
from .margins import term
from .records import Ellipsoid


def recheck(record: Ellipsoid, case: Case) -> Numbers:
    cov, question, ar, budget = case
    m, n = record.features.size, record.order
    require(record.T.shape[1] == record.W.shape[1] == n, f"rows that are not of length {n}")
    require(bool((record.T == record.T.T).all()), "the matrix of an ellipsoid is not symmetric")
    require(cov.n == n, f"an ellipsoid in {n} dimensions for {cov.n} samples")
    budget.work((n + m + cov.p) * n * n * 4.0 + 40.0 * n * cov.p, "an ellipsoid")
    budget.memory(ar.bytes * n * (8.0 * n + 6.0 * cov.p), "an ellipsoid")
    F = cov.factor()
    require(F is not None, "an ellipsoid needs data that are dense")
    T, W = ar.array(record.T), ar.array(record.W)
    stretch = stretched(record, ar.array(F), T, W, ar)
    total = ar.number(0.0)
    for s in question.cardinalities:
        budget.work(20.0 * n**3 + 2.0 * n * n * m, "the axes of an ellipsoid")
        matrix = s * T + ar.matmul(W.T, W)
        rounding = (m + 4) * ar.eps * np.trace(matrix)
        # what is below may have lost digits to underflow, and the stretch magnifies it
        require(ar.at_most(LEAST, np.trace(matrix)), "an ellipsoid that is next to nothing")
        total = total + stretch * (ar.ky_fan(matrix, 1) + rounding) + cov.rounding(s)
    return total * (1 + (question.k + 8) * ar.eps)


def stretched(
    record: Ellipsoid, F: np.ndarray, T: np.ndarray, W: np.ndarray, ar: Arithmetic
) -> Numbers:
    """Return at least f_i'(T + w_i w_i')^-1 f_i for every feature, and at least one."""
    n, features = len(T), record.features
    C = _whitening(record.T)
    exact = ar.array(C)
    rho = _missing(exact, T, ar)
    require(ar.at_most(rho, 0.5), "the matrix of an ellipsoid is not proved positive definite")
    g, h = C @ record.W.T.astype(np.float64), C @ ar.floats(F[:, features])
    a = ar.array((g * h).sum(axis=0) / (1 + (g * g).sum(axis=0)))
    u = F.copy()
    u[:, features] = F[:, features] - a * W.T
    off = abs(ar.matmul(exact, u))
    if not ar.exact:
        # u is rounded twice and C u n times: all relative to |C_k| (|f| + |a| |w|)
        size = np.linalg.norm(F, axis=0)
        size[features] += abs(a) * np.linalg.norm(W, axis=1)
        off += term("whitened", n) * ar.eps * np.outer(np.linalg.norm(C, axis=1), size)
    reach = (off * off).sum(axis=0)
    reach[features] = reach[features] + a * a
    require(ar.finite(reach), "an ellipsoid that overflows")
    largest = ar.top(reach, 1)[0] / (1 - rho)
    return ar.maximum(largest, 1.0) * (1 + (n + 8) * ar.eps)


def _whitening(T: np.ndarray) -> np.ndarray:
    """Return about L^-1 for LL' = T; nothing rests on how good it is."""
    try:
        C = np.linalg.inv(np.linalg.cholesky(T.astype(np.float64)))
    except np.linalg.LinAlgError:
        raise Refused("the matrix of an ellipsoid is not positive definite") from None
    require(bool(np.isfinite(C).all()), "the matrix of an ellipsoid is not positive definite")
    return C


def _missing(C: np.ndarray, T: np.ndarray, ar: Arithmetic) -> Numbers:
    """Return at least |C T C' - I|: the largest row sum of a symmetric matrix."""
    n = len(T)
    off = abs(ar.matmul(ar.matmul(C, T), C.T) - ar.eye(n))
    if not ar.exact:
        off += term("whitened", n) * ar.eps * (np.abs(C) @ np.abs(T) @ np.abs(C).T)
    return ar.top(off.sum(axis=1), 1)[0] * (1 + n * ar.eps)


FAMILIES = (Family("ellipsoid", Ellipsoid, recheck),)
