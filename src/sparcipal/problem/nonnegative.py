"""The best nonnegative weights on a support."""

from __future__ import annotations

import numpy as np

from ..numerics.margins import TIE

# Weights this far below the largest change the value by less than rounding does.
NEGLIGIBLE = 1e-10
# Up to this size, the optimum on a support is found by trying each of its subsets.
EXHAUSTIVE = 10
# On larger ones ascents begin at so many points, times the square of its size.
CLIMBING = 4e6


def nonnegative_leading(A: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Return a unit x >= 0 with large x'Ax, the optimum for up to EXHAUSTIVE features.

    An optimal x is the leading eigenvector of A on its own support, so only
    eigenvectors on subsets have to be tried.
    """
    size = A.shape[0]
    vectors = np.linalg.eigh(A)[1][:, ::-1]
    lead = vectors[:, 0] * np.sign(vectors[np.argmax(np.abs(vectors[:, 0])), 0])
    if (lead >= -NEGLIGIBLE).all():
        lead = np.maximum(lead, 0.0)
        return np.asarray(lead / np.linalg.norm(lead))
    if size <= EXHAUSTIVE:
        return _best_part(A)
    most = max(2, int(CLIMBING / float(size) ** 2) // 4)  # of each kind
    vectors = vectors[:, :most]
    strong = np.argsort(-np.square(np.maximum(A, 0.0)).sum(axis=0), kind="stable")[:most]
    heavy = np.argsort(-np.diagonal(A), kind="stable")[:most]
    given = [] if start is None else [start[:, None]]
    return _climb(A, np.hstack([vectors, -vectors, A[:, strong], np.eye(size)[:, heavy], *given]))


def stationary(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return x >= 0 with the weights that grow from zero as well, be it by less than the value
    shows: beside features of large variance those of small variance are worth no digit of it."""
    for _ in range(x.size):
        image = A @ x
        if not (image > 0.0).any():  # features without variance: no weight grows
            break
        polished = _polish(A, np.maximum(image, 0.0) / np.linalg.norm(image))
        if np.array_equal(polished > 0, x > 0):
            break
        x = polished
    return x


def _best_part(A: np.ndarray) -> np.ndarray:
    """Try all 2^m - 1 subsets, those of one size in one call."""
    size = A.shape[0]
    masks = (np.arange(1, 2**size)[:, None] >> np.arange(size)) & 1
    best, answer = -np.inf, np.zeros(size)
    for m in range(1, size + 1):
        parts = np.nonzero(masks[masks.sum(axis=1) == m])[1].reshape(-1, m)
        w, Q = np.linalg.eigh(A[parts[:, :, None], parts[:, None, :]])
        lead = Q[:, :, -1]
        lead = np.where(lead.sum(axis=1, keepdims=True) < 0, -lead, lead)
        positive = (lead >= -NEGLIGIBLE).all(axis=1)
        top = np.where(positive, w[:, -1], -np.inf)
        i = int(np.argmax(top))
        if top[i] > best:
            best, answer = top[i], np.zeros(size)
            answer[parts[i]] = np.maximum(lead[i], 0.0)
    return np.asarray(answer / np.linalg.norm(answer))


def _climb(A: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Take projected power steps from every column (monotone for PSD A); polish the best end."""
    X = np.maximum(starts, 0.0)
    X = X[:, X.any(axis=0)]
    for _ in range(300):
        X = X / np.linalg.norm(X, axis=0)
        image = np.maximum(A @ X, 0.0)
        X = np.where(image.any(axis=0), image, X)
    X = X / np.linalg.norm(X, axis=0)
    values = np.einsum("ij,ij->j", X, A @ X)
    x, value = X[:, int(np.argmax(values))], float(values.max())
    polished = _polish(A, x)
    as_good = value - float(polished @ A @ polished) <= TIE * abs(value)
    return polished if as_good else x


def _polish(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Go to the leading eigenvector on the support of x >= 0, and leave out what vanishes on the
    way: x'Ax grows on it."""
    x = np.where(x > NEGLIGIBLE, x, 0.0)
    while True:
        support = np.flatnonzero(x)
        own, lead = x[support], np.linalg.eigh(A[np.ix_(support, support)])[1][:, -1]
        lead = lead if lead @ own > 0 else -lead
        down = np.flatnonzero(lead <= 0)
        if down.size == 0:
            x[support] = lead
            return x
        steps = own[down] / (own[down] - lead[down])
        first = int(np.argmin(steps))
        x[support] = own + steps[first] * (lead - own)
        x[support[down[first]]] = 0.0
