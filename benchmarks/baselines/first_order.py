"""DSPCA by Nesterov's smooth minimisation (d'Aspremont, El Ghaoui, Jordan & Lanckriet 2007).

Minimise `mu log tr exp((A + U)/mu)` over the box |U_ij| <= l, mu = gap / (2 log n): every
iteration takes an eigendecomposition, and their number grows with n. It is the baseline that the
block coordinate ascent of `method="dspca"` is measured against.
"""

from __future__ import annotations

import math

import numpy as np

from sparcipal.search.relaxation import Relaxation

# Iterations between two looks at the duality gap.
CHECK = 10


def first_order(
    A: np.ndarray,
    penalty: float,
    *,
    tol: float = 1e-3,
    max_iter: int = 5000,
) -> Relaxation:
    """Solve the relaxation to a relative duality gap of `tol`, for signed components.

    The penalty lies below the largest variance.
    """
    n = A.shape[0]
    largest = float(np.diagonal(A).max())
    # of denormal variances the smoothing must not underflow
    mu = max(tol * (largest - penalty) / (2 * math.log(max(n, 2))), np.finfo(np.float64).tiny)
    U = np.zeros((n, n))
    gradients, mean_Z = np.zeros((n, n)), np.zeros((n, n))
    value, bound = largest - penalty, np.inf
    Z = np.zeros((n, n))
    top = int(np.argmax(np.diagonal(A)))
    Z[top, top] = 1.0
    dual = A
    iteration = 0
    while iteration < max_iter:
        density = _density(A + U, mu)
        weight = (iteration + 1) / 2
        gradients += weight * density
        share = 2 * weight / ((iteration + 1) * (iteration + 2) / 2)
        mean_Z += (density - mean_Z) * share
        near = np.clip(U - mu * density, -penalty, penalty)
        far = np.clip(-mu * gradients, -penalty, penalty)
        U = (2 * far + (iteration + 1) * near) / (iteration + 3)
        iteration += 1
        if iteration % CHECK and iteration < max_iter:
            continue
        reached = float(np.linalg.eigvalsh(A + near)[-1])
        if reached < bound:
            dual, bound = A + near, reached
        primal = float(np.sum(A * mean_Z) - penalty * np.abs(mean_Z).sum())
        if primal > value:
            Z, value = mean_Z.copy(), primal
        if bound - value <= tol * value:
            break
    return Relaxation(penalty, Z, value, dual, bound, iteration, bound - value <= tol * value)


def _density(M: np.ndarray, mu: float) -> np.ndarray:
    """exp(M/mu) of trace one: the gradient of the smoothed largest eigenvalue."""
    w, Q = np.linalg.eigh(M)
    weights = np.exp((w - w[-1]) / mu)
    weights /= weights.sum()
    use = weights > 1e-18
    return (Q[:, use] * weights[use]) @ Q[:, use].T
